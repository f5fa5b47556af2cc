"""Numbers and dates as Java prints them, since Nutch's dumps hold them."""

import datetime

import numpy as np

__all__ = ["java_date", "java_float"]


def java_float(value: float) -> str:
    """A number in 32 bits as Java's ``Float.toString`` has it (the shortest digits that tell it, as since JDK 19).

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
    """A time as Java's ``Date.toString`` has it, in UTC: ``Thu Jan 01 00:00:00 UTC 1970``."""
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=milliseconds // 1000)
    except OverflowError:  # beyond the year 9999, which only damage or a test of Nutch's holds
        return f"{milliseconds} ms"
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[moment.weekday()]
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{day} {months[moment.month - 1]} {moment:%d %H:%M:%S} UTC {moment.year}"
