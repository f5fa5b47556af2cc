"""Replays: the product's own crawl over a known web in virtual time, and what each order of it is worth."""
