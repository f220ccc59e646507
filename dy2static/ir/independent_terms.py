"""Parts of a sum that have no symbol in common: what one of them is at least does not depend on the others."""
from __future__ import annotations

from typing import Any, FrozenSet, List, Sequence, Set, Tuple

#: A product of atoms, and its factor.
_Term = Tuple[Tuple[Any, ...], int]


def symbols_in(monomial: Sequence[Any]) -> FrozenSet[str]:
    """The names that a product of atoms depends on."""
    names: Set[str] = set()
    for atom in monomial:
        names.update(atom.args if atom.kind == "symbol" else
                     [name for arg in atom.args if not isinstance(arg, int) for name in arg.symbols])
    return frozenset(names)


def independent(terms: Sequence[_Term]) -> List[List[_Term]]:
    """The terms in groups of which no two have a symbol in common."""
    groups: List[Tuple[FrozenSet[str], List[_Term]]] = []
    for term in terms:
        names = symbols_in(term[0])
        joined = [group for group in groups if not names.isdisjoint(group[0])]
        groups = [group for group in groups if names.isdisjoint(group[0])]
        groups.append((names.union(*[known for known, _ in joined]), [*[each for _, group in joined for each in group], term]))
    return [group for _, group in groups]
