"""The frontier's compiled loops."""
