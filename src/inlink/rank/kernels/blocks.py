"""Long work in blocks of sources, on threads that each have their own arrays.

A thread does one block without a pause, so the length of a block is the time that Ctrl-C may wait. Blocks depend only
on the graph, and their results come in the order of the blocks. So sums of them have the same bits with any number of
threads.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["each_block"]

S = TypeVar("S")
R = TypeVar("R")


def each_block(
    blocks: int, threads: int, scratch: Callable[[], S], work: Callable[[S, int], R]
) -> Iterator[R]:
    """Call ``work(scratch, block)`` for the blocks 0, 1, …, and yield the results in this order.

    Parameters
    ----------
    blocks : int
        Number of blocks.
    threads : int
        Number of threads; 1 works in the calling thread.
    scratch : callable
        Makes the arrays of one thread, at its first block.
    work : callable
        Does one block. Two simultaneous calls never get the same scratch.

    Notes
    -----
    At most 2 · ``threads`` results wait to be taken. When the caller stops early, or an error or Ctrl-C
    ends it, blocks that were not begun are dropped and those under way are waited for.
    """
    if min(threads, blocks) <= 1:
        own = scratch() if blocks else None
        for block in range(blocks):
            yield work(own, block)  # type: ignore[arg-type]
        return
    mine = threading.local()

    def run(block: int) -> R:
        if not hasattr(mine, "scratch"):
            mine.scratch = scratch()
        return work(mine.scratch, block)

    pool = ThreadPoolExecutor(min(threads, blocks))
    try:
        waiting: deque[Future[R]] = deque()
        for block in range(blocks):
            waiting.append(pool.submit(run, block))
            if len(waiting) >= 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
