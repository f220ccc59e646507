"""For which values of a number a call of NumPy gives the same types: it may choose dtypes by how large a number is.

NumPy 1 gives numbers, and arrays of no dimensions, the least dtype that holds their value where they meet arrays; NumPy 2 raises
where a number of Python's does not fit.  Between the ends of the classes here neither can make a difference; which of the classes
do make one is learned from trials with the running NumPy.
"""
from __future__ import annotations

import math
import operator
import sys
from dataclasses import dataclass
from typing import Any, Callable, ClassVar, Dict, Hashable, List, Optional, Sequence, Tuple

import numpy as np

from ..ir.types import Scalar, Tensor, type_of
from ..library_facts.by_name import known_as
from ..library_facts.python import IN_PLACE, symbols
from ..runtime.host_calls import Hole, Method, fill, flatten, frozen
from ..threads.quiet import quiet
from .abstract_eval import stand_in

#: Where the classes of ints begin; the last end is beyond all of NumPy's.
_INTS = (-2 ** 63, -2 ** 31, -2 ** 15, -2 ** 7, 0, 2 ** 7, 2 ** 8, 2 ** 15, 2 ** 16, 2 ** 31, 2 ** 32, 2 ** 63, 2 ** 64)

#: The least and the greatest float of each class: at 65000 and 3.4e38 NumPy takes a number for one of the next dtype.
_TO_HALF, _TO_SINGLE = float(np.nextafter(65000.0, 0)), float(np.nextafter(3.4e38, 0))
_FLOATS = ((-sys.float_info.max, -3.4e38), (-_TO_SINGLE, -65000.0), (-_TO_HALF, _TO_HALF), (65000.0, _TO_SINGLE),
           (3.4e38, sys.float_info.max))

#: The classes by the kind of number: the least and the greatest one of each.
_CLASSES: Dict[str, Tuple[Tuple[Any, Any], ...]] = {"i": tuple([(a, b - 1) for a, b in zip(_INTS, _INTS[1:])]), "f": _FLOATS}

#: The classes of numbers that are near to zero.
_SMALL = {"i": _INTS.index(0), "f": 2}

_CHOOSES_BY_VALUE = int(np.__version__.split(".")[0]) < 2


@dataclass(frozen=True)
class Interval:
    """The numbers from ``low`` to ``high`` (None: without end).  finite: without infinities and NaN; neither end: just these."""

    low: Any
    high: Any
    finite: bool = True

    def condition(self, text: str) -> str:
        """Text that is true where the number is inside; infinities and NaN, which are rare, are not taken for that."""
        if self.low is None and self.high is None:
            return f"({text} - {text} != 0)"
        if self.low is None or self.high is None:
            return f"({text} <= {self.high!r})" if self.low is None else f"({text} >= {self.low!r})"
        return f"({self.low!r} <= {text} <= {self.high!r})"


@dataclass(frozen=True)
class NumberLike:
    """The type of an operand that is a number like this one: of its class.  ``type``: without that.

    tells_all: two that are equal stand for the same numbers.
    """

    type: Any
    number: Any
    tells_all: ClassVar[bool] = True

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the number."""
        return self.type.dtype

    @property
    def shape(self) -> Tuple[Any, ...]:
        """The sizes of its axes."""
        return self.type.shape

    def stand_in(self, filling: int, place: int) -> Any:
        """A number of the class."""
        small = stand_in(self.type, filling, place)
        kind = kind_of(self.type)
        known = None if kind is None else class_of(kind, self.number)
        if known is None:
            return _typed(self.type, self.number)
        if known == _SMALL[kind]:
            return small
        return _typed(self.type, _member(kind, known, int(max(abs(small), 1))))


def kind_of(type_: Any) -> Optional[str]:
    """"i" or "f" for an operand whose size may decide a dtype; None for all others."""
    if isinstance(type_, Scalar) and type_.kind != "numpy":
        return {"py_int": "i", "py_float": "f"}.get(type_.kind)
    if not _CHOOSES_BY_VALUE or not isinstance(type_, (Scalar, Tensor)) or type_.shape != ():
        return None
    return {"i": "i", "u": "i", "f": "f"}.get(type_.dtype.kind)


def class_of(kind: str, number: Any) -> Optional[int]:
    """The place of the class that the number is in; None for one that is in none."""
    found = [place for place, (low, high) in enumerate(_CLASSES[kind]) if low <= number <= high]
    return found[0] if found else None


def interval_of(kind: str, number: Any) -> Interval:
    """The class that the number is in, what lies beyond all, or infinities and NaN."""
    known = class_of(kind, number)
    if known is not None:                               # NumPy takes infinities and NaN for small numbers
        return Interval(*_CLASSES[kind][known], known != _SMALL["f"] or kind != "f")
    if kind == "f":
        return Interval(None, None, False)
    return Interval(2 ** 64, None) if number > 0 else Interval(None, -2 ** 63 - 1)


def _member(kind: str, place: int, content: int) -> Any:
    low, high = _CLASSES[kind][place]
    if kind == "i":
        return low + content if low >= 0 else high + 1 - content
    return content if place == _SMALL["f"] else low * 1.001 * content if low > 0 else high * 1.001 * content


def _typed(type_: Any, number: Any) -> Any:
    if isinstance(type_, Tensor):
        return np.full((), number, type_.dtype)
    return type_.dtype.type(number) if type_.kind == "numpy" else number


# Which calls ----------------------------------------------------------------------------------------------------------

_OPERATORS = frozenset((*symbols("binary", "comparison"), divmod))

_OF_CONTENTS, _OF_SIZES = known_as("contents"), known_as("sizes")


def _is_of_contents(function: Any) -> bool:
    if isinstance(function, np.ufunc) or isinstance(getattr(function, "__self__", None), np.ufunc):
        return function is not np.ldexp
    try:
        return function in _OPERATORS
    except TypeError:
        return False


class _Trial:
    """A call on small arrays, which is tried with numbers of several classes."""

    def __init__(self, function: Any, template: Tuple[Any, Any]):
        args, kwargs = template
        self.write = hasattr(function, "in_place")
        if self.write:                                  # (contents, steps, function, args, kwargs)
            contents, _, function, inner, kwargs = args
            args = (contents, *((Ellipsis, inner[1]) if function is operator.setitem and len(inner) == 2 else inner))
        elif getattr(function, "__name__", "") == "full" and len(args) > 1:
            args = ((1,), *args[1:])
        self.function, self.args, self.kwargs = function, args, kwargs
        inner = getattr(function, "function", function) if self.write else function     # of ``out=``
        self.computes = IN_PLACE.get(inner, inner) if self.write else inner
        name = getattr(inner, "__name__", "")
        self.is_known = self.write and (inner is operator.setitem or inner in IN_PLACE) or _is_of_contents(inner) or \
            (name in _OF_CONTENTS or name == "full") and (isinstance(inner, Method) or _is_of_numpy(inner))
        self.is_of_sizes = name in _OF_SIZES or not (self.write or isinstance(inner, (Method, np.ufunc)) or _is_of_numpy(inner))

    def gives(self, values: Sequence[Any]) -> Any:
        """The types of the results and that in which NumPy computes; the class of an error."""
        values = [x.copy() if self.write and isinstance(x, np.ndarray) else x for x in values]
        try:
            args, kwargs = fill(self.args, values), fill(self.kwargs, values)
            leaves = flatten(self.function(*args, **kwargs))[1]
            found = [(type(t), t.dtype, getattr(t, "kind", "")) for t in map(type_of, leaves)]
            return *found, self._computing(args)
        except Exception as error:                      # whatever NumPy raises for such numbers
            return type(error)

    def computing(self, values: Sequence[Any]) -> Any:
        """The dtype in which NumPy computes, where that of the results does not tell."""
        return self._computing(fill(self.args, values))

    def _computing(self, args: Sequence[Any]) -> Any:
        if not _CHOOSES_BY_VALUE or not (_is_of_contents(self.computes) or isinstance(self.function, np.ufunc)):
            return None
        return np.result_type(*[x for x in args if isinstance(x, (np.ndarray, np.generic, int, float))])


def _is_numpys(function: Any, template: Any, types: Sequence[Any]) -> bool:
    """Whether NumPy does this, not Python: powers of whole numbers would take for ever."""
    return isinstance(function, np.ufunc) or _is_of_numpy(function) or _holds_array(template) or \
        any(not isinstance(t, Scalar) or t.kind == "numpy" for t in types)


def _holds_array(item: Any) -> bool:
    if isinstance(item, dict):
        item = list(item.values())
    return any(map(_holds_array, item)) if isinstance(item, (tuple, list)) else isinstance(item, (np.ndarray, np.generic))


def _is_of_numpy(function: Any) -> bool:
    return (getattr(function, "__module__", None) or "").partition(".")[0] == "numpy"


def _small(type_: Any) -> Any:
    """An array of one element for one of more."""
    if isinstance(type_, Tensor) and type_.shape:
        shape = tuple([0 if isinstance(n, int) and n == 0 else 1 for n in type_.shape])
        return np.ones(shape, type_.dtype) if type_.dtype.kind == "f" else np.zeros(shape, type_.dtype)
    return stand_in(type_, 0)


# What is to be held ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """What a call does for numbers of these classes.

    intervals: per operand, for which numbers the types stay; None for any.  wide: the dtype that NumPy computes in, where that
    of the arrays is another one and the results do not show it.
    """

    intervals: Tuple[Optional[Interval], ...]
    wide: Optional[np.dtype]


#: What has been examined: equal calls come again and again, in unrolled loops.
_examined: Dict[Hashable, Optional[Found]] = {}
_MOST_EXAMINED = 4096


def examine(function: Callable[..., Any], template: Tuple[Any, Any], types: Sequence[Any]) -> Optional[Found]:
    """What the sizes of numbers among the operands decide; None where they decide nothing.

    types: of the operands; `NumberLike` for a number in whose class the call is captured.
    """
    try:
        key = (Method, function.name) if type(function) is Method else function, frozen(template), tuple(types)
        if key in _examined:
            return _examined[key]
    except TypeError:                                   # a part of the template that nothing simple tells from others
        return _examine(function, template, types)
    found = _examine(function, template, types)
    if len(_examined) >= _MOST_EXAMINED:
        _examined.clear()
    _examined[key] = found
    return found


def _examine(function: Callable[..., Any], template: Tuple[Any, Any], types: Sequence[Any]) -> Optional[Found]:
    plain = [_plain(t) for t in types]
    kinds = [kind_of(t) for t in plain]
    if not any(kinds) or not _CHOOSES_BY_VALUE and "i" not in kinds:
        return None
    trial = _Trial(function, template)
    if trial.is_of_sizes and not trial.is_known or not trial.write and not _is_numpys(function, template, plain):
        return None
    if not trial.is_known:
        return _every_class(types, kinds)
    with np.errstate(all="ignore"), quiet():
        return _compared(trial, types, plain, kinds)


def _every_class(types: Sequence[Any], kinds: Sequence[Optional[str]]) -> Found:
    """Where nothing is known of a function, a number that meets an array in it stays in its class."""
    plain = [_plain(t) for t in types]
    meets = _CHOOSES_BY_VALUE and any(isinstance(t, Tensor) and t.shape for t in plain)
    return Found(tuple([interval_of(kind, _number(t)) if kind and (meets or isinstance(t, NumberLike)) else None
                        for kind, t in zip(kinds, types)]), None)


def _plain(type_: Any) -> Any:
    return type_.type if isinstance(type_, NumberLike) else type_


def _number(type_: Any) -> Any:
    return type_.number if isinstance(type_, NumberLike) else 1


def _compared(trial: _Trial, types: Sequence[Any], plain: Sequence[Any], kinds: Sequence[Optional[str]]) -> Found:
    here = [t.stand_in(0, 0) if isinstance(t, NumberLike) else _small(t) for t in types]
    near = [_small(t) for t in plain]
    wanted, intervals = trial.gives(here), []           # type: Any, List[Optional[Interval]]
    if isinstance(wanted, type):                        # it fails on arrays of one element
        return _every_class(types, kinds)
    sequences = _sequences(trial.args)
    known: Dict[Hashable, Optional[Interval]] = {}
    for i, (type_, kind) in enumerate(zip(plain, kinds)):
        alike = sequences.get(i), type_, kind and class_of(kind, _number(types[i]))
        if kind is None or alike in known:
            intervals.append(known.get(alike))
            continue
        alone = [*near[:i], here[i], *near[i + 1:]]
        number = _number(types[i])

        def same(x: Any, alone: List[Any] = alone, i: int = i) -> bool:
            return trial.gives([*alone[:i], x, *alone[i + 1:]]) == wanted
        intervals.append(_around(kind, type_, number, same) if same(here[i]) else interval_of(kind, number))
        if None not in (alike[0], alike[2]):
            known[alike] = intervals[-1]
    return Found(tuple(intervals), _wide(trial, here))


def _sequences(args: Sequence[Any]) -> Dict[int, int]:
    """By the number of an operand, the sequence that it is an item of: NumPy makes an array of that, in which items count alike."""
    found: Dict[int, int] = {}

    def visit(item: Any, place: int) -> None:
        for part in item if isinstance(item, (list, tuple)) else ():
            if isinstance(part, Hole):
                found[part.index] = place
            visit(part, place)
    for place, arg in enumerate(args):
        visit(arg, place)
    return found


def _around(kind: str, type_: Any, number: Any, same: Callable[[Any], bool]) -> Optional[Interval]:
    """The numbers around this one for which the types are the same; None for all."""
    at = class_of(kind, number)
    if at is None:
        return interval_of(kind, number)
    known = [place for place, (low, high) in enumerate(_CLASSES[kind]) if _holds(type_, low, high)]
    alike = {place: place == at or same(_typed(type_, _member(kind, place, 1))) for place in known}
    first = last = at
    while alike.get(first - 1):
        first -= 1
    while alike.get(last + 1):
        last += 1
    is_python = isinstance(type_, Scalar) and type_.kind != "numpy"
    beyond = [_typed(type_, x) for x in ((math.inf, math.nan) if kind == "f" else (2 ** 64, -2 ** 63 - 1) if is_python else ())]
    open_ = all(map(same, beyond))
    if open_ and first == known[0] and last == known[-1]:
        return None
    return Interval(_CLASSES[kind][first][0], _CLASSES[kind][last][1], not open_)


def _holds(type_: Any, low: Any, high: Any) -> bool:
    """Whether a number of this class can be of this type."""
    if isinstance(type_, Scalar) and type_.kind != "numpy":
        return True
    if type_.dtype.kind == "f":
        limit = {2: 65000.0, 4: 3.4e38}.get(type_.dtype.itemsize, math.inf)
        return abs(low) < limit and abs(high) < limit or low < 0 < high
    limits = np.iinfo(type_.dtype)
    return bool(low <= limits.max and high >= limits.min)


def _wide(trial: _Trial, values: Sequence[Any]) -> Optional[np.dtype]:
    compares = getattr(trial.computes, "__name__", "") in _COMPARING
    arrays = [x for x in values if isinstance(x, np.ndarray) and x.ndim]
    if not (trial.write or compares) or not arrays:
        return None
    dtype = trial.computing(values)
    return None if dtype is None or dtype == np.result_type(*[x.dtype for x in arrays]) else dtype


_COMPARING = frozenset((*(f.__name__ for f in symbols("comparison")), *known_as("compares")))
