"""NumPy on arrays of the graph, as ops: the same types, values, memory and warnings as eagerly."""
import itertools
import operator
import warnings

import chainer
import numpy as np
import pytest

from dy2static import to_static
from dy2static.ir.types import Scalar, Tensor, python_scalar
from dy2static.runtime.host_calls import Hole, Method
from dy2static.symbolic import abstract_eval
from dy2static.symbolic.number_ranges import NumberLike

ARRAYS = {
    "f4": np.array([[0.5, -1.25, 3.0], [2.5, 0.0, -0.0]], "f"), "f8": np.array([0.1, np.inf, -2.0]),
    "f2": np.array([1.0, 2.5, -3.0], "e"), "i4": np.array([[1, -2, 3], [0, 5, -6]], "i"), "i8": np.array([7, 0, 2]),
    "u1": np.array([200, 100, 0], "u1"), "b": np.array([True, False, True]), "nan": np.array([np.nan, 1.0, -1.0], "f"),
    "strided": np.arange(12, dtype="f").reshape(2, 6)[:, ::2] - 4, "fortran": np.asfortranarray(np.arange(6, dtype="f").reshape(2, 3)),
    "0-d": np.array(1.5, "f"), "one": np.ones((1, 1), "f"), "none": np.ones((0, 3), "f"),
}
NUMBERS = {"int": 2, "float": 0.3, "bool": True, "large": 1e300, "whole": 2 ** 40, "minus": -1, "float32": np.float32(0.7),
           "float64": np.float64(0.7), "int8": np.int8(3)}

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, np.add, np.subtract, np.multiply, np.true_divide, np.maximum,
          np.minimum, operator.gt, operator.ge, operator.lt, operator.le, operator.eq, operator.ne, operator.and_, np.logical_or]
UNARY = {
    "neg": operator.neg, "abs": abs, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "square": np.square, "sin": np.sin,
    "tanh": np.tanh, "not": operator.inv, "same": lambda a: a.astype(a.dtype), "double": lambda a: a.astype("d"),
    "int": lambda a: a.astype("i"), "bools": lambda a: a.astype(bool), "no copy": lambda a: a.astype(a.dtype, copy=False),
    "flat": lambda a: a.reshape(-1), "T": lambda a: a.T, "transposed": lambda a: np.transpose(a), "part": lambda a: a[..., :1],
    "reversed": lambda a: a[..., ::-1], "new": lambda a: a[None], "sum": lambda a: a.sum(axis=-1), "all": lambda a: a.sum(),
    "kept": lambda a: a.sum(axis=-1, keepdims=True), "max": lambda a: np.max(a, axis=-1), "argmax": lambda a: a.argmax(axis=-1),
    "broadcast": lambda a: np.broadcast_to(a, (2, *a.shape)), "joined": lambda a: np.concatenate([a, a], axis=0),
    "stacked": lambda a: np.stack((a, a), axis=-1), "copied": lambda a: a.copy(), "zeros": lambda a: np.zeros_like(a),
    "where": lambda a: np.where(a > 0, a, 0), "where both": lambda a: np.where(a > 0, a, -a), "in place": lambda a: _in_place(a),
    "filled": lambda a: _filled(a),
}
MADE = {
    "zeros": lambda: np.zeros((2, 3), "f"), "ones": lambda: np.ones(3), "full": lambda: np.full((2,), 7, "i"),
    "range": lambda: np.arange(2, 9, 3), "array": lambda: np.array([1, 2, 3], "f"), "eye": lambda: np.eye(3)[1:],
    "F": lambda: np.zeros((2, 3), order="F"), "floats": lambda: np.linspace(0, 1, 5), "whole": lambda: np.full(2, 3),
}


def _in_place(a):
    b = a.copy()
    b += b
    b *= 2
    return b


def _filled(a):
    b = np.zeros_like(a)
    b[...] = a
    return b


def seen(function, *args):
    """Type, dtype, contents, layout and memory of a result, and what was warned; or the error."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            y = function(*args)
        except Exception as error:
            return type(error).__name__, str(error)
    layout = (y.flags.writeable, y.flags.owndata or y.base is not None, [y is x for x in args], [np.shares_memory(y, x) for x in args]) \
        if isinstance(y, np.ndarray) else ()
    return (type(y), getattr(y, "dtype", None), np.shape(y), np.asarray(y).tobytes(), layout,
            sorted(str(w.message) for w in warned if issubclass(w.category, RuntimeWarning)))


def differences(function, *args):
    """What differs of a call, if anything."""
    static = to_static(lambda *operands: function(*operands))
    seen(static, *args)                                 # captured
    eager, compiled = seen(function, *args), seen(static, *args)
    return [] if eager == compiled else [(args, eager, compiled)]


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_of_two(function):
    pairs = [*itertools.product(("f4", "f8", "i4", "b", "0-d"), repeat=2), ("nan", "f2"), ("u1", "f2"), ("strided", "f4"), ("one", "none"),
             ("fortran", "f4")]
    found = [line for a, b in pairs for line in differences(function, ARRAYS[a], ARRAYS[b])]
    for a, number in itertools.product(("f4", "f2", "u1"), NUMBERS.values()):
        found += differences(lambda x: function(x, number), ARRAYS[a]) + differences(lambda x: function(number, x), ARRAYS[a])
    assert not found, found[:4]


@pytest.mark.parametrize("name", UNARY)
def test_of_one(name):
    found = [line for a in ARRAYS.values() for line in differences(UNARY[name], a)]
    assert not found, found[:4]


@pytest.mark.parametrize("name", MADE)
def test_of_none(name):
    assert not differences(MADE[name])
    static = to_static(lambda: (MADE[name](), MADE[name]()), strict=True)
    (a, b), (c, d) = static(), static()
    a[...] = 9
    assert not any(np.shares_memory(x, y) for x, y in itertools.combinations((a, b, c, d), 2))
    np.testing.assert_array_equal(b, d)


def test_no_gradient_goes_through():
    """``x.array`` is where Chainer's graph ends."""
    def f(x):
        h = chainer.functions.tanh(x)
        return chainer.functions.sum(x * (h.array * 2 + x.array.copy()))
    results = []
    for g in (f, to_static(f, strict=True)):
        x = chainer.Variable(ARRAYS["f4"].copy())
        gx, = chainer.grad([g(x)], [x], enable_double_backprop=True)
        results.append((gx.array, chainer.grad([gx], [x])[0] is None))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    assert results[0][1] == results[1][1]


def _alike(x, y, z):
    """Calls that are alike but for what they are given; those of one operand come first."""
    h = chainer.functions.tanh(x)
    squares = [z * z, z * y, x.array * x.array, x.array * y, y * x.array]
    numbers = [y + 0.0, y + -0.0, y + 1, y + True, y.astype("d"), y.astype("f"), y.astype("f", copy=False), y.reshape(-1), y.reshape(1, -1)]
    gradients = [y * h.array, h.array * y]
    first = [a.sum() for a in (*squares, *gradients)]
    return [*squares, *gradients, *numbers, *first, y[0] * first[0], first[1] * first[2]], chainer.functions.sum(x * (h.array * y))


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_calls_that_are_alike(backend):
    """What is learned of a call holds for others of the same kind, in this capture and others, whichever comes first."""
    for seed in range(2):
        draws = np.random.RandomState(seed)
        arrays = [draws.randn(5 + seed, 11).astype("f") for _ in range(3)]
        results = []
        for f in (_alike, to_static(_alike, strict=True, backend=backend)):
            x = chainer.Variable(arrays[0])
            found, loss = f(x, *arrays[1:])
            results.append([*found, chainer.grad([loss], [x])[0].array])
        for eager, compiled in zip(*results):
            assert (type(eager), eager.dtype, eager.shape) == (type(compiled), compiled.dtype, compiled.shape)
            np.testing.assert_allclose(eager, compiled, rtol=1e-5)


@pytest.mark.parametrize("function, types, expected", [
    (np.exp, [Tensor((1 << 40,), "f")], Tensor((1 << 40,), "f")),
    (operator.add, [Tensor((1 << 40, 1), "f"), Tensor((3,), "d")], Tensor((1 << 40, 3), "d")),
    (np.less, [Tensor((1 << 20, 0, 5), "i"), Tensor((5,), "i")], Tensor((1 << 20, 0, 5), bool)),
    (operator.pow, [Tensor((1 << 40,), "f"), Scalar("py_int", "l")], Tensor((1 << 40,), "f")),
    (operator.truediv, [NumberLike(Scalar("py_float", "d"), 1e-3), Tensor((1 << 40,), "f")], Tensor((1 << 40,), "f")),
    (Method("astype"), [Tensor((1 << 40,), "f")], Tensor((1 << 40,), "e")),
], ids=["exp", "add", "less", "pow", "number", "astype"])
def test_elementwise_operations_are_not_tried_on_all_of_a_large_array(function, types, expected):
    more = ((np.float16,), {"copy": False}) if isinstance(function, Method) else ((), {})
    template = (tuple(map(Hole, range(len(types)))) + more[0], more[1])
    for structure, leaves in abstract_eval.infer(function, template, types):
        assert leaves == (expected,)


def test_large_arrays_that_do_not_fit_are_an_error():
    with pytest.raises(ValueError, match="broadcast"):
        abstract_eval.infer(np.add, ((Hole(0), Hole(1)), {}), [Tensor((1 << 20,), "f"), Tensor((5,), "f")])


def test_numbers_without_sizes_are_not_tried_with_large_ones():
    """``math.factorial`` of four million takes minutes."""
    tried = []
    abstract_eval.infer(lambda n: tried.append(n) or n + 1, ((Hole(0),), {}), [python_scalar("py_int")])
    assert len(tried) == len(abstract_eval.FILLINGS) and max(tried) < 100
