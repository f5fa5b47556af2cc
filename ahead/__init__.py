"""Machine code ahead of time: compiles inlink's kernels into the library that a wheel brings along.

``signatures.json`` lists the kernels that are called from Python, with the types of their arguments. A run of the tests
records them: ``python -m ahead record python -m pytest -n auto`` (:mod:`ahead.record`). The build compiles them with
Numba to object code (:mod:`ahead.compiling`), writes a C function for each that takes Python's arguments apart
(:mod:`ahead.stubs`), and links both to one library for each level of x86-64 and for aarch64 (:mod:`ahead.linking`).
:mod:`inlink.base.machinecode` loads it.
"""
