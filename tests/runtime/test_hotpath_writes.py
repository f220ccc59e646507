"""What entries ask and do for many objects at once, in Python and in C: memory that is shared, gradients, copies, items."""
import collections
import math
import sys

import chainer
import numpy as np
import pytest
from chainer import Parameter, Variable

from dy2static import to_static
from dy2static.native import compiler, library
from dy2static.program import hotpath
from dy2static.runtime import array_writes, node, stores

pytestmark = pytest.mark.skipif(not compiler.available() or bool(library._problem()),
                                reason="there is no C compiler on this machine, or another Python")


@pytest.fixture(params=["python", "native"], autouse=True)
def functions(request, monkeypatch):
    hotpath.stop()
    monkeypatch.setattr(hotpath, "prepare", lambda: None)       # not because of a native program
    if request.param == "native":
        hotpath.start()
    assert (type(array_writes.overlap) is type(compiler.available)) == (request.param == "python")
    yield
    hotpath.stop()


def some_view(rng, block):
    """A part of an array with any steps, sometimes empty or of another dtype."""
    view = block.view(rng.choice([np.int8, np.float32, np.complex64]))
    slices = [slice(*sorted(rng.integers(0, n + 1, 2)), rng.integers(1, 4)) for n in view.shape]
    view = view[tuple(slices)][:: int(rng.choice([1, -1]))]
    return view.T if rng.integers(2) else view


def test_overlap_is_what_numpy_says():
    rng = np.random.default_rng(0)
    seen = collections.Counter()
    for _ in range(300):
        blocks = [np.zeros((6, 8), np.complex64) for _ in range(3)]
        written, others = [tuple(some_view(rng, blocks[rng.integers(3)]) for _ in range(rng.integers(0, 4))) for _ in range(2)]
        expected = any(np.may_share_memory(array, other) for i, array in enumerate(written) for other in others + written[:i])
        assert array_writes.overlap(written, others) is expected
        seen[expected] += 1
    assert min(seen.values()) > 50


def test_overlap_with_arrays_of_other_kinds():
    texts, frozen, one = np.array(["ab", "cd"]), np.zeros(3), np.zeros(3)
    frozen.flags.writeable = False
    assert array_writes.overlap((texts,), (texts[1:],)) and not array_writes.overlap((texts,), (one,))
    assert array_writes.overlap((frozen,), ()) and not array_writes.overlap((one,), (frozen,))
    assert array_writes.overlap((np.broadcast_to(one[:1], (3,)).view(),), ())
    assert array_writes.overlap((np.lib.stride_tricks.as_strided(one, (2, 2), (8, 8)),), ())
    assert not array_writes.overlap((np.zeros((4, 4))[::2, ::2],), (one,))
    assert array_writes.overlap((one, one), ()) and not array_writes.overlap((), (one, one))


def test_many_variables_at_once():
    arrays = [np.zeros(3, np.float32), np.zeros((), np.int32)]
    made = node.make_variables((True, False), *arrays)
    assert [x.array for x in made] == arrays or all(x.array is a for x, a in zip(made, arrays))
    assert [(type(x), x.requires_grad, x.node.requires_grad) for x in made] == [(Variable, True, True), (Variable, False, False)]
    assert [type(x) for x in node.make_variables((True, True), arrays[0], np.float32(2))] == [Variable, Variable]


class Own(Variable):
    calls = 0

    def _set_grad_var_without_check(self, gradient):
        Own.calls += 1
        super()._set_grad_var_without_check(gradient)


@pytest.mark.parametrize("kind", [Variable, Parameter, Own])
@pytest.mark.parametrize("marks", [(True, True), (True, False), (False, True)])
def test_gradients_are_stored(kind, marks):
    first, second = kind(np.zeros(3, np.float32)), kind(np.zeros(3, np.float32))
    gradient = Variable(np.ones(3, np.float32))
    for x in (first, second):
        x._grad_valid, x._loss_scale = None, 2.0
    counts = sys.getrefcount(gradient), Own.calls
    node.store_gradients((marks, marks), first, gradient, second, None)
    assert first.grad_var is gradient and first._grad is gradient.array and second.grad_var is second._grad is None
    assert [x._grad_valid for x in (first, second)] == [True if marks[0] else None] * 2
    assert [x._loss_scale for x in (first, second)] == [None if marks[1] else 2.0] * 2
    assert sys.getrefcount(gradient) == counts[0] + 1 and Own.calls == counts[1] + 2 * (kind is Own)


WRITTEN = {
    "like it": (np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32)),
    "another dtype": (np.zeros((2, 3), np.float32), np.arange(6).reshape(2, 3)),
    "another shape": (np.zeros((2, 3), np.float32), np.arange(3, dtype=np.float32)),
    "a number": (np.zeros((2, 3), np.float32), 2.5),
    "with steps": (np.zeros((4, 3), np.float32)[::2], np.ones((2, 3), np.float32)),
    "objects": (np.array([None, None]), np.array([[1], "a"], object)),
    "another byte order": (np.zeros(3, ">f4"), np.arange(3, dtype=np.float32)),
    "empty": (np.zeros((0, 3)), np.zeros((0, 3))),
    "a part of itself": (np.arange(6.0), None),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_arrays_are_written(name):
    array, value = WRITTEN[name]
    array = array.copy() if name != "with steps" else array
    if value is None:
        array, value = array[:-1], array[1:]
    expected = array.copy()
    expected[...] = value.copy() if isinstance(value, np.ndarray) else value
    other = np.zeros(2, np.float32)
    stores.write_arrays(array, value, other, np.ones(2, np.float32))
    np.testing.assert_array_equal(array, expected)
    assert other.tolist() == [1, 1]


def test_writes_stop_where_one_fails():
    first, second, third = np.zeros(2), np.zeros(2), np.zeros(2)
    second.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        stores.write_arrays(first, np.ones(2), second, np.ones(2), third, np.ones(2))
    assert first.tolist() == [1, 1] and third.tolist() == [0, 0]


def test_items_are_compared_by_identity():
    numbers, row = {"a": 1000.5, "b": 2}, [3.5]
    assert stores.same_items(("a", "b"), numbers, numbers["a"], numbers, numbers["b"])
    assert not stores.same_items(("a", "b"), numbers, float("1000.5"), numbers, numbers["b"])
    assert stores.same_items((0, "b"), row, row[0], numbers, numbers["b"])
    assert not stores.same_items((0,), row, None)


def test_entries_use_them():
    """A step: values, gradients and counts as eagerly, and what happens if an array becomes shared."""
    def step(layer, sums, counts, x):
        loss = chainer.functions.sum(layer(x) ** 2)
        layer.cleargrads()
        loss.backward()
        sums[0][...] = sums[0] * 0.9 + layer.W.grad
        sums[1][...] = sums[1] * 0.9 + layer.b.grad
        for name in ("a", "b", "c"):
            counts[name] += 1
        return loss

    def trained(function):
        np.random.seed(0)
        layer, x = chainer.links.Linear(3, 2), np.ones((2, 3), np.float32)
        sums = [np.zeros((2, 3), np.float32), np.zeros(2, np.float32)]
        counts = {"a": 1, "b": 300, "c": 2.5}
        losses = [float(function(layer, sums, counts, x).array) for _ in range(3)]
        sums[1] = sums[0][0, :2]
        losses += [float(function(layer, sums, counts, x).array) for _ in range(2)]
        return losses, [array.tolist() for array in sums], layer.b.grad.tolist(), counts
    compiled = to_static(step, backend="numpy", strict=True)
    assert trained(compiled) == trained(step)
    entry = "".join(program.entry for program in compiled.dispatcher.programs)
    assert "write_arrays(" in entry and "store_gradients(" in entry and "same_items(" in entry
    losses, *_ = trained(to_static(step, backend="c"))
    np.testing.assert_allclose(losses, trained(step)[0], 1e-5)


def test_equal_counts_are_computed_with_once():
    """Counts that are equal, and those that are not, or are no whole numbers any more."""
    def count(counts, x):
        for entry in counts:
            entry["t"] += 1
        return x * (0.1 * math.sqrt(counts[0]["t"] + 3)) + [math.sqrt(entry["t"] * 2.0) for entry in counts][-1]

    def counted(function):
        counts, x = [{"t": 300} for _ in range(4)], np.ones(3, np.float32)
        found = [function(counts, x).tolist() for _ in range(4)]
        counts[1]["t"] = 7
        found += [function(counts, x).tolist() for _ in range(2)]
        counts[3]["t"] = 8.5
        return found + [function(counts, x).tolist() for _ in range(3)], counts
    compiled = to_static(count, backend="numpy", strict=True)
    assert counted(compiled) == counted(count)
    assert any(" == " in line and line.strip().startswith("if n") for program in compiled.dispatcher.programs
               for line in program.entry.splitlines())
