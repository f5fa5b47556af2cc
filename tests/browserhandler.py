"""A handler of downloads, in a module of its own: its base takes a second to import in a process of pytest."""

from typing import Any

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.http import Response


class BrowserHandler(HTTP11DownloadHandler):
    """Has Scrapy's handler as its base, and connects in its own way, as that of scrapy-playwright does."""

    async def download_request(self, request: Any) -> Response:
        raise AssertionError
