"""``python -m torture.many``: thousands of closed crawls that are kept as objects, and a server of hundreds."""

import argparse
import sys
import time
from pathlib import Path

import inlink
from served import served
from torture.trial import scratch


def main() -> int:
    """Run; an error ends it with a traceback."""
    parser = argparse.ArgumentParser(prog="torture.many", description=__doc__)
    parser.add_argument(
        "--closed", type=int, default=5000, help="crawls that are closed and kept; default 5,000"
    )
    parser.add_argument("--served", type=int, default=500, help="crawls of the server; default 500")
    options = parser.parse_args()
    with scratch() as place:
        began, kept = time.perf_counter(), []
        for number in range(options.closed):
            crawl = inlink.Crawl(place / f"c{number % max(options.served, 1)}", rerank_share=None)
            crawl.seed([f"http://h{number}.example/"])
            crawl.close()
            kept.append((crawl, crawl.desk, crawl.view))
        _tell(f"{len(kept):,} closed crawls are kept", began)
        began, folders = time.perf_counter(), [place / f"c{number}" for number in range(options.served)]
        with served(*folders) as server:
            for keeper in server.site.keepers:
                seeded = server.ask("POST", f"/v1/crawls/{keeper}/seeds", {"urls": ["http://a.example/"]})
                assert seeded[0] == 200, seeded
            _tell(f"{len(folders):,} crawls are served", began)
    _tell("all are closed", began)
    return 0


def _tell(what: str, began: float) -> None:
    size = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize")
    )
    gigabytes = int(size.split()[1]) / 1e6
    sys.stdout.write(f"{what}: {time.perf_counter() - began:.1f} s, {gigabytes:,.1f} GB of address space\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
