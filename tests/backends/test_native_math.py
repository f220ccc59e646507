"""The C forms of elementwise ops against NumPy: values, NaN, infinities, wrapping ints, floating-point flags, and ulps."""
import ctypes
import functools
import itertools

import numpy as np
import pytest
from native_cases import graph_of

from dy2static import ops  # noqa: F401  (fills OPS)
from dy2static.ir.c_forms import c_constant, c_expression, c_type
from dy2static.ir.interpret import interpret
from dy2static.ir.op import OPS
from dy2static.native import compiler

needs_compiler = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler")

FLOATS = ("float32", "float64")
DTYPES = (*FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
ELEMENTWISE = [op for op in OPS.values() if op.kind == "elementwise"]


@pytest.mark.parametrize("value, dtype, text", (
    (0.5, "float32", "0x1.0000000000000p-1f"), (0.1, "float32", "0x1.99999a0000000p-4f"), (-2, "float64", "(-0x1.0000000000000p+1)"),
    (-0.0, "float64", "(-0x0.0p+0)"), (np.inf, "float32", "INFINITY"), (-np.inf, "float64", "(-((double)INFINITY))"),
    (np.nan, "float32", "NAN"), (1e60, "float32", "INFINITY"), (True, "bool", "true"), (3, "uint8", "UINT8_C(3)"),
    (-3, "int64", "(-INT64_C(3))"), (-2 ** 63, "int64", "INT64_MIN"), (2 ** 64 - 1, "uint64", f"UINT64_C({2 ** 64 - 1})")))
def test_constants_are_exact(value, dtype, text, monkeypatch):
    monkeypatch.setattr("builtins.abs", lambda x: x * 2)            # the user's, who replaces it while a program is compiled
    assert c_constant(value, dtype) == text


@pytest.mark.parametrize("value, dtype", ((0.5, "int32"), (-1, "uint8"), (2, "bool"), (128, "int8")))
def test_constants_that_a_dtype_cannot_hold(value, dtype):
    with pytest.raises(ValueError):
        c_constant(value, dtype)


# Ops ------------------------------------------------------------------------------------------------------------------

#: The dtypes of operands that are not all the same.
OPERANDS = {"where": lambda d: ("bool", d, d), "mask": lambda d: (d, "bool"), "log_likelihood": lambda d: (d, "int32")}
#: Attributes to try, where the defaults do not say enough.
ATTRS = {
    "cast": [{"dtype": np.dtype(name)} for name in DTYPES],
    "clip": [{"x_min": 0, "x_max": 2}, {"x_min": 1, "x_max": None}, {"x_min": None, "x_max": 1}],
    "power_const": [{"exponent": e} for e in (0, 1, 2, 3, 4, 0.5, -0.5, 1.5, -1, -2, 2.5, 0.3)],
    "leaky_relu": [{"slope": 0.2}, {"slope": -0.5}], "elu": [{"alpha": 0.3}], "softplus": [{"beta": 1.0}, {"beta": 2.0}],
    "special": [{"function": name, "order": None} for name in ("erf", "erfc", "ndtr")],
}
def asks(kernel, numbers):
    """Whether the op may raise a flag for these numbers though NumPy does not warn.  NumPy gets the call: it costs time only."""
    name, dtype = kernel.op.name, np.dtype(kernel.dtypes[0])
    return (name in ASKS_FOR_NAN and any(x != x for x in numbers)
            or name in ("sin", "cos", "tan") and abs(float(numbers[0])) > (2 ** 20 if kernel.dtype == np.float32 else 2 ** 30)
            or name == "power_const" and kernel.attrs["exponent"] in (1.5, 2.5, -0.5) and numbers[0] == -np.inf
            or name == "cast" and kernel.dtype == np.uint64 and dtype.kind == "f" and numbers[0] < 0)


def warns_in_vain(kernel, numbers):
    """Whether NumPy warns of what does not reach the result: of products that are not chosen, in powers to infinity."""
    if kernel.op.name == "x_times_log" and numbers[0] == 0:
        return True                                     # the logarithm that it gets is 0 there
    return kernel.op.name == "randomized_relu" and numbers[0] >= 0 or kernel.op.name == "power" and abs(float(numbers[1])) == np.inf


#: Ops that may raise invalid for NaN, where NumPy does not warn: vectors compare floats with this flag.  NumPy gets the call.
ASKS_FOR_NAN = {"greater", "greater_equal", "less", "less_equal", "maximum", "minimum", "clip", "clipped_relu", "hard_sigmoid",
                "randomized_relu", "huber", "log_likelihood", "floor_divide", "remainder", "logaddexp"}


class Kernel:
    """The C function of one op for dtypes of operands and attributes."""

    def __init__(self, op, dtypes, attrs):
        self.op, self.dtypes, self.attrs = op, dtypes, attrs
        self.graph = graph_of(op, [np.zeros(3, dtype) for dtype in dtypes], attrs)
        result = self.graph.outputs[0].type
        self.dtype = result.dtype
        names = [f"{name}_{k}" for k, name in enumerate("abc"[:len(dtypes)])]
        types = [v.type for v in self.graph.inputs]
        self.text = c_expression(op, names, types, result, attrs)
        self.name = f"{op.name} {' '.join(dtypes)} {dict(attrs)}"
        arguments = [f"const {c_type(dtype)} *{name}s" for dtype, name in zip(dtypes, names)]
        loads = " ".join(f"const {c_type(dtype)} {name} = {name}s[i];" for dtype, name in zip(dtypes, names))
        self.source = "\n".join((
            f"int kernel(long n, {c_type(self.dtype)} *restrict y, {', '.join(arguments)})", "{",
            "    feclearexcept(FE_ALL_EXCEPT);", "    #pragma omp simd", "    for (long i = 0; i < n; i++) {",
            f"        {loads} y[i] = {self.text};", "    }",
            "    return fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID);", "}"))

    def run(self, *operands):
        """The result, and whether a flag was raised."""
        result = np.empty(operands[0].shape, self.dtype)
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (result, *operands)]
        return result, bool(self.function(ctypes.c_long(result.size), *pointers))

    def expected(self, *operands):
        """What the op means, and whether NumPy warned or raised.  The result is None if it raised."""
        seen = []
        with np.errstate(divide="call", over="call", invalid="call", under="ignore", call=lambda *error: seen.append(error)):
            try:
                graph = graph_of(self.op, operands, self.attrs)
                return np.asarray(interpret(graph, *operands)[0]), bool(seen)
            except ValueError:
                return None, True


def kernels_of(op, dtype):
    """The kernels of one op whose first floats, or ints, are of this dtype."""
    dtypes = OPERANDS.get(op.name, lambda d: (d,) * (1 if op.variadic else len(op.inputs)))(dtype)
    for attrs in ATTRS.get(op.name, [dict(op.attrs)]):
        try:
            kernel = Kernel(op, dtypes, attrs)
        except (TypeError, ValueError, OverflowError):
            continue                                       # NumPy does not take these either
        if kernel.text is not None:
            yield kernel


def load(kernels):
    """Compile kernels in one text."""
    texts = [kernel.source.replace("kernel(", f"kernel_{k}(") for k, kernel in enumerate(kernels)]
    library = compiler.build("\n".join(("#include <fenv.h>", '#include "dy2static_math.h"', *texts)))
    for k, kernel in enumerate(kernels):
        kernel.function = library.find(f"kernel_{k}")
    return kernels


@functools.lru_cache(maxsize=None)
def kernels(dtype):
    """All kernels of a dtype."""
    return load([kernel for op in ELEMENTWISE for kernel in kernels_of(op, dtype)])


def specials(dtype, few):
    """Numbers where something may go wrong."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return [False, True]
    if dtype.kind == "f":
        info = np.finfo(dtype)
        more = [] if few else [0.25, -0.75, 1e-3, -1e-3, 88, -100, 5, -30, 1e-40, 2.5, 1e5, -1e5, 3e9, -129, 300, 66000, 1e19, -1e19]
        return [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.nan, np.inf, -np.inf, info.max, info.min, info.tiny, *more]
    info = np.iinfo(dtype)
    return sorted({max(x, info.min) for x in (0, 1, 2, 3, 7, 100, -1, -2, -7, info.min, info.max, info.min + 1, info.max - 1)})


def close(actual, expected, kernel):
    """Whether all are NaN together, infinite together, equal for ints and bools, close for floats."""
    if expected.dtype.kind != "f":
        return actual == expected
    name, eps = kernel.op.name, np.finfo(kernel.dtypes[0] if kernel.dtypes[0] in FLOATS else expected.dtype).eps
    with np.errstate(all="ignore"):
        gap = np.abs(actual.astype("longdouble") - expected.astype("longdouble"))
        bound = 4 * np.spacing(np.abs(expected)).astype("longdouble")
        if name in ("sigmoid", "softplus", "logaddexp"):
            bound = np.maximum(bound, eps)                   # NumPy's own formula is no better
        if name in ("log_likelihood", "huber", "special"):
            bound = 16 * eps * (1 + np.abs(expected))        # sums that cancel; functions that SciPy approximates
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        return same | (np.isfinite(actual) & np.isfinite(expected) & (gap <= bound))


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_special_number(dtype):
    wrong = []
    for kernel in kernels(dtype):
        sets = [specials(d, few=len(kernel.dtypes) > 1) for d in kernel.dtypes]
        for numbers in itertools.product(*sets):
            with np.errstate(all="ignore"):
                operands = [np.full(37, x).astype(d) for x, d in zip(numbers, kernel.dtypes)]
            expected, warned = kernel.expected(*operands)
            actual, flagged = kernel.run(*operands)
            if flagged != warned and not (asks if flagged else warns_in_vain)(kernel, numbers):
                wrong.append(f"{kernel.name} of {numbers}: {'flagged' if flagged else 'not flagged'}")
            if not flagged and not close(actual, expected, kernel).all():
                wrong.append(f"{kernel.name} of {numbers}: {actual[0]} and {actual[-1]}, not {expected[0]}")
    assert not wrong, "\n".join([f"{len(wrong)} are wrong", *wrong[:60]])


@pytest.mark.any_python
@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_all_sizes(dtype):
    rng = np.random.default_rng(0)
    wrong = []
    for kernel in kernels(dtype):
        for size in (0, 1, 7, 1000):
            operands = [rng.uniform(0.1, 0.9, size).astype(d) if d in FLOATS else rng.integers(0, 2, size).astype(bool) if d == "bool"
                        else rng.integers(1, 9, size).astype(d) for d in kernel.dtypes]
            expected, warned = kernel.expected(*operands)
            actual, flagged = kernel.run(*operands)
            if warned != flagged or not close(actual, expected, kernel).all():
                wrong.append(f"{kernel.name}, {size}")
    assert not wrong, "\n".join(wrong)


def test_ops_without_a_c_form():
    missing = {op.name for op in ELEMENTWISE if op.c is None}
    assert missing == {"nonzero_factor"}, "which calls Python to warn"


# Functions ------------------------------------------------------------------------------------------------------------

#: The functions that are computed here, and the bounds of their errors in ulps: float32, float64.  docs/numerics.md has what was measured.
ULPS = {"exp": (1.1, 1.1), "expm1": (1.6, 1.8), "log": (1.0, 1.0), "log1p": (1.7, 1.6), "log2": (1.6, 1.6), "tanh": (1.5, 1.5),
        "sin": (1.6, 1.6), "cos": (1.6, 1.6), "softplus": (2.0, 2.0), "tan": (3.0, 3.1), "sinh": (1.7, 1.7), "cosh": (1.6, 1.6),
        "arctan": (1.5, 1.5), "arcsin": (2.1, 2.1), "arccos": (1.5, 1.5), "arctanh": (1.9, 2.0), "log10": (1.6, 1.4), "erf": (1.3, 1.6),
        "exp2": (1.1, 1.1), "cbrt": (0.51, 0.51)}
LIMITS = {name: (2.0 ** 20, 2.0 ** 30) for name in ("sin", "cos", "tan")}
COMPUTED = [(name, dtype) for name in ULPS for dtype in FLOATS]


@functools.lru_cache(maxsize=None)
def points(dtype):
    """About a million numbers: every exponent, both signs, usual ranges, neighbours of special places."""
    rng = np.random.default_rng(0)
    bits, mantissa, each = (np.uint32, 23, 1000) if dtype == "float32" else (np.uint64, 52, 120)
    exponents = np.arange(2 ** (np.dtype(dtype).itemsize * 8 - 1 - mantissa) - 1, dtype=bits)
    spread = (exponents[:, None] << bits(mantissa)) | rng.integers(0, 2 ** mantissa, (exponents.size, each)).astype(bits)
    usual = [rng.uniform(-limit, limit, 60000) for limit in (1, 2, 20, 110, 740, 1e4)]
    places = np.array([1, 0.5, 2, np.pi, np.log(2), np.log(2) / 2, 0.6, 1 / 3, 2 / 3, 4 / 3, 10, 20, 88.722839, 87.33654, 103.97208,
                       709.782712893384, 745.1332191019411, np.finfo(dtype).tiny, 2.0 ** 20, 2.0 ** 30], dtype).view(bits)
    near = places[:, None] + np.arange(-40, 40).astype(bits)
    turns = np.arange(1, 40000) * (np.pi / 2)
    found = np.concatenate([spread.ravel().view(dtype), near.ravel().view(dtype), turns.astype(dtype), *(x.astype(dtype) for x in usual),
                            np.arange(200).astype(bits).view(dtype), np.array([np.finfo(dtype).max], dtype)])
    return np.concatenate([found, -found])


@pytest.mark.any_python
@needs_compiler
@pytest.mark.parametrize("dtype", FLOATS)
def test_exponentials_of_masked_scores_are_zeros(dtype):
    (kernel,) = kernels_of(OPS["exp"], dtype)
    load([kernel])
    assert not kernel.run(np.full(1 << 10, -1e9, dtype))[0].any()


#: NumPy has no error function.
WIDE_ERF = """
#include <math.h>
int wide_erf(long n, const long double *x, long double *y) { for (long i = 0; i < n; i++) y[i] = erfl(x[i]); return 0; }
"""


def exact(name, x):
    """The function in a wider type."""
    if name == "softplus":
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    if name == "erf":
        given, result = x.astype(np.longdouble), np.empty(x.shape, np.longdouble)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (given, result)]
        compiler.build(WIDE_ERF).find("wide_erf")(ctypes.c_long(x.size), *pointers)
        return result.astype(x.dtype)
    return getattr(np, name)(x)


def kernel_of(name, dtype):
    """The kernel of a function of one number."""
    (kernel,) = [k for k in kernels(dtype) if name in (k.op.name, k.attrs.get("function")) and k.attrs.get("beta", 1.0) == 1.0]
    return kernel


@pytest.mark.any_python
@needs_compiler
@pytest.mark.parametrize("name, dtype", COMPUTED)
def test_errors_in_ulps(name, dtype):
    wide = np.float64 if dtype == "float32" else np.longdouble
    if np.finfo(wide).nmant <= np.finfo(dtype).nmant + 8:
        pytest.skip("no wider float on this machine")
    place = FLOATS.index(dtype)
    kernel = kernel_of(name, dtype)
    x = points(dtype)
    x = x[np.abs(x) <= LIMITS.get(name, (np.inf, np.inf))[place]]
    actual, _ = kernel.run(x)
    with np.errstate(all="ignore"):
        expected = exact(name, x.astype(wide))
        rounded = expected.astype(dtype)
        finite = np.isfinite(rounded)
        assert ((actual == rounded) | (np.isnan(actual) & np.isnan(rounded)) | finite).all()
        assert (np.signbit(actual) == np.signbit(rounded))[finite].all()
        error = (np.abs(actual - expected) / np.spacing(np.abs(rounded)))[finite]
    assert error.max() <= ULPS[name][place], f"{error.max():.3f} ulp at {x[finite][error.argmax()]!r}"


@pytest.mark.any_python
@needs_compiler
@pytest.mark.parametrize("dtype, most", [("float32", 38), ("float64", 308)])
def test_logarithms_of_powers_of_ten(dtype, most):
    exponents = np.arange(1 - most, most)
    assert np.array_equal(kernel_of("log10", dtype).run(np.array([f"1e{k}" for k in exponents], dtype))[0], exponents)


@pytest.mark.any_python
@needs_compiler
@pytest.mark.parametrize("dtype", FLOATS)
def test_powers(dtype):
    rng = np.random.default_rng(9740000)
    kernel, most = kernel_of("power", dtype), 127 if dtype == "float32" else 1022
    base = np.concatenate([np.abs(rng.permutation(points(dtype))[:200000]), rng.uniform(0.9, 1.1, 100000).astype(dtype)])
    base = base[np.isfinite(base) & (base > 0) & (base != 1)]
    exponent = (rng.uniform(-most, most, base.size) / np.log2(base.astype(np.longdouble))).astype(dtype)
    expected = np.power(base.astype(np.longdouble), exponent.astype(np.longdouble))
    actual, _ = kernel.run(base, exponent)
    error = np.abs(actual - expected) / np.spacing(expected.astype(dtype))
    assert error[np.isfinite(error)].max() < (0.6 if dtype == "float32" else 1.3)
    whole, times = (x.ravel().astype(dtype) for x in np.meshgrid(np.arange(-60, 61), np.arange(0, 12)))
    exact = whole ** times
    fits = np.abs(exact) < 2.0 ** (24 if dtype == "float32" else 53)
    exact = np.array([int(a) ** int(b) for a, b in zip(whole[fits], times[fits])], dtype)
    assert np.array_equal(kernel.run(whole[fits], times[fits])[0], exact)


@pytest.mark.any_python
@needs_compiler
@pytest.mark.parametrize("dtype", FLOATS)
def test_angles_of_points(dtype):
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.standard_normal(100000), 10.0 ** rng.uniform(-30, 30, 100000) * rng.choice([-1, 1], 100000)]).astype(dtype)
    x = rng.permutation(y)
    actual, flagged = kernel_of("arctan2", dtype).run(y, x)
    expected = np.arctan2(*(v.astype(np.float64 if dtype == "float32" else np.longdouble) for v in (y, x)))
    assert not flagged and (np.abs(actual - expected) / np.spacing(np.abs(expected.astype(dtype)))).max() < 1.5


@pytest.mark.any_python
@needs_compiler
@pytest.mark.parametrize("name, dtype", COMPUTED)
def test_no_flags_without_reason(name, dtype):
    kernel = kernel_of(name, dtype)
    low = {"log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0}.get(name, -np.inf)
    high = LIMITS.get(name, (np.inf,))[0]
    x = points(dtype)
    with np.errstate(all="ignore"):
        y = exact(name, x.astype(np.float64 if dtype == "float32" else np.longdouble)).astype(dtype)
    ordinary = x[(x > low) & (np.abs(x) <= high) & np.isfinite(y)]
    assert not kernel.run(ordinary)[1]
    with np.errstate(all="ignore"):
        others = x[~((x > low) & np.isfinite(y))][::5003]
    assert all(kernel.run(number[None])[1] for number in others)
