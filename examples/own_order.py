"""Compare an order of your own with the built-in ones: python own_order.py GRAPH

GRAPH is a folder that `inlink build` made, or any file that it reads. Nothing is fetched.
"""

import sys

import numpy as np

import inlink
from inlink.frontier.policies import Policy


class ShortUrlsFirst(Policy):
    """Fetches pages with short URLs first."""

    name = "short-urls-first"

    def priority(self, pages):
        return np.array([1 / len(url) for url in self.pages.urls(pages)], np.float32)


if __name__ == "__main__":
    orders = ["breadth-first", "host-diverse", "own_order:ShortUrlsFirst"]
    found = inlink.replay(sys.argv[1], policies=orders, seeds="5x3", budget=0.5, tau=False)
    for order in orders[1:]:
        paired = found.paired(order, at=0.1)
        print(f"{order}: {paired.mean:+.3f} against breadth-first after 10%, {paired.won} of 5 seed sets won")
