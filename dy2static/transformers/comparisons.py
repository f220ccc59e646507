"""Chained comparisons, ``in``, ``not in``, ``is`` and ``is not``."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, List

import gast

from dy2static.transformers.thunks import Thunks


class Comparisons(Thunks):
    """Make calls of the comparisons that Python itself decides.

    These are chains, ``in``, and ``is``, which must not take what stands for an object known only at run time
    for another one.  A single ``<`` or ``==`` asks its operands, and stays.  So does a chain where an operand
    after the second cannot be moved into a lambda.

    Before:
        return a < b <= c
        return a in rest, a not in rest, a is None, a is not b
    After:
        return _dy.compare(a, '<', b, '<=', lambda: c)
        return _dy.in_(a, rest), _dy.not_(_dy.in_(a, rest)), _dy.is_(a, None), _dy.is_not(a, b)
    """

    changes = (gast.Compare,)

    _SYMBOLS: ClassVar[Dict[type, str]] = {
        gast.Lt: "<",
        gast.LtE: "<=",
        gast.Gt: ">",
        gast.GtE: ">=",
        gast.Eq: "==",
        gast.NotEq: "!=",
        gast.Is: "is",
        gast.IsNot: "is not",
        gast.In: "in",
        gast.NotIn: "not in",
    }

    _CALLS: ClassVar[Dict[type, str]] = {
        gast.In: "_dy.in_(left, right)",
        gast.NotIn: "_dy.not_(_dy.in_(left, right))",
        gast.Is: "_dy.is_(left, right)",
        gast.IsNot: "_dy.is_not(left, right)",
    }

    def visit_Compare(self, node: gast.Compare) -> Any:
        movable = self.can_move(*node.comparators[1:])
        self.generic_visit(node)
        if len(node.ops) > 1:
            return self._chain(node) if movable else node
        template = self._CALLS.get(type(node.ops[0]))
        return self.quote(template, left=node.left, right=node.comparators[0]) if template else node

    def _chain(self, node: gast.Compare) -> gast.AST:
        rest: List[gast.AST] = []
        for op, operand in zip(node.ops, node.comparators):
            rest += [
                gast.Constant(self._SYMBOLS[type(op)], None),
                self.quote("lambda: value", value=operand) if rest else operand,
            ]
        return self.quote("_dy.compare(left, rest)", left=node.left, rest=rest)
