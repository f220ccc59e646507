"""Stacks of matrix products in C: views of operands are read where they are."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


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
