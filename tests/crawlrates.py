"""Crawl rates of hosts, formulas (1) and (2) of inlink.frontier.backoff: the oracle for the queue's loops."""

import math


def cooled(temperature: float, elapsed: float, window: float) -> float:
    """A temperature after ``elapsed`` seconds, formula (1); time that seems to run back does not heat.

    Parameters
    ----------
    temperature : float
        As it was, in crawls.
    elapsed : float
        Seconds since then.
    window : float
        The time constant in seconds, above 0. Between 1/500 of the seconds between two crawls at the lowest limit (a
        colder host cannot be told from one that was never crawled) and as long as a burst may last.
    """
    return temperature * math.exp(-max(elapsed, 0.0) / window)


def due_under(temperature: float, limit: float, window: float) -> float:
    """The seconds until the rate of a temperature has fallen to a limit.

    Parameters
    ----------
    temperature : float
        As it is now, in crawls.
    limit : float
        Crawls a second.
    window : float
        The time constant in seconds, above 0.

    Returns
    -------
    float
        0 where the host may be crawled now; infinite for a limit of 0, once it was crawled.
    """
    if temperature <= 0:
        return 0.0
    if limit <= 0:
        return math.inf
    gap = 1.0 / (limit * window)
    # w·ln(T·(exp(gap) − 1)), written so that a gap of thousands does not overflow
    wait = window * (math.log(temperature) + gap + math.log(-math.expm1(-gap)))
    # rounding must not make a host wait again
    return wait if wait > 1e-6 else 0.0
