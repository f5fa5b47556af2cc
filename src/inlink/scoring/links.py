"""Score how promising a link is before it is followed: shark-search.

M. Hersovici, M. Jacovi, Y. S. Maarek, D. Pelleg, M. Shtalhaim and S. Ur, *The Shark-Search Algorithm. An Application:
Tailored Web Site Mapping*, WWW7, 1998.
"""

from collections.abc import Iterable
from urllib.parse import unquote

from inlink.scoring.reading import Reading
from inlink.scoring.words import topic_words, words
from inlink.urls.canonical import canonical

__all__ = ["LinkScorer"]


class LinkScorer:
    """Shark-search's potential score of each link of a page.

    ::

        potential     = γ·inherited + (1 − γ)·neighbourhood                                                 (1)
        inherited     = δ·(the page's own score)                                                            (2)
        neighbourhood = β·anchor + (1 − β)·context                                                          (3)
        context       = 1 if anchor > 0, else sim(topic, words around the link)                          (4)
        anchor        = sim(topic, words of the link and of its URL)                                        (5)

    with γ = 0.5, δ = 0.5 and β = 0.8. So the words of a link count more than its page, and a page on the topic also
    raises links without words of the topic. Differences from the paper:

    - sim is the share of the topic's words that occur, because a few words have no useful frequencies.
    - The words of the URL count in (5): its path and query, and its host if it is not the page's own. The page's own
      host does not distinguish its links.
    - In the paper, a page without relevance passes on what it inherited. A scorer sees only one page: (2) is 0 there.

    Parameters
    ----------
    topic : str
        Some words, without words that have no meaning (*the*, *of*). All words count the same.

    Raises
    ------
    inlink.errors.ParameterError
        If the topic has no words.

    Examples
    --------
    >>> from inlink.scoring.reading import read_page
    >>> page = read_page(b"<a href=/wal>Postgres</a><p>Gardens: <a href=/roses>roses</a>", "https://example.org/")
    >>> [round(score, 3) for score in LinkScorer("postgres replication")(page, page_score=0.6)]
    [0.45, 0.2]
    """

    GAMMA, DELTA, BETA = 0.5, 0.5, 0.8

    def __init__(self, topic: str) -> None:
        self.topic = frozenset(topic_words(topic))

    def __call__(self, reading: Reading, page_score: float) -> list[float]:
        """Return the scores of a page's links.

        Parameters
        ----------
        reading : Reading
            The page that has the links.
        page_score : float
            Score of the page's content; clipped to [0, 1].

        Returns
        -------
        list of float
            The score of each link in ``reading.links``, in [0, 1].
        """
        inherited = self.DELTA * min(max(page_score, 0.0), 1.0) if page_score == page_score else 0.0
        own_host = _host_and_rest(canonical(reading.url) or "")[0]
        scores = []
        for link in reading.links:
            anchor = self._similarity([*words(link.text), *words(_described_by(link.url, own_host))])
            context = 1.0 if anchor > 0 else self._similarity(words(link.around))
            neighbourhood = self.BETA * anchor + (1 - self.BETA) * context
            scores.append(self.GAMMA * inherited + (1 - self.GAMMA) * neighbourhood)
        return scores

    def _similarity(self, text: Iterable[str]) -> float:
        return len(self.topic.intersection(text)) / len(self.topic)


def _described_by(url: str, own_host: str) -> str:
    """Return the parts of a canonical URL whose words describe its page."""
    host, rest = _host_and_rest(url)
    return unquote(rest if host == own_host else f"{host} {rest}")


def _host_and_rest(url: str) -> tuple[str, str]:
    host, _, rest = url.partition("//")[2].partition("/")
    return host, rest
