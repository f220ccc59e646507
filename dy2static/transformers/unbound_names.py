"""Local names that may have no value where they pass through a block."""

from __future__ import annotations

from typing import Any, Dict, Set

import gast

from dy2static.pyast import scopes, templates
from dy2static.pyast.scopes import walk
from dy2static.transformers import blocks
from dy2static.transformers.base import Transformer, has_docstring, is_dy
from dy2static.transformers.break_continue import BreakContinue
from dy2static.transformers.frames import counts_frames, may_count_frames


class UnboundNames(Transformer):
    """Plan which ``if`` statements and loops become calls, and let names that may have no value hold one.

    Such a name holds ``_dy.Undefined`` from the start; wherever it is read and may still have no other,
    ``_dy.read`` raises what Python would.  The last ``return`` of `EarlyReturn` always has one: ``_dy.bound`` gives
    it.  The plan is ``passing`` on the nodes, for `Loops` and `IfElse`.

    Before:
        for i in rest:
            if i:
                y = h
        return y
    After:
        y = _dy.Undefined('y')
        for i in rest:
            if i:
                y = h
        return _dy.read(y)

    An ``if`` or loop stays as it is

    - if a block leaves it: return, break or continue of a loop around, yield;
    - if a block has del, global, nonlocal, or writes a name that is global or nonlocal;
    - if it is no ``for`` and writes a name that is captured by an inner function (or a generator expression), for which a
      variable is more than its value now (in a ``for`` such a name is ``nonlocal`` in the function of the block);
    - if a block writes a name that may have no value, does more that may fail, and a handler around (or what
      follows a ``with``) could then read the name (others are ``nonlocal`` in the function of the block);
    - in a class body, and if a block has a call with ``stacklevel=``;
    - a loop also in a generator, with an ``else``, and if its test has ``:=``.
    """

    requires = (BreakContinue,)  # what leaves a block would keep it as it is
    changes = (gast.If, gast.While, gast.For)

    def start(self) -> None:
        found = scopes.analyse(self.tree)
        self.introduced: Dict[gast.AST, Set[str]] = {}  # by function
        self.checked: Set[gast.AST] = set()
        fixed = {node for node in walk(self.tree) if counts_frames(node)} if may_count_frames(self.tree) else set()
        for function in found:
            if isinstance(function, gast.FunctionDef):
                passing, self.introduced[function], checked = blocks.plan(function, found, fixed)
                self.checked |= checked
                for node, each in passing.items():
                    node.passing = each

    def transform(self, tree: gast.FunctionDef) -> gast.FunctionDef:
        self.introduced = {}
        return self._introduce(super().transform(tree))

    def visit(self, node: gast.AST) -> Any:
        if not self.checked and isinstance(node, gast.expr):
            return node
        return super().visit(node)

    def visit_FunctionDef(self, node: gast.FunctionDef) -> Any:
        return self._introduce(super().visit_FunctionDef(node))

    def visit_Name(self, node: gast.Name) -> Any:
        return self.quote("_dy.read(name)", name=node) if node in self.checked else node

    def visit_Call(self, node: gast.Call) -> Any:
        return node if is_dy(node) else self.generic_visit(node)

    def visit_AugAssign(self, node: gast.AugAssign) -> Any:
        self.generic_visit(node)
        if node not in self.checked:
            return node
        return self.quote_statements("_dy.read(name)", name=node.target.id) + [node]

    def _introduce(self, function: gast.FunctionDef) -> gast.FunctionDef:
        """Give the names that may be used before they have a value one, at the start of their function."""
        introduced = self.introduced.get(function, ())
        end = function.body[-1]
        if isinstance(end, gast.Return) and getattr(end.value, "is_sure", False) and end.value.id in introduced:
            end.value = self.quote("_dy.bound(name)", name=end.value)
        made = [
            statement
            for name in sorted(introduced)
            for statement in templates.statements(
                "target = _dy.Undefined(name)", function, target=name, name=gast.Constant(name, None)
            )
        ]
        first = 1 if has_docstring(function) else 0
        function.body[first:first] = made
        return function
