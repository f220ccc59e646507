"""``:=`` where an operand binds a name that is evaluated only under a condition."""

from __future__ import annotations

from typing import Any, List

import gast

from dy2static.pyast import templates
from dy2static.pyast.scopes import walk
from dy2static.transformers.base import Transformer, count_as_truth
from dy2static.transformers.matches import Matches


class NamedExpressions(Transformer):
    """Make statements of what decides whether a ``:=`` is evaluated, so that it can be staged.

    An operand of ``and``, ``or`` or a conditional expression that binds a name cannot become a lambda, nor can the test
    of a ``while`` that does become the test of a loop of the graph as it is.  Those inside other expressions stay.

    Before:
        if (a := h) > 0 and (b := c):
            y = b
        while (a := F(a)) > n:
            h = h + a
        y = (b := h) if n else c
        return y
    After:
        test_0 = (a := h) > 0
        if test_0:
            test_0 = (b := c)
        if test_0:
            y = b
        again_0 = True
        while again_0:
            again_0 = not not (a := F(a)) > n
            if again_0:
                h = h + a
        if n:
            y = (b := h)
        else:
            y = c
        return y
    """

    requires = (Matches,)  # the guards of its cases are tests then
    changes = (gast.NamedExpr,)
    makes = (gast.If, gast.UnaryOp)

    def visit_If(self, node: gast.If) -> Any:
        self.generic_visit(node)
        if self._stays() or not _binds_late(node.test):
            return node
        (test,) = self.fresh("test")
        made = self._settled(node.test, test)
        node.test = templates.expression("test", node.test, test=test)
        return [*made, node]

    def visit_While(self, node: gast.While) -> Any:
        self.generic_visit(node)
        if self._stays() or not _binds(node.test):
            return node
        (again,) = self.fresh("again")
        at = node.test
        count_as_truth(at)
        if _binds_late(at):
            asked = self._settled(at, again) + templates.statements("again = not not again", at, again=again)
        else:
            asked = templates.statements("again = not not test", at, again=again, test=at)
        body = templates.statements("if again: body", at, again=again, body=node.body)
        node.test, node.body = templates.expression("again", at, again=again), asked + body
        return templates.statements("again = True", at, again=again) + [node]

    def visit_Assign(self, node: gast.Assign) -> Any:
        self.generic_visit(node)
        if self._stays() or not _binds_late(node.value):
            return node
        if isinstance(node.value, gast.IfExp):
            return self._split(node, lambda value: gast.Assign(node.targets, value, None))
        (value,) = self.fresh("value")
        made = self._settled(node.value, value)
        node.value = templates.expression("value", node.value, value=value)
        return [*made, node]

    def visit_Return(self, node: gast.Return) -> Any:
        self.generic_visit(node)
        if self._stays() or node.value is None or not _binds_late(node.value):
            return node
        if isinstance(node.value, gast.IfExp):
            return self._split(node, gast.Return)
        (value,) = self.fresh("value")
        made = self._settled(node.value, value)
        node.value = templates.expression("value", node.value, value=value)
        return [*made, node]

    def _stays(self) -> bool:
        return isinstance(self.within[-1], gast.ClassDef)  # what is assigned there, the class has

    def _split(self, node: gast.AST, statement: Any) -> List[gast.AST]:
        """``statement`` of one side or the other of a conditional expression."""
        choice = node.value
        made = templates.statements("if test: pass", choice, test=choice.test)
        for field, value in (("body", choice.body), ("orelse", choice.orelse)):
            setattr(made[0], field, [templates.place(statement(value), node)])
        return self._again(made)

    def _settled(self, value: gast.AST, name: str) -> List[gast.AST]:
        """Statements that give ``name`` the value of an expression."""
        if isinstance(value, gast.BoolOp) and _binds_late(value):
            made = self._settled(value.values[0], name)
            for operand in value.values[1:]:
                test = "if name: body" if isinstance(value.op, gast.And) else "if not name: body"
                made += templates.statements(test, operand, name=name, body=self._settled(operand, name))
            return made
        return self._again(templates.statements("name = value", value, name=name, value=value))

    def _again(self, statements: List[gast.AST]) -> List[gast.AST]:
        """What was made, with what it still holds to be made."""
        return [part for node in statements for part in _as_list(self.visit(node))]


def _as_list(made: Any) -> List[gast.AST]:
    return made if isinstance(made, list) else [made]


def _binds(value: gast.AST) -> bool:
    return any(isinstance(node, gast.NamedExpr) for node in walk(value))


def _binds_late(value: gast.AST) -> bool:
    """Whether an operand that may not be evaluated binds a name."""
    if isinstance(value, gast.BoolOp):
        return any(map(_binds, value.values[1:])) or _binds_late(value.values[0])
    return isinstance(value, gast.IfExp) and (_binds(value.body) or _binds(value.orelse))
