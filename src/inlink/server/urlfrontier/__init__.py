"""URLFrontier, the protocol of crawler-commons for a shared frontier, over gRPC: StormCrawler speaks it."""
