"""Pages for people: the dashboard of each crawl, the list of crawls, the login, and the files of these pages.

Pages are rendered here. Small scripts keep them up to date with the same endpoints that all clients use. Pages load no
files from other servers. All data of crawls are inserted as text: Jinja2 escapes them, and scripts set ``textContent``.
"""

from functools import cache
from importlib.resources import files
from urllib.parse import quote

import jinja2
import msgspec

from inlink import __version__
from inlink.server import admin, spiders
from inlink.server.endpoints import HERE, Endpoints, Plain
from inlink.server.keeper import Keeper
from inlink.server.site import AccessError, Caller, Site

PAGES = Endpoints()

HTML = b"text/html; charset=utf-8"
KINDS = {
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}

LONGEST_TOKEN = 200


class Login(msgspec.Struct, frozen=True):
    """The token with which a person logs in."""

    token: str


@PAGES.add("GET", "/", None)
async def home(site: Site, caller: Caller) -> Plain:
    """The crawls of this server; if there is one only, its dashboard."""
    names = [name for name in site.keepers if caller.role(name) is not None]
    if not names and caller.role(None) is None:
        return _to("/login")
    if len(names) == 1:
        return _to(_place(names[0]))
    shots = site.snapshots
    crawls = [(name, _place(name), await shots[name].latest()) for name in names]
    return _page("crawls.html", caller, crawls=crawls)


@PAGES.add("GET", "/crawls/{name}", None)
async def dashboard(site: Site, caller: Caller, name: str) -> Plain:
    """The dashboard of a crawl."""
    role = caller.role(name)
    if role is None:
        return _to("/login")
    if name not in site.keepers:
        return _page("message.html", caller, 404, message=f"There is no crawl {name[:100]!r} on this server.")
    crawl: Keeper = site.keepers[name]
    return _page(
        "crawl.html",
        caller,
        name=crawl.name,
        role=role,
        base=f"/v1{_place(crawl.name)}",
        can=" ".join(_allowed(caller, crawl.name)),
        several=len(site.keepers) > 1,
        is_joined=crawl.name in site.overviews,
        snapshot=await site.snapshots[crawl.name].latest(),
    )


@PAGES.add("GET", "/login", None)
async def login_page(caller: Caller) -> Plain:
    """The page on which people log in with their token."""
    return _page("login.html", caller)


@PAGES.add("POST", "/login", None)
async def login(site: Site, caller: Caller, body: Login) -> Plain:
    """Begin a login."""
    cookie = await site.logins.begin(caller.scope, body.token.strip()[:LONGEST_TOKEN])
    if cookie is None:
        raise AccessError(403, "this server does not know this token")
    return _welcome(b'{"to":"/"}', cookie)


@PAGES.add("POST", "/logout", None)
async def logout(site: Site, caller: Caller) -> Plain:
    """End a login."""
    return _welcome(b'{"to":"/login"}', site.logins.end(caller.scope))


@PAGES.add("GET", "/assets/{file}", None)
async def asset(caller: Caller, file: str) -> Plain:
    """A script or a style sheet of the pages."""
    found = _assets().get(file)
    if found is None:
        return _page("message.html", caller, 404, message="There is nothing here.")
    return Plain(found, KINDS[file.rpartition(".")[2]])


def _allowed(caller: Caller, crawl: str) -> list[str]:
    """The changes that a role allows: methods and last parts of paths, such as ``POST/pause``."""
    return [
        endpoint.method + endpoint.path.removeprefix(HERE)
        for endpoint in (*spiders.ENDPOINTS.all, *admin.ENDPOINTS.all)
        if endpoint.role and caller.may(endpoint.role, crawl)
    ]


def _welcome(place: bytes, cookie: bytes) -> Plain:
    """Tell the page where to go after a login or logout."""
    return Plain(place, b"application/json", 200, ((b"set-cookie", cookie),))


def _place(name: str) -> str:
    return f"/crawls/{quote(name, safe='')}"


def _to(place: str) -> Plain:
    return Plain(b"", HTML, 303, ((b"location", place.encode()),))


def _page(template: str, caller: Caller, status: int = 200, /, **values: object) -> Plain:
    text = _templates().get_template(template).render(caller=caller, version=__version__, **values)
    return Plain(text.encode("utf-8", "replace"), HTML, status)


@cache
def _assets() -> dict[str, bytes]:
    """The files that pages load, by name; there are no others."""
    return {
        file.name: file.read_bytes()
        for file in (files("inlink.server") / "assets").iterdir()
        if file.name.rpartition(".")[2] in KINDS
    }


@cache
def _templates() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.FunctionLoader(
            lambda name: (files("inlink.server") / "templates" / name).read_text("utf-8")
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["count"] = lambda number: f"{number:,}"
    found.filters["share"] = lambda number: f"{100 * number:.1f} %"
    return found
