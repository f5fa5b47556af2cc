"""Signals that the scheduler sends, beside Scrapy's own."""

__all__ = ["page_reported"]

page_reported = object()
"""The crawl has taken in the outcome of a page.

Handlers get ``url`` (str), ``outcome`` ("crawled", "failed", "excluded", "redirected" or "released"), ``status``
(int or None), ``score`` (float), ``links`` (int), ``error`` (str or None) and ``counted`` (bool).
"""
