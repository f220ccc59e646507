"""``and``, ``or`` and ``not``."""

from __future__ import annotations

from typing import Any, ClassVar, Dict

import gast

from dy2static.transformers.base import count_as_truth
from dy2static.transformers.thunks import Thunks


class BooleanOperators(Thunks):
    """Make ``and``, ``or`` and ``not`` calls, so that symbolic operands can be staged; operands stay lazy.

    An ``and`` or ``or`` stays where an operand after the first cannot be moved into a lambda.  Where only the
    truth counts it may be of operands whose types differ.

    Before:  return (a and b or not c), not (a or b)
    After:   return _dy.or_(_dy.and_(a, lambda: b), lambda: _dy.not_(c)), _dy.not_(_dy.any_of(a, lambda: b))
    """

    changes = (gast.BoolOp, gast.UnaryOp)

    _NAMES: ClassVar[Dict[type, str]] = {gast.And: "_dy.and_", gast.Or: "_dy.or_"}
    _TRUTHS: ClassVar[Dict[type, str]] = {gast.And: "_dy.all_of", gast.Or: "_dy.any_of"}

    def visit_BoolOp(self, node: gast.BoolOp) -> Any:
        movable = self.can_move(*node.values[1:])
        self.generic_visit(node)
        if not movable:
            return node
        rest = [self.quote("lambda: value", value=value) for value in node.values[1:]]
        name = (self._TRUTHS if getattr(node, "counts_as_truth", False) else self._NAMES)[type(node.op)]
        return self.quote(f"{name}(first, rest)", first=node.values[0], rest=rest)

    def visit_comprehension(self, node: gast.comprehension) -> Any:
        for test in node.ifs:
            count_as_truth(test)
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: gast.UnaryOp) -> Any:
        count_as_truth(node)
        self.generic_visit(node)
        return self.quote("_dy.not_(value)", value=node.operand) if isinstance(node.op, gast.Not) else node
