"""Sizes that are not known yet: integer expressions over named symbols, in one canonical form.

A `Dim` is a polynomial with integer coefficients whose atoms are symbols, floor divisions and maxima.  Arithmetic
with ints and other dims gives a `Dim`, or an int as soon as no symbol is left.  Symbols stand for sizes, so they
are never negative; their names say more of them (`size_symbols`).
"""
from __future__ import annotations

import functools
import math
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from .independent_terms import independent, symbols_in
from .size_symbols import at_least, at_most, least_rest

#: What a size in a shape is.
Size = Union[int, "Dim"]
#: A product of atoms: the atoms in order, repeated as often as their power.
_Monomial = Tuple["_Atom", ...]


class _Atom:
    """A symbol, ``a // b`` or ``max(a, b, ...)``: an indivisible factor of a polynomial."""

    __slots__ = ("kind", "args", "_key")

    def __init__(self, kind: str, args: Tuple[Any, ...]):
        self.kind, self.args = kind, args
        self._key = (kind, args)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Atom) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        if self.kind == "symbol":
            return str(self.args[0])
        if self.kind == "max":
            return f"max({', '.join(map(str, self.args))})"
        return " // ".join(str(arg) if _is_plain(arg) else f"({arg})" for arg in self.args)


class Dim:
    """A size as a canonical polynomial.  Make symbols with ``Dim("n")``; combine them with ``+ - * //``.

    ``==`` compares canonical forms; `equal` also answers "no" and "unknown".
    """

    __slots__ = ("_terms", "_hash")

    def __init__(self, name: str):
        self._set(((((_Atom("symbol", (name,)),), 1)),))

    def _set(self, terms: Tuple[Tuple[_Monomial, int], ...]) -> None:
        self._terms = terms
        self._hash = hash(terms)

    @property
    def plain(self) -> "Dim":
        """The size as a plain `Dim`; subclasses carry more."""
        return self

    @property
    def symbols(self) -> Tuple[str, ...]:
        """The names this size depends on, sorted."""
        return tuple(sorted(frozenset().union(*[symbols_in(monomial) for monomial, _ in self._terms])))

    @property
    def is_polynomial(self) -> bool:
        """Whether this is a sum of products of symbols."""
        return all(atom.kind == "symbol" for monomial, _ in self._terms for atom in monomial)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Dim) and self._terms == other._terms

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        raise TypeError(f"the size {self} is not known yet, so it is neither zero nor not zero")

    def __add__(self, other: Any) -> Size:
        return _combine(self, other, _add)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Size:
        return _combine(self, other, lambda a, b: _add(a, _scale(b, -1)))

    def __rsub__(self, other: Any) -> Size:
        return _combine(other, self, lambda a, b: _add(a, _scale(b, -1)))

    def __mul__(self, other: Any) -> Size:
        return _combine(self, other, _multiply)

    __rmul__ = __mul__

    def __neg__(self) -> Size:
        return self * -1

    def __floordiv__(self, other: Any) -> Size:
        return floordiv(self, other) if isinstance(other, (int, Dim)) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Size:
        return floordiv(other, self) if isinstance(other, (int, Dim)) else NotImplemented

    def __mod__(self, other: Any) -> Size:
        return self - self // other * other

    def __rmod__(self, other: Any) -> Size:
        return other - other // self * self

    def __repr__(self) -> str:
        return f"Dim({str(self)!r})"

    def __str__(self) -> str:
        text = ""
        for monomial, factor in self._terms:
            factors = [f"({atom})" if atom.kind == "//" else str(atom) for atom in monomial]
            if abs(factor) != 1 or not factors:
                factors.insert(0, str(abs(factor)))
            # ``-n // 2`` is another number than ``-(n // 2)``
            is_bare = len(factors) == 1 and monomial and (text or factor > 0)
            body = str(monomial[0]) if is_bare else " * ".join(factors)
            text += f" {'-' if factor < 0 else '+'} {body}" if text else ("-" if factor < 0 else "") + body
        return text


def as_multiple(size: Size) -> Optional[Tuple[str, int]]:
    """(symbol, factor) of a size that is a symbol or a multiple of one: the axis of an array with it gives the symbol's number."""
    if not isinstance(size, Dim) or len(size._terms) != 1:
        return None
    (monomial, factor), = size._terms
    return (monomial[0].args[0], factor) if factor > 0 and len(monomial) == 1 and monomial[0].kind == "symbol" else None


def equal(a: Size, b: Size) -> Optional[bool]:
    """Whether two sizes are equal: True, False, or None when that depends on the symbols."""
    if a is b or a == b:
        return True
    difference = a - b
    if isinstance(difference, int):
        return difference == 0
    below, above = _lower_bound(difference), _lower_bound(-difference)
    if (below is not None and below > 0) or (above is not None and above > 0):
        return False
    factors = [factor for monomial, factor in difference._terms if monomial]
    if dict(difference._terms).get((), 0) % math.gcd(*factors):
        return False
    return None


def less(a: Size, b: Size) -> Optional[bool]:
    """Whether ``a < b``: True, False, or None when that depends on the symbols."""
    above, below = _lower_bound(b - a), _lower_bound(a - b)
    if above is not None and above > 0:
        return True
    return False if below is not None and below >= 0 else None


def is_known(size: Size) -> bool:
    """Whether a size is a number."""
    return isinstance(size, int)


def floordiv(a: Size, b: Size) -> Size:
    """``a // b``, as an int or a plain polynomial where the division is known."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if b == 1:
        return a
    if isinstance(b, Dim) and (_lower_bound(b) or 0) > 0:
        quotient = _exact_quotient(a, b)
        if quotient is not None:
            return quotient
    if isinstance(a, Dim) and isinstance(b, int) and b > 0 and _is_single(a, "//"):
        inner, by = a._terms[0][0][0].args
        if isinstance(by, int) and by > 0:
            return floordiv(inner, by * b)              # nested quotients would take twice the time at each level
    if isinstance(a, Dim) and isinstance(b, int) and b != 0:
        whole = {m: f // b for m, f in a._terms if f % b == 0}
        rest = {m: f for m, f in a._terms if f % b}
        constant = rest.pop((), 0)
        if constant:                # (n + 5) // 2 becomes (n + 1) // 2 + 2: one form for equal values
            whole[()] = whole.get((), 0) + constant // b
            rest[()] = constant % b
        remainder = _from_terms(rest)
        if constant and constant % b == b - 1 and _least_rest(remainder - constant % b, b):
            return _from_terms(whole) + floordiv(remainder - constant % b, b) + 1       # (n + 1) // 2 of an odd n
        if b > 0 and isinstance(remainder, Dim) and all(factor < 0 for monomial, factor in rest.items() if monomial):
            return _from_terms(whole) - floordiv(b - 1 - remainder, b)      # -n // 4 becomes -((n + 3) // 4), which is above zero
        inner = remainder // b if isinstance(remainder, int) else _quotient(_Atom("//", (remainder, b)))
        return _from_terms(whole) + inner
    return _from_atom(_Atom("//", (a, b)))


def _quotient(atom: _Atom) -> Size:
    """A quotient as a size; its number, where the symbols have bounds between which it is the same."""
    most = _atom_limit(atom)
    return most if most is not None and _atom_bound(atom) == most else _from_atom(atom)


def _exact_quotient(a: Size, b: "Dim") -> Optional[Size]:
    """``a / b`` where that is a polynomial with whole factors, by long division; None where not."""
    rest, quotient = _terms_of(a), {}           # type: Dict[_Monomial, int], Dict[_Monomial, int]
    divisor, by = max(b._terms, key=_degree)
    while rest:
        monomial, factor = max(rest.items(), key=_degree)
        more = list(monomial)
        for atom in divisor:
            if atom not in more:
                return None
            more.remove(atom)
        if factor % by:
            return None
        quotient[tuple(more)] = factor // by
        rest = _terms_of(_from_terms(rest) - _from_terms(_multiply({tuple(more): factor // by}, _terms_of(b))))
    return _from_terms(quotient)


def _degree(term: Tuple[_Monomial, int]) -> Tuple[int, List[str]]:
    """What terms are put into an order by, so that that of a product is the product of those of its factors."""
    return len(term[0]), [str(atom) for atom in term[0]]


def evaluate(size: Size, bindings: Mapping[str, int]) -> int:
    """The number a size stands for.  Raises KeyError for a symbol that has no value in ``bindings``."""
    if not isinstance(size, Dim):
        return int(size)
    total = 0
    for monomial, factor in size._terms:
        for atom in monomial:
            if atom.kind == "symbol":
                factor *= bindings[atom.args[0]]
            else:
                args = [evaluate(arg, bindings) for arg in atom.args]
                factor *= max(args) if atom.kind == "max" else args[0] // args[1]
        total += factor
    return total


def _is_plain(value: Any) -> bool:
    return isinstance(value, int) or _is_single(value, "symbol") or _is_single(value, "max")


def _is_single(size: "Dim", kind: str) -> bool:
    """Whether the size is one atom of this kind, with factor 1."""
    if len(size._terms) != 1:
        return False
    monomial, factor = size._terms[0]
    return factor == 1 and len(monomial) == 1 and monomial[0].kind == kind


def _terms_of(size: Size) -> Dict[_Monomial, int]:
    if isinstance(size, Dim):
        return dict(size._terms)
    return {(): int(size)} if size else {}


def _from_terms(terms: Mapping[_Monomial, int]) -> Size:
    """The canonical size: no zero terms, monomials in order, constants last; an int if only a constant is left."""
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept or list(kept) == [()]:
        return kept.get((), 0)
    dim = Dim.__new__(Dim)
    dim._set(tuple(sorted(kept.items(), key=lambda term: (not term[0], [str(atom) for atom in term[0]]))))
    return dim


def _from_atom(atom: _Atom) -> Size:
    return _from_terms({(atom,): 1})


def _combine(a: Any, b: Any, rule: Callable[..., Dict[_Monomial, int]]) -> Any:
    if not (isinstance(a, (int, Dim)) and isinstance(b, (int, Dim))):
        return NotImplemented
    return _from_terms(rule(_terms_of(a), _terms_of(b)))


def _add(a: Mapping[_Monomial, int], b: Mapping[_Monomial, int]) -> Dict[_Monomial, int]:
    total = dict(a)
    for monomial, factor in b.items():
        total[monomial] = total.get(monomial, 0) + factor
    return total


def _scale(a: Mapping[_Monomial, int], factor: int) -> Dict[_Monomial, int]:
    return {monomial: f * factor for monomial, f in a.items()}


def _multiply(a: Mapping[_Monomial, int], b: Mapping[_Monomial, int]) -> Dict[_Monomial, int]:
    total: Dict[_Monomial, int] = {}
    for m, f in a.items():
        for n, g in b.items():
            monomial = tuple(sorted(m + n, key=str))
            total[monomial] = total.get(monomial, 0) + f * g
    return total


def _lower_bound(size: Size) -> Optional[int]:
    """A number the size is never below, or None if none is known."""
    return _bound_of(size.plain) if isinstance(size, Dim) else size


@functools.lru_cache(maxsize=4096)
def _bound_of(size: Dim) -> Optional[int]:
    groups = independent(size._terms)
    if len(groups) > 1:                                 # not all of them at once: each maximum doubles the cases
        bounds = [_lower_bound(_from_terms(dict(group))) for group in groups]
        return None if None in bounds else sum(bounds)  # type: ignore[arg-type]
    known = [bound for bound in (_bound_by_terms(size), _bound_without_quotients(size)) if bound is not None]
    return max(known, default=None)


def _bound_by_terms(size: Dim) -> Optional[int]:
    """A lower bound that is the sum of those of the terms."""
    total = 0
    for monomial, factor in sorted(size._terms, key=lambda term: [atom.kind for atom in term[0]] != ["max"]):
        if len(monomial) == 1 and monomial[0].kind == "max":
            return _bound_by_cases(size, monomial, factor)
        least = [_atom_bound(atom) for atom in monomial]
        bounds = least if factor > 0 else [_atom_limit(atom) for atom in monomial]
        if not monomial:
            total += factor
        elif None in bounds or len(least) > 1 and any(bound is None or bound < 0 for bound in least):
            return _bound_from_least(size)
        else:
            total += factor * math.prod(bounds)      # type: ignore[arg-type]
    return total


def _bound_without_quotients(size: Dim) -> Optional[int]:
    """A lower bound from ``a - b + 1 <= b * (a // b) <= a``: ``n - n // 2`` is not below ``n / 2``."""
    quotients = {monomial: monomial[0] for monomial, _ in size._terms if len(monomial) == 1 and monomial[0].kind == "//" and
                 isinstance(monomial[0].args[1], int) and monomial[0].args[1] > 0}
    if not quotients:
        return None
    scale, relaxed = math.lcm(*[atom.args[1] for atom in quotients.values()]), 0    # type: int, Size
    for monomial, factor in size._terms:
        if monomial in quotients:
            numerator, divisor = quotients[monomial].args
            rest = _least_rest(numerator, divisor) if factor < 0 else divisor - 1
            relaxed += factor * (scale // divisor) * (numerator - rest)
        else:
            relaxed += _from_terms({monomial: factor * scale})
    bound = _lower_bound(relaxed)
    return None if bound is None else -(-bound // scale)


def _least_rest(size: Size, divisor: int) -> int:
    """What a symbol leaves by a number, at least; 0 for other sizes."""
    symbol, factor = as_multiple(size) or ("", 1)
    return least_rest(symbol, divisor) if factor == 1 else 0


def _bound_from_least(size: Dim) -> Optional[int]:
    """A lower bound of a sum with negative products in it, like ``(m - 4) * (n - 4)``, counted from the least m and n."""
    atoms = {atom: _atom_bound(atom) for monomial, _ in size._terms for atom in monomial}
    if None in atoms.values() or all(len(monomial) < 2 for monomial, _ in size._terms):
        return None
    above = {atom: Dim(f"above_{i}") + least for i, (atom, least) in enumerate(atoms.items())}
    counted = sum(math.prod([above[atom] for atom in monomial], start=factor) for monomial, factor in size._terms)
    terms = _terms_of(counted)
    return None if min(factor for monomial, factor in terms.items() if monomial) < 0 else terms.get((), 0)


def _bound_by_cases(size: Dim, monomial: _Monomial, factor: int) -> Optional[int]:
    """A lower bound of a sum with a maximum in it: with each of its arguments instead."""
    rest = _from_terms({m: f for m, f in size._terms if m != monomial})
    bounds = [_lower_bound(rest + factor * arg) for arg in monomial[0].args]
    if factor < 0:
        return None if None in bounds else min(bounds)      # type: ignore[type-var]
    return max((bound for bound in bounds if bound is not None), default=None)


def _atom_bound(atom: _Atom) -> Optional[int]:
    if atom.kind == "symbol":
        return at_least(atom.args[0])
    bounds = [_lower_bound(arg) for arg in atom.args]
    if atom.kind == "max":
        known = [bound for bound in bounds if bound is not None]
        return max(known) if known else None
    numerator, divisor = bounds
    if numerator is None or divisor is None or divisor <= 0:
        return None
    return numerator // divisor if isinstance(atom.args[1], int) else min(numerator, 0)


def _atom_limit(atom: _Atom) -> Optional[int]:
    """A number that an atom is never above; None if none is known."""
    if atom.kind == "symbol":
        return at_most(atom.args[0])
    if atom.kind == "//" and isinstance(atom.args[1], int) and atom.args[1] > 0:
        below = _lower_bound(-atom.args[0])
        return None if below is None else -below // atom.args[1]
    return None
