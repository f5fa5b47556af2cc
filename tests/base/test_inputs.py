"""Names of sources: patterns, lists of paths, URLs of servers that fail, and S3."""

import gzip
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

import inlink
from archives import response, write
from flaky import flaky_server  # noqa: F401
from inlink.base.remote import UnreachableError
from inlink.base.urlfiles import TRIES, open_remote, upload
from inlink.cli import commands
from inlink.errors import FormatError, InputError, ParameterError
from inlink.sources.inputs import expand


def archive(path: Path, k: int = 0, packed: str = "") -> Path:
    pages = [
        response(f"http://h{k}.example.org/{j}", f'<a href="http://h{j}.example.com/">x</a>')
        for j in range(20)
    ]
    return write(path, pages, packed=packed)


def test_a_cut_connection_goes_on_where_it_was_cut(server):
    data = bytes(range(256)) * 500
    Path("x.bin").write_bytes(data)
    server.cuts = [1000, 0, 50_000, 1]
    with open_remote(f"{server.url}/x.bin") as file:
        assert file.read() == data
    assert [wanted for _, wanted in server.asked] == [
        None, "bytes=1000-", "bytes=1000-", "bytes=51000-", "bytes=51001-",
    ]  # fmt: skip
    # A server without ranges sends all again.
    server.ranges, server.cuts = False, [70_000, 80_000]
    with open_remote(f"{server.url}/x.bin") as file:
        assert file.read() == data


def test_a_busy_server_is_asked_again_and_later_each_time(server):
    Path("x.tsv").write_text("a\tb\n")
    server.answers = [403, 503, 429, None, 500, 502, 504]
    assert inlink.read(f"{server.url}/x.tsv", format="edgelist").num_arcs == 1
    assert 7.0 in server.waits
    grown = [wait for wait in server.waits if wait != 7.0]
    assert grown[-1] > grown[0] * 4
    server.answers = [503] * TRIES
    with pytest.raises(
        UnreachableError, match=r"x.tsv: cannot be read \(the server answers 503 .*; tried 8 times\)"
    ):
        open_remote(f"{server.url}/x.tsv")
    server.answers = [404]
    with pytest.raises(InputError, match=r"nothing.gz: the server answers 404"):
        open_remote(f"{server.url}/nothing.gz")
    with pytest.raises(InputError, match=r"no URL|cannot be read"):
        open_remote("http://[")


def test_a_pause_that_is_no_number_is_ignored(server):
    Path("x.tsv").write_text("a\tb\n")
    # str.isdigit() is True for a superscript, which int() and float() refuse.
    server.answers, server.retry_after = [429], "\xb2"
    assert inlink.read(f"{server.url}/x.tsv", format="edgelist").num_arcs == 1
    assert len(server.waits) == 1


def test_a_url_with_characters_that_http_does_not_allow_is_refused_at_once(server):
    for url in (f"{server.url}/a b.tsv", f"{server.url}/a\x7f.tsv", "http://127.0.0.1:port/a.tsv"):
        with pytest.raises(InputError, match="is no URL that can be read"):
            open_remote(url)
    assert server.asked == server.waits == []


def test_a_file_that_is_replaced_while_it_is_read_is_told(server):
    Path("x.bin").write_bytes(bytes(5000))
    server.cuts, server.etags = [1000], ['"1"', '"2"']
    with (
        pytest.raises(InputError, match="was replaced on the server while it was read"),
        open_remote(f"{server.url}/x.bin") as file,
    ):
        file.read()


@pytest.mark.slow
def test_a_list_of_urls_becomes_the_graph_of_the_files(server):
    paths = [archive(Path(f"{k}.warc.gz"), k) for k in range(3)]
    with gzip.open("list.paths.gz", "wt") as file:
        file.write("".join(f"key{k}\t{path}\n" for k, path in enumerate(paths)))
    server.cuts = [700]
    there = inlink.read("@list.paths.gz", base=server.url, level="host", into="g")
    here = inlink.read(paths, level="host")
    assert there.names[:] == here.names[:]
    assert there.out_rows.nodes.tolist() == here.out_rows.nodes.tolist()
    assert there.meta["sources"] == [f"{server.url}/{path} (warc)" for path in paths]
    assert there.meta["links"] == here.meta["links"]
    again = inlink.read(f"@{server.url}/list.paths.gz", base=server.url, level="host", workers=2)
    assert again.out_rows.nodes.tolist() == here.out_rows.nodes.tolist()


def test_a_build_that_cannot_reach_a_server_keeps_its_parts(server):
    for k in range(3):
        archive(Path(f"{k}.warc.gz"), k)
    urls = [f"{server.url}/{k}.warc.gz" for k in range(3)]
    whole = inlink.read(urls, level="host", into="whole")
    server.answers = [503] * TRIES
    with pytest.raises(
        UnreachableError, match=r"1 file could not be fetched; the first: .*503.* 2 of 3 files are done"
    ):
        inlink.read(urls, level="host", into="g")
    assert not Path("g").exists()
    with pytest.warns(UserWarning, match="going on: 2 of 3 files are done"):
        again = inlink.read(urls, level="host", into="g")
    assert again.out_rows.nodes.tolist() == whole.out_rows.nodes.tolist()
    # A file that is not there is left out, as on this machine.
    with pytest.warns(UserWarning, match=r"left out 1 of 4 files. The first: .*404"):
        assert inlink.read([*urls, f"{server.url}/9.warc.gz"], level="host").num_arcs == whole.num_arcs


def test_formats_that_need_a_file_are_not_read_from_urls(server):
    inlink.write(inlink.Graph.from_arcs([(0, 1)]), "x.parquet")
    with pytest.raises(
        FormatError, match=r"x.parquet: format parquet cannot be read from a URL: download the file"
    ):
        inlink.read(f"{server.url}/x.parquet")


def test_patterns_and_lists(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.tsv", "a.tsv", "[x].tsv"):
        Path(name).write_text("a\tb\n")
    assert expand(["?.tsv"]) == [Path("a.tsv"), Path("b.tsv")]
    assert expand(["[x].tsv", "-"]) == [Path("[x].tsv"), Path("-")]
    assert expand(["none*.tsv"]) == [Path("none*.tsv")]
    Path("list").write_bytes(b"a.tsv\r\n\nkey\tb.tsv\nhttps://example.org/c.tsv\n")
    assert expand(["@list"]) == [Path("a.tsv"), Path("b.tsv"), "https://example.org/c.tsv"]
    assert expand(["@list"], str(tmp_path))[1] == tmp_path / "b.tsv"
    assert expand(["@list"], "s3://bucket/x/")[0] == "s3://bucket/x/a.tsv"
    for content, message in (
        (b"\n\n", "list is a list without paths"),
        (b"", "list is a list without paths"),
        (b"a.tsv\nmissing.tsv\n", "list, line 2: missing.tsv does not exist. If paths are relative"),
        (b"a\tb\tc\n", "list, line 1: expected a path, or a key, a tab and a path"),
        (b"a.tsv\nk\t\n", "list, line 2: expected a path"),
        (b"\xff\xfe.tsv\n", "UTF-16|list, line 1"),
        (b"a.tsv\na\0b\n", "list, line 2: expected a path"),
    ):
        Path("list").write_bytes(content)
        with pytest.raises(InputError, match=message) as told:
            expand(["@list"])
        assert "\n" not in str(told.value)
    with pytest.raises(InputError, match="nowhere"):
        expand(["@nowhere"])
    assert inlink.read([("a", "b")]).num_arcs == 1
    with pytest.raises(ParameterError, match="`base` applies only to lists"):
        expand(["a.tsv"], "x")
    run = CliRunner().invoke(commands, ["build", "ftp://example.org/x.warc.gz", "-o", "g"])
    assert run.exit_code == 2
    assert "must begin with https://" in run.output


@pytest.mark.slow
def test_s3(s3, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    urlopen(Request(f"{s3['AWS_ENDPOINT_URL']}/bucket", method="PUT")).close()
    for k in range(2):
        raw = bytearray(archive(Path(f"{k}.warc.gz"), k, "records").read_bytes())
        raw[len(raw) // 2 : len(raw) // 2 + 30] = bytes(30)
        Path(f"{k}.warc.gz").write_bytes(raw)
        upload(Path(f"{k}.warc.gz"), f"s3://bucket/{k}.warc.gz")
    Path("list").write_text("0.warc.gz\n1.warc.gz\n")
    there = inlink.read("@list", base="s3://bucket", level="host", into="g")
    here = inlink.read(["0.warc.gz", "1.warc.gz"], level="host")
    assert there.out_rows.nodes.tolist() == here.out_rows.nodes.tolist()
    assert (there.meta["pages"], here.meta["pages"]) == (38, 38)
    with pytest.raises(InputError, match=r"s3://bucket/none.tsv does not exist"):
        inlink.read("s3://bucket/none.tsv")


def test_s3_urls_that_are_none():
    with pytest.raises(InputError, match="expected s3://BUCKET/KEY"):
        open_remote("s3://bucket")


@pytest.fixture
def bucket(server, monkeypatch):
    """The folder of the flaky server as a bucket."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    Path("bucket").mkdir()
    return server


@pytest.mark.slow
def test_a_file_on_s3_is_read_to_its_end_in_spite_of_failures(bucket):
    data = bytes(range(256)) * 70_000
    Path("bucket/file").write_bytes(data)
    bucket.cuts = [1 << 20, 3 << 20]
    with open_remote("s3://bucket/file") as file:
        bucket.answers = [503, None]
        assert file.read() == data


def test_a_file_on_s3_that_is_replaced_is_refused(bucket):
    Path("bucket/file").write_bytes(bytes(20 << 20))
    with open_remote("s3://bucket/file") as file:
        bucket.etags = ['"1"', '"2"']
        file.read(1 << 20)
        with pytest.raises(InputError, match="was replaced on the server while it was read"):
            file.read()


def test_credentials_of_a_profile(bucket, monkeypatch):
    Path("bucket/file").write_bytes(b"x")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "credentials")
    monkeypatch.setenv("AWS_PROFILE", "mine")
    with pytest.raises(InputError, match="AWS_PROFILE: credentials has no keys of profile 'mine'"):
        open_remote("s3://bucket/file")
    Path("credentials").write_text(
        "[mine]\naws_access_key_id = ID\naws_secret_access_key = a%b\nregion = x\n"
    )
    assert open_remote("s3://bucket/file").read() == b"x"
    assert bucket.signed == "AWS4-HMAC-SHA256 Credential=ID"
