"""Extractors, one file a peer: a WAT file to pairs of pages or of hosts.

Each has NAME, COMPUTES, LARGEST (bytes of input), ``available()``, and ``run(path, folder)``, which returns
how many arcs it found.
"""

ALL = ["inlink_hosts", "cc_pyspark_hosts", "inlink_pages", "cc_pyspark_pages"]
