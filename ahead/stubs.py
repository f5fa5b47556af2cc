"""The C functions that Python calls: each takes the arguments apart, and calls the machine code of its kernel.

A function compares the types of its arguments with each recorded signature as strictly as Numba does. If none fits, it
calls a Python function that is given when the library is loaded.
"""

import json
from pathlib import Path

from ahead.compiling import Native
from ahead.signatures import Text, dtype_of

__all__ = ["source"]

_RUNTIME = Path(__file__).with_name("runtime.c")

_C_TYPES = {
    "bool": "uint8_t",
    "float64": "double",
    "float32": "float",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class _Tables:
    """The records and the classes of named tuples that signatures name."""

    def __init__(self) -> None:
        self.records: list[Text] = []
        self.classes: list[str] = []

    def record(self, text: Text) -> int:
        """Return the number of a record's dtype."""
        return _place(self.records, text)

    def named(self, place: str) -> int:
        """Return the number of a class."""
        return _place(self.classes, place)


def _place(known: list[Text], wanted: Text) -> int:
    if wanted not in known:
        known.append(wanted)
    return known.index(wanted)


def _checks(text: Text, value: str, tables: _Tables) -> list[str]:
    """Return the conditions, in C, under which a Python object has a type."""
    if isinstance(text, str):
        return [f"is_{text}({value})"]
    match text:
        case ["bytes"]:
            return [f"is_bytes({value})"]
        case ["array", item, dimensions, layout, access, *unaligned]:
            flags = [{"C": "CONTIGUOUS", "F": "FORTRAN", "A": "0"}[layout]]
            flags += [] if unaligned else ["ALIGNED"]
            flags += ["WRITEABLE"] if access == "w" else []
            dtype = dtype_of(item)
            checks = [f"is_array({value}, {dimensions}, {'|'.join(flags)}, '{dtype.kind}', {dtype.itemsize})"]
            if dtype.kind == "V":
                checks.append(f"is_record({value}, &records[{tables.record(item)}])")
            return checks
        case ["tuple", parts]:
            checks = [f"is_tuple({value}, {len(parts)})"]
        case ["named", place, parts]:
            checks = [f"is_named({value}, &classes[{tables.named(place)}]) == 1"]
        case _:
            raise ValueError(f"no type: {text!r}")
    for number, part in enumerate(parts):
        checks += _checks(part, f"PyTuple_GetItem({value}, {number})", tables)
    return checks


def _taken_apart(text: Text, value: str) -> list[tuple[str, str]]:
    """Return the C types and values as which the machine code takes an argument."""
    if text == "none":
        return [("void *", "NULL")]
    if isinstance(text, str):
        return [(_C_TYPES[text], f"{text}_of({value})")]
    match text:
        case ["bytes"]:
            size, data = f"PyBytes_Size({value})", f"PyBytes_AsString({value})"
            values = ["NULL", value, size, "1", data, size, "1"]
        case ["array", _, dimensions, *_]:
            array = f"((Array *){value})"
            values = ["NULL", value, f"items_of({array})", f"{array}->dtype->size", f"{array}->data"]
            values += [f"{array}->shape[{axis}]" for axis in range(dimensions)]
            values += [f"{array}->strides[{axis}]" for axis in range(dimensions)]
        case [_, *_, parts]:
            return [
                pair
                for number, part in enumerate(parts)
                for pair in _taken_apart(part, f"PyTuple_GetItem({value}, {number})")
            ]
    kinds = ["void *", "void *", "int64_t", "int64_t", "void *", *["int64_t"] * (len(values) - 5)]
    return list(zip(kinds, values, strict=True))


def _result_type(text: Text) -> str:
    """Return the C type of a result."""
    if text == "none":
        return "void *"
    if isinstance(text, str):
        return _C_TYPES[text]
    match text:
        case ["array", _, dimensions, *_]:
            sizes = f"int64_t shape[{dimensions}], strides[{dimensions}];"
            return f"struct {{ MemInfo *info; void *parent; int64_t items, size; void *data; {sizes} }}"
        case [("tuple" | "named"), *_, parts]:
            fields = " ".join(f"{_result_type(part)} f{number};" for number, part in enumerate(parts))
            return f"struct {{ {fields} }}"
    raise ValueError(f"a kernel cannot return {text!r}")


def _returned(text: Text, value: str, tables: _Tables) -> str:
    """Return the C expression that makes a Python object of a result."""
    if isinstance(text, str):
        if text == "none":
            return "(Py_IncRef(&_Py_NoneStruct), &_Py_NoneStruct)"
        maker = {"b": "PyBool_FromLong", "f": "PyFloat_FromDouble", "u": "PyLong_FromUnsignedLongLong"}
        return f"{maker.get(text[0], 'PyLong_FromLongLong')}({value})"
    match text:
        case ["array", str(item), dimensions, *_]:
            return f'array_from({value}.info, {value}.data, {dimensions}, {value}.shape, "{item}")'
        case [("tuple" | "named"), *place, parts]:
            made = ", ".join(
                _returned(part, f"{value}.f{number}", tables) for number, part in enumerate(parts)
            )
            named = f"&classes[{tables.named(place[0])}]" if place else "NULL"
            return f"tuple_from({named}, {len(parts)}, (PyObject *[]){{{made}}})"
    raise ValueError(f"a kernel cannot return {text!r}")


def _function(number: int, variants: list[Native], tables: _Tables) -> str:
    declared, tried = [], []
    for native in variants:
        apart = [
            pair
            for place, text in enumerate(native.arguments)
            for pair in _taken_apart(text, f"given[{place}]")
        ]
        kinds = ", ".join(["void *", "void **", *(kind for kind, _ in apart)])
        declared.append(f"int32_t {native.symbol}({kinds});")
        checks = [f"count == {len(native.arguments)}"]
        for place, text in enumerate(native.arguments):
            checks += _checks(text, f"given[{place}]", tables)
        # The arguments are taken apart while the GIL is held, and kept in variables.
        kept = "\n        ".join(f"{kind} v{place} = {value};" for place, (kind, value) in enumerate(apart))
        passed = ", ".join(["&result", "&exception", *(f"v{place}" for place in range(len(apart)))])
        tried.append(
            f"""    if ({" && ".join(checks)}) {{
        {_result_type(native.result)} result;
        void *exception = NULL;
        {kept}
        memset(&result, 0, sizeof result);
        PyThreadState *thread = PyEval_SaveThread();
        int32_t status = {native.symbol}({passed});
        PyEval_RestoreThread(thread);
        if (status != 0 && status != -2) return failed(exception, "{native.symbol}");
        return {_returned(native.result, "result", tables)};
    }}"""
        )
    lines = [
        *declared,
        f"static PyObject *call_{number}(PyObject *self, PyObject *const *given, Py_ssize_t count) {{",
        *tried,
        "    return otherwise(self, given, count);",
        "}",
    ]
    return "\n".join(lines)


def source(kernels: dict[str, list[Native]], stamp: str) -> str:
    """Return the C source of a library.

    Parameters
    ----------
    kernels : dict
        The machine code of each kernel, by ``module:name``.
    stamp : str
        The checksum of the sources of all kernels.
    """
    tables = _Tables()
    functions = [_function(number, kernels[place], tables) for number, place in enumerate(sorted(kernels))]
    about = json.dumps(json.dumps({"stamp": stamp, "kernels": sorted(kernels), "records": tables.records}))
    methods = ",\n".join(
        f'    {{"{place.rpartition(":")[2]}", call_{number}, METH_FASTCALL, NULL}}'
        for number, place in enumerate(sorted(kernels))
    )
    classes = ", ".join('{{"{}", "{}", NULL}}'.format(*place.split(":")) for place in tables.classes)
    tail = f"""
static PyMethodDef kernels[] = {{
{methods}
}};

/* load(functions, records): a function for each kernel. It passes other types to one of `functions`. */
static PyObject *load(PyObject *module, PyObject *given) {{
    (void)module;
    PyObject *others = PyTuple_GetItem(given, 0), *dtypes = PyTuple_GetItem(given, 1);
    PyObject *made = PyTuple_New(KERNELS);
    if (!others || !dtypes || !made || !load_numpy()) return NULL;
    for (Py_ssize_t number = 0; number < RECORDS; number++) {{
        records[number].wanted = PyTuple_GetItem(dtypes, number);
        if (records[number].wanted == NULL) return NULL;
        Py_IncRef(records[number].wanted);
    }}
    for (Py_ssize_t number = 0; number < KERNELS; number++) {{
        PyObject *other = PyTuple_GetItem(others, number);
        PyObject *function = other ? PyCFunction_NewEx(&kernels[number], other, NULL) : NULL;
        if (function == NULL) return NULL;
        PyTuple_SetItem(made, number, function);
    }}
    return made;
}}

static PyMethodDef methods[] = {{{{"load", (PyCFunction)(void *)load, METH_O, NULL}}, {{NULL, NULL, 0, NULL}}}};
static PyModuleDef definition = {{
    .head = {{1, NULL}}, .name = "machinecode", .size = -1, .methods = methods}};

__attribute__((visibility("default"))) PyObject *PyInit__machinecode(void) {{
    PyObject *module = PyModule_Create2(&definition, API_VERSION);
    PyObject *about = PyUnicode_FromString({about});
    if (module && about) PyModule_AddObjectRef(module, "about", about);
    return module;
}}
"""
    head = f"""#define KERNELS {len(functions)}
#define RECORDS {len(tables.records)}
static Record records[RECORDS + 1];
static Named classes[] = {{{classes}{", " if classes else ""}{{NULL, NULL, NULL}}}};
"""
    return "\n".join([_RUNTIME.read_text(), head, *functions, tail])
