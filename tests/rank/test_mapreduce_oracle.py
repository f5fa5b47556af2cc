"""Fifteen rounds of the MapReduce jobs that many learnt PageRank from, run by mrjob's inline mode, as an oracle.

The jobs are those of a published tutorial (dangling mass summed by a job of its own, then one round by another),
ported to Python 3: ``add_passthru_arg`` for the old option calls, no boto.
"""

import json
import warnings
from io import BytesIO
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import inlink
from strategies import Arcs, arcs

pytestmark = pytest.mark.slow

pytest.importorskip("mrjob", reason="mrjob is not installed (it wants Python below 3.13)")

with warnings.catch_warnings():  # it imports modules that Python means to drop
    warnings.simplefilter("ignore", DeprecationWarning)
    from mrjob.job import MRJob
    from mrjob.protocol import JSONProtocol, TextValueProtocol

ROUNDS = 15


class DanglingNodeJob(MRJob):
    INPUT_PROTOCOL = JSONProtocol
    OUTPUT_PROTOCOL = TextValueProtocol

    def mapper(self, website, node):
        yield "_", str(node["state"]) if len(node["outgoing"]) == 0 else str(0)

    def reducer(self, _, states):
        yield "_", str(sum(map(float, states)))


class PageRankJob(MRJob):
    INPUT_PROTOCOL = JSONProtocol

    def configure_args(self):
        super().configure_args()
        self.add_passthru_arg("--graph-size", dest="size_of_web", type=int, default=0)
        self.add_passthru_arg("--dangling-node-pr", dest="dangling_node_pr", type=float, default=0)
        self.add_passthru_arg("--damping-factor", dest="damping_factor", type=float, default=0.85)

    def mapper(self, website, node):
        yield website, ("node", node)
        for outgoing in node["outgoing"]:
            yield outgoing, ("msg", node["state"] / len(node["outgoing"]))

    def reducer(self, website, data):
        node, msgs = None, []
        for msg_type, msg_val in data:
            if msg_type == "node":
                node = msg_val
            elif msg_type == "msg":
                msgs.append(msg_val)
        if node is not None:
            node["state"] = (
                self.options.damping_factor * sum(msgs)
                + self.options.damping_factor * self.options.dangling_node_pr / self.options.size_of_web
                + (1 - self.options.damping_factor) / self.options.size_of_web
            )
            yield website, node


def run(job: MRJob, lines: bytes) -> bytes:
    job.sandbox(stdin=BytesIO(lines))
    with job.make_runner() as runner:
        runner.run()
        return b"".join(runner.cat_output())


def fifteen_rounds(given: Arcs) -> list[float]:
    n = given.num_nodes
    outgoing: dict[int, list[str]] = {i: sorted({str(t) for s, t in given.pairs if s == i}) for i in range(n)}
    nodes = [(str(i), {"id": str(i), "state": 1.0 / n, "outgoing": outgoing[i]}) for i in range(n)]
    lines = b"".join(f"{json.dumps(name)}\t{json.dumps(node)}\n".encode() for name, node in nodes)
    for _ in range(ROUNDS):
        dangling = float(run(DanglingNodeJob(["-r", "inline", "--no-conf", "-"]), lines))
        options = ["--graph-size", str(n), "--dangling-node-pr", repr(dangling), "--damping-factor", "0.85"]
        lines = run(PageRankJob(["-r", "inline", "--no-conf", *options, "-"]), lines)
    found: dict[str, Any] = dict(map(json.loads, line.split(b"\t")) for line in lines.splitlines())
    return [found[str(i)]["state"] for i in range(n)]


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(arcs(min_nodes=1, max_nodes=7))
def test_fifteen_rounds_to_the_digit(given):
    ranking = inlink.pagerank(given.graph(), method="power", max_iter=ROUNDS, tol=None)
    assert ranking.iterations == ROUNDS
    assert ranking.values.tolist() == pytest.approx(fifteen_rounds(given), rel=1e-13, abs=0)
