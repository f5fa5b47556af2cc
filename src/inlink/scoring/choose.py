"""Make scorers from settings: a name or a small mapping. Only code that the setting names is run."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from inlink.errors import ParameterError
from inlink.scoring.reading import Reading

ScorePage = Callable[[Reading], float]
"""A content scorer: returns how good a page is, from 0 to 1."""

ScoreLinks = Callable[[Reading, float], Sequence[float]]
"""A link scorer: returns how promising each link of a page is, from 0 to 1, given the page's own score."""

_CONTENT = (
    "expected None, a callable, its name 'package.module.name', {'topic': 'some words'}, {'keywords': ['word', …]},"
    " {'keywords': {'word': weight, …}} or {'classifier': 'model.skops', 'positive': class}"
)
_LINKS = "expected None, a callable, its name 'package.module.name', or {'topic': 'some words'}"


def content_scorer(spec: object) -> ScorePage | None:
    """Return the content scorer that a setting describes.

    Parameters
    ----------
    spec : None, callable, str or mapping
        None: no scorer. A callable is returned as it is. A string ``"package.module.name"`` is imported; a class is
        called without arguments. ``{"topic": "postgres replication"}`` makes a :class:`~inlink.scoring.content.BM25`,
        ``{"keywords": ["word", …]}`` or ``{"keywords": {"word": weight, …}}`` a
        :class:`~inlink.scoring.content.Keywords`, and ``{"classifier": "model.skops", "positive": 1}`` a
        :class:`~inlink.scoring.classifier.Classifier` (``positive`` is optional).

    Raises
    ------
    inlink.errors.ParameterError
        If the setting is none of these. The message lists them.
    inlink.errors.InlinkError
        If the scorer cannot be made from the setting.

    Examples
    --------
    >>> content_scorer({"topic": "postgres replication"}).topic
    ['postgres', 'replication']
    """
    if isinstance(spec, Mapping):
        from inlink.scoring.classifier import Classifier
        from inlink.scoring.content import BM25, Keywords

        keys = set(spec)
        if keys == {"topic"}:
            return BM25(spec["topic"])
        if keys == {"keywords"}:
            return Keywords(spec["keywords"])
        if keys in ({"classifier"}, {"classifier", "positive"}):
            return Classifier(spec["classifier"], spec.get("positive"))
    scorer: ScorePage | None = _callable(spec, "content scorer", _CONTENT)
    return scorer


def link_scorer(spec: object) -> ScoreLinks | None:
    """Return the link scorer that a setting describes.

    Parameters
    ----------
    spec : None, callable, str or mapping
        As for :func:`content_scorer`. The only mapping is ``{"topic": "postgres replication"}``, which makes a
        :class:`~inlink.scoring.links.LinkScorer`.

    Raises
    ------
    inlink.errors.ParameterError
        If the setting is none of these. The message lists them.
    """
    if isinstance(spec, Mapping) and set(spec) == {"topic"}:
        from inlink.scoring.links import LinkScorer

        return LinkScorer(spec["topic"])
    scorer: ScoreLinks | None = _callable(spec, "link scorer", _LINKS)
    return scorer


def _callable(spec: object, what: str, expected: str) -> Any:
    if spec is None:
        return None
    thing = _imported(spec, what, expected) if isinstance(spec, str) else spec
    if isinstance(thing, type):
        thing = thing()
    if not callable(thing):
        raise ParameterError(f"{what}: {expected}; got {spec!r:.200}")
    return thing


def _imported(name: str, what: str, expected: str) -> object:
    module, _, attribute = name.rpartition(".")
    if not all(part.isidentifier() for part in name.split(".")) or not module:
        raise ParameterError(f"{what}: {expected}; got {name!r:.200}")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ParameterError(f"{what}: cannot import {name!r:.200} ({error}); {expected}") from error
