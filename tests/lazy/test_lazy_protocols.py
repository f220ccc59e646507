"""Lazy arrays in other threads, as buffers, and by DLPack."""
import array
import math
import sys
import threading

import numpy as np
import pytest

from dy2static import lazy


def test_one_condition_gives_places():
    x, y = np.array([[0, 1], [2, 0]]), lazy.array(np.array([[0, 1], [2, 0]]))
    assert [each.tolist() for each in np.where(y)] == [each.tolist() for each in np.where(x)] and y[np.where(y > 0)].tolist() == [1, 2]


@pytest.mark.parametrize("other", ["a", None, {}, b"a"])
def test_objects_beside_arrays_do_what_numpy_does(other):
    x = np.array(["a", "b"]) if isinstance(other, str) else np.arange(2.0)
    y = lazy.array(x)
    assert (y == other).tolist() == (x == other).tolist() and (other != y).tolist() == (other != x).tolist()
    for operation in (lambda a: a + other, lambda a: other - a, lambda a: a < other):
        wanted, got = outcome(operation, x), outcome(operation, y)
        assert wanted == got


def outcome(operation, x):
    try:
        return operation(x).tolist()
    except (AttributeError, IndexError, TypeError) as error:
        return str(error)


@pytest.mark.filterwarnings("ignore")                   # computed at once
@pytest.mark.parametrize("operation", [
    lambda x: np.add(x, range(3)), lambda x: np.multiply(array.array("i", [1, 2, 3]), x), lambda x: np.maximum(x, np.arange(3)[::-1].flat),
    lambda x: np.add(x, memoryview(np.arange(3))), lambda x: np.matmul(x, range(3)), lambda x: np.equal(x, None), lambda x: np.add(x, {1}),
    lambda x: np.hypot(x, x.flat), lambda x: x.flat == 1, lambda x: x[x.flat > 0]], ids=[f"operation {place}" for place in range(10)])
def test_functions_take_what_numpy_converts(operation):
    assert outcome(operation, np.arange(3.0)) == outcome(operation, lazy.array(np.arange(3.0)))


@pytest.mark.parametrize("operation", [
    lambda x: x[1].put([0, 1], 5.0), lambda x: x.sum().flat.__setitem__(3, 5), lambda x: setattr(x.sum(), "flat", 5),
    lambda x: setattr(x[1], "real", 5), lambda x: np.broadcast_to(x, (2, 3)).byteswap().byteswap()],
    ids=["put", "flat place", "flat", "real", "byteswap"])
def test_what_cannot_be_changed_says_what_numpy_says(operation):
    assert outcome(operation, np.arange(3.0)) == outcome(operation, lazy.array(np.arange(3.0)))


def test_the_elements_of_a_scalar_are_no_way_to_change_it():
    y = lazy.array(np.arange(3.0)).sum()
    y.flat[0] = 5
    assert isinstance(y.evaluate(), np.float64) and y == 3


def test_scalars_are_keys_and_can_be_rounded_and_arrays_cannot():
    y = lazy.array(np.array([1.0, 2.5])) * 1
    assert {1.0: "a", 2.5: "b"}[y[1]] == "b" and set(y) == {1.0, 2.5} and (round(y[1]), round(y[1], 1)) == (2, 2.5)
    with pytest.raises(TypeError, match="unhashable"):
        hash(y)
    with pytest.raises(TypeError, match="interpreted as an integer"):
        range(y[0])


def test_threads_build_and_compute_shared_arrays():
    data = np.linspace(0, 1, 60).reshape(6, 10)
    shared = np.sin(lazy.array(data)) * 2
    total = shared.sum(axis=1) + 1
    found, errors, gate = {}, [], threading.Barrier(3)
    written = lazy.array(np.zeros(3)) + 0

    def work(number):
        try:
            gate.wait(20)
            steps = []
            for step in range(15):
                own = lazy.array(np.full(6, float(number)))
                own += total * step
                own[step % 6] = number
                written[number] += step
                steps.append((own @ shared).tolist())
            found[number] = steps
        except BaseException as error:
            errors.append(error)

    def expected(number):
        shared = np.sin(data) * 2
        total = shared.sum(axis=1) + 1
        for step in range(15):
            own = number + total * step
            own[step % 6] = number
            yield own @ shared
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert not errors and not any(thread.is_alive() for thread in threads)
    for number in range(3):
        np.testing.assert_allclose(found[number], list(expected(number)), rtol=1e-12)
    assert written.tolist() == [sum(range(15))] * 3


@pytest.mark.parametrize("change, expected", [
    (lambda y, part, k: y.__iadd__(1), [90, 90, 90, 90]),
    (lambda y, part, k: (part if k else y).__iadd__(1), [30, 90, 90, 90]),
    (lambda y, part, k: (float(y.sum()), part.__setitem__(k, part[k] + 1)), [0, 30, 30, 30]),
    (lambda y, part, k: np.add(y, 1, out=y), [90, 90, 90, 90]),
    (lambda y, part, k: np.add.at(y, [k, k], 1), [60, 60, 60, 0]),
], ids=["in_place", "view", "store", "out", "at"])
def test_no_write_of_another_thread_is_lost(change, expected):
    y, gate, errors = lazy.array(np.zeros(4)) + 0, threading.Barrier(3), []
    part = y[1:]

    def work(number):
        try:
            gate.wait(20)
            for _ in range(30):
                change(y, part, number)
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert not errors and not any(thread.is_alive() for thread in threads)
    assert (y.tolist(), part.tolist()) == (expected, expected[1:])


@pytest.mark.parametrize("make", [lambda x: x + 1, lambda x: (x * 2)[::2, 1:], lambda x: x.sum()])
def test_dlpack_gives_a_copy(make):
    x = np.arange(12, dtype="f").reshape(3, 4)
    y = make(lazy.array(x))
    taken = np.from_dlpack(y)
    np.testing.assert_array_equal(taken, make(x))
    if taken.flags.writeable:
        taken[...] = -1
    np.testing.assert_array_equal(y, make(x))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python classes have buffers from 3.12 on")
def test_buffers_are_read_only_and_stay():
    y = lazy.array(np.arange(6.0).reshape(2, 3)) + 1
    view = memoryview(y)
    assert view.readonly and view.tolist() == [[1, 2, 3], [4, 5, 6]]
    y[0, 0] = 9
    assert view[0, 0] == 1 and bytes(y) == y.tobytes()
    del y
    assert view[1, 2] == 6


def test_whole_numbers_repeat_lists_as_those_of_numpy_do():
    n, x = lazy.array(np.array([2, 3]))[0], lazy.array(np.array([2, 3]))
    assert ([0] * n, n * [1, 2], (1,) * n, "ab" * n, math.trunc(n)) == ([0, 0], [1, 2, 1, 2], (1, 1), "abab", 2)
    assert ([1, 2] * x).tolist() == [2, 6] and (lazy.array(np.array(3)) * [1, 2]).tolist() == [3, 6]


def test_a_lazy_bool_is_a_mask_of_plain_arrays_and_no_number():
    plain, one = np.arange(4), lazy.array(np.ones(()))
    assert plain[one > 0].shape == (1, 4) and plain[one < 0].shape == (0, 4)
    plain[one > 0] = 7
    assert plain.tolist() == [7, 7, 7, 7]
    with pytest.raises(TypeError, match=r"write int\(y\)"):
        ("no", "yes")[one > 0]
    assert ("no", "yes")[int(one > 0)] == "yes" and ("no", "yes")[one.astype(int)] == "yes"


@pytest.mark.filterwarnings("ignore")                   # computed at once
@pytest.mark.parametrize("other", [lambda x: x.flat, lambda x: range(3), lambda x: array.array("i", [1, 2, 3]), lambda x: memoryview(np.arange(3))],
                         ids=["flat", "range", "array", "memoryview"])
def test_in_place_operators_write_also_where_numpy_converts(other):
    """Other names and views see it."""
    def changed(x):
        first, view = x, x[1:]
        x += other(x)
        view *= 2
        x[:2] -= range(2)
        return first
    assert changed(lazy.array(np.arange(3.0))).tolist() == changed(np.arange(3.0)).tolist()


@pytest.mark.parametrize("write", [lambda x: x[2:][1:].__setitem__(0, 3), lambda x: x[2:][1:].__setitem__([0], 3)], ids=["place", "places"])
def test_a_write_to_a_view_of_nothing_raises_at_once(write):
    assert outcome(write, np.arange(1)) == outcome(write, lazy.array(np.arange(1)))
