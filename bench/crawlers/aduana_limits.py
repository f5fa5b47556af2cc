"""Aduana with its politeness: at most 0.25 crawls a second of a domain if there are others, 100 at most.

Its Python always sets these; its C library by itself sets none. What :mod:`bench.crawlers.aduana` says of fairness
holds here too. Times are float32 seconds since 1970, whose steps are 128 seconds, so that hosts hardly ever cool down.
"""

from pathlib import Path

from bench.crawlers import aduana

NAME = "Aduana (C), crawl rates 0.25 to 100"
COMPUTES = "the same, the hundred hottest domains kept back"
LARGEST = aduana.LARGEST
MODES = {"plain": ("", 1.0)}
NEXT = {"plain": 0.02}
available = aduana.available


def command(folder: Path) -> list[str]:
    return aduana.command(folder, "limits")
