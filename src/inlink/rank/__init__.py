"""Link analysis, with one module per algorithm."""

from inlink.rank.betweenness import betweenness
from inlink.rank.cheirank import cheirank
from inlink.rank.closeness import closeness, harmonic
from inlink.rank.degree import degree
from inlink.rank.eigenvector import eigenvector
from inlink.rank.hits import hits
from inlink.rank.katz import katz
from inlink.rank.mcmc import Walks, mcmc
from inlink.rank.opic import opic
from inlink.rank.pagerank import pagerank
from inlink.rank.percolation import percolation
from inlink.rank.ranking import Ranking
from inlink.rank.salsa import salsa
from inlink.rank.spam import anti_trustrank, spam_mass
from inlink.rank.trustrank import trustrank

__all__ = [
    "Ranking",
    "Walks",
    "anti_trustrank",
    "betweenness",
    "cheirank",
    "closeness",
    "degree",
    "eigenvector",
    "harmonic",
    "hits",
    "katz",
    "mcmc",
    "opic",
    "pagerank",
    "percolation",
    "salsa",
    "spam_mass",
    "trustrank",
]
