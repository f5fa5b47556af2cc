"""Ctrl-C before a given line."""

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


def interrupted(call: Callable[[], object], line: int, traced: Callable[[CodeType], bool]) -> bool:
    """Make a call, and raise KeyboardInterrupt before the traced line of this number; return whether it was reached."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if not traced(frame.f_code):
            return None
        if event == "line":
            lines += 1
            if lines == line:
                raise KeyboardInterrupt
        return trace

    earlier = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(earlier)
    return False
