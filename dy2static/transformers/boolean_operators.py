"""``and``, ``or`` and ``not``."""

from __future__ import annotations

from typing import Any, ClassVar, Dict

import gast

from dy2static.transformers.thunks import Thunks


class BooleanOperators(Thunks):
    """Make ``and``, ``or`` and ``not`` calls, so that symbolic operands can be staged; operands stay lazy.

    An ``and`` or ``or`` stays where an operand after the first cannot be moved into a lambda.

    Before:  return a and b or not c
    After:   return _dy.or_(_dy.and_(a, lambda: b), lambda: _dy.not_(c))
    """

    changes = (gast.BoolOp, gast.UnaryOp)

    _NAMES: ClassVar[Dict[type, str]] = {gast.And: "_dy.and_", gast.Or: "_dy.or_"}

    def visit_BoolOp(self, node: gast.BoolOp) -> Any:
        movable = self.can_move(*node.values[1:])
        self.generic_visit(node)
        if not movable:
            return node
        rest = [self.quote("lambda: value", value=value) for value in node.values[1:]]
        return self.quote(f"{self._NAMES[type(node.op)]}(first, rest)", first=node.values[0], rest=rest)

    def visit_UnaryOp(self, node: gast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self.quote("_dy.not_(value)", value=node.operand) if isinstance(node.op, gast.Not) else node
