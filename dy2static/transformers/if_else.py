"""``if`` statements."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import count_as_truth
from dy2static.transformers.block_functions import BlockFunctions
from dy2static.transformers.super_calls import SuperCalls
from dy2static.transformers.unbound_names import UnboundNames


class IfElse(BlockFunctions):
    """Make the blocks of an ``if`` functions of the names that they write.

    `UnboundNames` says where an ``if`` stays as it is.

    Before:
        if h > 0:
            y = h
        return y
    After:
        def then_0(y):
            y = h
            return (y,)
        def else_0(y):
            return (y,)
        (y,) = _dy.cond(h > 0, then_0, else_0, (_dy.Undefined('y'),), names=('y',))
        return _dy.read(y)
    """

    requires = (SuperCalls, UnboundNames)  # `super()` knows its function by the frame: it could not be moved
    changes = (gast.If,)

    def visit_If(self, node: gast.If) -> Any:
        count_as_truth(node.test)
        passing = getattr(node, "passing", None)
        if passing is None:
            return self.generic_visit(node)
        then, orelse = self.fresh("then", "else")
        self.generic_visit(node)
        return (
            self.function(then, node.body, passing)
            + self.function(orelse, node.orelse, passing)
            + self.call(
                "_dy.cond(test, then, orelse, (values,), names=(names,))",
                passing,
                node,
                test=node.test,
                then=then,
                orelse=orelse,
            )
        )
