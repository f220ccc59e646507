"""Where a training step gets its data: what Python does between compiled parts by design."""
from __future__ import annotations

from typing import FrozenSet

import gast

from ..pyast import scopes
from .statements import Place

#: What gives examples, and what makes arrays of them, by the names that Chainer has for it; and the step of a base class.
_FETCHES = frozenset(("next", "__next__", "update_core"))
_CONVERTS = frozenset(("converter", "_call_converter", "concat_examples"))


def places_of_data(tree: gast.FunctionDef) -> FrozenSet[Place]:
    """The expressions of a function that fetch and convert data, or ask whether an epoch is over."""
    return frozenset([Place.of(node) for node in scopes.own_nodes(*tree.body) if _is_of_data(node)])


def _is_of_data(node: gast.AST) -> bool:
    if isinstance(node, gast.Attribute):
        return node.attr == "is_new_epoch"
    if not isinstance(node, gast.Call):
        return False
    name = node.func.attr if isinstance(node.func, gast.Attribute) else getattr(node.func, "id", "")
    return name in _CONVERTS or name == "new_epoch" or name in _FETCHES and (isinstance(node.func, gast.Name) or not node.args)
