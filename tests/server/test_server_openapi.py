"""The OpenAPI document holds: whatever it allows is answered as it says, and nothing is answered with a 500."""

import json
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings

from inlink.server.app import ENDPOINTS
from inlink.server.openapi import document
from inlink.server.tokens import Tokens
from served import served

A = "http://a.example/"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api")
    token = Tokens(folder / "tokens.json").add("one", "admin")
    with served(folder / "c", needs_token=True) as running:
        running.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        session = running.crawl("POST", "sessions", {"owner": "one"})[1]["session"]["number"]
        running.crawl("POST", "seeds", {"urls": [A, "http://b.example/"]})
        for task in running.crawl("POST", "next", {"session": session, "n": 2})[1]["tasks"]:
            answer = {"type": "crawled", "lease": task["lease"], "links": ["/x"]}
            running.crawl("POST", "answers", {"session": session, "answers": [answer]})
        yield running


@cache
def operations():
    """Return the operations of the document by label. They use the only crawl, because other names return 404."""
    # Imported late, because only the process that runs these tests needs it.
    import schemathesis

    known = json.loads(document(ENDPOINTS))
    for path in known["paths"].values():
        for operation in path.values():
            for parameter in operation["parameters"]:
                if parameter["name"] == "name":
                    parameter["schema"] = {"enum": ["c"]}
                if parameter["name"] == "host":
                    parameter["schema"] = {"enum": ["a.example", "b.example", "c.example"]}
    all_of_them = [each.ok() for each in schemathesis.openapi.from_dict(known).get_all_operations()]
    return {operation.label: operation for operation in all_of_them}


@pytest.mark.slow
@pytest.mark.parametrize("label", [f"{endpoint.method} {endpoint.path}" for endpoint in ENDPOINTS])
def test_replies_are_as_the_document_says(label, server):
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    operation = operations()[label]

    @given(case=operation.as_strategy())
    @settings(max_examples=5, suppress_health_check=list(HealthCheck))
    def check(case):
        if isinstance(case.body, dict) and case.body.get("wait"):
            case.body["wait"] = 0
        # A value may be of the right type and still mean nothing to this crawl, such as another's lease.
        case.call_and_validate(
            base_url=server.url, headers=server.headers, excluded_checks=[positive_data_acceptance]
        )

    check()


def test_every_endpoint_is_in_the_document():
    paths = json.loads(document(ENDPOINTS))["paths"]
    assert {(one.method.lower(), one.path) for one in ENDPOINTS} == {
        (method, path) for path, operations in paths.items() for method in operations
    }
    for operations in paths.values():
        for operation in operations.values():
            assert operation["summary"]
