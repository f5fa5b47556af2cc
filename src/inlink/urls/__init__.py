"""The canonical form, the host and the registered domain of URLs: pure functions by the WHATWG rules."""
