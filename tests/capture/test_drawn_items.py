"""Items of lists that are drawn: functions, Links, strings and Variables, by `random.choice` or at a drawn place."""
import random
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler

BACKENDS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="no C compiler"))]
FUNCTIONS, OWN = [F.relu, F.tanh, F.sigmoid], random.Random(5)


def functions(x, links):
    return random.choice(FUNCTIONS)(x)


def strings(x, links):
    mode = random.choice(("up", "down", "none"))
    if mode == "up":
        x = x * 2
    elif mode == "down":
        x = -x
    return F.tanh(x)


def of_links(x, links):
    return random.choice([links[0], links[1]])(x)


def at_a_place(x, links):
    return links[random.randrange(2)](x) + FUNCTIONS[np.random.randint(3)](x)


def variables(x, links):
    return random.choice([x, x * 2, F.tanh(x)]) * random.choice([2, 3])


def parts_of_tuples(x, links):
    name, factor = random.choice([("half", 0.5), ("twice", 2.0)])
    return x * factor if name == "twice" else F.relu(x * factor)


def of_another_generator(x, links):
    return OWN.choice([F.relu, F.tanh])(x)


ALL = [functions, strings, of_links, at_a_place, variables, parts_of_tuples, of_another_generator]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", ALL, ids=lambda function: function.__name__)
def test_items(function, backend):
    """Values, gradients and the next draws are the same as in eager mode; one program serves all items."""
    x, links = chainer.Variable(np.random.RandomState(0).randn(3, 4).astype("f")), chainer.ChainList(L.Linear(4, 4), L.Linear(4, 4))
    compiled = to_static(function, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(8):
            found = []
            for call in (function, compiled):
                np.random.seed(seed)
                random.seed(seed)
                OWN.seed(seed)
                x.cleargrad()
                links.cleargrads()
                y = call(x, links)
                F.sum(y * y).backward()
                found.append([y.array, x.grad, random.random(), np.random.rand(), OWN.random(), *[p.grad for p in links.params()]])
            for a, b in zip(*found):
                assert (a is None) == (b is None)
                if a is not None:
                    np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-6)
    assert compiled.stats()["captures"] == 1


def test_an_empty_list_raises():
    compiled = to_static(lambda x: x * random.choice([]))
    with pytest.raises(IndexError):
        compiled(np.ones(2, "f"))


#: Draws up to a number that grows from call to call, and how many programs five numbers take.
UP_TO = {
    "np.random.randint": (lambda x, n: x * TABLE[np.random.randint(0, n, 3)], 2),
    "np.random.randint, one": (lambda x, n: x * TABLE[np.random.randint(n)], 2),
    "random.randint": (lambda x, n: x * TABLE[random.randint(0, n - 1)], 2),
    "random.randrange": (lambda x, n: x * TABLE[random.randrange(n)], 2),
    "np.random.uniform": (lambda x, n: x * np.random.uniform(0, n, (3, 1)).astype("f"), 2),
    "a close bound": (lambda x, n: x * TABLE[np.random.randint(n - 1, n, 3)], 2),
    "a size": (lambda x, n: x * np.random.normal(0, 1, n).astype("f").sum(), 3),
    "a sample's size": (lambda x, n: x * sum(random.sample(range(99), n)), 5),
}
TABLE = np.random.RandomState(1).randn(100, 4).astype("f")


@pytest.mark.parametrize("name", UP_TO)
def test_a_number_that_grows(name):
    """A memory of transitions grows: one program draws from it, whatever its size."""
    function, programs = UP_TO[name]
    x, compiled = np.ones((3, 4), "f"), to_static(function, backend="numpy")
    for n in (30, 31, 40, 50, 20):
        found = []
        for call in (function, compiled):
            np.random.seed(n)
            random.seed(n)
            found.append((call(x, n), random.random(), np.random.rand()))
        np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-5)
        assert found[0][1:] == found[1][1:]
    assert compiled.stats()["captures"] == programs


def test_a_number_that_grows_wrong():
    """What a draw raises for a number, it raises in the program for all numbers, too."""
    compiled = to_static(lambda x, n: x * TABLE[np.random.randint(0, n)])
    for n in (5, 6, 7):
        compiled(np.ones(4, "f"), n)
    with pytest.raises(ValueError):
        compiled(np.ones(4, "f"), 0)
