"""Calls some kernels on fixed input, for `test_instructions.py`, which counts their instructions."""

import ctypes
import gzip
import io
import mmap
import tempfile

import inlink
from archives import anchors, wat_json, wat_record
from inlink.archives.batches import archive_batches
from inlink.protocol import Link

# Valgrind's client request on x86-64: a sequence of instructions without effect, which only Valgrind knows
# ("The Client Request mechanism" in its manual; valgrind.h, callgrind.h).
_REQUEST = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")
_START_INSTRUMENTATION = (ord("C") << 24 | ord("T") << 16) + 4


def start_counting() -> None:
    """Tell Callgrind to begin. It makes programs fifty times slower, and imports would take most of the time."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(_REQUEST)
    code, arguments = ctypes.c_char.from_buffer(page), (ctypes.c_uint64 * 6)(_START_INSTRUMENTATION)
    ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(ctypes.addressof(code))(ctypes.addressof(arguments))


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
    # The first time imports modules.
    main()
    start_counting()
    main()
