"""Every op that has a form in ONNX, over its samples and over numbers that are hard, in one model for each opset."""
import operator
import warnings

import numpy as np
import pytest
from onnx_runs import check, run, tolerance
from ops.test_ops import CASES

from dy2static import ops
from dy2static.errors import ExportError
from dy2static.export.to_onnx import proto
from dy2static.export.to_onnx.model import has_form, model_of
from dy2static.export.to_onnx.writer import Options
from dy2static.ir.building import Builder, building
from dy2static.ir.dims import Dim
from dy2static.ir.graph import Graph
from dy2static.ir.interpret import interpret
from dy2static.ir.op import OPS
from dy2static.ir.types import Tensor, type_of

pytestmark = pytest.mark.any_python

DTYPES = ("float32", "float64", "float16")
#: Ops that are taken apart only where there are elements.
NOT_EMPTY = {"scale_shift", "normalize_l2", "scaled"}
WITHOUT_FORM = {"zeta", "polygamma", "erfcx", "log_ndtr", "erfinv", "erfcinv", "ndtri", "gammaln", "digamma"}


#: Ops that are there from opset 18 on.
WITH_BITS = {f"{start}_{end}" for start in ("bitwise", "py") for end in ("and", "or", "xor")}


class Job:
    """One graph of a node, with its operands."""

    def __init__(self, name, graph, operands):
        self.name, self.graph, self.operands = name, graph, operands

    def expected(self):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return interpret(self.graph, *self.operands)


def one_node(name, op, operands, **attrs):
    builder = Builder("one")
    inputs = tuple(builder.input(type_of(x), "x") for x in operands)
    with building(builder):
        return Job(name, builder.build(builder.add(op, inputs, attrs)), operands)


def is_refused(case, dtype):
    """What cannot be exported, for a reason that `test_what_is_refused` looks at."""
    if case.op.name == "special":
        return case.sample.attrs.get("function", "erf") in WITHOUT_FORM or dtype == "float64"
    return case.op.name in NOT_EMPTY and any(0 in np.shape(x) for x in case.operands())


def of_samples(dtypes=DTYPES, opset=21):
    for case in CASES:
        if not has_form(case.op) and case.op.decompose is None or opset < 18 and case.op.name in WITH_BITS:
            continue
        for dtype in dtypes if case.draws and case.sample.dtype == "float32" else (None,):
            if not is_refused(case, dtype):
                operands = case.operands(dtype)
                yield Job(f"{case}-{dtype}", case.graph(map(type_of, operands)), operands)


def joined(jobs):
    """One model of all."""
    graph = Graph(tuple(v for job in jobs for v in job.graph.inputs), tuple(v for job in jobs for v in job.graph.outputs),
                  tuple(node for job in jobs for node in job.graph.nodes))
    return graph, [(v, f"in_{i}_{k}") for i, job in enumerate(jobs) for k, v in enumerate(job.graph.inputs)], \
        [(v, f"out_{i}_{k}") for i, job in enumerate(jobs) for k, v in enumerate(job.graph.outputs)]


def compare(jobs, opset):
    graph, arguments, results = joined(jobs)
    model = model_of(graph, arguments, [], results, {}, Options(opset, random=True))
    proto.checked(model)
    given = [x for job in jobs for x in job.operands]
    found = run(model, {name: x for (_, name), x in zip(arguments, given)})
    wrong = []          # of all jobs, to be told at once
    for i, job in enumerate(jobs):
        for k, expected in enumerate(job.expected()):
            actual = found[f"out_{i}_{k}"]
            if job.graph.nodes[0].op.kind == "effect":          # draws
                assert actual.shape == np.shape(expected) and actual.dtype == np.asarray(expected).dtype
            else:
                try:
                    check(actual, expected, tolerance(expected, *job.operands), job.name)
                    if job.name.partition("-")[0] in SIGNED and actual.dtype.kind == "f":
                        there = ~np.isnan(expected)
                        np.testing.assert_array_equal(np.signbit(actual[there]), np.signbit(expected[there]), job.name)
                except AssertionError as error:
                    wrong.append(f"{job.name}: {error}")
    assert not wrong, "\n".join(wrong)


def test_samples():
    compare(list(of_samples(opset=17)), 17)


def test_samples_with_a_newer_opset():
    compare(list(of_samples(("float32",))), 21)


# Numbers that are hard ------------------------------------------------------------------------------------------

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, -3.0, 1e-8, 7.25, np.inf, -np.inf, np.nan]
INTS = [0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -100]
#: Ops that give zeros of the same sign.
SIGNED = {"add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "neg", "abs", "floor", "ceil", "trunc", "tanh", "sqrt",
          "arctan", "sinh"}
PAIRS = ("add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "maximum", "minimum", "greater", "greater_equal", "less",
         "less_equal", "equal", "not_equal")
ONES = ("neg", "abs", "sign", "floor", "ceil", "trunc", "square", "isnan", "isfinite", "relu", "exp", "log", "log1p", "expm1", "tanh",
        "sigmoid", "sinh", "cosh", "arctan", "tan", "log2", "log10", "softplus", "elu", "huber", "leaky_relu", "hard_sigmoid",
        "clipped_relu", "sqrt")


def hard_pairs():
    for dtype in ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32", "bool"):
        kind = np.dtype(dtype).kind
        if kind == "b":
            pool = [True, False]
        else:
            pool = FLOATS if kind == "f" else [n for n in INTS if kind == "i" or n >= 0]
            pool = pool + ([] if kind == "f" else [np.iinfo(dtype).max, np.iinfo(dtype).min])
        a, b = (grid.ravel() for grid in np.meshgrid(np.array(pool, dtype), np.array(pool, dtype)))
        for name in PAIRS:
            if kind == "b" and name in ("sub", "floor_divide", "remainder", "fmod", "div"):
                continue
            yield one_node(f"{name}-{dtype}", OPS[name], [a, b])


def hard_ones():
    for dtype in ("float32", "float64"):
        x = np.array([*FLOATS, 1e-4, 12.0, -12.0, 0.9999], dtype)
        for name in ONES:
            yield one_node(f"{name}-{dtype}", OPS[name], [x])
        inside = np.array([-1, -0.99, -0.3, 0.0, 1e-5, 0.3, 0.99, 1.0], dtype)
        for name in ("arcsin", "arccos", "arctanh"):
            yield one_node(f"{name}-{dtype}", OPS[name], [inside])
        a, b = (grid.ravel() for grid in np.meshgrid(x, x))
        yield one_node(f"arctan2-{dtype}", OPS["arctan2"], [a, b])
        for shape in ((3, 5), (15,)):
            holey = np.array(FLOATS, dtype).reshape(shape)
            for name in ("max", "min"):
                yield one_node(f"{name}-{dtype}", OPS[name], [holey], axis=-1)
            for name in ("argmax", "argmin"):
                yield one_node(f"{name}-{dtype}", OPS[name], [holey], axis=len(shape) - 1)
                yield one_node(f"{name}-{dtype}", OPS[name], [holey[..., :3]], axis=None)
            yield one_node(f"sort-{dtype}", OPS["sort"], [holey])
        yield one_node(f"clip-{dtype}", OPS["clip"], [x], x_min=-0.5, x_max=0.5)
        for to in ("bool", "float16", "float64"):
            yield one_node(f"cast-{dtype}-{to}", OPS["cast"], [x], dtype=to)
        yield one_node(f"cast-{dtype}-int8", OPS["cast"], [np.array([300.7, -300.7, 1.5, -1.5], dtype)], dtype="int8")
    many = np.array([[3, 1, 2, 1], [0, 5, -4, 5]])
    for dtype in ("int8", "int32", "int64", "uint8"):
        x = many.astype(dtype)
        for name in ("sum", "max", "min", "any", "all"):
            yield one_node(f"{name}-{dtype}", OPS[name], [x], axis=1)
        yield one_node(f"argmax-{dtype}", OPS["argmax"], [x], axis=1)
        yield one_node(f"cumsum-{dtype}", OPS["cumsum"], [x], axis=1)
        yield one_node(f"sort-{dtype}", OPS["sort"], [x])
        for exponent in (0, 1, 2, 5):
            yield one_node(f"power_const-{dtype}", OPS["power_const"], [x], exponent=exponent)
        yield one_node(f"power-{dtype}", OPS["power"], [np.abs(x) + 1, np.abs(many).astype(dtype)])
    yield one_node("power-int64", OPS["power"], [np.array([3, -3, 7, 2, -1, 0]), np.array([39, 39, 22, 62, 63, 0])])


def test_hard_numbers():
    """NaN, infinities, signs of zeros and remainders, and the ends of ints."""
    compare([*hard_pairs(), *hard_ones()], 17)


def test_python_numbers():
    """Division, remainder and comparison of Python's own numbers."""
    jobs = []
    for name, function in (("py_floordiv", operator.floordiv), ("py_mod", operator.mod), ("py_truediv", operator.truediv)):
        for a in (7, -7, 7.5, -7.5, True):
            for b in (2, -2, 2.5, -2.5):
                job = one_node(f"{a} {name} {b}", OPS[name], [a, b])
                assert job.expected()[0] == function(a, b)
                jobs.append(job)
    for a, b in ((2, 5), (-3, 3), (2.0, 0.5), (2, 0.5), (7, 20)):
        jobs.append(one_node(f"{a} ** {b}", OPS["py_pow"], [a, b]))
    compare(jobs, 17)


def test_free_sizes_and_attributes():
    """Sizes of the caller's in shapes, slices and windows: three batches in one model."""
    n, m = Dim("length_n0"), Dim("length_n1")
    builder = Builder("free")
    x = builder.input(Tensor((n, m), np.dtype("f")), "x")
    image = builder.input(Tensor((n, 2, m + 3, 7), np.dtype("d")), "image")
    with building(builder):
        outputs = (
            ops.reshape(x, shape=(n * m,)), ops.getitem(x, index=(slice(1, None), slice(None, None, -1))),
            ops.broadcast_to(ops.full(shape=(m,), value=2), shape=(n, m)) * x, ops.scatter_slice(x, index=(slice(0, n),), shape=(n + 2, m)),
            ops.scalar_to_tensor(ops.dimension(size=(n * m + 1) // 2), dtype="int64"), ops.arange(start=0, stop=m, step=1),
            ops.mean(x, axis=0), ops.argmax(x, axis=1),
            ops.conv(image, ops.full(shape=(4, 2, 3, 3), value=0.5, dtype="d"), size=((m + 3 - 3) // 2 + 1, 3), stride=(2, 2)),
            ops.average_pool(image, kernel=(2, 2), size=((m + 3 + 1) // 2, 4), stride=(2, 2)),
            ops.max_pool(image, kernel=(2, 2), size=((m + 3 + 1) // 2, 4), stride=(2, 2))[0],
            *ops.split(x, sizes=(1, n - 1), axis=0))
    graph = builder.build(outputs)
    names = [f"out_{k}" for k in range(len(outputs))]
    model = model_of(graph, [(x, "x"), (image, "image")], [], list(zip(graph.outputs, names)),
                     {"length_n0": "batch", "length_n1": "width"}, Options())
    proto.checked(model)
    rng = np.random.RandomState(0)
    for batch, width in ((2, 3), (5, 4), (3, 9)):
        given = {"x": rng.rand(batch, width).astype("f"), "image": rng.rand(batch, 2, width + 3, 7)}
        found = run(model, given)
        for name, expected in zip(names, interpret(graph, *given.values())):
            check(found[name], expected, 1e-6, name)


def test_free_sizes_that_are_zero():
    """NaN as the mean of nothing; steps along an axis that is not there."""
    builder = Builder("empty")
    x = builder.input(Tensor((3, Dim("length_n0"), 2), np.dtype("f")), "x")
    with building(builder):
        outputs = (ops.mean(x), ops.mean(x, axis=1, keepdims=True), ops.mean(x, axis=0), ops.cumprod(x, axis=1),
                   ops.linear_recurrence(x, x, axis=1), ops.sum(x, axis=1), ops.cumsum(x, axis=1), ops.concat(x, x, axis=1))
    graph = builder.build(outputs)
    names = [f"out_{k}" for k in range(len(outputs))]
    model = model_of(graph, [(x, "x")], [], list(zip(graph.outputs, names)), {"length_n0": "length"}, Options())
    for length in (0, 1, 3):
        given = np.random.RandomState(0).rand(3, length, 2).astype("f")
        found = run(model, {"x": given})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = interpret(graph, given)
        for name, wanted in zip(names, expected):
            check(found[name], wanted, 1e-6, name)


def test_what_is_refused():
    """Ops without a form, and dtypes without a kernel, are errors that say so."""
    for op, operands, attrs, text in (
            ("inv", [np.eye(2)], {}, "no operators"), ("special", [np.ones(2)], {"function": "erf"}, "double precision"),
            ("special", [np.ones(2, "f")], {"function": "zeta", "order": 2.0}, "no zeta"),
            ("random_uniform", [], {"shape": (2,)}, "random=True"),
            ("scaled", [np.ones((0, 3), "f"), np.array(2, "f")], {}, "no operators")):
        job = one_node(op, OPS[op], operands, **attrs)
        graph, arguments, results = joined([job])
        with pytest.raises(ExportError, match=f"{op} cannot be written in ONNX: .*{text}"):
            model_of(graph, arguments, [], results, {}, Options())
