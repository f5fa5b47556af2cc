"""The compiled loops of the rank room; each has a slow, obvious twin in ``tests/oracles.py``."""
