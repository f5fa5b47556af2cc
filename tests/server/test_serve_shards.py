"""Spiders on a crawl that three servers share, in processes: kills, a partition, and the command for all shards."""

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from crawlcommand import Forked, forked, inlink
from inlink.cli import commands
from inlink.client.shards import RemoteShards
from inlink.urls.shards import Shard
from patience import wait_until
from shards import Proxy, Shards, crossing_web, scrapy_spider
from sites import Site

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "shards"
AT_ONCE = 16
"""Tasks that a spider of these tests may hold: requests, and as many again that are ready."""


def all_pages(site: Site) -> set[str]:
    """The paths that were fetched with success."""
    return {one.path for one in site.asked if one.status == 200}


@pytest.mark.parametrize(
    ("rounds", "size"), [(3, 120), pytest.param(60, 2500, marks=pytest.mark.soak)], ids=["some", "many"]
)
def test_kills_of_shards_and_spiders_lose_no_page(tmp_path, rounds, size):
    """A page is fetched again only if a spider that was killed held it."""
    dice = random.Random(size)
    kills = 0
    with crossing_web(size, delay=0.05) as site:
        with Shards(tmp_path, 3, "max_losses=100") as shards, ExitStack() as stack:
            spiders: dict[str, Forked] = {}

            def start(name: str) -> None:
                spiders[name] = stack.enter_context(scrapy_spider(tmp_path, name, shards.url, site.url("/0")))

            start("one")
            start("two")
            for turn in range(rounds):
                goal = (turn + 1) * size // (rounds + 2)
                wait_until(lambda goal=goal: len(site.paths()) >= goal, f"{goal} requests")  # type: ignore[misc]
                if turn % 2:
                    name = dice.choice(["one", "two"])
                    spiders[name].kill()
                    spiders[name].wait()
                    kills += 1
                    start(name)
                else:
                    k = dice.randint(1, 3)
                    shards.kill(k)
                    time.sleep(dice.choice([0.0, 0.5]))
                    shards.start(k)
                    shards.wait_for(k)
            assert [spider.wait() for spider in spiders.values()] == [0, 0]
        assert all_pages(site) == {f"/{k}" for k in range(size)}
        assert sum(site.counts().values()) <= size + kills * AT_ONCE
    assert shards.states() == {"crawled": size}


@pytest.mark.parametrize("seconds", [3, pytest.param(120, marks=pytest.mark.soak)])
def test_a_partition_delays_the_pages_of_a_shard_only(tmp_path, seconds):
    """Nothing reaches shard 2 for a while, from spiders or shards. Sessions end after two minutes of silence.

    A third of the links lead to pages of other shards.
    """
    size = 150
    with crossing_web(size) as site, Shards(tmp_path, 3, "max_losses=100") as shards:
        with Proxy(shards.ports[1]) as proxy:
            shards.urls[1] = f"http://127.0.0.1:{proxy.port}/v1/crawls/2"
            for k in (1, 3):
                shards.kill(k)
                shards.start(k)
                shards.wait_for(k)
            proxy.stop()
            with ExitStack() as stack:
                spiders = [
                    stack.enter_context(scrapy_spider(tmp_path, name, shards.url, site.url("/0")))
                    for name in ("one", "two")
                ]
                # They begin although shard 2 does not answer, and fetch the pages of the others.
                if seconds > 60:
                    time.sleep(seconds)
                    owners = {Shard(k, 3) for k in (1, 3)}
                    assert site.asked
                    assert all(any(shard.owns(one.host) for shard in owners) for one in site.asked)
                else:
                    time.sleep(seconds)
                assert [spider.poll() for spider in spiders] == [None, None]
                proxy.go_on()
                assert [spider.wait() for spider in spiders] == [0, 0]
        assert site.counts() == {f"/{k}": 1 for k in range(size)}
    assert shards.states() == {"crawled": size}
    for name in ("one", "two"):
        log = (tmp_path / f"{name}.log").read_text()
        assert "'finish_reason': 'finished'" in log
        assert "ERROR" not in log


def children(process: Forked) -> list[int]:
    file = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    tasks = file.parent.parent.glob("*/children")
    return sorted(int(pid) for task in tasks for pid in task.read_text().split())


@contextmanager
def all_shards(folder: Path) -> Iterator[Forked]:
    """Serve two shards by a single command, and wait until they listen."""
    command = ("serve", "c", "--shards", 2, "--port", 0, "--set", "politeness.delay=0.5")
    with forked("inlink", *command, cwd=folder, XDG_CONFIG_HOME=str(folder)) as process:
        process.wait_for_address()
        yield process


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_one_command_serves_all_shards(tmp_path):
    with all_shards(tmp_path) as process:
        urls = process.wait_for_address().split(",")
        assert [url.rpartition("/")[2] for url in urls] == ["1", "2"]
        with RemoteShards(urls, "me", None) as client:
            assert [shard.begin().settings["politeness"]["delay"] for shard in client.shards] == [0.5, 0.5]
            assert client.begin().settings["rules"]["shard"] == "1/2"
            before = children(process)
            assert len(before) == 2
            os.kill(before[1], signal.SIGKILL)
            wait_until(lambda: len(children(process)) == 2 and children(process) != before, "a new server")
            after = children(process)
            # The session goes on, because the log has it.
            client.seed([f"http://{k}.example/" for k in range(20)])
            tasks: set[str] = set()
            wait_until(
                lambda: tasks.update(t.url for t in client.next(20).tasks) or len(tasks) == 20, "tasks"
            )
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0, process.err
        assert "ended with exit code -9, and is started again" in process.err
    alive = [
        pid
        for pid in {*before, *after}
        if Path(f"/proc/{pid}/cmdline").exists() and b"--shard=" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    assert not alive
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["1", "2"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_servers_of_shards_end_with_the_command_also_if_it_is_killed(tmp_path):
    with all_shards(tmp_path) as process:
        servers = [Path(f"/proc/{pid}") for pid in children(process)]
        assert len(servers) == 2
        process.kill()
    wait_until(lambda: not any(server.exists() for server in servers), "the end of the servers")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["c", "d", "--shards", "2"], "exactly one folder"),
        (["c", "--shards", "2", "--shard", "1/2"], "cannot be given with --shard"),
        (["c", "--shards", "65"], "from 1 to 64; got 65"),
        (["c", "--shards", "2", "--set", "policy=nothing"], "policy"),
    ],
)
def test_what_cannot_be_served_as_shards_is_refused(tmp_path, arguments, message):
    run = inlink("serve", *arguments, "--port", 0, cwd=tmp_path, code=2, XDG_CONFIG_HOME=str(tmp_path))
    assert message in run.stderr


# -- the compose file -------------------------------------------------------------------------------------------------


def arguments_of(service: dict[str, Any]) -> dict[str, Any]:
    """The parsed arguments of a service that runs ``inlink serve``."""
    name, *rest = service["command"]
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    return command.make_context(name, list(map(str, rest))).params


def test_the_compose_file_names_all_shards_to_each(tmp_path):
    file = yaml.safe_load((EXAMPLE / "compose.yaml").read_text())
    assert set(file) <= {"name", "services", "volumes", "secrets", "x-shard"}
    services = {name: row for name, row in file["services"].items() if row["command"][0] == "serve"}
    count = len(services)
    assert count >= 3
    urls = [f"http://{name}:8000/v1/crawls/crawl" for name in services]
    volumes = []
    for number, (name, service) in enumerate(services.items(), 1):
        assert set(service) <= {
            "image",
            "build",
            "command",
            "volumes",
            "secrets",
            "environment",
            "restart",
            "ports",
        }
        given = arguments_of(service)
        assert given["shard"] == f"{number}/{count}"
        assert list(given["shard_urls"]) == urls
        assert given["names"] == (name,)
        assert (given["host"], given["port"], given["insecure"]) == ("0.0.0.0", 8000, True)
        (folder,) = given["folders"]
        (volume,) = service["volumes"]
        source, _, target = volume.partition(":")
        assert str(folder) == f"{target}/crawl"
        assert source in file["volumes"]
        volumes.append(source)
        assert set(service["secrets"]) == {"tokens", "token"} == set(file["secrets"])
        assert str(given["tokens"]) == "/run/secrets/tokens"
        assert service["environment"] == {"INLINK_TOKEN_FILE": "/run/secrets/token", "INLINK_INSECURE": "1"}
        assert service["restart"] == "unless-stopped"
    assert len(set(volumes)) == count
