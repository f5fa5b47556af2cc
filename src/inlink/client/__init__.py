"""Access of spiders, programs and commands to a crawl in a folder or on a server."""
