"""Crawls' stores and frontiers, one file a peer, all with the names that :class:`bench.crawlers.base.Peer` lists."""
