"""Truths of NumPy's that a decision on array values chooses."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static


def computed_or_known(x):
    if F.sum(x).array > 0:
        flag = np.isnan(x.array[0])
    else:
        flag = np.bool_(True)
    return flag, np.where(flag, x.array, 2)


def both_known(x):
    if F.sum(x).array > 0:
        flag = np.bool_(False)
    else:
        flag = np.bool_(True)
    return flag, np.where(flag, x.array, 2)


def carried_by_a_loop(x):
    flag, i = np.bool_(True), 0
    while i < 3 and F.sum(x).array < 10:
        if F.sum(x).array > 0:
            flag = x.array[0] > 1
        x = x + 1
        i += 1
    return flag, x.array


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function", [computed_or_known, both_known, carried_by_a_loop], ids=lambda f: f.__name__)
def test_truths_of_numpy_meet(function, backend):
    compiled = to_static(function, backend=backend)
    for value in (-1.0, 1.0, 5.0):
        wanted, found = (f(chainer.Variable(np.full(3, value, "f"))) for f in (function, compiled))
        assert type(found[0]) is type(wanted[0]) is np.bool_ and found[0] == wanted[0]
        np.testing.assert_array_equal(found[1], wanted[1])
    assert not compiled.stats()["fallbacks"]


def test_all_and_any_of_what_a_generator_expression_gives_are_truths():
    def f(x):
        place, total = int(x.array.argmax()), float(F.sum(x).array)
        return (F.tanh(x), all(q for q in (total, place)), any(q for q in (0, place)), all(place for _ in x.shape),
                not all(q for q in (2, place)), any(q for q in (x.array[0], 0.0)))
    compiled = to_static(f)
    for array in ([1, 2, 3], [3, 2, 1], [0, 0, 0]):
        wanted, found = (g(chainer.Variable(np.array(array, "f")))[1:] for g in (f, compiled))
        assert [(type(truth), truth) for truth in found] == [(bool, truth) for truth in wanted]
    assert compiled.cache_info().captures == 1
