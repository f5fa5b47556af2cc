"""Rounding of float64, from which error bounds are computed."""

__all__ = ["ROUNDOFF"]

ROUNDOFF = 2.0**-53
"""Unit roundoff of float64: the largest relative error of one rounding to the nearest number."""
