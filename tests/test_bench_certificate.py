"""The benchmark of certificates: crawls from many seed sets are finished, and no certificate on the way was wrong."""

import random

import numpy as np
import pytest
from bench import certificate

import inlink
from inlink.protocol import BoundedPage, Certificate


@pytest.mark.parametrize("kind", ["hosts", "dense", "islands"])
def test_no_certificate_is_wrong_from_twenty_seed_sets(kind, monkeypatch):
    monkeypatch.setattr(certificate, "STEP", 0.3)
    dice = random.Random(7)
    if kind == "hosts":
        graph = certificate.generated(50, 3)
    elif kind == "dense":
        graph = inlink.Graph.from_arcs([(a, b) for a in range(25) for b in range(25) if dice.random() < 0.3])
    else:
        graph = inlink.Graph.from_arcs(
            [(k, k // 20 * 20 + dice.randrange(20)) for k in range(60) for _ in "ab"]
        )
    linking = np.flatnonzero(np.diff(graph.out_rows.offsets)).tolist()
    runs = [certificate.closings(graph, sorted(dice.sample(linking, 3))) for _ in range(20)]
    assert [run.wrong for run in runs] == [0] * 20
    for run in runs:
        assert all(0 < share <= 1 for share in run.shares.values())
        for count in certificate.COUNTS:
            # A place that is certain within a small share is also certain within a larger one.
            strict, loose = run.shares.get((count, 0.001)), run.shares.get((count, 0.01))
            assert strict is None or (loose is not None and loose <= strict)


def test_a_wrong_certificate_is_noticed():
    """The real ranks are .5, .3 and .2."""

    def made(rows, beyond=0.25):
        places = [
            BoundedPage(k, page, f"http://h.example/{page}", *rest) for k, (page, *rest) in enumerate(rows, 1)
        ]
        return Certificate(0.01, 0.5, 0.1, beyond, 2, 1, 1, False, 0.85, places)

    ranks = np.array([0.5, 0.3, 0.2])
    assert certificate.agrees(made([(0, 0.4, 0.6, True), (1, 0.3, 0.35, True)]), ranks)
    for rows, beyond in (
        ([(0, 0.51, 0.6, False)], 0.4),
        ([(0, 0.4, 0.45, False)], 0.4),
        ([(1, 0.3, 0.35, True)], 0.6),
        ([(2, 0.1, 0.3, False), (1, 0.3, 0.3, True)], 0.6),
        ([(0, 0.4, 0.6, True)], 0.25),
    ):
        assert not certificate.agrees(made(rows, beyond), ranks), rows


def test_the_table_has_a_row_for_each_graph(capsys, tmp_path):
    (tmp_path / "ring.tsv").write_text("".join(f"{k}\t{(k + 1) % 30}\n" for k in range(30)))
    certificate.main(["--sets", "2", "--pages", "60", str(tmp_path / "ring.tsv")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines] == ["graph", "---", "generated", "ring"]
    assert all(line.split("|")[-2].strip() in ("wrong", "---:", "0") for line in lines)
