"""The answers of a spider, checked before the crawl takes in any of them."""

from collections.abc import Iterable
from typing import Any, get_args

from inlink.crawl.arguments import (
    argument,
    check_flags,
    check_text,
    check_texts,
    checked_failure,
    checked_fingerprint,
    checked_hash,
    checked_score,
    checked_status,
)
from inlink.crawl.intake import apart, check_canonical
from inlink.errors import ParameterError
from inlink.protocol import Answer, Crawled, Excluded, Failed, HostDelay, Link, Redirected

__all__ = ["checked_answers"]


def checked_answers(answers: Any) -> list[Answer]:
    """Check that the values of each answer are in range. Links are not checked: an invalid link does not cost its page.

    Raises
    ------
    inlink.errors.ParameterError
        If an item is not an answer, or a value is out of range.
    """
    if isinstance(answers, str | bytes) or not isinstance(answers, Iterable):
        raise ParameterError(f"`answers` must be a list of answers; got {answers!r:.200}")
    found = list(answers)
    for answer in found:
        _check(answer)
    return found


def _check(answer: Any) -> None:
    if not isinstance(answer, get_args(Answer)):
        raise ParameterError(
            f"an answer is a Crawled, Failed, Excluded, Redirected, Released or HostDelay; got {answer!r:.200}"
        )
    if isinstance(answer, HostDelay):
        check_text("url", answer.url)
        argument("seconds", answer.seconds)
        return
    argument("lease", answer.lease)
    if isinstance(answer, Crawled):
        checked_score(answer.score)
        checked_status(answer.status)
        checked_hash(answer.content_hash)
        checked_fingerprint(answer.fingerprint)
        check_canonical(answer.redirected_to, answer.canonical_link)
        check_texts(error=answer.error)
        check_flags(noindex=answer.noindex, nofollow=answer.nofollow)
    elif isinstance(answer, Failed):
        checked_failure(answer.error, answer.status, answer.retry, answer.retry_after)
    elif isinstance(answer, Excluded):
        check_text("reason", answer.reason)
    elif isinstance(answer, Redirected):
        apart([Link(answer.to, data=b"" if answer.carried is None else answer.carried)])
        check_flags(again=answer.again)
        checked_status(answer.status)
