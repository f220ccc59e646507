"""``super()`` without arguments."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import Transformer


class SuperCalls(Transformer):
    """Give ``super()`` the arguments that it would take from the frame, so that it may be moved.

    A ``super()`` in a comprehension, or in a function without positional parameters, stays: Python decides
    what it does.

    Before:  return super().forward(x)
    After:   return super(__class__, self).forward(x)
    """

    adds_names = False
    changes = (gast.Call,)

    def transform(self, tree: gast.FunctionDef) -> gast.FunctionDef:
        return super().transform(tree) if "super" in tree.names else tree

    def visit_Call(self, node: gast.Call) -> Any:
        self.generic_visit(node)
        function = self.within[-1]
        if not isinstance(node.func, gast.Name) or node.func.id != "super" or node.args or node.keywords:
            return node
        if not isinstance(function, (gast.FunctionDef, gast.Lambda)):
            return node
        positional = function.args.posonlyargs + function.args.args
        return self.quote("super(__class__, first)", first=positional[0].id) if positional else node
