"""``a if t else b``."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import count_as_truth
from dy2static.transformers.thunks import Thunks


class ConditionalExpressions(Thunks):
    """Make ``a if t else b`` a call, so that a symbolic ``t`` can be staged.

    It stays where ``a`` or ``b`` cannot be moved into a lambda.

    Before:  return a if n else b
    After:   return _dy.if_exp(n, lambda: a, lambda: b)
    """

    changes = (gast.IfExp,)

    def visit_IfExp(self, node: gast.IfExp) -> Any:
        count_as_truth(node.test)
        movable = self.can_move(node.body, node.orelse)
        self.generic_visit(node)
        if not movable:
            return node
        return self.quote(
            "_dy.if_exp(test, lambda: then, lambda: orelse)",
            test=node.test,
            then=node.body,
            orelse=node.orelse,
        )
