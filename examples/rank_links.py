"""Rank the links in a CSV file: python rank_links.py links.csv

Each line of the file has a source and a target. The program prints the ten best nodes. A plus stands behind each that
an exact computation would give the same place.
"""

import csv
import sys
from pathlib import Path

import inlink

with Path(sys.argv[1]).open(newline="") as file:
    graph = inlink.Graph.from_arcs([(source, target) for source, target in csv.reader(file)])
ranking = inlink.pagerank(graph, tol=1e-9)
print(f"{graph.num_nodes} nodes, {graph.num_arcs} links, error at most {ranking.error_bound:.0e}")
places = ranking.places(10)
for place, (name, value) in enumerate(ranking.top(10)):
    print(f"{value:.6f}  {name}{' +' if places and places.certain[place] else ''}")
