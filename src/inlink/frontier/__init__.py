"""The order of a crawl: policies, politeness, revisits, explanations."""
