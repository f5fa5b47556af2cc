"""The compiled loops of the store; each has a slow, obvious twin in the tests."""
