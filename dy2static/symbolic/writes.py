"""Writes into arrays: which arrays share memory, and what is in it.

A write makes a new value for the whole memory; the array and its views are computed from that when they are next read.
"""
from __future__ import annotations

import operator
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Type

import chainer
import numpy as np

from ..capture_context import CaptureContext
from ..errors import Location
from ..heap.locations import user_location
from ..ir.graph import Node, Value
from ..library_facts import numpy as numpy_facts
from ..library_facts.chainer import VIEWING
from ..library_facts.python import IN_PLACE
from ..library_facts.table import named
from ..lowering import host
from ..lowering.numpy.writes import LOWERED_IN_PLACE
from ..record.builds import Build, FromSource, FromValue
from ..record.paths import Source
from ..record.writes import Write, WriteArray
from ..runtime.array_writes import Into, itself, write_at, write_at_checked
from ..runtime.host_calls import Call, Hole, Method, as_it_is
from .applications import Application, function_of
from .certain_writes import cannot_fail
from .layouts import Layouts
from .masked_writes import by_places
from .memories import Memory, Unsure
from .overlaps import Overlaps
from .overwritten import Overwritten
from .values import SymbolicArray
from .views import Made, Step, Views, arrays_in

#: Functions of NumPy that give, without ``out``, what they write into it.
_COMPUTING = (np.clip,)

#: Methods and functions of NumPy that write into their first operand and give nothing.
_METHODS, _FUNCTIONS = named("writes", numpy_facts.METHODS), named("writes", numpy_facts.FUNCTIONS)

_SHARED = "an array is changed in place that a decision, a list, a Variable or a call that is not compiled may still hold"


class ArrayWrites:
    """The arrays of one capture and what is written into them."""

    def __init__(self, capture: CaptureContext):
        self.capture = capture
        self.written: Dict[Source, Optional[Location]] = {}         # the line that first does it
        self.layouts = Layouts(capture)
        self.views = Views([], self.layouts.is_copy)
        self._overlaps = Overlaps(self)
        self.start_again()

    def start_again(self) -> None:
        """Nothing is written any more; the arrays of the user's stay known."""
        self.serial = 0
        self.memories: List[Memory] = []
        self.left: Dict[int, SymbolicArray] = {}        # roots of arrays that leave the function
        self.overwritten = Overwritten(self.capture)
        self.returned = ""                              # a host call that gave arrays: they may be those of others
        self.harmless = False                           # whether what is handed to the host now is not kept
        self.layouts = Layouts(self.capture)
        self.views = Views(self.views.user_arrays, self.layouts.is_copy)

    # --- what is made -------------------------------------------------------------------------------------------------

    def entered(self, array: SymbolicArray, source: Source, real: np.ndarray) -> SymbolicArray:
        """Know an array of the user's."""
        made = Made(array, -1, source=source, real=real)
        self.views.user_arrays.append(made)
        self.views.made[id(array)] = made
        if self.written:
            self._overlaps.enter(made)
        return array

    def called(self, function: Any, args: Tuple, kwargs: Dict[str, Any], results: Sequence[Any], is_single: bool) -> None:
        """Know what a call of NumPy made."""
        self.serial += 1
        if not is_single:                               # pieces, perhaps of an operand: nothing is known of them
            for operand in arrays_in((args, kwargs)):
                operand.shared = "kept"
            return
        for leaf, array in enumerate(results):
            if type(array) is SymbolicArray and not array.is_scalar:
                made = Made(array, self.serial, function, tuple(args), dict(kwargs), leaf)
                self.views.made[id(array)] = made
                self.views.pending.append(made)

    def applied(self, node: chainer.FunctionNode, made: Tuple[Node, ...], given: Sequence[SymbolicArray],
                needed: Sequence[SymbolicArray], outputs: Tuple[Value, ...], connected: bool) -> None:
        """A function of Chainer's got these: its backward may read them.

        made: the nodes that it became.  needed: as in `Application`.
        """
        for array in given:
            if array.shared == "held":
                array.shared = "kept"
        if not connected:
            return
        operands = tuple([(array, array.now()) for array in given])
        application = Application(function_of(node), self.capture.builder, made, operands, outputs, tuple(needed))
        for array in given:
            array.shared = array.shared or "retained"
            self.overwritten.read(array, application)

    def gave(self, node: chainer.FunctionNode, given: Sequence[SymbolicArray], may_view: bool, array: SymbolicArray,
             connected: bool) -> None:
        """The result of a function is new if it is no view; if nothing is differentiated, it is an array like others."""
        if may_view or type(node).__name__ in VIEWING:
            self.views.may_share(array, given)
        else:
            self.views.results[id(array)] = array
            if not connected:
                self.filled(array)

    def filled(self, array: SymbolicArray) -> None:
        """Know a new array, which has no other views."""
        self.serial += 1
        self.views.made[id(array)] = Made(array, self.serial)

    def chose(self, array: SymbolicArray, sides: Tuple[SymbolicArray, ...], decision: Any) -> None:
        """Know an array that is one of these, by a decision."""
        self.serial += 1
        self.views.choose(array, sides, decision, self.serial)

    def given(self, array: SymbolicArray, value: Value) -> SymbolicArray:
        """A Variable that is made gets an array that `is_own`, of this value: writes are seen in it until a function reads it."""
        self.replace_contents(array, value)
        array.shared = "held"
        return array

    def holds(self, made: SymbolicArray, array: SymbolicArray) -> SymbolicArray:
        """A Variable that is made holds an array; ``made`` stands for that, too."""
        made.shared = "kept"
        self.views.made[id(made)] = Made(made, self.serial, itself, (array,))
        return made

    # --- reading --------------------------------------------------------------------------------------------------------

    def read(self, array: SymbolicArray) -> Value:
        """What an array holds now."""
        memory, builder = array.memory, self.capture.builder
        if not array.steps:
            return memory.contents.now()
        if array.seen is not memory.contents or array.where is not None and array.where is not builder:
            view = memory.contents
            for step in array.steps:
                view = self.capture.numpy.call(step.function, (view, *step.args), step.kwargs)
            array._value, array.seen, array.where = view.now(), memory.contents, builder
        return array._value

    # --- writing --------------------------------------------------------------------------------------------------------

    def intercept(self, function: Any, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """A call of NumPy, done here if it writes into an operand; `NotImplemented` for others."""
        name = function[1] if type(function) is tuple else getattr(function, "__name__", "")
        is_method = type(function) is tuple and function[0] == "method"
        if args and type(args[0]) is SymbolicArray:
            at = name == "at" and isinstance(getattr(function, "__self__", None), np.ufunc)
            if at or name in (_METHODS if is_method else _FUNCTIONS) and (is_method or type(function) is not tuple):
                self.write(args[0], _Method(name) if is_method else function, args[1:], kwargs)
                return None
        out = kwargs.get("out")
        if isinstance(function, np.ufunc) and len(args) > function.nin:
            out, args = args[function.nin:], args[:function.nin]
        if out is None or type(out) is tuple and all(x is None for x in out):
            return NotImplemented
        target = out[0] if type(out) is tuple and len(out) == 1 else out
        if type(target) is not SymbolicArray:
            return self.capture.abort(f"`np.{name}` writes into `out`")
        rest = {key: item for key, item in kwargs.items() if key != "out"}
        self.write(target, Into(_Method(name) if is_method else function), args, rest)
        return target

    def write(self, array: SymbolicArray, function: Callable[..., Any], args: Tuple, kwargs: Dict[str, Any]) -> None:
        """``function(array, *args, **kwargs)``, which writes into the array."""
        capture = self.capture
        capture.check()
        if array.is_scalar:
            capture.abort("a NumPy scalar is changed in place")
        self.views.learn()
        if function is operator.setitem:
            if self._is_there(array, *args):
                return
            args = (by_places(capture, array, *args), args[1])
        memory = self.memory_of(array)
        if self.returned and memory.source is not None:
            capture.abort(f"an array of the caller's is changed in place after {self.returned}, which may have given it back")
        is_sure = cannot_fail(array, function, args)
        contents = self._computed(memory.contents, function, args) if not array.steps and not kwargs else None
        if contents is None and not is_sure:
            capture.effects.store_writes()              # what has been stored by then is somebody else's, too
        self._check(memory)
        if contents is None:
            contents = capture.numpy.call(write_at if is_sure else write_at_checked, (
                memory.contents, tuple(map(tuple, array.steps)), function, tuple(args), dict(kwargs)), {})
        if contents.type != memory.contents.type:
            capture.abort("an array changes its type when it is written in place")
        memory.contents = contents
        if memory.source is not None:
            self.written.setdefault(memory.source, user_location())
            self._overlaps.spread(memory)

    def _is_there(self, array: SymbolicArray, key: Any, item: Any) -> bool:
        """Whether an item is the view of the array at this place, which Python assigns after ``a[1:] += 1``."""
        if type(item) is not SymbolicArray or item.is_scalar:
            return False
        (root, steps), (other, more) = self.views.root(array), self.views.root(item)
        wanted = [*[_place_of(step) for step in steps], _place(key)]
        return root is other and "" not in wanted and wanted == [_place_of(step) for step in more]

    def _computed(self, old: SymbolicArray, function: Callable[..., Any], args: Tuple) -> Optional[SymbolicArray]:
        """The contents after a write into all of them, where that is a computation like others; None where it is not."""
        if self.capture.staging.in_loop:
            return None                                 # there it may be done in place
        new: Any = None
        if function in LOWERED_IN_PLACE and (type(args[0]) is not SymbolicArray or args[0].dtype == old.dtype):
            new = self.capture.numpy.call(IN_PLACE[function], (old, args[0]), {})
        elif type(function) is Into and (isinstance(function.function, np.ufunc) or function.function in _COMPUTING):
            new = self.capture.numpy.call(function.function, args, {})
        elif function is operator.setitem and (args[0] is Ellipsis or type(args[0]) is slice and args[0] == slice(None)) \
                and type(args[1]) is SymbolicArray and args[1].type == old.type:
            new = self.capture.numpy.call(("method", "copy"), (args[1],), {})
        return new if type(new) is SymbolicArray and new.type == old.type else None

    def _check(self, memory: Memory) -> None:
        """Stop where somebody may hold the array, or one that shares its memory, as it was."""
        made, group = self.views.made.get(id(memory.root)), self.views.group(memory.root)
        if made is not None and made.source is not None:
            self._overlaps.check_writable(made)
            for other in self._overlaps.neighbours(made):
                group += self.views.group(self.memory_of(other.array).root)
        perhaps = self.views.perhaps(memory.root)
        group += perhaps
        is_own = self.views.is_made_here(memory.root)
        if made is None and not is_own or any(array.shared == "kept" for array in group):
            # what leaves a part by a decision may be a copy, in which the write is not seen
            whole = made is None or bool(self.capture.staging.path.marks)
            self.capture.abort(_SHARED, hint="compute a new array instead", whole=whole, because=self.views.decision_of(group))
        self.overwritten.write(group, is_own)
        decision = self.views.decision_of(group) if perhaps else None
        for array in perhaps:
            array.memory, array.steps = Unsure(array, decision), ()

    def carried(self, memory: Memory) -> None:
        """Iterations of a loop write into this memory, before or after what has read it so far."""
        self.views.learn()
        self._check(memory)

    def memory_of(self, array: SymbolicArray) -> Memory:
        """What an array shares with its views."""
        if array.memory is None:
            root = self.views.root(array)[0]
            made = self.views.made.get(id(root))
            if root.memory is None:
                root.memory = Memory(root, SymbolicArray(self.capture, root._value), None if made is None else made.source,
                                     self.views.serial_of(root))
                root.steps = ()
                self.memories.append(root.memory)
            for view in self.views.group(root):
                if view.memory is None:
                    self.views.attach(view, root.memory)
        return array.memory

    def is_own(self, array: SymbolicArray) -> bool:
        """Whether an array is made here, may be written in place, and shares its memory with no other."""
        self.views.learn()
        root, steps = self.views.root(array)
        made = self.views.made.get(id(root))
        return not steps and made is not None and made.source is None and not self.views.perhaps(root) and \
            len(self.views.group(root)) == 1 and root.shared not in ("held", "kept")

    def replace_contents(self, array: SymbolicArray, value: Value) -> None:
        """Let an array that is no view hold this value, which equals its contents."""
        if array.memory is None:
            array._value = value
        else:
            array.memory.contents = SymbolicArray(self.capture, value)

    # --- what the user sees -----------------------------------------------------------------------------------------------

    def changes(self) -> Iterator[Tuple[Source, Type[Write], Any, Any]]:
        """The arrays of the user's that were written since the last call."""
        for memory in self.memories:
            if memory.source is not None and memory.contents is not memory.stored:
                memory.stored = memory.contents
                if memory.source in self.written:       # else another one was written that shares its memory
                    yield memory.source, WriteArray, None, memory.contents

    def is_written(self, array: Any) -> bool:
        """Whether an array of the user's, or one that shares its memory, was written."""
        if not self.written or type(array) is not SymbolicArray:
            return False
        self.views.learn()
        memory = array.memory
        return memory is not None and memory.source is not None and memory.contents is not memory.initial

    def written_at(self, array: SymbolicArray) -> Optional[Location]:
        """The line that first wrote an array of the user's."""
        memory = array.memory
        return None if memory is None or memory.source is None else self.written.get(memory.source)

    def by_reference(self, array: Any) -> None:
        """Before something keeps an array of the user's: let the graph hold the array itself, with what was written."""
        if not self.is_written(array):
            return
        capture, memory = self.capture, array.memory
        if capture.staging.depth:
            capture.abort("an array that was written in place is used under a decision on array values")
        capture.effects.store_writes(may_fail=False)
        call = Call(itself, (Hole(0),), {}, as_it_is, "array")
        value, = capture.builder.add(host.host_call, (capture.inputs.object_value(memory.source),),
                                     {"call": call, "types": (memory.contents.type,)}, name="written")
        memory.contents = memory.stored = SymbolicArray(capture, value)

    def built(self, array: SymbolicArray) -> Build:
        """How the result gets an array."""
        if self.views.chosen:
            self._check_leaving(array)
        written = array.memory if self.is_written(array) else self._perhaps_written(array)
        if written is None:
            return FromValue(array.now())
        if array.memory is not written or array.steps:
            self.capture.abort("a view of an array of the caller's that is written in place leaves the compiled function",
                               at=self.written.get(written.source))
        return FromSource(written.source)

    def _perhaps_written(self, array: SymbolicArray) -> Optional[Memory]:
        """The memory of an array of the user's that was written, if this array, which has been made since, may be a view of it."""
        if not self.written:
            return None
        self.views.learn()
        if not self.views.may_share_any(array):
            return None
        return next((memory for memory in self.memories if self.is_written(memory.root) and
                     any(other is array for other in self.views.perhaps(memory.root))), None)

    def _check_leaving(self, array: SymbolicArray) -> None:
        """Settle the decision that tells whether two arrays that leave share memory: a copy may leave in place of one.

        Between parts, a line may write into an array that leaves, so it may not be a copy of one of the caller's.
        """
        self.views.learn()
        root = self.views.root(array)[0]
        others = [other for other in self.views.perhaps(root) if id(other) in self.left and other._value is not root._value]
        decision = self.views.decision_of([root, *others])
        self.left[id(root)] = root
        matters = others or self.capture.is_inner and not self.views.is_made_here(root)
        if matters and decision is not None and decision.decision and self.capture.staging.path.is_on(decision.decision[0]):
            self.capture.abort("whether two results share memory depends on a decision on array values", because=decision)

    @property
    def is_ahead(self) -> bool:
        """Whether something was written that the arrays of the user's do not hold yet."""
        return any(memory.source is not None and memory.contents is not memory.stored for memory in self.memories)

    def handed(self, array: SymbolicArray) -> Value:
        """What the host gets for an array, which it may keep and change."""
        if self.harmless:
            return array.now()
        self.by_reference(array)
        return array.value

    def check_apart(self) -> None:
        """Guard that arrays that are written share memory with others that are used as they do in this call."""
        if not self.written:
            return
        for guard in self._overlaps.guards():
            self.capture.heap.guard(guard)


_Method = Method


def _place_of(step: Step) -> str:
    return _place(*step.args) if step.function is operator.getitem and len(step.args) == 1 and not step.kwargs else ""


def _place(key: Any) -> str:
    """The text of an index of numbers and slices that are known; "" for another one."""
    parts = key if type(key) is tuple else (key,)
    ends = [end for part in parts for end in ((part.start, part.stop, part.step) if type(part) is slice else (part,))]
    return repr(parts) if all(end is None or end is Ellipsis or type(end) is int for end in ends) else ""
