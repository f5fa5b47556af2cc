"""A download handler. Its base class takes a second to import under pytest, so few tests import this module."""

from typing import Any

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.http import Response


class BrowserHandler(HTTP11DownloadHandler):
    """Has Scrapy's handler as its base, and connects in its own way, as that of scrapy-playwright does."""

    async def download_request(self, request: Any) -> Response:
        raise AssertionError
