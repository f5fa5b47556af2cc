"""The OpenAPI document of a server, made from the table of endpoints. A test compares replies with it."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec

from inlink import __version__
from inlink.protocol import Refusal
from inlink.server.endpoints import Endpoint, EventStream, Plain

REFUSALS = {
    400: "The request cannot be read.",
    401: "There is no token, or it is unknown.",
    403: "The token does not give access, or another site sent the request.",
    404: "There is no such crawl, page or ranking.",
    409: "The session has ended, or the request is older than its last.",
    413: "The body is too large.",
    415: "The request is not sent as JSON.",
    422: "A value is out of its range.",
    429: "The crawl has the maximum number of open sessions.",
    503: "Too many requests wait, or the crawl cannot be used now: try again after Retry-After.",
}


@cache
def document(endpoints: tuple[Endpoint, ...]) -> bytes:
    """The document as JSON."""
    kinds = [kind for endpoint in endpoints for kind in _structs(endpoint)]
    schemas, named = msgspec.json.schema_components(
        [*kinds, Refusal], ref_template="#/components/schemas/{name}"
    )
    schema_of = dict(zip([*kinds, Refusal], map(_content, schemas), strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, schema_of, named)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "inlink",
            "version": __version__,
            "description": "Crawls that hand out the next pages to fetch, and take in the results.",
        },
        "paths": paths,
        "components": {
            "schemas": named,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=1)


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema} if schema else {}}}


def _replies(endpoint: Endpoint) -> list[Any]:
    """The types of the reply that are JSON or a stream."""
    hint = get_type_hints(endpoint.call)["return"]
    return [] if hint is Plain else [*get_args(hint)] if EventStream in get_args(hint) else [hint]


def _structs(endpoint: Endpoint) -> Iterator[Any]:
    """The types that are sent as JSON."""
    yield from (kind for name, kind in endpoint.types.items() if name in ("body", "query"))
    yield from (kind for kind in _replies(endpoint) if kind is not EventStream)


def _operation(endpoint: Endpoint, schema_of: dict[Any, Any], named: dict[str, Any]) -> dict[str, Any]:
    media: dict[str, Any] = {}
    for kind in _replies(endpoint):
        stream = {"text/event-stream": {"schema": {"type": "string"}}}
        content = stream if kind is EventStream else schema_of[kind]["content"]
        media = {"content": media.get("content", {}) | content}
    replies = {str(endpoint.status): {"description": "As asked.", **media}}
    for status in _refusals(endpoint):
        replies[str(status)] = {"description": REFUSALS[status], **schema_of[Refusal]}
    operation: dict[str, Any] = {
        "operationId": endpoint.call.__name__,
        "summary": endpoint.summary,
        "responses": replies,
        "parameters": _parameters(endpoint, named),
    }
    if "body" in endpoint.types:
        operation["requestBody"] = {"required": True, **schema_of[endpoint.types["body"]]}
    if "raw" in endpoint.types:
        operation["requestBody"] = {"required": True, **_content({})}
    if endpoint.role is not None:
        operation["security"] = [{"token": []}]
        operation["description"] = f"For the role {endpoint.role!r}, and for those above it."
        if endpoint.method != "GET":
            operation["description"] += " Send `Content-Type: application/json`, also without a body."
    return operation


def _refusals(endpoint: Endpoint) -> list[int]:
    name, types = endpoint.call.__name__, endpoint.types
    return sorted(
        {503}
        | ({415} if endpoint.method != "GET" else set())
        | ({401, 403} if endpoint.role is not None else set())
        | ({404} if endpoint.on_crawl else set())
        | ({409} if "session" in types or name in ("begin", "next_tasks", "answers") else set())
        | ({429} if name == "begin" else set())
        | ({400, 413, 422} if "body" in types else set())
        | ({400, 404, 413} if "raw" in types else set())
        | ({404, 422} if "query" in types else set())
    )


def _parameters(endpoint: Endpoint, named: dict[str, Any]) -> list[dict[str, Any]]:
    number, text = {"type": "integer", "minimum": 0}, {"type": "string"}
    rows = [
        (name, "path", True, number if endpoint.types.get(name) is int else text)
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    if "query" in endpoint.types:
        schema = named[endpoint.types["query"].__name__]
        required = schema.get("required", ())
        rows += [(name, "query", name in required, field) for name, field in schema["properties"].items()]
    return [dict(zip(("name", "in", "required", "schema"), row, strict=True)) for row in rows]
