"""Audits of a site with planted faults: each fault is found, with its page, and nothing else."""

from pathlib import Path

import pytest
from tests.audit.plantedsite import crawl, plan

from inlink.audit.audit import audit


@pytest.mark.parametrize(("size", "closed"), [(20, False), (60, True), (300, False)])
def test_planted_faults_are_found_and_nothing_else(tmp_path: Path, size: int, closed: bool) -> None:
    site = plan(size, closed=closed)
    crawl(site, tmp_path / "c")
    result = audit(tmp_path / "c")
    assert result.hosts == ["site.example"]
    reasons = ["10 pages denied access", "10 pages excluded: Forbidden by robots.txt"]
    assert result.gaps == (reasons if closed else [])
    for check in result.checks:
        if check.level == "table" or check.name == "starved":
            continue
        keys = {tuple(row[:2]) for row in check.rows} if check.name == "duplicates" else check.keys()
        if check.name == "duplicates":
            # Which of the two is fetched first does not matter.
            keys = {tuple(sorted(key)) for key in keys}
        assert keys == site.truth[check.name], check.name
        assert len(check.rows) == len(keys)
        assert check.verdict == ("inconclusive" if closed else "complete")
        assert check.reasons == result.gaps
