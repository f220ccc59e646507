"""What sizes are at least and at most."""
from __future__ import annotations

from typing import Dict, Iterable, List, Optional, Tuple

from .dims import Dim, Size, _Atom, _from_atom, _is_single, _lower_bound, less
from .size_symbols import FREE


def limits_in(sizes: Iterable[Size]) -> Dict[str, int]:
    """The numbers that sizes of the caller's arrays are compared with in maxima, ``max(n, 64)``: the least for each symbol."""
    found: Dict[str, int] = {}
    for atom in [atom for size in sizes if isinstance(size, Dim) for monomial, _ in size._terms for atom in monomial]:
        if atom.kind == "max" and len(atom.args) == 2 and isinstance(atom.args[1], int):
            size, added = _without_number(atom.args[0])
            if _is_single(size, "symbol"):
                symbol, = size.symbols
                limit = atom.args[1] - added
                found[symbol] = min(limit, found.get(symbol, limit))
    return {symbol: number for symbol, number in found.items() if symbol.startswith(FREE)}


def divisors_in(size: Size) -> Dict[str, int]:
    """The numbers by which a size of the caller's arrays is divided, with or without something added: one for each symbol."""
    atoms = [atom for monomial, _ in size._terms for atom in monomial if atom.kind == "//"] if isinstance(size, Dim) else []
    return {symbol: atom.args[1] for atom in atoms if isinstance(atom.args[0], Dim) and isinstance(atom.args[1], int)
            for symbol in atom.args[0].symbols if symbol.startswith(FREE) and atom.args[1] > 1}


def bounds_of(size: Size) -> Tuple[Optional[int], Optional[int]]:
    """A number that a size is never below, and one that it is never above; None for what is not known."""
    above = _lower_bound(-size)
    return _lower_bound(size), None if above is None else -above


def may_exceed(size: Size, limit: int) -> bool:
    """Whether a size is above a limit, as far as is known."""
    return not isinstance(size, int) or size > limit


def not_below(a: Size, b: Size) -> bool:
    """Whether ``a >= b`` for sure."""
    return less(a, b) is False


def at_least_one(size: Size) -> Size:
    """The size, or one in place of zero."""
    return max(size, 1) if isinstance(size, int) else size


def is_positive(size: Size) -> bool:
    """Whether a size is above zero wherever all its symbols are."""
    if isinstance(size, int):
        return size > 0
    return less(0, size) or all(factor > 0 and all(atom.kind == "symbol" for atom in monomial) for monomial, factor in size._terms)


def maximum(*sizes: Size) -> Size:
    """The largest of the sizes, as an int where that is known."""
    candidates: List[Size] = []
    for size in sizes:
        parts = size._terms[0][0][0].args if isinstance(size, Dim) and _is_single(size, "max") else (size,)
        candidates += [part for part in parts if part not in candidates]
    kept = [size for i, size in enumerate(candidates)
            if not any(_dominates(other, size) for j, other in enumerate(candidates) if j != i)]
    if len(kept) == 1:
        return kept[0]
    return _from_atom(_Atom("max", tuple(sorted(kept, key=lambda size: (isinstance(size, int), str(size))))))


def minimum(a: Size, b: Size) -> Size:
    """The smaller of two sizes."""
    return a + b - maximum(a, b)


def not_negative(size: Size) -> Size:
    """The size, or zero in place of one that is below.

    A number that is added to a maximum is part of what it is a maximum of, so that ``x[1:]`` and ``x[:-1]`` have one size.
    """
    whole, added = _without_number(size)
    if isinstance(whole, Dim) and _is_single(whole, "max"):
        return maximum(0, *[part + added for part in whole._terms[0][0][0].args])
    return maximum(0, size)


def _without_number(size: Size) -> Tuple[Size, int]:
    """A size as one without a number that is added, and this number."""
    added = dict(size._terms).get((), 0) if isinstance(size, Dim) else size
    return size - added, added


def _dominates(a: Size, b: Size) -> bool:
    """Whether ``a`` is never below ``b``."""
    bound = _lower_bound(a - b)
    return bound is not None and bound >= 0
