"""``a[i]``, read."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import Transformer
from dy2static.transformers.super_calls import SuperCalls


class Subscripts(Transformer):
    """Make reading an item a call, so that a symbolic ``i`` can choose among Python objects.

    Slices stay, several indices, and those that are constants; but not of ``np.r_``, ``np.mgrid`` and their like, which compute
    with them.

    Before:  return x[n], x[a][0], x[a:], x[a, b], x[-1], np.mgrid[:n]
    After:   return _dy.item(x, n), _dy.item(x, a)[0], x[a:], x[a, b], x[-1], _dy.item(np.mgrid, _dy.key[:n])
    """

    requires = (SuperCalls,)
    changes = (gast.Subscript,)

    def visit_Subscript(self, node: gast.Subscript) -> Any:
        self.generic_visit(node)
        index = node.slice
        if not isinstance(node.ctx, gast.Load):
            return node
        constant = index.operand if isinstance(index, gast.UnaryOp) else index
        if isinstance(index, (gast.Slice, gast.Tuple)):
            if not _computes(node.value):
                return node
            index = gast.Subscript(self.quote("_dy.key"), index, gast.Load())
        elif isinstance(constant, gast.Constant):
            return node
        return self.quote("_dy.item(container, index)", container=node.value, index=index)


def _computes(container: gast.expr) -> bool:
    return isinstance(container, gast.Attribute) and container.attr in ("r_", "c_", "mgrid", "ogrid")
