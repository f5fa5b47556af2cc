"""The peers of the benchmark of the measures: one file each, which :mod:`bench.measurers.base` says how to write."""
