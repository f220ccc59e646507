"""Steps that are one operator of ONNX, or have the form that onnxruntime recognizes; those that only look so stay as they are."""
import chainer.functions as F
import numpy as np
import pytest
from test_onnx_programs import compare

from dy2static import InputSpec

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
