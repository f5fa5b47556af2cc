"""A hook of MkDocs: pages that are made from the files beside docs, and from the notebooks."""

import html
import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "index.md": "README.md",
    "changes.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
EXAMPLES = "examples.md"
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs."""
    for page, source in PAGES.items():
        head = "---\nhide: [navigation]\n---\n" if page == "index.md" else ""
        files.append(File.generated(config, page, content=head + moved((ROOT / source).read_text())))
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        page = f"notebooks/{notebook.stem}.md"
        files.append(File.generated(config, page, content=notebook_page(notebook)))
    files.append(File.generated(config, EXAMPLES, content=examples_page(ROOT / "examples")))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Lead links of pages in docs to the pages made from the files beside docs."""
    folder = PurePosixPath(page.file.src_uri).parent
    up = "../" * len(folder.parts)

    def link(match: re.Match[str]) -> str:
        made = {f"{up}../{source}": f"{up}{page}" for page, source in PAGES.items()}
        return made.get(match[1], match[1]) + (match[2] or "")

    return LINK.sub(link, markdown)


def moved(text: str) -> str:
    """Return the text of a file beside docs, with links as they are from inside docs."""
    made = {source: page for page, source in PAGES.items()} | {"examples/README.md": EXAMPLES}

    def link(match: re.Match[str]) -> str:
        target = match[1]
        page = made.get(target, target.removeprefix("docs/").replace(".ipynb", ".md"))
        return page + (match[2] or "")

    return LINK.sub(link, text)


def examples_page(folder: Path) -> str:
    """Return the page of the examples with each program below its table."""
    parts = [re.sub(r"\((\w+)\.py\)", r"(#\1py)", (folder / "README.md").read_text())]
    programs = sorted(folder.glob("*.py"))
    parts += [f"## {path.name}\n\n```python\n{path.read_text()}```" for path in programs]
    return "\n\n".join(parts) + "\n"


def notebook_page(path: Path) -> str:
    """Return a notebook as Markdown: its text, its code, and the output that is stored in it."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(f"```python\n{source}\n```")
            parts += [shown(output) for output in cell["outputs"]]
    return "\n\n".join([*parts, f"[The notebook]({path.name})"]) + "\n"


def shown(output: dict[str, Any]) -> str:
    """Return an output of a cell as HTML."""
    data = output.get("data", {"text/plain": output.get("text", [])})
    if "image/png" in data:
        alternative = html.escape("".join(data.get("text/plain", "picture")))
        return f'<img alt="{alternative}" src="data:image/png;base64,{"".join(data["image/png"]).strip()}">'
    if "text/html" in data:
        return "<div>" + re.sub(r"\n\s*", " ", "".join(data["text/html"])) + "</div>"
    return f'<pre class="output">{html.escape("".join(data["text/plain"]))}</pre>'
