"""Show who links to a page: python what_links_here.py GRAPH PAGE [FROM]

The pages that pass on the most PageRank come first. With FROM, the program also prints a shortest chain of links from
there.
"""

import sys

import inlink
from inlink.graph.neighbours import chain, node_of

graph = inlink.read(sys.argv[1])
page = node_of(graph, sys.argv[2])
# A page passes the same share of its rank to each page that it links to.
passed = inlink.pagerank(graph).values / graph.outdegrees.clip(1)
for source in sorted(graph.inlinks(page).tolist(), key=lambda node: -passed[node]):
    print(f"{passed[source]:.6f}  {graph.names[source]}")
if len(sys.argv) > 3:
    links = chain(graph, node_of(graph, sys.argv[3]), page)
    print(" -> ".join(graph.names[node] for node in links) if links else "no chain of links leads there")
