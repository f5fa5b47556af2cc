"""The crawl's one truth on disk, an append-only log, and the views that are folded from it."""
