"""Check that an installed inlink works: build, rank, fold, show and export a small archive made here, and crawl it.

It needs only the base package and removes its files. It fails if a figure is wrong. With ``--base`` it also fails if an
extra is installed, or if the environment weighs more than a base install should. With ``--graphs`` it does not crawl.
"""

import gzip
import random
import subprocess
import sys
import sysconfig
import tempfile
import uuid
from importlib.util import find_spec
from pathlib import Path

TOPICS = ["graphs", "postgres", "gardening", "tides"]
EXTRAS = ["numba", "re2", "pyarrow", "scipy", "networkx", "scrapy", "matplotlib"]
# The largest size of an environment with the base package, in bytes, without pip and compiled modules.
LARGEST = 150_000_000


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


# Crawls the pages of the archive again, in virtual time.
CRAWL = """
import inlink

web = inlink.read("crawl.warc.gz")
with inlink.Crawl("again", clock=inlink.VirtualClock()) as crawl:
    crawl.seed(["https://www.graphs0.example.org/"])
    while crawl.wait() is not None:
        for lease in crawl.next(5):
            crawl.crawled(lease, [web.names[node] for node in web.outlinks(lease.url)])
    crawl.rerank(wait=True)
    print(crawl.standing())
"""


def check_base() -> None:
    """Fail if an extra is installed, or the environment is too large."""
    there = [name for name in EXTRAS if find_spec(name)]
    assert not there, f"a base install has {there}"
    packages = Path(sysconfig.get_path("purelib"))
    size = sum(
        file.lstat().st_size
        for file in packages.rglob("*")
        if file.is_file()
        and "__pycache__" not in file.parts
        and file.relative_to(packages).parts[0].partition("-")[0] not in ("pip", "setuptools")
    )
    assert size <= LARGEST, f"a base install has {size / 1e6:.0f} MB"
    print(f"The base install has {size / 1e6:.0f} MB.")


def check(folder: Path, base: bool = False) -> None:
    """Run the commands in a folder, as a user would."""

    def start(*command: str, **options: object) -> "subprocess.CompletedProcess[str]":
        inlink = [sys.executable, "-m", "inlink", *command]
        return subprocess.run(inlink, cwd=folder, stdout=subprocess.PIPE, text=True, **options)

    def run(*command: str) -> str:
        return start(*command, check=True).stdout

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
    run("rank", "web", "--algorithm", "harmonic", "--log2m", "6")
    run("fold", "web", "-o", "web-hosts", "--level", "host")
    run("rank", "web-hosts")
    hosts = run("top", "web-hosts", "-n", "5")
    assert "org.example.graphs" in hosts, hosts
    run("export", "web", "-o", "web.tsv.zst")
    run("build", "web.tsv.zst", "-o", "web-again")
    run("export", "web-hosts", "-o", "web-hosts.graphml")
    assert (folder / "web-hosts.graphml").exists()
    if base:
        refused = start("export", "web", "-o", "web.parquet", stderr=subprocess.PIPE)
        assert refused.returncode == 2, refused
        assert refused.stderr.endswith("Parquet needs pyarrow: pip install 'inlink[arrow]'\n"), refused
        assert len(refused.stderr.splitlines()) == 1, refused
        assert not (folder / "web.parquet").exists()
    if "--graphs" in sys.argv[1:]:
        return

    crawl = [sys.executable, "-c", CRAWL]
    subprocess.run(crawl, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    shown = run("crawl-info", "again")
    assert "crawled" in shown, shown
    url = "https://www.graphs0.example.org/"
    assert url in run("page", "again", url)
    assert url in run("find", "again", "graphs0")
    assert run("links", "again", url)
    run("rank", "again")
    assert run("top", "again", "-n", "5")
    (folder / "seeds.txt").write_text("https://www.example.net/new\n")
    run("seed", "again", "seeds.txt")
    assert "https://www.example.net/new" in run("next", "again", "--peek")
    run("why", "again", "https://www.example.net/new")
    assert "https://www.example.net/new" in run("next", "again")


def main() -> None:
    base = "--base" in sys.argv[1:]
    if base:
        check_base()
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder), base)
    print("inlink is installed, and its figures hold.")


if __name__ == "__main__":
    main()
