"""Decisions on symbolic values: both blocks are captured as regions, their writes joined, and one node is made."""
from __future__ import annotations

import contextlib
import functools
import operator
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, cast

from ..capture_context import CaptureContext
from ..heap.collection_shadows import ShadowDeque
from ..heap.dict_shadows import ShadowDict
from ..heap.list_shadows import ShadowList
from ..heap.ownership import is_library
from ..ir.building import building
from ..ir.graph import Node, Value
from ..ir.op import OPS
from ..runtime import dy
from ..runtime.raising import check_bound
from ..symbolic.hidden_attributes import before_read, before_write
from ..symbolic.host_objects import SymbolicObject
from ..symbolic.iterators import LIST_PARTS
from ..symbolic.kept_values import kept_values
from ..symbolic.known_texts import SymbolicText
from ..symbolic.list_kinds import truth_of
from ..symbolic.lists import StagedList, as_staged, symbolic_items, uneven_items
from ..symbolic.rollback import Snapshot
from ..symbolic.sequences import PARTS, Parts, has_rows, sequence_of
from ..symbolic.sizes import Size
from ..symbolic.values import Maybe, SymbolicArray, SymbolicScalar, SymbolicVariable
from ..symbolic.variable_identity import Choices
from .blocks import Blocks
from .branches import Branch, Decided
from .items import item
from .joining import Joins
from .loop_carried_trees import Replaced
from .loops import Loops
from .path_splitting import Path
from .raising import handled
from .trips import Trips


class Staging:
    """The decisions of one capture.

    depth: how many decisions and loops what is captured now is in.  in_loop: how many of these are loops.  growing: how many are
    of comprehensions.  path: the way through the function that is captured.  made_up: containers that stand in for missing
    ones and are discarded.
    """

    def __init__(self, capture: CaptureContext):
        self.capture = capture
        self.choices = Choices()
        self.truths: Dict[Value, Decided] = {}          # of what is not known but for its truth
        self.replaced = Replaced()
        self.made_up: Dict[int, Any] = {}
        self.depth = self.in_loop = self.growing = 0
        self.path = Path({})
        self.blocks, self.joins, self.loops = Blocks(self), Joins(self), Loops(self)

    # --- what converted code calls ------------------------------------------------------------------------------------

    def cond(self, test: Any, then: Callable, orelse: Callable, state: Tuple, names: Sequence[str] = (),
             others: Tuple = ()) -> Tuple:
        """``if`` on a symbolic test.  others: functions that the blocks call."""
        return self._cond(test, then, orelse, state, names, others)

    def _cond(self, test: Any, then: Callable, orelse: Callable, state: Tuple, names: Sequence[str] = (),
              others: Tuple = (), truth: bool = False) -> Tuple:
        predicate = self.predicate(test)
        side = self.path.side(predicate, self.capture.builder.nodes)
        if side is not None:
            return (then if side else orelse)(*state)
        with self.path.joining():
            return self._joined(predicate, then, orelse, state, names, others, truth)

    def _joined(self, predicate: Value, then: Callable, orelse: Callable, state: Tuple, names: Sequence[str],
                others: Tuple, truth: bool) -> Tuple:
        before = Snapshot(self.capture, (state, then, orelse, *others))
        branches = [self.blocks.branch(block, state, before) for block in (then, orelse)]
        return self.joins.join(predicate, branches, before, names, truth)

    def if_exp(self, test: Any, then: Callable, orelse: Callable) -> Any:
        """``a if test else b`` on a symbolic test."""
        return self.cond(test, lambda: (then(),), lambda: (orelse(),), (), others=(then, orelse))[0]

    def either(self, test: Any, first: SymbolicArray, second: SymbolicArray) -> SymbolicArray:
        """``first if test else second`` of two arrays of one type that are there already: no code runs that may change anything."""
        predicate = self.predicate(test)
        side = self.path.side(predicate, self.capture.builder.nodes)
        if side is not None:
            return first if side else second
        values = kept_values(first, second)
        with self.path.joining():
            branches = [Branch(None, [], (array,), {}, values=values) for array in (first, second)]
            return self.joins.join(predicate, branches, None, (), False)[0]

    def and_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """``first and …``: the rest is evaluated where the first is true."""
        return self._cond(first, lambda: (self._rest(rest, dy.and_),), lambda: (first,), (), others=rest, truth=True)[0]

    def or_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """``first or …``: the rest is evaluated where the first is false."""
        return self._cond(first, lambda: (first,), lambda: (self._rest(rest, dy.or_),), (), others=rest, truth=True)[0]

    def all_of(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """The truth of ``first and …``."""
        return self._cond(first, lambda: (self.truth(self._rest(rest, dy.all_of)),), lambda: (False,), (), others=rest)[0]

    def any_of(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """The truth of ``first or …``."""
        return self._cond(first, lambda: (True,), lambda: (self.truth(self._rest(rest, dy.any_of)),), (), others=rest)[0]

    def _rest(self, rest: Sequence[Callable[[], Any]], operator: Callable) -> Any:
        return operator(rest[0](), *rest[1:])

    def truth(self, value: Any) -> Any:
        """``bool(value)``, symbolic for symbolic values."""
        if type(value) is StagedList and value.symbolic is not None:
            value = truth_of(value)
        if self.is_inexact(value):
            return SymbolicScalar(self.capture, "py_bool", value=OPS["py_bool"](value.truth))
        if self.capture.decides(value) and getattr(value, "kind", "") != "py_bool":
            return self.capture.numpy.call(bool, (value,), {})
        return value if type(value) is SymbolicScalar and value.text is None else bool(value)

    def is_inexact(self, value: Any) -> bool:
        """Whether a value has the truth of what it is eagerly, but may be something else."""
        return type(value) is SymbolicScalar and value.text is None and value.truth in self.truths

    def need_exact(self, item: Any) -> None:
        """Stop where more is needed than the truth of what ``and`` or ``or`` gave."""
        if self.is_inexact(item):
            self.capture.abort("what `and` or `or` gives is a bool or something else, by a decision on array values",
                               hint="write `bool(...)` around what is compared, or a conditional expression",
                               because=self.truths[item.truth])

    def not_(self, value: Any) -> Any:
        """``not value`` of a symbolic value."""
        truth = self.truth(value)
        return self.capture.numpy.call(operator.not_, (truth,), {}) if type(truth) is SymbolicScalar else not truth

    def settled(self, predicate: Value) -> bool:
        """The truth of a value, for Python itself: what follows is captured once for each."""
        side = self.path.side(predicate, self.capture.builder.nodes)
        self.capture.deciding.decides(predicate)
        if side is None:
            with self.path.joining():
                self.capture.abort_decision()
        return bool(side)

    def predicate(self, test: Any) -> Value:
        """The value of the graph that decides."""
        if type(test) is SymbolicArray and test.size != 1:
            self.capture.abort("the truth of an array with more than one element is asked", hint="write `.any()` or `.all()`")
        self.capture.deciding.decides(test)
        return test.now() if type(test) is SymbolicArray else test.truth

    @contextlib.contextmanager
    def region(self) -> Iterator[List[Node]]:
        """Nodes made inside the block go into a region; the list is complete when the block ends."""
        capture, outer = self.capture, self.capture.builder
        if self.depth == 0:
            capture.effects.enter_decision()
        inner = outer.region()
        nodes: List[Node] = inner.nodes
        capture.builder, self.depth = inner, self.depth + 1
        try:
            with building(inner):
                yield nodes
        finally:
            capture.builder, self.depth = outer, self.depth - 1

    def assert_(self, test: Any, message: Optional[Callable[[], Any]] = None) -> None:
        """``assert`` on a symbolic test: a decision one side of which raises."""
        def fail() -> None:
            raise AssertionError(*(() if message is None else (message(),)))
        self.cond(test, lambda: (), fail, (), (), () if message is None else (message,))

    def read(self, maybe: "Maybe") -> Any:
        """The value of a name that may be unbound; the host checks at every run that it is bound."""
        if maybe.bound is not True:
            self.capture.effects.store_writes()
            self.capture.host.call(check_bound, (maybe.bound, maybe.name), {}, (), None, name="read")
        return maybe.value

    def settle(self, maybe: "Maybe") -> Any:
        """The value of a name that is certain to be bound; else the decision that tells is settled first."""
        if maybe.bound is not True:
            self.capture.abort(f"whether {maybe.name!r} has a value depends on a decision on array values", because=maybe.bound)
        return maybe.value

#: How containers are read that do nothing else then.
_READING = frozenset(kind.__iter__ for kind in (list, tuple, range, dict, type({}.keys()), type({}.values()), type({}.items()),
                                                ShadowList, ShadowDict, StagedList))


def staging_of(capture: CaptureContext) -> Staging:
    """The decisions of a capture, as this room knows them."""
    return cast(Staging, capture.staging)


def _handler(path: str, asks_lists: bool = True) -> Callable[..., Any]:
    """A handler of `dy` whose first argument decides: left to Python where its truth is known.

    path: of a method of `Staging`.  asks_lists: a list of unknown length decides by whether it holds anything.
    """
    find = operator.attrgetter(path)

    def handle(capture: CaptureContext, decision: Any, *arguments: Any) -> Any:
        if asks_lists and type(decision) is StagedList and decision.symbolic is not None:
            decision = truth_of(decision)
        if type(decision) is Size:
            decision = decision.truth
        if capture is None or not capture.decides(decision):
            return NotImplemented
        return find(staging_of(capture))(decision, *arguments)
    return handle


def _list(capture: CaptureContext, items: list) -> Any:
    return NotImplemented if capture is None or type(items) is StagedList else StagedList(capture, items)


def _list_of(capture: CaptureContext, items: Any, test: Optional[Callable], element: Callable, count: int) -> Any:
    if capture is None or test is None and not _is_of_unknown_length(items):
        return NotImplemented
    made = StagedList(capture, [])
    dy.for_(items, functools.partial(_add_if, staging_of(capture), made, test, element, dy.UNPACKED[count]), ())
    return made


def _truth_of(capture: CaptureContext, function: Callable, items: Any, test: Optional[Callable], element: Callable,
              count: int) -> Any:
    """What ``all`` or ``any`` gives for elements that are asked for one after the other, until one decides."""
    is_any = function is any
    if capture is None or not is_any and function is not all or not _are_there(items):
        return NotImplemented
    found = not is_any
    for parts in map(dy.UNPACKED[count], items):
        ask = functools.partial(_asked, is_any, test and functools.partial(test, *parts), functools.partial(element, *parts))
        found = staging_of(capture).truth((dy.any_of if is_any else dy.all_of)(found, ask))
        if found is is_any:
            break
    return found


def _asked(is_any: bool, test: Optional[functools.partial], element: functools.partial) -> Any:
    """Something with the truth of an element; of one that the test leaves out, that which does not decide."""
    if test is None:
        return element()
    return dy.all_of(test(), element) if is_any else dy.any_of(dy.not_(test()), element)


def _are_there(items: Any) -> bool:
    """Whether reading items does nothing, and nothing can tell how many were read."""
    if isinstance(items, (SymbolicArray, SymbolicVariable)):
        return not has_rows(items)
    return getattr(type(items), "__iter__", None) in _READING and symbolic_items(items) is None


def _items_of(capture: CaptureContext, function: Callable, items: Any, args: Tuple) -> Any:
    """All items of ``zip`` and ``enumerate`` of such, and of the generators of a library (``model.params()``)."""
    if type(items) is types.GeneratorType:
        is_plain = items.gi_frame is not None and is_library(items.gi_frame.f_globals.get("__name__", ""))
    else:
        is_plain = (function is zip or function is enumerate) and all(type(each) is int or _are_there(each) for each in args)
    return tuple(items) if capture is not None and is_plain and symbolic_items(items) is None else NotImplemented


def _is_of_unknown_length(items: Any) -> bool:
    """Whether only the run knows how many items there are."""
    return isinstance(items, Parts) or has_rows(items) or uneven_items(items) is not None or symbolic_items(items) is not None


def _add_if(staging: Staging, made: list, test: Optional[Callable], element: Callable, unpacked: Callable, item: Any) -> Tuple:
    parts = unpacked(item)
    if test is None:
        return _add(made, element, parts)
    staging.growing += 1                                # items of one kind are joined, rather than what follows captured twice
    try:
        return dy.cond(test(*parts), functools.partial(_add, made, element, parts), tuple, ())
    finally:
        staging.growing -= 1


def _add(made: list, element: Callable, parts: Tuple) -> Tuple:
    made.append(element(*parts))
    return ()


def _for(capture: CaptureContext, iterable: Any, body: Callable, state: Tuple, names: Sequence[str],
         stop: Optional[Callable[..., Any]]) -> Any:
    if capture is None:
        return NotImplemented
    iterable = as_staged(iterable)
    parts = sequence_of(capture, iterable)
    if parts is None and uneven_items(iterable) is None and symbolic_items(iterable) is None:
        return NotImplemented
    return staging_of(capture).loops.for_(iterable if parts is None else parts, body, state, names, stop)


def _trips(capture: CaptureContext, iterator: Iterator, body: Callable, names: Sequence[str]) -> Any:
    return NotImplemented if capture is None else Trips(staging_of(capture), iterator, body, names)


def _in(capture: CaptureContext, item: Any, container: Any) -> Any:
    """Membership that the run decides: in an array, or of and among numbers."""
    if capture is None:
        return NotImplemented
    if type(item) is Size and isinstance(container, (dict, set, frozenset)) and symbolic_items(container) is None:
        return _in(capture, item.number, tuple([key for key in container if (item == key) is not False]))
    if type(container) is SymbolicArray:
        return capture.numpy.call(operator.contains, (container, item), {})
    if type(item) is SymbolicText and type(container) is item.python_type:
        return capture.texts.call(operator.contains, (container, item), pattern="({1} in {0})")
    if isinstance(container, (dict, set, frozenset, list, tuple, range)) and symbolic_items(container) is None:
        items = container if type(container) is range else tuple(container)
        unknown = [x for x in (item, *items) if type(x) is SymbolicScalar and x.text is None
                   or type(x) is SymbolicArray and x.is_scalar]
        if unknown and all(isinstance(x, (int, float, str, type(None))) or any(x is u for u in unknown) for x in (item, *items)):
            return any(x is item for x in items) or capture.numpy.call(operator.contains, (items, item), {})
    return NotImplemented


#: What takes over the functions of `dy` where a symbolic value decides.
HANDLERS: Dict[str, Callable[..., Any]] = {
    "cond": _handler("cond"), "if_exp": _handler("if_exp"), "assert_": _handler("assert_"), "not_": _handler("not_"),
    "all_of": _handler("all_of"), "any_of": _handler("any_of"),
    "and_": _handler("and_", asks_lists=False), "or_": _handler("or_", asks_lists=False),
    "while_": _handler("loops.while_"), "for_rest": _handler("loops.for_rest", asks_lists=False),
    "list_": _list, "list_of": _list_of,
    "truth_of": _truth_of, "items_of": _items_of, "for_": _for, "trips": _trips, "in_": _in, "item": item, "handled": handled,
    "owner": before_write, "holder": before_read,
    "leave": lambda capture, maybe: staging_of(capture).settle(maybe) if type(maybe) is Maybe else NotImplemented,
    "bound": lambda capture, maybe: maybe.value if type(maybe) is Maybe else NotImplemented,
    "read": lambda capture, maybe: staging_of(capture).read(maybe) if type(maybe) is Maybe else NotImplemented,
}

#: The types that `dy` asks these for.
SYMBOLIC_TYPES = frozenset((SymbolicArray, SymbolicScalar, SymbolicText, SymbolicObject, SymbolicVariable, Maybe, StagedList,
                            ShadowList, ShadowDeque, Size, *PARTS, *LIST_PARTS))
