"""The README's picture: the true error of PageRank on cnr-2000 after each sweep, inlink's way and the power method's.

``python -m bench.convergence GRAPH docs/convergence.svg`` with the graph in any format that inlink reads.
"""

import math
import sys
from pathlib import Path

import numpy as np

import inlink

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 330, 64, 34, 44
# The axes: sweeps, and the least power of ten.
SWEEPS, LOW = 80, -10


def errors(graph: inlink.Graph, method: str) -> list[float]:
    """The true L1 error after 1, 2, 3, … sweeps, against a ranking of 1e-11."""
    exact = inlink.pagerank(graph, tol=1e-11).values
    found = []
    for sweeps in range(1, SWEEPS + 1):
        ranking = inlink.pagerank(graph, method=method, tol=None, max_iter=sweeps, threads=1)  # type: ignore[arg-type]
        found.append(float(np.abs(ranking.values - exact).sum()))
        if found[-1] < 10.0**LOW:
            break
    return found


def at(sweeps: float, error: float) -> tuple[float, float]:
    """The position of a point in the picture."""
    x = LEFT + (WIDTH - LEFT - 20) * sweeps / SWEEPS
    y = TOP + (HEIGHT - TOP - BOTTOM) * math.log10(max(error, 10.0**LOW)) / LOW
    return round(x, 1), round(y, 1)


def picture(curves: dict[str, tuple[str, list[float]]]) -> str:
    """The curves as SVG: label → colour and errors."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="18" font-weight="bold">True L1 error of PageRank on cnr-2000, after each sweep</text>',
    ]
    for power in range(0, LOW - 1, -2):
        _, y = at(0, 10.0**power)
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">1e{power}</text>')
    for sweeps in range(0, SWEEPS + 1, 20):
        x, _ = at(sweeps, 1)
        lines.append(f'<text x="{x}" y="{HEIGHT - 24}" text-anchor="middle">{sweeps}</text>')
    lines.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">sweeps over all arcs</text>')
    for label, (colour, values) in curves.items():
        points = " ".join(f"{x},{y}" for x, y in (at(k + 1, value) for k, value in enumerate(values)))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        middle = len(values) * 2 // 3
        x, y = at(middle, values[middle - 1])
        lines.append(f'<text x="{x + 10}" y="{y - 8}" fill="{colour}" font-weight="bold">{label}</text>')
        reached = next((k + 1 for k, value in enumerate(values) if value <= 1e-6), None)
        if reached:
            x, y = at(reached, values[reached - 1])
            lines.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>')
            lines.append(
                f'<text x="{x - 6}" y="{y + 18}" fill="{colour}" text-anchor="end">1e-6 after {reached}</text>'
            )
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    cnr = inlink.read(sys.argv[1])
    curves = {
        "inlink": ("#1864ab", errors(cnr, "gauss-seidel")),
        "power method": ("#868e96", errors(cnr, "power")),
    }
    Path(sys.argv[2]).write_text(picture(curves))
