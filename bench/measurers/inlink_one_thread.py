"""inlink on one thread, for comparison with peers that use one thread."""

from bench.measurers import inlink

NAME = "inlink, one thread"
ABOUT = "the same on one thread"
THREADS = 1  # the harness sets INLINK_THREADS
MEASURES = inlink.MEASURES
available = inlink.available
load = inlink.load
