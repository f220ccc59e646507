"""Functions of the user's that C code calls: as keys of sorts, through `map`, `reduce` and `functools.partial`."""
import collections
import functools
import operator

import chainer.functions as F
import numpy as np
import pytest
from against_eager import check, variable

from dy2static import not_to_static

LOG, KEPT = [], [3, 1, 2]


def noted(k, v):
    LOG.append(k)
    return v * 2 if float(v.array.sum()) > 0 else v * k


def rank(v):
    LOG.append(v)
    return -v


def scaled_rank(k, v):
    LOG.append(v)
    return -v * k


TRIPLED = functools.partial(noted, 3)


def mapped(x):
    return list(map(functools.partial(noted, 2), [x, x * 2])), list(map(TRIPLED, [x, x * 2]))


def reduced(x):
    return functools.reduce(functools.partial(lambda k, u, v: u * v + k, 2), [x, x, x])


def by_numpy(x, batch=[[1, 0.5], [2, 0.25]]):
    counts, rates = map(np.stack, zip(*batch))
    return x * rates[0].astype("f"), counts.astype("i"), list(map(np.tanh, [x.array, x.array * 2]))


def ordered_by_builtins(x):
    parts = [x, x[:1], x[:2]]
    sizes = sorted(parts, key=len), max(parts, key=len), min(parts, key=functools.cmp_to_key(lambda a, b: len(b) - len(a)))
    return sizes, sorted([1, 3, 2], key=functools.partial(operator.sub, 3))


def sorted_by(x):
    found = sorted([1, 3, 2], key=functools.partial(scaled_rank, 2)), max([1, 3], key=functools.partial(scaled_rank, 2))
    return found, x


def sorted_in_place(x):
    xs, ys = [3, 1, 2], list((3, 1, 2))
    xs.sort(key=rank)
    ys.sort(key=functools.partial(scaled_rank, 2))
    return xs, ys, x * 2


def sorted_of_the_caller(x):
    KEPT.sort(key=rank, reverse=True)
    KEPT.sort(key=functools.partial(scaled_rank, 2))
    return x * 2


def sorted_by_values(x):
    xs = [x * 2, x]
    xs.sort(key=lambda v: float(v.array.sum()))
    return xs


def kept_partials(x):
    found, table = [], {"clip": functools.partial(F.clip, x_min=-0.5)}
    found.append(functools.partial(noted, 2))
    return found[0](x), found, table, table.setdefault("noted", functools.partial(noted, 5))(x)


def read_by_operators(x):
    pairs = sorted([(2, "b", x), (1, "a", x * 2)], key=operator.itemgetter(0))
    return pairs, list(map(operator.attrgetter("shape"), [x])), operator.itemgetter(0, 1)(x), list(map(operator.itemgetter(2), pairs))


def made_with_a_factory(x):
    counts = collections.defaultdict(lambda: LOG.append(1) or len(LOG) * x)
    counts["a"] += 1
    return counts["a"] * x, counts["b"], counts


class Cached:
    @functools.cached_property
    def scale(self):
        LOG.append("scale")
        return len(LOG) * 2.0


class Chosen:
    """A descriptor that gives something for classes, too."""

    def __get__(self, instance, owner):
        LOG.append((instance is None, owner.__name__))
        return self if instance is None else len(LOG)


class Own:
    chosen = Chosen()


def cached_values(x):
    cached = Cached()
    return x * cached.scale + cached.scale, cached.__dict__


def read_from_classes(x):
    return x * Own().chosen, Own.chosen is Own.__dict__["chosen"], len(LOG)


def annotated(x):
    def scaled(y: rank(1), *, by: rank(2) = rank(3)) -> rank(4):
        return y * by
    return scaled(x), scaled.__annotations__


PROGRAMS = [cached_values, read_from_classes, annotated, read_by_operators, made_with_a_factory, mapped, reduced, by_numpy, ordered_by_builtins, sorted_by, sorted_in_place,
            sorted_of_the_caller, sorted_by_values, kept_partials]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_called_by_c(function):
    def make(compile):
        LOG.clear()
        KEPT[:] = [3, 1, 2]
        return compile(function), [LOG, KEPT]
    check(make, [lambda s=s: (variable(2, 3, seed=s),) for s in range(4)], compiled=True)


def applied(function, value):
    return function(value)


HOST = not_to_static(applied)

#: What a call makes of a number that varies, and gives to code that is not compiled.
HANDED_OVER = {
    "partial": lambda x, n: HOST(functools.partial(operator.sub, n), 3),
    "keyword": lambda x, n: HOST(functools.partial(round, ndigits=n), 3.14159),
    "nested": lambda x, n: HOST(functools.partial(lambda k, v: k * v + n, 2), 3),
    "itemgetter": lambda x, n: HOST(operator.itemgetter(n), (5, 6, 7, 8)),
    "methodcaller": lambda x, n: HOST(operator.methodcaller("__rsub__", n), 3.0),
    "method": lambda x, n: HOST((n + 1).__sub__, 3),
    "vectorize": lambda x, n: np.vectorize(lambda v: v + n)(np.arange(3)),
    "generator": lambda x, n: np.fromiter((k * n for k in range(3)), "i4"),
    "iterator": lambda x, n: np.fromiter(map(abs, [-1, n]), "i4"),
}


@pytest.mark.parametrize("name", HANDED_OVER)
@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
def test_made_of_a_number_for_the_host(name):
    handed_over = HANDED_OVER[name]

    def both(x, n):
        return F.tanh(x), handed_over(x, n)
    check(lambda compile: (compile(both), []), [lambda n=n: (variable(2, 3), n) for n in range(4)])
