"""Score how well a page fits a topic, by its words.

A scorer is any callable from a :class:`~inlink.scoring.reading.Reading` to a number from 0 (worst) to 1 (best). The two
scorers here only need words; :mod:`inlink.scoring.classifier` has one that is trained.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import log

from inlink.errors import ParameterError
from inlink.scoring.reading import Reading
from inlink.scoring.words import topic_words, words

__all__ = ["BM25", "Keywords"]


class Keywords:
    """Score how often a page mentions given words: the example of Aduana, scaled to lie between 0 and 1.

    With x = Σ weight(w)·count(w) over title and text, the score is ::

        x / (x + HALF),   or 0 if x ≤ 0                                                                  (1)

    so that five mentions score ½, and many mentions at most 1. The length of the page does not matter.

    Parameters
    ----------
    keywords : iterable of str, or mapping of str to float
        Words or phrases to count, with their weights (default 1). The words of a phrase must follow one another:
        "peer to peer" is in "Peer-to-peer". Negative weights lower the score.

    Raises
    ------
    inlink.errors.ParameterError
        If there are no keywords, a keyword has no words, or a weight is not a finite number.

    Examples
    --------
    >>> from inlink.scoring.reading import read_page
    >>> page = read_page(b"<title>Cod</title>Of cod, and of cod liver oil.", "https://example.org/")
    >>> Keywords(["cod"])(page)                         # 3 mentions: 3 / (3 + 5)
    0.375
    >>> Keywords({"cod": 1, "liver oil": 2})(page)
    0.5
    """

    HALF = 5.0

    def __init__(self, keywords: Iterable[str] | Mapping[str, float]) -> None:
        if isinstance(keywords, str | bytes) or not isinstance(keywords, Iterable):
            raise ParameterError(f"keywords: expected a list of words; got {keywords!r:.200}")
        pairs = (
            keywords.items() if isinstance(keywords, Mapping) else [(keyword, 1.0) for keyword in keywords]
        )
        # Phrases with their weights, by first word.
        self._phrases: dict[str, list[tuple[list[str], float]]] = {}
        phrases: set[tuple[str, ...]] = set()
        for keyword, weight in pairs:
            phrase = words(keyword) if isinstance(keyword, str) else []
            if not phrase:
                raise ParameterError(f"keywords: {keyword!r:.200} has no words")
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) < 1e100:
                raise ParameterError(
                    f"keywords: the weight of {keyword!r:.200} must be a number; got {weight!r:.200}"
                )
            if tuple(phrase) in phrases:
                raise ParameterError(f"keywords: {keyword!r:.200} is repeated, perhaps in another form")
            phrases.add(tuple(phrase))
            self._phrases.setdefault(phrase[0], []).append((phrase, float(weight)))
        if not phrases:
            raise ParameterError("keywords: expected at least one word")

    def __call__(self, reading: Reading) -> float:
        """Return the score of a page, in [0, 1]."""
        mentions = self._sum(words(reading.title)) + self._sum(words(reading.text))
        return mentions / (mentions + self.HALF) if mentions > 0 else 0.0

    def _sum(self, text: list[str]) -> float:
        total = 0.0
        for place, word in enumerate(text):
            for phrase, weight in self._phrases.get(word, ()):
                if len(phrase) == 1 or text[place : place + len(phrase)] == phrase:
                    total += weight
        return total


class BM25:
    """Okapi BM25 of a page for a topic, divided by the highest score that the topic can reach.

    Let t run over the distinct words of the topic. f(t) is the number of mentions in the page's text, plus
    :attr:`TITLE` times those in its title. l is the number of words counted in the same way, and l̄ its mean over pages.
    Then ::

        score = Σ idf(t)·f(t) / (f(t) + k₁·(1 − b + b·l/l̄))  /  Σ idf(t)                                   (2)
        idf(t) = log(1 + (N − n(t) + ½) / (n(t) + ½))                                                       (3)

    The numerator is BM25 as in S. Robertson and H. Zaragoza, *The Probabilistic Relevance Framework: BM25 and Beyond*,
    2009, section 3, with the title weighted like a field of BM25F. The denominator is its limit for f → ∞. (3) adds 1
    inside the logarithm, as Lucene does, so that no word lowers the score.

    A crawl has no collection of pages beforehand. N, n(t) and l̄ are counted over the pages scored so far, and over a
    prior of :attr:`PRIOR_PAGES` imagined pages of :attr:`PRIOR_LENGTH` words each; each word of the topic is in a share
    :attr:`PRIOR_SHARE` of these. So the same pages in the same order get the same scores. After a restart, counting
    begins with the prior again.

    Parameters
    ----------
    topic : str
        Some words. Leave out words without meaning (*the*, *of*): until the scorer has seen how common they are, they
        count like the others.

    Raises
    ------
    inlink.errors.ParameterError
        If the topic has no words.

    Examples
    --------
    >>> from inlink.scoring.reading import read_page
    >>> scorer = BM25("postgres replication")
    >>> about = read_page(b"<title>Replication in Postgres</title>How it works.", "https://example.org/a")
    >>> other = read_page(b"<title>Gardens</title>No word of it.", "https://example.org/b")
    >>> round(scorer(about), 2), scorer(other)
    (0.9, 0.0)
    """

    K1, B, TITLE = 1.2, 0.75, 3
    PRIOR_PAGES, PRIOR_SHARE, PRIOR_LENGTH = 100, 0.1, 500

    def __init__(self, topic: str) -> None:
        self.topic = topic_words(topic)
        self._pages = self.PRIOR_PAGES
        self._length = float(self.PRIOR_PAGES * self.PRIOR_LENGTH)
        self._holding = dict.fromkeys(self.topic, self.PRIOR_PAGES * self.PRIOR_SHARE)

    def __call__(self, reading: Reading) -> float:
        """Return the score of a page, in [0, 1). Later scores take the page into account."""
        title, text = words(reading.title), words(reading.text)
        length = self.TITLE * len(title) + len(text)
        if not length:
            return 0.0
        in_title, in_text = Counter(title), Counter(text)
        mentions = {word: self.TITLE * in_title[word] + in_text[word] for word in self.topic}
        norm = self.K1 * (1 - self.B + self.B * length * self._pages / self._length)
        score = most = 0.0
        for word, count in mentions.items():
            holding = self._holding[word]
            idf = log(1 + (self._pages - holding + 0.5) / (holding + 0.5))
            score += idf * count / (count + norm)
            most += idf
        self._pages += 1
        self._length += length
        for word, count in mentions.items():
            self._holding[word] += count > 0
        return score / most
