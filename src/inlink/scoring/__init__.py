"""What a page says: its text and links, how good it is for a topic, and how promising each link."""
