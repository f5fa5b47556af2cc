"""The pages for people, in a browser: what operators see and do, and hostile text, which stays text."""

import asyncio
import re
import time
from pathlib import Path

import pytest

import inlink
from browser import MISSING, browser, overflow
from inlink.server import logins
from inlink.server.people import PAGES, _assets
from inlink.server.tokens import Tokens
from served import served

A = "http://a.example/"

needs_browser = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


@pytest.fixture(scope="module")
def window():
    with browser() as found:
        found.size(1000, 900)
        yield found


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory):
    """Compile what the pages ask for: a server's requests have half a minute."""
    with inlink.Crawl(tmp_path_factory.mktemp("compiled") / "c") as crawl:
        crawl.seed([A, "http://b.example/"])
        crawl.crawled(crawl.next(1)[0], links=["/x", "http://b.example/"])
        crawl.failed(crawl.next(1)[0], status=404)
        view = crawl.view
        for look in (
            view.order,
            view.hosts,
            view.top,
            view.harvest,
            view.errors,
            view.standing,
            crawl.activity,
        ):
            look()
        view.links(A, "to")
        for look in (view.why, view.page, view.path, view.links, view.find):
            look(A)


def begin(server, owner="one"):
    return server.crawl("POST", "sessions", {"owner": owner})[1]["session"]["number"]


def work(server, session, links=()):
    """Take one task and answer it; its URL."""
    (task,) = server.crawl("POST", "next", {"session": session, "n": 1, "wait": 20})[1]["tasks"]
    answer = {"type": "crawled", "lease": task["lease"], "links": list(links)}
    server.crawl("POST", "answers", {"session": session, "answers": [answer]})
    return task["url"]


@pytest.mark.slow
@needs_browser
def test_certain_places_are_computed_once_they_are_asked_for(tmp_path, window):
    with served(tmp_path / "mycrawl") as server:
        server.crawl("POST", "seeds", {"urls": [f"{A}<b>home</b>"]})
        session = begin(server)
        work(server, session, ["/x", "/y"])
        window.open(f"{server.url}/crawls/mycrawl")
        window.wait_for_text("#crawled", "1")
        assert window.run("return document.getElementById('certain-list').textContent") == "…"
        window.click("#certain-box summary")
        window.wait_for_text("#certain-list", "of the first 3 places are certain within 0.001 of all rank")
        window.wait_for_text("#certain-list", "PageRank with teleports to the only seed.")
        window.wait_for_text("#certain-list td", "1")
        assert window.run("return document.querySelectorAll('#certain-list b').length") == 0
        assert overflow(window) == []
        # Another number of places, from the same bounds.
        window.run(
            "const one = document.getElementById('certain-top'); one.value = 1; one.dispatchEvent(new Event('change'))"
        )
        window.wait_for_text("#certain-list", "The first place is not certain within 0.001")
        window.size(400, 900)
        assert overflow(window) == []
        window.size(1000, 900)


@pytest.mark.slow
@needs_browser
def test_an_operator_watches_and_steers(tmp_path, window):
    with served(tmp_path / "mycrawl") as server:
        window.open(server.url)
        # One crawl: straight to its page. No token is needed, and the page says so.
        assert window.url == f"{server.url}/crawls/mycrawl"
        window.wait_for_text("footer", "No token is needed on this machine")
        window.wait_for_text("#state", "at its end")
        # Seeds come in.
        window.type("#seeds", f"{A}\nhttp://b.example/start\nftp://c.example/")
        window.click_text("#give button", "Add seeds")
        window.wait_for_text("#told", "2 new pages; 1 refused: link is not http")
        window.wait_for_text("#state", "no spider is here")
        # A spider works: the page ticks by itself.
        session = begin(server, "spider-1")
        assert work(server, session, ["/x", "/y", "http://b.example/start"]) == A
        window.wait_for_text("#sessions", "spider-1")
        window.wait_for_text("#crawled", "1")
        window.wait_for_text("#known", "of 4 known")
        window.wait_for_text("#harvest-curve", "(an estimate)")
        # An error shows with its cause and an example.
        task = server.crawl("POST", "next", {"session": session, "n": 1, "wait": 20})[1]["tasks"][0]
        answer = {"type": "failed", "lease": task["lease"], "status": 404, "error": "nothing there"}
        server.crawl("POST", "answers", {"session": session, "answers": [answer]})
        window.wait_for_text("#error-list", "HTTP 404 Not Found")
        window.wait_for_text("#error-list", "nothing there")
        window.wait_for_text("#errors-mean", "1 in all")
        window.wait_for_text("#host-list", "a.example")
        # The order, with reasons, opened to the full why.
        window.wait_for_text("#order li", f"{A}x")
        window.click("#order summary")
        window.wait_for_text("#order .why", "It waits at place 1.")
        window.wait_for_text("#order .why", "The links that give most")
        # A search, then from page to page by links.
        window.type("#words", "EXAMPLE start")
        window.click("#search-form button")
        window.click_text("#found a", "http://b.example/start")
        window.wait_for_text("#page-view .url", "http://b.example/start")
        window.click_text("#page-view .links a", A)
        window.wait(
            "return document.querySelector('#page-view .url')?.textContent === arguments[0]", "the page", A
        )
        window.wait(
            "return document.querySelectorAll('#page-view .near .node').length === 4", "its neighbours"
        )
        window.wait_for_text("#page-view", "a seed")
        # Pause and resume.
        window.click_text("#steer button", "Pause")
        window.wait_for_text("#state", "paused")
        assert server.crawl("POST", "next", {"session": session, "n": 1})[1]["paused"]
        window.click_text("#steer button", "Resume")
        window.wait("return document.getElementById('state').textContent !== 'paused'", "the crawl to go on")
        # A host is blocked, and rules change.
        window.click_text("#host-list button", "Block")
        window.wait_for_text("#told", "blocked.")
        window.wait_for_text("#host-list .tag", "blocked for")
        window.run("document.getElementById('rules-deny').value = '[.]png$\\nhost:b.example'")
        window.click_text("#rules button", "Change the rules")
        window.wait_for_text("#told", "The rules hold from now on.")
        assert server.crawl("GET", "settings")[1]["rules"]["deny"] == ["[.]png$", "host:b.example"]
        window.run("document.getElementById('rules-deny').value = '('")
        window.click_text("#rules button", "Change the rules")
        window.wait_for_text("#told.bad", "regular expression")
        # The chart of the last two minutes has axes. Long lists are folded away after ten rows.
        for text in ("2 min ago", "now", "0.5"):
            window.wait_for_text("#trend .chart", text)
        server.crawl("POST", "seeds", {"urls": [f"{A}seed/{k}" for k in range(40)]})
        window.run(
            "document.activeElement.blur();"
            "for (const one of document.querySelectorAll('#order details')) one.open = false"
        )
        window.wait_for_text("#order > details", " more")
        assert window.run("return document.querySelectorAll('#order > ol > li').length") == 10
        # On a phone nothing reaches beyond the window.
        window.size(390, phone=True)
        assert window.run("return document.documentElement.scrollHeight") < 6000
        assert overflow(window) == []
        assert window.run("return document.documentElement.scrollWidth") == 390
        window.size(1000, 900)
        # Each control can be reached by keyboard and has a name.
        assert (
            window.run(
                "return [...document.querySelectorAll('button, input, textarea, select, a[href]')].filter((one) =>"
                " one.tabIndex < 0 || !(one.textContent.trim() || one.ariaLabel || one.labels?.length))"
                ".map((one) => one.outerHTML)"
            )
            == []
        )
        assert [line for line in window.log() if " 422 " not in line] == []
    window.wait("return !document.getElementById('away').hidden", "the page to say that the server is away")
    window.wait_for_text("#away", "The server is away")


@pytest.mark.slow
@needs_browser
def test_the_page_comes_back_with_the_server(tmp_path, window):
    with served(tmp_path / "c") as server:
        window.open(server.url)
        window.wait_for_text("#known", "of 0 known")
        port = server.port
    window.wait_for_text("#away", "The server is away")
    with served(tmp_path / "c", port=port) as server:
        server.crawl("POST", "seeds", {"urls": [A]})
        window.wait("return document.getElementById('away').hidden", "the page to come back")
        window.wait_for_text("#known", "of 1 known")
    window.log()


@pytest.mark.slow
@needs_browser
def test_logging_in_and_out(tmp_path, window):
    with served(
        tmp_path / "one", tmp_path / "two", tokens=tmp_path / "tokens.json", needs_token=True
    ) as server:
        reader = server.site.tokens.add("alice", "reader")
        limited = server.site.tokens.add("carol", "spider", "two")
        window.open(f"{server.url}/crawls/one")
        assert window.url == f"{server.url}/login"
        window.type("#token", "wrong")
        window.click("#login button")
        window.wait_for_text("#told", "does not know this token")
        window.run("document.getElementById('token').value = ''")
        window.type("#token", reader)
        window.click("#login button")
        # Several crawls: their list.
        window.wait_for_text("h1", "Crawls")
        assert window.text("ul").split()[0] == "one"
        assert reader not in window.run("return document.cookie + location.href + document.body.innerHTML")
        window.click_text("a", "one")
        window.wait_for_text("#known", "of 0 known")
        window.wait_for_text("footer", "You are alice, reader.")
        # A reader sees no controls.
        window.wait_for_text("#rules", "There are none.")
        assert window.run("return document.querySelectorAll('#give form, #hosts button').length") == 0
        assert window.text("#steer") == ""
        window.click("#logout")
        window.wait("return location.pathname === '/login'", "the login page")
        window.open(f"{server.url}/crawls/one")
        assert window.url == f"{server.url}/login"
        window.type("#token", limited)
        window.click("#login button")
        # One crawl is open to this token: straight to it.
        window.wait("return location.pathname === '/crawls/two'", "the crawl's page")
        window.wait_for_text("#give form", "Add seeds")
        # The end of the token ends the login.
        server.site.tokens.remove("carol")
        window.wait("return location.pathname === '/login'", "the login page")
        # The browser tells of the refusals: that is as it should be.
        assert [line for line in window.log() if not re.search(r" 40[13] ", line)] == []


HOSTILE = [
    "<img src=x onerror=document.title='pwned'>",
    "\"'><script>document.title='pwned'</script>",
    "</textarea></title><svg onload=document.title='pwned'>",
    "javascript:document.title='pwned'",
    "{{7*7}}${7*7}\u202eevil\u202c\u2066\u0007",
    "x" * 400,
]


def hostile_url(k):
    text = HOSTILE[k].replace("\u0007", "")
    return f"http://h{k}.example/{text}?{text}#{text}"


@pytest.mark.slow
@needs_browser
def test_hostile_text_stays_text(tmp_path, window):
    folder = tmp_path / "<b>&amp;'\"c"
    rules = {"deny": ["denied<img src=x onerror=document.title='pwned'>"]}
    with served(folder, rules=rules, max_retries=0) as server:
        name = next(iter(server.site.keepers))
        here = "/v1/crawls/%3Cb%3E&amp%3B'%22c"
        ask = lambda method, path, body=None: server.ask(method, f"{here}/{path}", body)[1]  # noqa: E731
        owner = HOSTILE[0] + "\"' " + "y" * 100
        session = ask("POST", "sessions", {"owner": owner})["session"]["number"]
        refused = "http://r.example/denied<img src=x onerror=document.title='pwned'>"
        urls = [hostile_url(k) for k in range(len(HOSTILE))]
        ask("POST", "seeds", {"urls": [*urls, refused]})
        tasks = ask("POST", "next", {"session": session, "n": 100})["tasks"]
        answers = []
        for k, task in enumerate(tasks[:-2]):
            answers.append(
                {"type": "failed", "lease": task["lease"], "error": f"{HOSTILE[k % 6]} {HOSTILE[0]}"}
            )
        links = [*urls, f"/{HOSTILE[0]}", refused]
        answers.append({"type": "crawled", "lease": tasks[-2]["lease"], "links": links, "error": HOSTILE[1]})
        answers.append({"type": "excluded", "lease": tasks[-1]["lease"], "reason": HOSTILE[2]})
        ask("POST", "answers", {"session": session, "answers": answers})
        ask("POST", "seeds", {"urls": [f"http://late{k}.example/{HOSTILE[0]}" for k in range(3)]})
        window.open(server.url)
        window.wait_for_text("h1", name)
        window.wait_for_text("#sessions", owner)
        window.wait_for_text("#error-list", HOSTILE[0])
        window.wait_for_text("#order", "late0.example")
        window.wait_for_text("#host-list", "late0.example")
        window.wait_for_text("#top-list", tasks[-2]["url"].split("/")[2])
        assert (
            window.wait("return document.getElementById('rules-deny')?.value", "the rules")
            == rules["deny"][0]
        )
        window.click("#order summary")
        window.wait_for_text("#order .why", "Its host")
        for text in (HOSTILE[0], "script img onerror"):
            window.run("document.getElementById('words').value = arguments[0]", text)
            window.click("#search-form button")
            window.wait_for_text("#found", "found in")
        known = [row["url"] for row in ask("GET", "find?expression=%5E&count=1000")["rows"]]
        for url in [*known, HOSTILE[0], "%", "javascript:alert(1)"]:
            window.run("location.hash = '#page=' + encodeURIComponent(arguments[0])", url)
            window.wait(
                "const view = document.getElementById('page-view').textContent;"
                "return view.includes(arguments[0]) && view.includes(arguments[1])",
                f"the page of {url!r}",
                url,
                "Its host" if url in known else "does not know",
            )
        window.run("location.hash = '#page=%E0%A4%A'")
        for width in (390, 1000):
            window.size(width, phone=width == 390)
            assert overflow(window) == []
        # Nothing was made of it: no element but the page's own, no script, no address that runs.
        assert window.run("return document.title") != "pwned"
        assert (
            window.run(
                "return document.querySelectorAll('main img, main script, [onerror], [onload]').length"
            )
            == 0
        )
        assert (
            window.run("return [...document.links].filter((one) => !/^https?:$/.test(one.protocol)).length")
            == 0
        )
        # No character that turns text around, or that nobody sees.
        assert (
            window.run(r"return /[\u202a-\u202e\u2066-\u2069\u0007]/.test(document.body.textContent)")
            is False
        )
        # A page that is not known is a 404; nothing else is in the console, above all no breach of the policy.
        assert [line for line in window.log() if not re.search(r" 4(04|22) ", line)] == []


def test_the_pages_load_nothing_from_elsewhere_and_have_no_code_inside():
    folder = Path(inlink.__file__).parent / "server"
    scripts = {name for name in _assets() if name.endswith(".js")}
    for file in (folder / "assets").iterdir():
        text = file.read_text()
        assert file.name in _assets()
        if file.suffix == ".js":
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", text
            ), file
            assert set(re.findall(r'from "\./(\S+)"', text)) <= scripts
        outside = set(re.findall(r"https?://[\w.]+", text)) - {"http://www.w3.org", "https://example.org"}
        assert not outside, file
    for file in (folder / "templates").iterdir():
        text = file.read_text()
        assert not re.search(r"\sstyle=|<style|\son\w+=|\|\s*safe|autoescape", text), file
        for tag in re.findall(r"<script[^>]*>.*?</script>", text):
            assert re.fullmatch(r'<script type="module" src="/assets/(\w+\.js)"></script>', tag), tag


def luminance(colour):
    """The relative luminance of a colour such as #0b5fa5, as WCAG 2 defines it."""
    values = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in values]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_has_contrast_in_the_light_and_in_the_dark():
    both = re.findall(r":root \{(.*?)\}", _assets()["style.css"].decode(), re.S)
    assert len(both) == 2
    for part in both:
        colours = dict(re.findall(r"--([\w-]+): (#\w{6});", part))
        pairs = (
            "ink/paper ink/raised faint/paper faint/raised link/paper bad/bad-paper bad/paper on-first/first"
        )
        # Lines and shapes need less.
        shapes = "first/paper second/paper first/grid"
        for pair in f"{pairs} {shapes}".split():
            text, ground = pair.split("/")
            least = 3 if pair in shapes else 4.5
            light, dark = sorted((luminance(colours[text]), luminance(colours[ground])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= least, (text, ground)


def test_pages_and_assets_without_a_browser(tmp_path):
    with served(tmp_path / "c", tokens=tmp_path / "tokens.json", needs_token=True) as server:
        for path in ("/", "/crawls/c", "/crawls/other"):
            status, _, headers = server.raw("GET", path)
            assert (status, headers["location"]) == (303, "/login")
        assert server.raw("GET", "/login")[0] == 200
        for name in _assets():
            assert server.raw("GET", f"/assets/{name}")[0] == 200
        assert server.raw("GET", "/assets/..%2fpeople.py")[0] == 404
        token = server.site.tokens.add("alice", "reader")
        server.headers = {"Authorization": f"Bearer {token}"}
        status, body, headers = server.raw("GET", "/crawls/c")
        assert status == 200
        assert b"You are <b>alice</b>, reader" in body
        assert "script-src 'self'" in headers["content-security-policy"]
        assert server.raw("GET", "/crawls/other")[0] == 404
        assert {one.role for one in PAGES.all} == {None}


@pytest.mark.slow
def test_a_login_is_a_cookie_that_ends_with_its_token(tmp_path):
    with served(tmp_path / "c", tokens=tmp_path / "tokens.json", needs_token=True) as server:
        token = server.site.tokens.add("alice", "admin")
        assert server.ask("POST", "/login", {"token": "wrong"})[0] == 403
        assert server.ask("POST", "/login", {"token": 7})[0] == 422
        status, _, headers = server.raw(
            "POST", "/login", b'{"token": "%s"}' % token.encode(), {"Content-Type": "application/json"}
        )
        cookie = headers["set-cookie"]
        assert status == 200
        assert token not in cookie
        assert re.fullmatch(
            rf"inlink-{server.port}=[\w-]{{43}}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict", cookie
        )
        mine = {"Cookie": cookie.partition(";")[0]}
        assert server.raw("GET", "/v1/crawls/c/standing", headers=mine)[0] == 200
        assert server.raw("GET", "/v1/crawls/c/standing", headers={"Cookie": mine["Cookie"] + "x"})[0] == 401
        assert server.raw("GET", "/v1/crawls/c/standing", headers={"Cookie": '=;;\xff"'})[0] == 401
        # Another site's page cannot use it.
        foreign = mine | {"Origin": "http://evil.example", "Content-Type": "application/json"}
        assert server.raw("POST", "/v1/crawls/c/pause", headers=foreign)[0] == 403
        _, _, headers = server.raw("POST", "/logout", headers=mine | {"Content-Type": "application/json"})
        assert "Max-Age=0" in headers["set-cookie"]
        assert server.raw("GET", "/v1/crawls/c/standing", headers=mine)[0] == 401


@pytest.mark.slow
def test_wrong_tokens_are_slowed_down(tmp_path, monkeypatch):
    with served(tmp_path / "c", tokens=tmp_path / "tokens.json", needs_token=True) as server:
        began = time.monotonic()
        assert server.ask("POST", "/login", {"token": "wrong"})[0] == 403
        assert time.monotonic() - began > 0.9 * logins.WRONG_SECONDS
        monkeypatch.setattr(logins, "MOST_WRONG", 0)
        status, refusal = server.ask("POST", "/login", {"token": "wrong"})
        assert (status, refusal["kind"]) == (503, "BusyError")


def test_a_cookie_under_tls_stays_with_its_host(tmp_path):
    tokens = Tokens(tmp_path / "tokens.json")
    text = tokens.add("alice", "reader")
    kept = logins.Logins(tokens)
    scope = {"scheme": "https", "server": ("127.0.0.1", 8443), "headers": []}
    cookie = asyncio.run(kept.begin(scope, text)).decode()
    assert re.fullmatch(
        r"__Host-inlink-8443=[\w-]{43}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure", cookie
    )
    scope["headers"] = [(b"cookie", b"other=1; " + cookie.partition(";")[0].encode())]
    assert kept.token(scope).name == "alice"
    kept.end(scope)
    assert kept.token(scope) is None
