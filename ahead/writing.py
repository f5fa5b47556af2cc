"""Which arrays a kernel writes: in a signature all others are read-only, as machine code for those takes any array."""

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
    """Return signatures in which each array is read-only that its kernel does not write; records stay as they are.

    A run records only the arrays that it happened to pass. Those of a graph in memory can be written, and those of a
    graph in a folder cannot.
    """
    return {
        place: [_with_read_only(kernel_at(place), call) for call in calls]
        for place, calls in signatures.items()
    }


def _with_read_only(kernel: Any, call: list[Text]) -> list[Text]:
    found = copy.deepcopy(call)
    for array in _arrays(found):
        # Numba lets a kernel write the fields of a read-only array of records.
        if array[4] == "w" and isinstance(array[1], str):
            array[4] = "r"
            if not _has_types(kernel, found):
                array[4] = "w"
    return found


def _arrays(texts: list[Text]) -> Iterator[list[Text]]:
    for text in texts:
        match text:
            case ["array", *_]:
                yield text
            case [("tuple" | "named"), *_, parts]:
                yield from _arrays(parts)


def _has_types(kernel: Any, call: list[Text]) -> bool:
    """Return whether Numba finds types for all of a kernel: it finds none where a read-only array is written."""
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
        """Take the types as the result."""
        state.cr = state.return_type
        return False


class _Typing(compiler.CompilerBase):
    """The part of Numba's compiler that finds types."""

    def define_pipelines(self) -> list[Any]:
        """Return all passes up to the one that finds types."""
        manager = PassManager("typing")
        manager.passes.extend(compiler.DefaultPassBuilder.define_untyped_pipeline(self.state).passes)
        manager.add_pass(NopythonTypeInference, "find types")
        manager.add_pass(_Typed, "end")
        manager.finalize()
        return [manager]
