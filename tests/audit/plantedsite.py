"""A generated site with planted faults, and the findings that an audit must report of it, no more and no less.

:func:`plan` makes the pages, :func:`crawl` lets a crawl fetch them as ``inlink crawl`` does, without a network.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import msgspec

import inlink
from inlink.base.clock import VirtualClock
from inlink.frontier.leases import Lease
from inlink.protocol import Link
from inlink.scoring.fingerprint import fingerprint
from inlink.scoring.reading import read_page

__all__ = ["HOME", "Answer", "SitePlan", "crawl", "plan"]

HOME = "https://site.example/"
# The parts of words of the pages' texts.
WORDS = [
    f"{first}{last}"
    for first in ("sea", "cod", "kel", "tid", "ree")
    for last in ("gull", "sand", "salt", "wave")
]


@dataclass
class Answer:
    """How the server answers a request: with a document, or with a redirect."""

    body: str | bytes = ""
    status: int = 200
    to: str | None = None
    refused: str | None = None


@dataclass
class SitePlan:
    """Answers by URL, the URLs in the sitemap, and for each check the keys of its findings."""

    answers: dict[str, Answer] = field(default_factory=dict)
    sitemap: list[str] = field(default_factory=list)
    truth: dict[str, set[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(set))


def url(path: str) -> str:
    return f"{HOME}{path}"


def link(path: str, text: str = "", more: str = "") -> str:
    href = path if "://" in path else f"/{path}"
    return f'<a href="{href}"{more}>{escape(text or path)}</a>'


def plan(size: int, faults: int = 10, *, closed: bool = False) -> SitePlan:
    """Plan a site of about ``size`` plain pages with ``faults`` faults of each kind.

    With ``closed``, robots.txt forbids some pages, and the server refuses others. Then the audit cannot see the whole
    site.
    """
    site = SitePlan()
    truth = site.truth
    legal = [f"legal/{k}" for k in range(faults)]
    menu = "".join(link(path) for path in ("", "about", *legal))
    texts = iter(range(10**6))

    def page(
        path: str,
        *links: str,
        head: str = "",
        title: str | None = None,
        heading: str | None = None,
        with_menu: bool = True,
        words: str | None = None,
    ) -> None:
        number = next(texts)
        if words is None:
            # A text of its own: the words and their order depend on the number of the page.
            words = " ".join(
                f"{WORDS[(number * 7 + k * k) % 20]}{(number * 31 + k * 17) % 997}" for k in range(60)
            )
        title = f"Title of {path}" if title is None else title
        heading = f"<h1>Heading of {path}</h1>" if heading is None else heading
        site.answers[url(path)] = Answer(
            f"<html lang=en><head><title>{escape(title)}</title>{head}</head><body>"
            + (f"<nav>{menu}</nav>" if with_menu else "")
            + f"<main>{heading}<p>{words}</p>{' '.join(links)}</main>"
            + (f"<footer>{link('about', 'About us')}</footer>" if with_menu else "")
            + "</body></html>"
        )

    def canonical(target: str) -> str:
        return f'<link rel="canonical" href="{target if "://" in target else url(target)}">'

    extra: list[str] = []
    into: dict[int, list[str]] = defaultdict(list)

    def put(k: int, html: str) -> str:
        """Put a link on plain page k, and return the page's URL."""
        into[k % size].append(html)
        return url(f"p{k % size}")

    page("about", link("p0"))
    for path in legal:
        page(path, link("p0"))
        truth["indirect"].add((url(path),))
    for k in range(faults):
        # Broken links, also by a redirect; one target has two linkers.
        site.answers[url(f"gone/{k}")] = Answer("", 404 if k % 2 else 410)
        site.answers[url(f"to-gone/{k}")] = Answer(status=301, to=url(f"gone/{k}"))
        for linker, path in ((k, f"gone/{k}"), (k + 1, f"gone/{k}"), (k + 2, f"to-gone/{k}")):
            truth["broken"].add((url(path), put(linker, link(path, "lost"))))
        truth["redirects"].add((url(f"to-gone/{k}"), url(f"p{(k + 2) % size}")))
        site.answers[url(f"private/{k}")] = Answer("", 403)
        if closed:
            truth["refused"].add((url(f"private/{k}"), put(k, link(f"private/{k}"))))
        # Redirects: one, two, and to another scheme.
        for path, answer in (
            (f"r/{k}", Answer(status=302, to=url(f"p{k}"))),
            (f"c/{k}", Answer(status=301, to=url(f"c2/{k}"))),
            (f"c2/{k}", Answer(status=308, to=url(f"p{k}"))),
            (f"loop/{k}", Answer(refused="IgnoreRequest: max redirections reached")),
        ):
            site.answers[url(path)] = answer
        for path in (f"r/{k}", f"c/{k}", f"loop/{k}"):
            truth["redirects"].add((url(path), put(k + 3, link(path))))
        # A link by http, which redirects to https, and resources by http.
        plain = f"http://site.example/p{k}"
        site.answers[plain] = Answer(status=301, to=url(f"p{k}"))
        linker = put(k + 4, link(plain))
        truth["insecure"].add((plain, linker))
        truth["redirects"].add((plain, linker))
        image = f"http://img.example/{k}.png"
        truth["insecure"].add((image, put(k + 5, f'<img src="{image}">')))
        # Orphans. A link to /slash/0 is none to /slash/0/. A page that is linked by a redirect is no orphan.
        page(f"orphan/{k}", link("p1"))
        page(f"slash/{k}/", link("p1"))
        page(f"slash/{k}", link("p1"))
        put(k, link(f"slash/{k}"))
        site.sitemap += [url(f"orphan/{k}"), url(f"slash/{k}/")]
        truth["orphans"] |= {(url(f"orphan/{k}"),), (url(f"slash/{k}/"),)}
        # Pages that only nofollow links or redirects lead to.
        page(f"shy/{k}", link("p1"))
        page(f"moved/{k}", link("p1"))
        site.answers[url(f"old/{k}")] = Answer(status=301, to=url(f"moved/{k}"))
        site.sitemap += [url(f"shy/{k}"), url(f"moved/{k}")]
        put(k + 6, link(f"shy/{k}", more=' rel="ugc nofollow"'))
        truth["redirects"].add((url(f"old/{k}"), put(k + 6, link(f"old/{k}"))))
        truth["indirect"] |= {(url(f"shy/{k}"),), (url(f"moved/{k}"),)}
        truth["orphans"].add((url(f"shy/{k}"),))
        page(f"end/{k}", with_menu=False)
        put(k + 7, link(f"end/{k}"))
        truth["dead-ends"].add((url(f"end/{k}"),))
        # Canonical URLs that contradict themselves, and one that does not.
        wrong = {
            "several": canonical("p1") + canonical("p2"),
            "redirect": canonical(f"r/{k}"),
            "gone": canonical(f"gone/{k}"),
            "noindex": canonical(f"noindex/{k}"),
            "foreign": canonical(f"https://other.example/{k}"),
            "self": canonical(f"canon/self/{k}"),
        }
        for name, head in wrong.items():
            page(f"canon/{name}/{k}", link("p1"), head=head)
            put(k + 8, link(f"canon/{name}/{k}"))
        site.answers[f"https://other.example/{k}"] = Answer("<title>other</title>")
        problems = {
            "several": "names several",
            "redirect": "names a page that redirects",
            "gone": f"names a page that answers {404 if k % 2 else 410}",
            "noindex": "names a page with noindex",
            "foreign": "names a page of another host",
        }
        truth["canonical"] |= {(url(f"canon/{name}/{k}"), problem) for name, problem in problems.items()}

        # Language versions: de names en and back, fr names de without an answer, it names a page with noindex.
        def versions(**codes: str) -> str:
            return "".join(
                f'<link rel="alternate" hreflang="{c}" href="/{path}">' for c, path in codes.items()
            )

        page(f"en/{k}", link("p1"), head=versions(de=f"de/{k}", en=f"en/{k}"))
        page(f"de/{k}", link("p1"), head=versions(de=f"de/{k}", en=f"en/{k}"))
        page(f"fr/{k}", link("p1"), head=versions(de=f"de/{k}"))
        page(f"it/{k}", link("p1"), head=versions(de=f"noindex/{k}"))
        for code in ("en", "de", "fr", "it"):
            put(k + 9, link(f"{code}/{k}"))
        truth["hreflang"] |= {(url(f"fr/{k}"), url(f"de/{k}")), (url(f"it/{k}"), url(f"noindex/{k}"))}
        # Hidden pages that are linked.
        page(f"noindex/{k}", link("p1"), head='<meta name="robots" content="noindex">')
        page(f"nofollow/{k}", link("p1"), head='<meta name="robots" content="nofollow">')
        site.answers[url(f"robots/{k}")] = Answer(refused="Forbidden by robots.txt")
        for path in (f"noindex/{k}", f"nofollow/{k}", *([f"robots/{k}"] if closed else [])):
            put(k + 10, link(path))
            truth["hidden"].add((url(path),))
        # No link of a page with nofollow is followed.
        truth["dead-ends"].add((url(f"nofollow/{k}"),))
        # Titles, headings and near-duplicates.
        page(f"untitled/{k}", link("p1"), title="")
        truth["titles"].add((url(f"untitled/{k}"), "missing"))
        for twin in "ab":
            page(f"title/{twin}{k}", link("p1"), title=f"Twins {k}")
            truth["titles"].add((url(f"title/{twin}{k}"), "shared"))
            page(f"heading/{twin}{k}", link("p1"), heading=f"<h1>Twin headings {k}</h1>")
            truth["headings"].add((url(f"heading/{twin}{k}"), "shared"))
            same = " ".join(f"{WORDS[(k * 3 + j) % 20]}{k * 50 + j}" for j in range(3000))
            page(f"copy/{twin}{k}", link("p1"), words=same, heading=f"<h1>Copy {twin}{k}</h1>")
            extra += [f"title/{twin}{k}", f"heading/{twin}{k}", f"copy/{twin}{k}"]
        page(f"headless/{k}", link("p1"), heading="")
        page(f"twice/{k}", link("p1"), heading=f"<h1>One {k}</h1><h1>Two {k}</h1>")
        truth["headings"] |= {(url(f"headless/{k}"), "missing"), (url(f"twice/{k}"), "several on the page")}
        truth["duplicates"].add((url(f"copy/a{k}"), url(f"copy/b{k}")))
        extra += [f"untitled/{k}", f"headless/{k}", f"twice/{k}"]
    for k, path in enumerate(extra):
        put(k, link(path))
    # A path of pages that are deeper and deeper.
    for k in range(faults + 2):
        page(f"deep/{k}", link(f"deep/{k + 1}") if k < faults + 1 else link("p1"))
        if k >= 2:
            truth["depth"].add((url(f"deep/{k}"),))
    put(0, link("deep/0"))
    for k in range(size):
        page(f"p{k}", *into[k], *(link(f"p{(k + step) % size}") for step in (1, 7)))
    page("", *(link(f"p{k}") for k in range(size)), link("about"))
    return site


def crawl(site: SitePlan, folder: Path, budget: int | None = None, seeds: Sequence[str] = (HOME,)) -> None:
    """Let a crawl fetch the site until nothing waits, or until it has leased ``budget`` pages."""
    with inlink.Crawl(folder, politeness={"delay": 0}, clock=VirtualClock(), max_retries=0) as frontier:
        frontier.seed(list(seeds))
        frontier.sitemap([(address, None, None) for address in site.sitemap])
        leased = 0
        while frontier.wait() is not None and leased != budget:
            for lease in frontier.next(1):
                leased += 1
                _answer(site, frontier, lease)


def _answer(site: SitePlan, frontier: inlink.Crawl, lease: Lease) -> None:
    answer = site.answers.get(lease.url, Answer("", 404))
    if answer.refused:
        frontier.exclude(lease, answer.refused)
    elif answer.to:
        again = frontier.redirected(lease, answer.to, status=answer.status)
        if again is not None:
            _answer(site, frontier, again)
    elif answer.status >= 400:
        frontier.failed(lease, status=answer.status)
    else:
        body = answer.body if isinstance(answer.body, bytes) else answer.body.encode()
        page = read_page(body, lease.url, content_type="text/html")
        hidden = [entry for entry in page.links if page.nofollow or entry.nofollow]
        links = [
            Link(entry.url, text=entry.text, place=entry.place) for entry in page.links if entry not in hidden
        ]
        facts = msgspec.structs.replace(
            page.facts, nofollow_links=[(entry.url, entry.text, entry.place) for entry in hidden]
        )
        frontier.crawled(
            lease,
            links,
            facts=facts,
            noindex=page.noindex,
            nofollow=page.nofollow,
            canonical_link=page.canonical,
            fingerprint=fingerprint(page.text),
        )
