"""Loops over bytes and bits of foreign formats."""
