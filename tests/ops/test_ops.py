"""The op test matrix, from the declarations: every op, every sample."""
import zlib

import numpy as np
import pytest

from dy2static import ops
from dy2static.ir.building import Builder, building
from dy2static.ir.dims import Dim
from dy2static.ir.evaluate import execute
from dy2static.ir.interpret import interpret
from dy2static.ir.op import OPS
from dy2static.ir.printer import to_source
from dy2static.ir.template import numpy_source
from dy2static.ir.types import Tensor, type_of
from dy2static.ir.verify import verify
from dy2static.passes.differentiation.autodiff import autodiff

assert ops                                              # fills OPS

TOLERANCE = {"float16": 5e-3, "float32": 1e-5, "float64": 1e-9}


class Case:
    """One op on one sample."""

    def __init__(self, op, sample, number):
        self.op, self.sample, self.number = op, sample, number

    def __str__(self):
        return f"{self.op.name}-{self.number}"

    @property
    def draws(self):
        """Whether some operand is filled at random, so that other dtypes and strides make sense."""
        return any(isinstance(operand, tuple) for operand in self.sample.operands)

    def operands(self, dtype=None, strided=False):
        """The arrays: the same numbers for every dtype."""
        rng = np.random.RandomState(zlib.crc32(str(self).encode()))
        return [operand if not isinstance(operand, tuple) else
                _filled(rng, operand, dtype or self.sample.dtype, self.sample, strided)
                for operand in self.sample.operands]

    def graph(self, types):
        """The graph of one node."""
        builder = Builder(self.op.name)
        inputs = [builder.input(type, name) for type, name in zip(types, "abcdef")]
        with building(builder):
            return builder.build(builder.add(self.op, tuple(inputs), self.sample.attrs))

    def run(self, dtype=None, strided=False):
        operands = self.operands(dtype, strided)
        np.random.seed(0)
        return interpret(self.graph(map(type_of, operands)), *operands)


def _filled(rng, shape, dtype, sample, strided):
    numbers = np.asarray(rng.uniform(sample.low, sample.high, shape), dtype)
    if not strided or not shape:
        return numbers
    apart = np.zeros(tuple(2 * n for n in shape), dtype)
    view = apart[tuple(slice(None, None, 2) for _ in shape)]
    view[...] = numbers
    return view


CASES = [Case(op, sample, number) for op in OPS.values() for number, sample in enumerate(op.samples)]
FLOATS = [case for case in CASES if case.draws and case.sample.dtype == "float32" and case.op.kind != "control"]
DIFFERENTIABLE = [case for case in FLOATS if case.op.vjp is not None and case.run()[0].dtype.kind == "f"]
# the one symbol would have to equal a number of the index; a key is two numbers
TIED = {"scatter_slice-1", *(f"philox-{number}" for number in range(4))}


def close(actual, expected, dtype):
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward(case):
    """The result has the type the rule gives; the graph is valid; its printed text gives the same result."""
    operands = case.operands()
    graph = verify(case.graph(map(type_of, operands)))
    results = case.run()
    expected = tuple(value.type for value in graph.outputs)
    if case.op.kind != "control":
        assert tuple(map(type_of, results)) == expected
    np.random.seed(0)
    printed = run_text(graph, operands)
    for result, value in zip(results, printed):
        np.testing.assert_equal(value, result)
        assert type(value) is type(result)


def run_text(graph, operands):
    scope = {}
    exec(to_source(graph), scope)                   # the one place: the text is what is tested
    return scope[graph.name](*operands)


@pytest.mark.parametrize("case", FLOATS, ids=str)
def test_dtypes(case):
    """Half and single precision give the double precision result, in their own type."""
    exact = case.run("float64")
    for dtype in ("float16", "float32"):
        results = case.run(dtype)
        operands = case.operands(dtype)
        assert tuple(map(type_of, results)) == tuple(v.type for v in case.graph(map(type_of, operands)).outputs)
        for result, reference in zip(results, exact):
            if case.op.vjp is not None and case.op.name != "sum_to":
                close(result, reference, dtype)


@pytest.mark.parametrize("case", [case for case in CASES if case.draws], ids=str)
def test_strided(case):
    """Operands that are every second element of a larger array give the same."""
    for strided, plain in zip(case.run(strided=True), case.run()):
        np.testing.assert_allclose(strided, plain, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("case", [case for case in CASES if case.op.inplace_ok], ids=str)
def test_in_place(case):
    """An op that says so may write its result over an operand."""
    plain = case.run()[0]
    for i in range(len(case.sample.operands)):
        operands = [np.array(a) for a in case.operands()]
        if type_of(operands[i]) != type_of(plain):
            continue
        result = run_in_place(case, operands, i)
        np.testing.assert_equal(result, plain)


def run_in_place(case, operands, i):
    graph = case.graph(map(type_of, operands))
    names = [f"x{k}" for k in range(len(operands))]
    types = [v.type for v in graph.inputs]
    text = numpy_source(case.op, names, f"x{i}", types, graph.outputs[0].type, graph.nodes[0].attrs)
    execute(text, {**{f.__name__: f for f in case.op.calls}, **dict(zip(names, operands))})
    return operands[i]


def differentiate(graph):
    """The joint graph for the gradients of all inputs from all outputs, and which inputs have one."""
    gradients = autodiff(graph, tuple(range(len(graph.inputs))), tuple(range(len(graph.outputs))))
    return verify(gradients.graph), gradients.connected


def check_gradient(graph, operands, seed=1):
    """Compare with central differences along one random direction of the float inputs."""
    joint, connected = differentiate(graph)
    rng = np.random.RandomState(seed)
    given = [rng.uniform(-1, 1, v.shape).astype(v.dtype) for v in graph.outputs]
    gradients = iter(interpret(joint, *operands, *given))
    directions = [rng.uniform(-1, 1, a.shape) if a.dtype.kind == "f" else None for a in operands]
    slope = sum(float((next(gradients) * d).sum()) for d, linked in zip(directions, connected) if linked)

    def value(step):
        moved = [a if d is None else a + step * d for a, d in zip(operands, directions)]
        return sum(float((y * g).sum()) for y, g in zip(interpret(graph, *moved), given))

    step = 1e-5
    expected = (value(step) - value(-step)) / (2 * step)
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7)
    return joint, given


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_gradient(case):
    """First and second derivatives against central differences, in double precision."""
    operands = case.operands("float64")
    graph = case.graph(map(type_of, operands))
    joint, given = check_gradient(graph, operands)
    assert joint.outputs
    check_gradient(joint, [*operands, *given])


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_gradient_dtypes(case):
    """Gradients have the type of their operand, in every precision; every float operand has one."""
    for dtype in ("float16", "float32"):
        operands = case.operands(dtype)
        joint, connected = differentiate(case.graph(map(type_of, operands)))
        assert connected == tuple(a.dtype.kind == "f" for a in operands)
        given = [np.ones(v.shape, v.dtype) for v in joint.inputs[len(operands):]]
        gradients = interpret(joint, *operands, *given)
        assert [type_of(g) for g in gradients] == [type_of(a) for a in operands if a.dtype.kind == "f"]


# One symbolic dimension ---------------------------------------------------------------------------------------

SHAPE_ATTRIBUTES = ("shape", "size")


def symbolic_variants(case):
    """The case with each size above 1 replaced by a symbol, in operands and attributes."""
    operands = [a for a in case.operands() if isinstance(a, np.ndarray)]
    attrs = case.sample.attrs
    in_attrs = {n for key in SHAPE_ATTRIBUTES if key in attrs for n in np.atleast_1d(attrs[key]).tolist()}
    for size in sorted({n for a in operands for n in a.shape} | in_attrs):
        if size > 1:
            types = [Tensor(_replaced(a.shape, size), a.dtype) for a in operands]
            changed = {k: _replaced(v, size) if k in SHAPE_ATTRIBUTES else v for k, v in attrs.items()}
            sample = type(case.sample)(case.sample.operands, changed, case.sample.dtype)
            yield types, Case(case.op, sample, case.number)


def _replaced(shape, size):
    if isinstance(shape, int):
        return Dim("n") if shape == size else shape
    return tuple(Dim("n") if n == size else n for n in shape)


def has_large_operand(case):
    return any(n > 1 for operand in case.sample.operands if isinstance(operand, tuple) for n in operand)


@pytest.mark.parametrize("case", [c for c in CASES if has_large_operand(c) and str(c) not in TIED], ids=str)
def test_symbolic_dimension(case):
    """The rule works on a symbol as on the number, and so do the interpreter, the printed text and the gradient."""
    operands = case.operands()
    expected = case.run()
    agreed = 0
    for types, variant in symbolic_variants(case):
        try:
            graph = verify(variant.graph(types))
        except (ValueError, TypeError):
            continue                                    # this size is tied to a number: reshape((2, n) to (3, 4))
        if not any(isinstance(n, Dim) for v in graph.inputs for n in v.shape):
            continue
        agreed += 1
        for source in (interpret(graph, *operands), run_text(graph, operands)):
            for result, reference in zip(source, expected):
                np.testing.assert_equal(result, reference)
        if case.op.vjp is not None:
            joint, _ = differentiate(graph)
            plain, _ = differentiate(case.graph(map(type_of, operands)))
            given = [np.ones(v.shape, v.dtype) for v in plain.inputs[len(operands):]]
            for result, reference in zip(interpret(joint, *operands, *given), interpret(plain, *operands, *given)):
                np.testing.assert_allclose(result, reference, rtol=1e-6)
    assert agreed
