"""Logarithmic axes that also have a place for 0, so that pages without inlinks or rank are visible."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from inlink.base.arrays import AnyArray, Float64Array
from inlink.plot.style import FAINT

# Values below this share of the largest value are rounding errors, and are drawn as 0.
FLOOR = 1e-16
# The smallest limit of an axis, so that it does not underflow.
TINY = 1e-280

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Scale:
    """The places of values on a logarithmic axis.

    Attributes
    ----------
    low, high : float
        The smallest and the largest value that are not 0; both are 1 if all values are 0.
    zero : float or None
        The place of 0, below ``low``; None if no value is 0.
    """

    low: float
    high: float
    zero: float | None

    @classmethod
    def of(cls, values: AnyArray) -> "Scale":
        """Make the scale that shows all of the values, which must be in [0, 1e300]."""
        high = float(values.max(initial=0))
        shown = values[values >= max(high * FLOOR, TINY)]
        if not len(shown):
            low = high = 1.0
        else:
            low = float(shown.min())
        zero = low * 10 ** -max(0.8, 0.07 * math.log10(high / low)) if len(shown) < len(values) else None
        return cls(low, high, zero)

    def place(self, values: AnyArray) -> Float64Array:
        """The places of values, float64[k]: the values themselves, or the place of 0."""
        return np.where(values >= self.low, values, self.low if self.zero is None else self.zero)

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the axis."""
        begin = self.low if self.zero is None else self.zero
        pad = 10 ** max(0.1, 0.04 * math.log10(self.high / begin))
        return begin / pad, self.high * pad

    def edges(self, count: int, *, whole: bool = False) -> Float64Array:
        """The edges of about ``count`` cells of the axis, float64[cells + 1]; ``whole`` centres cells on integers.

        Values of 0 have the first cell. The cell after it stays empty.
        """
        begin, end = (math.log(limit) for limit in self.limits)
        cells = math.ceil(count * math.log(self.high / self.low) / (end - begin)) or 1
        if whole:
            edges = np.unique(np.geomspace(self.low, self.high + 1, cells + 1).round()) - 0.5
        else:
            wide = 1 + 1e-9 if self.high > 1.05 * self.low else 1.03
            edges = np.geomspace(self.low / wide, self.high * wide, cells + 1 if wide < 1.03 else 2)
        if self.zero is None:
            return edges
        half = min(math.exp(1.5 * (end - begin) / count), (self.low / self.zero) ** 0.25)
        return np.concatenate([[self.zero / half, self.zero * half], edges])

    def apply(self, ax: Axes, which: Literal["x", "y"]) -> None:
        """Make an axis of ``ax`` logarithmic, with these limits and ticks."""
        ticks = steps(self.low, self.high)
        labels = [tick_label(tick) for tick in ticks]
        if self.zero is not None:
            ticks, labels = [self.zero, *ticks], ["0", *labels]
            line = ax.axvline if which == "x" else ax.axhline
            line(math.sqrt(self.zero * self.low), color=FAINT, linewidth=0.8, linestyle=":", zorder=0.5)
        # Matplotlib warns of values that are nearly the same if it scales the axis itself.
        ax.set(**{f"autoscale{which}_on": False, f"{which}scale": "log", f"{which}lim": self.limits})
        axis = ax.xaxis if which == "x" else ax.yaxis
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(FixedFormatter(labels))
        axis.set_minor_locator(NullLocator())


def steps(low: float, high: float) -> list[float]:
    """Ticks from low to high: at most nine powers of ten, or 1, 2, 5, 10, … if there are few of them."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first >= 2:
        step = (last - first) // 9 + 1
        return [10.0**k for k in range(-(-first // step) * step, last + 1, step)]
    marks = [digit * 10.0**k for k in range(first - 1, last + 1) for digit in (1, 2, 5)]
    shown = [mark for mark in marks if low * (1 - 1e-9) <= mark <= high * (1 + 1e-9)]
    if len(shown) > 1:
        return shown
    return [low, high] if high > 1.2 * low else [low]


def tick_label(value: float) -> str:
    """A number in at most three digits: 1, 20, 1,000, and from there powers of ten."""
    digits, _, power = f"{value:.2e}".partition("e")
    if 0 <= int(power) <= 4:
        return f"{float(f'{value:.2e}'):,g}"
    digits = digits.rstrip("0").rstrip(".")
    exponent = str(int(power)).translate(_SUPERSCRIPTS)
    return f"10{exponent}" if digits == "1" else f"{digits}·10{exponent}"
