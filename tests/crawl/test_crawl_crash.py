"""A crawl that is killed loses no change whose call has returned. The tests kill real processes."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from crawlstrategies import Clock, opened, stored_pages
from goldencrawl import GOLDEN
from inlink.errors import InUseError, StoreError
from inlink.store import log as logs
from inlink.store import urls as urls_module
from inlink.store.events import Events
from inlink.store.reader import known_pages
from patience import finish, wait_until
from storefolders import look_up

pytestmark = pytest.mark.slow

ROUNDS = 4


def links_of(url: str) -> list[str]:
    """The links of a page of this web, which depend only on its URL."""
    rng = random.Random(url)
    links = [f"http://h{rng.randrange(20)}.com/{rng.randrange(4000)}" for _ in range(rng.randrange(12))]
    return links * (200 if rng.random() < 0.05 else 1)  # some frames are long


CHILD = """
    import json, random, signal, resource, sys
    from inlink.crawl.crawl import Crawl
    from inlink.crawl.view import CrawlView
    from inlink.errors import StoreError
    from inlink.frontier.settings import Politeness
    from test_crawl_crash import links_of

    folder, seed, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)

    def say(*what):
        print(json.dumps(what), flush=True)

    polite = Politeness(delay=0.0, in_flight=10_000)
    crawl = Crawl(folder, policy="first-come", politeness=polite, lease_seconds=1e6)
    say("open", crawl.recovered)
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    out = []
    try:
        for number in range(100_000):
            kind = rng.random()
            if kind < 0.2 or not number:
                urls = [f"http://s.com/{seed}/{number}/{k}" for k in range(rng.randrange(1, 4))]
                crawl.seed(urls)
                say("seed", urls)
            elif kind < 0.5 or not out:
                leases = crawl.next(rng.randrange(1, 20))
                out += leases
                say("next", [(lease.url, lease.number) for lease in leases])
            else:
                lease = out.pop(rng.randrange(len(out)))
                say("crawling", lease.url)
                crawl.crawled(lease, links_of(lease.url))
                say("crawled", lease.url)
    except StoreError as error:
        say("error", str(error))
        try:
            crawl.seed(["http://more.com/"])
        except StoreError as again:
            say("error", str(again))
        known = lease.url if kind >= 0.5 and number else urls[0]
        view = CrawlView.open(sys.argv[1])  # the crawl itself refuses to be used any more
        say("page", [view.page(url) is not None for url in links_of(known)])
        crawl.close()
        say("closed")
"""

READER = """
    import pathlib, sys, time
    from inlink.crawl.folder import look
    from inlink.errors import FolderError
    from inlink.store.reader import known_pages

    folder, stop = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    reader, before, rounds, looks = None, (0, 0, 0, 0), 0, 0
    while rounds < 30 or not stop.exists():  # so often at least, on however busy a machine
        if reader is None:
            if not (folder / "events.log").exists():
                time.sleep(0.02)
                continue
            reader = known_pages(folder)
        reader.refresh()
        pages, places = reader.crawled()
        now = (reader.num_pages, reader.tally.events, reader.frames.end, len(pages))
        assert all(one >= other for one, other in zip(now, before)), (before, now)
        assert not len(pages) or (pages.max() < reader.num_pages and places.max() < reader.frames.end)
        before, rounds = now, rounds + 1
        if rounds % 10 == 0:
            seen = look(folder)
            assert seen.pages.num_pages >= before[0]
            seen.pages.close()
            looks += 1
        time.sleep(0.01)
    print(rounds, looks, *before)
"""


def started(code: str, *arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


WARM = """
    import sys, time
    from inlink.crawl.crawl import Crawl
    from inlink.crawl.folder import look
    from inlink.frontier.settings import Politeness
    from inlink.store.reader import known_pages
    from test_crawl_crash import links_of

    for turn in range(3):
        with Crawl(sys.argv[1], policy="first-come", politeness=Politeness(delay=0.0, in_flight=99)) as crawl:
            crawl.seed([f"http://s.com/{turn}/{k}" for k in range(9)])
            reader = known_pages(sys.argv[1])
            for lease in crawl.next(5):
                crawl.crawled(lease, links_of(lease.url))
            reader.refresh()
            crawl.page("http://s.com/0/0"), reader.crawled()
            reader.close()
        look(sys.argv[1]).pages.close()
"""


@pytest.fixture(scope="module", autouse=True)
def _warm(tmp_path_factory):
    """Kernels are compiled and cached before any child is hurried, or has no room to write them to.

    By a process of its own: in this one, kernels that other tests had compiled for other arrays would do.
    """
    if os.environ.get("INLINK_MACHINE_CODE", "off") not in ("", "off"):
        return
    child = started(WARM, tmp_path_factory.mktemp("warm") / "c")
    _, error = child.communicate()
    assert child.returncode == 0, error


class Told:
    """All that was acknowledged."""

    def __init__(self):
        self.seeds, self.crawled, self.leased = set(), set(), {}
        self.unsure, self.calls = set(), 0

    def hear(self, lines):
        for line in lines:
            if not line.endswith("\n"):
                break  # the pipe's end
            what, *rest = json.loads(line)
            self.calls += what in ("seed", "next", "crawled")
            if what == "seed":
                self.seeds |= set(rest[0])
            elif what == "next":
                self.leased.update(rest[0])
            elif what == "crawling":
                self.unsure.add(rest[0])
            elif what == "crawled":
                self.crawled.add(rest[0])

    def check(self, folder):
        """All that was acknowledged is there, and nothing is there by halves."""
        with opened(folder, Clock(time.time()), policy="first-come", lease_seconds=1e6) as crawl:
            pages = stored_pages(crawl)
            numbers = {pages.url(page): page for page in range(pages.num_pages)}
            assert len(numbers) == pages.num_pages
            assert self.seeds <= set(numbers)
            rows = {pages.url(page) for page in pages.crawled()[0].tolist()}
            assert self.crawled <= rows <= self.crawled | self.unsure
            known = {url for url in numbers if url.startswith("http://s.com/")}
            for url in rows:
                links = sorted({numbers[link] for link in links_of(url)})
                assert pages.links(numbers[url]).tolist() == links
                known |= set(links_of(url))
            assert set(numbers) == known
            leases = crawl._frontier.leases
            for url, number in self.leased.items():
                if url not in rows:
                    lease = leases.current(numbers[url])
                    assert lease is not None
                    assert lease.number == number
                    assert crawl.page(url).state == "leased"
            assert "\n" not in crawl.recovered
            return crawl.recovered


def test_killed_many_times_nothing_is_lost(tmp_path):
    """SIGKILL at any moment, again and again, while another process looks on."""
    folder, rng, told, cut = tmp_path / "c", random.Random(11), Told(), 0
    looking = started(READER, folder, tmp_path / "stop")
    try:
        for number in range(ROUNDS):
            child = started(CHILD, folder, number, 0)
            lines = []
            if number % 4 == 3:
                time.sleep(rng.random() * 1.2)  # while it starts, perhaps
            else:
                lines += [child.stdout.readline() for _ in range(1 + int(rng.random() ** 2 * 300))]
            child.send_signal(signal.SIGKILL)
            lines += child.stdout.readlines()
            error = child.stderr.read()
            child.stdout.close()
            child.stderr.close()
            assert child.wait() == -signal.SIGKILL, error
            told.hear(lines)
            if (folder / "header.json").exists():
                cut += "cut off" in told.check(folder)
    finally:
        (tmp_path / "stop").touch()
        seen, error = finish(looking)
    assert looking.returncode == 0, error
    rounds, looks, pages, events, _, _ = map(int, seen.split())
    assert rounds > 10
    assert looks > 1
    assert events > 10
    assert told.calls > 100
    assert len(told.crawled) > 25
    with opened(folder, Clock()) as crawl:
        assert crawl.view.info().pages >= pages
        assert crawl.view.info().events >= events


def test_a_second_writer_is_told_who_is_the_first(tmp_path):
    child = started(CHILD, tmp_path / "c", 1, 0)
    try:
        child.stdout.readline()
        with pytest.raises(InUseError, match=rf"by process {child.pid}:"):
            opened(tmp_path / "c", Clock())
    finally:
        child.kill()
        child.communicate()
    mine = opened(tmp_path / "c", Clock())  # the dead hold nothing
    with pytest.raises(InUseError, match=rf"by process {os.getpid()}:"):
        opened(tmp_path / "c", Clock())
    mine.close()
    opened(tmp_path / "c", Clock()).close()


@pytest.mark.parametrize("limit", [6_000, pytest.param(50_000, marks=pytest.mark.soak), 200_001])
def test_a_full_disk_keeps_all_before(tmp_path, limit):
    """The child may not let a file grow beyond a limit: what fails is told in one line, what was before stays."""
    # Machine code that is not in the cache cannot be put there under the limit.
    look_up(GOLDEN, 0)
    child, told = started(CHILD, tmp_path / "c", 3, limit), Told()
    output, error = finish(child)
    assert child.returncode == 0, error
    lines = output.splitlines(keepends=True)
    told.hear(lines)
    errors = [rest[0] for what, *rest in map(json.loads, lines) if what == "error"]
    assert len(errors) == 2  # it stays stopped
    assert errors[0] == errors[1]
    assert "\n" not in errors[0]
    assert "cannot be written" in errors[0]
    assert json.loads(lines[-1]) == ["closed"]
    sizes = [(tmp_path / "c" / name).stat().st_size for name in (logs.URLS, logs.EVENTS)]
    assert max(sizes) <= limit
    assert "cut off" not in told.check(tmp_path / "c")  # what was half written is gone already
    assert told.calls > 5
    with opened(tmp_path / "c", Clock()) as crawl:  # and with room again it goes on
        assert crawl.seed(["http://more.com/"]) == 1


class PowerCut:
    """The files of the log whenever something is about to be synced, and how much of both is safe by then."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.safe, self.acknowledged = folder, {logs.URLS: 0, logs.EVENTS: 0}, 0
        self.moments: list[tuple[dict[str, bytes], dict[str, int], int]] = []
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self.syncing(getattr(os, name)))

    def syncing(self, real):
        def sync(file):
            try:
                number = file if isinstance(file, int) else file.fileno()
                path = Path(f"/proc/self/fd/{number}").readlink()
            except OSError:
                path = Path()
            if path.parent == self.folder and path.name in self.safe:
                files = {name: (self.folder / name).read_bytes() for name in (*self.safe, logs.END)}
                self.moments.append((files, dict(self.safe), self.acknowledged))
                self.safe[path.name] = len(files[path.name])
            real(file)

        return sync


def damaged(raw: bytes, safe: int, rng: random.Random) -> bytes:
    """A file as a power cut may leave it, if its first ``safe`` bytes are safe."""
    at = rng.randint(safe, len(raw))
    tail = len(raw) - at
    return raw[:at] + rng.choice(
        [b"", b"\0" * tail, rng.randbytes(tail), b"\0" * 100, raw[at : at + tail // 2]]
    )


def random_crawl(crawl, clock, rng, cut, steps):
    for number in range(steps):
        kind = rng.random()
        if kind < 0.3 or not number:
            crawl.seed([f"http://s.com/{rng.randrange(10**6)}" for _ in range(3)])
        else:
            for lease in crawl.next(2):
                cut.acknowledged = crawl.view.info().event_bytes
                crawl.crawled(lease, links_of(lease.url)[:50])
        cut.acknowledged = crawl.view.info().event_bytes
        clock.now += 1


@pytest.mark.parametrize("sync", ["full", "second"])
def test_a_power_cut(tmp_path, monkeypatch, sync):
    """Bytes after the last sync are cut, zeroed or garbled: with "full" no acknowledged change is lost."""
    monkeypatch.setattr(logs, "SYNC_EVERY", 0.005)
    folder, clock, rng = tmp_path / "c", Clock(), random.Random(4)
    cut = PowerCut(folder, monkeypatch)
    crawl = opened(folder, clock, sync=sync, policy="first-come")
    random_crawl(crawl, clock, rng, cut, 60)
    if sync == "second":
        wait_until(lambda: len(cut.moments) > 2, "the log to be synced")
    # Until the crawl is closed, a thread may append a mark of a sync.
    crawl.close()
    final = (folder / logs.EVENTS).read_bytes()
    monkeypatch.undo()
    assert len(cut.moments) > (100 if sync == "full" else 2)
    lost = 0
    for files, safe, acknowledged in [rng.choice(cut.moments) for _ in range(25)]:
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        for name, raw in files.items():
            whole = name == logs.END and rng.random() < 0.7
            (copy / name).write_bytes(raw if whole else damaged(raw, safe.get(name, 0), rng))
        with opened(copy, clock, policy="first-come") as crawl:
            raw = (copy / logs.EVENTS).read_bytes()
            last = next(reversed(list(Events(np.frombuffer(raw, np.uint8)))), None)
            # Opening renews the leases that are open: nothing expires while a crawl is down.
            end = last.place if last is not None and last.kind == "renewed" else len(raw)
            assert len(raw) == crawl.view.info().event_bytes
            assert raw[:end] == final[:end]  # a prefix, and nothing else
            assert (copy / logs.URLS).stat().st_size == stored_pages(crawl).tally.url_bytes
            if sync == "full":
                assert end >= acknowledged
            lost += end < len(files[logs.EVENTS])
            before = crawl.view.info().pages
            assert crawl.seed(["http://after.com/"]) == 1
            assert stored_pages(crawl).table.find(["http://after.com/"]).tolist() == [before]
        with opened(copy, clock, policy="first-come") as crawl:
            assert crawl.page("http://after.com/").state == "discovered"
            assert "cut off" not in crawl.recovered
        shutil.rmtree(copy)
    assert lost > 3  # or nothing was tried


def test_a_file_that_shrinks_under_a_reader_does_not_kill_it(tmp_path):
    """A writer died within a long frame; a reader maps it; the next writer cuts it off; the reader looks again."""
    code = """
        import sys
        from pathlib import Path
        from crawlstrategies import Clock, opened, stored_pages
        from inlink.store.format import GIVEN, HEAD_SIZE
        from inlink.store.reader import known_pages
        from storefolders import later_log

        folder = Path(sys.argv[1])
        with opened(folder, Clock()) as crawl:
            crawl.seed(["http://a.com/"])
        # The log shall end where a page of memory does: behind it, nothing is mapped. Closing appends a head.
        log = later_log(folder)
        log.append(GIVEN, 0.0, 0, payload=b"x" * (4096 - 2 * HEAD_SIZE - log.events_end % 4096), first=1)
        log.close()
        assert (folder / "events.log").stat().st_size % 4096 == 0
        with (folder / "events.log").open("ab") as file:
            file.write((100_000).to_bytes(4, "little") + bytes(50_000))
        with (folder / "urls.txt").open("ab") as file:
            file.write(b"http://a.com/" + b"x" * 50_000)
        reader = known_pages(folder)
        with opened(folder, Clock()) as crawl:
            reader.refresh()
            crawl.seed(["http://b.com/"])
            reader.refresh()
        assert (reader.num_pages, reader.tally.events) == (2, 4)
        reader.close()
    """
    child = started(code, tmp_path / "c")
    _, error = finish(child)
    assert child.returncode == 0, (child.returncode, error)


def test_an_index_of_a_crawl_that_broke_is_not_believed(tmp_path, monkeypatch):
    """URLs that were numbered but could not be written must not come back by way of the index."""
    if hasattr(urls_module, "_FEW"):
        monkeypatch.setattr(urls_module, "_FEW", 1)
    crawl = opened(tmp_path / "c", Clock())
    crawl.seed(["http://a.com/", "http://b.com/"])
    monkeypatch.setattr(
        logs, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(StoreError, match="free some space and open the crawl again"):
        crawl.seed(["http://lost.com/1", "http://lost.com/2"])
    crawl.close()
    monkeypatch.undo()
    crawl = opened(tmp_path / "c", Clock())
    assert stored_pages(crawl).table.find(["http://lost.com/1"])[0] == np.uint32(0xFFFFFFFF)
    crawl.seed(["http://c.com/", "http://d.com/", "http://e.com/"])
    reader = known_pages(tmp_path / "c")  # as if the crawl were killed here
    assert reader.table.find([f"http://{k}.com/" for k in "abcde"]).tolist() == [0, 1, 2, 3, 4]
    reader.close()
    crawl.close()
