"""Paths, forks and ends by themselves: which decision is settled next, and what several captures have in common."""
import numpy as np
import pytest
from random_graphs import build

from dy2static import ops
from dy2static.control_flow.path_splitting import Forks, Leaf, Path, common, leaves, number_of, renamed
from dy2static.heap.aborts import CaptureAborted
from dy2static.ir.graph import Value
from dy2static.ir.types import Tensor, python_scalar
from dy2static.record.outcome import End, EscapingVariable

BOOL = python_scalar("py_bool")


def value(name="v"):
    return Value(Tensor((2,), np.dtype("float32")), name)


def decisions(count):
    return [Value(BOOL, f"p{k}") for k in range(count)]


def test_decisions_are_numbered_and_settled_once():
    path, (first, second, third) = Path({1: True}), decisions(3)
    assert path.side(first, []) is None and path.side(second, [1, 2]) is True
    assert path.side(second, []) is True and path.side(third, []) is None
    assert path.count == 3 and path.marks[1][0] == 2


def test_an_inner_path_knows_what_was_settled_outside():
    outer, (first, second) = Path({0: False}), decisions(2)
    outer.side(first, [])
    inner = Path({}, outer, frame="block")
    assert inner.side(first, []) is False and inner.side(second, []) is None
    assert inner.is_on(outer) and not outer.is_on(inner)


def test_nodes_that_are_put_in_later_move_what_follows():
    path = Path({0: True, 1: True})
    for predicate, before in zip(decisions(2), ([1], [1, 2, 3])):
        path.side(predicate, before)
    path.insert(1)
    assert [path.marks[k][0] for k in (0, 1)] == [1, 4]


def test_what_stops_inside_a_decision_names_it():
    path = Path({})
    path.side(*decisions(1), [])
    with pytest.raises(CaptureAborted) as info, path.joining():
        raise CaptureAborted("two types")
    assert info.value.fork == (path, 0) and number_of(info.value, None, {}) == 0
    assert number_of(info.value, None, {0: True}) is None and number_of(info.value, "block", {}) is None
    final = CaptureAborted("never", final=True)
    with pytest.raises(CaptureAborted), path.joining():
        raise final
    assert final.fork is None


class Capture:
    """All that is asked of a capture here."""

    def abort(self, reason, **_):
        raise CaptureAborted(reason)


def test_common_nodes_are_matched_one_by_one():
    first, other = (build(lambda x: ops.exp(ops.tanh(x)), (3,)) for _ in range(2))
    names = common(first.nodes, other.nodes, 0, 1, Capture(), None)
    assert names == {other.nodes[0].outputs[0]: first.nodes[0].outputs[0]}
    third = build(lambda x: ops.exp(ops.sin(x)), (3,))
    for nodes in (third.nodes, third.nodes[:0]):
        with pytest.raises(CaptureAborted, match="something else"):
            common(first.nodes, nodes, 0, 1, Capture(), None)


def end(result=None):
    return End((), (), (), result)


def test_each_side_is_explored_until_all_can_be_joined():
    """Decisions 0 and 2 must be settled, 1 need not be."""
    def call(path):
        for number, predicate in enumerate(decisions(3)):
            if path.side(predicate, []) is None and number != 1:
                stop = CaptureAborted("two types")
                stop.fork = path, number
                raise stop
        return Leaf(path, [], end())
    tree = Forks(Capture(), call)._explore({})
    assert tree.number == 0 and tree.then.number == tree.orelse.number == 2
    assert [dict(leaf.path.sides) for leaf in leaves(tree)] == [
        {0: a, 2: b} for a in (True, False) for b in (True, False)]


def test_a_function_has_eight_ends_at_most():
    def call(path):
        path.count = len(path.sides)
        stop = CaptureAborted("always another")
        path.side(*decisions(1), [])
        stop.fork = path, len(path.sides)
        raise stop
    forks = Forks(Capture(), call)
    with pytest.raises(CaptureAborted, match="always another"):
        forks._explore({})
    assert forks.count == 8


def test_an_end_in_other_names():
    old, new = value("old"), value("new")
    record = EscapingVariable(old, True, True)
    found = renamed(End((), (record,), (), None), {old: new}, ((old, True),))
    assert found.variables[0].value is new and found.decisions == ((old, True),)
    shared = EscapingVariable(new, True, True)
    assert renamed(End((), (record,), (), None), {old: new}, shared={new: shared}).variables[0] is shared
