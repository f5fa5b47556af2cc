"""Audits of crawled sites: faults, and the pages to edit."""
