"""Lazy arrays that are computed without a program: small ones, and large ones until a program pays."""
import traceback
import tracemalloc
import warnings

import numpy as np
import pytest
from ownership_machine import run
from test_lazy_expressions import CASES

from dy2static import FallbackWarning, lazy
from dy2static.lazy import structures


@pytest.fixture(autouse=True)
def always_by_programs():
    """Not here."""


@pytest.mark.parametrize("f", CASES)
def test_values_and_types_are_those_of_numpy_bit_by_bit(f):
    a = np.random.RandomState(0).uniform(0.5, 2, (3, 4)).astype("f")
    made, wanted, got = structures.structures.made, f(a), f(lazy.array(a))
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    result = got.evaluate()
    assert type(result) is type(wanted) and np.array_equal(result, wanted)
    assert structures.structures.made == made


def test_random_sessions_see_what_numpy_shows():
    run(examples=25, steps=30)


def test_what_is_large_gets_a_program_once_it_pays():
    def captures(times):
        before = lazy.stats()["captures"]
        for _ in range(times):
            np.testing.assert_array_equal(np.sqrt(x * 3 - 1), 5.0)
        return lazy.stats()["captures"] - before
    x = lazy.array(np.full(400_000, 26 / 3))
    assert (captures(2), captures(20)) == (0, 1)        # seven entries of the key: 2.8 million elements each time


def test_who_asks_for_a_program_gets_one():
    x, before = lazy.array(np.arange(3.0)), lazy.stats()["captures"]
    with lazy.backend("c"):
        (x * 7 - 2).evaluate()
    with lazy.strict():
        (x * 7 - 3).evaluate()
    assert lazy.stats()["captures"] == before + 2


def test_programs_of_structures_that_are_gone_count(monkeypatch):
    with lazy.strict():
        (lazy.array(np.arange(5.0)) + 2).evaluate()
    monkeypatch.setattr(structures.structures, "limit", len(structures.structures.known))
    before = lazy.stats()
    with lazy.strict():
        for count in range(3):
            sum([lazy.array(np.arange(5.0))] * (12 + count)).evaluate()
    after = lazy.stats()
    assert after["kept"] == before["kept"] and after["captures"] == before["captures"] + 3


def test_warnings_name_the_line_that_built_the_operation():
    def halved(x):
        return 1 / x
    y, z = halved(lazy.array(np.zeros(2))), np.log(-lazy.array(np.ones(2)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y.evaluate(), z.evaluate()
    first = halved.__code__.co_firstlineno + 1
    assert [(each.filename, each.lineno, str(each.message)) for each in caught] == [
        (__file__, first, "divide by zero encountered in divide"), (__file__, first + 1, "invalid value encountered in log")]


def test_errors_name_the_line_that_built_the_operation():
    x = lazy.array(np.ones((2, 3)))
    z = x + x[:, 0]                                     # this one
    for look in (lambda: (z + 1).shape, lambda: print(z + 1)):
        with pytest.raises(ValueError, match="broadcast") as caught:
            look()
        entry = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert entry.filename == __file__ and "# this one" in entry.line


def test_who_asks_for_a_shape_may_still_take_gradients():
    x = lazy.array(np.arange(3.0))
    y = (x * x).sum()
    assert y.shape == () and (x * x).dtype == float and not y.is_evaluated
    assert lazy.grad(y, [x])[0].tolist() == [0, 2, 4]


def test_what_nobody_needs_goes_at_once():
    x = lazy.array(np.ones(100_000))
    y = x
    for _ in range(20):
        y = y * 2 - 1
    tracemalloc.start()
    y.evaluate()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 800_000


def test_elements_are_written_in_place_whatever_is_written():
    y = lazy.array(np.zeros((1000, 10)))
    place = y._node.result.__array_interface__["data"][0]
    for number in range(5):
        y[number, 3] += 0.5 * (y[number].max() + 1) + number
    assert y._node.result.__array_interface__["data"][0] == place and y[:5, 3].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]


def test_complex_numbers_need_no_warning_while_they_are_small():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        assert abs(lazy.array(np.array([3 + 4j])) * 1).tolist() == [5]


def test_small_writes_through_views_copy_nothing():
    y = lazy.array(np.zeros(100_000))
    memory = y._node.result.__array_interface__["data"][0]
    y[12:14] += 2
    part = y[10:20]
    part += 1
    part[5:] = part[:5] * 3
    assert y._node.result.__array_interface__["data"][0] == memory
    assert y[8:22].tolist() == [0, 0, 1, 1, 3, 3, 1, 3, 3, 9, 9, 3, 0, 0]
    seen, later = np.asarray(y), part + 0
    part -= 1
    assert (seen[10], float(later[0]), float(y[10])) == (1, 1, 0)


def test_warnings_of_writes_through_views_name_the_line():
    part = lazy.array(np.ones(6))[2:]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        part /= 0
    assert [(each.filename, str(each.message)) for each in caught] == [(__file__, "divide by zero encountered in divide")]


def test_warnings_of_conversions_name_the_line():
    y, z = lazy.array(np.ones(3)), lazy.array(np.array([1j, np.nan, 2]))
    whole, plain = lazy.array(np.zeros(3, int)), np.zeros(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y[:] = z
        y[1:][0] = z[0]
        whole[:] = lazy.array(np.full(3, np.nan))
        plain[...] = z
        float(z[2] + 1j)
    line = test_warnings_of_conversions_name_the_line.__code__.co_firstlineno + 5
    assert [(each.filename, each.lineno - line) for each in caught] == [(__file__, number) for number in range(5)]


def test_an_error_in_a_view_of_what_was_written_names_the_line_of_the_view():
    y = lazy.array(np.eye(4)) * 2
    view = np.broadcast_to(y, (3, 4))                   # this one
    y += 1
    with pytest.raises(ValueError, match="broadcast") as caught:
        view.sum().evaluate()
    entry = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert entry.filename == __file__ and "# this one" in entry.line


def test_a_change_at_a_place_that_is_a_lazy_number_copies_nothing():
    y = lazy.array(np.zeros((1000, 3)))
    place, number = y._node.result.__array_interface__["data"][0], lazy.array(np.array([2, 7, 4])).argmax() * 3
    row = y[number]
    row += 1
    del row
    y[number] += 1
    assert y._node.result.__array_interface__["data"][0] == place and y[2:5].sum(axis=1).tolist() == [0, 6, 0]


def test_whether_a_conversion_is_a_view_is_found_out_without_a_warning():
    x = lazy.array(np.full(3, np.nan))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = x.astype(int, copy=False)
        y += 1
        y.evaluate()
    assert [(each.filename, str(each.message)) for each in caught] == [(__file__, "invalid value encountered in cast")]


def test_what_is_computed_of_small_arrays_counts_for_a_program():
    x, before = lazy.array(np.linspace(0, 1, 3000)), lazy.stats()["captures"]
    for _ in range(5):
        np.exp(-(x[:, None] - x[None]) ** 2).sum(axis=1).evaluate()     # arrays of nine million elements
    assert lazy.stats()["captures"] == before + 1
