"""Scrapy's schedulers beside inlink's, one file each; :mod:`bench.spiders.base` says what a file has to offer."""
