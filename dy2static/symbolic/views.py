"""Which arrays share memory: views are known by the calls that made them, tried on arrays that lie in memory in several ways."""
from __future__ import annotations

import itertools
import operator
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from ..ir.dims import Dim
from ..library_facts import numpy as numpy_facts
from ..library_facts.table import named
from ..record.paths import Source
from ..runtime.array_writes import overlaid, write_at, write_at_checked
from ..runtime.host_calls import Method, flatten
from . import abstract_eval
from .example_layouts import laid_out, laid_out_for
from .memories import Memory
from .size_trials import bound, few_trials
from .values import SymbolicArray, SymbolicScalar

#: Functions whose new array is in C order.
_IN_C_ORDER = named("ordered", numpy_facts.FUNCTIONS)

#: Functions and methods that give new arrays, and how many arguments come before their `out`.
_NEW, _BEFORE_OUT = named("new", numpy_facts.FUNCTIONS, numpy_facts.METHODS), 3

#: Functions of ``numpy.linalg`` that do: they may fail on what they are tried with.
_NEW_LINALG = named("new", numpy_facts.LINALG)


class Step(NamedTuple):
    """``function(array, *args, **kwargs)`` is a view of the array."""

    function: Callable[..., Any]
    args: Tuple
    kwargs: Dict[str, Any]


class Made(NamedTuple):
    """An array and how it was made: a call that may give a view, or (without function) an array of the user's."""

    array: SymbolicArray
    serial: int
    function: Any = None
    args: Tuple = ()
    kwargs: Dict[str, Any] = {}
    leaf: int = 0
    source: Optional[Source] = None
    real: Any = None


class _Order(NamedTuple):
    """A way in which arrays may lie in memory: so that a view of one is in C order, or in Fortran order."""

    view: SymbolicArray
    order: str


class Chosen(NamedTuple):
    """An array of which only the run decides which of several arrays it is.

    array: it stands for them.  sides: these arrays.  decision: what the run decides by; the capture settles it where it needs to
    know the array.
    """

    array: SymbolicArray
    sides: Tuple[SymbolicArray, ...]
    decision: Any
    serial: int


#: Stands for the operands with which a result shares memory, where a call cannot be tried.
_UNKNOWN: FrozenSet[Any] = frozenset(("unknown",))

#: Whether methods gave views of arrays, for each way in which these may lie in memory, by `Views._key`.
_SHARING: Dict[Any, FrozenSet[bool]] = {}
_MOST_SHARING = 4096


class Views:
    """What is known of the arrays of one capture.

    user_arrays: those of the user's, which stay known when the function is called again.  made: by id, how each array was made.
    pending: those of which it is not known yet whether they are views.  results: new arrays that functions of Chainer's gave.
    chosen: by id, those that a decision chose.
    is_copy_here: whether it is relied on that the arrays of this call lie so that a result is no view of these operands.
    """

    def __init__(self, user_arrays: List[Made], is_copy_here: Callable[[Made, Sequence[SymbolicArray]], bool]):
        self.user_arrays, self.is_copy_here = user_arrays, is_copy_here
        self.made: Dict[int, Made] = {id(made.array): made for made in user_arrays}
        self.pending: List[Made] = []
        self.results: Dict[int, SymbolicArray] = {}
        self.chosen: Dict[int, Chosen] = {}
        self._choices: List[Chosen] = []                # those of which the memory is not known yet
        self._parents: Dict[int, Tuple[SymbolicArray, Step]] = {}
        self._groups: Dict[int, List[SymbolicArray]] = {}
        self._perhaps: Dict[int, List[SymbolicArray]] = {}
        self._shares: Set[int] = set()                  # the ids of what is in these lists
        for made in user_arrays:
            made.array.memory = made.array.shared = None

    def root(self, array: SymbolicArray) -> Tuple[SymbolicArray, Tuple[Step, ...]]:
        """The array that an array is a view of, and the steps to the view; without steps, the array itself."""
        steps: List[Step] = []
        while id(array) in self._parents:
            array, step = self._parents[id(array)]
            steps.insert(0, step)
        return array, tuple(steps)

    def group(self, root: SymbolicArray) -> List[SymbolicArray]:
        """An array and its views."""
        return [root, *self._groups.get(id(root), ())]

    def may_share(self, array: SymbolicArray, operands: Sequence[SymbolicArray]) -> None:
        """Note that an array may be a view of one of these, or may not."""
        self._shares.add(id(array))
        for operand in operands:
            self._perhaps.setdefault(id(self.root(operand)[0]), []).append(array)

    def perhaps(self, root: SymbolicArray) -> List[SymbolicArray]:
        """The arrays that may share memory with an array, or may not, by how it lies in memory, and the views of these."""
        found: Dict[int, SymbolicArray] = {}
        waiting = self._perhaps.get(id(root), [])[:]
        while waiting:
            array = waiting.pop()
            if id(array) not in found and array is not root:
                found.update((id(other), other) for other in self.group(array))
                waiting += self._perhaps.get(id(array), [])
        return list(found.values())

    def may_share_any(self, array: SymbolicArray) -> bool:
        """Whether an array is in `perhaps` of any other."""
        return id(array) in self._shares or id(self.root(array)[0]) in self._shares

    def choose(self, array: SymbolicArray, sides: Tuple[SymbolicArray, ...], decision: Any, serial: int) -> None:
        """Know an array that is one of these, by a decision."""
        choice = self.chosen[id(array)] = Chosen(array, sides, decision, serial)
        self._choices.append(choice)

    def serial_of(self, root: SymbolicArray) -> int:
        """When an array was made; -1 where it was there before the call, or is not known."""
        found = self.made.get(id(root)) or self.chosen.get(id(root))
        return -1 if found is None else found.serial

    def is_made_here(self, root: SymbolicArray) -> bool:
        """Whether the memory of an array is made in the call."""
        made, choice = self.made.get(id(root)), self.chosen.get(id(root))
        if choice is not None:
            return all(self.is_made_here(self.root(side)[0]) for side in choice.sides)
        return made is not None and made.source is None

    def is_alone(self, array: SymbolicArray) -> bool:
        """Whether an array is made in the call, and shares its memory with no other."""
        self.learn()
        if id(array) in self.results:
            return True
        return id(array) not in self._parents and self.is_made_here(array) and not self.perhaps(array)

    def decision_of(self, arrays: Sequence[SymbolicArray]) -> Any:
        """The decision that chose one of these; None where there is none."""
        return next((self.chosen[id(array)].decision for array in arrays if id(array) in self.chosen), None)

    def attach(self, view: SymbolicArray, memory: Memory) -> None:
        """Let a view be read from the memory of its root."""
        view.memory, view.steps = memory, self.root(view)[1]
        view.seen, view.where = memory.contents, None

    def learn(self) -> None:
        """Find out which of the new arrays are views."""
        pending, self.pending = self.pending, []
        for made in pending:
            if made.function in (write_at, write_at_checked, overlaid) or is_arithmetic(made.function) or _is_new(made):
                continue
            operands = arrays_in((made.args, made.kwargs))
            shared = self._shared(made, operands) if operands else set()
            if shared == {frozenset()} or not shared:
                continue
            first = made.args[0] if made.args else None
            if shared == {frozenset((id(first),))}:
                step = Step(made.function, made.args[1:], made.kwargs)
                self._parents[id(made.array)] = first, step
                root = self.root(first)[0]
                self._groups.setdefault(id(root), []).append(made.array)
                if root.memory is not None:
                    self.attach(made.array, root.memory)
            elif not self.is_copy_here(made, operands):  # else who knows
                self.made.pop(id(made.array))
                self.may_share(made.array, operands)
        choices, self._choices = self._choices, []
        for choice in choices:
            self.may_share(choice.array, choice.sides)
            roots = [self.root(side)[0] for side in choice.sides]
            self._perhaps.setdefault(id(choice.array), []).extend(roots)
            self._shares.update(map(id, roots))

    def _shared(self, made: Made, operands: Sequence[SymbolicArray]) -> Set[frozenset]:
        """The operands that share memory with the result, for each way in which arrays may lie in memory."""
        if made.function is operator.getitem and _selects_a_view(made.args[1]):
            return {frozenset((id(made.args[0]),))}
        if made.function is operator.getitem and _selects_a_copy(made.args[1]):
            return {frozenset()}
        key = self._key(made, operands)
        known = _SHARING.get(key)
        if known is not None:
            return {frozenset([id(operands[0])] if shares else []) for shares in known}
        tried = self._tried(made, operands)
        if tried is None:
            return {_UNKNOWN}
        if key is not None:
            if len(_SHARING) >= _MOST_SHARING:
                _SHARING.clear()
            _SHARING[key] = frozenset([bool(np.may_share_memory(leaf, values[id(operands[0])])) for leaf, values in tried])
        return {frozenset(id(x) for x in operands if np.may_share_memory(leaf, values[id(x)])) for leaf, values in tried}

    def _key(self, made: Made, operands: Sequence[SymbolicArray]) -> Any:
        """What tells a method of an array that is no view from others that may give something else; None for other calls."""
        if type(made.function) is not Method or len(operands) != 1 or made.args[0] is not operands[0] \
                or id(operands[0]) in self._parents:
            return None
        try:
            given = abstract_eval.exact_key((operands[0].type.shape, made.args[1:], made.kwargs))
        except TypeError:                               # sizes or arguments that only the run knows
            return None
        return made.function.name, given, operands[0].dtype, self._is_in_c_order(operands[0]), made.leaf

    def given_back(self, made: Made, operands: Sequence[SymbolicArray]) -> List[Optional[SymbolicArray]]:
        """The operand that is the result, or None for a new one, for each way in which arrays may lie in memory."""
        return [next((x for x in operands if values[id(x)] is leaf), None) for leaf, values in self._tried(made, operands) or ()]

    def _tried(self, made: Made, operands: Sequence[SymbolicArray]) -> Optional[List[Tuple[Any, Dict[int, Any]]]]:
        """What a call gives for arrays that lie in memory in several ways, and these arrays; None where it cannot be tried."""
        found: List[Tuple[Any, Dict[int, Any]]] = []
        arrays = [made.array, *operands, *(self.root(x)[0] for x in operands)]
        trials = few_trials([made.args, made.kwargs], [x.type for x in arrays])
        if trials is None:
            return None
        for layout, numbers in itertools.product((0, 1, 2, *self._orders(operands)), trials):
            roots: Dict[int, np.ndarray] = {}
            try:
                if type(layout) is _Order and not self._lay_out(layout, roots, numbers):
                    continue
                values = {id(x): self._sample(x, layout, roots, numbers) for x in operands}
                with np.errstate(all="ignore"):
                    result = made.function(*sampled(made.args, values, numbers), **sampled(made.kwargs, values, numbers))
            except Exception:           # whatever a call on made-up contents raises: then nothing is known, and writes are refused
                return None
            found.append((flatten(result)[1][made.leaf], values))
        return found

    def _orders(self, operands: Sequence[SymbolicArray]) -> List[_Order]:
        """In which orders views among the operands are tried, too."""
        views = [x for x in operands if id(x) in self._parents and not self._is_in_c_order(self.root(x)[0])]
        return [_Order(view, order) for view in views for order in "CF"]

    def _lay_out(self, wanted: _Order, roots: Dict[int, np.ndarray], numbers: Mapping[str, int]) -> bool:
        """Make the array of which this is a view, if there is one so that the view is in the order."""
        root, steps = self.root(wanted.view)
        made = laid_out_for(bound(root.type, numbers), lambda array: _viewed(array, steps, numbers), wanted.order)
        if made is not None:
            roots[id(root)] = made
        return made is not None

    def _sample(self, array: SymbolicArray, layout: Any, roots: Dict[int, np.ndarray], numbers: Mapping[str, int]) -> Any:
        if array.is_scalar:
            return abstract_eval.stand_in(array.type, 0)
        root, steps = self.root(array)
        if id(root) not in roots:
            is_in_c_order = type(layout) is _Order or self._is_in_c_order(root)
            roots[id(root)] = laid_out(bound(root.type, numbers), 0 if is_in_c_order else layout)
        return _viewed(roots[id(root)], steps, numbers)

    def _is_in_c_order(self, root: SymbolicArray) -> bool:
        made = self.made.get(id(root))
        if made is None or made.function is None or "order" in made.kwargs:
            return False
        if len(root.type.shape) < 2:
            return True
        name = getattr(made.function, "__name__", "")
        operands = arrays_in((made.args, made.kwargs))
        if is_arithmetic(made.function):
            return all(x.is_scalar or x.size == 1 or id(x) not in self._parents and self._is_in_c_order(x) for x in operands)
        return name in _IN_C_ORDER or name == "array" and not operands or \
            type(made.function) is Method and made.function.name == "copy" and len(made.args) == 1


def _viewed(array: Any, steps: Sequence[Step], numbers: Mapping[str, int]) -> Any:
    """The view of an array after these steps."""
    for step in steps:
        array = step.function(array, *sampled(step.args, {}, numbers), **sampled(step.kwargs, {}, numbers))
    return array


def is_arithmetic(function: Any) -> bool:
    """Whether a function gives new memory always."""
    return isinstance(function, np.ufunc) or getattr(function, "__module__", "") == "_operator" and \
        function is not operator.getitem


def _is_new(made: Made) -> bool:
    """Whether an array comes from a function or method that always gives a new one, of this type, and not in an `out`."""
    name = made.function.name if type(made.function) is Method else getattr(made.function, "__name__", "")
    if name == "astype" and type(made.function) is Method and made.args[0].dtype != made.array.dtype:
        return True
    if name in _NEW_LINALG and getattr(np.linalg, name, None) is made.function:
        return "out" not in made.kwargs
    is_numpys = type(made.function) is Method or getattr(np, name, None) is made.function
    return is_numpys and name in _NEW and "out" not in made.kwargs and len(made.args) <= _BEFORE_OUT


def arrays_in(item: Any) -> List[SymbolicArray]:
    """The arrays in the operands of a call."""
    if type(item) is SymbolicArray:
        return [item]
    if isinstance(item, dict):
        item = list(item.values())
    if type(item) is slice:
        item = [item.start, item.stop, item.step]
    return [array for part in item for array in arrays_in(part)] if isinstance(item, (tuple, list)) else []


def _selects_a_copy(index: Any) -> bool:
    """Whether an index has an array of places or a mask in it."""
    entries = index if type(index) is tuple else (index,)
    return any([type(entry) is SymbolicArray and entry.ndim > 0 for entry in entries])


def _selects_a_view(index: Any) -> bool:
    """Whether an index is of slices and whole numbers only, one slice at least."""
    entries = index if isinstance(index, tuple) else (index,)
    return any(type(entry) is slice for entry in entries) and all(
        entry is None or entry is Ellipsis or type(entry) in (slice, int, SymbolicScalar) or isinstance(entry, Dim)
        for entry in entries)


def sampled(item: Any, values: Dict[int, Any], numbers: Mapping[str, int]) -> Any:
    """The operands with made-up values for what is symbolic, of these sizes."""
    if type(item) is SymbolicArray:
        return values[id(item)] if id(item) in values else abstract_eval.stand_in(bound(item.type, numbers), 0)
    if type(item) is SymbolicScalar:
        return abstract_eval.stand_in(item.value.type, 0)
    if isinstance(item, (tuple, list)):
        return (list if isinstance(item, list) else tuple)([sampled(part, values, numbers) for part in item])
    if isinstance(item, dict):
        return {key: sampled(part, values, numbers) for key, part in dict.items(item)}
    if type(item) is slice:
        return slice(*[sampled(part, values, numbers) for part in (item.start, item.stop, item.step)])
    return bound(item, numbers) if isinstance(item, Dim) else item

