"""``return`` other than at the end of a function."""

from __future__ import annotations

from typing import List

import gast

from dy2static.pyast import templates
from dy2static.pyast.trees import nodes_of
from dy2static.transformers.base import has_docstring
from dy2static.transformers.jumps import Jumps, holds, is_forever, is_generator


class EarlyReturn(Jumps):
    """Let a function have one ``return``, at its end.

    Before:
        if h > 0:
            return a
        for i in rest:
            if i:
                return b
    After:
        did_return_0 = False
        if h > 0:
            return_value_0 = a
        else:
            for i in rest:
                if i:
                    did_return_0 = True
                    return_value_0 = b
                    break
            if not did_return_0:
                return_value_0 = None
        return return_value_0

    A ``with`` ends as it does when its block comes to its end, so a ``return`` in an ``if`` of it sets the flag, too.

    A function stays as it is if no ``return`` is in an ``if`` or loop; if one is in a ``try``, a ``match``, or a ``with`` of
    a loop; if a ``with`` ends with one; if it is a generator; if it has dead code, or very many returns.
    """

    changes = (gast.If, gast.While, gast.For)
    makes = (gast.If, gast.UnaryOp)
    kinds = (gast.Return,)

    def start(self) -> None:
        for function in [self.tree, *nodes_of(self.tree.body, (gast.FunctionDef,))]:
            self.settle(function)

    def settle(self, function: gast.FunctionDef) -> None:
        """Give a function one ``return``."""
        body = function.body
        if (
            not holds([node for node in body if not isinstance(node, gast.Return)], self.kinds)
            or is_generator(function)
            or not self.can_settle(body)
        ):
            return
        self.flag, self.value = self.fresh("did_return", "return_value")
        end = body[-1]
        self.uses_flag = False
        body = self.settled(body, True, end)
        if self.uses_flag:
            first = 1 if has_docstring(function) else 0
            body[first:first] = templates.statements("flag = False", body[first], flag=self.flag)
        made = templates.statements("return value", end, value=self.value)
        made[0].value.is_sure = True
        function.body = body + made

    def jump(self, node: gast.Return, last: bool) -> List[gast.AST]:
        made = templates.statements(
            "target = value", node, target=self.value, value=node.value or gast.Constant(None, None)
        )
        if not last:
            self.uses_flag = True
            made = templates.statements("flag = True", node, flag=self.flag) + made
        return made

    def end(self, at: gast.AST) -> List[gast.AST]:
        return templates.statements("target = None", at, target=self.value)

    def guard(self, node: gast.AST, at: gast.AST) -> gast.AST:
        return templates.expression("not flag", at, flag=self.flag)

    def loop(self, node: gast.AST) -> List[gast.AST]:
        node.body = self._broken(node.body)
        node.orelse = self.settled(node.orelse, False, node)
        return [node]

    def _broken(self, block: List[gast.AST]) -> List[gast.AST]:
        """A block of a loop with each ``return`` a ``break``; the flag tells the loops around."""
        made: List[gast.AST] = []
        for node in block:
            if isinstance(node, gast.Return):
                made += self.jump(node, last=False) + self._break("break", node)
            elif isinstance(node, gast.If):
                node.body, node.orelse = self._broken(node.body), self._broken(node.orelse)
                made.append(node)
            elif holds([node], self.kinds):
                forever = is_forever(node)
                made += self.loop(node) + self._break("break" if forever else "if flag: break", node)
            else:
                made.append(node)
        return made

    def _break(self, template: str, at: gast.AST) -> List[gast.AST]:
        made = templates.statements(template, at, flag=self.flag)
        jump = made[0]
        if isinstance(jump, gast.If):
            jump.test.is_flag = True
            (jump,) = jump.body
        jump.flag = self.flag  # tells BreakContinue which flag says that it was made
        return made
