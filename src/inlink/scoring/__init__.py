"""Score pages and links: how well a page fits a topic, and how promising each of its links is."""
