"""Debian's Chromium, driven over the protocol of WebDriver: a few calls, without a package for it."""

import base64
import contextlib
import http.client
import json
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from patience import PATIENCE, wait_until

__all__ = ["MISSING", "Browser", "browser", "overflow"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = (
    None if CHROMIUM and DRIVER else "no chromium and chromedriver: apt-get install chromium chromium-driver"
)

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A window of the browser."""

    def __init__(self, port: int) -> None:
        self._port, self._session = port, ""

    def begin(self, folder: str) -> None:
        options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={folder}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        reply = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{reply['sessionId']}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """A command of WebDriver."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body))
            value = json.loads(connection.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"{value['error']}: {value['message']}")
        return value

    def do(self, what: str, **body: Any) -> Any:
        return self.ask("POST", f"{self._session}/{what}", body)

    def open(self, url: str) -> None:
        self.do("url", url=url)

    @property
    def url(self) -> str:
        return str(self.ask("GET", f"{self._session}/url"))

    def run(self, script: str, *given: Any) -> Any:
        """The result of a script, whose ``arguments`` are those given."""
        return self.do("execute/sync", script=script, args=list(given))

    def text(self, selector: str) -> str:
        """The text of the first element; empty if there is none."""
        return str(self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector))

    def wait(self, script: str, what: str, *given: Any) -> Any:
        """Wait until a script returns something true, and return it."""
        found: list[Any] = []

        def look() -> bool:
            found[:] = [self.run(script, *given)]
            return bool(found[0])

        try:
            wait_until(look, what, every=0.05)
        except TimeoutError as error:
            error.add_note(f"the page says {self.text('main')[-3000:]!r}; the console says {self.log()}")
            raise
        return found[0]

    def wait_for_text(self, selector: str, text: str) -> None:
        self.wait(
            "return (document.querySelector(arguments[0])?.textContent ?? '').includes(arguments[1])",
            f"{text!r} in {selector}",
            selector,
            text,
        )

    def element(self, selector: str) -> str:
        """The first element for a selector, as WebDriver names it."""
        self.wait("return document.querySelector(arguments[0]) !== null", selector, selector)
        return str(self.do("element", using="css selector", value=selector)[ELEMENT])

    def click(self, selector: str) -> None:
        # The page moves under a real pointer while it is kept up to date.
        self.element(selector)
        self.run("document.querySelector(arguments[0]).click()", selector)

    def click_text(self, selector: str, text: str) -> None:
        """Click the first element with a text."""
        mark = "[...document.querySelectorAll(arguments[0])].find((one) => one.textContent.includes(arguments[1]))"
        self.wait(f"return {mark} !== undefined", f"{text!r} among {selector}", selector, text)
        self.run(f"{mark}.click()", selector, text)

    def type(self, selector: str, text: str) -> None:
        self.do(f"element/{self.element(selector)}/value", text=text)

    def devtools(self, command: str, **params: Any) -> Any:
        return self.do("goog/cdp/execute", cmd=command, params=params)

    def size(self, width: int, height: int = 844, *, phone: bool = False) -> None:
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def scheme(self, scheme: str) -> None:
        """Prefer ``light`` or ``dark``."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.devtools("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, file: Path, height: int | None = None) -> None:
        """Write a picture of the window, or of the whole page."""
        shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=height is None)
        file.write_bytes(base64.b64decode(shot["data"]))

    def log(self) -> list[str]:
        """The messages of the console since the last call."""
        return [str(one["message"]) for one in self.do("se/log", type="browser")]


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A browser without any past, which reaches loopback only."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        driver = subprocess.Popen(
            [str(DRIVER), f"--port={port}", "--silent"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        found = Browser(port)
        try:
            wait_until(lambda: _answers(port), "chromedriver to listen")
            found.begin(folder)
            yield found
        finally:
            with contextlib.suppress(OSError, AssertionError):
                found.ask("DELETE", found._session)
            driver.terminate()
            driver.wait()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def overflow(window: Browser) -> list[str]:
    """Elements that reach beyond the window."""
    found: list[str] = window.run(
        "return [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right >"
        " innerWidth + 1 && one.getClientRects().length && !one.closest('thead'))"
        ".map((one) => one.outerHTML.slice(0, 200))"
    )
    return found
