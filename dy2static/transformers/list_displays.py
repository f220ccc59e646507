"""Lists that are assigned: they may come to grow under a decision on array values."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import Transformer, is_dy


class ListDisplays(Transformer):
    """Make lists that a statement assigns, and empty ones, known to ``_dy``; a capture can then follow their length.

    Before:
        rest, n = [], [a, b]
        d = [None] * len(n)
        h.rest = F(rest, more=[])
        c = [x * 2 for x in rest]
    After:
        rest, n = _dy.list_([]), _dy.list_([a, b])
        d = _dy.list_([None] * len(n))
        h.rest = F(rest, more=_dy.list_([]))
        c = _dy.list_([x * 2 for x in rest])
    """

    changes = (gast.Assign, gast.AnnAssign, gast.List)

    def visit_Assign(self, node: gast.Assign) -> Any:
        self.generic_visit(node)
        node.value = self._known(node.value)
        return node

    def visit_AnnAssign(self, node: gast.AnnAssign) -> Any:
        super().visit_AnnAssign(node)
        node.value = node.value and self._known(node.value)
        return node

    def visit_List(self, node: gast.List) -> Any:
        self.generic_visit(node)
        return node if node.elts or not isinstance(node.ctx, gast.Load) else self.quote("_dy.list_(items)", items=node)

    def visit_Call(self, node: gast.Call) -> Any:
        return node if _is_known(node) else self.generic_visit(node)

    def _known(self, value: gast.AST) -> gast.AST:
        if isinstance(value, gast.Tuple):
            value.elts = [self._known(item) for item in value.elts]
        if isinstance(value, (gast.List, gast.ListComp)) or _is_repeated(value):
            return self.quote("_dy.list_(items)", items=value)
        return value


def _is_repeated(node: gast.AST) -> bool:
    """Whether a list is repeated."""
    return isinstance(node, gast.BinOp) and isinstance(node.op, gast.Mult) and isinstance(node.left, gast.List)


def _is_known(node: gast.Call) -> bool:
    return is_dy(node) and node.func.attr == "list_"
