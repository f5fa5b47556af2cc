"""The largest values that settings can have."""

LONGEST = 1e9
"""The longest wait that can be set, in seconds: 31 years."""

NO_LIMIT = 0xFFFFFFFF
"""The largest number of leases or pages. As a limit it means no limit."""
