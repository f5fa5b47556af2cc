"""How good a page is by a text classifier of scikit-learn's, kept in a file that cannot run anything.

The file is one of skops (https://skops.readthedocs.io): a zip of JSON and arrays. Only types that skops knows to be
harmless are made of it; a pickle is no such file, and is refused.
"""

import io
import os
import zipfile
from pathlib import Path
from typing import Any

from inlink.errors import InputError, MissingExtraError, ParameterError
from inlink.scoring.reading import Reading

__all__ = ["MAX_MODEL", "Classifier"]

MAX_MODEL = 1 << 30
"""Bytes of a model at most, unpacked."""


class Classifier:
    """The probability that a page is of the class that is sought: ``predict_proba`` of title and text, a line each.

    Parameters
    ----------
    path : path-like
        A fitted pipeline from texts to classes (say, ``TfidfVectorizer`` and ``LogisticRegression``), kept by
        ``skops.io.dump``.
    positive : object
        The class that is sought, as it stands in ``classes_`` or as that is written; None is the second of two, which
        is scikit-learn's positive one.

    Raises
    ------
    inlink.errors.MissingExtraError
        If skops or scikit-learn is not installed.
    inlink.errors.InputError
        If the file is not there, cannot be read, holds types that are not trusted, or no classifier of texts.
    inlink.errors.ParameterError
        If it has no such class, or the path is none.
    """

    def __init__(self, path: str | os.PathLike[str], positive: object = None) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ParameterError(f"classifier: expected the path of a model, not {path!r:.200}")
        self._model = _load(Path(path))
        try:
            self._model.predict_proba(["a text"])
            classes = list(self._model.classes_)
        except Exception as error:  # whatever a model of another kind makes of a text
            raise InputError(
                f"{path}: no classifier of texts with predict_proba and classes_ ({_line(error)});"
                " keep a fitted pipeline that begins with a vectorizer"
            ) from error
        self._column = _column(classes, positive, path)

    def __call__(self, reading: Reading) -> float:
        """The probability, in [0, 1]."""
        return float(self._model.predict_proba([f"{reading.title}\n{reading.text}"])[0][self._column])


def _load(path: Path) -> Any:
    try:
        import sklearn  # noqa: F401  skops needs it
        import skops.io
    except ImportError as error:
        raise MissingExtraError(
            "a classifier needs skops and scikit-learn: pip install 'inlink[classifier]'"
        ) from error
    try:
        if path.stat().st_size > MAX_MODEL:
            raise InputError(f"{path}: more than {MAX_MODEL:,} bytes; keep a smaller model")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}; name a file that skops.io.dump wrote"
        ) from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
        untrusted = skops.io.get_untrusted_types(data=data) if size <= MAX_MODEL else []
        model = skops.io.loads(data, trusted=[]) if size <= MAX_MODEL and not untrusted else None
    except Exception as error:  # whatever damage makes of zip, JSON, arrays and estimators
        raise InputError(
            f"{path}: no model of skops, or a damaged one ({_line(error)}); write it with skops.io.dump"
        ) from error
    if size > MAX_MODEL:
        raise InputError(f"{path}: more than {MAX_MODEL:,} bytes when unpacked; keep a smaller model")
    if untrusted:
        raise InputError(
            f"{path}: holds types that are not trusted: {', '.join(untrusted)[:500]};"
            " use parts of scikit-learn's own only, or give a callable as scorer"
        )
    return model


def _column(classes: list[Any], positive: object, path: object) -> int:
    if positive is None:
        if len(classes) == 2:
            return 1
    else:
        for column, one in enumerate(classes):
            if str(one) == str(positive) or (isinstance(positive, int | float) and one == positive):
                return column
    names = ", ".join(str(one) for one in classes[:20])
    raise ParameterError(
        f"positive: expected one of the classes of {path} ({names:.500}), not {positive!r:.200}"
    )


def _line(error: Exception) -> str:
    """An error in one short line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
