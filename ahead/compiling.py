"""From kernels and signatures to object files, by Numba's own compiler for code that is kept."""

import importlib
import re
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core import compiler
from numba.core.codegen import AOTCodeLibrary, AOTCPUCodegen
from numba.core.compiler import Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime import nrtdynmod

from ahead.linking import TARGETS
from ahead.signatures import Text, described, type_of

__all__ = ["Native", "compiled", "flags_of", "kernel_at"]


class Native(NamedTuple):
    """A kernel's machine code for one signature.

    Attributes
    ----------
    symbol : str
        The function's name in the object file. It follows Numba's calling convention: it takes a place for the result,
        a place for an exception, and the arguments taken apart, and returns 0 unless there is an exception.
    arguments : list
        The types of the arguments, as text.
    result : str or list
        The type of the result, as text.
    """

    symbol: str
    arguments: list[Text]
    result: Text


def kernel_at(place: str) -> Any:
    """Return Numba's object of a kernel, by ``module:name``."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


class _Library(AOTCodeLibrary):
    """A library that keeps the modules that it was made of, as they were before they were optimised."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.modules: list[Any] = []

    def add_llvm_module(self, ll_module: Any) -> None:
        """Keep a module."""
        self.modules.append(ll_module)

    def optimized_for(self, codegen: Any) -> Any:
        """Return a library of the same modules, to be optimised for another processor."""
        library = codegen.create_library(self.name)
        for module in self.modules:
            library.add_llvm_module(module.clone())
        for other in self._linking_libraries:
            library.add_linking_library(other)
        return library


class _Codegen(AOTCPUCodegen):
    """Numba's compiler of object files, for this machine or another one."""

    def __init__(self, machine: str, cpu: str) -> None:
        self._triple = TARGETS[machine].triple
        super().__init__("inlink", cpu)

    def _init(self, module: Any) -> None:
        """Make the engine for this machine, as Numba's class does, and give object files their own target."""
        cpu, self._cpu_name = self._cpu_name, ""
        super()._init(module)
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple(self._triple)
        self._tm = target.create_target_machine(cpu=cpu, opt=3, reloc="pic", codemodel="default")
        self._target_data = self._tm.target_data
        self._data_layout = str(self._target_data)

    def _create_empty_module(self, name: str) -> Any:
        module = super()._create_empty_module(name)
        if self._data_layout:
            module.triple = self._triple
        return module


@global_compiler_lock
def compiled(
    signatures: dict[str, list[list[Text]]], cpus: list[str], machine: str = "x86_64"
) -> tuple[list[bytes], dict[str, list[Native]]]:
    """Compile kernels for processors of one machine.

    Numba takes most of the time to find the types and to write the program in LLVM's language. This is done once for
    all processors.

    Parameters
    ----------
    signatures : dict
        The types of the arguments, by kernel.
    cpus : list of str
        LLVM's names of the processors, such as ``"x86-64-v3"``.
    machine : str
        A key of :data:`ahead.linking.TARGETS`.

    Returns
    -------
    list of bytes, dict
        The object file for each processor, and their functions by kernel.
    """
    codegen = _Codegen(machine, cpus[0])
    context = cpu_target.target_context.subtarget(_internal_codegen=codegen, aot_mode=True)
    library = _Library(codegen, "inlink")
    # Counts references to arrays that kernels make.
    library.add_ir_module(nrtdynmod.create_nrt_module(context)[0])
    made: dict[str, list[Native]] = {}
    symbols: dict[str, str] = {}
    for place, calls in sorted(signatures.items()):
        kernel = kernel_at(place)
        for variant, arguments in enumerate(calls):
            found = compiler.compile_extra(
                cpu_target.typing_context,
                context,
                kernel.py_func,
                tuple(map(type_of, arguments)),
                None,
                flags_of(kernel),
                locals={},
                library=library,
            )
            symbol = f"{re.sub('[.:]', '_', place)}_{variant}"
            symbols[found.fndesc.llvm_func_name] = symbol
            made.setdefault(place, []).append(
                Native(symbol, arguments, described(found.signature.return_type))
            )
    return [_object(library.optimized_for(_Codegen(machine, cpu)), symbols) for cpu in cpus], made


def _object(library: Any, symbols: dict[str, str]) -> bytes:
    """Return a library as an object file in which only some functions can be seen, under new names."""
    for name, symbol in symbols.items():
        library.get_function(name).name = symbol
    library.finalize()
    kept = set(symbols.values())
    for function in library.get_defined_functions():
        if function.name not in kept and function.linkage.name not in ("private", "internal"):
            function.linkage = "internal"
    machine_code: bytes = library.emit_native_object()
    return machine_code


def flags_of(kernel: Any) -> Any:
    """Return the flags of Numba's usual compilation of a kernel, without wrappers for Python."""
    flags: Any = Flags()
    kernel.targetdescr.options.parse_as_flags(flags, kernel.targetoptions)
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    return flags
