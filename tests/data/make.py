"""Makes all samples in this folder: ``python tests/data/make.py``. They are of the project's own making.

A small web is drawn at random from a fixed seed: some hosts, pages with links, and the oddities that real crawls have.
It is written in each format that inlink reads, by writers that share no code with inlink's readers.
``tests/sources/test_samples.py`` checks that the files are those that this script makes.
"""

import gzip
import json
import random
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bvencoder import Settings, encode, store

WORDS = [
    *("harbour", "meadow", "lantern", "copper", "willow", "anchor", "garden"),
    *("pepper", "saddle", "timber", "velvet", "basket", "candle", "marble"),
]
HOSTS = [
    *(
        "www.harbour.example.com",
        "meadow.example.com",
        "www.lantern.org",
        "news.copper.co.uk",
        "www.copper.co.uk",
    ),
    *("willow.github.io", "anchor.github.io", "www.garden.gov.au", "pepper.edu", "saddle.example.net:8080"),
    *(
        "192.0.2.17",
        "timber.de",
        "www.timber.de",
        "xn--mnchen-3ya.example",
        "velvet.k12.ca.us",
        "basket.museum",
    ),
]
DAY = "2026-01-02T03:04:05Z"


# -- a web ----------------------------------------------------------------------------------------------------------


def url(rng: random.Random) -> str:
    path = "/".join(rng.choices(WORDS, k=rng.randint(0, 3)))
    return f"http://{rng.choice(HOSTS)}/{path}" + (
        f"?page={rng.randint(1, 9)}" if rng.random() < 0.15 else ""
    )


def href(rng: random.Random, pages: list[str]) -> str:
    """A link as people write them: most lead to pages of this web, many are relative, some lead nowhere."""
    draw = rng.random()
    if draw < 0.4:
        return rng.choice(pages).replace("&", "&amp;")
    word, other = rng.choice(WORDS), rng.choice(WORDS)
    if draw < 0.6:
        return f"/{word}/{other}.html"
    if draw < 0.7:
        return f"{word}.html#{other}"
    odd = [
        *(
            f"?q={word}&amp;r={other}",
            f"../{word}/./{other}",
            "#top",
            "",
            f"  {word}  ",
            "HTTP://WWW.LANTERN.ORG:80/%7e",
        ),
        *(
            f"//{rng.choice(HOSTS)}/{word}",
            f"mailto:{word}@example.com",
            "javascript:void(0)",
            f"{word} {other}.html",
        ),
        *(
            f"/{word}?a=1&copy;=2",
            f"/caf\u00e9/{word}",
            f"\\{word}\\{other}",
            f"ftp://{word}.example.com/",
            f"/{word};s=1",
        ),
    ]
    return rng.choice(odd)


def html(rng: random.Random, pages: list[str], links: int) -> str:
    """A page whose markup is what real pages have: base, frames, comments, scripts, tags that are never closed."""
    parts = [f"<!DOCTYPE html>\n<html><head><title>{' '.join(rng.choices(WORDS, k=4)).title()}</title>"]
    if rng.random() < 0.1:
        parts.append(f'<base href="http://{rng.choice(HOSTS)}/{rng.choice(WORDS)}/">')
    if rng.random() < 0.1:
        parts.append('<meta name="robots" content="nofollow">')
    parts.append(
        '<link rel="stylesheet" href="/style.css"><script>document.write("<a href=/no>no</a>")</script></head><body>'
    )
    for _ in range(links):
        target, text = href(rng, pages), " ".join(rng.choices(WORDS, k=rng.randint(1, 4)))
        quote = rng.choice("\"'")
        form = rng.random()
        if form < 0.7:
            parts.append(f"<p>{text} <a href={quote}{target}{quote}>{text}</a></p>")
        elif form < 0.78:
            parts.append(f"<A CLASS=x HREF={quote}{target}{quote}>{text}")  # never closed
        elif form < 0.86:
            parts.append(f"<td><a rel='nofollow noopener' href={quote}{target}{quote}><img src='/i.png'></a>")
        elif form < 0.92:
            parts.append(
                f"<!-- <a href={quote}{target}{quote}>{text}</a> --><a name={rng.choice(WORDS)}>here</a>"
            )
        else:
            parts.append(f"<map><area href={quote}{target}{quote}></map><iframe src='/frame.html'></iframe>")
    parts.append("</body></html>" if rng.random() < 0.8 else "<p>the end")
    return "\n".join(parts)


# -- WARC, WAT, WET, ARC ----------------------------------------------------------------------------------------------


def warc(
    kind: str,
    body: bytes,
    target: str = "",
    content_type: str = "application/http; msgtype=response",
    date: str = DAY,
) -> bytes:
    fields = ["WARC/1.0", f"WARC-Type: {kind}", f"WARC-Date: {date}"]
    fields += [f"WARC-Target-URI: {target}"] if target else []
    fields += [f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    return "\r\n".join(fields).encode() + b"\r\n\r\n" + body + b"\r\n\r\n"


def http(
    body: bytes, *headers: str, status: str = "200 OK", content_type: str = "text/html; charset=utf-8"
) -> bytes:
    return (
        "\r\n".join([f"HTTP/1.1 {status}", f"Content-Type: {content_type}", *headers]).encode()
        + b"\r\n\r\n"
        + body
    )


def chunked(body: bytes) -> bytes:
    pieces = [body[at : at + 700] for at in range(0, len(body), 700)]
    return b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces) + b"0\r\n\r\n"


def stored(body: bytes) -> bytes:
    """A gzip member that is the same whichever zlib and Python write it, since nothing is compressed."""
    return zlib.compress(body, 0, 31)


def sent(rng: random.Random, text: str) -> bytes:
    """A page as servers send it: plain, compressed, in chunks, in another charset."""
    way = rng.random()
    if way < 0.15:
        return http(stored(text.encode()), "Content-Encoding: gzip")
    if way < 0.25:
        return http(chunked(text.encode()), "Transfer-Encoding: chunked")
    if way < 0.3:
        packed = chunked(stored(text.encode()))
        return http(packed, "Transfer-Encoding: chunked", "Content-Encoding: x-gzip")
    if way < 0.35:
        return http(zlib.compress(text.encode(), 0), "Content-Encoding: deflate")
    if way < 0.45:
        return http(text.encode("latin-1"), content_type="text/html; charset=ISO-8859-1")
    if way < 0.5:
        return http(text.encode("utf-8-sig"), content_type="text/html")
    return http(text.encode(), "Server: sample")


def members(records: list[bytes]) -> bytes:
    return b"".join(gzip.compress(record, mtime=0) for record in records)


def crawl(rng: random.Random, pages: list[str], count: int) -> list[bytes]:
    """The records of a crawl: requests, responses of all kinds, answers of the DNS, metadata, a revisit."""
    found = [
        warc(
            "warcinfo",
            b"software: sample\r\nformat: WARC File Format 1.0\r\n",
            content_type="application/warc-fields",
        )
    ]
    hosts = sorted({page.split("/")[2].partition(":")[0] for page in pages[:count]})
    answers = [(host, f"20260102030405\n{host}.\t60\tIN\tA\t192.0.2.1\n".encode()) for host in hosts]
    found += [warc("response", answer, f"dns:{host}", "text/dns") for host, answer in answers]
    for number, page in enumerate(pages[:count]):
        found.append(
            warc("request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", page, "application/http; msgtype=request")
        )
        if number % 11 == 5:
            answer = http(b"", f"Location: {pages[number // 2]}", status="302 Found")
        elif number % 11 == 7:
            answer = http(html(rng, pages, 3).encode(), status="404 Not Found")
        elif number % 11 == 9:
            answer = http(rng.randbytes(200), content_type="image/png")
        else:
            answer = sent(rng, html(rng, pages, rng.randint(0, 40)))
        found.append(warc("response", answer, page))
        if number % 7 == 0:
            found.append(
                warc("metadata", b"via: http://www.lantern.org/\r\n", page, "application/warc-fields")
            )
    found.append(warc("revisit", b"HTTP/1.1 304 Not Modified\r\n\r\n", pages[0]))
    return found


def wat(page: str, links: list[dict[str, str]], date: str, head: dict[str, object]) -> bytes:
    value = {
        "Container": {"Filename": "slice.warc", "Compressed": True, "Offset": "463"},
        "Envelope": {
            "Format": "WARC",
            "WARC-Header-Metadata": {"WARC-Type": "response", "WARC-Target-URI": page, "WARC-Date": date},
            "Payload-Metadata": {
                "Actual-Content-Type": "application/http; msgtype=response",
                "HTTP-Response-Metadata": {
                    "Response-Message": {"Version": "HTTP/1.1", "Status": "200", "Reason": "OK"},
                    "Headers": {"Content-Type": "text/html; charset=utf-8"},
                    "HTML-Metadata": {"Head": head, "Links": links},
                },
            },
        },
    }
    return warc("metadata", json.dumps(value).encode(), page, "application/json", date)


def slices(folder: Path, rng: random.Random, pages: list[str]) -> None:
    """One crawl in three forms, as Common Crawl publishes it. The WAT is of 2014, when ``&amp;`` was kept in URLs."""
    date = "2014-08-20T02:13:34Z"
    info = warc("warcinfo", b"software: sample\r\n", content_type="application/warc-fields", date=date)
    of_warc, of_wat, of_wet = [info], [info], [info]
    for number, page in enumerate(pages):
        hrefs = [target.strip() for _ in range(25) if (target := href(rng, pages)).strip()]
        body = "".join(f'<p><a href="{target}">{rng.choice(WORDS)}</a></p>' for target in hrefs)
        body += '<img src="/picture.png"><form action="/search"></form>'
        head = f'<title>{number}</title><link rel="stylesheet" href="/s.css">'
        text = f"<html><head>{head}</head><body>{body}</body></html>"
        of_warc.append(
            warc("request", b"GET / HTTP/1.1\r\n\r\n", page, "application/http; msgtype=request", date)
        )
        of_warc.append(warc("response", http(text.encode()), page, date=date))
        if number in (2, 5):  # of some pages there is no WAT record
            continue
        links = [{"path": "A@/href", "url": target, "text": "x"} for target in hrefs]
        links += [{"path": "IMG@/src", "url": "/picture.png"}, {"path": "FORM@/action", "url": "/search"}]
        about = {"Title": str(number), "Link": [{"path": "LINK@/href", "url": "/s.css", "rel": "stylesheet"}]}
        of_wat.append(wat(page, links, date, about))
        of_wet.append(warc("conversion", " ".join(WORDS).encode(), page, "text/plain", date))
    for name, records in (("slice.warc", of_warc), ("slice.warc.wat", of_wat), ("slice.warc.wet", of_wet)):
        (folder / name).write_bytes(b"".join(records))


def later_wat(folder: Path, rng: random.Random, pages: list[str]) -> None:
    """One record of 2019, when entities were decoded, as an editor saved it: the length of warcinfo is wrong since."""
    targets = [f"/{word}/{other}.html" for word in WORDS[:10] for other in WORDS[:14]]
    links = [
        {"path": "A@/href", "url": target, "text": "x"} for target in [*targets, *pages[:2], *targets[:2]]
    ]
    head = {
        "Title": "Later",
        "Metas": [{"name": "description", "content": "a sample"}],
        "Link": [{"path": "LINK@/href", "url": "www.lantern.org/later", "rel": "canonical"}]
        + [{"path": "LINK@/href", "url": f"/{word}.css", "rel": "stylesheet"} for word in WORDS[:3]],
    }
    date = "2019-05-19T08:31:03Z"
    fields = b"".join(f"{word}: sample\r\n".encode() for word in WORDS)
    info = warc("warcinfo", fields, content_type="application/warc-fields", date=date)
    info = info.replace(b"\r\n", b"\n")
    (folder / "later.wat").write_bytes(info + wat("https://www.lantern.org/later/", links, date, head))


def broken(folder: Path, rng: random.Random, pages: list[str], whole: bytes) -> None:
    (folder / "cut.warc.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "clipped.warc.gz").write_bytes(
        gzip.compress(warc("response", http(rng.randbytes(5000)), pages[0]), mtime=0)[:3000]
    )

    # As ClueWeb's archives: lines of HTTP end with LF, a Content-Encoding that is none, a date that is none.
    bad_date = "2026-01-294T05:21:46-0700"
    records = [warc("warcinfo", b"software: sample\n", content_type="application/warc-fields", date=bad_date)]
    for page in pages[:12]:
        answer = http(html(rng, pages, 5).encode(), "Content-Encoding: gzip", "Connection: close").replace(
            b"\r\n", b"\n"
        )
        records.append(warc("response", answer, page, date=bad_date).replace(b"WARC/1.0", b"WARC/0.18"))
    (folder / "quirk.warc.gz").write_bytes(members(records))

    # One gzip member; the lengths were true before lines were taken out of the records.
    description = b"1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n"
    parts = [
        f"filedesc://sample.arc 0.0.0.0 20260102030405 text/plain {len(description)}\n".encode()
        + description
        + b"\n"
    ]
    for page, lost in zip(pages[:4], (0, 7, 0, 40), strict=True):
        body = http(html(rng, pages, 2).encode())
        head = f"{page} 192.0.2.1 20260102030405 text/html {len(body)}\n".encode()
        parts.append(head + body[: len(body) - lost] + b"\n")
    (folder / "bad.arc.gz").write_bytes(gzip.compress(b"".join(parts), mtime=0))


# -- graphs -----------------------------------------------------------------------------------------------------------


def graph(rng: random.Random, nodes: int, degree: int) -> list[list[int]]:
    """Rows of a graph with what web graphs have: runs, rows copied from the one before, hubs, dangling nodes."""
    rows: list[list[int]] = []
    for node in range(nodes):
        row: set[int] = set()
        if rng.random() < 0.75:
            if node and rng.random() < 0.6:
                row |= {target for target in rows[max(0, node - rng.randint(1, 7))] if rng.random() < 0.8}
            if rng.random() < 0.3:
                start = rng.randrange(nodes)
                row |= set(range(start, min(nodes, start + rng.randint(4, 12))))
            row |= {min(int(nodes * rng.random() ** 3), nodes - 1) for _ in range(rng.randint(0, degree))}
        rows.append(sorted(row))
    return rows


def names(rng: random.Random, count: int) -> list[str]:
    """Distinct URLs, some of which have no host, as in real lists."""
    found: dict[str, None] = dict.fromkeys(["http:faq/faq.html", "http://docs", "http://192.0.2.17/"])
    while len(found) < count:
        found[f"{url(rng)}/{rng.randint(1, 999)}.html"] = None
    return list(found)[:count]


def graphs(folder: Path, rng: random.Random) -> None:
    rows = graph(rng, 3000, 8)
    how = Settings()
    bits = encode(rows, how, [rng.randint(0, 3) for _ in rows])
    store(folder, bits, how.text(len(rows), sum(map(len, rows))), "web")

    rows, labels = graph(rng, 600, 5), names(rng, 600)
    arcs = [(source, target) for source, row in enumerate(rows) for target in row]
    lines = [f"n {k} {label}" for k, label in enumerate(labels)] + [f"e {s} {t}" for s, t in arcs]
    (folder / "gr0.Harbour").write_text("\n".join(lines) + "\n")
    lines = [f"{len(labels)} {len(arcs)} 1", *(f"{k + 1} {label} " for k, label in enumerate(labels))]
    (folder / "numbered.dat").write_text("\n".join([*lines, *(f"{s + 1} {t + 1}" for s, t in arcs)]) + "\n")
    lines = [f"{k}: {' '.join(map(str, [*row, -1]))}" for k, row in enumerate(rows)]
    (folder / "adjacency_list").write_text("\n".join(lines) + "\n")

    titles = [f"{word}_{other}_(caf%C3%A9)" for word in WORDS for other in WORDS]
    lines = [
        "# Links between articles, whose titles are URL-encoded",
        "#",
        "# FORMAT:   linkSource   linkTarget",
        "",
    ]
    lines += [f"{titles[s]}\t{titles[t]}" for s, t in arcs if max(s, t) < len(titles)]
    (folder / "links.tsv").write_text("\n".join(lines) + "\n")

    hosts = sorted({f"{word}.{other}.example" for word in WORDS for other in WORDS})
    few = [(s, t) for s, t in arcs if max(s, t) < len(hosts)]
    lines = ['Creator "tests/data/make.py"', "graph [", "  directed 1"]
    for k, host in enumerate(hosts):
        lines.append(
            f'  node [\n    id {k + 1}\n    label "{host}"\n    value {k % 2}\n    source "Lists,More"\n  ]'
        )
    for s, t in few + few[:20]:  # some stand twice
        lines.append(f"  edge [\n    source {s + 1}\n    target {t + 1}\n  ]")
    (folder / "hosts.gml").write_text("\n".join([*lines, "]"]) + "\n")

    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"',
    ]
    lines += [">" + '<key id="label" for="node" attr.name="label" attr.type="string" />']
    lines += [
        '<key id="weight" for="edge" attr.name="weight" attr.type="double">',
        "<default>0.0</default>",
        "</key>",
    ]
    lines += ['<key id="crawlDate" for="edge" attr.name="crawlDate" attr.type="string" />']
    lines += ['<graph mode="static" edgedefault="directed">']
    lines += [
        f'<node id="{k:032x}">\n<data key="label">{host}</data>\n</node>' for k, host in enumerate(hosts)
    ]
    for s, t in few + few[:20]:  # an arc for each day
        lines.append(
            f'<edge source="{s:032x}" target="{t:032x}" type="directed">\n'
            f'<data key="weight">{rng.randint(1, 9)}.0</data>'
        )
        lines.append(f'<data key="crawlDate">2026010{rng.randint(1, 9)}</data>\n</edge>')
    (folder / "domains.graphml").write_text("\n".join([*lines, "</graph>", "</graphml>"]) + "\n")

    # The vertices must stand in the order of the arcs' numbers, which is not that of their names.
    reverse = [".".join(reversed(host.split("."))) for host in hosts]
    for part in (0, 1):
        chosen = range(100 * part, min(100 * (part + 1), len(hosts)))
        pack(
            folder / f"hosts-graph/vertices/part-{part}.txt.gz",
            "".join(f"{k}\t{reverse[k]}\n" for k in chosen),
        )
    pack(folder / "hosts-graph/edges/part-0.txt.gz", "".join(f"{s}\t{t}\n" for s, t in few))


def pack(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def make(folder: Path) -> None:
    """Write all samples into a folder."""
    rng = random.Random(2026)
    pages = list(dict.fromkeys(url(rng) for _ in range(400)))
    whole = members(crawl(rng, pages, 110))
    (folder / "web.warc.gz").write_bytes(whole)
    (folder / "small.warc.gz").write_bytes(members(crawl(rng, pages[200:], 16)))
    slices(folder, rng, pages[300:308])
    later_wat(folder, rng, pages)
    broken(folder, rng, pages, whole)
    graphs(folder, rng)
    (folder / "trust.txt").write_text("https://trusted.example/\t2\nhttps://good.example/\n")
    (folder / "prior.txt").write_text("a.example\t3\nb.example\t1\n")


if __name__ == "__main__":
    make(Path(__file__).parent)
