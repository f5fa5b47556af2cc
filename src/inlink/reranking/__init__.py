"""Keeping a crawl ranked: live rankings, and the process that computes them."""
