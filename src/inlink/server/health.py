"""Endpoints for monitoring: whether the server is alive and ready, and its metrics."""

import time

import msgspec

from inlink import __version__
from inlink.protocol import Standing
from inlink.server.endpoints import Endpoints, Plain
from inlink.server.site import Site

__all__ = ["ENDPOINTS"]

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
    faults = {name: keeper.fault for name, keeper in site.keepers.items() if keeper.fault is not None}
    well = site.ready and not faults
    # Only callers with a token may see the text of a fault.
    health = Health(well, dict.fromkeys(faults, "cannot be used now; the server's log says why"))
    return Plain(msgspec.json.encode(health), b"application/json", 200 if well else 503)


@ENDPOINTS.add("GET", "/metrics", "reader")
async def metrics(site: Site) -> Plain:
    """Figures for Prometheus, in its text format."""
    lines = [
        *_family("inlink_info", "gauge", "The server's version.", [({"version": __version__}, 1)]),
        *_family(
            "inlink_uptime_seconds",
            "gauge",
            "Seconds since the start.",
            [({}, time.monotonic() - site.started)],
        ),
        *_family(
            "inlink_requests_total",
            "counter",
            "Requests served.",
            [
                ({"method": method, "path": path, "status": str(status)}, count)
                for (method, path, status), count in sorted(site.requests.items())
            ],
        ),
        *_family(
            "inlink_request_seconds_total",
            "counter",
            "Seconds that requests took, including waiting.",
            [
                ({"method": method, "path": path}, seconds)
                for (method, path), seconds in sorted(site.seconds.items())
            ],
        ),
    ]
    lines += _crawl_lines(site, await _standings(site))
    return Plain("\n".join([*lines, ""]).encode(), b"text/plain; version=0.0.4; charset=utf-8")


def _crawl_lines(site: Site, standings: dict[str, Standing]) -> list[str]:
    """Return the families of figures that have a value for each crawl."""
    lines = _family(
        "inlink_crawl_up",
        "gauge",
        "Whether a crawl can be used.",
        [({"crawl": name}, int(name in standings)) for name in site.keepers],
    )
    lines += _family(
        "inlink_crawl_pages",
        "gauge",
        "Pages of a crawl by state.",
        [
            ({"crawl": name, "state": state}, count)
            for name, standing in standings.items()
            for state, count in standing.states.items()
        ],
    )
    for field, help_text in (
        ("waiting", "Pages that may be handed out."),
        ("leased", "Pages that are being fetched."),
        ("planned", "Pages that wait for a date."),
    ):
        rows = [({"crawl": name}, getattr(standing, field)) for name, standing in standings.items()]
        lines += _family(f"inlink_crawl_{field}", "gauge", help_text, rows)
    rows = [
        ({"crawl": name}, standing.harvest)
        for name, standing in standings.items()
        if standing.harvest is not None
    ]
    lines += _family(
        "inlink_crawl_harvest", "gauge", "Share of the known pages' rank that was fetched.", rows
    )
    return lines


async def _standings(site: Site) -> dict[str, Standing]:
    return {
        name: await keeper.run(lambda opened: opened.view.standing(0))
        for name, keeper in site.keepers.items()
        if keeper.fault is None
    }


def _family(name: str, kind: str, help_text: str, rows: list[tuple[dict[str, str], float]]) -> list[str]:
    lines = [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
    for labels, value in rows:
        text = ",".join(f'{label}="{_escaped(value_text)}"' for label, value_text in labels.items())
        lines.append(f"{name}{{{text}}} {value!r}" if text else f"{name} {value!r}")
    return lines


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
