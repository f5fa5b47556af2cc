"""A crawl that looks for one topic, beside one that takes pages as they come: ``make demo``.

Both crawl the same small web, made up on loopback, and may fetch the same number of pages.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from smallweb import SmallWeb

from harvest import after, draw, harvest, table, visited

PAGES, BUDGET = 2000, 500
OUT = Path(__file__).parent / "out"


def say(text: str) -> None:
    print(text, flush=True)


def run(*command: str, show: bool = True) -> str:
    """Run an inlink command in the demo's folder, as a user would."""
    if show:
        say(f"$ inlink {shlex.join(command)}")
    inlink = [sys.executable, "-m", "inlink", *command]
    done = subprocess.run(inlink, cwd=OUT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"demo: inlink {command[0]} failed with exit code {done.returncode}")
    if show:
        say(done.stdout)
    return done.stdout


def crawl(folder: str, *order: str) -> tuple[list[float], set[str]]:
    """Crawl a small web of its own, the same for each crawl: the harvest, and what was to be found."""
    with SmallWeb.apart(OUT / f"{folder}.log", PAGES) as web:
        topic = ["--topic", web.description] if "--use-scores" in order else []
        run("crawl", *web.seeds(), "-o", folder, *topic, *order, "--pages", str(BUDGET), "--delay", "0")
        return harvest(visited(OUT / folder), web.relevant()), web.relevant()


def main() -> None:
    began = time.monotonic()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    say(
        f"A small web is made up on this machine: {PAGES:,} pages on twelve hosts, with a link farm, an endless\n"
        "calendar, slow and failing servers. Some of its pages are about beekeeping. How many of those does a\n"
        f"crawl find that may fetch {BUDGET} pages? (The first time, inlink compiles its loops for half a minute.)\n\n"
        "One is told the topic, and fetches first what the pages' words and links promise most:\n"
    )
    by_topic, relevant = crawl("topic", "--policy", "pagerank", "--use-scores")
    say("Another takes pages as they come, those near to where it began first:\n")
    breadth_first, _ = crawl("breadth-first", "--policy", "breadth-first")

    curves, most = {"by topic": by_topic, "breadth-first": breadth_first}, len(relevant)
    say(f"Of the {most} pages about beekeeping they have found, after so many pages:\n")
    say(table(curves, most, BUDGET))
    first, second = (round(after(curve, BUDGET) * most) for curve in curves.values())
    title = f"A crawl for one topic finds {first} of {most} pages, breadth-first {second}"
    draw(OUT / "harvest.png", curves, most, BUDGET, title)
    say(
        f"\nAs a picture: {shown(OUT / 'harvest.png')}\n\nThe pages that all known links make out to be the best:\n"
    )
    run("-q", "rank", "topic")
    run("-q", "top", "topic", "-n", "5")

    say("And a page about beekeeping that it would fetch soon, with each reason for its place:\n")
    rows = run("-q", "next", "topic", "-n", str(PAGES), "--peek", show=False).splitlines()
    waiting = [row.split("\t")[3] for row in rows]
    run("why", "topic", next((url for url in waiting if url in relevant), waiting[0]))
    say(f"All of it, in {time.monotonic() - began:.0f} s, is in {shown(OUT)}.")


def shown(path: Path) -> str:
    """A path as it can be typed here."""
    return os.path.relpath(path)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
