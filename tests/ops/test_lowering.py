"""Every lowering against eager Chainer: values, gradients and second gradients, with None where eager has None."""
import chainer
import chainer.functions as F
import numpy as np
import pytest
from chainer.functions.activation.leaky_relu import LeakyReLU
from chainer.functions.math import basic_math as B
from lowered import Held, Recording
from lowering_cases import CASES, DECLINED
from lowering_cases.case import LABELS

from dy2static import to_static
from dy2static.ir.building import Builder, building
from dy2static.ir.interpret import interpret
from dy2static.ir.types import type_of
from dy2static.ir.verify import verify
from dy2static.lowering.registry import LOWERINGS
from dy2static.passes.differentiation.autodiff import autodiff

TOLERANCE = {"float16": 1e-2, "float32": 2e-5, "float64": 1e-10}


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


def run(graph, *arrays):
    """The graph on these arrays, with the random numbers that eager drew."""
    np.random.seed(7)
    return interpret(graph, *arrays)


def compare(case, dtype):
    arrays = case.arrays(dtype)
    np.random.seed(7)
    recording = Recording(case.function, arrays)
    assert not recording.opaque
    graph = recording.graph
    with np.errstate(all="ignore"):
        check(run(graph, *arrays), [y.array for y in recording.outputs], case, dtype)
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
    actual = run(joint, *operands)
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
    for a, e in zip(run(second, *operands, *(g.array for g in ggxs)), [g for g in expected if g is not None]):
        assert (np.shape(a), a.dtype) == (e.shape, e.dtype)
        close(a, e.array, dtype)


@pytest.mark.parametrize("case, dtype", [(case, dtype) for case in CASES for dtype in case.dtypes], ids=str)
def test_lowering(case, dtype):
    compare(case, dtype)


def test_every_lowering_is_tested():
    """Each registered class of Chainer's occurs in some case."""
    used = set()
    apply = chainer.FunctionNode.apply
    chainer.FunctionNode.apply = lambda node, inputs: used.add(type(getattr(node, "function", node))) or apply(node, inputs)
    try:
        for case in CASES:
            case.function(*map(chainer.Variable, case.arrays("f")))
    finally:
        chainer.FunctionNode.apply = apply
    assert sorted(cls.__name__ for cls in set(LOWERINGS) - used if not cls.__module__.startswith("dy2static.")) == []


@pytest.mark.parametrize("case", DECLINED, ids=str)
def test_declined(case):
    """What has no lowering for these attributes says so, and leaves no nodes behind that fail."""
    assert len(Recording(case.function, case.arrays("f")).opaque) == 1


NUMBERS = {
    "add": (B.AddConstant, 1.5), "sub": (B.SubFromConstant, 2), "mul": (B.MulConstant, 1.1),
    "div": (B.DivFromConstant, 3), "constant pow": (B.PowConstVar, 1.7), "leaky_relu": (LeakyReLU, 0.3),
    "numpy": (B.MulConstant, np.float64(1.1)),
}


@pytest.mark.parametrize("cls, attribute", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_captured_number(cls, attribute, dtype):
    """A number known at run time only gives what the number itself gives."""
    x = np.random.uniform(-2, 2, (4, 3)).astype(dtype)
    node = cls(attribute)
    builder = Builder()
    inputs = [builder.input(type_of(x), "x"), builder.input(type_of(attribute), "number")]
    for name in ("value", "slope"):
        if name in node.__dict__:
            setattr(node, name, Held(inputs[1]))
    with building(builder):
        graph = verify(builder.build((LOWERINGS[cls](node, inputs[0]),)))
    expected = cls(attribute).apply((x,))[0].array
    (actual,) = interpret(graph, x, attribute)
    assert actual.dtype == expected.dtype
    close(actual, expected, dtype)


def test_cross_entropy_is_differentiable_once():
    """Its second derivative raises as Chainer's does."""
    x = chainer.Variable(np.ones((5, 3), "f"))
    (gx,) = chainer.grad([F.softmax_cross_entropy(x, LABELS)], [x], enable_double_backprop=True)
    with pytest.raises(RuntimeError) as eager:
        chainer.grad([gx], [x])
    recording = Recording(lambda x: F.softmax_cross_entropy(x, LABELS), [x.array])
    second, _ = gradients_of(gradients_of(recording.graph, (0,))[0], (0,))
    with pytest.raises(RuntimeError) as ours:
        interpret(second, x.array, np.ones((), "f"), gx.array)
    assert str(ours.value) == str(eager.value)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64"])
@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1), (1, 1), (2, 3)], ids=str)
def test_sums_to_a_shape_have_the_dtype_of_sums(dtype, shape):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    static = to_static(lambda x: F.sum_to(x, shape), strict=True)
    for _ in range(2):
        found, wanted = static(x).array, F.sum_to(x, shape).array
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_a_truth_value_is_no_size():
    with pytest.raises(TypeError, match="integer"):
        to_static(lambda x, n: F.reshape(x, (n, -1)), backend="numpy")(np.ones((2, 3), "f"), True)


def test_embeddings_without_ids_raise_in_backward():
    W = chainer.Parameter(np.ones((4, 2), "f"))
    static = to_static(lambda ids: F.sum(F.embed_id(ids, W)), backend="numpy")
    for ids in (np.arange(3, dtype="i"), np.zeros(0, "i"), np.zeros(0, "i")):
        if len(ids):
            static(ids).backward()
            continue
        with pytest.raises(ValueError, match="cannot reshape array of size 0"):
            static(ids).backward()
    with chainer.no_backprop_mode():
        assert static(np.zeros(0, "i")).array == 0


@pytest.mark.parametrize("function, count", [(F.batch_normalization, 2), (F.fixed_batch_normalization, 4)])
def test_second_gradients_of_normalization_are_computed_in_the_dtype_of_x(function, count):
    """As Chainer does, also where gamma and the statistics have a wider one."""
    rng = np.random.RandomState(0)
    arrays = [rng.uniform(-1, 1, (5, 3)).astype("e"), *rng.uniform(0.5, 2, (count, 3)).astype("f")]

    def second(function):
        xs = [chainer.Variable(x) for x in arrays]
        first = chainer.grad([F.sum(F.cast(function(*xs), "f") * np.linspace(-1, 1, 15, dtype="f").reshape(5, 3))], xs,
                             enable_double_backprop=True)
        return chainer.grad([sum([F.sum(F.cast(g, "f") ** 2) for g in first])], xs[:2])

    for found, wanted in zip(second(to_static(function, backend="numpy")), second(function)):
        np.testing.assert_allclose(found.array.astype("f"), wanted.array.astype("f"), rtol=1e-6)
