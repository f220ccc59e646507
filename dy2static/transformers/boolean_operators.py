"""``and``, ``or`` and ``not``."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, Set

import gast

from dy2static.pyast import assigned, scopes
from dy2static.transformers.base import Transformer
from dy2static.transformers.frames import counts_frames
from dy2static.transformers.if_else import IfElse


class BooleanOperators(Transformer):
    """Make ``and``, ``or`` and ``not`` calls, so that symbolic operands can be staged; operands stay lazy.

    An ``and`` or ``or`` stays where an operand after the first cannot be moved into a lambda: it binds a name
    (``:=``), yields, calls ``super()``, stands in a class body, or reads a local that may have no value yet.

    Before:  return a and b or not c
    After:   return _dy.or_(_dy.and_(a, lambda: b), lambda: _dy.not_(c))
    """

    requires = (IfElse,)  # it must see which functions of the user capture a name; here many get made

    _NAMES: ClassVar[Dict[type, str]] = {gast.And: "_dy.and_", gast.Or: "_dy.or_"}
    _FIXED: ClassVar = (gast.NamedExpr, gast.Yield, gast.YieldFrom, gast.Await)

    def start(self) -> None:
        self.unsure: Set[gast.AST] = set()      # the reads of locals that may have no value
        if not any(isinstance(node, gast.BoolOp) for node in scopes.walk(self.tree)):
            return
        found = scopes.analyse(self.tree)
        for node in found:
            if isinstance(node, gast.FunctionDef):
                known = assigned.analyse(node, found)
                self.unsure |= known.unsure | known.unsure_inside

    def visit_BoolOp(self, node: gast.BoolOp) -> Any:
        movable = all(self._is_movable(value) for value in node.values[1:])
        self.generic_visit(node)
        if isinstance(self.within[-1], gast.ClassDef) or not movable:
            return node
        rest = [self.quote("lambda: value", value=value) for value in node.values[1:]]
        return self.quote(f"{self._NAMES[type(node.op)]}(first, rest)", first=node.values[0], rest=rest)

    def visit_UnaryOp(self, node: gast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self.quote("_dy.not_(value)", value=node.operand) if isinstance(node.op, gast.Not) else node

    def _is_movable(self, value: gast.AST) -> bool:
        return not any(
            isinstance(node, self._FIXED) or counts_frames(node) or node in self.unsure
            for node in scopes.walk(value)
        )
