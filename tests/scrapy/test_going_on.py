"""A crawl that goes on has the rules and permissions that it had, and never throws its queue away."""

import json
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from crawlcommand import Done, inlink
from inlink import Crawl
from inlink.crawl.permissions import FILE, Kept, Permissions, keep, kept, refuse_losses
from inlink.crawl.settings import choose
from inlink.errors import FolderError, ParameterError
from inlink.store import backup
from sites import Site, html
from spiderruns import pages_of

PAGES = 60


def files(folder: Path) -> dict[str, bytes]:
    """The content of each file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def states(folder: Path) -> list[tuple[str, str]]:
    return sorted((page.state, page.error or "") for page in pages_of(folder).values())


def count(folder: Path, state: str) -> int:
    return sum(1 for found, _ in states(folder) if found == state)


def run(*given: object, quiet: bool = False, **more: Any) -> Done:
    """``inlink crawl`` without an address that is allowed by an option."""
    return inlink(*(["-q"] if quiet else []), "crawl", *given, **more)


def web(count: int = PAGES) -> dict[str, object]:
    """A site of pages that link to six others each."""
    return {
        "/": html(*(f"/p{j}" for j in range(15))),
        **{f"/p{i}": html(*(f"/p{(7 * i + j) % count}" for j in range(6))) for i in range(count)},
    }


# -- permissions ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_crawl_goes_on_where_its_url_was_typed(tmp_path):
    """Two and three calls in a row, without the URL."""
    pytest.importorskip("scrapy")
    with Site(web()) as site:
        run(f"{site.root}/", "--delay", 0, "--pages", 10, "-o", "q", cwd=tmp_path)
        second = run("-o", "q", "--pages", 40, cwd=tmp_path)
        assert count(tmp_path / "q", "crawled") == 40
        assert second.stderr.splitlines()[0] == (
            "crawl: q: also fetches 127.0.0.1, as permitted by an earlier run; --reset-addresses takes this back"
        )
        assert "also fetches" not in run("-o", "q", "--pages", 45, cwd=tmp_path, quiet=True).stderr
        run("-o", "q", cwd=tmp_path)
        assert states(tmp_path / "q") == [("crawled", "")] * (PAGES + 1)
    lines = inlink("crawl-info", "q", cwd=tmp_path).stdout.splitlines()
    assert "addresses          public, 127.0.0.1" in lines
    found = json.loads(inlink("crawl-info", "q", "--json", cwd=tmp_path).stdout)
    assert found["addresses"]["permissions"]["hosts"] == {"127.0.0.1": "127.0.0.1"}
    assert found["addresses"]["hold"]


@pytest.mark.slow
def test_a_copy_is_refused_until_the_permission_is_given_again(tmp_path):
    pytest.importorskip("scrapy")
    with Site(web()) as site:
        run(f"{site.root}/", "--delay", 0, "--pages", 10, "-o", "q", cwd=tmp_path)
        shutil.copytree(tmp_path / "q", tmp_path / "copy")
        before, asked = files(tmp_path / "copy"), len(site.asked)
        for _ in range(2):
            done = run("-o", "copy", "--warc", "w.warc.gz", cwd=tmp_path, code=2)
            assert "waiting pages: address not allowed: 127.0.0.1 (" in done.stderr
            assert "Nothing was fetched or changed" in done.stderr
            assert "the folder is a copy, a restored backup or another user's" in done.stderr
            assert done.stderr.count("\n") == 1
        assert files(tmp_path / "copy") == before
        assert len(site.asked) == asked
        assert not (tmp_path / "w.warc.gz").exists()
        run("-o", "copy", "--allow-address", "127.0.0.1", "--pages", 20, cwd=tmp_path)
        run("-o", "copy", "--pages", 30, cwd=tmp_path)
        run(f"{site.root}/", "-o", "copy", cwd=tmp_path)
        assert states(tmp_path / "copy") == [("crawled", "")] * (PAGES + 1)


@pytest.mark.slow
def test_permissions_are_taken_back(tmp_path):
    pytest.importorskip("scrapy")
    with Site(web()) as site:
        run(f"{site.root}/", "--delay", 0, "--pages", 10, "-o", "q", cwd=tmp_path)
        before = files(tmp_path / "q")
        asked = len(site.asked)
        done = run("-o", "q", "--reset-addresses", cwd=tmp_path, code=2)
        assert "permit 127.0.0.1 by its URL, --allow-address or --allow-private" in done.stderr
        assert "To exclude these pages, give --apply-rules" in done.stderr
        assert files(tmp_path / "q") == before
        # One permission in place of another one.
        run("-o", "q", "--reset-addresses", "--allow-address", "127.0.0.0/8", "--pages", 11, cwd=tmp_path)
        assert kept(tmp_path / "q") == Kept(Permissions(allow=("127.0.0.0/8",)), True)
        waiting = count(tmp_path / "q", "discovered")
        asked = len(site.asked)
        run("-o", "q", "--reset-addresses", "--apply-rules", cwd=tmp_path, code=1)
        assert len(site.asked) == asked
        assert kept(tmp_path / "q") == Kept(Permissions(), True)
        assert count(tmp_path / "q", "excluded") == waiting
        with Crawl(tmp_path / "q") as crawl:
            assert crawl.reload("excluded") == waiting
        run(f"{site.root}/", "-o", "q", cwd=tmp_path)
        assert states(tmp_path / "q") == [("crawled", "")] * (PAGES + 1)


@pytest.mark.slow
def test_ports_schemes_and_sites_stay_permitted(tmp_path):
    pytest.importorskip("scrapy")
    with Site({"/": html("/b"), "/b": ""}) as other, Site({}, hosts=3) as site:
        links = (
            f"{other.root}/",
            f"https://127.0.0.1:{site.port}/s",
            site.url("/two", 2),
            site.url("/three", 3),
        )
        site.pages = {"/": html(*links), "/two": "", "/three": ""}
        begin = (
            f"{site.root}/",
            "--everywhere",
            "--allow-address",
            "127.0.0.2",
            "--deny-address",
            "127.0.0.3",
        )
        more = ("--delay", 0, "--set", "max_retries=0", "--pages")
        run(*begin, *more, 1, "-o", "c", cwd=tmp_path)
        assert count(tmp_path / "c", "discovered") == 4
        run("-o", "c", "--pages", 2, cwd=tmp_path)
        run("-o", "c", cwd=tmp_path)
        found = {url: (page.state, page.error or "") for url, page in pages_of(tmp_path / "c").items()}
        assert found.pop(links[1])[0] == "failed"
        assert found == {
            f"{site.root}/": ("crawled", ""),
            links[0]: ("crawled", ""),
            f"{other.root}/b": ("crawled", ""),
            links[2]: ("crawled", ""),
            links[3]: ("excluded", "address not allowed: 127.0.0.3"),
        }
        assert kept(tmp_path / "c") == Kept(
            Permissions(hosts={"127.0.0.1": "127.0.0.1"}, allow=("127.0.0.2",), deny=("127.0.0.3",)), True
        )


@pytest.mark.slow
def test_all_addresses_and_the_limits_of_sites_are_kept(tmp_path):
    pytest.importorskip("scrapy")
    with Site({"/": html("/a", "/deny"), "/a": html("/deep"), "/deny": "", "/deep": ""}, hosts=2) as site:
        site.pages["/"] = html("/a", "/deny", site.url("/a", 2))
        limits = ("--allow-private", "--host", "--deny", "/deny$", "--depth", 1, "--delay", 0)
        run(f"{site.root}/", "-o", "c", *limits, "--pages", 1, cwd=tmp_path)
        run("-o", "c", cwd=tmp_path)
        done = run("-o", "c", cwd=tmp_path)
        assert "also fetches all addresses, as permitted" in done.stderr
        assert {url for url, page in pages_of(tmp_path / "c").items() if page.state == "crawled"} == {
            f"{site.root}/", f"{site.root}/a",
        }  # fmt: skip
        assert {path for path in site.paths() if path != "/"} == {"/a"}


NEEDED = Permissions(hosts={"127.0.0.1": "127.0.0.1"}, allow=("10.1.0.0/16",))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A crawl with a permission that holds."""
    with Crawl(tmp_path / "c") as crawl:
        crawl.seed([f"http://127.0.0.1/{k}" for k in range(20)])
    keep(tmp_path / "c", NEEDED)
    assert kept(tmp_path / "c") == Kept(NEEDED, True)
    return tmp_path / "c"


def unpacked(folder: Path) -> Path:
    with tarfile.open(folder.with_name("c.tar"), "w") as file:
        file.add(folder, "d")
    with tarfile.open(folder.with_name("c.tar")) as file:
        file.extractall(folder.parent, filter="data")
    return folder.with_name("d")


def restored(folder: Path) -> Path:
    """The same path, times and perhaps inodes."""
    shutil.copytree(folder, folder.with_name("b"))
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("b"), folder)
    return folder


def restored_in_place(folder: Path) -> Path:
    """The same inodes and times."""
    stamp = (folder / FILE).stat()
    (folder / FILE).write_bytes((folder / FILE).read_bytes())
    os.utime(folder / FILE, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    return folder


def widened(folder: Path) -> Path:
    (folder / FILE).write_bytes((folder / FILE).read_bytes().replace(b"10.1.0.0/16", b"10.0.0.0/8 "))
    return folder


def hard_linked(folder: Path) -> Path:
    shutil.copytree(folder, folder.with_name("l"), copy_function=os.link)
    return folder.with_name("l")


def backed_up(folder: Path) -> Path:
    backup.backup(folder, folder.with_name("s"))
    return folder.with_name("s")


COPIES = [
    unpacked, restored, restored_in_place, widened, hard_linked, backed_up,
    lambda folder: shutil.copytree(folder, folder.with_name("d")),
]  # fmt: skip


@pytest.mark.parametrize("copied", COPIES)
def test_permissions_do_not_hold_in_a_copy(folder, copied):
    there = copied(folder)
    found = kept(there)
    assert found is not None
    assert not found.hold
    if copied is not widened:
        assert found.permissions == NEEDED
    # They hold once they are given there.
    keep(there, NEEDED)
    assert kept(there) == Kept(NEEDED, True)


def test_permissions_hold_in_a_folder_that_was_moved(folder):
    folder.rename(folder.with_name("moved"))
    assert kept(folder.with_name("moved")) == Kept(NEEDED, True)


def test_permissions_do_not_hold_for_another_user(folder, monkeypatch):
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert kept(folder) == Kept(NEEDED, False)
    # Not even if that user gives them: the folder's owner may change the queue.
    keep(folder, NEEDED)
    assert kept(folder) == Kept(NEEDED, False)


def test_permissions_do_not_hold_without_the_users_note(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert kept(folder) == Kept(NEEDED, False)


def test_permissions_of_another_crawl_do_not_hold(folder, tmp_path):
    with Crawl(tmp_path / "mine"):
        pass
    (folder / FILE).rename(tmp_path / "mine" / FILE)
    assert kept(tmp_path / "mine") == Kept(NEEDED, False)


def test_a_note_that_cannot_be_written_is_told(tmp_path, monkeypatch, caplog):
    with Crawl(tmp_path / "c"):
        pass
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    keep(tmp_path / "c", NEEDED)
    assert caplog.messages[0].startswith(
        "the next run must be permitted again to fetch 127.0.0.1, 10.1.0.0/16"
    )
    assert kept(tmp_path / "c") == Kept(NEEDED, False)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"hosts": 7}', '{"allow": ["ten"]}', '{"more": 1}', "[" * 99_999]
)
def test_permissions_that_cannot_be_read(folder, text):
    (folder / FILE).write_text(text)
    with pytest.raises(FolderError, match=r"addresses\.json cannot be read .*: remove it, and permit"):
        kept(folder)


def test_hosts_are_kept_at_their_first_look_up():
    pytest.importorskip("scrapy")
    from inlink.scrapy.addresses import AddressGuard
    from inlink.urls.addresses import AddressRules

    seen: list[tuple[str, str]] = []
    rules = AddressRules(deny=["10.9.0.0/16"])
    guard = AddressGuard(rules, {"a.test", "b.test", "c.test"}, lambda *one: seen.append(one))
    for _ in range(2):
        guard.refusal("a.test", "10.0.0.1")
        guard.refusal("b.test", "8.8.8.8")
        guard.refusal("c.test", "10.9.0.1")
        guard.refusal("d.test", "10.0.0.1")
    assert seen == [("a.test", "10.0.0.1"), ("b.test", ""), ("c.test", "")]


# -- waiting pages ----------------------------------------------------------------------------------------------------


def waiting(folder: Path, urls: list[str], **settings: object) -> Path:
    with Crawl(folder, **settings) as crawl:
        crawl.seed(urls)
    return folder


def judge(folder: Path, permissions: Permissions = Permissions(private=True), **given: object) -> None:  # noqa: B008
    refuse_losses(folder, choose(folder, given), permissions)


def test_rules_that_refuse_up_to_a_tenth_of_the_waiting_pages_pass(tmp_path):
    folder = waiting(tmp_path / "c", [f"http://a.example/{k:02}" for k in range(50)])
    before = files(folder)
    judge(folder, rules={"deny": ["/0[0-4]$"]})
    with pytest.raises(ParameterError) as refused:
        judge(folder, rules={"deny": ["/0[0-4]$", "/49$"], "max_depth": 9})
    assert str(refused.value) == (
        f"{folder}: this run would exclude 6 of 50 waiting pages: denied by /0[0-4]$ (5); denied by /49$ (1). Nothing "
        "was fetched or changed. To exclude these pages, give --apply-rules"
    )
    assert files(folder) == before


@pytest.mark.slow
def test_at_most_ten_thousand_pages_are_judged_and_always_the_same(tmp_path, monkeypatch):
    folder = waiting(tmp_path / "c", [f"http://a.example/{k:05}" for k in range(12_000)])
    said = set()
    for _ in range(2):
        with pytest.raises(ParameterError) as refused:
            judge(folder, rules={"deny": ["[05]$"]})
        said.add(str(refused.value))
    (text,) = said
    share = float(text.partition("exclude about ")[2].partition("% of 12,000 waiting pages")[0])
    assert 18 < share < 22


def test_pages_that_the_last_run_refused_too_do_not_count(tmp_path):
    urls = [f"http://a.example/{k}" for k in range(9)]
    folder = waiting(tmp_path / "c", urls)
    with Crawl(folder, rules={"deny": ["/[0-4]$"]}):
        # The pages wait until their turn comes.
        pass
    judge(folder, rules={"deny": ["/[0-4]$", "/x$"]})
    judge(folder)
    with pytest.raises(ParameterError, match="exclude 1 of 9 waiting pages: denied by /5"):
        judge(folder, rules={"deny": ["/[0-4]$", "/5$"]})


def test_crawled_pages_count_where_pages_are_revisited(tmp_path):
    folder = tmp_path / "c"
    with Crawl(folder, politeness={"delay": 0}) as crawl:
        crawl.seed(["http://a.example/"])
        crawl.crawled(crawl.next(1)[0])
    judge(folder, rules={"hosts": ["b.example"]})
    with pytest.raises(ParameterError, match="exclude 1 of 1 waiting pages: outside the hosts and domains"):
        judge(folder, rules={"hosts": ["b.example"]}, revisit={"schedule": "FixedInterval", "seconds": 60})


def test_addresses_count_that_the_last_run_permitted(tmp_path):
    folder = waiting(tmp_path / "c", ["http://10.0.0.1/", "http://a.test/", "http://b.example/"])
    # The last run was no run of `inlink crawl`, and may have permitted all addresses.
    with pytest.raises(
        ParameterError, match=r"exclude 1 of 3 waiting pages: address not allowed: 10\.0\.0\.1"
    ):
        judge(folder, Permissions())
    keep(folder, Permissions())
    judge(folder, Permissions())
    keep(folder, Permissions(hosts={"a.test": "10.0.0.2"}, allow=("10.0.0.1",)))
    judge(folder, Permissions(hosts={"a.test": ""}, allow=("10.0.0.1",)))
    judge(folder, Permissions(allow=("10.0.0.0/24",)))
    with pytest.raises(ParameterError, match=r"permit a\.test by its URL"):
        judge(folder, Permissions(allow=("10.0.0.1",)))
    with pytest.raises(ParameterError, match=r"address not allowed: 10\.0\.0\.1 \(1\)"):
        judge(folder, Permissions(private=True, deny=("10.0.0.1",)))


@pytest.mark.slow
def test_a_command_that_would_lose_its_queue_changes_nothing(tmp_path):
    pytest.importorskip("scrapy")
    with Site(web()) as site:
        run(f"{site.root}/", "--delay", 0, "--pages", 10, "-o", "q", cwd=tmp_path)
        before, asked = files(tmp_path / "q"), len(site.asked)
        for option in (
            ("--deny", "/p[0-9]"),
            ("--allow", "/none"),
            ("--depth", 0),
            ("--domains", "a.example"),
        ):
            done = run("-o", "q", *option, "--items", "i.jsonl", cwd=tmp_path, code=2)
            assert "give --apply-rules" in done.stderr
            assert done.stdout == ""
        assert files(tmp_path / "q") == before
        assert len(site.asked) == asked
        assert [path.name for path in tmp_path.iterdir()] == ["q"]
        run("-o", "q", "--deny", "/p[0-9]", "--apply-rules", cwd=tmp_path)
        assert len(site.asked) == asked
        assert count(tmp_path / "q", "excluded") > 30
        # The crawl keeps its rules, and pages that a rule excluded return with another rule.
        run("-o", "q", cwd=tmp_path)
        run("-o", "q", "--set", "rules.deny=/none", cwd=tmp_path)
        assert states(tmp_path / "q") == [("crawled", "")] * (PAGES + 1)


@pytest.mark.slow
def test_a_project_that_would_lose_its_queue_is_refused(tmp_path):
    pytest.importorskip("scrapy")
    from spiderruns import Walker, crawl

    with Site(web()) as site:
        folder = tmp_path / "c"
        crawl(Walker, folder, site, CLOSESPIDER_PAGECOUNT=5)
        before, asked = files(folder), len(site.asked)
        for given in ({"INLINK_RULES": {"deny": ["/p[0-9]"]}}, {"INLINK_ALLOW_PRIVATE": False}):
            ran = crawl(Walker, folder, site, **given)
            assert ran.reason == "inlink_refused"
            assert ran.told("ERROR")[0].endswith("To exclude these pages, set INLINK_APPLY_RULES = True")
            assert files(folder) == before
        assert len(site.asked) == asked
        crawl(Walker, folder, site, INLINK_RULES={"deny": ["/p[0-9]"]}, INLINK_APPLY_RULES=True)
        assert len(site.asked) == asked
        assert count(folder, "excluded") > 5


@pytest.mark.slow
def test_a_project_that_permits_few_addresses_goes_on(tmp_path):
    """Its permissions do not hold for ``inlink crawl``."""
    pytest.importorskip("scrapy")
    from spiderruns import Walker, crawl

    given = {"INLINK_ALLOW_PRIVATE": False, "INLINK_ALLOW_ADDRESSES": "127.0.0.1"}
    with Site(web()) as site:
        folder = tmp_path / "c"
        crawl(Walker, folder, site, CLOSESPIDER_PAGECOUNT=5, **given)
        assert crawl(Walker, folder, site, **given).reason == "finished"
        assert kept(folder) == Kept(Permissions(allow=("127.0.0.1",)), False)
        assert count(folder, "crawled") == PAGES + 1
