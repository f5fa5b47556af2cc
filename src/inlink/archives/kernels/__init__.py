"""Loops over the bytes of archives."""
