"""``python -m torture``: trials of every kind until the time is over; prints the counts, and every violation."""

import argparse
import itertools
import os
import sys
from collections.abc import Iterable

os.environ.setdefault("INLINK_THREADS", "1")

from patience import PATIENCE
from torture.kinds import KINDS, trials
from torture.trial import Count, scratch, until


def main() -> int:
    """Run; return 1 if there was a violation."""
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long; default 5")
    parser.add_argument("--seed", type=int, default=1, help="other trials with another seed; default 1")
    parser.add_argument("--only", action="append", metavar="KIND", choices=list(KINDS), help="only this kind")
    parser.add_argument("--trial", type=int, help="only the trial with this number")
    parser.add_argument("--trials", type=int, help="so many trials of each kind, whatever the time")
    options = parser.parse_args()
    kinds = [KINDS[name] for name in options.only or KINDS]
    whole = sum(kind.weight for kind in kinds)
    counts = {}
    with scratch() as place:
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        for kind in kinds:
            over = until(options.minutes * 60 * kind.weight / whole if options.trials is None else PATIENCE)
            numbers: Iterable[int] = itertools.count()
            if options.trial is not None:
                numbers = [options.trial]
            elif options.trials is not None:
                numbers = range(max(int(options.trials * kind.weight), 1))
            counts[kind.name] = trials(kind, place, options.seed, over, numbers)
            report = counts[kind.name]
            sys.stdout.write(f"{kind.name}: {report.trials:,} trials, {len(report.violations)} violations\n")
            sys.stdout.writelines(f"  {line}\n" for line in report.violations[:40])
            sys.stdout.flush()
    sys.stdout.write(f"\n{table(counts)}")
    return int(any(count.violations for count in counts.values()))


def table(counts: dict[str, Count]) -> str:
    """The counts as Markdown."""
    rows = [
        "| attack | checks | right answer | refused in one line | violations |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, count in counts.items():
        right, refused = count.outcomes["right"], count.outcomes["refused"]
        rows.append(
            f"| {KINDS[name].what} | {count.trials:,} | {right:,} | {refused:,} | {len(count.violations):,} |"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
