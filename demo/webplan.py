"""The plan of the small web: its pages, their topics and their links.

The pages of a host form a tree below its home page, mostly below pages of the same topic. More links stay within a
topic, a host or both, and some go anywhere. So every counted page can be reached from the portal by links that robots
may follow. The plan is a function of the sizes and the seed.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from words import NATIVE, TOPICS, title

__all__ = [
    "COUNTED",
    "FEWEST_HOSTS",
    "FEWEST_PAGES",
    "KINDS",
    "Link",
    "Node",
    "Place",
    "Plan",
    "Roles",
    "native",
    "plan",
]

FEWEST_HOSTS, FEWEST_PAGES = 8, 200
RELEVANT = 0.08  # share of the pages that are about the first topic

COUNTED = {
    "page": "an ordinary page",
    "hub": "a list of links, mostly to one topic or host",
    "farm": "a page of the link farm",
    "noindex": "<meta name=robots content=noindex>",
    "nofollow": "<meta name=robots content=nofollow>, with links to hidden pages",
    "huge": "two million characters",
    "empty": "no text at all; one of them has no byte",
    "encoded": "in an encoding other than UTF-8, or wrongly declared",
    "twin": "the same bytes as another page, which does not say so",
    "throttled": "429 with Retry-After, then 200",
    "busy": "503 with Retry-After, then 200",
    "flaky": "500, then 200",
}
"""Kinds of pages that a crawl should fetch."""

KINDS = COUNTED | {
    "alias": "another URL of a page, which it names as its canonical one",
    "forbidden": "200, but robots.txt forbids it",
    "doubtful": "200, but the robots.txt of its host answers 500",
    "hidden": "200, but only links with nofollow lead there",
    "orphan": "200, but only the sitemap knows it",
    "gone": "404, or 410",
    "broken": "500 each time",
    "hang": "the server hangs up after a while, without an answer",
    "redirect": "301 or 302, on the host or to another one, in the end to a page",
    "loop": "a redirect that leads back to itself",
    "binary": "200, no text, one of them declared as HTML",
    "calendar": "where the calendar is entered: a month has the next one, without end",
    "session": "where the shop is entered: each page gives its links a new session id",
}
"""All kinds of URLs."""

ENCODED = (  # codec, charset in the header, charset in a meta, sentence that a decoder finds ("": none can)
    ("windows-1251", "windows-1251", None, "ru"),
    ("windows-1251", "no-such-charset", "windows-1251", "ru"),  # the header's is unknown, the meta's counts
    ("shift_jis", None, "shift_jis", "ja"),
    ("utf-16", None, None, "ja"),  # Python's codec writes the byte order mark
    ("utf-8-sig", "iso-8859-1", "iso-8859-1", "fr"),  # the byte order mark counts
    ("utf-8", None, "utf-16", "ru"),  # a meta that could be read is not in UTF-16
    ("windows-1252", "utf-8", "utf-8", ""),  # wrong: the letters cannot be decoded, the links can
)

Place = tuple[int, str]
"""A host's number, and a path with its query."""


class Link(NamedTuple):
    """A link, and whether it is marked nofollow."""

    place: Place
    nofollow: bool = False


@dataclass(slots=True, eq=False)
class Node:
    """One URL.

    ``topic`` is "" for no topic and "spam" for the farm. ``target`` is the page that a redirect, alias or twin refers
    to. ``detail`` is a status, or an index in :data:`ENCODED`.
    """

    host: int
    path: str
    topic: str
    title: str
    kind: str = "page"
    links: list[Link] = field(default_factory=list)
    target: Place | None = None
    detail: int = 0
    absolute: bool = False

    @property
    def place(self) -> Place:
        return self.host, self.path


class Roles(NamedTuple):
    """The numbers of the hosts with special roles; all other hosts are ordinary."""

    portal: int  # sitemap, list of all hosts
    shop: int  # session trap; its robots.txt is 404
    events: int  # calendar
    polite: int  # Disallow and Crawl-delay
    slow: int
    failing: int
    farm: int
    unsure: int  # its robots.txt is 500

    @classmethod
    def of(cls, hosts: int) -> "Roles":
        return cls(0, 1, 2, hosts - 5, hosts - 4, hosts - 3, hosts - 2, hosts - 1)


class Plan(NamedTuple):
    """All URLs outside the traps, the trees' roots first."""

    nodes: dict[Place, Node]
    roles: Roles


def plan(pages: int, hosts: int, seed: int) -> Plan:
    """Plan a web with a given number of counted pages.

    Raises
    ------
    ValueError
        If there are too few pages or hosts for all that has to be there, or more hosts than addresses.
    """
    if pages < FEWEST_PAGES or not FEWEST_HOSTS <= hosts <= 250 or pages < 20 * hosts:
        raise ValueError(
            f"at least {FEWEST_PAGES} pages, {FEWEST_HOSTS} to 250 hosts, and 20 pages for each of them"
        )
    rng, roles = Random(f"{seed}/plan"), Roles.of(hosts)
    trees = [
        grow(rng, host, topics, roles)
        for host, topics in enumerate(share_topics(rng, power_law(pages, hosts - 1), roles))
    ]
    nodes = {node.place: node for tree in trees for node in tree}
    assert len(nodes) == pages
    weave(rng, trees, roles)
    make_hubs(rng, trees, roles)
    make_farm(rng, trees, roles)
    extra = [*oddities(rng, trees, roles), *byways(rng, trees, roles)]
    nodes |= {node.place: node for node in extra}
    return Plan(nodes, roles)


def power_law(total: int, parts: int, exponent: float = 1.3) -> list[int]:
    """Sizes in proportion to 1, 2^−e, 3^−e, …, at least 8 each; the first one gets the remainder."""
    weights = [(k + 1) ** -exponent for k in range(parts)]
    sizes = [max(8, int(total * weight / sum(weights))) for weight in weights]
    sizes[0] += total - sum(sizes)
    return sizes


def share_topics(rng: Random, sizes: Sequence[int], roles: Roles) -> list[list[str]]:
    """The topic of each page of each host.

    The relevant topic is frequent on a few hosts and rare on the others. Each host has three other topics.
    """
    wanted, *others = TOPICS
    left = int(RELEVANT * sum(sizes))
    quotas = [0] * len(sizes)
    for host, share in ((1, 0.35), (3, 0.25), (5, 0.15)):
        quotas[host] = min(int(share * RELEVANT * sum(sizes)), sizes[host] // 2)
    left -= sum(quotas)
    elsewhere = [host for host in range(len(sizes)) if host not in (1, 3, 5, roles.farm)]
    for host in elsewhere:
        quotas[host] = min(sizes[host] // 4, left * sizes[host] // sum(sizes[k] for k in elsewhere))
    found = []
    for host, size in enumerate(sizes):
        mains = [others[(3 * host + k) % len(others)] for k in range(3)]
        topics = [wanted] * quotas[host]
        while len(topics) < size - 1:  # the home page has no topic
            topics.append(rng.choices(mains, (3, 2, 1))[0] if rng.random() < 0.85 else rng.choice(others))
        rng.shuffle(topics)
        found.append(["spam"] * (size - 1) if host == roles.farm else topics)
    return found


def grow(rng: Random, host: int, topics: Sequence[str], roles: Roles) -> list[Node]:
    """A host's pages, as a tree: each has a link from its parent, and links to it and to the home page.

    Hosts of even number have sections, whose URLs tell the topic; those of odd number say /notes/ and a number.
    """
    home = Node(host, "/", "", f"Home of host {host + 1}", "farm" if host == roles.farm else "page")
    tree, by_topic = [home], defaultdict[str, list[Node]](list)
    for number, topic in enumerate(topics, 1):
        same, heading = by_topic[topic], title(rng, topic)
        sections = host % 2 == 0
        if not sections:
            path, kind = f"/notes/{number}.html", "page"
        elif not same:
            path, kind = f"/{topic}/", "hub"
        else:
            path, kind = f"/{topic}/{heading.lower().replace(' ', '-')}-{number}.html", "page"
        node = Node(host, path, topic, heading, "farm" if host == roles.farm else kind)
        if kind == "hub":
            parent = home
        else:
            parent = rng.choice(same if same and rng.random() < (0.8 if sections else 0.5) else tree)
        parent.links.append(Link(node.place))
        node.links += [Link(home.place), Link(parent.place)]
        tree.append(node)
        same.append(node)
    return tree


def weave(rng: Random, trees: list[list[Node]], roles: Roles) -> None:
    """Links beyond the trees: within a topic, a host, both or neither; a few pages get many links."""
    everywhere = [node for host, tree in enumerate(trees) if host != roles.farm for node in tree]
    rng.shuffle(everywhere)
    of_topic, of_host, of_both = (defaultdict[object, list[Node]](list) for _ in range(3))
    for node in everywhere:
        of_topic[node.topic].append(node)
        of_host[node.host].append(node)
        of_both[node.host, node.topic].append(node)
    for node in everywhere:
        for _ in range(2 + min(20, int(rng.lognormvariate(1.2, 0.7)))):
            chance = rng.random()
            if chance < 0.45:
                near = of_both[node.host, node.topic]
            elif chance < 0.65:
                near = of_topic[node.topic]
            else:
                near = of_host[node.host] if chance < 0.88 else everywhere
            node.links.append(Link(near[int(len(near) * rng.random() ** 2)].place))


def make_hubs(rng: Random, trees: list[list[Node]], roles: Roles) -> None:
    """A list of all hosts on the portal, and two lists of links for each topic, with some links off topic."""
    portal = trees[roles.portal]
    free = [node for tree in trees for node in tree if node.kind == "page" and node.path != "/"]
    directory = next(node for node in portal if node.kind == "page" and node.path != "/")
    directory.kind, directory.title = "hub", "A list of all hosts"
    directory.links += [Link((host, "/")) for host in range(len(trees) + 1)]
    portal[0].links.append(Link(directory.place))
    for topic in TOPICS:
        on_topic = [node for node in free if node.topic == topic]
        for hub in rng.sample(on_topic, min(2, len(on_topic))):
            hub.kind = "hub"
            hub.links += [
                Link(rng.choice(on_topic if rng.random() < 0.8 else free).place)
                for _ in range(min(40, len(on_topic)))
            ]


def make_farm(rng: Random, trees: list[list[Node]], roles: Roles) -> None:
    """Links from each page of the farm to many others of the farm, and a few from other hosts."""
    farm = trees[roles.farm]
    for node in farm:
        node.links += [Link(other.place) for other in rng.sample(farm, min(25, len(farm)))]
    for tree in trees:
        tree[-1].links.append(Link(rng.choice(farm).place))


def oddities(rng: Random, trees: list[list[Node]], roles: Roles) -> Iterable[Node]:
    """Turn some leaves of the trees into pages of the other counted kinds; return the nodes that depend on them."""
    has_children = {link.place for tree in trees for node in tree[1:] for link in node.links[1:2]}  # parents
    leaves = [
        node
        for tree in trees
        for node in tree
        if node.kind == "page" and node.path != "/" and node.place not in has_children
    ]
    rng.shuffle(leaves)

    def take(kind: str, count: int, host: int = -1) -> list[Node]:
        """A number of leaves that are not relevant, those of ``host`` first."""
        plain = sorted((n for n in leaves if n.topic != next(iter(TOPICS))), key=lambda n: n.host != host)
        for node in plain[:count]:
            node.kind = kind
            leaves.remove(node)
        return plain[:count]

    for kind, count in (("throttled", 1), ("busy", 1), ("flaky", 3)):
        take(kind, count, roles.failing)
    take("noindex", 3)
    (blind,) = take("nofollow", 1)
    for node in take("huge", 1):
        node.links += [Link(other.place) for tree in trees for other in tree[:50]]
    for number, node in enumerate(take("empty", 2)):
        node.links, node.detail = [], number
    for number, node in enumerate(take("encoded", len(ENCODED))):
        node.detail = number
    originals = [node for node in leaves if node.topic != next(iter(TOPICS))][:3]
    for node in originals:
        leaves.remove(node)
        node.absolute = True
    for twin, original in zip(take("twin", 3), originals, strict=True):
        twin.links, twin.topic, twin.title = original.links, original.topic, original.title
        twin.target, twin.absolute = original.place, True
    for number in range(4):
        hidden = Node(roles.shop, f"/members/{number}.html", "", f"Member {number}", "hidden")
        hidden.links.append(Link((roles.shop, "/")))
        blind.links.append(Link(hidden.place))
        rng.choice(trees[roles.shop]).links.append(Link(hidden.place, nofollow=True))
        yield hidden


def byways(rng: Random, trees: list[list[Node]], roles: Roles) -> Iterable[Node]:
    """All URLs that do not count, each with one or two links from pages that count."""
    plain = [node for tree in trees for node in tree if node.kind == "page" and node.path != "/"]

    def on(host: int) -> list[Node]:
        mine = [node for node in plain if node.host == host]
        return mine if len(mine) > 1 else plain

    def linked(node: Node, sources: list[Node]) -> Node:
        for source in rng.sample(sources, 2):
            source.links.append(Link(node.place))
        return node

    for original in rng.sample(plain, 8):
        yield linked(
            Node(
                original.host,
                f"{original.path}?ref=feed",
                original.topic,
                original.title,
                "alias",
                original.links.copy(),
                original.place,
            ),
            plain,
        )
    for kind, host, path, count in (
        ("forbidden", roles.polite, "/private/{}.html", 6),
        ("orphan", roles.portal, "/only-in-the-sitemap/{}.html", 4),
        ("gone", roles.portal, "/missing/{}.html", 15),
        ("gone", roles.events, "/removed/{}.html", 5),
        ("broken", roles.failing, "/broken/{}.html", 5),
        ("hang", roles.failing, "/hang/{}.html", 2),
        ("binary", roles.portal, "/files/{}", 3),
        ("doubtful", roles.unsure, "/maybe/{}.html", 6),
    ):
        for number in range(count):
            name = path.format(("paper.pdf", "data", "odd.html")[number] if kind == "binary" else number)
            node = Node(host, name, "", f"{kind} {number}", kind, detail=number)
            if kind in ("forbidden", "doubtful", "orphan"):
                node.links.append(Link((host, "/")))
            yield node if kind == "orphan" else linked(node, on(host))
    yield Node(roles.unsure, "/", "", "Maybe", "doubtful", [Link((roles.unsure, "/maybe/0.html"))])
    for number, target in enumerate(rng.sample(plain, 10)):
        host = target.host if number < 5 else roles.portal
        node = linked(
            Node(host, f"/old/{number}.html", "", "", "redirect", detail=301, target=target.place), plain
        )
        yield node
        if number >= 5:  # one that leads to the first one
            place = (roles.shop, f"/away/{number}")
            yield linked(Node(*place, "", "", "redirect", detail=302, target=node.place), plain)
    for a, b in (("a", "b"), ("b", "a")):
        other = (roles.shop, f"/loop/{b}")
        yield linked(Node(roles.shop, f"/loop/{a}", "", "", "loop", detail=302, target=other), plain)
    for kind, host, path in (("calendar", roles.events, "/cal/2026/11"), ("session", roles.shop, "/shop/")):
        yield linked(Node(host, path, "", kind, kind), on(host))


def native(detail: int) -> str:
    """The sentence on a page of kind "encoded" that a decoder must find; "" if it cannot be decoded."""
    language = ENCODED[detail][3]
    return NATIVE[language] if language else ""
