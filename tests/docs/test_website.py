"""The website has every page and every public name, and the files for strangers agree with the package."""

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from ahead.linking import TARGETS

import inlink

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
NOTEBOOKS = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.ipynb"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_menu_has_every_page():
    menu = re.findall(r"- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert len(menu) == len(set(menu))
    assert {*PAGES, *(name.replace(".ipynb", ".md") for name in NOTEBOOKS)} <= set(menu)


def test_llms_txt_lists_every_page():
    listed = re.findall(r"\]\(([^)]+)\)", (DOCS / "llms.txt").read_text())
    assert sorted(listed) == sorted([*PAGES, *NOTEBOOKS])


def test_the_reference_has_every_public_name():
    entries = [
        entry
        for page in (DOCS / "api").glob("*.md")
        for entry in re.findall(r"^::: (\S+)$", page.read_text(), re.M)
    ]
    assert len(entries) == len(set(entries))
    for name in set(inlink.__all__) - {"__version__"}:
        thing = getattr(inlink, name)
        module = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
        assert module in entries or f"{module}.{thing.__qualname__}" in entries, name


def test_every_link_between_files_leads_to_a_file():
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), DOCS / "llms.txt"]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), (page.name, target)


def slugs(page: Path) -> set[str]:
    """The anchors that MkDocs makes of a page's headings."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.M)
    plain = (re.sub(r"\]\([^)]*\)|[^\w\s-]", "", head).strip().lower() for head in heads)
    return {re.sub(r"[-\s]+", "-", head) for head in plain}


def test_every_link_to_a_heading_of_a_page_leads_to_one():
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        for target, head in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text()):
            found = page.parent / target if target else page
            if found.suffix == ".md" and found.parent.name != "api":
                assert head in slugs(found), (page.name, target, head)


def test_broken_links_and_files_of_other_hosts_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT)
    check = import_module("website.check")
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#there">b</a><a href="https://x.example/">x</a>'
    )
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html#top">a</a>')
    assert list(check.problems(tmp_path)) == []
    check.parsed.cache_clear()
    (tmp_path / "a.html").write_text(
        '<a href="b.html#nowhere">b</a><a href="c.html">c</a><script src="https://x.example/x.js"></script>'
    )
    assert [line.partition(": ")[2] for line in check.problems(tmp_path)] == [
        "loads https://x.example/x.js from another host",
        "no heading for the link b.html#nowhere",
        "no file for the link c.html",
    ]


def test_the_citation_has_the_version_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {inlink.__version__}\n" in citation
    assert PROJECT["project"]["version"] == inlink.__version__
    assert f"\nlicense: {PROJECT['project']['license']}\n" in citation
    assert f"\n## {inlink.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_next_release_lists_each_change_for_users():
    """towncrier ignores a file if the type in its name is unknown."""
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9.9"]
    draft = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert draft.startswith("## 9.9.9 (")
    for file in (ROOT / "changes").glob("[!.]*"):
        first, *more = file.read_text().splitlines()
        assert f"\n- {first}\n" + "".join(f"  {line}\n" for line in more) in draft, file


def test_the_container_is_built_from_files_and_extras_that_exist():
    lines = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text()).splitlines()
    known = {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "RUN", "USER", "VOLUME", "WORKDIR"}
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    assert {step for step, _ in steps} <= known
    wanted = {
        line.strip() for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    }
    for step, rest in steps:
        if step == "COPY" and "--from" not in rest:
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in wanted, source
    extras = re.findall(r"extras=([\w,]+)", (ROOT / "Dockerfile").read_text())
    assert {extra for some in extras for extra in some.split(",")} <= set(
        PROJECT["project"]["optional-dependencies"]
    )
    assert len(extras) == 2
    assert all(
        int(minor) >= 11 for minor in re.findall(r"FROM python:3\.(\d+)", (ROOT / "Dockerfile").read_text())
    )


def test_the_workflow_is_valid_and_tests_the_promised_versions():
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    matrix = jobs["tests"]["strategy"]["matrix"]
    assert matrix["python"][0] == PROJECT["project"]["requires-python"].removeprefix(">=")
    assert matrix["os"] == ["ubuntu-latest", "macos-latest"]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)) | {".venv/ready"}
    for job in jobs.values():
        assert {job.get("needs", "tests")} <= set(jobs)
        for step in job["steps"]:
            for target in re.findall(r"^make (\S+)$", step.get("run", ""), re.M):
                assert target in targets, target


def test_a_release_has_a_wheel_for_each_machine():
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    machines = re.search(r"for machine in (.+); do", text)[1].split()
    assert {"x86_64", *machines} == set(TARGETS)
    jobs = pytest.importorskip("yaml").safe_load(text)["jobs"]
    assert [job.get("needs") for job in jobs.values()] == [None, *list(jobs)[:-1]]
