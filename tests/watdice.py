"""Random WAT records: usual ones, and ones with odd values, shapes and spellings."""

import io
import json
from collections import Counter
from random import Random
from typing import Any

from archives import wat_json, wat_record
from inlink.archives.batches import archive_batches
from inlink.base.damage import Tally

PAGE_URL = "http://www.example.com/dir/page.html?q"
OPTIONS = [
    {"like": "commoncrawl"},
    {"like": "commoncrawl", "links": "a"},
    {"like": "commoncrawl", "location": True},
    {"links": "all", "any_status": True},
    {"links": "all", "exact_schemes": True},
    {"links": "all", "location": False},
    {"any_status": True},
    {},
    {"links": "all"},
    {"links": "all", "nofollow": False},
    {"nofollow": False},
]
HREFS = [
    *(
        "",
        "/",
        "#",
        "#z",
        "?q",
        "?",
        "x",
        "./x",
        "../x",
        "../../../x",
        "../..",
        "..",
        ".",
        "./",
        "../?q",
        "..#f",
    ),
    *(
        "a/b",
        "a/./b",
        "a/../b",
        "/a/../b",
        "/.well-known",
        "/.",
        "/..",
        "/...",
        ".htaccess",
        "..x",
        "%2e%2e/x",
    ),
    *(
        "/%2E/",
        "/a%20b",
        "/a b",
        "a b.pdf",
        " /x",
        "/x ",
        "\t/x",
        "/x\n",
        "/x\ty",
        "/ü",
        "日本/x",
        "x?ü",
        "x?'",
    ),
    *(
        '/"x"',
        "/<x>",
        "/{x}|^`[]\\y",
        "x?a=1&amp;b=2",
        "x&#47;y",
        "&#x2e;&#46;/x",
        "x#&amp;",
        "/&amp;",
        "&amp;",
    ),
    *(
        "http://b.org",
        "http://b.org?x",
        "http://b.org#x",
        "https://www.b.org/x?http://c.org/",
        "http://b.org/#",
    ),
    *(
        "http://b.org:8080/x",
        "http://b.org:99999/",
        "http://u@b.org/",
        "http://B.org/",
        "HTTP://b.org/",
        "http:/b.org",
    ),
    *(
        "http://",
        "http:///b.org/",
        "http://b..org/",
        "http://.b.org/",
        "http://b.org./x",
        "http://xn--b.org/",
    ),
    *("http://127.0.0.1/", "http://0x7f.1/", "http://1.2/", "http://localhost/", "http://[::1]/", "http://["),
    *(
        "http://b_b.org/",
        "http://b.org\\@c.org/",
        "http://ü.org/x",
        "http://b.org/ü",
        "http://b%2eorg/",
        "http://b org/",
    ),
    *("//b.org/x", "//b.org", "//", "///b.org", "//b.org\\x", "//B.org/", "/\\b.org", "\\\\b.org"),
    *(
        "mailto:a@b.org",
        "javascript:x",
        "javascript:",
        "tel:+1",
        "ftp://b.org/",
        "whatsapp://x",
        "a:b",
        "1:b",
        "x y:z",
    ),
    *(
        "data:image/gif;base64,R0",
        "javascript&colon;x",
        "httpx://b.org/",
        "https:b.org",
        "http",
        "https:",
        "wss:x",
    ),
    *(
        "http://b.org/" + "x" * 120,
        "http://b.org/" + "x" * 660,
        "http://b.org/" + "x" * 2040,
        "/" + "☃" * 500,
    ),
    *(
        "/" + "x" * 2040,
        "x" * 2020,
        "?" + "ü" * 670,
        "http://ü.org/" + "ü" * 100,
        "http://b.org/\ud800",
        "/\ud83d\ude00",
    ),
    *(
        "http://gov.uk/",
        "http://x.github.io/",
        "http://b.invalid/",
        PAGE_URL,
        PAGE_URL + "#x",
        "page.html?q#y",
        "?q#",
    ),
]
URLS = [
    PAGE_URL,
    "http://a.example.com/",
    "https://x.github.io/a/b/",
    "http://10.0.0.1/",
    "HTTP://c.co.uk/a//b",
    "x",
]
BASES = [
    "http://base.org/x/y",
    "/other/",
    "mailto:x",
    "http://10.0.0.1/",
    "//b.org",
    "",
    "sub/",
    "../",
    "/a&amp;b/",
    "?x",
]
RELS = [
    "nofollow",
    "ugc NoFollow",
    "none",
    "None,",
    "noopener",
    "no follow",
    "nofollow\u00a0x",
    "",
    "follow",
    "none none",
]
HEADERS = ["Link", "link", "LOCATION", "Content-Location", "X-Robots-Tag", "Server", "lin\u212a"]
LINK_HEADERS = [
    '<http://b.org/>; rel="x"',
    "<>",
    "</x>, <y>; a=b",
    "<unclosed",
    "none",
    '<a"b>',
    "<a\\b>",
    "http://c.org/",
]
META = [
    ("property", "og:url"),
    ("property", "og:type"),
    ("name", "twitter:image"),
    ("name", " Robots "),
    ("name", "robots\u00a0"),
]
CONTENTS = [
    *(
        "http://m.org/",
        "HTTPS://m.org/",
        "//m.org",
        "/m",
        "http\u017f://m.org/",
        "nofollow",
        "noindex, NOFOLLOW",
        "none",
    ),
    *("\u201cquoted\u201d", '"q"', "h", "http:", "https//", "\\//m.org"),
]


def wat(dice: Random) -> dict[str, Any]:
    """A record in the shape of real ones."""

    def link() -> Any:
        path = dice.choice(["A@/href", "AREA@/href", "IMG@/src", "FORM@/action", "STYLE/#text", "a@/href"])
        entry: dict[str, Any] = {"path": path, "url": dice.choice(HREFS)}
        if dice.random() < 0.3:
            entry["rel"] = dice.choice(RELS)
        if dice.random() < 0.1:
            entry["href"] = dice.choice(HREFS)
            if dice.random() < 0.7:
                del entry["url"]
        if dice.random() < 0.3:
            entry["text"] = dice.choice(CONTENTS)
        return dice.choice([entry] * 20 + [{}])

    def meta() -> Any:
        return dict([dice.choice(META)], content=dice.choice(CONTENTS))

    head: dict[str, Any] = {"Title": "x"}
    if dice.random() < 0.2:
        head["Base"] = dice.choice(BASES)
    for name, make in (("Link", link), ("Scripts", link), ("Metas", meta)):
        if dice.random() < 0.5:
            head[name] = [make() for _ in range(dice.randrange(4))]
    headers: dict[str, Any] = {}
    for name in dice.sample(HEADERS, dice.randrange(4)):
        values = dice.choices(LINK_HEADERS + CONTENTS, k=2)
        headers[name] = dice.choice([values[0], values])
    links = [link() for _ in range(dice.randrange(12))]
    kind = dice.choice(["response"] * 9 + ["Response", "request"])
    status = dice.choice(["200"] * 8 + ["404", "", 200, "2"])
    return wat_json(dice.choice(URLS), links, head=head, headers=headers, kind=kind, status=status)


def shaken(value: Any, dice: Random, odds: float) -> Any:
    """The value with some parts replaced by other JSON."""
    if dice.random() < odds:
        return dice.choice(
            [None, True, 0, -1.5e9, "x", "http://odd.org/", [], {}, [["x"]], [None], {"url": "/x"}, [{}]]
        )
    if isinstance(value, dict):
        return {key: shaken(part, dice, odds) for key, part in value.items()}
    if isinstance(value, list):
        return [shaken(part, dice, odds) for part in value]
    return value


def written(value: Any, dice: Random, odds: float) -> str:
    """JSON in one of many ways: white space, escapes, repeated keys."""
    blank = dice.choice(["", "", "", "", " ", "\n\t"]) if odds else ""
    if isinstance(value, dict):
        pairs = list(value.items())
        dice.shuffle(pairs)
        if pairs and dice.random() < odds:
            pairs.append((dice.choice(pairs)[0], dice.choice(pairs)[1]))
        parts = [f"{written(k, dice, odds / 4)}{blank}:{blank}{written(v, dice, odds)}" for k, v in pairs]
        return "{" + blank + f"{blank},{blank}".join(parts) + "}"
    if isinstance(value, list):
        return "[" + f"{blank},".join(written(part, dice, odds) for part in value) + blank + "]"
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=dice.random() < 0.3 or not value.isprintable())
        if dice.random() < odds:
            text = text.replace("/", "\\/")
        if len(text) > 2 and text[1].isalpha() and dice.random() < odds:
            text = f'"\\u{ord(text[1]):04X}{text[2:]}'
        return text
    return json.dumps(value)


def archive(bodies: list[bytes], date: str = "2024-05-01T00:00:00Z") -> bytes:
    return b"".join(wat_record(body, date=date) for body in bodies)


def arcs_found(data: bytes, *, scan: bool, **options: Any) -> tuple[Counter, set[str], set[str], Tally]:
    """The arcs, the nodes, the crawled nodes and the tally of an archive."""
    tally = Tally()
    arcs: Counter = Counter()
    nodes, crawled = set(), set()
    for batch in archive_batches(io.BytesIO(data), name="x", scan=scan, tally=tally, **options):
        names = [raw.decode() for raw in batch.names.to_pylist()]
        pairs = [
            (names[s], names[t]) for s, t in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
        ]
        if not options.get("repeats", True) and options.get("level") != "page":
            assert len(set(pairs)) == len(pairs)
        arcs.update(pairs)
        nodes |= set(names)
        crawled |= {names[place] for place in batch.crawled.tolist()}
    return arcs, nodes, crawled, tally


def check_scan(data: bytes, **options: Any) -> None:
    """Check that scanning and decoding give the same results at each level, with and without repeated arcs."""
    for level in ("page", "host"):
        given_options = {**options, "level": level}
        scanned = arcs_found(data, scan=True, **given_options)
        assert scanned == arcs_found(data, scan=False, **given_options)
        once = arcs_found(data, scan=True, repeats=False, **given_options)
        assert (set(once[0]), *once[1:]) == (set(scanned[0]), *scanned[1:])
