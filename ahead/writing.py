"""Finds the arrays that a kernel does not write to, and declares them read-only in its signatures."""

import copy
from collections.abc import Iterator
from typing import Any

from numba.core import compiler, errors
from numba.core.compiler_machinery import AnalysisPass, PassManager, register_pass
from numba.core.registry import cpu_target
from numba.core.typed_passes import NopythonTypeInference

from ahead.compiling import flags_of, kernel_at
from ahead.signatures import Text, type_of

__all__ = ["with_read_only"]


def with_read_only(signatures: dict[str, list[list[Text]]]) -> dict[str, list[list[Text]]]:
    """Return the signatures with each array read-only that the kernel does not write to.

    Arrays of records keep their access. A recorded run passes writable arrays for a graph in memory, and read-only
    arrays for a graph in a folder. Machine code for a read-only array accepts both.
    """
    return {
        place: [_with_read_only(kernel_at(place), call) for call in calls]
        for place, calls in signatures.items()
    }


def _with_read_only(kernel: Any, call: list[Text]) -> list[Text]:
    changed = copy.deepcopy(call)
    for array in _arrays(changed):
        # Numba accepts a kernel that writes to the fields of a read-only array of records, so these are left out.
        if array[4] == "w" and isinstance(array[1], str):
            array[4] = "r"
            if not _can_be_typed(kernel, changed):
                array[4] = "w"
    return changed


def _arrays(texts: list[Text]) -> Iterator[list[Text]]:
    for text in texts:
        match text:
            case ["array", *_]:
                yield text
            case [("tuple" | "named"), *_, parts]:
                yield from _arrays(parts)


def _can_be_typed(kernel: Any, call: list[Text]) -> bool:
    """Return whether Numba can infer all types of a kernel. It cannot if the kernel writes to a read-only array."""
    types = tuple(map(type_of, call))
    try:
        compiler.compile_extra(
            cpu_target.typing_context,
            cpu_target.target_context,
            kernel.py_func,
            types,
            None,
            flags_of(kernel),
            locals={},
            pipeline_class=_Typing,
        )
    except errors.NumbaError:
        return False
    return True


@register_pass(mutates_CFG=False, analysis_only=True)
class _Typed(AnalysisPass):
    _name = "inlink_typed"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Set a result, so that the compiler does not report that all its pipelines failed."""
        state.cr = state.return_type
        return False


class _Typing(compiler.CompilerBase):
    """Numba's compiler up to type inference."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes up to type inference."""
        manager = PassManager("typing")
        manager.passes.extend(compiler.DefaultPassBuilder.define_untyped_pipeline(self.state).passes)
        manager.add_pass(NopythonTypeInference, "infer types")
        manager.add_pass(_Typed, "end")
        manager.finalize()
        return [manager]
