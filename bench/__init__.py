"""Benchmarks: inlink beside its peers, at the same true error. See README.md in this folder."""
