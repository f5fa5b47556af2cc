"""Servers through which several Scrapy processes share one crawl, one file each; see :mod:`bench.fleets.base`."""
