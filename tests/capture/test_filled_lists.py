"""Lists as long as an axis whose size differs from call to call: filled by loops, and made of the rows of an array."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static

SIZES = (3, 4, 6, 5, 9)
W = chainer.Parameter(np.random.RandomState(0).uniform(-1, 1, (4, 4)).astype("f"))


def cell(x, h):
    return F.tanh(F.matmul(x, W) + h)


def both_ways(x):
    """Steps of a recurrent network from the first row on, and from the last."""
    n = len(x)
    there, back = [None] * n, [None] * n
    h = np.zeros((1, 4), "f")
    for i in range(n):
        h = there[i] = cell(x[i:i + 1], h)
    h = np.zeros((1, 4), "f")
    for i in range(n - 1, -1, -1):
        h = back[i] = cell(x[i:i + 1], h)
    total = 0
    for i in range(n):
        total += F.sum(there[i] * back[i])
    return total, F.concat(there, axis=0), back


def after_the_one_before(x):
    states = [None] * (len(x) + 1)
    states[0] = F.sum(x, axis=0, keepdims=True)
    for i in range(len(x)):
        states[i + 1] = cell(x[i:i + 1], states[i])
    return F.concat(states[1:], axis=0)


def numbers(x):
    sums = [0.0] * len(x)
    for i, row in enumerate(x.array):
        sums[i] = float(row.sum())
    weights = np.array([0.5] * x.shape[0], "f")
    return F.sum(x * weights[:, None]), max(sums), len(sums)


def array_of_numbers(x):
    places = [0.0] * len(x)
    for i in range(len(x)):
        places[i] = float(i) * 2
    return F.sum(x, axis=1) * np.array(places).astype("f")


def rows(x):
    h = 0
    for row in reversed(list(x)):
        h = F.tanh(row + h)
    listed = list(x)
    listed.append(h)
    parts = F.separate(x)
    for first, second in zip(parts[:-1], parts[1:][::-1]):
        h = h + first * second
    for part in F.split_axis(x, len(x), axis=0):
        h = h * 0.5 + F.sum(cell(part, h))
    return F.stack(listed), h, parts[:2], len(parts[1:])


def read_before(x):
    states = [None] * len(x)
    states[0] = x[0]
    return states[0], states[1]


def assigned_twice(x):
    states = [None] * len(x)
    for i in range(len(x) - 1):
        states[i] = x[i]
    for i in range(1):
        states[i] = x[1]
    return states[0], states[-1]


def beside_its_end(x):
    states = [None] * (len(x) - 1)
    for i in range(len(x)):
        states[i] = x[i] * 2
    return F.sum(x)


def values(items):
    if isinstance(items, (list, tuple)):
        return [values(item) for item in items]
    return items.array.tolist() if isinstance(items, chainer.Variable) else items


def observed(function, n):
    x = chainer.Variable(np.random.RandomState(n).uniform(-1, 1, (n, 4)).astype("f"))
    W.cleargrad()
    try:
        result = function(x)
    except IndexError as error:
        return str(error)
    parts = result if isinstance(result, (list, tuple)) else [result]
    flat = [part for item in parts for part in (item if isinstance(item, (list, tuple)) else [item])]
    sum(F.sum(part * part) for part in flat if isinstance(part, chainer.Variable)).backward()
    return values(parts), x.grad.tolist(), None if W.grad is None else W.grad.tolist()


def is_close(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(is_close, a, b))
    return abs(a - b) <= 1e-3 * abs(a) + 1e-5 if isinstance(a, float) else a == b


@pytest.mark.parametrize("function, captures", [
    (both_ways, 3), (after_the_one_before, 3), (numbers, 3), (rows, 3), (read_before, 5), (assigned_twice, 5), (beside_its_end, None)])
def test_filled_lists(function, captures):
    static = to_static(function, backend="numpy")
    for n in SIZES:
        assert is_close(observed(function, n), observed(static, n)), n
    assert captures in (None, static.cache_info().captures)


@pytest.mark.parametrize("function", [both_ways, array_of_numbers])
def test_native_code(function):
    static = to_static(function, backend="c")
    assert all(is_close(observed(function, n), observed(static, n)) for n in SIZES)
    assert static.cache_info().captures == 3
