"""Whole numbers that can be one of a few only: Python may index, repeat and look up by them."""
import collections

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, variable

from dy2static import not_to_static, to_static

ACTIVATIONS = [F.relu, F.tanh, F.sigmoid]


def of_functions(x):
    return ACTIVATIONS[int(x.array.sum(axis=0).argmax())](x)


def twice(x):
    return ACTIVATIONS[x.array[0].argmax()](x), "abc"[x.array[0].argmax()]


def of_dict(x):
    k = int(F.argmax(x[0]).array)
    return x * (k + 1), {0: "zero", 1: "one", 2: "two"}[k]


def remainder(x):
    n = int(abs(x.array.sum() * 10)) % 3
    return x * n, [1] * n, "abc"[:n], (10, 20, 30)[n:]


def in_a_loop(x):
    steps = 0
    while float(abs(x.array).max()) > 0.3 and steps < 4:
        x = x * (0.5, 0.6, 0.7)[int(x.array[0].argmax())]
        steps += 1
    return x


def changed_lists(x):
    xs, k = [x, x * 2, x * 3], int(x.array[0].argmax())
    xs[k] = xs[k] + 1
    del xs[k]
    return xs, f"{k}", str(k)


def truths(x):
    return x, {True: "pos", False: "neg"}[bool(x.array[0, 0] > 0)], ("n", "p")[int(x.array[0, 1] > 0)]


def negative(x):
    k = x.array[0].argmin()
    return x * [1.0, 2.0, 3.0][-1 - int(k)], np.arange(5)[:int(k)].sum()


def made_collections(x):
    k = int(x.array.argmax()) % 4
    seen, found = collections.Counter([1, 2]), collections.defaultdict(int, {1: 2})
    return x * seen[k], found[k], found


class Experts(chainer.Chain):
    def __init__(self):
        super().__init__()
        self.counts, self.used, self.last, self.table = collections.Counter(), [0, 0, 0], {}, collections.defaultdict(int)
        with self.init_scope():
            self.experts = chainer.ChainList(*[L.Linear(3, 3, initialW=array(3, 3, seed=i)) for i in range(3)])

    def forward(self, x):
        k = int(x.array.sum(axis=0).argmax())
        self.counts[k] += 1
        self.used[k] += 1
        self.table[k] += 2
        self.last[k] = float(x.array.sum())
        if k in self.last and len(self.last) > 1:
            self.last.pop(min(self.last))
        return self.experts[k](x)


PROGRAMS = [of_functions, twice, of_dict, remainder, in_a_loop, changed_lists, truths, negative, made_collections]


def seeds():
    return [lambda s=s: (variable(2, 3, seed=s),) for s in range(6)]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_few_values(function):
    check(lambda compile: (compile(function), None), seeds(), compiled=True)


def test_experts():
    def make(compile):
        model = Experts()
        return compile(model.forward), model
    check(make, seeds(), compiled=None)


class Missing(dict):
    def __missing__(self, key):
        return key + 1


KINDS = {"counter": lambda: collections.Counter({1: 2}), "default": lambda: collections.defaultdict(int, {1: 2}),
         "own": lambda: Missing({1: 2})}


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_missing_keys(kind, few):
    def make(compile):
        counts = KINDS[kind]()

        def look(x):
            k = int(abs(x.array.sum() * 100))
            k = k % 4 if few else k
            return x * counts[k], counts[k]
        return compile(look), [counts]
    check(make, seeds(), compiled=None if few else False)


@not_to_static
def argmax(scores):
    """The number of the best label, from one on: no place among the scores, in spite of its name."""
    return int(np.argmax(scores)) + 1


@not_to_static
def argsort(scores):
    """Twice the same row: no permutation."""
    return np.zeros(len(scores), int) + int(np.argmax(scores))


def named(x):
    return F.sum(x) * 2, ["none", "cat", "dog", "fish"][argmax(x.array)]


def summed(x):
    return F.sum(x) * 2, ["none", "cat", "dog", "fish", "cow"][argmax(x.array) % 3 + argmax(x.array) // 3]


def assigned(x):
    order, rows = argsort(x.array), [x * 0, x, x]
    for k in range(3):
        rows[order[k]] = x * (k + 1)
    return F.sum(F.stack(rows)), int(order[0])


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("function", [named, summed, assigned], ids=lambda f: f.__name__)
def test_functions_with_names_of_numpys_are_not_numpys(function):
    compiled = to_static(function)
    for place in (0, 1, 2, 1, 2, 0):
        x = np.zeros(3, "f")
        x[place] = 1
        (expected, name), (found, ours) = (f(chainer.Variable(x)) for f in (function, compiled))
        np.testing.assert_allclose(found.array, expected.array)
        assert ours == name
