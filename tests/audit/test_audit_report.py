"""The report of an audit in a browser: sorted, filtered, by keyboard, in the dark, and with nothing loaded."""

from pathlib import Path

import pytest
from tests.audit.plantedsite import crawl, plan

from browser import MISSING, browser
from inlink.audit.audit import audit
from inlink.audit.report import write_html

pytestmark = [pytest.mark.slow, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]

ROWS = """
const rows = [...document.querySelectorAll("#broken tbody tr")];
return rows.filter((row) => !row.hidden).map((row) => row.cells[0].textContent);
"""
CONTRAST = """
const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const light = (color) => rgb(color).map((c) => linear(c / 255))
  .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
const paper = light(getComputedStyle(document.body).backgroundColor);
return Math.min(...[...document.querySelectorAll("p, td, th, a, h1, h2, small")].map((node) => {
  const ink = light(getComputedStyle(node).color);
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
}));
"""


def test_tables_are_sorted_and_filtered_and_readable(tmp_path: Path) -> None:
    site = plan(20)
    crawl(site, tmp_path / "c")
    write_html(audit(tmp_path / "c"), tmp_path / "report.html")
    with browser() as window:
        window.size(390, phone=True)
        window.open((tmp_path / "report.html").as_uri())
        before = window.run(ROWS)
        assert len(before) == len(site.truth["broken"])
        # Enter on the focused head of a column sorts, and again in reverse.
        window.run("document.querySelector('#broken th button').focus()")
        window.type("#broken th button", "\ue007")
        assert window.run(ROWS) == sorted(before)
        window.type("#broken th button", "\ue007")
        assert window.run(ROWS) == sorted(before, reverse=True)
        window.type("#broken input", "to-gone/3")
        assert {row.rsplit("/", 1)[1] for row in window.run(ROWS)} == {"3"}
        # The page itself never scrolls sideways on a phone.
        assert window.run("return document.documentElement.scrollWidth") <= 390
        for scheme in ("light", "dark"):
            window.scheme(scheme)
            # WCAG 2.1 asks for 4.5.
            assert window.run(CONTRAST) >= 4.5, scheme
        assert window.log() == []
