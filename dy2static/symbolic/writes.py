"""Writes into arrays: which arrays share memory, and what is in it.

A write makes a new value for the whole memory; the array and its views are computed from that when they are next read.
"""
from __future__ import annotations

import itertools
import operator
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import chainer
import numpy as np

from ..ir.dims import Dim
from ..ir.graph import Value
from ..ir.types import Tensor
from ..lowering import host
from ..lowering.numpy_calls import IN_PLACE
from ..world.outcome import Build
from ..world.sources import Source
from . import stand_ins
from .lists import Contents, StagedList
from .sizes import bound, few_trials
from .values import Maybe, SymbolicArray, SymbolicScalar, SymbolicVariable

#: Methods and functions of NumPy that write into their first operand and give nothing.
_METHODS = frozenset(("fill", "sort", "partition", "put"))
_FUNCTIONS = frozenset(("copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis"))

#: Functions whose new array is in C order.
_IN_C_ORDER = frozenset(("zeros", "ones", "empty", "full", "arange", "eye", "identity", "linspace"))

#: Chainer functions that may give their operand or a view of it.
_VIEWING = frozenset(("Reshape", "Transpose", "BroadcastTo", "ExpandDims", "Squeeze", "Swapaxes", "GetItem", "SplitAxis",
                      "Cast", "Identity", "Copy", "Flip", "FlipLR", "FlipUD", "Rollaxis", "Moveaxis", "Diagonal", "SumTo",
                      "AsStrided", "Contiguous", "Dropout"))

_SHARED = "an array is changed in place that a decision, a list, a Variable or a call that is not compiled may still hold"


class Memory:
    """What an array and its views share.

    contents: an array that nobody else sees.  initial: before the first write.  stored: what the array of the user's
    holds by now.  source: of that array; None for one that is made in the call.  serial: when the root was made.
    """

    __slots__ = ("root", "contents", "initial", "stored", "source", "serial")

    def __init__(self, root: SymbolicArray, contents: SymbolicArray, source: Optional[Source], serial: int):
        self.root, self.source, self.serial = root, source, serial
        self.contents = self.initial = self.stored = contents


class _Step(NamedTuple):
    """``function(array, *args, **kwargs)`` is a view of the array."""

    function: Callable[..., Any]
    args: Tuple
    kwargs: Dict[str, Any]


class _Made(NamedTuple):
    """An array and how it was made: a call that may give a view, or (without function) an array of the user's."""

    array: SymbolicArray
    serial: int
    function: Any = None
    args: Tuple = ()
    kwargs: Dict[str, Any] = {}
    leaf: int = 0
    source: Optional[Source] = None
    real: Any = None


class ArrayWrites:
    """The arrays of one capture and what is written into them."""

    def __init__(self, capture: Any):
        self.capture = capture
        self.written: Dict[Source, np.ndarray] = {}
        self.user_arrays: List[_Made] = []
        self.start_again()

    def start_again(self) -> None:
        """Nothing is written any more; the arrays of the user's stay known."""
        self.serial = 0
        self.memories: List[Memory] = []
        self.relied = False                             # whether a Variable was differentiated after a write into it
        self._overwritten: Set[Value] = set()           # results whose backward would read what was written since
        self._unknown = False                           # whether there are others, inside of regions
        self._depth = 0                                 # the deepest region with such a write
        self.returned = ""                              # a host call that gave arrays: they may be those of others
        self._readers: Dict[int, List[Tuple[Any, Tuple[Value, ...]]]] = {}
        self.harmless = False                           # whether what is handed to the host now is not kept
        self._made: Dict[int, _Made] = {}
        self._parents: Dict[int, Tuple[SymbolicArray, _Step]] = {}
        self._groups: Dict[int, List[SymbolicArray]] = {}
        self._pending: List[_Made] = []
        for made in self.user_arrays:
            made.array.memory = made.array.shared = None
            self._made[id(made.array)] = made

    # --- what is made -------------------------------------------------------------------------------------------------

    def entered(self, array: SymbolicArray, source: Source, real: np.ndarray) -> SymbolicArray:
        """Know an array of the user's."""
        made = _Made(array, -1, source=source, real=real)
        self.user_arrays.append(made)
        self._made[id(array)] = made
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
                made = _Made(array, self.serial, function, tuple(args), dict(kwargs), leaf)
                self._made[id(array)] = made
                self._pending.append(made)

    def applied(self, node: chainer.FunctionNode, given: Sequence[SymbolicArray], outputs: Tuple[Value, ...],
                connected: bool, may_view: bool) -> None:
        """A function of Chainer's got these: its backward may read them, its results may be views of them."""
        may_view = may_view or type(node).__name__ in _VIEWING
        for array in given:
            if may_view:
                array.shared = "kept"
            elif connected:
                array.shared = array.shared or "retained"
                self._readers.setdefault(id(array), []).append((self.capture.builder, outputs))

    def is_new(self, node: chainer.FunctionNode, may_view: bool, array: SymbolicArray) -> None:
        """The result of a function that nothing is differentiated through is an array like others, if it is no view."""
        if not may_view and type(node).__name__ not in _VIEWING:
            self.serial += 1
            self._made[id(array)] = _Made(array, self.serial)

    # --- reading --------------------------------------------------------------------------------------------------------

    def read(self, array: SymbolicArray) -> Value:
        """What an array holds now."""
        memory, builder = array.memory, self.capture.builder
        if not array.steps:
            return memory.contents.now()
        if array.seen is not memory.contents or array.where is not None and array.where is not builder:
            view = memory.contents
            for step in array.steps:
                view = self.capture.numpy_call(step.function, (view, *step.args), step.kwargs)
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
        self._learn()
        memory = self._memory(array)
        if self.returned and memory.source is not None:
            capture.abort(f"an array of the caller's is changed in place after {self.returned}, which may have given it back")
        self._check(memory)
        is_sure = function not in (operator.setitem,) and isinstance(function, (np.ufunc, type(operator.iadd))) or \
            function is operator.setitem and not _decides(args[0]) or getattr(function, "__name__", "") in ("copyto", "fill")
        contents = self._computed(memory.contents, function, args) if not array.steps and not kwargs else None
        if contents is None:
            contents = capture.numpy_call(_write if is_sure else _write_checked, (
                memory.contents, tuple(map(tuple, array.steps)), function, tuple(args), dict(kwargs)), {})
        if contents.type != memory.contents.type:
            capture.abort("an array changes its type when it is written in place")
        memory.contents = contents
        if memory.source is not None:
            self.written[memory.source] = self._made[id(memory.root)].real

    def _computed(self, old: SymbolicArray, function: Callable[..., Any], args: Tuple) -> Optional[SymbolicArray]:
        """The contents after a write into all of them, where that is a computation like others; None where it is not."""
        if self.capture.staging.depth or self.capture.staging.in_loop:
            return None                                 # there it may be done in place
        new: Any = None
        if function in IN_PLACE and (type(args[0]) is not SymbolicArray or args[0].dtype == old.dtype):
            new = self.capture.numpy_call(IN_PLACE[function], (old, args[0]), {})
        elif function is operator.setitem and (args[0] is Ellipsis or type(args[0]) is slice and args[0] == slice(None)) \
                and type(args[1]) is SymbolicArray and args[1].type == old.type:
            new = self.capture.numpy_call(("method", "copy"), (args[1],), {})
        return new if type(new) is SymbolicArray and new.type == old.type else None

    def _check(self, memory: Memory) -> None:
        made = self._made.get(id(memory.root))
        if made is None or any(array.shared == "kept" for array in self._group(memory.root)):
            self.capture.abort(_SHARED, hint="compute a new array instead")
        builders, builder = [], self.capture.builder
        while builder is not None:
            builders.append(builder)
            builder = builder.outer
        for array in self._group(memory.root):
            for where, outputs in self._readers.pop(id(array), ()):
                array.shared = None
                self._overwritten.update(outputs)
                self._unknown = self._unknown or where not in builders
                self._depth = max(self._depth, self.capture.staging.depth)
        if made.real is not None and not made.real.flags.writeable:
            self.capture.abort("an array is written that is read-only")

    def check_backward(self, through: Set[Value]) -> None:
        """Stop where a backward through these would read arrays that were written since."""
        if self._unknown or self.capture.staging.depth < self._depth or not self._overwritten.isdisjoint(through):
            self.capture.abort("an array is changed in place that a backward reads", hint="compute a new array instead")

    def check_end(self) -> None:
        """Stop if what was differentiated so far can be differentiated by the caller."""
        if self._overwritten or self.relied:
            self.capture.abort("an array is changed in place that a later backward reads",
                               hint="compute a new array instead")

    def _memory(self, array: SymbolicArray) -> Memory:
        if array.memory is None:
            root = self._root(array)[0]
            made = self._made.get(id(root))
            if root.memory is None:
                serial = -1 if made is None else made.serial
                source = None if made is None else made.source
                root.memory = Memory(root, SymbolicArray(self.capture, root._value), source, serial)
                root.steps = ()
                self.memories.append(root.memory)
            for view in self._group(root):
                if view.memory is None:
                    self._attach(view, root.memory)
        return array.memory

    def _attach(self, view: SymbolicArray, memory: Memory) -> None:
        view.memory, view.steps = memory, self._root(view)[1]
        view.seen, view.where = memory.contents, None

    # --- who shares memory ----------------------------------------------------------------------------------------------

    def _group(self, root: SymbolicArray) -> List[SymbolicArray]:
        return [root, *self._groups.get(id(root), ())]

    def _root(self, array: SymbolicArray) -> Tuple[SymbolicArray, Tuple[_Step, ...]]:
        steps: List[_Step] = []
        while id(array) in self._parents:
            array, step = self._parents[id(array)]
            steps.insert(0, step)
        return array, tuple(steps)

    def _learn(self) -> None:
        """Find out which of the new arrays are views."""
        pending, self._pending = self._pending, []
        for made in pending:
            if made.function is _write or made.function is _write_checked or _is_arithmetic(made.function):
                continue
            operands = arrays_in((made.args, made.kwargs))
            shared = self._shared(made, operands) if operands else set()
            if shared == {frozenset()} or not shared:
                continue
            first = made.args[0] if made.args else None
            if shared == {frozenset((id(first),))}:
                step = _Step(made.function, made.args[1:], made.kwargs)
                self._parents[id(made.array)] = first, step
                root = self._root(first)[0]
                self._groups.setdefault(id(root), []).append(made.array)
                if root.memory is not None:
                    self._attach(made.array, root.memory)
            else:                                       # who knows
                self._made.pop(id(made.array))
                for operand in operands:
                    operand.shared = "kept"

    def _shared(self, made: _Made, operands: Sequence[SymbolicArray]) -> Set[frozenset]:
        """The operands that share memory with the result, for each way in which arrays may lie in memory."""
        if made.function is operator.getitem and _selects_a_view(made.args[1]):
            return {frozenset((id(made.args[0]),))}
        found = set()
        arrays = [made.array, *operands, *(self._root(x)[0] for x in operands)]
        trials = few_trials([made.args, made.kwargs], [x.type for x in arrays])
        if trials is None:
            return {frozenset(("unknown",))}
        for layout, numbers in itertools.product(range(3), trials):
            roots: Dict[int, np.ndarray] = {}
            try:
                values = {id(x): self._sample(x, layout, roots, numbers) for x in operands}
                with np.errstate(all="ignore"):
                    result = made.function(*_sampled(made.args, values, numbers), **_sampled(made.kwargs, values, numbers))
            except Exception:           # whatever a call on made-up contents raises: then nothing is known, and writes are refused
                return {frozenset(("unknown",))}
            leaf = stand_ins.flatten(result)[1][made.leaf]
            found.add(frozenset(id(x) for x in operands if np.may_share_memory(leaf, values[id(x)])))
        return found

    def _sample(self, array: SymbolicArray, layout: int, roots: Dict[int, np.ndarray], numbers: Mapping[str, int]) -> Any:
        if array.is_scalar:
            return stand_ins.stand_in(array.type, 0)
        root, steps = self._root(array)
        if id(root) not in roots:
            roots[id(root)] = _laid_out(bound(root.type, numbers), 0 if self._is_in_c_order(root) else layout)
        made = roots[id(root)]
        for step in steps:
            made = step.function(made, *_sampled(step.args, {}, numbers), **_sampled(step.kwargs, {}, numbers))
        return made

    def _is_in_c_order(self, root: SymbolicArray) -> bool:
        made = self._made.get(id(root))
        if made is None or made.function is None or "order" in made.kwargs:
            return False
        if len(root.type.shape) < 2:
            return True
        name = getattr(made.function, "__name__", "")
        operands = arrays_in((made.args, made.kwargs))
        if _is_arithmetic(made.function):
            return all(x.is_scalar or x.size == 1 or id(x) not in self._parents and self._is_in_c_order(x) for x in operands)
        return name in _IN_C_ORDER or name == "array" and not operands or \
            type(made.function) is stand_ins.Method and made.function.name == "copy" and len(made.args) == 1

    # --- what the user sees -----------------------------------------------------------------------------------------------

    def changes(self) -> Iterator[Tuple[Source, str, Any, Any]]:
        """The arrays of the user's that were written since the last call."""
        for memory in self.memories:
            if memory.source is not None and memory.contents is not memory.stored:
                memory.stored = memory.contents
                yield memory.source, "array", None, memory.contents

    def is_written(self, array: Any) -> bool:
        """Whether an array of the user's, or one that shares its memory, was written."""
        if not self.written or type(array) is not SymbolicArray:
            return False
        self._learn()
        memory = array.memory
        return memory is not None and memory.source is not None and memory.contents is not memory.initial

    def by_reference(self, array: Any) -> None:
        """Before something keeps an array of the user's: let the graph hold the array itself, with what was written."""
        if not self.is_written(array):
            return
        capture, memory = self.capture, array.memory
        if capture.staging.depth:
            capture.abort("an array that was written in place is used under a decision on array values")
        capture.store_writes(may_fail=False)
        call = host.Call(_itself, (host.Hole(0),), {}, _one, "array")
        value, = capture.builder.add(host.host_call, (capture.object_value(memory.source),),
                                     {"call": call, "types": (memory.contents.type,)}, name="written")
        memory.contents = memory.stored = SymbolicArray(capture, value)

    def built(self, array: SymbolicArray) -> Build:
        """How the result gets an array."""
        if not self.is_written(array):
            return Build("value", (array.now(),))
        if array.steps:
            self.capture.abort("a view of an array of the caller's that is written in place leaves the compiled function")
        return Build("source", (array.memory.source,))

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
        """Guard that arrays that are written share no memory with others that are used."""
        if not self.written:
            return
        others = {made.source: made.real for made in self.user_arrays if made.source not in self.written}
        if overlap(tuple(self.written.values()), tuple(others.values())):
            self.capture.abort("an array that is written in place shares memory with another one")
        self.capture.world.guard(None, "apart", (tuple(self.written), tuple(others)))


def overlap(written: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Whether an array that is written is read-only, or may share memory with another one."""
    return any(not array.flags.writeable or any(np.may_share_memory(array, other) for other in (*others, *written[:i]))
               for i, array in enumerate(written))


class Into:
    """``function(*args, out=array)`` as a function that writes into its first operand."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, array: np.ndarray, *args: Any, **kwargs: Any) -> None:
        self.function(*args, out=array, **kwargs)


_Method = stand_ins.Method


def _write(contents: np.ndarray, steps: Tuple, function: Callable[..., Any], args: Tuple, kwargs: Dict[str, Any]) -> np.ndarray:
    """A copy of the contents after ``function`` wrote into the view at the end of the steps."""
    return _write_into(contents.copy(order="K"), steps, function, args, kwargs)


def _write_into(contents: np.ndarray, steps: Tuple, function: Callable[..., Any], args: Tuple,
                kwargs: Dict[str, Any]) -> np.ndarray:
    view = contents
    for step, step_args, step_kwargs in steps:
        view = step(view, *step_args, **step_kwargs)
    function(view, *args, **kwargs)
    return contents


def _write_checked(*args: Any) -> np.ndarray:
    """The same, for what may fail on what arrays hold."""
    return _write(*args)


def write_by_numpy(*args: Any) -> np.ndarray:
    """The same, for what NumPy computes in a wider dtype than that of the array: no other code does."""
    return _write(*args)


#: What generated code calls instead where the contents are its own and nobody reads them as they were.
_write.in_place = _write_checked.in_place = _write_into         # type: ignore[attr-defined]


def _itself(array: np.ndarray) -> np.ndarray:
    return array


def _one(result: Any) -> List[Any]:
    return [result]


def _decides(key: Any) -> bool:
    """Whether an index may be out of bounds, for what an array or a number holds."""
    if type(key) is tuple:
        return any(map(_decides, key))
    return type(key) is SymbolicScalar or type(key) is SymbolicArray


def _is_arithmetic(function: Any) -> bool:
    """Whether a function gives new memory always."""
    return isinstance(function, np.ufunc) or getattr(function, "__module__", "") == "_operator" and \
        function is not operator.getitem


def arrays_in(item: Any) -> List[SymbolicArray]:
    """The arrays in the operands of a call."""
    if type(item) is SymbolicArray:
        return [item]
    if isinstance(item, dict):
        item = list(item.values())
    if type(item) is slice:
        item = [item.start, item.stop, item.step]
    return [array for part in item for array in arrays_in(part)] if isinstance(item, (tuple, list)) else []


def _selects_a_view(index: Any) -> bool:
    """Whether an index is of slices and whole numbers only, one slice at least."""
    entries = index if isinstance(index, tuple) else (index,)
    return any(type(entry) is slice for entry in entries) and all(
        entry is None or entry is Ellipsis or type(entry) in (slice, int, SymbolicScalar) or isinstance(entry, Dim)
        for entry in entries)


def _sampled(item: Any, values: Dict[int, Any], numbers: Mapping[str, int]) -> Any:
    """The operands with made-up values for what is symbolic, of these sizes."""
    if type(item) is SymbolicArray:
        return values[id(item)] if id(item) in values else stand_ins.stand_in(bound(item.type, numbers), 0)
    if type(item) is SymbolicScalar:
        return stand_ins.stand_in(item.value.type, 0)
    if isinstance(item, (tuple, list)):
        return (list if isinstance(item, list) else tuple)([_sampled(part, values, numbers) for part in item])
    if isinstance(item, dict):
        return {key: _sampled(part, values, numbers) for key, part in dict.items(item)}
    if type(item) is slice:
        return slice(*[_sampled(part, values, numbers) for part in (item.start, item.stop, item.step)])
    return bound(item, numbers) if isinstance(item, Dim) else item


def _laid_out(type_: Tensor, layout: int) -> np.ndarray:
    """Zeros in C order, in Fortran order, or with gaps everywhere."""
    if layout < 2:
        return np.zeros(type_.shape, type_.dtype, order="CF"[layout])
    return np.zeros([2 * n for n in type_.shape], type_.dtype)[tuple([slice(None, None, 2)] * len(type_.shape))]


def kept_values(*items: Any) -> Dict[int, Tuple[Any, Optional[Value]]]:
    """What arrays and Variables in these hold now, by their ids; None for arrays of the caller's that were written."""
    found: Dict[int, Tuple[Any, Optional[Value]]] = {}
    waiting, seen = list(items), set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, SymbolicVariable) or type(item) is SymbolicArray:
            array = item._data[0] if isinstance(item, SymbolicVariable) else item
            found[id(item)] = item, None if array.capture.array_writes.is_written(array) else array.now()
        elif type(item) in (tuple, list):
            waiting += item
        elif type(item) is StagedList:
            waiting += list.copy(item)
        elif type(item) is dict:
            waiting += item.values()
        elif type(item) is Maybe:
            waiting.append(item.value)
        elif type(item) is Contents:
            waiting += item.items
    return found
