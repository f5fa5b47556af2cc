"""Rankers, one file a peer, all with the names that :class:`bench.peers.base.Peer` lists."""
