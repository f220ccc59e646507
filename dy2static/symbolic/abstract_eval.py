"""What a NumPy call would give, learned from a run on arrays of the right types with made-up contents."""
from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..ir.dims import Dim
from ..ir.graph import Value
from ..ir.types import PYTHON_TYPES, Scalar, Tensor, type_of
from ..library_facts.by_name import known_as
from ..library_facts.python import symbols
from ..runtime.host_calls import LEAF, Attribute, Hole, Method, fill, flatten, form_of
from ..threads.quiet import quiet
from .values import SymbolicArray, SymbolicScalar

#: What is never called on arrays of a graph, what looks at types and shapes only, and what does not fail on values if it does not
#: on types: before others, writes are stored.
REFUSED, OF_TYPES, NEVER_RAISING = known_as("refused"), known_as("types"), known_as("sure").union(("write_at", "overlaid"))
_BY_CONTENTS, _FOLLOWING, _RISING = known_as("misleading"), known_as("follows"), known_as("rising")


def may_raise(function: Callable[..., Any], name: str, operands: Sequence[Any]) -> bool:
    """Whether a call that ran on stand-ins may still raise, because of what arrays of those types hold."""
    is_power = name in ("pow", "power")
    if is_power and all(t.dtype.kind in "iub" for t in operands):
        return True                                     # integers to negative powers
    if isinstance(function, np.ufunc) or name in NEVER_RAISING:
        return False
    if function is operator.getitem:                    # the shape is known: only an index can be out of bounds
        return len(operands) > 1
    if is_power or name in ("mod", "floordiv", "truediv"):      # NumPy warns; of Python's numbers, Python raises
        return all(isinstance(t, Scalar) and t.kind != "numpy" for t in operands)
    return function is not int or operands[0].dtype.kind not in "iub"


def unflatten(structure: Any, leaves: List[Any]) -> Any:
    """The structure with leaves put in, in order."""
    rest = iter(leaves)

    def put(item: Any) -> Any:
        if item is LEAF:
            return next(rest)
        if type(item) is dict:
            return {key: put(part) for key, part in item.items()}
        return None if item is None else getattr(type(item), "_make", type(item))([put(part) for part in item])
    return put(structure)


#: Smaller arrays are filled at random, so that matrices are regular.
_RANDOM_SIZE = 1 << 20


#: How many fillings there are: no two leave the size of a result alike that depends on contents.
FILLINGS = (0, 1, 2, 3)


def stand_in(type_: Any, filling: int, place: int = 0) -> Any:
    """A value of a type, with contents that differ between the fillings.

    In the first two, integers are 0, a valid index, and floats make regular matrices.  In the others, integers and truths
    differ within an array, arrays of floats hold zeros, and numbers differ by their ``place`` among the operands.
    """
    if hasattr(type_, "stand_in"):
        return type_.stand_in(filling, place)           # a number of which more is known
    dtype = np.dtype(type_.dtype)
    odd = filling >= 2
    if isinstance(type_, Tensor) and odd and type_.shape:
        made = np.zeros(type_.shape, dtype)
        if dtype.kind in "iub":
            made.reshape(-1)[filling - 2::2] = 1        # the others 0
        return made
    content: Any = 1 + filling
    if dtype.kind == "b":
        content = filling != 1
    elif odd:
        content = 5 + 2 * place if filling == 2 else max(4 - place, 0)
    elif dtype.kind in "iu":
        content = 0
    if isinstance(type_, Tensor):
        if dtype.kind == "f" and math.prod(type_.shape) < _RANDOM_SIZE:
            return _regular(filling, type_.shape).astype(dtype) if not odd else np.full((), content, dtype)
        return np.full(type_.shape, content, dtype)
    if type_.kind == "numpy":
        return dtype.type(content)
    return PYTHON_TYPES[type_.kind](content if dtype.kind == "b" else max(content, 1))


@dataclass(frozen=True, eq=False)
class Known:
    """The type of an operand that is certain to hold this."""

    type: Any
    contents: Any

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the operand."""
        return self.type.dtype

    @property
    def shape(self) -> Tuple[Any, ...]:
        """The sizes of its axes."""
        return self.type.shape

    def stand_in(self, filling: int, place: int) -> Any:
        """What it holds."""
        return np.array(self.contents) if isinstance(self.contents, np.ndarray) else self.contents


def with_known(types: Sequence[Any], operands: Sequence[Value], known: Mapping[Value, Any]) -> Sequence[Any]:
    """The types of operands, with what they hold where that is known: whole numbers, which may be sizes and places.

    As they are where sizes are free: how the result follows these is learned from the types alone.
    """
    if not any(v in known for v in operands) or any(isinstance(n, Dim) for t in types for n in (t, *getattr(t, "shape", ()))):
        return types
    return [Known(v.type, known[v]) if v in known and v.dtype.kind in "iub" else t for v, t in zip(operands, types)]


@functools.lru_cache(maxsize=64)
def _known(filling: int, shape: Tuple[int, ...]) -> np.ndarray:
    return np.random.RandomState(filling).uniform(0.5, 1.5, shape)


def _regular(filling: int, shape: Tuple[int, ...]) -> np.ndarray:
    return (_known if math.prod(shape) < 256 else _known.__wrapped__)(filling, shape)


def shares(type_: Any) -> Any:
    """A value of a type in which floats are probabilities that add up to one."""
    is_distribution = isinstance(type_, Tensor) and type_.shape and np.dtype(type_.dtype).kind == "f"
    return np.full(type_.shape, 1 / max(type_.shape[-1], 1), type_.dtype) if is_distribution else stand_in(type_, 0)


def identity(type_: Any) -> Any:
    """A value of a type in which square matrices are positive definite."""
    is_square = isinstance(type_, Tensor) and len(type_.shape) > 1 and type_.shape[-1] == type_.shape[-2]
    return np.resize(np.eye(type_.shape[-1], dtype=type_.dtype), type_.shape) if is_square else stand_in(type_, 0)


def typed(item: Any, made: Callable[[Any], Any] = lambda type_: stand_in(type_, 0)) -> Any:
    """The item with ``made(type)`` for symbolic arrays and the numbers themselves for symbolic numbers."""
    if type(item) is SymbolicArray:
        return made(item.type)
    if type(item) is SymbolicScalar:
        return item.fix() if item.text is not None else made(item.value.type)
    if type(item) in (tuple, list):
        return type(item)(typed(part, made) for part in item)
    if type(item) is dict:
        return {key: typed(part, made) for key, part in item.items()}
    return item


def rising(type_: Any) -> Any:
    """An array of a type whose elements rise; of others, what `stand_in` gives."""
    is_row = isinstance(type_, Tensor) and type_.ndim == 1
    return np.arange(type_.shape[0]).astype(type_.dtype) if is_row else stand_in(type_, 0)


def of_types(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What a function gives that looks at types and shapes only.  Raises ValueError if it looked at contents, too."""
    found = [function(*typed(args, made), **typed(kwargs, made))
             for made in [lambda type_, filling=filling: stand_in(type_, filling) for filling in FILLINGS]]
    if any(other != found[0] for other in found):
        raise ValueError(DEPENDS)
    return found[0]


def infer(function: Callable[..., Any], template: Tuple[Any, Any], types: Sequence[Any]) -> List[Tuple[Any, Tuple[Any, ...]]]:
    """The structure and the leaf types of ``function(*args, **kwargs)`` for each of the `FILLINGS` (None where it has none).

    types: of the operands; an int for one that is this number.

    The structures are alike.  Raises ValueError where something depends on contents in other ways, and whatever the
    function raises.
    """
    key = key_of(function, form_of(template), types)
    if key is not None and key in _LEARNED:
        return _LEARNED[key]
    with np.errstate(all="ignore"), quiet():            # the run will warn
        found = _learned_on_few_elements(function, template, types) or _learned(function, template, types)
    if key is not None:
        if len(_LEARNED) >= _MOST_LEARNED:
            _LEARNED.clear()
        _LEARNED[key] = found
    return found


def key_of(function: Callable[..., Any], form: Any, types: Sequence[Any]) -> Any:
    """What tells a call of an operation from others that may give something else; None for other functions.

    form: of its template.
    """
    if form is None:
        return None
    if isinstance(function, (Method, Attribute)):
        called: Any = type(function), function.name
    elif isinstance(function, np.ufunc) or getattr(function, "__module__", None) == "_operator" \
            or isinstance(function, type) and issubclass(function, np.generic):
        called = function
    else:
        return None
    if not all([type(t) in (int, Tensor, Scalar) or getattr(t, "tells_all", False) for t in types]):
        return None
    try:
        key = called, form, tuple(types)
        hash(key)                                       # a number of CuPy is an array
    except TypeError:
        return None
    return key


def exact_key(item: Any) -> Any:
    """A key that tells plain numbers, texts, types and what is made of them from others.  Raises TypeError for anything else."""
    kind = type(item)
    if kind in (tuple, list):
        return kind, tuple(map(exact_key, item))
    if kind is dict:
        return kind, tuple([(name, exact_key(part)) for name, part in item.items()])
    if kind not in _EXACT and not issubclass(kind, np.dtype):
        raise TypeError(f"{kind.__name__} is no plain value")
    return kind, repr(item) if kind is float else item


_EXACT = frozenset((int, float, bool, str, type, range, type(None)))

#: Operators that compute each element by itself.
_ELEMENTWISE = symbols("binary", "comparison", "unary").keys() - {operator.matmul}

#: Results of elementwise operations with so many elements are learned from a few of them.
_MANY_ELEMENTS = 1 << 14


def _learned_on_few_elements(function: Callable[..., Any], template: Tuple[Any, Any], types: Sequence[Any]) \
        -> Optional[List[Tuple[Any, Tuple[Any, ...]]]]:
    """The same as `_learned` for an elementwise operation on large arrays, from arrays with two elements an axis; else None."""
    shapes = [t.shape for t in types if type(t) is Tensor]
    if not _is_elementwise(function, template) or not all(type(size) is int for shape in shapes for size in shape) \
            or any(type(t) is not Tensor and getattr(t, "shape", ()) for t in types) \
            or max([math.prod(shape) for shape in shapes], default=0) < _MANY_ELEMENTS:
        return None
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return None                                     # the operation itself says what does not fit
    few = [replace(t, shape=tuple([min(size, 2) for size in t.shape])) if type(t) is Tensor else t for t in types]
    return [(structure, tuple([replace(t, shape=shape) if type(t) is Tensor else t for t in leaves]))
            for structure, leaves in _learned(function, template, few)]


def _is_elementwise(function: Callable[..., Any], template: Tuple[Any, Any]) -> bool:
    """Whether a call computes each element by itself, of operands of any sizes."""
    if isinstance(function, Method):
        return function.name == "astype" and type(template[0][0]) is Hole
    is_operation = function in _ELEMENTWISE or isinstance(function, np.ufunc) and function.signature is None
    return is_operation and not template[1] and all(isinstance(x, (Hole, int, float, complex)) for x in template[0])


#: What calls of operations gave, by `key_of`; steps of training make the same few for each parameter.
_LEARNED: Dict[Any, List[Tuple[Any, Tuple[Any, ...]]]] = {}
_MOST_LEARNED = 4096


def _learned(function: Callable[..., Any], template: Tuple[Any, Any], types: Sequence[Any]) -> List[Tuple[Any, Tuple[Any, ...]]]:
    name = getattr(function, "__name__", "")
    if name in _BY_CONTENTS or "scimath" in (getattr(function, "__module__", None) or ""):
        raise ValueError(DEPENDS)
    if name.startswith("histogram") and any(type(x) is str for x in (*template[0], *template[1].values())):
        raise ValueError(DEPENDS)
    found: List[Any] = []
    ends = _ends_of_slices(template[0], types) if function is operator.getitem else {}
    for filling in FILLINGS if types else FILLINGS[:1]:
        values = [t if type(t) is int else identity(t) if name == "cholesky" else rising(t) if name in _RISING else
                  _end(t, ends[place], filling) if place in ends and filling < 2 else stand_in(t, filling, place)
                  for place, t in enumerate(types)]
        try:
            structure, leaves = _tried(function, template, values)
        except (IndexError, np.linalg.LinAlgError) as error:
            if filling < 2 or isinstance(error, ValueError) and not isinstance(error, np.linalg.LinAlgError):
                raise
            found.append(found[0])                      # an index that is out of bounds, or a matrix without an inverse
            continue
        found.append((structure, tuple(map(type_of, leaves))))
    if any(len(other[1]) != len(found[0][1]) for other in found):
        raise ValueError(DEPENDS)
    is_known = _is_elementwise(function, template) or name in _FOLLOWING
    return found if is_known else _with_other_numbers(function, template, types, found)


#: What other numbers are tried, as multiples of those of a filling, where these all give one size.
_OTHER_NUMBERS = (-1, 10 ** 6, 0.1)


def _with_other_numbers(function: Callable[..., Any], template: Tuple[Any, Any], types: Sequence[Any], found: List[Any]) \
        -> List[Any]:
    """What was found; the last is that for numbers that alone give another size, as in ``np.arange(-n, 0)``, if there are any."""
    are_numbers = [type(t) in (Tensor, Scalar) and t.shape == () and t.dtype.kind in "if" for t in types]
    has_sizes = any(getattr(t, "shape", ()) for t in found[0][1])       # without: `math.factorial` of such numbers takes minutes
    if not has_sizes or not any(are_numbers) or any(other[1] != found[0][1] for other in found):
        return found
    made = [t if type(t) is int else stand_in(t, FILLINGS[-1], place) for place, t in enumerate(types)]
    for factor in _OTHER_NUMBERS:
        numbers = [_multiplied(number, factor) if is_number else number for number, is_number in zip(made, are_numbers)]
        try:
            structure, leaves = _tried(function, template, numbers)
        except Exception:                               # whatever the function raises for such numbers: the run does, too
            continue
        kinds = tuple(map(type_of, leaves))
        if kinds != found[0][1] and tuple(map(_without_sizes, kinds)) == tuple(map(_without_sizes, found[0][1])):
            return [*found[:-1], (structure, kinds)]
    return found


def _multiplied(number: Any, factor: float) -> Any:
    """A number of the same type; an array of no dimensions stays one."""
    product = number * factor
    return np.asarray(product, number.dtype) if isinstance(number, np.ndarray) else type(number)(product)


def _without_sizes(type_: Any) -> Any:
    """A type with the number of axes in place of their sizes."""
    return replace(type_, shape=(0,) * len(type_.shape)) if type(type_) is Tensor else type_


def _ends_of_slices(args: Sequence[Any], types: Sequence[Any]) -> Dict[int, str]:
    """Of the operands that are bounds of a slice in an index: which of them.  A whole number by itself is like a start."""
    entries = args[1] if type(args[1]) is tuple else (args[1],)
    found = {bound.index: name for entry in entries if type(entry) is slice for name in ("start", "stop", "step")
             if type(bound := getattr(entry, name)) is Hole}
    found.update((entry.index, "start") for entry in entries if type(entry) is Hole and type(types[entry.index]) is Scalar
                 and types[entry.index].dtype.kind in "iu")
    return found


def _end(type_: Any, name: str, filling: int) -> Any:
    """A bound of a slice: the first filling gives a slice with an element even of the shortest array, the second an empty one.

    The numbers of `stand_in` are all beyond the end of a short array, which would look as if the slice were always empty.
    """
    number = 0 if name == "start" or name == "stop" and filling else 1
    return np.full((), number, type_.dtype) if isinstance(type_, Tensor) else \
        np.dtype(type_.dtype).type(number) if type_.kind == "numpy" else PYTHON_TYPES[type_.kind](number)


def infer_known(values: Sequence[Any], function: Callable[..., Any], template: Tuple[Any, Any], types: Sequence[Any]) \
        -> List[Tuple[Any, Tuple[Any, ...]]]:
    """The same for operands that are known: the one structure, and the leaf types."""
    with np.errstate(all="ignore"), quiet():            # the run will warn
        structure, leaves = _tried(function, template, [np.array(x) if isinstance(x, np.ndarray) else x for x in values])
    return [(structure, tuple(map(type_of, leaves)))]


def _tried(function: Callable[..., Any], template: Tuple[Any, Any], values: Sequence[Any]) -> Tuple[Any, List[Any]]:
    """The structure and the leaves of what a call gives for these values."""
    for array in values:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False               # what writes into an operand is not a call but a write
    structure, leaves = flatten(function(*fill(template[0], values), **fill(template[1], values)))
    if any(isinstance(leaf, np.ndarray) and type(leaf) is not np.ndarray for leaf in leaves):
        raise ValueError("the result is a matrix, or an array of another class")
    return structure, leaves


#: Why the result of a call cannot be told before it is made.
DEPENDS = "the shape or type of the result depends on the contents of an array"
