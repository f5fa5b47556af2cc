"""All other formats: `read` reads links from them, `write` writes graphs for other programs."""
