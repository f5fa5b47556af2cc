"""A door: crawls behind HTTP, for many spiders, with pages for people."""
