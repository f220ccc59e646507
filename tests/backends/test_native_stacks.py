"""Stacks of matrix products in C: views of operands are read where they are."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")]


def heads(x):
    """Shape (n, t, 24) to (n, 4, t, 6), in memory of the first shape."""
    return F.transpose(F.reshape(x * 2, (*x.shape[:2], 4, -1)), (0, 2, 1, 3))


VIEWS = {
    "heads": lambda x, y: F.matmul(heads(x), heads(y), transb=True),
    "heads first": lambda x, y: F.matmul(F.transpose(heads(x), (1, 0, 2, 3)), F.transpose(heads(y), (1, 0, 2, 3)), transb=True),
    "turned": lambda x, y: F.matmul(heads(x), heads(x), transa=True),
    "turned view": lambda x, y: F.matmul(F.transpose(heads(x), (0, 1, 3, 2)), heads(x)),
    "one for all": lambda x, y: F.matmul(F.broadcast_to(x[:1] * 2, x.shape), y, transb=True),
    "backwards": lambda x, y: F.matmul((x * 2)[::-1], y, transb=True),
    "rows backwards": lambda x, y: F.matmul((x * 2)[:, ::-1], (y * 3)[:, :, ::-1], transb=True),
    "some rows": lambda x, y: F.matmul((x * 2)[:, 2:7], (y * 3)[:, ::2], transb=True),
    "one row": lambda x, y: F.matmul((x * 2)[:, :1], y, transb=True),
    "some columns": lambda x, y: F.matmul((x * 2)[:, :, 4:12], (y * 2)[:, :, 4:12], transb=True),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in ((3, 10, 24), (3, 7, 24))]
    fast = to_static(VIEWS[name], backend="c", strict=True)
    results = []
    for function in (VIEWS[name], fast, fast):
        xs = [chainer.Variable(x) for x in arrays]
        y = function(*xs)
        F.sum(y * y).backward()
        results.append([y.array, *(x.grad for x in xs if x.grad is not None)])
    for found in results[1:]:
        assert len(found) == len(results[0])
        for actual, expected in zip(found, results[0]):
            np.testing.assert_allclose(actual, expected, rtol=3e-5, atol=3e-4)


# Attention: two stacks of products, and what is done with rows between them -------------------------------------------

MASK = np.triu(np.full((200, 200), -1e9), 1)
PADDED = np.random.default_rng(0).random((2, 1, 1, 200)) > 0.3
ROWS = np.random.default_rng(0).random((2, 1, 200, 1))


def attention(between):
    """``between``: what is done with the scores."""
    return lambda q, k, v: F.matmul(F.softmax(between(F.matmul(q, k, transb=True)), axis=3), v)


def after_all(q, k, v):
    scores = F.matmul(q, k, transb=True)
    return F.matmul(F.tanh(scores), v) + F.broadcast_to(F.sum(scores, axis=3, keepdims=True), (*v.shape[:2], 200, v.shape[3]))


def read_twice(q, k, v):
    weights = F.softmax(F.matmul(q, k, transb=True), axis=3)
    return F.matmul(weights, v) + F.broadcast_to(F.sum(weights * weights, axis=3, keepdims=True), (*v.shape[:2], 200, v.shape[3]))


def dropped(q, k, v):
    return F.matmul(F.dropout(F.softmax(F.matmul(q, k, transb=True), axis=3), 0.3), v)


def joined(heads):
    """``(batch, rows, heads * columns)``: the product is made there, if nothing else reads it."""
    return F.reshape(F.transpose(heads, (0, 2, 1, 3)), (2, 200, 3 * heads.shape[3]))


ATTENTION = {
    "plain": attention(lambda s: s * 0.25),
    "causal": attention(lambda s: s * 0.25 + MASK),
    "padded": attention(lambda s: F.where(np.broadcast_to(PADDED, s.shape), s, np.full(s.shape, -1e9))),
    "rows": attention(lambda s: s * np.broadcast_to(ROWS, s.shape)),
    "means": attention(lambda s: s - F.broadcast_to(F.mean(s, axis=3, keepdims=True), s.shape)),
    "columns": attention(lambda s: s - F.broadcast_to(F.mean(s, axis=2, keepdims=True), s.shape)),
    "turned": lambda q, k, v: F.matmul(F.softmax(F.matmul(F.transpose(q, (0, 1, 3, 2)), k, transa=True, transb=True), axis=3), v),
    "itself": lambda q, k, v: F.matmul(F.softmax(F.matmul(q * 2, q * 2, transb=True), axis=3), q * 2),
    "scores are read": after_all,
    "weights are read": read_twice,
    "dropout": dropped,
    "heads are joined": lambda q, k, v: F.tanh(joined(attention(lambda s: s * 0.25)(q, k, v))),
    "joined heads without softmax": lambda q, k, v: F.tanh(joined(F.matmul(F.matmul(q, k, transb=True), v))),
    "heads are read twice": lambda q, k, v: (lambda h: joined(h) + F.broadcast_to(F.sum(h), (2, 200, 60)))(attention(F.tanh)(q, k, v)),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name):
    """Blocks of rows, the last one shorter; in double precision, where nothing hides behind rounding."""
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((2, 3, 200, size)) for size in (16, 16, 20)]
    fast = to_static(ATTENTION[name], backend="c", strict=True)
    for train in (False, True, True):
        results = []
        for function in (ATTENTION[name], fast):
            np.random.seed(0)
            xs = [chainer.Variable(x) for x in arrays]
            with chainer.using_config("enable_backprop", train):
                y = function(*xs)
            if train:
                F.sum(y * y).backward()
            results.append([y.array, *(x.grad for x in xs if x.grad is not None)])
        assert len(results[0]) == len(results[1])
        assert train or (f", {3 * arrays[2].shape[3]});" in fast.program(*xs).native_code) == ("joined" in name)
        for actual, expected in zip(*results):
            np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-11 * np.abs(expected).max())


def test_scores_of_long_sequences_are_not_in_memory():
    x = np.ones((16, 700, 4), "float32")
    fast = to_static(lambda x: F.matmul(F.softmax(F.matmul(x * 2, x, transb=True), axis=2), x), backend="c", strict=True)
    with chainer.no_backprop_mode():
        fast(x)
        fast(x)
    assert 16 * 700 * 8 * 4 < fast.stats()["peak_bytes"] < 16 * 700 * 700 * 4 / 2
