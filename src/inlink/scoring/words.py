"""Cut text into words, in the same way for topics, pages, anchors and URLs.

Text is normalised (NFKC) and case-folded, and soft hyphens and invisible joiners are removed. A word is then a run of
letters, digits and marks. Everything else separates words: hyphens, apostrophes, underscores, dots.

Scripts written without spaces (Chinese, Japanese, Thai, Lao, Burmese, Khmer) have no such runs. Each run of their
characters is cut into pairs of neighbours, 数据库 → 数据 据库, as Lucene's CJKAnalyzer does. A single character is a
word.

Words are not stemmed: *database* and *databases* are two words. The benefit of stemming depends on the language, which
a crawl does not know. A topic can name both forms.
"""

import re
import unicodedata
from functools import cache

from inlink.errors import ParameterError

# Each byte of ASCII in lower case; a space for those that separate words.
_LOWERED = bytes(code if chr(code).isalnum() else 32 for code in bytes(range(128)).lower()) + bytes(128)
# Anything but ASCII and characters that only separate words, whatever stands beside them.
_OTHER = re.compile("[^\0-\x7f\u00a0\u00a7\u00a9\u00ab\u00ae\u00b7\u00bb\u2010-\u2022\u2026\u2190-\u2193]")
_UNSEEN = re.compile("[\u00ad\u200c\u200d\u2060\ufeff\ufe00-\ufe0f]+")
_SPACELESS = re.compile(
    "(["
    "\u3005\u3007\u3041-\u3096\u309d\u309e\u30a1-\u30fa\u30fc-\u30fe\u31f0-\u31ff"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\u1780-\u17d3"  # Burmese, Khmer
    "]+)"
)


@cache
def _runs() -> re.Pattern[str]:
    r"""Return the pattern of a letter or digit and the letters, digits and marks after it. ``\w`` has no marks."""
    # Only marks of the first plane, which has all large scripts. A set with characters beyond it takes six times as
    # long.
    marks = "".join(chr(code) for code in range(0x10000) if unicodedata.category(chr(code))[0] == "M")
    return re.compile(rf"[^\W_]+(?:[{marks}]+[^\W_]*)*")


def words(text: str) -> list[str]:
    """Return the words of a text, in order. Repeated words are repeated here.

    Examples
    --------
    >>> words("PostgreSQL's B-Tree, version 17.2")
    ['postgresql', 's', 'b', 'tree', 'version', '17', '2']
    >>> words("Ｆｕｌｌ ＷＩＤＴＨ, Straße, 关系数据库")
    ['full', 'width', 'strasse', '关系', '系数', '数据', '据库']
    """
    encoded = _ascii_words(text)
    if encoded is not None:
        return b" ".join(encoded).decode().split()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    parts: list[str] = []
    for run in _runs().findall(_UNSEEN.sub("", text)):
        if run.isascii() or not _SPACELESS.search(run):
            parts.append(run)
            continue
        for place, part in enumerate(_SPACELESS.split(run)):
            if place % 2 and len(part) > 1:
                parts += [part[k : k + 2] for k in range(len(part) - 1)]
            elif part:
                parts.append(part)
    return parts


def _ascii_words(text: str) -> list[bytes] | None:
    """Return the words of a text of ASCII and of characters that only separate words; None for other texts."""
    if text.isascii() or not _OTHER.search(text):
        return text.encode("ascii", "replace").translate(_LOWERED).split()
    return None


def encoded_words(text: str) -> list[bytes]:
    """Return the words of a text as :func:`words` does, in UTF-8."""
    found = _ascii_words(text)
    return "\n".join(words(text)).encode("utf-8", "surrogatepass").split(b"\n") if found is None else found


def topic_words(topic: str) -> list[str]:
    """Return the words of a topic, each once, in order.

    Raises
    ------
    inlink.errors.ParameterError
        If the topic is not a string, or has no words.
    """
    if not isinstance(topic, str):
        raise ParameterError(f"topic: expected words, such as 'postgres replication'; got {topic!r:.200}")
    distinct = list(dict.fromkeys(words(topic)))
    if not distinct:
        raise ParameterError(f"topic: {topic!r:.200} has no words; use words such as 'postgres replication'")
    return distinct
