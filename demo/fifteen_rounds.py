"""The tutorial job "PageRank of Common Crawl by MapReduce", on one machine or on Spark, with the same digits.

The job reads WAT files, makes a graph of hosts of all their absolute links, and does fifteen rounds of PageRank with
damping .85 from 1/n each. The mass of hosts without links goes to all hosts alike. It takes six programs for Hadoop.

    python demo/fifteen_rounds.py *.warc.wat.gz
    python demo/fifteen_rounds.py *.warc.wat.gz --spark 'local[2]'
"""

import argparse
from pathlib import Path
from typing import Any

import inlink
from inlink import Graph, Ranking

ROUNDS = 15


def local_job(files: list[Any], folder: str | Path) -> Ranking:
    graph = inlink.read(files, level="host", links="all", self_loops=True, into=folder)
    return inlink.pagerank(graph, method="power", tol=None, max_iter=ROUNDS)


def spark_job(files: list[Any], folder: str | Path, session: Any) -> Ranking:
    import inlink.spark

    graph: Graph = inlink.spark.build(
        files, folder, level="host", links="all", self_loops=True, session=session
    )
    return inlink.spark.rank(graph, method="power", tol=None, max_iter=ROUNDS, session=session)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--spark", metavar="MASTER", help="run on this cluster")
    parser.add_argument("-o", "--output", default="hosts", help="the folder of the graph")
    given = parser.parse_args()
    if given.spark:
        import inlink.spark

        ranking = spark_job(given.files, given.output, inlink.spark.session(given.spark))
    else:
        ranking = local_job(given.files, given.output)
    for host, value in ranking.top(10):
        print(f"{value:.17g}\t{host}")


if __name__ == "__main__":
    main()
