"""inlink on one thread, for comparison with peers that use one thread."""

from bench.measurers import inlink

NAME = "inlink, one thread"
ABOUT = "the same on one thread"
# The harness sets INLINK_THREADS.
THREADS = 1
MEASURES = inlink.MEASURES
available = inlink.available
load = inlink.load
