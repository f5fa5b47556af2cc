"""The pages of a crawl from which a link to another page is plausible, for suggestions of links.

A page is left out if its language differs from that of the page to raise, if only template links lead to it, or if it
is near neither in folder nor in text. Two pages are near in folder if they have the same host and first folder. They
are near in text if their titles or first headings share a rare word. A word is rare if at most 5% of the pages have it
in their titles or headings.
"""

import os
import re
from collections import defaultdict

import numpy as np

from inlink.audit.site import CrawledSite
from inlink.audit.templates import template_links
from inlink.base.arrays import BoolArray
from inlink.graph.graph import Graph
from inlink.rank.suggest import SECTION, Filter, filters_of, sections_of

__all__ = ["crawl_filters"]

RARE = 0.05
"""Largest share of the pages that have a rare word."""

_WORD = re.compile(r"[^\W\d_]{3,}")


def crawl_filters(graph: Graph, folder: str | os.PathLike[str]) -> dict[str, Filter]:
    """Return the filters of :func:`inlink.rank.suggest.suggest` for a crawl's graph.

    The filter of languages keeps pages whose language is not known.

    Parameters
    ----------
    graph, folder
        As in :func:`.templates.content_graph`, and so are the errors.
    """
    with CrawledSite(folder) as site:
        content = site.inlinks_of(~template_links(site))
        alone = (site.inlinks > 0) & (content == 0)
        alone[site.homes] = False
    # Pages may have become known since the graph was read.
    count = graph.num_nodes
    alone = np.append(alone, np.zeros(count, np.bool_))[:count]
    languages: dict[str, int] = {"": 0}
    language = np.zeros(count, np.uint32)
    pages_with: dict[str, list[int]] = defaultdict(list)
    words_of: dict[int, set[str]] = {}
    for page, facts in site.facts.items():
        if page < count:
            # en-GB and en are one language.
            code = facts.language.partition("-")[0].strip().casefold()
            language[page] = languages.setdefault(code, len(languages))
            words_of[page] = set(_WORD.findall(f"{facts.title} {facts.heading}".casefold()))
            for word in words_of[page]:
                pages_with[word].append(page)
    section = sections_of(graph)

    def other_language(target: int) -> BoolArray:
        others: BoolArray = (language != language[target]) & (language != 0) & (language[target] != 0)
        return others

    def far(target: int) -> BoolArray:
        away: BoolArray = section != section[target]
        for word in words_of.get(target, ()):
            if len(pages_with[word]) <= RARE * len(words_of):
                away[pages_with[word]] = False
        return away

    filters = filters_of(graph)
    # The filter `far` includes this one.
    filters.pop(SECTION)
    return {
        **filters,
        "in another language": other_language,
        "linked by menus and footers only": lambda _: alone,
        "near neither in folder nor in title": far,
    }
