"""The main job on a small archive that is made here: build, fold, rank, show, export.

``--check`` does the same quietly in a temporary folder, and fails if a figure is not what it has to be.
"""

import argparse
import gzip
import random
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

TOPICS = ["graphs", "postgres", "gardening", "tides"]


def make_archive(path: Path, sites: int = 30, seed: int = 2015) -> None:
    """Write a WARC of a small web: hubs that link to good pages, pages that link within their site, a link farm."""
    rng = random.Random(seed)
    hosts = [f"www.{topic}{k}.example.org" for k in range(sites // len(TOPICS) + 1) for topic in TOPICS][
        :sites
    ]
    pages = [f"https://{host}/{page}" for host in hosts for page in ("", "about", "notes", "links")]
    popular = rng.sample(pages, 12)
    with path.open("wb") as stream:
        for url in pages:
            home = url.rsplit("/", 1)[0]
            targets = [f"{home}/", f"{home}/about", "notes", "links#top", rng.choice(pages)]
            if url.endswith("links"):
                targets += rng.sample(popular, 6)
            if "tides0" in url:  # a farm: every page of the site links to one, many times over
                targets += ["https://www.spam.example.net/win"] * 20
            anchors = "\n".join(f'<p><a href="{target}">{target}</a></p>' for target in targets)
            stream.write(
                gzip.compress(record(url, f"<!doctype html><title>{url}</title><body>{anchors}</body>"))
            )


def record(url: str, html: str) -> bytes:
    """A page as a WARC record."""
    response = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + html.encode()
    head = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2015-06-19T00:00:00Z\r\n"
        f"WARC-Record-ID: <{uuid.uuid5(uuid.NAMESPACE_URL, url).urn}>\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(response)}\r\n\r\n"
    )
    return head.encode() + response + b"\r\n\r\n"


def run(folder: Path, *command: str, show: bool) -> str:
    """Run one inlink command in the folder, as a user would."""
    if show:
        print(f"\n$ inlink {' '.join(command)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "inlink", *command], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
    )
    if show:
        print(done.stdout, end="", flush=True)
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    folder = Path(tempfile.mkdtemp()) if check else Path(__file__).parent / "out"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_archive(folder / "crawl.warc.gz")
    (folder / "scores.csv").write_text(
        "node,score\nhttps://www.graphs0.example.org/,1\nhttps://www.graphs1.example.org/,0.5\n"
    )
    (folder / "trusted.txt").write_text(
        "https://www.graphs0.example.org/\nhttps://www.postgres1.example.org/\n"
    )

    built = run(folder, "build", "crawl.warc.gz", "-o", "web", "--level", "page", show=not check)
    run(folder, "info", "web", show=not check)
    ranked = run(folder, "rank", "web", "--algorithm", "pagerank", show=not check)
    best = run(folder, "top", "web", "--by", "pagerank", "-n", "8", show=not check)
    run(folder, "rank", "web", "--algorithm", "hits", "--scores", "scores.csv", show=not check)
    run(folder, "rank", "web", "--algorithm", "trustrank", "--seeds", "trusted.txt", show=not check)
    run(folder, "fold", "web", "-o", "web-hosts", "--level", "host", show=not check)
    run(folder, "rank", "web-hosts", show=not check)
    hosts = run(folder, "top", "web-hosts", "-n", "5", show=not check)
    run(folder, "export", "web", "-o", "web.parquet", show=not check)
    run(folder, "export", "web-hosts", "-o", "web-hosts.graphml", show=not check)
    if not check:
        print(
            f"\nEverything lies in {folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder}."
        )
        return
    assert "121 nodes" in built, built
    assert "converged" in ranked, ranked
    assert len(best.splitlines()) == 8, best
    assert "org.example.graphs" in hosts, hosts
    assert (folder / "web.parquet").exists()
    assert (folder / "web-hosts.graphml").exists()
    shutil.rmtree(folder)
    print("The demo ran and its figures hold.")


if __name__ == "__main__":
    main()
