"""Decoding: threads that decode a struct for the first time together."""

import subprocess
import sys

import msgspec
import pytest

from inlink.base.decoding import converted, decoded

_TOGETHER = (
    """
import sys, threading
import msgspec
from inlink.base.decoding import converted, decoded

sys.setswitchinterval(1e-6)
text = """
    + repr("""
class Inner(msgspec.Struct):
    a: int
    b: list[str] = []

class Outer(msgspec.Struct):
    inner: list[Inner]
    by_name: dict[str, Inner]
    text: str | None = None
""")
    + """
raw = b'{"inner": [{"a": 1, "b": ["x"]}], "by_name": {"k": {"a": 2}}, "text": "t"}'
value = msgspec.json.decode(raw)
for turn in range(100):
    kinds = {"msgspec": msgspec}
    exec(text, kinds)
    calls = [
        lambda: decoded(raw, kinds["Outer"]),
        lambda: converted(value, kinds["Outer"]),
        lambda: decoded(b'{"a": 1}', kinds["Inner"]),
    ]
    together = threading.Barrier(6)
    threads = [threading.Thread(target=lambda call=call: (together.wait(), call())) for call in 2 * calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("ended")
"""
)


@pytest.mark.slow
def test_threads_may_decode_a_struct_for_the_first_time_together():
    """With msgspec's own functions, this ends with a segmentation fault within a few turns (0.22.0)."""
    done = subprocess.run([sys.executable, "-c", _TOGETHER], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr[-500:]


_FORKED = """
import os, signal, sys, threading
from inlink.base import decoding

with decoding._describing:
    threading.Timer(0.5, decoding._describing.release).start()
    child = os.fork()
    if not child:
        signal.alarm(60)
        print(decoding.decoded(b"[1]", list[int]), flush=True)
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
    decoding._describing.acquire()
"""


def test_a_child_of_a_fork_gets_no_lock_that_nobody_releases():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKED], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[1]\n0\n"), done.stderr[-500:]


def test_errors_and_options_are_those_of_msgspec():
    class Number(msgspec.Struct):
        n: int

    assert decoded(b'{"n": 1}', Number) == converted({"n": "1"}, Number, strict=False) == Number(1)
    for call in (lambda: decoded(b'{"n": "1"}', Number), lambda: converted({"n": "1"}, Number)):
        with pytest.raises(msgspec.ValidationError, match=r"Expected `int`, got `str` - at `\$\.n`"):
            call()
    with pytest.raises(msgspec.DecodeError, match="malformed"):
        decoded(b"{n}", Number)
