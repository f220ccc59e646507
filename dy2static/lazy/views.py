"""Views: lazy arrays that see the memory of another one, and writes that both see."""
from __future__ import annotations

import sys
from typing import Any, Callable, Optional, Tuple

import numpy as np

from .arrays import LazyArray
from .calls import Call, applied, plainly
from .depth import MOST_DEPTH, keep_shallow
from .evaluation import result_of
from .nodes import COMPUTED, TRACED, Node, call_node, leaf, writing
from .places import Place, laid_out, place_of
from .writes import WRITES, InPlace, Out, Overlay, write_of

_new = object.__new__

#: So many views may stand behind each other.
MOST_VIEWS = 8


class View:
    """How a lazy array sees another one.

    base: the other one.  op, rest: the operation that gives the view, and its operands but for the base; op is None where only
    ``place`` says where in the memory of the base it is.  seen: the node of ``base`` that it was made of last.  unsure: whether
    NumPy gives a view is not known yet; it may be a copy or a scalar.  frozen: whether it cannot be written to.  depth: how many
    views stand between it and the array, itself included.
    """

    __slots__ = ("base", "op", "rest", "place", "seen", "unsure", "frozen", "depth")

    base: LazyArray
    op: Any
    rest: Tuple[Any, ...]
    place: Optional[Place]
    seen: Node
    unsure: bool
    frozen: bool
    depth: int

    def see(self, there: Any) -> Any:
        """The view of an array that is there.  Raises what NumPy raises."""
        if self.place is not None:
            return self.place.of(there)
        return applied(self.op, [there, *[result_of(each) if type(each) is Node else each for each in self.rest]], plainly)

    def of(self, node: Node, frame: Any, there: Any = None, late: bool = False) -> Node:
        """The node of the view of a node.  there: the view, where it has been made.  late: it is computed when it is needed."""
        if not late and node.result is not None and node.depth < TRACED or self.op is None:
            found = leaf(self.see(result_of(node)) if there is None else there, COMPUTED)
            if self.op is not None:                     # gradients go through it to what is there
                found.op, found.args = self.op, (node, *self.rest)
            return found
        return call_node(self.op, (node, *self.rest), frame)

    def refreshed(self, array: LazyArray) -> Node:
        """The node of the view, after what was written to its base."""
        if self.base._now is not self.seen:
            with writing:
                node = self.base._now
                if not self.is_view():
                    array._view = None
                elif node is not self.seen:
                    made = self.of(node, sys._getframe())
                    made.code, made.last = array._node.code, array._node.last       # the line that made the view
                    array._node, self.seen = made, node
        return array._node

    def is_view(self) -> bool:
        """Whether NumPy gives a view of the base, as it was when this was made last."""
        if self.unsure:
            there = self._laid_out_as_by_numpy()
            with np.errstate(all="ignore"):             # the evaluation warns
                given = self.see(there)
            if not (isinstance(given, np.ndarray) and isinstance(there, np.ndarray) and np.may_share_memory(given, there)):
                flags = [each.flags.writeable for each in (there, given) if isinstance(each, np.ndarray)]
                self.frozen = flags == [True, False]    # as the imag of real numbers
                return False
            self.unsure = False
        return True

    def _laid_out_as_by_numpy(self) -> Any:
        """What is seen: of a view, in the memory of the array that has it, since programs give arrays in another order."""
        if self.base._view is None:
            return result_of(self.seen)
        is_current = self.base._now is self.seen
        see_owner(self.base)
        if is_current:
            self.seen = self.base._node
        return result_of(self.base._node)


def view_of(base: LazyArray, op: Any, rest: Tuple[Any, ...], frame: Any, place: Optional[Place] = None,
            unsure: bool = False, frozen: bool = False, there: Any = None, late: bool = False) -> LazyArray:
    """The lazy array that sees another one by an operation, or at ``place`` where that is None.

    there: what it sees, where that has been made.  late: it is computed when it is needed, also where the other one is there.
    """
    above = base._view
    node = base._node if above is None else base._now
    view: View = _new(View)
    view.base, view.op, view.rest, view.place, view.seen, view.unsure, view.frozen = base, op, rest, place, node, unsure, frozen
    view.depth = 1 if above is None else above.depth + 1
    seen = view.of(node, frame, there, late)
    if MOST_DEPTH < seen.depth < TRACED:
        keep_shallow(seen)
    made: LazyArray = _new(LazyArray)
    made._node = seen
    made._view = view if seen.result is None or isinstance(seen.result, np.ndarray) else None
    if view.depth > MOST_VIEWS and seen.depth < TRACED:
        see_owner(made)
    return made


def view_in_memory(base: LazyArray, there: np.ndarray) -> LazyArray:
    """The lazy array of what sees memory of an array that has been computed; of a view only after `see_owner`."""
    view = base._view
    owner = base if view is None else view.base
    place = place_of(there, result_of(owner._node))
    return view_of(owner, None, (), None, place, frozen=view is not None and view.frozen, there=there)


def see_owner(array: LazyArray) -> None:
    """Let a view of views see the array that has the memory, as views of NumPy's do.  It is computed."""
    with writing:
        node, views = array._now, []
        owner = array
        while owner._view is not None:
            if not owner._view.is_view():
                owner._view = None
                break
            views.append(owner._view)
            owner = owner._view.base
        memory = there = result_of(owner._node)
        for view in reversed(views):
            if view.place is not None and view.place.layout != there.strides:       # it sees the owner: see `view_in_memory`
                memory = there = laid_out(there, view.place.layout)
                owner._node = leaf(memory, COMPUTED)
            there = view.see(there)
        if views and there.size and not np.may_share_memory(there, memory):
            result_of(node)                             # computed in another layout, of which NumPy's operation is no view
        elif views and there.size:                      # of nothing, nobody sees a write
            array._view = made = _new(View)
            made.base, made.op, made.rest, made.place, made.seen = owner, None, (), place_of(there, memory), owner._node
            made.unsure, made.frozen, made.depth = False, any([view.frozen for view in views]), 1
            array._node = leaf(there, COMPUTED)
        else:
            result_of(node)
            array._view = None


def write(array: LazyArray, node: Node, frame: Any) -> None:
    """Give a lazy array a new version, and all that it is a view of.  The lock `writing` is held since the old one was read.

    Raises ValueError for a view that NumPy makes read-only.
    """
    if MOST_DEPTH < node.depth < TRACED:
        keep_shallow(node)
    view = array._view
    if view is None:
        array._node = node
        return
    old = view.base._now
    is_view = view.is_view()
    if view.frozen:
        raise ValueError(f"{'output array' if type(node.op) in (InPlace, Out) else 'assignment destination'} is read-only")
    if not is_view:
        array._node, array._view = node, None
        return
    write(view.base, _overlaid(view, old, node, frame), frame)
    array._node, view.seen = node, view.base._now


def write_now(array: LazyArray, change: Callable[[np.ndarray], Any]) -> bool:
    """Let ``change`` write into the memory that a view sees, and say so; False if that has not been computed, or is read-only.

    The memory is copied before if other code can see it.  The lock `writing` is held.  Raises what ``change`` raises.
    """
    node, view = array._now, array._view
    if view is not None and view.depth > 1 and is_constant(node):
        del node
        see_owner(array)
        node, view = array._node, array._view
    if view is None or not (is_constant(node) and is_constant(view.base._now) and view.is_view()) or view.frozen:
        return False
    del node
    owner = view.base
    memory = owner._node.result
    layout = memory.strides if view.place is None else view.place.layout
    if memory.strides != layout or not _is_only_view(array, memory):
        memory = laid_out(memory, layout)
    there = view.see(memory)
    if there.size and not np.may_share_memory(there, memory):
        return False                                    # computed in another layout, of which NumPy's operation is no view
    change(there)
    owner._node = leaf(memory, COMPUTED)                # elements that were taken are not of this version
    array._node = leaf(there, COMPUTED)
    view.seen = owner._node
    return True


def _overlaid(view: View, old: Node, node: Node, frame: Any) -> Node:
    if view.place is None:
        return call_node(write_of(Overlay, view.op), (old, *view.rest, node), frame)
    changed = laid_out(result_of(old), view.place.layout)
    view.place.of(changed)[...] = result_of(node)
    return leaf(changed, COMPUTED)


def is_scalar(array: LazyArray) -> bool:
    """Whether a lazy array is a NumPy scalar, which cannot be changed."""
    node = array._now
    if type(node.op) in WRITES:                         # what was written to is an array
        return False
    return not has_axes(node) and not isinstance(result_of(node), np.ndarray)


def has_axes(node: Node) -> bool:
    """Whether an operation surely gives an array of one or more axes."""
    waiting, seen = [node], {node}
    while waiting:
        node = waiting.pop()
        if node.result is not None:
            if node.result.ndim > 0:
                return True
            continue
        op = node.op
        if type(op) is Call and op.target != "copy" or op == "{} @ {}" or op is np.matmul:
            continue
        of_all = type(op) is str or isinstance(op, np.ufunc)
        for arg in node.args if of_all else node.args[-1:] if type(op) is Out else node.args[:1]:
            if type(arg) is Node and arg not in seen:
                seen.add(arg)
                waiting.append(arg)
    return False


def is_alone(array: LazyArray) -> bool:
    """Whether only a lazy array has access to the memory of its value, so that it may be written to."""
    result: Optional[np.ndarray] = array._node.result
    return (array._view is None and sys.getrefcount(array._node) <= _ALONE_NODE and sys.getrefcount(result) <= _ALONE_RESULT
            and isinstance(result, np.ndarray) and _is_own(result))


def _is_own(result: np.ndarray) -> bool:
    return result.base is None and result.flags.owndata and result.flags.writeable


def _is_only_view(array: LazyArray, memory: np.ndarray) -> bool:
    """Whether only a view and the array that it sees have access to their memory, which the caller has a name for, too."""
    owner, node = array._view.base, array._node
    held = _ALONE_NODE + 1 + (node.args[:1] == (owner._node,))
    return (owner._view is None and sys.getrefcount(owner._node) <= held and sys.getrefcount(node) <= _ALONE_NODE + 1
            and sys.getrefcount(node.result) <= _ALONE_NODE and sys.getrefcount(memory) <= _ALONE_RESULT + 2 and _is_own(memory))


def is_constant(node: Node) -> bool:
    """Whether a node has been computed, and no gradient goes on from it."""
    return node.result is not None and node.depth < TRACED


#: What is counted for a node that one lazy array holds, and for the result of a node, with the name that `is_alone` has for it.
_ALONE_NODE, _ALONE_RESULT = 2, 3
