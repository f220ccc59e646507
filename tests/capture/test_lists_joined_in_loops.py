"""Lists that grow in loops on array values and become arrays in each iteration: caches of keys and values."""
import itertools

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static


def attended(h, keys, values):
    return F.matmul(F.softmax(F.matmul(h, keys, transb=True)), values)


def keys_and_values(x, y, n):
    keys, values, h, i = [], [], x, 0
    while i < n.array:
        keys.append(h * 2)
        values.append(F.tanh(h) + y)
        h = h + attended(h, F.concat(keys, axis=0), F.concat(values, axis=0))
        i += 1
    return h, F.concat(keys, axis=0) + F.concat(values, axis=0)


def until_a_break(x, y, n):
    keys, values, h = [], [], x
    for i in range(20):
        keys.append(h * 2)
        values.append(F.tanh(h))
        h = attended(h, F.concat(keys, axis=0), F.concat(values, axis=0)) + y
        if i + 1 >= n.array:
            break
    return h


class Cache:
    def __init__(self):
        self.keys, self.values = [], []

    def add(self, key, value):
        self.keys.append(key)
        self.values.append(value)
        return F.concat(self.keys, axis=0), F.concat(self.values, axis=0)


def caches_of_layers(x, y, n):
    caches, h, i = [Cache() for _ in range(2)], x, 0
    while i < n.array:
        for cache in caches:
            h = attended(h, *cache.add(h * 2, F.tanh(h))) + y
        i += 1
    return h


def other_lengths(x, y, n):
    a, b, h, i = [x], [], x, 0
    while i < n.array:
        a.append(h)
        b.append(h * 2)
        b.append(h * 3)
        h = h * 0.1 + F.sum(F.stack(a), axis=0) + F.sum(F.vstack(b), axis=0, keepdims=True) / len(b)
        i += 1
    return h, len(a)


def some_iterations_append(x, y, n):
    a, h, i, total = [], x, 0, 0
    while i < n.array:
        if F.sum(h).array > 0:
            a.append(h)
            a.append(y)
            h = a.pop() * F.sum(F.concat(a, axis=0), axis=0, keepdims=True)
        h = y * 2 - h
        total = total + len(a)
        i += 1
    return h, total


def loops_in_loops(x, y, n):
    a, h, i = [], x, 0
    while i < n.array:
        j = 0
        while j < n.array:
            a.append(h * 2)
            k = F.concat(a, axis=0)
            h = F.tanh(F.sum(k * np.arange(k.shape[0], dtype="f")[:, None], axis=0, keepdims=True))
            j += 1
        h = h + F.max(F.concat(a, axis=0), axis=0, keepdims=True)
        i += 1
    return h


def arrays(x, y, n):
    a, b, h, i = [], [], x.array, 0
    while i < n.array:
        a.append(h * 2)
        b.append(h)
        h = np.tanh((np.concatenate(a) * np.vstack(b)).sum(axis=0, keepdims=True) + np.stack(a).mean(axis=0) + y.array)
        i += 1
    return h


def nothing_to_join(x, y, n):
    a, h, i = [], x, 0
    while i < n.array:
        if F.sum(h).array > 1e9:
            a.append(h)
        h = h + F.sum(F.concat(a, axis=0), axis=0, keepdims=True)
        i += 1
    return h


COMPILED = [keys_and_values, until_a_break, caches_of_layers, other_lengths, some_iterations_append, loops_in_loops, arrays,
            nothing_to_join]


def lengths_part(x, y, n):
    a, b, h, i = [x], [y], x, 0
    while i < n.array:
        a.append(h)
        if i < 2 or F.sum(h).array > 1e9:
            b.append(h)
        h = F.sum(F.concat(a, axis=0) * F.concat(b, axis=0), axis=0, keepdims=True)
        i += 1
    return h


def the_array_leaves_the_loop(x, y, n):
    a, h, i, k = [], x, 0, x
    while i < n.array:
        a.append(h * 2)
        k = F.concat(a, axis=0)
        h = F.tanh(F.sum(k, axis=0, keepdims=True))
        i += 1
    return h, k


def outcome(function, count):
    rng = np.random.RandomState(1)
    x, y = [chainer.Variable(rng.randn(1, 3).astype("f")) for _ in range(2)]
    with chainer.no_backprop_mode():
        try:
            found = function(x, y, chainer.Variable(np.array(count, "f")))
        except Exception as error:
            return type(error), str(error)
    return [getattr(part, "array", part) for part in (found if isinstance(found, tuple) else (found,))]


def check_outcomes(function, compiled):
    for count in (3, 5, 1, 0):
        wanted, found = outcome(function, count), outcome(compiled, count)
        assert type(wanted) is type(found)
        if isinstance(wanted, tuple):
            assert wanted == found
            continue
        for a, b in zip(wanted, found):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
            assert np.shape(a) == np.shape(b)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function", COMPILED, ids=lambda f: f.__name__)
def test_one_program_for_lists_that_become_arrays_in_a_loop(function, backend):
    compiled = to_static(function, backend=backend)
    check_outcomes(function, compiled)
    stats = compiled.stats()
    assert (stats["captures"], stats["fallbacks"], stats["cuts"]) == (1, 0, 0)


@pytest.mark.parametrize("function", [keys_and_values, caches_of_layers], ids=lambda f: f.__name__)
def test_native_code_has_the_whole_loop(function):
    compiled = to_static(function, backend="c")
    check_outcomes(function, compiled)
    (program,) = compiled.dispatcher.programs
    assert "dy_list_append(" in program.native_code and program.native_code.count("PyObject *call_") == 1


@pytest.mark.parametrize("function", [lengths_part, the_array_leaves_the_loop], ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
def test_sizes_that_do_not_stay_in_the_loop_are_not_compiled_as_a_whole(function):
    compiled = to_static(function, backend="numpy")
    check_outcomes(function, compiled)
    assert compiled.stats()["cuts"]


def a_branch_joins(x, y, n):
    a, h, i = [x], x * y, 0
    while i < n.array:
        a.append(h)
        if F.sum(h).array > 0:
            k = F.concat(a, axis=0)
            h = F.tanh(F.sum(k * F.softmax(k, axis=0), axis=0, keepdims=True)) - 0.3
        else:
            h = F.sum(F.tanh(F.stack(a) * y), axis=0) + 0.2 * i
        i += 1
    return h


def a_part_of_the_iterations(x, y, n):
    a, h, i = [], x, 0
    while i < n.array:
        a.append(h * 2)
        if i % 2:
            h = F.mean(F.concat(a, axis=0), axis=0, keepdims=True) * y
        i += 1
    return F.sum(F.concat(a, axis=0), axis=0) + h if len(a) > 0 else h


def spread_to_the_length(x, y, n):
    a, h, i = [], F.tanh(x), 0
    while i < n.array:
        a.append(y)
        k = F.concat(a, axis=0)
        h = F.sum(F.broadcast_to(h, k.shape), axis=0, keepdims=True) / k.shape[0] ** 2
        i += 1
    return h


def a_size_beside_the_gradient(x, y, n):
    a, h, i = [], x, 0
    while i < n.array:
        a.append(x.array)
        h = F.sin(h) * np.concatenate(a).sum(axis=0, keepdims=True) / np.concatenate(a).shape[0]
        i += 1
    return h * y


def iterations_written_out(x, y, n):
    a, h = [], x
    for i in range(5):
        if i >= n.array:
            break
        h = F.tanh(h) + y
        a.append(h)
    return F.sum(F.concat(a, axis=0) ** 2, axis=0, keepdims=True)


WITH_GRADIENTS = [*COMPILED, a_branch_joins, a_part_of_the_iterations, spread_to_the_length, a_size_beside_the_gradient,
                  iterations_written_out]


def gradients(function, count):
    """The result, its gradients, and those of the sum of their squares; for each whether there is one."""
    rng = np.random.RandomState(1)
    x, y = [chainer.Variable(rng.randn(1, 3).astype("f")) for _ in range(2)]
    try:
        found = function(x, y, chainer.Variable(np.array(count, "f")))
    except Exception as error:
        return [type(error), str(error)]
    found = [part for part in (found if isinstance(found, tuple) else (found,)) if isinstance(part, chainer.Variable)]
    if not any(part.requires_grad and part.creator is not None for part in found):
        return [part.array for part in found]
    total = F.sum(F.sin(sum([F.sum(part) for part in found])))
    first = chainer.grad([total], [x, y], enable_double_backprop=True)
    reached = [g for g in first if g is not None and g.requires_grad]
    second = chainer.grad([sum([F.sum(g * g) for g in reached])], [x, y]) if reached else []
    return [None if v is None else v.array for v in (*found, *first, *second)]


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function", WITH_GRADIENTS, ids=lambda f: f.__name__)
def test_gradients_of_any_order_lead_through_arrays_of_growing_lists(function, backend):
    compiled = to_static(function, backend=backend)
    for count in (3, 5, 1, 0):
        for wanted, found in itertools.zip_longest(gradients(function, count), gradients(compiled, count)):
            assert type(wanted) is type(found)
            if not isinstance(wanted, np.ndarray):
                assert wanted == found
            else:
                np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)
    stats = compiled.stats()
    assert (stats["captures"], stats["fallbacks"], stats["cuts"]) == (1, 0, 0)


@pytest.mark.parametrize("inside", [False, True], ids=["with gradients", "gradients of what follows"])
def test_gradients_are_those_of_eager(inside):
    def function(x, y, n):
        keys, h, i = [], x, 0
        while i < n.array:
            with chainer.using_config("enable_backprop", not inside):
                keys.append(h * 2)
                k = F.concat(keys, axis=0)
            h = F.tanh(attended(h, k, k) * y)
            i += 1
        return h

    def of_both(function):
        rng = np.random.RandomState(1)
        x, y = [chainer.Variable(rng.randn(1, 3).astype("f")) for _ in range(2)]
        return [g.array for g in chainer.grad([F.sum(function(x, y, chainer.Variable(np.array(3, "f"))))], [x, y])]

    for wanted, found in zip(of_both(function), of_both(to_static(function, backend="numpy"))):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
