"""A crawl on disk: an append-only log, and the views that are folded from it."""
