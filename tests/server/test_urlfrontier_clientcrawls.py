"""Crawls that clients of URLFrontier make and delete."""

import random
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner

import inlink
from frontiered import Client, frontier
from inlink.cli import commands
from inlink.errors import OutputError, ParameterError
from inlink.server import clientcrawls, run
from inlink.server.tokens import Tokens
from patience import PATIENCE

OK, SKIPPED, FAIL = 0, 1, 2
URL = "http://a.example/"


def code_of(call, *given, **named) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        call(*given, **named)
    return caught.value.code().name


def entries(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_crawl_is_made_used_found_again_and_deleted(tmp_path):
    folder = tmp_path / "clients"
    with frontier(clients=folder) as client:
        assert list(client.ask("ListCrawls").values) == []
        assert client.ask("GetActive").state
        assert client.put(client.discovered(URL, crawl="a"), client.discovered(URL)) == [(URL, OK)] * 2
        assert client.put_batch(client.info(URL, crawl="a"), client.info(URL, crawl="b")) == [SKIPPED, OK]
        assert sorted(client.ask("ListCrawls").values) == ["DEFAULT", "a", "b"]
        assert client.ask("GetStats").crawlID == "DEFAULT"
        assert [info.crawlID for info in client.ask("GetURLs", crawlID="a")] == ["a"]
    assert entries(folder) == ["DEFAULT", "a", "b"]
    result = CliRunner().invoke(commands, ["-q", "find", str(folder / "b"), "a.example"])
    assert URL in result.output
    with frontier(clients=folder) as client:
        assert client.ask("GetStats", crawlID="a").inProcess == 1
        assert client.ask("DeleteCrawl", value="a").value == 1
        assert client.ask("DeleteCrawl", value="a").value == 0
        assert entries(folder) == ["DEFAULT", "b"]
        # The deleted crawl is forgotten: its URL is new in the next crawl of that name.
        assert client.put(client.discovered(URL, crawl="a")) == [(URL, OK)]
        assert client.ask("DeleteCrawl").value == 1
    assert entries(folder) == ["a", "b"]


def test_calls_on_a_crawl_that_nobody_has_made(tmp_path):
    with frontier(clients=tmp_path / "clients") as client:
        stats = client.ask("GetStats", crawlID="none")
        assert (stats.crawlID, stats.size, stats.inProcess, stats.numberOfQueues) == ("none", 0, 0, 0)
        assert client.ask("GetStats").crawlID == "DEFAULT"
        for call in ("CountURLs", "DeleteQueue", "PurgeURLs"):
            assert client.ask(call, crawlID="none", key="a.example").value == 0, call
        assert list(client.ask("ListQueues", crawlID="none").values) == []
        assert client.ask("GetURLs", crawlID="none") == client.ask("GetURLs", anyCrawlID={}) == []
        assert client.ask("ListURLs", crawlID="none") == []
        for call in ("GetURLStatus", "SetDelay", "BlockQueueUntil", "SetCrawlLimit"):
            fields = {"url": URL} if call == "GetURLStatus" else {"key": "a.example"}
            assert code_of(client.ask, call, crawlID="none", **fields) == "NOT_FOUND", call
        # Looking makes no crawl.
        assert entries(tmp_path / "clients") == []


@pytest.mark.parametrize(
    "name",
    ["..", ".", ".hidden", "../out", "a/b", "/tmp/x", "a\\b", "a b", "é", "a\n", "-x", "x" * 101, "a\0"],
)
def test_a_name_that_could_leave_the_folder_is_refused(tmp_path, name):
    with frontier(clients=tmp_path / "clients") as client:
        assert client.put(client.discovered(URL, crawl=name)) == [(URL, FAIL)]
        assert client.put_batch(client.info(URL, crawl=name)) == [FAIL]
        assert client.ask("DeleteCrawl", value=name).value == 0
    assert entries(tmp_path / "clients") == []
    assert not (tmp_path / "out").exists()


def test_the_number_of_crawls_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(clientcrawls, "MOST_CRAWLS", 2)
    with frontier(clients=tmp_path / "clients") as client:
        some = [client.info(URL, crawl=name) for name in ("a", "b", "c", "a")]
        assert client.put_batch(*some) == [OK, OK, FAIL, SKIPPED]
        client.ask("DeleteCrawl", value="b")
        assert client.put_batch(*reversed(some)) == [SKIPPED, OK, FAIL, SKIPPED]
    assert len(entries(tmp_path / "clients")) == 2


def test_crawls_of_the_operator_stay(tmp_path):
    with frontier(tmp_path / "crawl", clients=tmp_path / "clients") as client:
        assert client.put_batch(client.info(URL), client.info(URL, crawl="a")) == [OK, OK]
        assert client.ask("GetStats").crawlID == "crawl"
        for name in ("", "DEFAULT", "crawl"):
            assert code_of(client.ask, "DeleteCrawl", value=name) == "FAILED_PRECONDITION"
        assert client.ask("DeleteCrawl", value="a").value == 1
        assert client.ask("CountURLs").value == 1
    (tmp_path / "clients" / "other").mkdir()
    (tmp_path / "clients" / "other" / "file").write_text("kept")
    inlink.Crawl(tmp_path / "clients" / "crawl").close()
    with (
        pytest.raises(ParameterError, match="there is a crawl 'crawl' already"),
        frontier(tmp_path / "crawl", clients=tmp_path / "clients"),
    ):
        pass
    with frontier(clients=tmp_path / "clients") as client:
        # A folder that is no crawl is neither opened nor overwritten.
        assert client.put_batch(client.info(URL, crawl="other")) == [FAIL]
    assert (tmp_path / "clients" / "other" / "file").read_text() == "kept"


def test_tokens_open_crawls_that_are_made_later(tmp_path):
    file = Tokens(tmp_path / "tokens.json")
    spider, admin = file.add("s", "spider", "mine"), file.add("a", "admin", "mine")
    with frontier(clients=tmp_path / "clients", needs_token=True) as client:
        client.metadata = [("authorization", f"Bearer {spider}")]
        both = [client.discovered(URL, crawl="mine"), client.discovered(URL, crawl="other")]
        assert client.put(*both) == [(URL, OK), (URL, FAIL)]
        assert code_of(client.ask, "DeleteCrawl", value="mine") == "PERMISSION_DENIED"
        client.metadata = [("authorization", f"Bearer {admin}")]
        assert code_of(client.ask, "DeleteCrawl", value="other") == "PERMISSION_DENIED"
        assert client.ask("DeleteCrawl", value="mine").value == 1


def test_items_that_wait_for_links_end_with_their_crawl(tmp_path):
    with frontier(clients=tmp_path / "clients") as client:
        client.put_batch(client.info(URL), client.info(f"{URL}1", url_path=[URL]))

        def items():
            yield client.known(URL)
            client.ask("DeleteCrawl")
            yield client.discovered(f"{URL}2")

        acks = client.calls["PutURLs"](items(), timeout=PATIENCE)
        assert sorted((ack.ID, ack.status) for ack in acks) == [(URL, FAIL), (f"{URL}2", OK)]
        assert client.ask("CountURLs").value == 1


def test_what_a_kill_leaves_is_tidied_up(tmp_path):
    folder = tmp_path / "clients"
    inlink.Crawl(folder / "whole").close()
    inlink.Crawl(folder / ".gone.inlink-deleted").close()
    (folder / ".gone.inlink-deleted" / "header.json").unlink()
    with frontier(clients=folder) as client:
        assert list(client.ask("ListCrawls").values) == ["whole"]
        assert entries(folder) == ["whole"]
        assert client.put_batch(client.info(URL, crawl="gone")) == [OK]


@pytest.mark.slow
def test_a_server_that_is_killed_starts_again(tmp_path):
    """Kill the server while a client makes and deletes crawls. The next server knows all acknowledged calls."""
    folder, chance = tmp_path / "clients", random.Random(1)
    acked: dict[str, bool] = {}
    for _ in range(3):
        command = [sys.executable, "-m", "inlink", "serve", "--client-crawls", folder, "--port", "0"]
        server = subprocess.Popen(
            [*command, "--grpc-port", "0", "--tokens", tmp_path / "tokens.json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        try:
            where = next(line.split()[1] for line in server.stdout if line.startswith("URLFrontier: "))
            with grpc.insecure_channel(where) as channel:
                client = Client(channel, tmp_path)
                there = set(client.ask("ListCrawls").values)
                assert there >= {name for name, exists in acked.items() if exists}
                assert not there & {name for name, exists in acked.items() if not exists}
                stop = chance.randrange(3, 9)
                for turn in range(100):
                    name = f"c{chance.randrange(4)}"
                    if turn == stop:
                        server.kill()
                    # The outcome of the call that the kill ends is unknown.
                    before = acked.pop(name, False)
                    if before:
                        client.ask("DeleteCrawl", value=name)
                    else:
                        assert client.put_batch(client.info(URL, crawl=name)) in ([OK], [SKIPPED])
                    acked[name] = not before
        except grpc.RpcError:
            pass
        finally:
            server.kill()
            server.wait()
            server.stdout.close()
    with frontier(clients=folder) as client:
        assert set(client.ask("ListCrawls").values) >= {name for name, exists in acked.items() if exists}


def test_options_that_do_not_fit_are_refused(tmp_path):
    for options in (run.Options(), run.Options(client_crawls=tmp_path / "clients")):
        with pytest.raises(ParameterError, match=r"--client-crawls"):
            run.serve([], options)
    assert entries(tmp_path) == []
    (tmp_path / "file").touch()
    options = run.Options(port=0, grpc_port=0, client_crawls=tmp_path / "file", tokens=tmp_path / "tokens")
    with pytest.raises(OutputError, match="file"):
        run.serve([], options)
