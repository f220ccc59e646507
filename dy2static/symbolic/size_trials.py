"""Types of results whose sizes are not known: found by trying several sizes, and fitting expressions to what came out."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np

from ..capture_context import CaptureContext
from ..heap.wording import UNSURE_SIZES
from ..ir.dims import Dim, evaluate
from ..ir.shapes import evaluate_shape
from ..ir.size_bounds import limits_in
from ..ir.size_needed import SizeNeeded
from ..ir.size_symbols import FREE, at_least, at_most, rest_of
from ..ir.types import Dynamic, Scalar, Tensor, dims_in
from .shape_propagation import follows, result_of
from .sizes import Shape, Size

#: Numbers that symbols are tried with, where nothing but a trial tells what becomes of a size.
_TRIALS = (5, 7, 11, 2, 1)

#: More of them, for what takes no memory: whether something is too large shows with these.
_LARGE = (97, 1009, 1000003)
#: A number that most networks take for the size of an image: its halves, thirds and fifths are whole numbers.
_DIVISIBLE = 2 ** 7 * 3 * 5 * 7
#: Arrays of more elements than this are not tried: NumPy counts no further.
_MOST_ELEMENTS = 2 ** 56


def without_sizes(item: Any) -> Any:
    """The item with numbers of the graph for sizes that are not known, if it is a size or a shape."""
    if type(item) is Size:
        return item.number
    return tuple(item) if type(item) is Shape else item


def holds_sizes(items: Sequence[Any]) -> bool:
    """Whether sizes that are not known are in types or attributes."""
    return any(map(_symbols, items))


def _bindings(symbols: Set[str], trials: Sequence[int] = _TRIALS) -> List[Dict[str, int]]:
    """Numbers for symbols, several times; none if there are no symbols.  Sizes of the caller's arrays are not too small."""
    places = [(symbol, i, symbol.startswith(FREE)) for i, symbol in enumerate(sorted(symbols))]
    return [{symbol: _tried(trial, _apart(i, k), symbol) if is_free else trial + _apart(i, k)
             for symbol, i, is_free in places} for k, trial in enumerate(trials)] if symbols else []


def _apart(i: int, k: int) -> int:
    """What the i-th symbol has more in the k-th trial: no sum of sizes is a multiple of another size in all of the trials."""
    return 13 * i + 4 * (i * i * (k + 1) % 5)


def _tried(trial: int, more: int, symbol: str) -> int:
    """A number for a size of the caller's arrays; for all that may be one, that is tried, too: it is a size like no other."""
    least, most = at_least(symbol), at_most(symbol)
    if trial == least == 1:
        return 1
    size = max(trial, 3 if trial == 1 else 0) + more + max(least - 2, 0)
    rest, step = rest_of(symbol)
    if rest:                                            # the least of it may be one: that is tried as well
        return size - size % step + step + rest if trial == 1 or size % step < rest else size
    if most is None or size <= most:
        return size
    count = most + 1 - least
    return least + (size - least) % (count - (count % 13 == 0))    # `_apart` counts in steps of 13


def _symbols(item: Any) -> Set[str]:
    """The symbols in types, sizes and symbolic arrays, and in tuples, lists and slices of these."""
    kind = type(item)
    if kind in _WITHOUT_SYMBOLS:
        return set()
    if isinstance(item, Dim):
        return set(item.symbols)
    if kind is Tensor:
        item, kind = item.shape, tuple
    if kind is dict:
        item, kind = tuple(item.values()), tuple
    if isinstance(item, (tuple, list)) or kind is slice:
        parts = (item.start, item.stop, item.step) if kind is slice else item
        return set().union(*[_symbols(part) for part in parts if type(part) not in _WITHOUT_SYMBOLS])
    return _symbols(item.type) if _is_array(kind) else set()


def _is_array(kind: type) -> bool:
    """Whether this is `SymbolicArray`, whose module imports this one."""
    return hasattr(kind, "is_scalar")


_WITHOUT_SYMBOLS = frozenset((int, float, bool, str, type(None), np.ndarray))


def bound(item: Any, bindings: Dict[str, int]) -> Any:
    """The item with numbers for symbols; an array in place of a symbolic one, but for arrays without dimensions.

    Raises `SizeNeeded` for a quotient by the size of an array that has no elements for these numbers.
    """
    if isinstance(item, (Dim, Tensor)):
        sizes = (item.plain,) if isinstance(item, Dim) else item.shape
        try:
            numbers = evaluate_shape(sizes, bindings)
        except ZeroDivisionError as error:
            raise SizeNeeded("whether there are elements", sum(map(Dim, sorted(_symbols(sizes))))) from error
        return numbers[0] if isinstance(item, Dim) else replace(item, shape=numbers)
    if type(item) is slice:
        return slice(*[bound(part, bindings) for part in (item.start, item.stop, item.step)])
    if isinstance(item, (tuple, list)):
        return (tuple if isinstance(item, tuple) else list)([bound(part, bindings) for part in item])
    if type(item) is dict:
        return {key: bound(part, bindings) for key, part in item.items()}
    if _is_array(type(item)) and item.type.shape:
        return np.broadcast_to(np.zeros((), item.dtype), evaluate_shape(item.type.shape, bindings))
    return item


def check_types(capture: CaptureContext, node: Any, types: Sequence[Any], typed: Callable[[Any], Any]) -> None:
    """Let Chainer check the types of operands of a function node.

    Where sizes are not known, it must be content with whatever they are tried with: SizeNeeded is raised otherwise, and
    its cause is what Chainer says, if that is the same for all sizes.
    """
    own = {name: item for name, item in node.__dict__.items() if type(item) not in _WITHOUT_SYMBOLS and _symbols(item)}
    symbols = _symbols(list(types)).union(*map(_symbols, own.values()))
    if not symbols:
        node._check_data_type_forward(tuple(map(typed, types)))

    def misfit(bindings: Dict[str, int]) -> Optional[Exception]:
        """What Chainer raises for these numbers."""
        numbered = [bound(t, bindings) for t in types]
        if any(isinstance(t, Tensor) and t.size > _MOST_ELEMENTS for t in numbered):
            return None
        node.__dict__.update({name: bound(item, bindings) for name, item in own.items()})
        try:
            node._check_data_type_forward(tuple(map(typed, numbered)))
        except Exception as error:                      # functions of the user's check as they like
            return error
        finally:
            node.__dict__.update(own)
        return None
    tried = _bindings(symbols, _TRIALS + _LARGE)
    error = next(filter(None, map(misfit, tried)), None)
    if error is not None:
        if not all(symbol.startswith(FREE) for symbol in symbols):
            capture.abort(UNSURE_SIZES, assumed=_assumption(types, symbols, tried, misfit))
        others = {symbol: min(_DIVISIBLE, at_most(symbol) or _DIVISIBLE) for symbol in symbols}
        alone = [symbol for symbol in sorted(symbols) if any(misfit({**others, symbol: numbers[symbol]}) for numbers in tried)]
        limits = limits_in([n for t in types if isinstance(t, Tensor) for n in t.shape])
        always = all([str(misfit(numbers)) == str(error) for numbers in tried])
        raise SizeNeeded("whether an array fits", sum(map(Dim, alone or sorted(symbols))), limits) from (error if always else None)


def _assumption(types: Sequence[Any], symbols: Set[str], tried: Sequence[Dict[str, int]],
                misfit: Callable[[Dict[str, int]], Optional[Exception]]) -> Optional[Tuple[str, Any]]:
    """The symbol of a size that only the run knows, and a size of the caller's arrays with which all is right; None if none is."""
    given = dict.fromkeys([n.plain if isinstance(n, Dim) else n for t in types if isinstance(t, Tensor) for n in t.shape])
    wanted = [n for n in given if n not in (0, 1) and all(symbol.startswith(FREE) for symbol in _symbols(n))]
    return next(((symbol, n) for symbol in sorted(symbols) if not symbol.startswith(FREE) for n in wanted
                 if not any(misfit({**numbers, symbol: bound(n, numbers)}) for numbers in tried)), None)


def infer_sized(infer: Callable, function: Callable, template: Any, types: Sequence[Any], new: Any) \
        -> Tuple[Any, Tuple[Any, ...], Tuple[Tuple[str, int, int], ...]]:
    """What `stand_ins.infer` gives, and the sizes that only the run knows: (symbol, result, axis).

    Where sizes of operands are not known, those of results are learned from how they follow them, if there is a rule for that.
    types: of the operands; the `Dim` for one that is a size.
    new: the `NewSizes` of the call, which gives a size for one that contents decide.
    """
    if not holds_sizes(types):
        found = infer(function, template, types)
        structure, leaves = found[0]
        if all([other == leaves for _, other in found[1:]]) and not any([isinstance(leaf, Dynamic) for leaf in leaves]):
            return structure, tuple(leaves), ()
    exact = result_of(function, template, types) if _symbols(types) else None
    names: Dict[str, Dim] = {}
    if exact is None:
        types = [_named(t, names) for t in types]
    symbols, given = sorted(_symbols(types)), [size for t in types for size in dims_in(t) if size.is_polynomial]
    trials = _bindings(set(symbols)) or [{}]
    try:
        tried = [infer(function, template, [bound(t, bindings) for t in types]) for bindings in trials]
    except Exception as error:                          # of any kind, of NumPy's
        limits = limits_in(names.values())
        if not limits:
            raise
        raise SizeNeeded("whether arrays fit", sum(map(Dim, limits)), limits) from error
    structure, first = tried[0][0]
    if exact is not None:
        return structure, (exact,), ()
    free = [symbol for name in symbols for symbol in names.get(name, Dim(name)).symbols if symbol.startswith(FREE)]
    leaves, extents = [], []
    for i, leaf in enumerate(first):
        each = [[leaves[i] for _, leaves in found] for found in tried]
        _check_alike(leaf, [t for found in each for t in found])
        if not isinstance(leaf, Tensor):
            leaves.append(leaf)
            continue
        if leaf.ndim and free and not follows(function, new.name, template, [t for t in types if isinstance(t, Dim)]):
            raise SizeNeeded(f"the shape of what numpy {new.name} gives", sum(map(Dim, free)))
        shape: List[Any] = []
        for axis in range(leaf.ndim):
            found = [[t.shape[axis] for t in types_] for types_ in each]
            is_alike = all(len(set(numbers)) == 1 for numbers in found)
            size = _fitted([numbers[0] for numbers in found], trials, names, given) if is_alike else None
            if size is None:
                size = new.size(found[0] if len(found) == 1 else found, i, axis)
                extents += [(symbol, i, axis) for symbol in size.symbols if size == Dim(symbol) and size in new.fresh]
            shape.append(size)
        leaves.append(replace(leaf, shape=tuple(shape)))
    return structure, tuple(leaves), tuple(extents)


def _check_alike(leaf: Any, found: Sequence[Any]) -> None:
    """Raise ValueError where trials gave results of several types, whatever their sizes."""
    if isinstance(leaf, Dynamic):
        raise ValueError("the result is an object")
    if any(type(t) is not type(leaf) or t.dtype != leaf.dtype for t in found) or \
            isinstance(leaf, Tensor) and any(t.ndim != leaf.ndim for t in found) or \
            isinstance(leaf, Scalar) and any(t != leaf for t in found):
        raise ValueError("the type of the result depends on contents, or on a size that is not known")


def fitted_types(trials: Sequence[Tuple[Mapping[str, int], Sequence[Any]]], names: Mapping[str, Dim] = {}) \
        -> Optional[Tuple[Any, ...]]:
    """The types that are these for these numbers of the symbols; None if they do not follow from those.

    names: the sizes that some of the symbols stand for.
    """
    found = []
    for each in zip(*[types for _, types in trials]):
        if len({(type(t), t.dtype, getattr(t, "ndim", None)) for t in each}) > 1:
            return None
        shape = [_fitted(numbers, [bindings for bindings, _ in trials], names) for numbers in zip(*[t.shape for t in each])] \
            if isinstance(each[0], Tensor) else []
        if None in shape:
            return None
        found.append(replace(each[0], shape=tuple(shape)) if isinstance(each[0], Tensor) else each[0])
    return tuple(found)


def tried_with(items: Any) -> List[Tuple[Dict[str, int], Any]]:
    """The items with numbers for the sizes in them, several times, and these numbers; as they are if there are no sizes."""
    return [(numbers, bound(items, numbers)) for numbers in _bindings(_symbols(items))] or [({}, items)]


def few_trials(items: Sequence[Any], types: Sequence[Any]) -> Optional[List[Dict[str, int]]]:
    """Sample numbers for the sizes in items and types, enough to decide for all sizes.  None where samples cannot decide."""
    symbols, names = _symbols([*items, *types]), {}         # type: Set[str], Dict[str, Dim]
    for type_ in types:
        _named(type_, names)
    if names or not all(symbol.startswith(FREE) for symbol in symbols):
        return None
    return _bindings(symbols, (5, 2)) or [{}]


def _named(item: Any, names: Dict[str, Dim]) -> Any:
    """The type or size with a symbol for every size that is no sum and product of symbols; ``names``: these sizes."""
    if isinstance(item, Tensor):
        return replace(item, shape=tuple([_named(n, names) for n in item.shape]))
    if not isinstance(item, Dim) or item.is_polynomial:
        return item
    name = next((name for name, size in names.items() if size == item), None)
    if name is None:
        name = f"_{len(names)}"
        names[name] = item.plain
    return Dim(name)


def _fitted(found: Sequence[int], trials: Sequence[Mapping[str, int]], names: Mapping[str, Dim] = {},
            given: Sequence[Dim] = ()) -> Any:
    """The size that is these numbers in the trials; None if it does not follow from those of the operands.

    names: the sizes that some of the symbols stand for.  given: sizes of the operands, of which it may be one.
    """
    if len(set(found)) == 1:
        return found[0]
    for size in given:
        if not names.keys() & set(size.symbols) and all(evaluate(size, numbers) == n for numbers, n in zip(trials, found)):
            return size
    symbols = list(trials[0])
    for i, symbol in enumerate(symbols):
        for other in (None, *symbols[i:]):                  # a multiple of one, or of a product of two
            size: Any = Dim(symbol) * (1 if other is None else Dim(other))
            numbers = [evaluate(size, bindings) for bindings in trials]
            k = next((k for k, number in enumerate(numbers) if number != numbers[0]), 0)
            if k == 0:
                continue
            size = names.get(symbol, Dim(symbol)) * (1 if other is None else names.get(other, Dim(other)))
            slope = (found[k] - found[0]) // (numbers[k] - numbers[0])
            rest = found[0] - slope * numbers[0]
            if all(slope * number + rest == n for number, n in zip(numbers, found)) and (rest == 0 or len(symbols) == 1):
                return size * slope + rest
    return None
