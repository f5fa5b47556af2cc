"""Questions to a crawl: their table, their answers, and the searches that look for answers."""
