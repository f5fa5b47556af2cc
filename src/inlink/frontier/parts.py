"""The named parts of a priority, for policies of users: see :mod:`inlink.factors.parts`."""

from inlink.factors.parts import NOT_REACHED, Part, combined

__all__ = ["NOT_REACHED", "Part", "combined"]
