"""The texts of the small web: words by topic, and sentences made of them.

Some words belong to several topics (a queen, a comb, a frame, a colony), so that a single word does not tell a page's
topic.
"""

import re
from random import Random
from typing import NamedTuple

__all__ = ["DESCRIPTIONS", "NATIVE", "TOPICS", "Words", "anchor", "paragraph", "sentence", "title"]


class Words(NamedTuple):
    """Words of a topic: nouns, verbs in the third person, adjectives."""

    nouns: list[str]
    verbs: list[str]
    adjectives: list[str]


def _words(nouns: str, verbs: str, adjectives: str) -> Words:
    return Words(nouns.split(), verbs.split(), adjectives.split())


TOPICS = {
    "beekeeping": _words(
        "bee honey hive queen drone brood comb nectar pollen apiary beekeeper swarm smoker wax frame colony mite",
        "forages swarms pollinates overwinters stings feeds hums guards",
        "capped golden requeened floral docile waxy heather brimming",
    ),
    "chess": _words(
        "queen king rook bishop knight pawn opening endgame gambit tournament board clock opponent mate castle rank",
        "attacks defends sacrifices captures castles blunders checks promotes",
        "passed pinned doubled positional drawn decisive isolated sharp",
    ),
    "astronomy": _words(
        "star planet telescope galaxy comet orbit nebula eclipse moon observatory lens mirror cluster dwarf sky",
        "orbits shines collapses rotates transits fades expands eclipses",
        "bright distant binary dark lunar red faint stellar",
    ),
    "sailing": _words(
        "boat sail mast keel rudder harbour tide wind anchor hull crew rope frame deck compass regatta buoy gale",
        "tacks heels anchors drifts capsizes steers reefs moors",
        "leeward windy seaworthy tidal steady rigged salty fast",
    ),
    "baking": _words(
        "bread dough flour yeast oven crust loaf honey butter starter baker crumb rye salt wheat pastry tin",
        "rises bakes kneads ferments proves browns cools scores",
        "sour crusty wholemeal sticky sweet golden airy stale",
    ),
    "gardening": _words(
        "garden soil seed flower compost spade rose bulb hedge lawn pollen weed frost shrub vegetable bed drone",
        "grows blooms prunes waters sprouts wilts digs sows",
        "floral shady sandy hardy perennial moist green dormant",
    ),
    "railways": _words(
        "train station track engine signal platform tunnel bridge carriage timetable driver boiler smoker gauge",
        "departs halts shunts couples whistles delays steams arrives",
        "narrow express punctual freight rural electric late disused",
    ),
    "birds": _words(
        "bird nest egg feather wing owl finch heron beak colony migration swarm song perch warbler hawk fledgling",
        "flies sings nests migrates hatches feeds hovers preens",
        "feathered nocturnal shy plumed coastal rare speckled winged",
    ),
    "pottery": _words(
        "clay kiln glaze wheel bowl vase potter mug slip handle firing comb wax jar studio tile rim",
        "fires glazes throws cracks dries shapes trims cools",
        "glazed wheel-thrown raw speckled blue fragile matt earthen",
    ),
    "weaving": _words(
        "loom yarn warp weft frame shuttle wool thread cloth comb pattern weaver spindle dye tapestry linen reed",
        "weaves threads spins knots dyes frays tightens folds",
        "woven woollen striped coarse fine plaited tight colourful",
    ),
}
"""The demo looks for pages about the first topic."""

DESCRIPTIONS = {
    "beekeeping": "beekeeping: honey bees, their hives, queens and swarms, and the work of a beekeeper in the apiary"
}

GENERAL = _words(
    "year people town friend visitor book letter morning question answer story picture price village member meeting"
    " weekend neighbour problem season teacher afternoon club report hour",
    "begins changes matters returns helps remains continues surprises",
    "old new small good quiet useful local early common simple careful famous",
)
SPAM = _words(
    "bargain casino pills discount winner bonus offer prize jackpot deal",
    "wins pays saves doubles",
    "cheap free best exclusive instant",
)
SHAPES = (
    "The {a} {n} {v} near the {m}.",
    "A {n} and its {m} are more {a} than a {o}.",
    "In the {o}, a {n} {v} when the {m} is {a}.",
    "Nobody knows why the {n} {v} before the {o}.",
    "Every {n} has a {m}, and a {a} {m} {v}.",
    "We asked about the {n}, the {m} and the {o}.",
    "It is the {a} {n} that {v}, not the {m}.",
)
EMPTY_ANCHORS = (
    "read more",
    "here",
    "click here",
    "this page",
    "next",
    "more",
    "link",
    "see also",
    "continue",
)

_ARTICLE = re.compile(r"\b([Aa])(?= [aeio])")

NATIVE = {
    "ru": "Съешь же ещё этих мягких французских булок",
    "ja": "いろはにほへと散りぬるを",
    "fr": "Où l'hôtel a été bâti, le garçon rêve près de la forêt",
}
"""A sentence in several languages. Tests look for it to check that a page was decoded correctly."""


def sentence(rng: Random, words: Words, mixed: float = 0.3) -> str:
    """A sentence; each word is a general one with probability ``mixed``."""

    def one(kind: int) -> str:
        return rng.choice((GENERAL if rng.random() < mixed else words)[kind])

    text = rng.choice(SHAPES).format(n=one(0), m=one(0), o=one(0), v=one(1), a=one(2))
    return _ARTICLE.sub(r"\1n", text)


def paragraph(rng: Random, topic: str, count: int) -> str:
    """Sentences mostly about a topic (``""`` is no topic, ``"spam"`` the farm's), sometimes about others."""
    found = []
    for _ in range(count):
        chance = rng.random()
        if topic == "spam":
            words = SPAM if chance < 0.5 else TOPICS[rng.choice(list(TOPICS))]
        elif chance < 0.15 or not topic:
            words = GENERAL
        elif chance < 0.25:
            words = TOPICS[rng.choice(list(TOPICS))]
        else:
            words = TOPICS[topic]
        found.append(sentence(rng, words))
    return " ".join(found)


def title(rng: Random, topic: str) -> str:
    """A title that mostly names the topic."""
    words = SPAM if topic == "spam" else TOPICS[topic] if topic and rng.random() < 0.8 else GENERAL
    shape = rng.choice(
        ("The {a} {n}", "{n} and {m}", "Notes on the {n}", "How the {n} {v}", "A {n} for every {m}")
    )
    text = shape.format(
        n=rng.choice(words.nouns),
        m=rng.choice(words.nouns + GENERAL.nouns),
        a=rng.choice(words.adjectives),
        v=rng.choice(words.verbs),
    )
    return _ARTICLE.sub(r"\1n", text[0].upper() + text[1:])


def anchor(rng: Random, heading: str, topic: str) -> str:
    """The text of a link to a page: its title, a word of its topic, or a meaningless phrase."""
    chance = rng.random()
    if chance < 0.5:
        return heading
    if chance < 0.7 and topic in TOPICS:
        return rng.choice(TOPICS[topic].nouns)
    return rng.choice(EMPTY_ANCHORS if chance < 0.92 else GENERAL.nouns)
