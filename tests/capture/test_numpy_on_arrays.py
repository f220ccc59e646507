"""Every public function of NumPy that takes arrays, and every method of an array, inside a compiled function."""
import inspect
import warnings

import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from tests.against_eager import check, variable

#: They read or write files and memory, change settings, wait for input, or do not give the same twice.
_NOT_CALLED = frozenset((
    "save", "savez", "savez_compressed", "savetxt", "fromfile", "load", "loadtxt", "genfromtxt", "fromregex", "memmap", "tofile",
    "dump", "dumps", "test", "info", "lookfor", "source", "seterr", "seterrcall", "seterrobj", "setbufsize", "set_printoptions",
    "set_string_function", "set_numeric_ops", "add_docstring", "add_newdoc", "add_newdoc_ufunc", "show_config", "show_runtime",
    "get_include", "deprecate", "deprecate_with_doc", "empty", "empty_like", "frombuffer", "fromstring", "byte_bounds", "who",
    "safe_eval", "ctypeslib", "disp", "get_array_wrap", "resize", "sort_complex", "setflags", "geterrobj", "compare_chararrays",
    "recfromcsv", "recfromtxt", "newbyteorder", "__setstate__", "__reduce__", "vectorize", "errstate"))


def _functions():
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name in sorted(dir(module)):
            found = inspect.getattr_static(module, name)
            if name.startswith("_") or name in _NOT_CALLED or isinstance(found, type) or not callable(found):
                continue
            yield prefix + name, getattr(module, name)


def _method(name):
    def call(array, *args):
        return getattr(array, name)(*args)
    return call


def _attribute(name):
    def call(array):
        return getattr(array, name)
    return call


def _methods():
    for name in sorted(dir(np.ndarray)):
        if name.startswith("_") or name in _NOT_CALLED:
            continue
        yield f"ndarray.{name}", (_method if callable(getattr(np.ndarray, name)) else _attribute)(name)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    CALLS = dict([*_functions(), *_methods()])


def operands():
    m = np.random.RandomState(1).uniform(0.2, 0.9, (3, 3)).astype("f")
    return {"m": m, "v": m[1].copy(), "n": np.array([2, 0, 1, 0]), "b": np.array([True, False, True]), "r": m[:2].copy(),
            "s": np.array(0.5), "z": np.array([0, 1.5, 0, 1.5, 2], "f")}


#: Tried in this order; the first ones that eager takes are compared.
FORMS = {
    "m": lambda f, m, v, n, b, r, s, z: f(m),
    "v": lambda f, m, v, n, b, r, s, z: f(v),
    "z": lambda f, m, v, n, b, r, s, z: f(z),
    "n": lambda f, m, v, n, b, r, s, z: f(n),
    "b": lambda f, m, v, n, b, r, s, z: f(b),
    "s": lambda f, m, v, n, b, r, s, z: f(s),
    "item": lambda f, m, v, n, b, r, s, z: f(v[0]),
    "m, m": lambda f, m, v, n, b, r, s, z: f(m, m),
    "v, v": lambda f, m, v, n, b, r, s, z: f(v, v * 2),
    "n, n": lambda f, m, v, n, b, r, s, z: f(n, n + 1),
    "m, 1": lambda f, m, v, n, b, r, s, z: f(m, 1),
    "r, 1": lambda f, m, v, n, b, r, s, z: f(r, 1),
    "r, item": lambda f, m, v, n, b, r, s, z: f(r, n[2]),
    "v, number": lambda f, m, v, n, b, r, s, z: f(v, float(s)),
    "item, item": lambda f, m, v, n, b, r, s, z: f(v[0], n[0]),
    "list": lambda f, m, v, n, b, r, s, z: f([m, m]),
    "items": lambda f, m, v, n, b, r, s, z: f([v[0], v[1]]),
    "list, v": lambda f, m, v, n, b, r, s, z: f([v, v], 1),
    "b, v, v": lambda f, m, v, n, b, r, s, z: f(b, v, v * 2),
    "v, v, v": lambda f, m, v, n, b, r, s, z: f(v, v, v + 1),
    "m, n, 0": lambda f, m, v, n, b, r, s, z: f(m, n, 0),
    "shape": lambda f, m, v, n, b, r, s, z: f(r.shape),
    "v, shape": lambda f, m, v, n, b, r, s, z: f(v, r.shape),
    "m, 0, 1": lambda f, m, v, n, b, r, s, z: f(m, 0, 1),
    "dtype": lambda f, m, v, n, b, r, s, z: f(v, "d"),
    "text, m": lambda f, m, v, n, b, r, s, z: f("ij->j", m),
    "b, v": lambda f, m, v, n, b, r, s, z: f(b, v),
    "n, [v]": lambda f, m, v, n, b, r, s, z: f(n, [v[0], v[1], v[2]]),
}
_MOST = 6


def _works(call, form):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = FORMS[form](call, **operands())
            describe(result)
        except Exception:           # this is how functions are asked what they take
            return False
    return _is_data(result)


def _is_data(result):
    if isinstance(result, (tuple, list)):
        return all(map(_is_data, result))
    return isinstance(result, (np.ndarray, np.generic, int, float, bool)) and getattr(result, "dtype", np.dtype("f")).kind in "fiub"


def describe(result):
    """The result, and all that Python code can ask of it."""
    if isinstance(result, (tuple, list)):
        return type(result).__name__, [describe(part) for part in result]
    return result, type(result).__name__, np.shape(result), getattr(result, "dtype", None), np.ndim(result), np.size(result)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_call(name):
    call = CALLS[name]
    forms = [form for form in FORMS if _works(call, form)][:_MOST]

    def make(compile):
        # one program per form: what cannot be compiled must not hide the others
        programs = [compile(lambda m, v, n, b, r, s, z, form=FORMS[form]: describe(form(call, m, v, n, b, r, s, z)))
                    for form in forms]
        return lambda **given: [program(**given) for program in programs]
    if forms:
        check(make, [lambda: ((), operands()), lambda: ((), {k: x.copy()[::-1] if x.ndim else x for k, x in operands().items()})],
              rounds=1, backward=False)


def parts_of_complex_numbers(x):
    z = np.fft.fft(x.array)
    real, z.imag[0] = z.real, 2
    real += 1
    return F.relu(x), z, real, real.dtype, z.conj(), x.array.real is x.array


def test_parts_of_complex_numbers():
    check(lambda compile: compile(parts_of_complex_numbers), [lambda: (variable(4),)], compiled=True)


def compared(x):
    """NumPy 1 compares some floats with Python's numbers in float64, NumPy 2 in their own dtype."""
    largest = x.max()
    numbers = largest > 0.1, largest <= 0.1, 0.1 == x[1], x + (largest > 0.1)
    return (*numbers, x > 0.1, x * 0 + 2048 == 2049, x * 0 + 16777216 < 16777217, x < 1e39, x * 20480 == 2048)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_of_numpy_beside_numbers(dtype, backend):
    x = np.array([0.05, 0.1], dtype)
    for mine, eager in zip(to_static(compared, backend=backend)(x), compared(x)):
        np.testing.assert_array_equal(mine, eager)
