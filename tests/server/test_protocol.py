"""Each message between a spider and a crawl comes back unchanged from JSON; wrong messages are refused."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inlink import protocol
from inlink.protocol import Answer, AnyLink, Crawled, Failed, Link, Released

KINDS = [getattr(protocol, name) for name in protocol.__all__]
KINDS = [kind for kind in KINDS if isinstance(kind, type)]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
LEAVES = {str: TEXT, float: FLOAT, bool: st.booleans(), bytes: st.binary(max_size=9)}


def values(kind: object) -> st.SearchStrategy:
    """All values of a type as annotations have it."""
    found = msgspec.inspect.type_info(kind)
    return of_type(found)


def of_type(kind: msgspec.inspect.Type) -> st.SearchStrategy:
    inspect = msgspec.inspect
    match kind:
        case inspect.StructType():
            fields = {field.name: of_type(field.type) for field in kind.fields}
            return st.builds(kind.cls, **fields)
        case inspect.UnionType():
            return st.one_of([of_type(one) for one in kind.types])
        case inspect.ListType():
            return st.lists(of_type(kind.item_type), max_size=4)
        case inspect.TupleType():
            return st.tuples(*[of_type(one) for one in kind.item_types])
        case inspect.DictType():
            return st.dictionaries(of_type(kind.key_type), of_type(kind.value_type), max_size=4)
        case inspect.NoneType():
            return st.none()
        case inspect.IntType():
            return st.integers(0 if kind.ge is None else kind.ge, 2**63 - 1 if kind.le is None else kind.le)
        case inspect.AnyType():
            return st.one_of(st.none(), st.booleans(), TEXT, st.lists(TEXT, max_size=2))
    names = {"StrType": str, "FloatType": float, "BoolType": bool, "BytesType": bytes}
    return LEAVES[names[type(kind).__name__]]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(st.data())
def test_each_type_comes_back_from_json(kind, data):
    value = data.draw(values(kind))
    assert msgspec.json.decode(msgspec.json.encode(value), type=kind) == value


@given(st.lists(values(Answer), max_size=9), st.lists(values(AnyLink), max_size=9))
def test_lists_of_different_answers_and_links_come_back(answers, links):
    assert msgspec.json.decode(msgspec.json.encode(answers), type=list[Answer]) == answers
    assert msgspec.json.decode(msgspec.json.encode(links), type=list[AnyLink]) == links


def test_an_answer_reads_as_people_would_write_it():
    links = ["/a", ("/b", 0.5), Link("/c", data=b"form", variant="POST:1")]
    assert msgspec.json.encode(Crawled(7, links)) == (
        b'{"type":"crawled","lease":7,"links":["/a",["/b",0.5],{"url":"/c","data":"Zm9ybQ==","variant":"POST:1"}]}'
    )
    assert msgspec.json.encode(Failed(7, status=404)) == b'{"type":"failed","lease":7,"status":404}'


@pytest.mark.parametrize(
    "text",
    [
        '{"lease":1}',
        '{"type":"lost","lease":1}',
        '{"type":"released","lease":1,"page":2}',
        '{"type":"released","lease":"1"}',
        '{"type":"crawled","lease":1,"links":[7]}',
        '{"type":"crawled","lease":1,"links":[["/a","good"]]}',
        '{"type":"crawled","lease":1,"links":[{"url":"/a","scores":1}]}',
        '{"type":"crawled","lease":1,"links":[{"url":"/a","data":"*"}]}',
    ],
)
def test_wrong_messages_are_refused(text):
    assert msgspec.json.decode('{"type":"released","lease":1}', type=Answer) == Released(1)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=Answer)
