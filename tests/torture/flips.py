"""Damage at rest: one change to one file of a crawl's or a graph's folder, and then a command that reads it."""

import shutil
from pathlib import Path
from random import Random

from torture.folders import attacked, make_crawl, make_graph
from torture.trial import command, verdict, warm

__all__ = ["crawl_flip", "graph_flip"]

PAGE = "http://seed0.example/"

CRAWL_COMMANDS: list[tuple[str, ...]] = [
    ("page", "{}", PAGE),
    ("page", "{}", "http://h3.example/7"),
    ("why", "{}", PAGE),
    ("links", "{}", PAGE),
    ("path", "{}", "http://h3.example/7"),
    ("find", "{}", "h3"),
    ("dump", "pages", "{}"),
    ("dump", "links", "{}"),
    ("next", "{}", "--peek"),
]
"""The commands that read a damaged crawl. None of them changes it."""

GRAPH_COMMANDS: list[tuple[str, ...]] = [
    ("info", "{}", "--json"),
    ("info", "{}", "--verify", "--json"),
    ("top", "{}", "--json"),
    ("top", "{}", "--by", "hits", "--json"),
    ("rank", "{}", "--name", "again", "--threads", "1"),
    ("rank", "{}", "--algorithm", "salsa", "--name", "again"),
    ("rank", "{}", "--algorithm", "hits", "--name", "again", "--threads", "1"),
    ("rank", "{}", "--algorithm", "opic", "--name", "again"),
    ("export", "{}", "-o", "{}/../out.csv"),
    ("fold", "{}", "--level", "host", "-o", "{}/../folded"),
]
"""The commands that read a damaged graph."""

_sound: dict[str, Path] = {}
_right: dict[tuple[str, ...], str] = {}


def _filled(arguments: tuple[str, ...], folder: Path) -> list[str]:
    return [argument.replace("{}", str(folder)) for argument in arguments]


def _answer(arguments: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The outcome of a command on a damaged folder, beside the right answer."""
    for rest in ("out.csv", "folded"):
        path = folder.parent / rest
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
    ended = command(*_filled(arguments, folder))
    return verdict(ended, _right.get(arguments)), ended.out


def _sound_folder(name: str, place: Path) -> Path:
    """The folder that is attacked, and the right answers of all commands, made once."""
    if name not in _sound:
        sound = place / f"sound-{name}"
        make = make_crawl if name == "crawl" else make_graph
        _sound[name] = make(sound, Random(5))
        copy = place / f"{name}-copy"
        for arguments in CRAWL_COMMANDS if name == "crawl" else GRAPH_COMMANDS:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(sound, copy)
            warm(*_filled(arguments, copy))
            shutil.rmtree(copy)
            shutil.copytree(sound, copy)
            outcome, out = _answer(arguments, copy)
            assert outcome == "right", (arguments, outcome)
            _right[arguments] = out
    return _sound[name]


def crawl_flip(random: Random, place: Path) -> list[str]:
    """One damage to a crawl, and three commands; then a writer opens it, and may not make things worse."""
    sound, copy = _sound_folder("crawl", place), place / "crawl-copy"
    did = attacked(sound, copy, random)
    outcomes = []
    for arguments in random.sample(CRAWL_COMMANDS, 3):
        outcome, _ = _answer(arguments, copy)
        if did.startswith("events.log cut") and outcome.startswith("another answer"):
            # A log without its end looks like one that never had it, as after a power cut.
            outcome = "right"
        outcomes.append(outcome if outcome in ("right", "refused") else f"{arguments[0]}, {did}: {outcome}")
    return outcomes


def graph_flip(random: Random, place: Path) -> list[str]:
    """One damage to a graph, and one command."""
    sound, copy = _sound_folder("graph", place), place / "graph-copy"
    did = attacked(sound, copy, random)
    arguments = random.choice(GRAPH_COMMANDS)
    outcome, _ = _answer(arguments, copy)
    return [outcome if outcome in ("right", "refused") else f"{' '.join(arguments)}, {did}: {outcome}"]
