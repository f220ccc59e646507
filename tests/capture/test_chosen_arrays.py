"""Writes into an array that a decision chose: it may be a view of another one, or not."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable
from chainer import Variable

from dy2static import to_static


def calls(*shape):
    return [lambda k=k: (variable(*shape, seed=k), np.random.RandomState(k).uniform(-1, 1, shape).astype("f")) for k in range(5)]


def flipped(x, m):
    """Data augmentation: what is drawn decides whether the array is a view."""
    h = m.copy()
    for axis in range(2):
        if np.random.rand() < 0.5:
            h = np.flip(h, axis)
        h -= h.mean()
    if np.random.rand() < 0.5:
        h = h.T
    h *= 0.5
    np.clip(h, -0.5, 0.5, out=h)
    h[h < 0] = 0
    return F.sum(F.relu(x) * h)


def every_image(x, m):
    rows = []
    for row in m:
        row = row.copy()
        if np.random.randint(2):
            row = row[::-1]
        row -= row.mean()
        rows.append(row)
    return F.sum(x * np.stack(rows))


def read_as_it_was(x, m):
    """The array from which one was chosen is read after the write: then it matters which one it was."""
    a = m.copy()
    first = a[0]
    b = a[::-1] if m.sum() > 0 else a * 2
    b += 1
    first *= 3
    return x * a, b + 0, first + 0


def written_first(x, m):
    a = m * 2
    b = a[::-1] if m.sum() > 0 else a.T
    a[0] = 5
    b[:, 1] += 1
    return x * a, b * 1


def chosen_twice(x, m):
    a = m.copy()
    b = a if m[0, 0] > 0 else a[::-1]
    c = b.T if m[0, 1] > 0 else b
    c[0] = 1
    return x * c


def of_the_caller(x, m):
    b = m if x.array.sum() > 0 else m[::-1]
    b += 1
    return F.sum(x * m)


def written_in_branches(x, m):
    a, b = m.copy(), np.zeros_like(m)
    c = a if m.sum() > 0 else b
    if m[0, 0] > 0:
        c[0] = 1
        d = c * 2
    else:
        c[1] *= 3
        d = a + b
    return x * d, a + 0


def leaves_with_the_other(x, m):
    """Results that share memory do so in native code, too."""
    a = m * 2
    return a, a[:2] if m.sum() > 0 else a[2:], x * a


@pytest.mark.parametrize("function", [flipped, every_image, read_as_it_was, written_first, chosen_twice, of_the_caller,
                                      written_in_branches, leaves_with_the_other], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_chosen_arrays(function, backend):
    against_eager.check(lambda compile: compile(function), calls(4, 4), compiled=True, backend=backend)


def is_it(x, m):
    a = m.copy()
    b = a if m.sum() > 0 else np.zeros_like(m)
    b += 1
    return x * b, b is a


def held_by_a_variable(x, m):
    a = m.copy()
    rows = [a]
    b = a[:2] if m[0, 0] > 0 else a[1:3]
    v = Variable(b)
    b *= 2
    rows[0][0] = 9
    return v * 1, F.sum(x * a)


def inside_a_loop(x, m):
    a = m.copy()
    while np.abs(a).sum() > 1:
        b = a[::-1] if a[0, 0] > 0 else a
        b *= 0.5
        a = b
    return x * a


@pytest.mark.parametrize("function", [is_it, held_by_a_variable, inside_a_loop], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_what_is_not_compiled_is_as_in_eager_mode(function, backend):
    against_eager.check(lambda compile: compile(function), calls(4, 4), backend=backend)


def test_four_draws_are_one_program():
    """An array made inside needs no program for each combination of the draws."""
    @to_static
    def augmented(image):
        image = image.copy()
        for axis in (0, 1, 0, 1):
            if np.random.rand() < 0.5:
                image = np.flip(image, axis)
            image -= 0.5
        return F.sum(chainer.as_variable(image))

    np.random.seed(0)
    for _ in range(4):
        augmented(np.ones((3, 3), "f"))
    assert augmented.cache_info().captures == 1 and len(augmented.program(np.ones((3, 3), "f")).graph.nodes) < 40
