"""Loaded shared objects, and Python callables of their functions.

A function of generated code has the signature ``int run(char **p, int64_t *n, double *d)``: the data of arrays, Python's
ints and bools, Python's floats, inputs before outputs.  `wrapper` gives the C text of a function around it that Python
calls without an intermediary (METH_FASTCALL: 30 ns, where a call by ctypes takes ten times that).
"""
from __future__ import annotations

import ctypes
import errno
import functools
import itertools
import sys
import sysconfig
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from ..errors import BackendError
from .elf import is_whole

HEADER = "dy2static_python.h"
_METH_FASTCALL = 0x80
_IN_PLACE = 2               # checks of more arrays are a loop: each that is written out takes 2 ms to compile
_TAKE = {"int": "dy_take_int", "bool": "dy_take_bool", "float": "dy_take_float"}
_GIVE = {"int": "PyLong_FromLongLong", "bool": "PyBool_FromLong", "float": "PyFloat_FromDouble"}


class NotSupported(BackendError):
    """This Python or NumPy lays out its objects in another way than generated code expects."""

    code = "D2S404"


class MethodDef(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


class Library:
    """A shared object; it stays loaded until the process ends."""

    def __init__(self, path: str):
        self.path = path
        self.handle = ctypes.CDLL(path)
        for name, address in ADDRESSES.items():
            setter = self.find(name)
            if setter is not None:
                setter(ctypes.c_void_p(address()))

    def find(self, name: str) -> Any:
        """The ctypes function of this name, or None."""
        return getattr(self.handle, name, None)

    def address(self, name: str) -> int:
        """Where a function is."""
        return ctypes.cast(getattr(self.handle, name), ctypes.c_void_p).value or 0


def _array_type() -> int:
    require_support()
    return id(np.ndarray)


# pointers that libraries get when they are loaded: by the C function that takes one, what gives it
ADDRESSES: Dict[str, Callable[[], int]] = {"dy2static_set_array_type": _array_type}

#: The libraries that other texts call: by a line of such a text, what begins to compile the library.
CALLED: Dict[str, Callable[[], Any]] = {}


def load(path: str) -> Library:
    """Load a shared object.  Raises OSError, and `NotSupported` where it has wrappers that cannot be called here."""
    with open(path, "rb") as file:
        if not is_whole(file.read()):
            raise OSError(errno.EIO, "the file is cut off", path)
    return Library(path)


def letter(dtype: np.dtype) -> str:
    """The letter of a dtype as C text, as `dy_letter` gives it."""
    return repr({"q": "l", "Q": "L"}.get(dtype.char, dtype.char))


class Declared(NamedTuple):
    """The type of an array: its dtype, and for each axis a number, the C text of one, or -1 for any length."""

    dtype: np.dtype
    shape: Sequence[Any]

    @property
    def words(self) -> List[str]:
        """It as `dy_are_of` reads it."""
        return [letter(self.dtype), str(len(self.shape)), *map(str, self.shape)]


def wrapper(name: str, inputs: Sequence[str], outputs: Sequence[str], release_gil: bool = False, run: str = "run",
            types: Mapping[int, Declared] = MappingProxyType({}), sizes: Mapping[int, str] = MappingProxyType({})) -> str:
    """The C text of a function for `bind`, around ``static int run(char **p, int64_t *n, double *d)`` in front of it.

    inputs, outputs: kinds "array", "int", "bool", "float", "stack".  Python passes the inputs, then the arrays among the
    outputs (scratch is one of those); it is given the others: None, the one, or a tuple of them.  A stack enters as an
    array, in ``p``, with its length in ``n``; one that leaves is a block (``dy2static_blocks.h``) in ``p``, behind all arrays,
    with the number of bytes in ``n``, which becomes an object with the buffer protocol.
    types: of the arrays among the inputs, by their places: a call with others is declined.  sizes: the names of ints among the
    inputs that texts in the types read, by their places.
    The text needs ``#include "dy2static_python.h"``.
    """
    slots = _Slots()
    arguments = [(kind, False) for kind in inputs] + [(kind, True) for kind in outputs if kind == "array"]
    checks = _checks(arguments, slots)
    stacks = [slots.take("array") for kind in outputs if kind == "stack"]
    waiting = iter(stacks)
    results = [f"dy_give_stack({next(waiting)}, {slots.take('int')})" if kind == "stack" else f"{_GIVE[kind]}({slots.take(kind)})"
               for kind in outputs if kind != "array"]
    empty = "".join(f"{stack} = 0; " for stack in stacks)
    free = "".join(f"dy_block_give({stack}); " for stack in stacks)
    tests = "".join(f"\n        || !{check}" for check in checks)
    save, restore = ("void *thread = PyEval_SaveThread();", "PyEval_RestoreThread(thread);") if release_gil else ("", "")
    return f"""
PyObject *{name}(PyObject *self, PyObject *const *args, intptr_t count)
{{
    char *p[{slots.length("p")}];
    int64_t n[{slots.length("n")}];
    double d[{slots.length("d")}];
    if (count != {len(arguments)}{tests})
        return dy_bail_out(self, args, count);
{_type_test(inputs, types, sizes)}    {empty}{save}
    dy_clear_float_flags();
    const int status = {run}(p, n, d) | dy_float_flags();
    {restore}
    if (__builtin_expect(status != 0, 0)) {{
        {free}return dy_bail_out(self, args, count);
    }}
{_result(results)}
}}
"""


def _type_test(inputs: Sequence[str], types: Mapping[int, Declared], sizes: Mapping[int, str]) -> str:
    """The lines of C that compare arrays with their types."""
    if not types:
        return ""
    ints = [k for k, kind in enumerate(inputs) if kind in ("int", "bool", "stack")]     # in the order of the elements of ``n``
    lines = [f"const int64_t {name} = n[{ints.index(place)}];" for place, name in sizes.items()]
    words = ", ".join([word for place, declared in types.items() for word in (str(place), *declared.words)])
    lines += [f"{'' if sizes else 'static '}const int64_t types[] = {{{words}}};",
              "if (__builtin_expect(!dy_are_of(args, types, types + sizeof types / sizeof *types), 0))",
              "    return dy_bail_out(self, args, count);"]
    return "".join(f"    {line}\n" for line in lines)


class _Slots:
    """Hands out the elements of the vectors ``p``, ``n`` and ``d``, in order."""

    def __init__(self) -> None:
        self.counts = {"p": 0, "n": 0, "d": 0}

    def take(self, kind: str) -> str:
        """The next element for a value of this kind, as C text."""
        vector = {"array": "p", "float": "d"}.get(kind, "n")
        self.counts[vector] += 1
        return f"{vector}[{self.counts[vector] - 1}]"

    def length(self, vector: str) -> int:
        """How long a vector has to be; C has none without elements."""
        return max(self.counts[vector], 1)


def _checks(arguments: Sequence[Tuple[str, bool]], slots: _Slots) -> List[str]:
    """The C tests that take the arguments, each (kind, writeable), out of Python's objects into the vectors."""
    checks: List[str] = []
    index = 0
    for (kind, writeable), alike in itertools.groupby(arguments):
        count = len(list(alike))
        if kind == "array" and count > _IN_PLACE:
            first = [slots.take(kind) for _ in range(count)][0]
            checks.append(f"dy_take_arrays(args + {index}, {count}, {int(writeable)}, &{first})")
        else:
            checks += [_check(kind, writeable, k, slots) for k in range(index, index + count)]
        index += count
    return checks


def _check(kind: str, writeable: bool, index: int, slots: _Slots) -> str:
    if kind == "stack":
        return f"dy_take_stack(args[{index}], &{slots.take('array')}, &{slots.take('int')})"
    if kind == "array":
        return f"dy_take_array(args[{index}], {int(writeable)}, &{slots.take(kind)})"
    return f"{_TAKE[kind]}(args[{index}], &{slots.take(kind)})"


def _result(results: Sequence[str]) -> str:
    if not results:
        return "    return dy_none();"
    if len(results) == 1:
        return f"    return {results[0]};"
    # PyTuple_SetItem takes a null pointer; the last test finds an object that could not be made
    filled = "\n".join(f"        && !PyTuple_SetItem(result, {index}, (one = {result}) ? one : (failed = 1, dy_none()))"
                       for index, result in enumerate(results))
    return f"""    int failed = 0;
    PyObject *one, *result = PyTuple_New({len(results)});
    if (result
{filled}
        && !failed)
        return result;
    if (result)
        Py_DecRef(result);
    return 0;"""


def bind(library: Library, name: str, fallback: Callable) -> Callable:
    """The function that `wrapper` made, as a built-in function; ``fallback`` answers what it declines.

    Raises `NotSupported`.
    """
    require_support()
    text = name.encode()
    definition = np.frombuffer(bytes(MethodDef(text, library.address(name), _METH_FASTCALL, None)), np.uint8)
    # Python reads the definition until the function is gone, and lets go of `self` after that.  The garbage collector
    # empties what it finds in a cycle before: a structure of ctypes, but no array
    own = (fallback, definition, text, library)
    return _new_function(definition.ctypes.data, own, None)


@functools.lru_cache(maxsize=None)
def _problem() -> str:
    """Why the offsets of the header do not hold here, or an empty text: they are compared with known objects."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or sys.platform == "win32":
        return f"{sys.implementation.name} on {sys.platform}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "a free-threaded Python"
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    frozen = np.zeros(3)[::2].astype(array.dtype.newbyteorder())
    frozen.flags.writeable = False
    view = array.T
    seen: Tuple[Tuple[str, Any, Any], ...] = (
        ("type", _word(array, 8), id(np.ndarray)),
        ("data", _word(array, 16), array.ctypes.data),
        ("ndim", _read(array, 24, ctypes.c_int32), 2),
        ("shape", (ctypes.c_ssize_t * 2).from_address(_word(array, 32))[:], [2, 3]),
        ("strides", (ctypes.c_ssize_t * 2).from_address(_word(array, 40))[:], [12, 4]),
        ("base", _word(view, 48), id(view.base)),
        ("dtype", _word(array, 56), id(array.dtype)),
        ("order", _read(frozen.dtype, 26, ctypes.c_char), frozen.dtype.byteorder.encode()),
        ("order", _read(array.dtype, 26, ctypes.c_char), b"="),
        ("flags", _read(array, 64, ctypes.c_int32) & 0x503, 0x501),
        ("flags", _read(view, 64, ctypes.c_int32) & 0x503, 0x502),
        ("flags", _read(frozen, 64, ctypes.c_int32) & 0x501, 0x101),
        ("float", _read(0.1, 16, ctypes.c_double), 0.1),
        ("float", _word(0.1, 8), id(float)),
        ("int", _word(7, 8), id(int)),
    )
    wrong = sorted({name for name, found, expected in seen if found != expected})
    return f"NumPy {np.__version__} keeps {', '.join(wrong)} of an object elsewhere" if wrong else ""


def _read(value: Any, offset: int, kind: Any) -> Any:
    return kind.from_address(id(value) + offset).value


def _word(value: Any, offset: int) -> int:
    return _read(value, offset, ctypes.c_size_t)


def require_support() -> None:
    """Raise `NotSupported` where generated code cannot read this Python's objects."""
    if _problem():
        raise NotSupported(f"native programs cannot be called here: {_problem()}")


_new_function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi))
