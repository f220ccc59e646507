"""Decisions on symbolic values: both blocks are captured as regions, their writes joined, and one node is made."""
from __future__ import annotations

import contextlib
import operator
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..ir.building import building
from ..ir.graph import Node, Value
from ..ir.op import OPS
from ..runtime import dy
from ..symbolic.choices import Choices
from ..symbolic.known_texts import SymbolicText
from ..symbolic.lists import StagedList, symbolic_items, truth_of
from ..symbolic.rollback import Snapshot
from ..symbolic.rows import PARTS, sequence_of
from ..symbolic.values import Maybe, SymbolicArray, SymbolicObject, SymbolicScalar, SymbolicVariable
from ..symbolic.writes import kept_values
from ..world.aborts import CaptureAborted
from ..world.locations import error_location
from .compounds import Replaced
from .forks import Path, common, number_of
from .items import item
from .joining import Branch, Decided, Joins
from .loops import Loops
from .raising import can_be_made, check_bound, is_raised, parts_of, raise_again

#: So often a block of a function is captured anew because a decision in it cannot be joined.
_MOST_FORKS = 32


class Staging(Joins, Loops):
    """The decisions of one capture."""

    def __init__(self, capture: Any):
        self.capture = capture
        self.choices = Choices()
        self.truths: Dict[Value, Decided] = {}          # of what is not known but for its truth
        self.replaced = Replaced()
        self.made_up: Dict[int, Any] = {}               # containers where there is none, which nobody sees
        self.depth = 0
        self.path = Path({})

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
        branches = [self._branch(block, state, before) for block in (then, orelse)]
        return self._join(predicate, branches, before, names, truth)

    def if_exp(self, test: Any, then: Callable, orelse: Callable) -> Any:
        """``a if test else b`` on a symbolic test."""
        return self.cond(test, lambda: (then(),), lambda: (orelse(),), ())[0]

    def and_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """``first and …``: the rest is evaluated where the first is true."""
        return self._cond(first, lambda: (self._rest(rest, dy.and_),), lambda: (first,), (), truth=True)[0]

    def or_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """``first or …``: the rest is evaluated where the first is false."""
        return self._cond(first, lambda: (first,), lambda: (self._rest(rest, dy.or_),), (), truth=True)[0]

    def all_of(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """The truth of ``first and …``."""
        return self._cond(first, lambda: (self.truth(self._rest(rest, dy.all_of)),), lambda: (False,), ())[0]

    def any_of(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """The truth of ``first or …``."""
        return self._cond(first, lambda: (True,), lambda: (self.truth(self._rest(rest, dy.any_of)),), ())[0]

    def _rest(self, rest: Sequence[Callable[[], Any]], operator: Callable) -> Any:
        return operator(rest[0](), *rest[1:])

    def truth(self, value: Any) -> Any:
        """``bool(value)``, symbolic for symbolic values."""
        if type(value) is StagedList and value.symbolic is not None:
            value = truth_of(value)
        if type(value) is SymbolicArray and value.now() not in self.capture.known:
            return self.capture.numpy_call(bool, (value,), {})
        if self.is_inexact(value):
            return SymbolicScalar(self.capture, "py_bool", value=OPS["py_bool"](value.truth))
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
        return self.capture.numpy_call(operator.not_, (truth,), {}) if type(truth) is SymbolicScalar else not truth

    def settled(self, predicate: Value) -> bool:
        """The truth of a value, for Python itself: what follows is captured once for each."""
        side = self.path.side(predicate, self.capture.builder.nodes)
        if side is None:
            with self.path.joining():
                self.capture.abort_decision()
        return bool(side)

    def predicate(self, test: Any) -> Value:
        """The value of the graph that decides."""
        if type(test) is SymbolicArray and test.size != 1:
            self.capture.abort("the truth of an array with more than one element is asked", hint="write `.any()` or `.all()`")
        return test.now() if type(test) is SymbolicArray else test.truth

    def assert_(self, test: Any, message: Optional[Callable[[], Any]] = None) -> None:
        """``assert`` on a symbolic test: a decision one side of which raises."""
        def fail() -> None:
            raise AssertionError(*(() if message is None else (message(),)))
        self.cond(test, lambda: (), fail, (), (), () if message is None else (message,))

    def read(self, maybe: "Maybe") -> Any:
        """The value of a name that may be unbound; the host checks at every run that it is bound."""
        if maybe.bound is not True:
            self.capture.store_writes()
            self.capture.host_call(check_bound, (maybe.bound, maybe.name), {}, (), None, name="read")
        return maybe.value

    # --- capturing blocks -----------------------------------------------------------------------------------------------

    def _branch(self, block: Callable, state: Tuple, before: Snapshot, sides: Mapping[int, bool] = {},
                frame: Any = None) -> Branch:
        """One block, or one side of a fork in it, with everything undone that it did."""
        def ending(*inner: Any) -> Any:
            try:
                return block(*inner)
            except Exception as error:      # what user code raises in a block is raised by the runs that come there
                return self.raise_at_run(error)
        with self.region() as nodes:
            results, marks = self.run_block(ending, state, before, sides, frame)
            writes = before.changes()
            values = kept_values(results, tuple(writes.values()))
        branch = Branch(before, nodes, results, writes, marks, values=values)
        before.restore()
        return branch

    def run_block(self, block: Callable, state: Tuple, before: Snapshot, sides: Mapping[int, bool] = {},
                  frame: Any = None) -> Tuple[Any, Mapping]:
        """What a block gives, in the present region, which must be new; and the marks of the path through it.

        Where it makes a decision that cannot be joined, the block is captured once for each side, and these are joined.
        before: the state of things at its start.
        """
        frame = object() if frame is None else frame
        replaced = len(self.replaced)
        outer, self.path = self.path, Path(sides, self.path, frame)
        try:
            results = block(*state)
            for note in self.replaced.changed_since(replaced):
                if note.decision is not None and note.decision[0] is self.path:
                    self.capture.abort("a list or dict that depends on a decision on array values is changed", because=note)
            return results, self.path.marks
        except CaptureAborted as stop:
            reason = stop
        finally:
            self.path = outer
        number = number_of(reason, frame, sides)
        while number is not None and self.capture.forks < _MOST_FORKS:
            self.capture.forks += 1
            self.capture.failed = None
            self.replaced.forget_from(replaced)
            self.capture.builder.nodes.clear()
            before.restore()
            try:
                then, orelse = [self._branch(block, state, before, {**sides, number: side}, frame) for side in (True, False)]
                return self._join_tails(number, then, orelse, before), then.marks
            except CaptureAborted as stop:
                reason = stop
            number = number_of(reason, frame, sides)
        raise reason

    def _join_tails(self, number: int, then: Branch, orelse: Branch, before: Snapshot) -> Tuple:
        """Both sides of a fork, with what they have in common before it."""
        place, predicate, loc = then.marks[number]
        names = common(then.nodes, orelse.nodes, 0, place, self.capture)
        self.capture.builder.nodes.extend(then.nodes[:place])
        self.capture.builder.loc = loc
        sides = [Branch(before, then.nodes[place:], then.results, then.writes, {}, values=then.values),
                 Branch(before, orelse.nodes[place:], orelse.results, orelse.writes, {}, names, orelse.values)]
        return self._join(predicate, sides, before, (), False)

    def raise_at_run(self, error: Exception) -> None:
        """Let the host raise what this block raises; what was written before has happened by then."""
        if type(error) is RecursionError:
            self.capture.abort("a function calls itself as deep as array values decide", hint="write a loop, or bound the depth "
                               "by a number that is known (`if depth == 0`)", final=True)
        if any(type(part) is str and "dy2static.symbolic" in part for part in error.args):
            # what was refused is a stand-in, not what it stands for
            self.capture.abort("what a call gives that is not compiled, or an object of another library, enters a computation",
                               of_host=True)
        if not (type(error) is UnboundLocalError or is_raised(error) and can_be_made(error)):
            self.capture.abort(f"{type(error).__name__}, raised under a decision on array values, cannot be made again")
        with self.capture.materialiser.ending():
            self.capture.store_writes()
            self.capture.host_call(raise_again, parts_of(error), {}, (), None, name="raise")
        made = self.capture.builder.nodes[-1]
        made.attrs["call"].within = None        # it stands where the exception was raised, not where that was noticed
        self.capture.builder.nodes[-1] = replace(made, loc=error_location(error))

    @contextlib.contextmanager
    def region(self) -> Iterator[List[Node]]:
        """Nodes made inside the block go into a region; the list is complete when the block ends."""
        capture, outer = self.capture, self.capture.builder
        if self.depth == 0:
            capture.enter_decision()
        inner = outer.region()
        nodes: List[Node] = inner.nodes
        capture.builder, self.depth = inner, self.depth + 1
        try:
            with building(inner):
                yield nodes
        finally:
            capture.builder, self.depth = outer, self.depth - 1


def _handler(method: Callable[..., Any]) -> Callable[..., Any]:
    """A handler of `dy` whose first argument decides: left to Python where its truth is known."""
    def handle(capture: Any, decision: Any, *arguments: Any) -> Any:
        if type(decision) is StagedList and decision.symbolic is not None and method in _OF_TRUTHS:
            decision = truth_of(decision)
        if capture is None or not capture.decides(decision):
            return NotImplemented
        return method(capture.staging, decision, *arguments)
    return handle


def _list(capture: Any, items: list) -> Any:
    return NotImplemented if capture is None else StagedList(capture, items)


def _for(capture: Any, iterable: Any, body: Callable, state: Tuple, names: Sequence[str],
         stop: Optional[Callable[..., Any]]) -> Any:
    if capture is None:
        return NotImplemented
    parts = sequence_of(capture, iterable)
    if parts is None and symbolic_items(iterable) is None:
        return NotImplemented
    return capture.staging.for_(iterable if parts is None else parts, body, state, names, stop)


def _in(capture: Any, item: Any, container: Any) -> Any:
    """Membership that the run decides: in an array, or of and among numbers."""
    if capture is None:
        return NotImplemented
    if type(container) is SymbolicArray:
        return capture.numpy_call(operator.contains, (container, item), {})
    if type(item) is SymbolicText and type(container) is item.python_type:
        return capture.of_texts(operator.contains, (container, item), pattern="({1} in {0})")
    if isinstance(container, (dict, set, frozenset, list, tuple, range)) and symbolic_items(container) is None:
        items = container if type(container) is range else tuple(container)
        unknown = [x for x in (item, *items) if type(x) is SymbolicScalar and x.text is None
                   or type(x) is SymbolicArray and x.is_scalar]
        if unknown and all(isinstance(x, (int, float, str, type(None))) or any(x is u for u in unknown) for x in (item, *items)):
            return any(x is item for x in items) or capture.numpy_call(operator.contains, (items, item), {})
    return NotImplemented


#: The decisions that ask a list of unknown length whether it holds anything.
_OF_TRUTHS = (Staging.cond, Staging.if_exp, Staging.not_, Staging.all_of, Staging.any_of, Staging.while_, Staging.assert_)

#: What takes over the functions of `dy` where a symbolic value decides.
HANDLERS: Dict[str, Callable[..., Any]] = {
    "cond": _handler(Staging.cond), "if_exp": _handler(Staging.if_exp), "and_": _handler(Staging.and_),
    "or_": _handler(Staging.or_),
    "all_of": _handler(Staging.all_of), "any_of": _handler(Staging.any_of), "not_": _handler(Staging.not_),
    "while_": _handler(Staging.while_),
    "for_rest": _handler(Staging.for_rest), "assert_": _handler(Staging.assert_),
    "list_": _list, "for_": _for, "in_": _in, "item": item,
    "bound": lambda capture, maybe: maybe.value if type(maybe) is Maybe else NotImplemented,
    "read": lambda capture, maybe: capture.staging.read(maybe) if type(maybe) is Maybe else NotImplemented,
}

#: The types that `dy` asks these for.
SYMBOLIC_TYPES = frozenset((SymbolicArray, SymbolicScalar, SymbolicText, SymbolicObject, SymbolicVariable, Maybe, StagedList,
                            *PARTS))
