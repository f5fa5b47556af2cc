"""A door: crawls behind HTTP, for many spiders and for people who watch."""
