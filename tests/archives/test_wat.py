import json
from functools import partial

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import inlink
from archives import (
    anchors,
    batches_of,
    http,
    pages_of,
    raw_pages_of,
    record,
    response,
    synthetic_wat,
    warcinfo,
    wat_json,
    wat_record,
    write,
)
from inlink.archives import wat
from inlink.archives.wat import unescape_attribute
from inlink.base.damage import Tally
from inlink.cli import commands
from inlink.errors import DamageError, FormatError, ParameterError
from inlink.sources.archive import kind_of

SLICE = "crawls/CC-MAIN-20140820021334-00006-ip-10-180-136-8.ec2.internal.warc"
PAGE = "http://www.example.com/dir/page.html"


def one(tmp_path, value, *, tally=None, first=None, date="2024-05-01T00:00:00Z", **options):
    path = write(tmp_path / "x.wat", [*([first] if first else []), wat_record(value, date=date)])
    pages = list(pages_of(path, tally, **options))
    assert len(pages) == 1
    return pages[0]


@pytest.mark.parametrize(
    ("name", "page", "raw_links", "links"),
    [
        ("slice.warc", "http://timber.de/saddle?page=3", 25, 23),  # two are mailto: and ftp:
        (SLICE, "http://0pointer.de/photos/?gallery=Australia&photo=496", 26, 25),  # one is mailto:
    ],
)
def test_the_same_anchors_from_warc_and_wat(data, name, page, raw_links, links):
    found = []
    for path in (data(name), data(f"{name}.wat")):
        raw = {
            one.url if isinstance(one.url, str) else one.url.decode(): one
            for one in raw_pages_of(path, Tally())
        }
        found.append((raw, {one.url: one.links for one in pages_of(path, self_links=True)}))
    (raw_warc, warc), (raw_wat, of_wat) = found
    assert set(of_wat) < set(warc)  # of two responses there are no WAT records
    assert len(raw_wat[page].links) == raw_links
    assert sorted(raw_warc[page].links) == sorted(raw_wat[page].links)
    assert of_wat[page] == warc[page]
    assert len(of_wat[page]) == links
    assert not any("&amp;" in link for link in of_wat[page])


@pytest.mark.parametrize("name", ["slice.warc", SLICE])
def test_all_links_from_warc_and_wat_agree(data, name):
    of_warc = {p.url: set(p.links) for p in pages_of(data(name), links="all")}
    of_wat = {p.url: set(p.links) for p in pages_of(data(f"{name}.wat"), links="all")}
    assert of_wat
    for url, links in of_wat.items():
        assert of_warc[url] == links


LATER = "https://www.lantern.org/later/"
FORD = "http://004-ford-f-2.wiring-diagram.klymburn.co.uk/"


@pytest.mark.parametrize(
    ("name", "more", "canonical"),
    [
        ("later.wat", 4, f"{LATER}www.lantern.org/later"),
        (
            "crawls/cc-2019-22-excerpt.wat.txt",
            5,
            f"{FORD}post/{FORD[7:]}save-your-ears-8211-a-noise-meter-circuit",
        ),
    ],
)
def test_a_record_of_2019(data, name, more, canonical):
    """144 anchors, and a canonical link without a scheme, which a browser takes for a relative one."""
    path = data(name)
    tally = Tally()
    (page,) = pages_of(path, tally)
    assert len(page.links) == 144
    assert len(set(page.links)) == 142
    # its line ends were changed in the excerpt, and warcinfo's length is wrong since
    assert tally.damaged == 1
    (whole,) = pages_of(path, links="all")
    assert len(whole.links) == 144 + more
    assert set(page.links) < set(whole.links)
    assert canonical in set(whole.links) - set(page.links)


def test_links_absent_and_empty_objects(tmp_path):
    assert one(tmp_path, wat_json(PAGE)).links == []
    links = [{}, {"path": "A@/href"}, {"url": "http://b.com/"}, {"path": "A@/href", "url": ""}, *anchors("x")]
    page = one(tmp_path, wat_json(PAGE, links))
    assert page.links == [PAGE, "http://www.example.com/dir/x"]
    bare = wat_json(PAGE)
    del bare["Envelope"]["Payload-Metadata"]["HTTP-Response-Metadata"]["HTML-Metadata"]
    assert one(tmp_path, bare).url == PAGE
    del bare["Envelope"]["Payload-Metadata"]["HTTP-Response-Metadata"]
    assert one(tmp_path, bare).url == PAGE


def test_base_relative_and_scheme_less_links(tmp_path):
    value = wat_json(
        PAGE, anchors("a", "/b", "//c.com/", "www.d.com/x", "#e", "mailto:x@y.z"), head={"Base": "/base/"}
    )
    tally = Tally()
    assert one(tmp_path, value, tally=tally).links == [
        "http://www.example.com/base/a",
        "http://www.example.com/b",
        "http://c.com/",
        "http://www.example.com/base/www.d.com/x",
        "http://www.example.com/base/",
    ]
    assert tally.skipped["link is not http"].count == 1
    assert tally.links == 5


def test_only_all_takes_other_tags_and_headers(tmp_path):
    head = {
        "Link": [{"path": "LINK@/href", "url": "l", "rel": "stylesheet"}],
        "Scripts": [{"path": "SCRIPT@/src", "url": "s"}],
        "Metas": [
            {"property": "og:image", "content": "o"},
            {"name": "description", "content": "text"},
            {"name": "x"},
        ],
        "Base": "http://base.com/",
    }
    links = [
        *anchors("a"),
        *anchors("r", path="AREA@/href"),
        *anchors("i", path="IMG@/src"),
        {"path": "STYLE/#text", "href": "//style.com/"},
        {"path": "STYLE/#text", "href": "relative.png"},
    ]
    headers = {"location": "moved", "LINK": ["<h1>; rel=x, <h2>", "<h3>"], "Content-Location": "cl"}
    value = wat_json(PAGE, links, head=head, headers=headers)
    assert one(tmp_path, value).links == ["http://base.com/a", "http://base.com/r"]
    found = one(tmp_path, value, links="all").links
    expected = [f"http://base.com/{x}" for x in "lsoari"]
    expected += [
        "http://style.com/",
        *(f"http://www.example.com/dir/{x}" for x in ("moved", "cl", "h1", "h2", "h3")),
    ]
    assert found == expected


def test_entities_are_decoded_in_old_files_only(tmp_path):
    value = wat_json(PAGE, anchors("?a=1&amp;b=2&copy=3"))
    decoded, kept = f"{PAGE}?a=1&b=2&copy=3", f"{PAGE}?a=1&amp;b=2&copy=3"
    assert one(tmp_path, value, date="2014-09-05T15:18:43Z").links == [decoded]
    assert one(tmp_path, value, date="2024-05-01T00:00:00Z").links == [kept]
    assert one(tmp_path, value, date="nonsense").links == [kept]
    old = warcinfo("Software-Info: ia-web-commons.1.0-SNAPSHOT-20140819100050\r\n")
    new = warcinfo("Software-Info: ia-web-commons.1.1.10-SNAPSHOT-20200101000000\r\n")
    assert one(tmp_path, value, first=old).links == [decoded]
    assert one(tmp_path, value, first=new, date="2014-09-05T15:18:43Z").links == [kept]


@given(
    st.lists(
        st.sampled_from(
            ["&", "amp", ";", "copy", "=", "not", "it", "#38", "#x26", "lt", "a", "Eacute", "&&", '"']
        )
    )
)
def test_entities_as_the_html_parser_decodes_them(parts):
    from selectolax.lexbor import LexborHTMLParser

    text = "".join(parts)
    node = LexborHTMLParser("<a href='" + text + "'>").css_first("a")
    assert unescape_attribute(text) == (node.attributes["href"] or "")


def test_other_shapes_than_the_usual(tmp_path):
    value = wat_json(
        PAGE, [*anchors("a"), {"path": "A@/href", "url": 7}, "text", None, {"path": 3, "url": "x"}]
    )
    assert one(tmp_path, value).links == ["http://www.example.com/dir/a", "http://www.example.com/dir/7"]
    single = wat_json(
        PAGE, head={"Base": 5, "Link": {"url": "l"}, "Metas": "x"}, headers={"Location": 9, "X": None}
    )
    single["Envelope"]["Payload-Metadata"]["HTTP-Response-Metadata"]["HTML-Metadata"]["Links"] = anchors("a")[
        0
    ]
    assert one(tmp_path, single).links == ["http://www.example.com/dir/a"]
    assert len(one(tmp_path, single, links="all").links) == 3
    for form in ("WARC", "WARC/1.0", "ARC"):
        value["Envelope"]["Format"] = form
        value["Envelope"]["Block-Digest-CRC"] = -12345
        assert len(one(tmp_path, value).links) == 2
    arc = wat_json(PAGE, anchors("a"))
    del arc["Envelope"]["WARC-Header-Metadata"]
    arc["Envelope"]["ARC-Header-Metadata"] = {"Target-URI": PAGE}
    assert one(tmp_path, arc).url == PAGE
    lone = json.dumps(wat_json(PAGE, anchors("a", "b\ud800"))).encode()
    tally = Tally()
    assert one(tmp_path, lone, tally=tally).links == ["http://www.example.com/dir/a"]
    assert tally.skipped["link is not valid UTF-8"].count == 1


def test_only_responses_are_pages_and_errors_have_no_links(tmp_path):
    records = [
        wat_record(wat_json(PAGE, anchors("x"), kind=kind)) for kind in ("request", "metadata", "warcinfo")
    ]
    records += [wat_record(b'{"some": "other metadata"}')]
    records += [
        wat_record(wat_json(PAGE + status, anchors("x"), status=status))
        for status in ("200", "404", "301", "")
    ]
    pages = list(pages_of(write(tmp_path / "x.wat", records)))
    assert [(page.url.removeprefix(PAGE), len(page.links)) for page in pages] == [
        ("200", 1),
        ("404", 0),
        ("301", 0),
        ("", 1),
    ]


def test_nofollow(tmp_path):
    links = [*anchors("a"), anchors("b")[0] | {"rel": "external nofollow"}]
    assert len(one(tmp_path, wat_json(PAGE, links)).links) == 2
    assert len(one(tmp_path, wat_json(PAGE, links), nofollow=False).links) == 1
    robots = wat_json(PAGE, links, head={"Metas": [{"name": "ROBOTS", "content": "noindex,nofollow"}]})
    assert one(tmp_path, robots, nofollow=False).links == []
    assert (
        one(tmp_path, wat_json(PAGE, links, headers={"X-Robots-Tag": ["none"]}), nofollow=False).links == []
    )


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b'{"Envelope": {"a": "\xff"}}', "WAT record that is not valid UTF-8"),
        (b'{"Envelope": {"Payload', "WAT record whose JSON is invalid"),
        (b"", "WAT record whose JSON is invalid"),
        (b"[" * 100_000, "WAT record whose JSON is invalid"),
        (json.dumps(wat_json("")).encode(), "WAT record of a response without a URL"),
    ],
)
def test_damaged_records_are_left_out_and_counted(tmp_path, at, body, what):
    good = wat_record(wat_json(PAGE, anchors("a")))
    path = at(write(tmp_path / "x.wat", [good, wat_record(body), good]))
    tally = Tally()
    assert [page.url for page in pages_of(path, tally)] == [PAGE, PAGE]
    entry = tally.skipped[what]
    assert (entry.count, entry.path, entry.offset, entry.damage) == (1, str(path), len(good), True)
    assert tally.damaged == 1
    with pytest.raises(DamageError, match=rf"x\.wat: {what}, at byte {len(good):,}"):
        list(pages_of(path, Tally(strict=True)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["url", "path", "Base", "Links"]), inner)
    ),
    max_leaves=6,
)


@given(
    json_values,
    st.sampled_from(["Envelope", "WARC-Header-Metadata", "HTTP-Response-Metadata", "HTML-Metadata", "Links"]),
)
def test_any_json_in_any_place_is_survived(value, place):
    record_json = wat_json(PAGE, anchors("a"), head={})

    def put(node):
        for key in node:
            if key == place:
                node[key] = value
            elif isinstance(node[key], dict):
                put(node[key])

    put(record_json)
    raw = wat.Record("metadata", b"", b"application/json", b"", json.dumps(record_json).encode(), 0)
    for links in ("a", "all"):
        page = wat.page_of_wat(raw, Tally(), "x", links=links, nofollow=True, entities=True)
        assert page is None or isinstance(page.url, str)


def test_wet_files_are_refused(tmp_path, data):
    path = write(
        tmp_path / "x.warc.gz",
        [warcinfo(), record("conversion", b"text", url=PAGE, content_type="text/plain")],
    )
    for file in (path, data("slice.warc.wet")):
        assert kind_of(file) == "wet"
        with pytest.raises(FormatError, match="WET archives hold text without links"):
            list(pages_of(file))


def test_kinds_are_told_by_content(tmp_path, data):
    wat_file = write(tmp_path / "x", [warcinfo(), wat_record(wat_json(PAGE))], packed="records")
    assert kind_of(wat_file) == "wat"
    assert kind_of(write(tmp_path / "y", [response(PAGE, "x")])) == "warc"
    assert kind_of(write(tmp_path / "z", [http(b"x")])) is None
    assert kind_of(data("slice.warc.wat")) == "wat"
    assert kind_of(data("bad.arc.gz")) == "arc"
    assert kind_of(data("clipped.warc.gz")) == "warc"
    assert kind_of(data("gr0.Harbour")) is None


def test_a_synthetic_file_has_what_its_maker_says(tmp_path):
    path = tmp_path / "s.wat.gz"
    total = synthetic_wat(path, pages=20, links=50)
    tally = Tally()
    list(pages_of(path, tally, links="all"))
    assert tally.links == total + 20 * 8
    assert (tally.records, tally.pages, tally.damaged) == (61, 20, 0)
    assert sum(len(batch.sources) for batch in batches_of(path, links="all")) == tally.links


def test_links_by_the_rules_of_common_crawl(tmp_path):
    metas = [{"name": "x", "content": "HTTPS://upper.org/"}, {"name": "x", "content": "https://lower.org/"}]
    links = [*anchors("http://any.org/"), {"path": "IMG@/src", "url": "http://image.org/"}]
    links += [{"path": "STYLE/#text", "href": "HTTP://style.org/"}]
    headers = {"Location": "http://location.org/", "Link": "<http://header.org/>"}
    missing = wat_json("http://a.example.com/", links, head={"Metas": metas}, headers=headers, status="404")
    path = write(tmp_path / "x.wat", [wat_record(missing)])

    def hosts(**options):
        graph = inlink.read(path, level="host", **options)
        return sorted(set(graph.names) - {"com.example.a"})

    every = ["org.any", "org.header", "org.image", "org.lower"]
    assert hosts(like="commoncrawl") == every
    assert hosts(like="commoncrawl", links="a") == ["org.any"]
    assert hosts(links="all") == ["org.header", "org.location"]
    assert hosts(links="all", any_status=True) == [
        "org.any", "org.header", "org.image", "org.location", "org.lower", "org.style", "org.upper",
    ]  # fmt: skip
    assert hosts(links="all", location=False) == ["org.header"]
    assert hosts(links="all", any_status=True, exact_schemes=True, location=False) == every
    assert hosts(like="commoncrawl", any_status=False) == ["org.header"]
    assert hosts(like="commoncrawl", location=True) == sorted([*every, "org.location"])
    assert hosts(like="commoncrawl", exact_schemes=False) == sorted([*every, "org.style", "org.upper"])
    assert hosts(any_status=True) == ["org.any"]
    for scan in (True, False):
        batches = list(batches_of(path, level="host", like="commoncrawl", scan=scan))
        assert sorted(raw.decode() for batch in batches for raw in batch.names.to_pylist())[1:] == every
    with pytest.raises(ParameterError, match="`like` must be 'commoncrawl'"):
        list(batches_of(path, like="nutch"))
    with pytest.raises(ParameterError, match="`like`"):
        inlink.read(path, like="nutch")
    with pytest.raises(
        ParameterError, match=r"`location` \(--location/--no-location\) must be True or False; got 1"
    ):
        inlink.read(path, location=1)
    run = partial(CliRunner().invoke, commands, catch_exceptions=False)
    for flags, wanted in (
        ("--like commoncrawl --any-schemes --location", ["org.location", "org.style", "org.upper"]),
        ("--links all --any-status --no-location --exact-schemes", []),
        ("--like commoncrawl --success-only", ["org.header"]),
    ):
        done = run(["-q", "build", str(path), "-o", str(tmp_path / "g"), "--level", "host", *flags.split()])
        assert done.exit_code == 0, done.output
        found = {*inlink.Graph.open(tmp_path / "g").names} - {"com.example.a"}
        assert found == ({*wanted} if "success" in flags else {*every, *wanted})
