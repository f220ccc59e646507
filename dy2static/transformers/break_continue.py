"""``break``, ``continue``, and the ``else`` of loops."""

from __future__ import annotations

from typing import Any, List

import gast

from dy2static.pyast import templates
from dy2static.transformers.blocks import stop_of
from dy2static.transformers.early_return import EarlyReturn
from dy2static.transformers.jumps import LOOP_JUMPS, Jumps, holds, is_generator, jumps_in


class BreakContinue(Jumps):
    """Let the body of a loop run to its end.

    A ``while`` asks a flag before its test; a ``for`` ends with ``if flag: break``, to take no item after it.

    Before:
        while a:
            if b:
                continue
            if c:
                break
            a = h
        for i in rest:
            if i == x:
                break
        else:
            a = x
        return a
    After:
        did_break_0 = False
        while not did_break_0 and a:
            if not b:
                if c:
                    did_break_0 = True
                else:
                    a = h
        did_break_1 = False
        for i in rest:
            if i == x:
                did_break_1 = True
            if did_break_1:
                break
        if not did_break_1:
            a = x
        return a

    A loop stays as it is if a jump is in a ``try``, ``with`` or ``match``, which act on it; in a generator; with
    dead code or very many jumps; in a class body.
    """

    requires = (EarlyReturn,)
    changes = (gast.While, gast.For)
    makes = (gast.If, gast.BoolOp, gast.UnaryOp)
    kinds = LOOP_JUMPS

    def visit_While(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        function = self.within[-1]
        if isinstance(function, gast.ClassDef) or is_generator(function):
            return node
        orelse = node.orelse
        if not holds(node.body, LOOP_JUMPS):
            node.orelse = []
            return [node] + orelse
        if isinstance(node, gast.For) and not orelse and _is_settled(node):
            return node
        if not self.can_settle(node.body):
            return node
        return self._settle(node)

    visit_For = visit_While

    def _settle(self, node: gast.AST) -> List[gast.AST]:
        breaks = list(jumps_in(node.body, (gast.Break,)))
        flags = {getattr(each, "flag", None) for each in breaks}
        # every break is of a return: that has a flag already
        self.shared = len(flags) == 1 and None not in flags
        made: List[gast.AST] = []
        if self.shared:
            (self.broke,) = flags
            (self.continued,) = self.fresh("did_continue")
        else:
            self.broke, self.continued = self.fresh("did_break", "did_continue")
            if breaks:
                made += self.quote_statements("flag = False", flag=self.broke)
        self.uses_continued = False
        node.body = self.settled(node.body, True, node) or self.quote_statements("pass")
        if self.uses_continued:
            node.body[:0] = templates.statements("flag = False", node.body[0], flag=self.continued)
        orelse, node.orelse = node.orelse, []
        if breaks:
            self._end_at_break(node)
            if orelse:
                orelse = templates.statements(
                    "if not flag: body", orelse[0], flag=self.broke, body=orelse
                )
        return made + [node] + orelse

    def _end_at_break(self, node: gast.AST) -> None:
        if isinstance(node, gast.For):
            node.body += self.quote_statements("if flag: break", flag=self.broke)
        elif isinstance(node.test, gast.Constant) and node.test.value:
            node.test = templates.expression("not flag", node.test, flag=self.broke)
        else:
            node.test = templates.expression("not flag and test", node.test, flag=self.broke, test=node.test)

    def jump(self, node: gast.AST, last: bool) -> List[gast.AST]:
        if isinstance(node, gast.Break):
            return [] if self.shared else templates.statements("flag = True", node, flag=self.broke)
        if last:
            return []
        self.uses_continued = True
        return templates.statements("flag = True", node, flag=self.continued)

    def guard(self, node: gast.AST, at: gast.AST) -> gast.AST:
        flags = [
            flag
            for flag, kind in ((self.broke, gast.Break), (self.continued, gast.Continue))
            if holds([node], (kind,))
        ]
        template = "not flag" if len(flags) == 1 else "not (flag or other)"
        return templates.expression(template, at, flag=flags[0], other=flags[-1])


def _is_settled(loop: gast.For) -> bool:
    """Whether the only jump of a loop is ``if name: break`` at its end."""
    return stop_of(loop) is not None and len(list(jumps_in(loop.body, LOOP_JUMPS))) == 1
