"""The questions to a crawl: the methods of :class:`inlink.CrawlView` that :func:`question` decorates.

A question is a method and the type of its answer. From the method's signature are made: the endpoint of a server, its
entry in the OpenAPI document, and the method of :class:`inlink.client.remote.RemoteCrawl` that asks the server. The
question's *way* (:mod:`inlink.crawl.questions.whole`) makes the answer of a crawl of several shards from theirs.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Protocol, TypeVar, get_args, get_type_hints

import msgspec

from inlink.crawl.gate import inside
from inlink.crawl.questions.whole import Way
from inlink.errors import ParameterError, UnknownNodeError

Method = TypeVar("Method", bound=Callable[..., Any])


class AnswerPart(Protocol):
    """A part of an answer."""

    @property
    def cursor(self) -> str | None:
        """Where the next part begins; None in the last part."""


AnyPart = TypeVar("AnyPart", bound=AnswerPart)


class Question:
    """A question to a crawl.

    In a request, a page is named by text, as ``url``. ``seconds`` is not sent: a server has its own time limit.

    Parameters
    ----------
    method : callable
        The method of :class:`inlink.CrawlView`.
    path : str
        Last part of the path of the endpoint.
    way : callable
        Makes the answer of several shards.
    """

    def __init__(self, method: Callable[..., Any], path: str, way: Way) -> None:
        self.method, self.path, self.way = method, path, way

    @cached_property
    def _parameters(self) -> list[inspect.Parameter]:
        """The parameters that are sent."""
        parameters = inspect.signature(self.method).parameters.values()
        return [parameter for parameter in parameters if parameter.name not in ("self", "seconds")]

    @cached_property
    def query(self) -> type[msgspec.Struct] | None:
        """The type of a request's query; None if the question has no parameters."""
        hints = get_type_hints(self.method) | {"page": str}
        fields: list[Any] = []
        for parameter in self._parameters:
            name = "url" if parameter.name == "page" else parameter.name
            has_default = parameter.default is not parameter.empty
            fields.append((name, hints[parameter.name], *([parameter.default] if has_default else [])))
        name = f"{self.method.__name__.capitalize()}Query"
        return msgspec.defstruct(name, fields, frozen=True, forbid_unknown_fields=True) if fields else None

    @cached_property
    def answer(self) -> Any:
        """The type of the answer."""
        hint = get_type_hints(self.method)["return"]
        return next((kind for kind in get_args(hint) if kind is not type(None)), hint)

    @cached_property
    def may_be_none(self) -> bool:
        """True if the answer may be None. Then a server replies 404."""
        return type(None) in get_args(get_type_hints(self.method)["return"])

    def ask(self, view: Any, query: msgspec.Struct | None) -> Any:
        """Ask a view the question of a request."""
        arguments = {} if query is None else msgspec.structs.asdict(query)
        if "url" in arguments:
            arguments["page"] = arguments.pop("url")
        return self.method(view, **arguments)

    def arguments(self, *values: Any, **named: Any) -> dict[str, Any]:
        """The values of all parameters that are sent, by name."""
        bound = inspect.signature(self.method).bind(None, *values, **named).arguments
        return {
            parameter.name: bound.get(parameter.name, parameter.default) for parameter in self._parameters
        }

    def sent(self, *values: Any, **named: Any) -> dict[str, Any]:
        """The query of the request for these arguments. Arguments that have their default are left out.

        Raises
        ------
        inlink.errors.ParameterError, inlink.errors.UnknownNodeError
            If a page is named by something else than a URL or a number.
        """
        arguments = self.arguments(*values, **named)
        query = {
            parameter.name: arguments[parameter.name]
            for parameter in self._parameters
            if arguments[parameter.name] != parameter.default
        }
        if "page" in query:
            query["url"] = _text_of(query.pop("page"))
        return {
            name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()
        }


QUESTIONS: dict[str, Question] = {}
"""All questions by the name of their method."""


def question(path: str, way: Way) -> Callable[[Method], Method]:
    """Decorate a method of a view, so that it is a question. It enters the gate of the view.

    Parameters
    ----------
    path : str
        Last part of the path of the endpoint.
    way : callable
        Makes the answer of a crawl of several shards: see :mod:`inlink.crawl.questions.whole`.
    """

    def declare(method: Method) -> Method:
        guarded = inside(method)
        QUESTIONS[method.__name__] = Question(guarded, path, way)
        return guarded

    return declare


def parts(ask: Callable[[str | None], AnyPart]) -> Iterator[AnyPart]:
    """Ask for all parts of an answer, each with the cursor of the part before."""
    part = ask(None)
    yield part
    while part.cursor is not None:
        part = ask(part.cursor)
        yield part


def _text_of(page: str | int) -> str:
    """The name of a page in a request: its URL, or its number as 16 hexadecimal digits."""
    if isinstance(page, bool) or not isinstance(page, str | int):
        raise ParameterError(f"a page is named by its URL or its number; got {page!r:.200}")
    if isinstance(page, int) and not 0 <= page < 1 << 64:
        raise UnknownNodeError(f"{page} is not the number of a page")
    return page if isinstance(page, str) else f"{page:016x}"
