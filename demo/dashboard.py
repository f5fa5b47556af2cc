"""Draw the dashboard of a living crawl: ``python demo/dashboard.py docs/dashboard.png``.

A server crawls the small generated web on loopback with three small spiders. After some time, Chromium takes a picture
of the dashboard. Debian has the browser: ``apt-get install chromium chromium-driver``.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from smallweb import SmallWeb

from inlink.scoring.reading import read_page

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser import MISSING, browser

SPIDERS, SECONDS = 3, 60


def ask(url: str, body: Any) -> Any:
    """POST a body to a server of inlink."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())


def fetch(task: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a task: the links of its page, or the reason of the failure."""
    lease = {"lease": task["lease"]}
    try:
        with urllib.request.urlopen(task["url"], timeout=5) as reply:
            body, kind, url = reply.read(), reply.headers.get("Content-Type"), reply.url
    except urllib.error.HTTPError as error:
        return {"type": "failed", "status": error.code, **lease}
    except (OSError, ValueError) as error:
        return {"type": "failed", "error": f"{type(error).__name__}: {error}", **lease}
    page = read_page(body, url, content_type=kind)
    links = [link.url for link in page.links][:1000]
    moved = {} if url == task["url"] else {"redirected_to": url}
    return {"type": "crawled", "links": links, **moved, **lease}


def spider(crawl: str, owner: str, over: threading.Event) -> None:
    """Fetch pages until it is over."""
    session = ask(f"{crawl}/sessions", {"owner": owner})["session"]["number"]
    while not over.is_set():
        tasks = ask(f"{crawl}/next", {"session": session, "n": 5, "wait": 1})["tasks"]
        if tasks:
            ask(f"{crawl}/answers", {"session": session, "answers": [fetch(task) for task in tasks]})


def main(file: Path) -> None:
    if MISSING is not None:
        sys.exit(MISSING)
    with tempfile.TemporaryDirectory() as folder, SmallWeb(pages=6000) as web:
        crawl = Path(folder) / "mycrawl"
        command = [sys.executable, "-m", "inlink", "serve", str(crawl), "--port", "0"]
        with subprocess.Popen(
            [*command, "--set", "politeness.delay=0.05"], stdout=subprocess.PIPE, text=True
        ) as server:
            try:
                picture(server, web.seeds(), file)
            finally:
                server.terminate()


def picture(server: "subprocess.Popen[str]", seeds: list[str], file: Path) -> None:
    """Crawl with a server that has just started, and take a picture of its dashboard."""
    assert server.stdout is not None
    url = next(line.strip() for line in server.stdout if line.startswith("http"))
    for _ in range(600):  # the line comes just before the server listens
        try:
            ask(f"{url}/seeds", {"urls": seeds})
            break
        except urllib.error.URLError:
            time.sleep(0.1)
    over = threading.Event()
    threads = [
        threading.Thread(target=spider, args=(url, f"spider-{k}", over)) for k in range(1, SPIDERS + 1)
    ]
    try:
        for thread in threads:
            thread.start()
        with browser() as window:
            window.size(1000, 1075)
            window.open(url.replace("/v1", ""))
            time.sleep(SECONDS)
            window.picture(file, 1075)
    finally:
        over.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
