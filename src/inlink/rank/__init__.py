"""Link analysis: one module an algorithm."""

from inlink.rank.degree import degree
from inlink.rank.hits import hits
from inlink.rank.pagerank import pagerank
from inlink.rank.ranking import Ranking
from inlink.rank.trustrank import trustrank

__all__ = ["Ranking", "degree", "hits", "pagerank", "trustrank"]
