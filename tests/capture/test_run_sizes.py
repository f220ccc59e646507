"""Arrays whose sizes the contents of other arrays decide: masks, places of true elements, slices, sizes for new arrays."""
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from tests.against_eager import check, variable

#: Of Variables ``x`` (5, 2) and ``y`` (5, 2), an array ``a`` (5,) float32 and an array ``n`` (2,) of ints.
PROGRAMS = {
    "sum of masked": lambda x, y, a, n: F.sum(x[a > 0]),
    "two by one mask": lambda x, y, a, n: [F.sum(x[m] * y[m]) for m in [a > 0]],
    "shape of masked": lambda x, y, a, n: x[a > 0].shape + x[a > 0].array.shape,
    "masked leaves": lambda x, y, a, n: x[a > 0] * 2,
    "mask of two axes": lambda x, y, a, n: F.sum(x[y.array > 0] * y[y.array > 0]),
    "mask and number": lambda x, y, a, n: x[a > 0, 1] * 2,
    "mask behind a slice": lambda x, y, a, n: x[1:4, n > 1],
    "scatter_add by a mask": lambda x, y, a, n: F.scatter_add(x, a > 0, x[a > 0] * y[a > 0]),
    "mask of columns": lambda x, y, a, n: x[:, n > 1],
    "mean of masked": lambda x, y, a, n: F.sum(x[a > -2]) / len(a[a > -2]),
    "relu of masked": lambda x, y, a, n: F.sum(F.relu(x[a > 0]) ** 2),
    "matmul of masked": lambda x, y, a, n: F.matmul(x[a > 0], y, transb=True),
    "softmax of masked": lambda x, y, a, n: F.softmax(x[a > 0]),
    "rows": lambda x, y, a, n: x[np.flatnonzero(a > 0)] + y[np.flatnonzero(a > 0)],
    "rows of where": lambda x, y, a, n: F.sum(x[np.where(a > 0)[0]]),
    "count": lambda x, y, a, n: x * len(np.nonzero(a > 0)[0]),
    "truth of count": lambda x, y, a, n: x if len(a[a > 0]) == 0 else x * 2,
    "size of mask": lambda x, y, a, n: x * a[a > 0].size,
    "any of masked": lambda x, y, a, n: x if a[a > 0].size else -x,
    "max of masked": lambda x, y, a, n: x * float(a[a > -2].max()),
    "first of masked": lambda x, y, a, n: a[a > 0][0],
    "quantile of masked": lambda x, y, a, n: x * np.sort(a[a > 0])[int(len(a[a > 0]) * 0.3)],
    "item of a row of masked": lambda x, y, a, n: x.array[a > 0][0, int(n[0]) // 2],
    "max of perhaps nothing": lambda x, y, a, n: a[a > 0].max(),
    "F.max of perhaps nothing": lambda x, y, a, n: F.max(x[a > 0]),
    "masked twice": lambda x, y, a, n: a[a > 0][a[a > 0] > 0.5],
    "half of masked": lambda x, y, a, n: a[a > 0][::2],
    "unique": lambda x, y, a, n: np.unique(n)[::-1],
    "unique with counts": lambda x, y, a, n: np.unique(n, return_counts=True, return_inverse=True),
    "slice": lambda x, y, a, n: x[: int(n[0])] + y[: int(n[0])],
    "slice from": lambda x, y, a, n: F.sum(x[int(n[0]):] ** 2),
    "slice between": lambda x, y, a, n: F.sum(x[int(n[0]): int(n[1])]),
    "slice by items": lambda x, y, a, n: F.sum(x[n[0]: n[1]]),
    "slice to the end but": lambda x, y, a, n: F.sum(x[1: -int(n[0])]),
    "slice of columns": lambda x, y, a, n: F.sum(x[:, : int(n[0])], axis=1),
    "slice of a part": lambda x, y, a, n: F.sum(x[1:4, : n[0]] * 2) + F.sum(y[: n[1], 1] ** 2) * F.sum(x[-1, n[0] - 1:] ** 2),
    "slice leaves": lambda x, y, a, n: x[: int(n[1])],
    "zeros": lambda x, y, a, n: np.zeros(int(n[0])) + np.ones(int(n[0])),
    "zeros of shape": lambda x, y, a, n: np.zeros((int(n[0]), int(n[1])), "f").sum(axis=0),
    "arange": lambda x, y, a, n: np.arange(int(n[0])) * 2,
    "arange from": lambda x, y, a, n: np.arange(int(n[0]), int(n[1])),
    "rows of arange": lambda x, y, a, n: F.sum(x[np.arange(int(n[0]))]),
    "zeros like masked": lambda x, y, a, n: np.zeros(len(a[a > 0])) + a[a > 0],
    "repeat": lambda x, y, a, n: np.repeat(a, 2) [: int(n[0])],
    "reversed slice": lambda x, y, a, n: a[::-1][: int(n[0])],
    "Variable of masked": lambda x, y, a, n: F.sum(F.cast(x[a > 0], "d")),
    "concatenated": lambda x, y, a, n: F.concat([x[a > 0], y], axis=0),
    "stacked": lambda x, y, a, n: np.concatenate([a[a > 0], a]),
    "sorted masked": lambda x, y, a, n: np.sort(a[a > 0]),
    "cumsum of masked": lambda x, y, a, n: np.cumsum(a[a > 0]),
    "dot of masked": lambda x, y, a, n: a[a > 0].dot(a[a > 0]),
    "in-place masked": lambda x, y, a, n: np.where(a > 0, a, 0).sum(),
}


def in_branch(x, y, a, n):
    if a[0] > 0:
        z = x[a > 0]
    else:
        z = y[a > -2] * 2
    return F.sum(z), z.shape[0]


def in_both_and_after(x, y, a, n):
    m = a > 0
    if n[0] > 1:
        total = F.sum(x[m])
    else:
        total = F.sum(y[m])
    return total + F.sum(x[m] * y[m])


def per_class(x, y, a, n):
    total = 0
    for k in range(3):
        rows = np.flatnonzero(n == k)
        if len(rows) > 0:
            total = total + F.sum(x[rows])
    return total


def scores(x, y, a, n):
    labels = (a > 0).astype("i") * n[0]
    return F.classification_summary(x, labels), F.classification_summary(y, labels, beta=2.0, ignore_label=0)


PROGRAMS.update(in_branch=in_branch, in_both_and_after=in_both_and_after, per_class=per_class, scores=scores)


def calls():
    def call(seed, a, n):
        return lambda: (variable(5, 2, seed=seed), variable(5, 2, seed=seed + 1), np.array(a, "f"), np.array(n))
    return [call(1, [1, -1, .7, .3, -.2], [2, 4]), call(2, [-1, -1, -.7, .3, .9], [1, 1]), call(3, [1, 2, 3, 4, 5], [5, 0]),
            call(5, [-1] * 5, [2, 5])]


@pytest.mark.filterwarnings("ignore:Mean of empty", "ignore:invalid value")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name):
    static = check(lambda compile: compile(PROGRAMS[name]), calls(), compiled=True)
    assert not name.startswith("slice ") or static.stats()["captures"] == 1, "no program is for the numbers of one call"


def test_a_mask_that_does_not_fit():
    """It is an error, as eagerly."""
    check(lambda compile: compile(lambda x, m: x[m]), [lambda: (variable(4, 3, seed=1), np.ones(3, bool))], compiled=False)


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("part", [lambda a, i, j: a[i:i + 3], lambda a, i, j: a[i:i + 1], lambda a, i, j: a[i:], lambda a, i, j: a[:i],
                                  lambda a, i, j: a[:, i:j], lambda a, i, j: a[i::j]],
                         ids=["i:i+3", "i:i+1", "i:", ":i", "columns", "i::j"])
def test_slices_of_short_arrays_by_numbers(rows, part):
    """The sizes of the parts are not those that the numbers of the capture's trial calls give."""
    a = np.arange(rows * 4, dtype="f").reshape(rows, 4)
    for make in (lambda i: i, lambda i: np.array([i, 0])):
        def f(a, i, j):
            i, j = (k if isinstance(k, int) else int(k.sum()) for k in (i, j))
            return F.relu(part(a, i, j) * 2 + 1)
        compiled = to_static(f, backend="numpy")
        for i, j in ((0, 1), (1, 2), (3, 4), (0, 3), (6, 1), (2, 2)):
            expected, actual = f(a, make(i), make(j)), compiled(a, make(i), make(j))
            assert actual.shape == expected.shape and np.array_equal(actual.array, expected.array)
        assert compiled.cache_info().captures <= 3


def test_sizes_that_only_some_numbers_decide():
    """Numbers of the usual trial calls all give one size here."""
    def f(a, n):
        k = int(n[0])
        return (np.concatenate([np.arange(-k, 0), np.arange(1, k + 1)]) * 2, np.arange(0, k * 100, 100) * 2, np.arange(0, -n[0], -1) * 2,
                np.arange(0, 1, float(n[0]) * 0.05) * 2, np.tril_indices(2, 2 - k)[0] * 2, np.diagonal(a[:, None], -k) * 2)
    compiled, a = to_static(f, backend="c"), np.ones(5, "f")
    for k in (2, 1, 7):
        for expected, actual in zip(f(a, np.array([k, 0])), compiled(a, np.array([k, 0]))):
            assert np.array_equal(actual, expected)
    assert compiled.cache_info().captures == 1


def differences(x, y, a, n):
    """Lovasz's gradient: of the masked and sorted, without the last and without the first."""
    masked, labels = x[a > -2][:, 0], y.array[a > -2][:, 0] > 0
    order = np.argsort(-masked.array)
    chosen = labels[order]
    union = chosen.sum() + (1 - chosen).astype("f").cumsum(0)
    p, found = len(chosen), 1 - (chosen.sum() - chosen.cumsum(0).astype("f")) / union
    if p > 1:
        found[1:p] = found[1:p] - found[0:-1]
    return F.sum(F.relu(masked[order] + 1) * found)


def neighbours(x, y, a, n):
    values = a[a > 0].astype("d")
    values[2:] += values[:-2] * 2
    values[1:][::2] = 3
    return values, (values[1:len(values)] - values[:-1]).sum(), x[a > 0][1:] - x[a > 0][:-1]


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function", [differences, neighbours], ids=lambda function: function.__name__)
def test_parts_without_the_first_and_without_the_last(function, backend):
    static = check(lambda compile: compile(function), calls(), compiled=True, backend=backend)
    assert static.stats()["captures"] == 1 and not static.stats()["cuts"]


def sampled_targets(x, y, a, n):
    """The training targets of a detector: at most one positive one, and as many of both kinds as are asked for."""
    labels = (a > 0).astype("i")
    positive = np.where(labels == 1)[0]
    if len(positive) > 1:
        labels[np.random.choice(positive, size=len(positive) - 1, replace=False)] = -1
    kept = n.max() - np.sum(labels == 1)
    negative = np.where(labels == 0)[0]
    if len(negative) > kept:
        labels[np.random.choice(negative, size=len(negative) - kept, replace=False)] = -1
    return F.softmax_cross_entropy(x, labels, ignore_label=-1), labels


def drawn(x, y, a, n):
    k, positive = int((a > -3).sum()), np.flatnonzero(a > -3)
    places = np.random.permutation(k)
    some = np.random.choice(positive, size=min(len(positive), 3), replace=False), np.random.choice(positive, size=(2,))
    return x[places], np.random.choice(k, size=int(n[0]), replace=True), np.random.choice(k, k, False), *some, np.random.rand()


def too_many(x, y, a, n):
    positive = np.flatnonzero(a > 0)
    return x[np.random.choice(positive, size=len(positive) - int(n[0]), replace=False)]


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function", [sampled_targets, drawn, too_many], ids=lambda function: function.__name__)
def test_draws_of_as_much_as_only_the_run_knows(function, backend):
    static = check(lambda compile: compile(function), calls(), compiled=True, backend=backend)
    assert static.stats()["captures"] == 1 and not static.stats()["cuts"]


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_means_of_nothing(backend):
    """Chainer divides by the number of elements."""
    static = to_static(lambda x, a: (F.mean(x[a > 0]), F.mean(x[a > 0], axis=1))[0], backend=backend, strict=True)
    x = variable(5, 2)
    np.testing.assert_allclose(static(x, np.array([1, 0, 1, 0, 0], "f")).array, x.array[::2][:2].mean(), rtol=1e-6)
    with pytest.raises(ZeroDivisionError, match="^float division by zero$"):
        static(x, np.zeros(5, "f"))
    assert static.cache_info().captures == 1
