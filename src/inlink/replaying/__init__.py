"""Replays of inlink's crawl over a known web in virtual time, to measure the orders of policies."""
