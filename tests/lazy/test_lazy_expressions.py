"""Lazy arrays beside NumPy: values, dtypes, errors, and what is computed when."""
import copy
import pickle
import traceback

import numpy as np
import pytest

from dy2static import lazy
from dy2static.lazy.structures import Plan, structures


@pytest.fixture
def a():
    return np.random.RandomState(0).uniform(0.5, 2, (3, 4)).astype("f")


CASES = [
    lambda x: 1 / (1 + np.exp(-(x @ x.T + 0.5))), lambda x: x[1:, 0], lambda x: x[np.array([0, 2])], lambda x: x[x > 1],
    lambda x: np.where(x > 1, x, 0.0), lambda x: x.sum(axis=0), lambda x: x.sum(), lambda x: x.mean(1, keepdims=True),
    lambda x: np.concatenate([x, x[:1]], axis=0), lambda x: np.einsum("ij,kj->ik", x, x), lambda x: np.linalg.norm(x),
    lambda x: x.reshape(2, -1).T, lambda x: np.add.reduce(x, axis=1), lambda x: np.ones(4) + x, lambda x: np.float64(2) * x,
    lambda x: (x > 1) & ~(x > 1.5), lambda x: x.argmax(axis=1) % 2, lambda x: np.sort(x, axis=None)[::-1], lambda x: np.full_like(x, 3),
    lambda x: np.add(x, 1, dtype="d"), lambda x: x.astype(int) // 2, lambda x: np.unique(x)[0], lambda x: np.modf(x)[0], lambda x: x ** 2,
    lambda x: np.zeros_like(x, dtype=bool), lambda x: abs(-x).real, lambda x: np.clip(x, 0.75, 1.5), lambda x: 2 ** x.astype(np.int16),
]


@pytest.mark.parametrize("f", CASES)
def test_values_and_types_are_those_of_numpy(f, a):
    wanted, got = f(a), f(lazy.array(a))
    assert type(got) is lazy.LazyArray
    assert (got.shape, got.dtype, got.ndim) == (wanted.shape, wanted.dtype, wanted.ndim)
    result = got.evaluate()
    assert type(result) is type(wanted) and (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(result, wanted, rtol=1e-6)


LOOKS = [float, int, bool, complex, lambda y: y.item(), lambda y: y.tolist(), np.asarray, lambda y: pickle.loads(pickle.dumps(y)),
         lambda y: format(y, ".3f"), str, repr, lambda y: 1 if y == 6 else 0, lambda y: np.array(y, "f"), copy.deepcopy]


@pytest.mark.parametrize("look", LOOKS)
def test_whoever_looks_finds_the_value(look):
    x = np.arange(4.0)
    y = lazy.array(x).sum()
    assert not y.is_evaluated
    assert look(y) == look(x.sum())


def test_nothing_is_computed_before_and_nothing_twice(monkeypatch):
    x = lazy.array(np.ones((2, 3)))
    part = np.exp(x)
    whole = part + 1
    plan = Plan([whole._node])
    assert plan.results == [part._node, whole._node]
    assert not part.is_evaluated
    whole.evaluate()
    assert part.is_evaluated
    again = part * 2
    assert [node.result is None for node in Plan([again._node]).nodes if node is not None] == [False, True]


def test_temporaries_get_no_result():
    y = abs(-(lazy.array(np.ones(3)) + 1))
    plan = Plan([y._node])
    assert plan.results == [y._node]


def test_a_program_takes_views_of_the_array_that_they_see():
    x = lazy.array(np.arange(12.0).reshape(3, 4))
    y = x.T[1] + (x[:, 1:] - x[:, :-1]).sum() + (x.T @ x).sum()
    plan = Plan([y._node])
    assert [leaf.shape for leaf in plan.leaves if np.ndim(leaf)] == [(3,), (3, 4)]      # x.T[1] is a view of a view
    data = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(y, data.T[1] + 9 + (data.T @ data).sum())
    seen = x.T
    z = seen + 1
    x[0] = 50
    assert z[0, 0] == 1 and seen[0, 0] == 50


def test_several_are_computed_by_one_program():
    x = lazy.array(np.ones(3))
    made = structures.made
    a, b = lazy.evaluate(x * 5 - 1, np.exp(x) - 3)
    assert a.tolist() == [4, 4, 4] and b[0] == np.exp(1) - 3
    assert structures.made == made + 1


def test_a_loop_over_minibatches_is_compiled_once():
    rng, w = np.random.RandomState(0), lazy.array(np.ones(5))
    batches = [rng.rand(8, 5) for _ in range(30)]
    made = structures.made
    sums = [float((lazy.array(batch) @ w * 3 + 0.25).sum()) for batch in batches]
    assert structures.made == made + 1
    np.testing.assert_allclose(sums, [(batch @ np.ones(5) * 3 + 0.25).sum() for batch in batches])
    structure = next(reversed(structures.known.values()))
    assert structure.compiled(None).cache_info().captures == 1


def test_numbers_that_vary_share_a_structure():
    x, made = lazy.array(np.ones(3)), structures.made
    assert [float((x * k + 7)[0]) for k in (1.5, 2.5, 3.5, 4.5)] == [8.5, 9.5, 10.5, 11.5]
    assert structures.made == made + 1


def test_an_endless_loop_does_not_grow():
    y = lazy.array(np.ones(3))
    for _ in range(1000):
        y = y * 0.5 + 1
        assert y._node.depth <= 129
    np.testing.assert_allclose(y, 2)


def test_what_was_built_before_a_look_does_not_count_for_the_bound():
    w, x, made = lazy.array(np.ones(3)), lazy.array(np.full(3, 0.5)), lazy.stats()
    for _ in range(60):
        loss = ((w * x - 1) * (w * x - 1)).sum() * 0.25
        w = w - 0.1 * (w * x - 1) * x * 4
        float(loss)                                     # the step before is computed, the new one waits
    assert lazy.stats()["structures"] == made["structures"] + 2     # the first, and all others
    np.testing.assert_allclose(w, 2 - 0.9 ** 60)


def test_errors_name_the_line_that_built_the_operation():
    x = lazy.array(np.ones((2, 3)))
    z = x + x[:, 0]                                     # this one
    with pytest.raises(ValueError, match="broadcast") as caught:
        print(z + 1)
    entry = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert entry.filename == __file__ and "# this one" in entry.line


def test_an_index_out_of_bounds_is_told_at_once_where_values_are_there():
    with pytest.raises(IndexError):
        lazy.array(np.ones(3))[3]
    y = lazy.array(np.ones(3)) + 1
    with pytest.raises(IndexError):
        y[5].evaluate()


def test_floating_point_warnings_come_with_the_evaluation():
    y = np.log(lazy.array(np.zeros(3)))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        y.evaluate()


# --- whose memory it is -------------------------------------------------------------------------------------------------------

def test_a_foreign_array_is_copied_if_somebody_else_has_it():
    data = np.ones(3)
    y = lazy.array(data) + 1
    data[:] = 5
    assert y.tolist() == [2, 2, 2]


def test_an_operand_is_copied_too():
    data = np.ones(3)
    y, z = lazy.array(np.zeros(3)) + data, np.add(data, lazy.array(np.zeros(3)))
    data[:] = 5
    assert y.tolist() == [1, 1, 1] == z.tolist()


def test_what_the_call_alone_holds_is_taken_as_it_is():
    places = []

    def fresh():
        array = np.ones(3)
        places.append(place_of(array))
        return array
    y = lazy.array(fresh())                             # an assert would keep what is inside of it
    assert place_of(y.evaluate()) == places[0]


def place_of(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("frozen", [True, False])
def test_read_only_memory_is_taken_as_it_is(frozen):
    data = np.ones(6)
    view = data[::2]
    view.flags.writeable = False
    data.flags.writeable = not frozen
    y = lazy.array(view)
    assert np.shares_memory(np.asarray(y), data) == frozen


def test_copy_says_what_to_do():
    data = np.ones(3)
    assert np.shares_memory(np.asarray(lazy.array(data, copy=False)), data)
    assert not np.shares_memory(np.asarray(lazy.array(np.frombuffer(b"12345678"), copy=True)), data)
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        lazy.array([1, 2], copy=False)


def test_what_is_local_to_a_function_may_change_afterwards():
    def scaled():
        data = np.arange(4.0)
        made = lazy.array(data) * 2
        data[:] = -1
        return made
    assert scaled().tolist() == [0, 2, 4, 6]


def test_results_are_read_only():
    y = lazy.array(np.ones(3)) + 1
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(y)[0] = 3
    changed = np.array(y)
    changed[0] = 3
    assert y.tolist() == [2, 2, 2]


def test_masks_are_refused():
    with pytest.raises(TypeError, match="masks"):
        lazy.array(np.ma.ones(3))
