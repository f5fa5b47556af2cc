"""Format numbers and dates as Java does, since Nutch's dumps contain them."""

import datetime

import numpy as np


def java_float(value: float) -> str:
    """Format a 32-bit float as Java's ``Float.toString`` does since JDK 19: with the fewest digits that identify it.

    Examples
    --------
    >>> java_float(3), java_float(0.1), java_float(12345678), java_float(1e-4)
    ('3.0', '0.1', '1.2345678E7', '1.0E-4')
    """
    with np.errstate(over="ignore"):
        number = np.float32(value)
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    size = abs(number)
    if size == 0 or 1e-3 <= size < 1e7:
        return np.format_float_positional(number, unique=True, trim="0")
    digits, _, exponent = np.format_float_scientific(number, unique=True, trim="0").partition("e")
    return f"{digits}E{int(exponent)}"


def java_date(milliseconds: int) -> str:
    """Format a time as Java's ``Date.toString`` does, in UTC: ``Thu Jan 01 00:00:00 UTC 1970``."""
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=milliseconds // 1000)
    except OverflowError:
        # Years beyond 9999 are in damaged files and in a test of Nutch.
        return f"{milliseconds} ms"
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[moment.weekday()]
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{day} {months[moment.month - 1]} {moment:%d %H:%M:%S} UTC {moment.year}"
