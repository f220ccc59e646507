"""Steps that are one operator of ONNX, or have the form that onnxruntime recognizes; those that only look so stay as they are."""
import chainer.functions as F
import numpy as np
import pytest
from onnx_runs import onnxruntime
from test_onnx_programs import compare

from dy2static import InputSpec
from dy2static.export.to_onnx import proto

pytestmark = pytest.mark.any_python


def operators(model):
    return [node.op_type for node in model.graph.node]


def numbers(*shape, dtype="f", seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(dtype)


# Layer normalization --------------------------------------------------------------------------------------------

GAMMA, BETA = numbers(6, seed=1), numbers(6, seed=2)


def normalized(x, axis=1, eps=1e-3):
    apart = x - F.broadcast_to(F.mean(x, axis, keepdims=True), x.shape)
    deviation = F.sqrt(F.mean(apart * apart, axis, keepdims=True) + eps)
    return apart / F.broadcast_to(deviation, x.shape), deviation


def with_deviation(x):
    y, deviation = normalized(x)
    return y * GAMMA + BETA, deviation


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_layer_normalization():
    rows = numbers(7, 6)
    rows[1] += 100
    rows[2] = 0.1
    rows[3, 2], rows[4, 1], rows[5, 0] = np.nan, np.inf, -np.inf
    for eps in (2e-5, 0.0):
        model = compare(lambda x: F.layer_normalization(x, GAMMA, BETA, eps), [InputSpec([None, 6])], (rows,), (rows[:1],), (rows[:0],))
        assert operators(model) == ["LayerNormalization", "Identity"]


def test_layer_normalization_of_the_users():
    model = compare(lambda x: normalized(x, 2)[0] * GAMMA + BETA, [InputSpec([2, 3, 6])], (numbers(2, 3, 6),))
    assert operators(model) == ["LayerNormalization", "Identity"]


@pytest.mark.parametrize("f, x", [
    (lambda x: normalized(x, 0)[0] * GAMMA + BETA, numbers(6, 6)),
    (lambda x: normalized(x, (0, 1))[0] * GAMMA + BETA, numbers(6, 6)),
    (with_deviation, numbers(3, 6)),
    (lambda x: normalized(x)[0] * GAMMA[:, None] + BETA, numbers(6, 6)),
    (lambda x: F.layer_normalization(x, GAMMA.astype("d"), BETA.astype("d")), numbers(3, 6, dtype="d")),
], ids=["first axis", "all", "deviation read", "column", "double"])
def test_other_normalizations(f, x):
    assert "LayerNormalization" not in operators(compare(f, [InputSpec(x.shape, x.dtype)], (x,)))


def test_layer_normalization_of_rows_of_any_length():
    model = compare(lambda x: F.layer_normalization(x, x[0] * 0 + 2, x[1]), [InputSpec([2, None])], (numbers(2, 6),))
    assert "LayerNormalization" not in operators(model)


# Hard swish and hard sigmoid ------------------------------------------------------------------------------------

HARD = np.array([np.nan, np.inf, -np.inf, 0, -0.0, -3, 3, 2.999999, -2.999999, 1, -1, 1e30, -1e30, 3e38], "f")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("f, expected", [
    (lambda x: x * F.clip(x * (1 / 6) + 0.5, 0.0, 1.0), ["HardSwish"]),
    (lambda x: F.clip(0.5 + x / 6, 0.0, 1.0) * x, ["HardSwish"]),
    (lambda x: F.relu6(x + 3) / 6 * x, ["HardSwish"]),
    (lambda x: x * F.hard_sigmoid(x), ["HardSigmoid", "Mul"]),
    (lambda x: x * F.clip(x * 0.25 + 0.5, 0.0, 1.0), ["HardSigmoid", "Mul"]),
    (lambda x: F.clip(x / 4 + 0.25, 0.0, 1.0), ["HardSigmoid"]),
    (lambda x: F.clip(x * 0.0 + 0.5, 0.0, 1.0), ["Mul", "Add", "Max", "Min"]),
    (lambda x: F.clip(x * 0.2 + 0.5, 0.0, 2.0), ["Mul", "Add", "Max", "Min"]),
    (lambda x: x * F.relu6(x + 3) * (1 / 6), ["Add", "Max", "Min", "Mul", "Mul"]),
], ids=["factor", "divisor", "relu6", "0.2", "0.25", "shifted", "no slope", "to two", "may overflow"])
def test_hard_swish_and_hard_sigmoid(f, expected):
    assert operators(compare(f, [InputSpec([None])], (HARD,), (numbers(300),), (HARD[:0],))) == [*expected, "Identity"]


def test_what_is_clipped_and_read_elsewhere():
    def f(x):
        line = x * (1 / 6) + 0.5
        return x * F.clip(line, 0.0, 1.0), line
    assert operators(compare(f, [InputSpec([3])], (numbers(3),))) == ["Mul", "Add", "Max", "Min", "Mul", "Identity", "Identity"]
    model = compare(lambda x, y: y * F.clip(x * (1 / 6) + 0.5, 0.0, 1.0), [InputSpec([3]), InputSpec([2, 3])],
                    (numbers(3), numbers(2, 3)))
    assert operators(model) == ["HardSigmoid", "Mul", "Identity"]
    assert "HardSwish" not in operators(compare(lambda x: x * F.clip(x * (1 / 6) + 0.5, 0.0, 1.0), [InputSpec([3], "float64")],
                                                (numbers(3, dtype="d"),), allowed=1e-12))


# Upsampling -----------------------------------------------------------------------------------------------------


def test_upsampling():
    image = numbers(2, 3, 5, 7)
    image[0, 0, 0, :3] = np.nan, np.inf, -np.inf
    for size in (2, 3):
        model = compare(lambda x: F.unpooling_2d(x, size, cover_all=False), [InputSpec([None, 3, None, None])],
                        (image,), (image[:1, :, :2, :3],), allowed=0)
        assert "Resize" in operators(model) and "Expand" not in operators(model)

    def repeated(x, shape, to):
        return F.reshape(F.broadcast_to(F.reshape(x, shape), to), [n * k for n, k in zip(x.shape, (1, 1, 1, 3))])
    model = compare(lambda x: repeated(x, (2, 3, 5, 7, 1), (2, 3, 5, 7, 3)), [InputSpec([2, 3, 5, 7])], (image,), allowed=0)
    assert operators(model) == ["Resize", "Identity"]
    model = compare(lambda x: repeated(x, (2, 3, 5, 1, 7), (2, 3, 5, 3, 7)), [InputSpec([2, 3, 5, 7])], (image,), allowed=0)
    assert operators(model) == ["Reshape", "Expand", "Reshape", "Identity"]
    model = compare(lambda x: F.unpooling_2d(x, 2, cover_all=False), [InputSpec([1, 1, 2, 3], "float64")],
                    (numbers(1, 1, 2, 3, dtype="d"),), allowed=0)
    assert "Resize" not in operators(model)


# Gelu -----------------------------------------------------------------------------------------------------------


def gelu(x, factor=0.5 ** 0.5, half=0.5):
    return half * x * (1 + F.erf(x * factor))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gelu(tmp_path):
    x = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 3.4e38, -3e38, -20, 1e-40], "f")
    model = compare(gelu, [InputSpec([None])], (x,), (numbers(300),))
    assert operators(model) == ["Div", "Erf", "Mul", "Add", "Mul", "Identity"]
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert "Gelu" in operators(proto.package().load(options.optimized_model_filepath))


def test_what_is_no_gelu():
    for f in (lambda x: gelu(x, 0.7071), lambda x: gelu(x, half=0.25), lambda x: x * F.erf(x * 0.5 ** 0.5)):
        assert "Div" not in operators(compare(f, [InputSpec([3])], (numbers(3),)))


# Biases ---------------------------------------------------------------------------------------------------------


def test_biases():
    W, b = numbers(6, 4, seed=1), numbers(6, seed=2)
    x, four = numbers(5, 4), numbers(4)
    assert operators(compare(lambda x: F.linear(x, W, b), [InputSpec([None, 4])], (x,), (x[:1],), (x[:0],))) == ["Gemm", "Identity"]
    assert operators(compare(lambda x: F.matmul(x, x, transa=True) + four, [InputSpec([5, 4])], (x,))) == ["Gemm", "Identity"]
    for ndim in (1, 2, 3):
        filters = numbers(6, 4, *[2] * ndim)
        image = numbers(2, 4, *[3] * ndim)
        model = compare(lambda x: F.convolution_nd(x, filters, b, pad=1), [InputSpec(image.shape)], (image,))
        assert operators(model) == ["Conv", "Identity"]
    grouped = numbers(6, 2, 3, 3)
    model = compare(lambda x: F.convolution_2d(x, grouped, b, 2, 1, cover_all=True, groups=2), [InputSpec([2, 4, 6, 6])],
                    (numbers(2, 4, 6, 6),))
    assert operators(model) == ["Conv", "Identity"]


def test_sums_that_are_no_biases():
    W, square, row = numbers(6, 4, seed=1), numbers(6, 6, seed=2), numbers(1, 4, seed=3)

    def read(x):
        y = F.linear(x, W)
        return y + square[0], y
    x, six = numbers(6, 4), numbers(6)
    assert operators(compare(lambda x: F.linear(x, W) + square, [InputSpec([6, 4])], (x,))) == ["Gemm", "Add", "Identity"]
    assert "Add" in operators(compare(lambda x: F.linear(x, W) + square[:, :1], [InputSpec([6, 4])], (x,)))
    assert "Add" in operators(compare(read, [InputSpec([6, 4])], (x,)))
    assert operators(compare(lambda x: F.linear(F.broadcast_to(x, (6, 4)), W, six), [InputSpec([1, 4])], (row,))) == [
        "Expand", "Gemm", "Identity"]
    filters, image = numbers(3, 2, 1, 1), numbers(2, 2, 3, 3)
    for other in (numbers(1, 1, 3, 1), numbers(1, 1, 1, 3), numbers(2, 3, 1, 1)):
        model = compare(lambda x: F.convolution_2d(x, filters) + F.reshape(other.ravel(), other.shape), [InputSpec(image.shape)], (image,))
        assert "Add" in operators(model)
    doubles, double = filters.astype("d"), numbers(3, dtype="d")
    assert "Add" in operators(compare(lambda x: F.convolution_2d(x, doubles, double), [InputSpec(image.shape, "float64")],
                                      (image.astype("d"),)))


# Maxima ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_maxima_find_nan():
    x = np.array([[1, np.nan, -3], [np.inf, -np.inf, 3], [3e38, 3e38, 1], [-3e38, -np.inf, -3e38], [np.nan, np.inf, -np.inf], [-1, -2, -3]], "f")
    for f in (F.max, F.min):
        model = compare(lambda x: (f(x, 1), f(x, 0, keepdims=True), f(x)), [InputSpec([6, 3])], (x,))
        assert operators(model).count("Abs") == 3
    model = compare(lambda x: F.max(F.relu(x), 1), [InputSpec([None, 3])], (x,), (x[1:2],))
    assert operators(model) == ["Relu", "ReduceMax", "ReduceSum", "IsNaN", "Where", "Identity"]


# Padding --------------------------------------------------------------------------------------------------------


def test_padding():
    x = numbers(2, 3, 4)
    x[0, 0, :2] = np.nan, np.inf
    model = compare(lambda x: F.pad(x, ((0, 0), (1, 0), (2, 3)), "constant"), [InputSpec([None, 3, 4])], (x,), (x[:1],), (x[:0],), allowed=0)
    assert "Pad" in operators(model) and "ScatterElements" not in operators(model)

    def written(x):
        y = np.zeros((3, 9), "f")
        y[1:, 0:8:2] = x.array
        return y
    model = compare(written, [InputSpec([2, 4])], (numbers(2, 4),), allowed=0)
    assert "Pad" not in operators(model)
