"""Signals that the scheduler sends, beside Scrapy's own."""

__all__ = ["page_reported"]

page_reported = object()
"""What came of a page was taken in by the crawl.

Handlers get ``url`` (str), ``outcome`` ("crawled", "failed", "excluded", "redirected" or "released"), ``status``
(int or None), ``score`` (float), ``links`` (int), ``error`` (str or None) and ``counted`` (bool).
"""
