"""Assignments that may give another array to a Variable that a part has made: its node would not notice that."""
from __future__ import annotations

from typing import Iterator, Set

import gast

from ..pyast import scopes

#: Functions that give the items of what they are given, each by itself.
_IN_ANOTHER_ORDER = ("list", "tuple", "sorted", "reversed")


def rebinds_variables(tree: gast.FunctionDef) -> bool:
    """Whether a name whose ``array`` is assigned may stand for such a Variable.

    ``h.array *= 2`` leaves the array what it was, as ``h.array[...] *= 2`` does.
    """
    changed = {id(node.target) for node in scopes.walk(tree) if isinstance(node, gast.AugAssign)}
    given = {node.value.id for node in scopes.walk(tree)
             if isinstance(node, gast.Attribute) and node.attr in ("array", "data") and isinstance(node.ctx, gast.Store)
             and isinstance(node.value, gast.Name) and id(node) not in changed}
    return bool(given) and not given <= _parameters(tree)


def _parameters(tree: gast.FunctionDef) -> Set[str]:
    """The names that are bound by loops over Parameters of Links only."""
    loops = [node for node in scopes.walk(tree) if isinstance(node, gast.For)]
    bound = {id(name): name.id for loop in loops for name in _bound(loop.target, loop.iter)}
    others = {node.id for node in scopes.walk(tree)
              if isinstance(node, gast.Name) and not isinstance(node.ctx, gast.Load) and id(node) not in bound}
    return set(bound.values()) - others


def _bound(target: gast.AST, items: gast.AST) -> Iterator[gast.Name]:
    """The names in the target of a loop that its items, or parts of them, give Parameters to."""
    if not isinstance(items, gast.Call):
        return
    name = getattr(items.func, "attr", getattr(items.func, "id", ""))
    parts = target.elts if isinstance(target, (gast.Tuple, gast.List)) else []
    if isinstance(items.func, gast.Attribute):          # methods of Links: no part makes the Parameters of one
        found = target if name == "params" else parts[1] if name == "namedparams" and len(parts) == 2 else None
        if isinstance(found, gast.Name):
            yield found
    elif name in _IN_ANOTHER_ORDER and items.args:
        yield from _bound(target, items.args[0])
    elif name == "enumerate" and items.args and len(parts) == 2:
        yield from _bound(parts[1], items.args[0])
    elif name == "zip" and len(parts) == len(items.args):
        for part, argument in zip(parts, items.args):
            yield from _bound(part, argument)
