"""Score pages by a scikit-learn text classifier, loaded from a file that cannot run code.

The file is written by skops (https://skops.readthedocs.io): a zip of JSON and arrays. Only types that skops trusts are
loaded from it. Pickles are refused.
"""

import io
import os
import zipfile
from pathlib import Path
from typing import Any

from inlink.errors import InputError, MissingExtraError, ParameterError
from inlink.scoring.reading import Reading

MAX_MODEL = 1 << 30
"""Maximum number of bytes of an unpacked model."""


class Classifier:
    """Probability that a page belongs to the positive class: ``predict_proba`` of its title and text, on a line each.

    Parameters
    ----------
    path : path-like
        A fitted pipeline from texts to classes (say, ``TfidfVectorizer`` and ``LogisticRegression``), written by
        ``skops.io.dump``.
    positive : object
        The positive class: an element of ``classes_`` or its text. None: the second of two classes, as in
        scikit-learn.

    Raises
    ------
    inlink.errors.MissingExtraError
        If skops or scikit-learn is not installed.
    inlink.errors.InputError
        If the file does not exist, cannot be read, holds types that are not trusted, or is not a classifier of texts.
    inlink.errors.ParameterError
        If the model has no such class, or `path` is not a path.
    """

    def __init__(self, path: str | os.PathLike[str], positive: object = None) -> None:
        if not isinstance(path, str | os.PathLike):
            raise ParameterError(f"classifier: expected the path of a model; got {path!r:.200}")
        self._model = _load(Path(path))
        try:
            self._model.predict_proba(["a text"])
            classes = list(self._model.classes_)
        except Exception as error:
            # A model of another kind may raise any exception when it gets text.
            raise InputError(
                f"{path}: not a text classifier with predict_proba and classes_ ({_line(error)})."
                " Save a fitted pipeline that begins with a vectorizer."
            ) from error
        self._column = _column(classes, positive, path)

    def __call__(self, reading: Reading) -> float:
        """Return the probability, in [0, 1]."""
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
            raise InputError(f"{path}: more than {MAX_MODEL:,} bytes; save a smaller model")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror or error}. Name a file that skops.io.dump wrote."
        ) from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
        untrusted = skops.io.get_untrusted_types(data=data) if size <= MAX_MODEL else []
        model = skops.io.loads(data, trusted=[]) if size <= MAX_MODEL and not untrusted else None
    except Exception as error:
        # Damaged zip, JSON, arrays or estimators may raise any exception.
        raise InputError(
            f"{path}: not a skops model, or damaged ({_line(error)}). Write it with skops.io.dump."
        ) from error
    if size > MAX_MODEL:
        raise InputError(f"{path}: more than {MAX_MODEL:,} bytes when unpacked; save a smaller model")
    if untrusted:
        raise InputError(
            f"{path}: contains types that are not trusted: {', '.join(untrusted)[:500]}."
            " Use only parts of scikit-learn, or give a callable as scorer."
        )
    return model


def _column(classes: list[Any], positive: object, path: object) -> int:
    if positive is None:
        if len(classes) == 2:
            return 1
    else:
        for column, label in enumerate(classes):
            if str(label) == str(positive) or (isinstance(positive, int | float) and label == positive):
                return column
    names = ", ".join(str(label) for label in classes[:20])
    raise ParameterError(
        f"positive: expected one of the classes of {path} ({names:.500}); got {positive!r:.200}"
    )


def _line(error: Exception) -> str:
    """Return an error as one short line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
