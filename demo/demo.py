"""Compare a crawl for one topic with breadth-first: ``make demo``.

Both crawl the same small generated web on loopback, and may fetch the same number of pages.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from harvest import after, draw, harvest, table, visited
from smallweb import SmallWeb

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
    """Crawl the small web, which is the same for each crawl; return the harvest and the relevant pages."""
    with SmallWeb.apart(OUT / f"{folder}.log", PAGES) as web:
        topic = ["--topic", web.description] if "--use-scores" in order else []
        # The small web is on loopback, which a crawl does not fetch unless it is allowed.
        loopback = ["--allow-address", "127.0.0.0/8"]
        limits = ["--pages", str(BUDGET), "--delay", "0", "--everywhere", *loopback]
        run("crawl", *web.seeds(), "-o", folder, *topic, *order, *limits)
        return harvest(visited(OUT / folder), web.relevant()), web.relevant()


def main() -> None:
    began = time.monotonic()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    say(
        f"This demo generates a small web on this machine: {PAGES:,} pages on twelve hosts, with a link farm, an\n"
        "endless calendar, slow servers and failing ones. Some of the pages are about beekeeping. How many of these\n"
        f"does a crawl with {BUDGET} fetches find? (The first run compiles inlink's loops for about a minute.)\n\n"
        "The first crawl knows the topic. It prefers pages whose links and words fit the topic:\n"
    )
    by_topic, relevant = crawl("topic", "--policy", "pagerank", "--use-scores")
    say("The second crawl is breadth-first: it takes the pages nearest to its seeds first:\n")
    breadth_first, _ = crawl("breadth-first", "--policy", "breadth-first")

    curves, most = {"by topic": by_topic, "breadth-first": breadth_first}, len(relevant)
    say(f"Share of the {most} pages about beekeeping that each crawl has found:\n")
    say(table(curves, most, BUDGET))
    first, second = (round(after(curve, BUDGET) * most) for curve in curves.values())
    title = f"A crawl for one topic finds {first} of {most} pages, breadth-first {second}"
    draw(OUT / "harvest.png", curves, most, BUDGET, title)
    say(
        f"\nThe same as a picture: {shown(OUT / 'harvest.png')}\n\nThe best pages by PageRank over all known links:\n"
    )
    run("-q", "rank", "topic")
    run("-q", "top", "topic", "-n", "5")

    say("A page about beekeeping that the crawl would fetch soon, with each reason for its place:\n")
    # `--peek` shows at most 100 pages.
    rows = run("-q", "next", "topic", "-n", "100", "--peek", show=False).splitlines()
    waiting = [row.split("\t")[3] for row in rows]
    run("why", "topic", next((url for url in waiting if url in relevant), waiting[0]))
    say(f"All results are in {shown(OUT)}. The demo took {time.monotonic() - began:.0f} s.")


def shown(path: Path) -> str:
    """A path, relative to the current folder."""
    return os.path.relpath(path)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
