"""``while`` and ``for`` loops."""

from __future__ import annotations

import sys
from typing import Any, List, Set

import gast

from dy2static.pyast import templates
from dy2static.pyast.kinds import bits_of
from dy2static.transformers.base import count_as_truth, has_docstring
from dy2static.transformers.block_functions import BlockFunctions, loads
from dy2static.transformers.blocks import Passing
from dy2static.transformers.super_calls import SuperCalls
from dy2static.transformers.unbound_names import UnboundNames


class Loops(BlockFunctions):
    """Make the bodies of loops functions of the names that they write and that are read in a later round or after.

    A ``for`` whose last statement is ``if name: break`` asks ``stop`` before it takes the next item.
    `UnboundNames` says where a loop stays as it is.

    Before:
        while n > 0:
            n = n - a
        for i in rest:
            n = n + i
        return n
    After:
        def test_0(n):
            return n > 0
        def body_0(n):
            n = n - a
            return (n,)
        (n,) = _dy.while_(test_0, body_0, (n,), names=('n',))
        def body_1(i, n):
            n = n + i
            return (n,)
        (n,) = _dy.for_(rest, body_1, (n,), names=('n',))
        return n
    """

    requires = (SuperCalls, UnboundNames)
    changes = (gast.While, gast.For)

    def transform(self, tree: gast.FunctionDef) -> gast.FunctionDef:
        # of the functions around, names that are only written in blocks from now on
        self.declared: List[Set[str]] = [set()]
        return self._declare(super().transform(tree))

    def visit_FunctionDef(self, node: gast.FunctionDef) -> Any:
        self.declared.append(set())
        return self._declare(super().visit_FunctionDef(node))

    def _declare(self, function: gast.FunctionDef) -> gast.FunctionDef:
        """Let names be known to be the function's own, without a value."""
        made = [
            statement
            for name in sorted(self.declared.pop())
            for statement in templates.statements("target: None", function, target=name)
        ]
        first = 1 if has_docstring(function) else 0
        function.body[first:first] = made
        for node in (function, *self.at) if made else ():
            node.holds = getattr(node, "holds", -1) | bits_of((gast.AnnAssign,))
        return function

    def visit_While(self, node: gast.While) -> Any:
        count_as_truth(node.test)
        passing = getattr(node, "passing", None)
        if passing is None:
            return self.generic_visit(node)
        test, body = self.fresh("test", "body")
        self.generic_visit(node)
        return (
            templates.statements(
                "def function(params): return value",
                node.test,
                function=test,
                params=loads(passing.names),
                value=node.test,
            )
            + self.function(body, node.body, passing)
            + self.call("_dy.while_(test, body, (values,), names=(names,))", passing, node, test=test, body=body)
        )

    def visit_For(self, node: gast.For) -> Any:
        passing = getattr(node, "passing", None)
        if passing is None:
            return self.generic_visit(node)
        (body,) = self.fresh("body")
        self.declared[-1] |= passing.declared
        self.generic_visit(node)
        stop = {}
        if passing.stop is not None:
            flag = node.body.pop().test
            stop["stop"] = templates.expression("lambda params: flag", flag, params=loads(passing.names), flag=flag)
        item, unpack = self._item(node, passing)
        return self.function(body, unpack + node.body, passing, item) + self.call(
            "_dy.for_(iterable, body, (values,), names=(names,)" + (", stop=stop)" if stop else ")"),
            passing,
            node.iter if sys.version_info >= (3, 12) else node,  # where Python says that iteration fails
            iterable=node.iter,
            body=body,
            **stop,
        )

    def _item(self, node: gast.For, passing: Passing) -> Any:
        """The parameter for the item, and what binds the target of the loop to it, if that is more."""
        target = node.target
        if isinstance(target, gast.Name) and target.id not in (*passing.names, *passing.shared):
            return loads([target.id]), []
        (item,) = self.fresh("item")
        return loads([item]), templates.statements("target = item", target, target=target, item=item)
