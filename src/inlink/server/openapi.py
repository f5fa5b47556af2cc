"""The OpenAPI document of a server, made from the table of endpoints. A test compares replies with it."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec

from inlink import __version__
from inlink.protocol import Refusal
from inlink.server.endpoints import Endpoint, EventStream, Plain

__all__ = ["document"]

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
    schema_of = dict(zip(kinds, schemas, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(
            endpoint, schema_of, named, schemas[-1]
        )
    return msgspec.json.format(
        msgspec.json.encode(
            {
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
        ),
        indent=1,
    )


def _reply_of(endpoint: Endpoint) -> Any:
    """The type of a reply. If the reply may also be a stream, the type of the other reply."""
    hint = get_type_hints(endpoint.call)["return"]
    return (
        next((kind for kind in get_args(hint) if kind is not EventStream), hint)
        if _streams(endpoint)
        else hint
    )


def _streams(endpoint: Endpoint) -> bool:
    return EventStream in get_args(get_type_hints(endpoint.call)["return"])


def _structs(endpoint: Endpoint) -> Iterable[Any]:
    if "body" in endpoint.types:
        yield endpoint.types["body"]
    if "query" in endpoint.types:
        yield endpoint.types["query"]
    if _reply_of(endpoint) is not Plain:
        yield _reply_of(endpoint)


def _operation(
    endpoint: Endpoint, schema_of: dict[Any, Any], named: dict[str, Any], refusal: Any
) -> dict[str, Any]:
    reply = _reply_of(endpoint)
    media: dict[str, Any] = {}
    if reply is not Plain:
        media = {"content": {"application/json": {"schema": schema_of[reply]}}}
    if _streams(endpoint):
        media["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    statuses = {str(endpoint.status): {"description": "As asked.", **media}}
    for status in _refusals(endpoint):
        statuses[str(status)] = {
            "description": REFUSALS[status],
            "content": {"application/json": {"schema": refusal}},
        }
    found: dict[str, Any] = {
        "operationId": endpoint.call.__name__,
        "summary": endpoint.summary,
        "responses": statuses,
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint, named)],
    }
    if "body" in endpoint.types:
        schema = schema_of[endpoint.types["body"]]
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if "raw" in endpoint.types:
        found["requestBody"] = {"required": True, "content": {"application/json": {}}}
    if endpoint.role is not None:
        found["security"] = [{"token": []}]
        found["description"] = f"For the role {endpoint.role!r}, and for those above it."
        if endpoint.method != "GET":
            found["description"] += " Send `Content-Type: application/json`, also without a body."
    return found


def _refusals(endpoint: Endpoint) -> list[int]:
    statuses = {503} if endpoint.method == "GET" else {503, 415}
    if endpoint.role is not None:
        statuses |= {401, 403}
    if endpoint.on_crawl:
        statuses.add(404)
    if "session" in endpoint.types or {"begin", "next_tasks", "answers"} & {endpoint.call.__name__}:
        statuses.add(409)
    if endpoint.call.__name__ == "begin":
        statuses.add(429)
    if "body" in endpoint.types:
        statuses |= {400, 413, 422}
    if "raw" in endpoint.types:
        statuses |= {400, 404, 413}
    if "query" in endpoint.types:
        statuses |= {404, 422}
    return sorted(statuses)


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 0}
            if endpoint.types.get(name) is int
            else {"type": "string"},
        }
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint, named: dict[str, Any]) -> list[dict[str, Any]]:
    kind = endpoint.types.get("query")
    if kind is None:
        return []
    schema = named[kind.__name__]
    return [
        {"name": name, "in": "query", "required": name in schema.get("required", []), "schema": field}
        for name, field in schema["properties"].items()
    ]
