"""The crawl: what writes its log."""
