"""How spiders, programs and commands reach a crawl, whether it is in a folder or behind a server."""
