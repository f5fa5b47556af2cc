"""inlink asked for a certified 1e-6, as its users ask: the bound must get there, so the true error is smaller."""

from bench.peers import inlink

NAME = "inlink, certified 1e-6"
COMPUTES = "as inlink, but stopped by its own bound and not by the true error, which users do not know"
SETTINGS = [1e-6]
VARIES = inlink.VARIES
LARGEST = inlink.LARGEST
available = inlink.available
load = inlink.load
run = inlink.run
