"""Every op that C takes, against its NumPy meaning, as native regions of one node; and the table of those C leaves."""
import functools
import warnings
import zlib

import numpy as np
import pytest
from native_cases import NativeCase, build, graph_of

from dy2static import ops, to_static  # (ops fills OPS)
from dy2static.backends.c.supported import supported
from dy2static.ir.building import Builder, building
from dy2static.ir.op import OPS, sample
from dy2static.ir.types import Scalar, Tensor
from dy2static.native import compiler

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler")

TOLERANCE = {"float32": 2e-6, "float64": 1e-12}

#: More operands: rows that fill no vector, one element, several axes that are reduced.
MORE = {
    "conv_blocks": (sample((1, 9, 9, 15, 16), (80, 144, 3, 3), (80,), size=(9, 15), pad=(1, 1), shift=True),     # several pieces
                    sample((3, 1, 4, 50, 16), (64, 16, 1, 1), (3, 4, 4, 50, 16), size=(4, 50), residual=True, relu=True, cap=0.25),
                    sample((2, 4, 13, 15, 16), (48, 64, 3, 3), (48,), (2, 3, 13, 15, 16), size=(13, 15), pad=(1, 1), scale=True,
                           residual=True, relu=True),                                       # squares of two by two places
                    sample((1, 2, 20, 18, 16), (32, 32, 3, 3), (32,), size=(18, 20), pad=(0, 2), shift=True),
                    sample((3, 2, 100, 90, 16), (32, 32, 3, 3), (3, 2, 100, 90, 16), size=(100, 90), pad=(1, 1), residual=True),
                    *(sample((2, 2, 5, width, 16), (20, 1, 3, 3), size=(size, -(-width // stride)), stride=(stride, stride), pad=(1, 1),
                             groups=20) for width in (1, 2, 8, 13) for stride, size in ((1, 5), (2, 3))),
                    sample((2, 5, 12, 13), (16, 5, 5, 4), (16,), size=(4, 4), stride=(3, 3), pad=(2, 1), scale=True)),
    "sum": (sample((3, 17), axis=1), sample((17, 3), axis=0), sample((3, 5, 7), axis=(0, 2)), sample((2, 5000), axis=1),
            sample((1, 1), axis=0), sample((3, 5, 7), axis=1, keepdims=True), sample((0, 3), axis=0)),
    "max": (sample((3, 17), axis=1), sample((17, 3), axis=0), sample((3, 5, 7), axis=(0, 2))),
    "min": (sample((3, 17), axis=1), sample((17, 3), axis=0)),
    "softmax": (sample((5, 37), axis=1), sample((5, 37), axis=0), sample((2, 5, 3, 4), axis=1), sample((3, 1), axis=1)),
    "log_softmax": (sample((5, 37), axis=1), sample((2, 5, 3, 4), axis=1), sample((3, 1), axis=1)),
    "mul": (sample((1,), (1,)), sample((3, 37), (3, 37))),
    "exp": (sample((1, 1),), sample((3, 37))),
    "tanh": (sample((3, 37)), sample((1,), low=-20, high=20)),
    "sigmoid": (sample((3, 37), low=-100, high=100),),
    "batch_norm": (sample((5, 3), (3,), (3,)), sample((4, 3, 2, 5), (3,), (3,), axis=(0, 2, 3)),
                   sample((4, 3, 2, 5), (3, 2, 5), (3, 2, 5))),
    "batch_norm_grad": (sample((5, 3), (3,), (5, 3), (3,), (3,)),
                        sample((4, 3, 2, 5), (3,), (4, 3, 2, 5), (3,), (3,), axis=(0, 2, 3))),
    "fixed_batch_norm": (sample((5, 3), (3,), (3,), (3,), (3,), low=0.1),
                         sample((4, 3, 5), (3,), (3,), (3,), (3,), low=0.1, axis=(0, 2))),
    "fixed_batch_norm_grad": (sample((5, 3), (3,), (3,), (3,), (5, 3), (3,), (3,)),
                              sample((4, 3, 5), (3,), (3,), (3,), (4, 3, 5), (3,), (3,), axis=(0, 2))),
    "batch_renorm": (sample((5, 3), (3,), (3,), (3,), (3,), low=0.1, rmax=2.0, dmax=1.0),
                     sample((4, 3, 5), (3,), (3,), (3,), (3,), low=0.1, axis=(0, 2))),
    "batch_renorm_grad": (sample((5, 3), (3,), (5, 3), (3,), (3,), (5, 3), (5, 3), low=0.1),),
    "standardize": (sample((5, 37)), sample((3, 1))),
    "scale_shift_grad": (sample((2, 3, 4), (3,), (2, 3, 4)),),
    "soft_labels": (sample((4, 3), (4, 3), low=0.1), sample((4, 3, 2), (4, 3, 2), low=0.1, eps=1e-3)),
    "contrast": (sample((4, 3), np.array([1, 0, 1, 0], np.int32), ()), sample((2, 5), np.array([0, 1], "f"), ())),
    "max_pool": (sample((1, 1, 20, 20), kernel=(17, 16), size=(4, 5)),
                 sample((1, 2, 5, 150), kernel=(3, 2), size=(3, 75), stride=(2, 2), pad=(1, 0)),
                 sample(np.array([[[1, np.nan, 0, np.nan, -np.inf, -np.inf]]]), kernel=(2,), size=(4,), stride=(2,), pad=(1,))),
    "average_pool": (sample((2, 2, 5, 6), kernel=(3, 3), size=(3, 3), stride=(2, 2), pad=(1, 1)),),
    "im2col": (sample((2, 2, 5, 6), kernel=(3, 3), size=(3, 3), stride=(2, 2), pad=(1, 2), dilate=(1, 2)),),
    "col2im": (sample((2, 2, 3, 3, 3, 3), size=(5, 6), stride=(2, 2), pad=(1, 2), dilate=(1, 2)),),
    "unpick": (sample((1, 2, 3), np.array([[[0, 2, 1], [1, 0, 2]]], np.uint8), kernel=(3,), size=(4,), stride=(2,), pad=(1,)),),
    "local_response": (sample((2, 7, 3)), sample((2, 3, 2, 2), n=3)),
    "local_response_grad": (sample(*[(2, 7, 3)] * 5, low=0.5),),
    "einsum": (sample((2, 3, 4), (2, 4, 5), inputs=("bij", "bjk"), output="bki"), sample((2, 3), (4,), inputs=("ij", "k"), output="kj"),
               sample((2, 3), (2, 3), inputs=("ij", "ij"), output=""), sample((2, 3), inputs=("ij",), output="ji"),
               sample((4, 3), (4, 3), (4, 3), inputs=("ij", "ij", "ij"), output="i")),
    "weighted_take": (sample((3, 5), np.array([[0, 4], [1, -1]]), (2, 2)),),
    "weighted_add": (sample((3, 2), np.array([[0, 4], [1, 1]]), (2, 2), size=5),),
    "argmax": (sample(np.array([[1, np.nan, 3], [2, 2, 1]]), axis=1), sample((3, 5, 2), axis=1), sample(np.arange(6) % 4)),
    "cumsum": (sample((3, 5, 7), axis=1), sample((3, 5, 7), axis=2)),
    "pick": (sample((7, 300), np.arange(400) % 7 - 3, index=("at",)), sample((6, 4, 50), np.arange(300) % 4, index=(slice(1, 6, 2), "at"))),
    "add_at": (sample((7, 300), (400, 300), np.arange(400) % 7 - 3, index=("at",)),
               sample((6, 4, 50), (3, 300, 50), np.arange(300) % 4, index=(slice(1, 6, 2), "at"))),
    "scatter_add": (sample((2, 200, 70), np.arange(200) % 5 - 2, axis=1, shape=(2, 5, 70)), sample((200, 170), np.arange(200) % 5, shape=(5, 170))),
}


def operands_of(op, number, sample, dtype):
    """The arrays of a sample: what is random, in another dtype; None if nothing is."""
    rng = np.random.RandomState(zlib.crc32(f"{op.name}-{number}".encode()))
    if dtype != sample.dtype and not any(isinstance(x, tuple) for x in sample.operands):
        return None
    low, high = (sample.low, sample.high) if np.dtype(dtype).kind == "f" else (1, 9)
    return [np.asarray(rng.uniform(low, high, x), dtype) if isinstance(x, tuple) else x for x in sample.operands]


def cases_of(op, dtype):
    """The cases of one op that C takes."""
    for number, one in enumerate((*op.samples, *MORE.get(op.name, ()))):
        operands = operands_of(op, number, one, dtype or one.dtype)
        if operands is None:
            continue
        try:
            graph = graph_of(op, operands, one.attrs)
        except (TypeError, ValueError):                      # not for this dtype
            continue
        numbers = [v.type for v in (*graph.inputs, *graph.outputs) if isinstance(v.type, Scalar)]
        if supported(graph.nodes[0]) and all(type.kind != "numpy" for type in numbers):      # those stay inside of regions
            yield NativeCase(f"{op.name}-{number}-{dtype or 'own'}", graph, operands)


def _few(found, dtype):
    """Some samples of one op: other dtypes differ in the types of the text only."""
    found = list(found)
    return found if len(found) <= MOST[dtype] else found[:MOST[dtype] - 2] + found[-2:]


#: So many samples of one op: all of them would compile for a minute.
MOST = {None: 8, "float64": 3, "int64": 2}


@functools.lru_cache(maxsize=None)
def cases(dtype):
    """The cases for one dtype of what is random (None: the sample's own), compiled in one text."""
    found = [case for op in OPS.values() for case in _few(cases_of(op, dtype), dtype)]
    build(found)
    return found


def close(case, actual, expected):
    """Equal, to the precision of the narrowest float in the graph."""
    tolerance = max((TOLERANCE.get(v.dtype.name, 0) for v in (*case.graph.inputs, *case.graph.outputs)
                     if v.dtype.name != "bool"), default=0)
    assert np.shape(actual) == np.shape(expected) and type(actual) is type(expected), case.name
    assert np.asarray(actual).dtype == np.asarray(expected).dtype, case.name
    # a sum of products is as exact as its terms are large
    summed = any(node.op.kind == "contraction" for node in case.graph.nodes) and np.size(expected)
    scale = np.abs(expected).max() if summed else 0.1
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale,
                               err_msg=f"{case.name}\n{case.region.function.text}")


def observed(function, operands):
    """What a call gives, or raises, and the warnings of NumPy."""
    with warnings.catch_warnings(record=True) as seen, np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("always")
        try:
            results = function(*operands)
        except (ArithmeticError, IndexError, ValueError) as error:
            results = error
    return results, sorted({str(w.message) for w in seen})


def same(case, operands):
    """C and NumPy give, warn and raise the same; what warned or raised."""
    drawn = np.random.get_state()
    expected, warned = observed(case.expected, operands)
    np.random.set_state(drawn)
    actual, warned_too = observed(case.run, operands)
    assert warned_too == warned, case.name
    if isinstance(expected, Exception):
        assert type(actual) is type(expected) and str(actual) == str(expected), case.name
        return expected
    assert isinstance(actual, tuple), (case.name, actual)
    for one, other in zip(actual, expected):
        close(case, one, other)
    return warned


@pytest.mark.parametrize("dtype", MOST, ids=str)
def test_values(dtype):
    """C gives what NumPy gives; it declines only where NumPy warns."""
    for case in cases(dtype):
        warned = same(case, case.operands)
        assert not case.declined or warned, f"{case.name} was left to NumPy"


def test_strided_operands():
    """Operands that are not contiguous, or not aligned, give the same."""
    for case in cases(None):
        same(case, [_apart(x) if isinstance(x, np.ndarray) and x.ndim else x for x in case.operands])


def _apart(array):
    wide = np.zeros(tuple(2 * n for n in array.shape), array.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


#: Op, attributes, operands, and what NumPy says.
UNUSUAL = (
    ("div", {}, (np.ones(5, "f"), np.zeros(5, "f")), "divide by zero"),
    ("div", {}, (np.zeros(5), np.zeros(5)), "invalid value"),
    ("log", {}, (np.array([1, -1], "f"),), "invalid value"),
    ("log", {}, (np.array([1, 0.0]),), "divide by zero"),
    ("sqrt", {}, (np.array([-1.0]),), "invalid value"),
    ("exp", {}, (np.full(9, 1000, "f"),), "overflow"),
    ("square", {}, (np.full(9, 1e30, "f"),), "overflow"),
    ("sum", {"axis": 0}, (np.full(9, 3e38, "f"),), "overflow"),
    ("floor_divide", {}, (np.arange(3), np.zeros(3, int)), "divide by zero"),
    ("take", {"axis": 0}, (np.ones((4, 2), "f"), np.array([0, 4])), "out of bounds"),
    ("take", {"axis": 0}, (np.ones((3, 2), "f"), np.array([0, -4])), "out of bounds"),
    ("take_along", {"axis": 1}, (np.ones((2, 3), "f"), np.array([[1], [3]])), "out of bounds"),
    ("add_along", {"axis": 1, "size": 3}, (np.ones((2, 1), "f"), np.array([[1], [-4]])), "out of bounds"),
    ("add_at", {"index": ("at",)}, (np.ones((4, 90), "f"), np.ones((900, 90), "f"), np.arange(900) % 5), "out of bounds"),
    ("scatter_add", {"shape": (4, 2)}, (np.ones((2, 2), "f"), np.array([0, -5])), "out of bounds"),
    ("pick", {"index": ("at", "at")}, (np.ones((2, 3)), np.array([0, 1]), np.array([0, 3])), "out of bounds"),
    ("bincount", {"size": 3}, (np.array([1, -1]),), "negative"),
    ("py_truediv", {}, (1, 0), "division by zero"),
    ("py_floordiv", {}, (1, 0), "division"),
    ("py_mod", {}, (1, 0), "modulo"),
    ("py_pow", {}, (0.0, -0.5), "power"),
    ("py_pow", {}, (1e300, 2), "out of range"),
)


@functools.lru_cache(maxsize=None)
def unusual_cases():
    found = [NativeCase(f"{name}-{said}", graph_of(OPS[name], operands, attrs), operands)
             for name, attrs, operands, said in UNUSUAL]
    build(found)
    return found


def test_warnings_and_exceptions_are_numpys():
    for case, row in zip(unusual_cases(), UNUSUAL):
        said = same(case, row[2])
        assert case.declined and row[3] in str(said), (case.name, said)


#: Ops that C leaves to NumPy, by the reason.
LEFT = {
    "they draw from the generators of NumPy or CuPy": """random_between random_normal random_typed fast_begin fast_uniform
        fast_between fast_normal fast_kept fast_typed""",
    "only kernels on GPUs draw with it": "philox",
    "they call Python": "numpy_call checked_call sized_call host_call opaque tape_vjp refuse raise_ nonzero_factor zero",
    "their results have a size that the run tells": "getitem_span scatter_span",
    "unions of types, and stacks, which control flow handles": "union_new union_tag union_get nothing new_stack push pop stack_add",
    "LAPACK and FFT": "inv det cholesky fft decorrelate decorrelate_grad fixed_decorrelate fixed_decorrelate_grad",
    "which of equal lengths comes first is NumPy's to say": "sequence_order",
    "transfers are calls of CuPy": "to_device",
    "not written": """local_conv size extent tree_loss tree_loss_grad sparse_matmul sparse_sample region_max region_max_grad
        region_max_grad_closed region_average region_average_grad region_align_average region_align_average_grad
        region_align_max region_align_max_grad list_array list_call list_extend list_slice list_unslice""",
}

#: Ops without samples of their own, or whose C form other tests have.
ELSEWHERE = set("""if_ while_ scan gradient_of gradient_inside by_rule attached last_gradient once_differentiable randomized_relu
    tensor_to_scalar cross_entropy stack_product stack_scatter list_new list_append list_get list_len list_pop list_zeros list_part list_alone list_rest
    list_last list_as_last select list_grown list_put list_taken list_add list_stack list_unstack list_join
    list_has list_has_any list_numbers""".split())


def test_every_op_is_taken_or_left_for_a_reason():
    taken = {case.name.rsplit("-", 2)[0] for case in cases(None)} | ELSEWHERE
    left = {name for names in LEFT.values() for name in names.split()}
    assert sorted(taken & left) == [], "these are taken now: delete them from the table"
    assert sorted(set(OPS) - taken - left) == [], "give these a C form, or add them to the table with the reason why not"
    assert sorted(left - set(OPS)) == [], "there are no such ops: delete them from the table"


def graphs():
    """Small graphs by name: which nodes share a loop, and where values are kept between loops."""
    def named(name, *shapes):
        builder = Builder(name)
        return builder, [builder.input(Tensor(shape, np.dtype("float32")), "x") for shape in shapes]

    builder, (x, y) = named("read_turned_by_a_later_loop", (3, 3), (3, 3))
    with building(builder):
        product = ops.contraction.matmul(x, y)
        yield builder.build((ops.movement.transpose(product * 2.0, axes=(1, 0)) + x,))
    builder, (x, y) = named("read_by_a_later_loop", (3, 5), (3, 5))
    with building(builder):
        difference = x - y
        total = ops.reduction.sum_(y, axis=(0,))
        yield builder.build((difference * total,))
    builder, (x, y) = named("rows_read_what_enters", (3, 5), (3, 1))
    with building(builder):
        total = ops.reduction.sum_(x, axis=(1,), keepdims=True)
        yield builder.build((x / (total + y * y), total))
    builder, (x, y) = named("read_by_rows_of_a_later_loop", (4, 1), (4, 3))
    with building(builder):
        half = x * 0.5
        total = ops.reduction.sum_(y * y, axis=(1,), keepdims=True)
        yield builder.build((y - (total - half), ops.reduction.sum_(half)))


def test_loops_share_what_they_can():
    found = [NativeCase(graph.name, graph, [np.random.RandomState(k).rand(*v.shape).astype("f") for k, v in enumerate(graph.inputs)])
             for graph in graphs()]
    build(found)
    for case in found:
        assert not same(case, case.operands) and not case.declined


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
@pytest.mark.parametrize("columns", [9, 37, 133, 192])
def test_extrema_of_rows_and_columns(dtype, columns):
    """The first extremum of each: zeros of both signs are equal, the first NaN is one."""
    rng = np.random.RandomState(0)
    rows = rng.randint(-3 if np.dtype(dtype).kind != "u" else 0, 4, (40, columns)).astype(dtype)
    if rows.dtype.kind == "f":
        rows[1], rows[2], rows[3], rows[4] = 0, np.inf, -np.inf, np.nan
        rows[1, ::2], rows[5, -4], rows[6, -1], rows[7, 3:9] = -0.0, np.nan, -np.nan, np.inf
        rows[8, 5:], rows[9, 7] = -np.inf, np.finfo(dtype).tiny / 4

    def places(x):
        return x.argmax(axis=1), x.argmin(axis=1), x.argmax(), x[1:].argmin(), x.argmax(axis=0), x[1:].argmin(axis=0)
    static = to_static(places, backend="c", strict=True)
    for got, wanted in zip(static(rows), places(rows)):
        np.testing.assert_array_equal(got, wanted)
    assert "d2s_order" in static.program(rows).native_code or rows.dtype.kind != "f"


@pytest.mark.parametrize("dtype", ["float32", "int64", "int16"])
def test_copies_of_turned_arrays(dtype):
    """Matrices of a stack are turned in squares where they are large enough, also a part of them, and with an axis between."""
    def f(x):
        double = x[:, 1:] + x[:, 1:]
        return [double.transpose(axes).reshape(-1) * 2 for axes in ((0, 2, 1, 3), (0, 3, 2, 1), (3, 1, 2, 0), (2, 3, 0, 1))]

    for shape in ((3, 6, 17, 9), (70, 8, 3, 50), (2, 2, 3, 2)):
        static = to_static(f, backend="c", strict=True)
        x = np.random.RandomState(0).randint(-99, 99, shape).astype(dtype)
        for got, wanted in zip(static(x), f(x)):
            np.testing.assert_array_equal(got, wanted)
        assert ("dy_turn_" in static.program(x).native_code) == (x.itemsize >= 4 and shape[0] > 2)


@pytest.mark.parametrize("k", [1, -2, 7])
def test_an_item_at_a_place_that_an_array_holds(k):
    """What it gives is a number to the next operation, and an array of no axes to the caller."""
    def items(x, k):
        y = np.sort(x)
        return np.take(y, k) - np.take(y, k * 0), np.sort(np.outer(x, x), axis=1)[k - 1, -1]

    compiled, x = to_static(items, backend="c"), np.random.RandomState(0).standard_normal(5).astype("f")
    try:
        expected = items(x, np.array(k))
    except IndexError as error:
        with pytest.raises(IndexError, match=str(error)):
            compiled(x, np.array(k))
        return
    for a, b in zip(compiled(x, np.array(k)), expected):
        np.testing.assert_array_equal(a, b)
    assert compiled.program(x, np.array(k)).native_code
