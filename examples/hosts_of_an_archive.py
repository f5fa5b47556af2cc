"""Rank the hosts of a web archive: python hosts_of_an_archive.py crawl.warc.gz hosts.csv

The archive is a WARC, ARC or WAT file, also https:// or s3://. The table has a host in each line, the best first.
"""

import csv
import sys
from pathlib import Path

import inlink

graph = inlink.read(sys.argv[1], level="host")
pagerank, harmonic = inlink.pagerank(graph), inlink.harmonic(graph)
with Path(sys.argv[2]).open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["host", "pagerank", "harmonic"])
    for host, value in pagerank.top(graph.num_nodes):
        table.writerow([host, value, harmonic.values[graph.node(host)]])
