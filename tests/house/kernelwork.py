"""Calls some kernels on fixed input, for `test_instructions.py`, which counts their instructions."""

import gzip
import io
import tempfile

import inlink
from archives import anchors, wat_json, wat_record
from inlink.archives.batches import archive_batches
from inlink.protocol import Link


def links(turn: int) -> list[str]:
    return [f"https://h{(7 * turn + k) % 50}.org/p/{37 * turn * k % 5000}/x{k}" for k in range(30)] + [
        "/a",
        "b?c=d",
    ] * 2


def main() -> None:
    now = [1e9]
    with (
        tempfile.TemporaryDirectory() as folder,
        inlink.Crawl(f"{folder}/crawl", clock=lambda: now[0], rerank_share=None) as crawl,
    ):
        crawl.seed([f"https://h{k}.org/" for k in range(30)])
        for turn in range(30):
            now[0] += 10
            (lease,) = crawl.next(1)
            out = (
                [Link(url, text=f"text {turn}", place="main") for url in links(turn)]
                if turn % 2
                else links(turn)
            )
            crawl.crawled(lease, out)
    arcs = [(node, (node * step + step) % 3000) for node in range(3000) for step in (1, 7, 31, 101)]
    inlink.pagerank(inlink.Graph.from_arcs(arcs), threads=1)
    # The links of some pages differ in their last letters only.
    ids = [f"http://www.archive.org/iathreads/post-view.php?id=2{k:06}" for k in range(300)]
    archive = b"".join(
        gzip.compress(
            wat_record(
                wat_json(f"http://www.site{k % 7}.com/{k}", anchors(*(ids if k % 10 == 9 else links(k))))
            )
        )
        for k in range(30)
    )
    for level in ("host", "page"):
        list(archive_batches(io.BytesIO(archive), name="a.wat", level=level, repeats=False))


if __name__ == "__main__":
    main()
