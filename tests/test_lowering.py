"""Every lowering against eager Chainer: values, gradients and second gradients, with None where eager has None."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static.ir.interpret import interpret
from dy2static.ir.verify import verify
from dy2static.lowering.registry import LOWERINGS
from dy2static.passes.autodiff import autodiff

from lowered import Recording

TOLERANCE = {"float16": 1e-2, "float32": 2e-5, "float64": 1e-10}
LABELS = np.array([2, 0, -1, 1, 2], np.int32)
IDS = np.array([[2, 0], [1, 2]], np.int32)


class Case:
    """A call of Chainer functions.

    operands: shapes, filled at random between low and high, or arrays taken as they are.
    exact: whether the values must be the same to the last bit.
    twice: whether it can be differentiated twice.
    """

    def __init__(self, name, function, *operands, low=-2.0, high=2.0, exact=True, twice=True, dtypes="e f d"):
        self.name, self.function, self.operands = name, function, operands
        self.low, self.high, self.exact, self.twice, self.dtypes = low, high, exact, twice, dtypes.split()

    def __str__(self):
        return self.name

    def arrays(self, dtype, seed=0):
        rng = np.random.RandomState(seed)
        return [rng.uniform(self.low, self.high, operand).astype(dtype) if isinstance(operand, tuple) else operand
                for operand in self.operands]


def unary(name, function, **options):
    """One function of one array, in several shapes."""
    return [Case(f"{name}{shape}", function, shape, **options) for shape in ((4, 3), (), (0, 3), (1,))]


def binary(name, function, **options):
    """One function of two arrays that broadcast."""
    return [Case(f"{name}{a}{b}", function, a, b, **options)
            for a, b in (((4, 3), (4, 3)), ((4, 3), (3,)), ((4, 1), (1, 3)), ((), (2,)), ((0, 3), (3,)), ((2, 1, 3), (4, 1)))]


CASES = [
    *binary("add", lambda a, b: a + b),
    *binary("sub", lambda a, b: a - b),
    *binary("mul", lambda a, b: a * b),
    *binary("div", lambda a, b: a / b, low=0.5),
    *binary("pow", lambda a, b: a ** b, low=0.5),
    Case("multi_add", lambda a, b, c: F.add(a, b, c), (2, 3), (3,), (2, 1)),
    Case("multi_add one", lambda a: F.add(a), (2, 3)),
    *unary("neg", lambda x: -x),
    *unary("abs", lambda x: abs(x)),
    *unary("add constant", lambda x: x + 1.1),
    *unary("sub constant", lambda x: x - 1.1),
    *unary("sub from constant", lambda x: 1.1 - x),
    *unary("mul constant", lambda x: x * np.float64(1.1)),
    *unary("div constant", lambda x: x / 3),
    *unary("div from constant", lambda x: 1.1 / x, low=0.5),
    *(case for exponent in (2, 3, 0.5, 1, 0, -1, -2.5, np.float32(3))
      for case in unary(f"pow {exponent!r}", lambda x, exponent=exponent: x ** exponent, low=0.5)),
    *unary("constant pow", lambda x: 1.7 ** x),
    Case("linear", F.linear, (4, 3), (2, 3), (2,)),
    Case("linear no bias", F.linear, (4, 3), (2, 3)),
    Case("linear empty", F.linear, (0, 3), (2, 3), (2,)),
    Case("linear one", F.linear, (1, 1), (1, 1), (1,)),
    Case("embed_id", lambda W: F.embed_id(IDS, W), (3, 2)),
    Case("embed_id ignore", lambda W: F.embed_id(IDS, W, ignore_label=2), (3, 2)),
    Case("embed_id ignore negative", lambda W: F.embed_id(LABELS, W, ignore_label=-1), (3, 2)),
    *unary("relu", F.relu),
    *unary("tanh", F.tanh),
    *unary("sigmoid", F.sigmoid),
    *unary("leaky_relu", F.leaky_relu),
    *unary("leaky_relu negative", lambda x: F.leaky_relu(x, -0.5)),
    *unary("elu", F.elu, exact=False),
    *unary("elu negative", lambda x: F.elu(x, -0.7), exact=False),
    *unary("softplus", F.softplus, exact=False),
    *unary("softplus 2", lambda x: F.softplus(x, 2), exact=False),
    *unary("clipped_relu", lambda x: F.clipped_relu(x, 0.75)),
    *unary("hard_sigmoid", F.hard_sigmoid, low=-4.0, high=4.0),
    *(Case(f"{f.__name__} {shape} {axis}", lambda x, f=f, axis=axis: f(x, axis=axis), shape)
      for f in (F.softmax, F.log_softmax) for shape, axis in (((4, 3), 1), ((2, 3, 4), -1), ((3,), 0), ((0, 3), 1), ((5, 1), 1))),
    *(Case(f"softmax_cross_entropy {shape} {options}", lambda x, t=t, options=options: F.softmax_cross_entropy(x, t, **options),
           shape, exact=False, twice=False)
      for shape, t in (((5, 3), LABELS), ((2, 3, 2), np.array([[0, 2], [-1, 1]], "l")), ((1, 1), LABELS[1:2]))
      for options in ({}, {"normalize": False}, {"reduce": "no"}, {"ignore_label": 2})),
    Case("mean_squared_error", F.mean_squared_error, (4, 3), (4, 3)),
    Case("mean_squared_error one", F.mean_squared_error, (), ()),
    Case("mean_absolute_error", F.mean_absolute_error, (4, 3), (4, 3)),
    Case("squared_error", F.squared_error, (4, 3), (4, 3)),
    Case("absolute_error", F.absolute_error, (4, 3), (4, 3)),
    *(Case(f"sigmoid_cross_entropy {options}", lambda x, options=options: F.sigmoid_cross_entropy(x, LABELS % 3 - 1, **options),
           (5,)) for options in ({}, {"normalize": False}, {"reduce": "no"})),
]


def gradients_of(graph, given):
    """The joint graph for the gradients of all float inputs from the given outputs."""
    targets = tuple(i for i, v in enumerate(graph.inputs) if v.type.dtype.kind == "f")
    found = autodiff(graph, targets, given)
    return verify(found.graph), found.connected


def check(actual, expected, case, dtype):
    for a, e in zip(actual, expected):
        assert (np.shape(a), a.dtype) == (e.shape, e.dtype)
        if case.exact:
            np.testing.assert_array_equal(a, e)
        close(a, e, dtype)


def close(actual, expected, dtype):
    tolerance = TOLERANCE[np.dtype(dtype).name]
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def compare(case, dtype):
    arrays = case.arrays(dtype)
    recording = Recording(case.function, arrays)
    assert not recording.opaque
    graph = recording.graph
    with np.errstate(all="ignore"):
        np.random.seed(7)
        check(interpret(graph, *arrays), [y.array for y in recording.outputs], case, dtype)
        compare_gradients(case, dtype, recording, arrays)


def compare_gradients(case, dtype, recording, arrays):
    outputs = [(i, y) for i, y in enumerate(recording.outputs) if y.creator is not None and y.dtype.kind == "f"]
    if not outputs:
        return
    rng = np.random.RandomState(5)
    gys = [chainer.Variable(np.asarray(rng.uniform(-1, 1, y.shape), y.dtype)) for _, y in outputs]
    targets = [x for x in recording.inputs if x.requires_grad]
    expected = chainer.grad([y for _, y in outputs], targets, gys, enable_double_backprop=case.twice)
    joint, connected = gradients_of(recording.graph, tuple(i for i, _ in outputs))
    assert connected == tuple(gx is not None for gx in expected)
    operands = [*arrays, *(gy.array for gy in gys)]
    actual = interpret(joint, *operands)
    expected = [gx for gx in expected if gx is not None]
    for a, e in zip(actual, expected):
        assert (np.shape(a), a.dtype) == (e.shape, e.dtype)
        close(a, e.array, dtype)
    if case.twice:
        compare_second_gradients(dtype, joint, operands, [*targets, *gys], expected)


def compare_second_gradients(dtype, joint, operands, sources, firsts):
    if not any(gx.requires_grad and gx.creator is not None for gx in firsts):
        return
    rng = np.random.RandomState(6)
    ggxs = [chainer.Variable(np.asarray(rng.uniform(-1, 1, gx.shape), gx.dtype)) for gx in firsts]
    expected = chainer.grad(firsts, sources, ggxs)
    second, connected = gradients_of(joint, tuple(range(len(firsts))))
    assert connected == tuple(g is not None for g in expected)
    for a, e in zip(interpret(second, *operands, *(g.array for g in ggxs)), [g for g in expected if g is not None]):
        assert (np.shape(a), a.dtype) == (e.shape, e.dtype)
        close(a, e.array, dtype)


@pytest.mark.parametrize("case, dtype", [(case, dtype) for case in CASES for dtype in case.dtypes], ids=str)
def test_lowering(case, dtype):
    compare(case, dtype)


def test_every_lowering_is_tested():
    """Each registered class occurs in some case."""
    used = set()
    apply = chainer.FunctionNode.apply
    chainer.FunctionNode.apply = lambda node, inputs: used.add(type(node)) or apply(node, inputs)
    try:
        for case in CASES:
            case.function(*case.arrays("f"))
    finally:
        chainer.FunctionNode.apply = apply
    assert not set(LOWERINGS) - used
