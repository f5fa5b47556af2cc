"""Every foreign format, in and out: `read` for what holds links, `write` for what other programs read."""
