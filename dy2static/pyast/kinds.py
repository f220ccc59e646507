"""Which kinds of nodes may be in a tree, so that searches can skip it."""

from __future__ import annotations

import functools
from typing import Dict, Tuple

import gast

#: Every kind of node has a bit.
BITS: Dict[type, int] = {
    kind: 1 << number
    for number, kind in enumerate(
        kind for kind in vars(gast).values() if isinstance(kind, type) and issubclass(kind, gast.AST)
    )
}

#: The bit of what binds names, or makes them unbound, in the scope that it stands in; also those in comprehensions.
BINDS = max(BITS.values()) << 1

_BLOCKS = frozenset(
    kind
    for kind in BITS
    if not {"body", "cases"}.isdisjoint(getattr(kind, "_fields", ())) and not issubclass(kind, gast.expr)
)


@functools.lru_cache(maxsize=None)
def bits_of(kinds: Tuple[type, ...]) -> int:
    """The bits of these classes of nodes, and of their subclasses."""
    return sum(bit for kind, bit in BITS.items() if issubclass(kind, kinds))


def may_hold(node: gast.AST, bits: int) -> bool:
    """Whether there may be nodes of some kinds in a tree.

    An expression or simple statement holds what it did when it was made (`trees.Reader` and `templates` note that in
    ``holds``), and calls of ``_dy`` that transformers put in.  Blocks may come to hold anything.
    """
    return node.__class__ in _BLOCKS or node.__dict__.get("holds", -1) & bits != 0


def is_block(kind: type) -> bool:
    """Whether nodes of a kind hold statements."""
    return kind in _BLOCKS
