"""Draws from generators of random numbers: done at every run, typed by the same draw from another generator."""
from __future__ import annotations

import collections
import contextlib
import operator
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ..heap.heap import NUMPY_NUMBERS
from ..heap.list_shadows import ShadowList
from ..ir.types import Dynamic, type_of
from ..library_facts import numpy as numpy_facts
from ..library_facts import python as python_facts
from ..library_facts.table import named
from ..runtime.host_calls import LEAF, flatten
from ..symbolic import abstract_eval
from ..symbolic.host_objects import BoundHostMethod
from ..symbolic.lists import StagedList
from ..symbolic.size_trials import fitted_types, tried_with
from ..symbolic.values import SymbolicArray, SymbolicScalar, is_symbolic
from ..symbolic.views import arrays_in
from ..threads.quiet import quiet
from .drawn_ranges import drawn_of_range
from .drawn_sizes import drawn_type
from .value_enumeration import MOST_VALUES

if TYPE_CHECKING:
    from .protocols import Capture

_STATEFUL = named("state", numpy_facts.RANDOM, python_facts.RANDOM)
_CHOOSING = named("items", python_facts.RANDOM)


#: What the whole numbers that draws of NumPy give are not below, and below.
_INDICES: Dict[str, Callable[..., Tuple[Any, Any]]] = {
    "permutation": lambda x: (0, x),
    "choice": lambda a, size=None, replace=True, p=None: (0, a),
    "randint": lambda low, high=None, size=None, dtype=int: (0, low) if high is None else (low, high),
    "integers": lambda low, high=None, size=None, dtype=int, endpoint=False:
        (None, None) if endpoint is not False else (0, low) if high is None else (low, high),
}

#: The same for draws of the module `random`.
_OF_PYTHON: Dict[str, Callable[..., Tuple[Any, Any]]] = {
    "randint": lambda a, b: (a, b + 1),
    "randrange": lambda start, stop=None, step=1: (None, None) if step != 1 else (0, start) if stop is None else (start, stop),
    "choice": lambda items: (min(items), max(items) + 1),
}


#: What draws with plain arguments gave: programs that play games draw in each of many steps.
_LEARNED: Dict[Any, Tuple[Any, Tuple[Any, ...]]] = {}
_MOST_LEARNED = 1024

#: What is added to whole numbers to see whether the types of draws depend on them.
_NEAR = (0, 1, -1)


class Draws:
    """Draws from the two global generators, and from those of the user's."""

    def __init__(self, capture: Capture):
        self.capture = capture

    def draw(self, function: Callable, generator: Callable, *args: Any, **kwargs: Any) -> Any:
        """A draw from one of the two global generators: typed by the same draw from another one."""
        name = function.method if type(function) is BoundHostMethod else function.__name__
        if name == "shuffle" and generator is np.random.RandomState and not kwargs and _is_an_array(args):
            args[0][...] = args[0][self.draw(_permutation(function), generator, args[0].shape[0])]
            return None
        self._check(name)
        if name == "choice" and generator is random.Random and _are_objects(args, kwargs):
            # the generator draws the place of the item
            return self.capture.callee(operator.getitem)(args[0], self.draw(function, generator, range(len(args[0]))))
        if name in _CHOOSING and generator is random.Random:
            drawn = drawn_of_range(self.capture, name, function, args, kwargs)
            if drawn is not NotImplemented:
                return drawn
        if name in _CHOOSING and generator is random.Random and args and not _are_numbers(args[0]):
            self.capture.abort(f"`random.{name}` draws from items that are not numbers of one type",
                               hint="draw them outside of the compiled function, or draw positions: `random.sample(range(n), k)`")
        args, kwargs = self.capture.expressions.with_sizes(args), self.capture.expressions.with_sizes(kwargs)
        structure, found = self._types(name, generator, args, kwargs)
        drawn = self.capture.host.call(function, args, kwargs, found, structure, name=f"random.{name}")
        if generator is np.random.RandomState or not arrays_in((args, kwargs)):         # others may write into an `out`
            self._made(drawn)
        self._note_bounds(drawn, (_OF_PYTHON if generator is random.Random else _INDICES).get(name), args, kwargs)
        return drawn

    def _note_bounds(self, drawn: Any, bounds: Any, args: Tuple, kwargs: Mapping[str, Any]) -> None:
        """Note between which numbers the whole numbers lie that a draw gives."""
        is_number = type(drawn) is SymbolicScalar and drawn.kind == "py_int"
        if bounds is None or not is_number and not (type(drawn) is SymbolicArray and drawn.dtype.kind in "iu"):
            return
        args, kwargs = tuple(map(self._size_of, args)), {name: self._size_of(arg) for name, arg in kwargs.items()}
        plain = [item for arg in (*args, *kwargs.values()) for item in (arg if isinstance(arg, (list, tuple)) else (arg,))]
        if any(map(is_symbolic, plain)):
            return
        least, below = bounds(*args, **kwargs)
        value = drawn.value if is_number else drawn.now()
        self.capture.index_ranges.drawn(value, least, below)
        if type(least) is type(below) is int:
            self.capture.number_bounds.note(value, (least, below - 1))

    def _size_of(self, item: Any) -> Any:
        """What the graph has for a size; anything else as it is."""
        size = self.capture.expressions.size_of(item)
        return item if size is None else size

    def draw_on_gpu(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """A draw from the generator of CuPy: typed by the same draw from one of NumPy's."""
        name, placement = function.__name__, self.capture.placement
        self._check(name)
        device = placement.on_current()
        plain = {key: item for key, item in kwargs.items() if key != "dtype"}
        structure, found = self._types(name, np.random.RandomState, args, plain)
        types = placement.types(found, (), (), device)
        if kwargs.get("dtype") is not None:
            types = tuple([replace(t, dtype=np.dtype(kwargs["dtype"])) for t in types])
        drawn = self.capture.host.call(function, args, kwargs, types, structure, name=f"random.{name}")
        self._made(drawn)
        return drawn

    def _made(self, drawn: Any) -> None:
        """Know the arrays that a draw gave: they are new, and may be written."""
        for array in arrays_in(drawn):
            if not array.is_scalar:
                self.capture.array_writes.filled(array)

    def _check(self, name: str) -> None:
        """Stop at what draws nothing new, or uses the generator as a whole."""
        if name in _STATEFUL:
            self.capture.abort(f"`random.{name}` uses the state of the random generator as a whole")
        if name == "shuffle":
            self.capture.abort("`random.shuffle` puts a sequence into another order in place", hint="use `np.random.permutation`")

    def _types(self, name: str, generator: Callable, args: Any, kwargs: Any) -> Tuple[Any, Tuple[Any, ...]]:
        """The structure and the types of what a draw gives, from draws of another generator."""
        try:
            key = name, generator, abstract_eval.exact_key((args, kwargs))
        except TypeError:                               # arrays, or numbers that only the run knows
            drawn = drawn_type(self.capture, name, args, kwargs) if generator is np.random.RandomState else None
            if drawn is not None:
                return LEAF, (drawn,)
            return self._learned(name, generator, args, kwargs)
        if key not in _LEARNED:
            if len(_LEARNED) >= _MOST_LEARNED:
                _LEARNED.clear()
            _LEARNED[key] = self._learned(name, generator, args, kwargs)
        return _LEARNED[key]

    def _learned(self, name: str, generator: Callable, args: Any, kwargs: Any) -> Tuple[Any, Tuple[Any, ...]]:
        found = self._of_any_numbers(name, generator, args, kwargs)
        if found is not None:
            return found
        try:
            found = self._tried(name, generator, _with_hints(args), _with_hints(kwargs))
        except Exception as error:                      # whatever a draw raises for arguments that are made up, or wrong
            self.capture.abort(f"`random.{name}` fails on the placeholder contents of the capture "
                               f"({type(error).__name__}: {error})")
        if found is None:
            self.capture.abort(f"the shape of the result of `random.{name}` depends on the contents of an array")
        return found

    def _of_any_numbers(self, name: str, generator: Callable, args: Any, kwargs: Any) -> Optional[Tuple[Any, Tuple[Any, ...]]]:
        """The same where whole numbers that differ from call to call decide no size; None where they may, and without such numbers.

        Those of this call and those beside them are tried: bounds may be close.
        """
        found = []
        for more in _NEAR if _has_whole(args) or _has_whole(kwargs) else ():
            with contextlib.suppress(Exception):        # as one of them may be wrong
                found.append(self._tried(name, generator, _with_hints(args, more), _with_hints(kwargs, more)))
        return found[0] if len(found) > 1 and all(other == found[0] for other in found) else None

    def _tried(self, name: str, generator: Callable, args: Any, kwargs: Any) -> Optional[Tuple[Any, Tuple[Any, ...]]]:
        """What draws with made-up contents have in common; None if nothing.  Raises whatever a draw raises for these."""
        with quiet():                                   # the run will warn
            tried = [(sizes, self._trial_draws(lambda: getattr(generator(0), name), *bound))
                     for sizes, bound in tried_with([args, kwargs])]
        each = [[tuple(map(type_of, leaves)) for _, leaves in trials] for _, trials in tried]
        if any(isinstance(leaf, Dynamic) for trials in each for types in trials for leaf in types):
            self.capture.abort(f"`random.{name}` gives objects or strings",
                               hint="draw positions: `random.randrange`, `np.random.permutation`")
        found = None if any(types != trials[0] for trials in each for types in trials) else \
            fitted_types([(sizes, trials[0]) for (sizes, _), trials in zip(tried, each)])
        return None if found is None else (tried[0][1][0][0], found)

    def _trial_draws(self, draw: Callable[[], Callable], args: Tuple, kwargs: Mapping[str, Any]) -> List[Tuple[Any, List[Any]]]:
        """The structure and the leaves of draws for the fillings: at least two differ in whole numbers, which may be sizes."""
        found, filled = [], set()
        for filling in abstract_eval.FILLINGS:
            numbers: List[int] = []
            try:
                found.append(flatten(self._trial_draw(draw(), args, kwargs, filling, numbers)))
                filled.add(numbers[0] if numbers else filling)
            except ValueError:
                if not numbers:
                    raise
        if len(filled) < 2:
            raise ValueError("it takes few of the numbers that only the run knows")
        return found

    def _trial_draw(self, draw: Callable, args: Tuple, kwargs: Mapping[str, Any], filling: int, numbers: List[int]) -> Any:
        """A draw with made-up arrays; where those will not do, with others, or with probabilities.

        numbers: gets the whole numbers among the arguments, which stay.
        """
        def keeping(fill: Callable[[Any], Any]) -> Callable[[Any], Any]:
            def made(type_: Any) -> Any:
                if type_.shape != () or type_.dtype.kind not in "iu":
                    return fill(type_)
                numbers.append(int(abstract_eval.stand_in(type_, filling)))
                return abstract_eval.stand_in(type_, filling)
            return made
        for fill in (lambda type_: abstract_eval.stand_in(type_, filling), lambda type_: abstract_eval.stand_in(type_, 0)):
            try:
                return draw(*abstract_eval.typed(args, keeping(fill)), **abstract_eval.typed(kwargs, keeping(fill)))
            except ValueError:
                continue
        shares = keeping(abstract_eval.shares)
        return draw(*abstract_eval.typed(args, shares), **abstract_eval.typed(kwargs, shares))


def _with_hints(item: Any, more: Optional[int] = None) -> Any:
    """The item with the floats of this call for those that differ from call to call: no type or size depends on them.

    more: what to add to such whole numbers of this call; None leaves them as they are.
    """
    kind = item.kind if type(item) is SymbolicScalar and item.text is not None else None
    if kind == "py_float":
        return item.hint
    if kind == "py_int" and more is not None:
        return item.hint + more
    if type(item) in (tuple, list):
        return type(item)([_with_hints(part, more) for part in item])
    return {key: _with_hints(part, more) for key, part in item.items()} if type(item) is dict else item


def _has_whole(item: Any) -> bool:
    """Whether there is a whole number that differs from call to call."""
    if type(item) in (tuple, list, dict):
        return any(map(_has_whole, item.values() if type(item) is dict else item))
    return type(item) is SymbolicScalar and item.text is not None and item.kind == "py_int"


def _are_numbers(items: Any) -> bool:
    """Whether these are numbers of one type: other items may be told apart by what is drawn."""
    if isinstance(items, ShadowList) and not items.whole:
        items = items.real                              # not loaded: what is left to Python needs no guards
    kinds = {item.python_type if type(item) is SymbolicScalar else type(item) for item in items} \
        if isinstance(items, (list, tuple, range, collections.deque)) else set()
    return len(kinds) == 1 and kinds <= {bool, int, float, *NUMPY_NUMBERS}


def _is_an_array(args: Tuple) -> bool:
    """Whether the arguments are one array of NumPy's that has rows."""
    return len(args) == 1 and type(args[0]) is SymbolicArray and isinstance(args[0], np.ndarray) and args[0].ndim > 0


def _permutation(shuffle: Any) -> Any:
    """The draw of a `RandomState` that gives the places from which a shuffle takes what it puts into each place."""
    return BoundHostMethod(shuffle.owner, "permutation") if type(shuffle) is BoundHostMethod else shuffle.__self__.permutation


def _are_objects(args: Tuple, kwargs: Mapping[str, Any]) -> bool:
    """Whether this is one list or tuple of a few items that are not all numbers: each may be a way through the function."""
    return len(args) == 1 and not kwargs and isinstance(args[0], (list, tuple)) and type(args[0]) is not StagedList and \
        0 < len(args[0]) <= MOST_VALUES and any(type(item) not in (bool, int, float) for item in args[0])
