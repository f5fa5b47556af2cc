"""Check that an installed inlink works: build, rank, fold, show and export a small archive made here.

It needs the base package alone, leaves nothing behind, and fails if a figure is not what it has to be.
"""

import gzip
import random
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

TOPICS = ["graphs", "postgres", "gardening", "tides"]


def make_archive(path: Path, sites: int = 30, seed: int = 2015) -> None:
    """Write a WARC of a small web: hubs that link to good pages, pages that link within their site, a link farm."""
    rng = random.Random(seed)
    names = [f"www.{topic}{k}.example.org" for k in range(sites // len(TOPICS) + 1) for topic in TOPICS]
    pages = [f"https://{host}/{page}" for host in names[:sites] for page in ("", "about", "notes", "links")]
    popular = rng.sample(pages, 12)
    with path.open("wb") as stream:
        for url in pages:
            home = url.rsplit("/", 1)[0]
            targets = [f"{home}/", f"{home}/about", "notes", "links#top", rng.choice(pages)]
            if url.endswith("links"):
                targets += rng.sample(popular, 6)
            if "tides0" in url:  # a link farm: every page links to one page many times
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


def check(folder: Path) -> None:
    """Run the commands in a folder, as a user would."""

    def run(*command: str) -> str:
        inlink = [sys.executable, "-m", "inlink", *command]
        return subprocess.run(inlink, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout

    make_archive(folder / "crawl.warc.gz")
    (folder / "scores.csv").write_text(
        "node,score\nhttps://www.graphs0.example.org/,1\nhttps://www.graphs1.example.org/,0.5\n"
    )
    (folder / "trusted.txt").write_text(
        "https://www.graphs0.example.org/\nhttps://www.postgres1.example.org/\n"
    )
    built = run("build", "crawl.warc.gz", "-o", "web", "--level", "page")
    assert "121 nodes" in built, built
    run("info", "web")
    ranked = run("rank", "web", "--algorithm", "pagerank")
    assert "converged" in ranked, ranked
    best = run("top", "web", "--by", "pagerank", "-n", "8")
    assert len(best.splitlines()) == 8, best
    run("rank", "web", "--algorithm", "hits", "--scores", "scores.csv")
    run("rank", "web", "--algorithm", "trustrank", "--trusted", "trusted.txt")
    run("fold", "web", "-o", "web-hosts", "--level", "host")
    run("rank", "web-hosts")
    hosts = run("top", "web-hosts", "-n", "5")
    assert "org.example.graphs" in hosts, hosts
    run("export", "web", "-o", "web.parquet")
    run("export", "web-hosts", "-o", "web-hosts.graphml")
    assert (folder / "web.parquet").exists()
    assert (folder / "web-hosts.graphml").exists()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder))
    print("inlink is installed, and its figures hold.")


if __name__ == "__main__":
    main()
