"""Endpoints for monitoring: whether the server is alive and ready, and its metrics."""

import time
from collections.abc import Sequence

import msgspec

from inlink import __version__
from inlink.server.endpoints import Endpoints, Plain
from inlink.server.site import Site

ENDPOINTS = Endpoints()


class Health(msgspec.Struct, frozen=True):
    """The state of the server. ``ok`` is true if it is alive, or ready. ``faults`` has the faults of crawls by name."""

    ok: bool
    faults: dict[str, str] = {}


@ENDPOINTS.add("GET", "/healthz", None)
async def alive() -> Health:
    """Return whether the server runs."""
    return Health(True)


@ENDPOINTS.add("GET", "/readyz", None)
async def ready(site: Site) -> Plain:
    """Return whether the server takes requests, and each of its crawls can be used; 503 if not."""
    well = site.ready and not site.faults
    # Only callers with a token may see the text of a fault.
    health = Health(well, dict.fromkeys(site.faults, "cannot be used now; the server's log says why"))
    return Plain(msgspec.json.encode(health), b"application/json", 200 if well else 503)


@ENDPOINTS.add("GET", "/metrics", "reader")
async def metrics(site: Site) -> Plain:
    """Figures for Prometheus, in its text format."""
    standings = {
        name: await keeper.run(lambda opened: opened.view.standing(0))
        for name, keeper in site.keepers.items()
        if keeper.fault is None
    }
    requests = [
        ({"method": method, "path": path, "status": str(status)}, count)
        for (method, path, status), count in sorted(site.requests.items())
    ]
    seconds = [
        ({"method": method, "path": path}, total) for (method, path), total in sorted(site.seconds.items())
    ]
    states = [
        ({"crawl": name, "state": state}, count)
        for name, standing in standings.items()
        for state, count in standing.states.items()
    ]
    families: list[tuple[str, str, str, Sequence[tuple[dict[str, str], float | None]]]] = [
        ("info", "gauge", "The server's version.", [({"version": __version__}, 1)]),
        ("uptime_seconds", "gauge", "Seconds since the start.", [({}, time.monotonic() - site.started)]),
        ("requests_total", "counter", "Requests served.", requests),
        ("request_seconds_total", "counter", "Seconds that requests took, including waiting.", seconds),
        (
            "crawl_up",
            "gauge",
            "Whether a crawl can be used.",
            [({"crawl": name}, int(name in standings)) for name in site.keepers],
        ),
        ("crawl_pages", "gauge", "Pages of a crawl by state.", states),
    ]
    for field, meaning in (
        ("waiting", "Pages that may be handed out."),
        ("leased", "Pages that are being fetched."),
        ("planned", "Pages that wait for a date."),
        ("harvest", "Share of the rank that was fetched, of the pages that may be."),
    ):
        figures = [({"crawl": name}, getattr(standing, field)) for name, standing in standings.items()]
        families.append((f"crawl_{field}", "gauge", meaning, figures))
    lines = []
    for name, kind, meaning, rows in families:
        lines += [f"# HELP inlink_{name} {meaning}", f"# TYPE inlink_{name} {kind}"]
        for labels, value in rows:
            if value is not None:
                text = ",".join(f'{label}="{_escaped(content)}"' for label, content in labels.items())
                lines.append(f"inlink_{name}{f'{{{text}}}' if text else ''} {value!r}")
    return Plain("\n".join([*lines, ""]).encode(), b"text/plain; version=0.0.4; charset=utf-8")


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
