"""``a[i]``, read."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import Transformer
from dy2static.transformers.super_calls import SuperCalls


class Subscripts(Transformer):
    """Make reading an item a call, so that a symbolic ``i`` can choose among Python objects.

    Slices stay, several indices (but of ``np.r_`` and ``np.c_``, which compute with them), and those that are constants.

    Before:  return x[n], x[a][0], x[a:], x[a, b], x[-1]
    After:   return _dy.item(x, n), _dy.item(x, a)[0], x[a:], x[a, b], x[-1]
    """

    requires = (SuperCalls,)
    changes = (gast.Subscript,)

    def visit_Subscript(self, node: gast.Subscript) -> Any:
        self.generic_visit(node)
        index = node.slice
        if not isinstance(node.ctx, gast.Load) or isinstance(index, gast.Slice) or \
                isinstance(index, gast.Tuple) and not (_joins(node.value) and _is_plain(index)):
            return node
        constant = index.operand if isinstance(index, gast.UnaryOp) else index
        if isinstance(constant, gast.Constant):
            return node
        return self.quote("_dy.item(container, index)", container=node.value, index=index)


def _joins(container: gast.expr) -> bool:
    return isinstance(container, gast.Attribute) and container.attr in ("r_", "c_")


def _is_plain(index: gast.Tuple) -> bool:
    return not any(isinstance(part, (gast.Slice, gast.Starred)) for part in index.elts)
