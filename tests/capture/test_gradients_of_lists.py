"""Lists that grow under array values: which items have a gradient, and what it is, in two orders."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static


def read_by_index(x, y, n):
    out, i = [], 0
    while i < n.array:
        out.append(x * 2 if i % 2 else y * 3)
        i += 1
    return out[1] * 2


def item_in_front_unread(x, y, n):
    out, i = [x], 0
    while i < n.array:
        out.append(y * 3)
        i += 1
    return out[-1] * out[1]


def items_made_of_items(x, y, n):
    out, i = [x], 0
    while i < n.array:
        out.append(out[-1] * y)
        i += 1
    return out[0] + out[1]


def branches_append(x, y, n):
    out, i = [], 0
    while i < n.array:
        if i % 2 == 0:
            out.append(x * y)
        else:
            out.append(y + 1)
            out.append(y + 2)
        i += 1
    if n.array > 2:
        return out[1] * 2
    return out[0] * 2


def read_in_a_branch(x, y, n):
    out, i, total = [x], 0, y * 1
    while i < n.array:
        out.append(x * y)
        if y.array.sum() > 1000:
            total = total + out[-1]
        i += 1
    if n.array > 1000:
        total = total + F.sum(F.stack(out))
    return total


def loops_in_loops(x, y, n):
    out, i = [y], 0
    while i < n.array:
        j = 0
        while j < n.array:
            out.append(x * j)
            j += 1
        i += 1
    return out[0] * 3


def popped_and_sliced(x, y, n):
    out, i = [], 0
    while i < n.array:
        out.append(x * 2)
        out.append(y * i)
        i += 1
    last = out.pop()
    return last * out[1::2][0] if n.array > 2 else last * 2


def continued_and_split(x, y, n):
    firsts, i = list(F.separate(F.stack([x, x * 2]))), 0
    while i < n.array:
        firsts.append(y * i)
        i += 1
    return (firsts + firsts)[-1] * 2


def all_read(x, y, n):
    out, h, i = [], x, 0
    while i < n.array:
        h = F.tanh(h + y)
        out.append(h)
        i += 1
    return F.stack(out)


def kept_from_gradients(x, y, n):
    out, h, i = [], y, 0
    while i < n.array:
        h = h * y
        out.append(h + x)
        i += 1
    return h + out[0].array


def gradients(function, count):
    rng = np.random.RandomState(0)
    x, y = [chainer.Variable(rng.uniform(0.5, 1.5, 3).astype("f")) for _ in range(2)]
    loss = F.sum(function(x, y, chainer.Variable(np.array(count, "f"))) ** 2)
    first = chainer.grad([loss], [x, y], enable_double_backprop=True)
    squares = [F.sum(g * g) for g in first if g is not None and g.requires_grad]
    return [None if g is None else g.array for g in [*first, *(chainer.grad([sum(squares)], [x, y]) if squares else ())]]


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function", [
    read_by_index, item_in_front_unread, items_made_of_items, branches_append, read_in_a_branch, loops_in_loops,
    popped_and_sliced, continued_and_split, all_read, kept_from_gradients], ids=lambda f: f.__name__)
def test_items_that_nobody_read_have_no_gradient(function, backend):
    compiled = to_static(function, backend=backend)
    for count in (2, 3):
        for wanted, found in zip(gradients(function, count), gradients(compiled, count)):
            assert (wanted is None) == (found is None)
            if wanted is not None:
                np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-6)
    assert not compiled.stats()["fallbacks"] and not compiled.stats()["cuts"]
