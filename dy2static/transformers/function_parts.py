"""``f.__defaults__`` and other parts of functions."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import Transformer, is_dy

_PARTS = frozenset(("__defaults__", "__kwdefaults__", "__closure__", "__globals__"))


class FunctionParts(Transformer):
    """Ask ``_dy.holder`` about functions whose parts are read: what these hold may change, and no guard would notice.

    Before:  return h.__defaults__[0]
    After:   return _dy.holder(h, "__defaults__").__defaults__[0]
    """

    adds_names = False
    changes = (gast.Attribute,)

    def transform(self, tree: gast.FunctionDef) -> gast.FunctionDef:
        return tree if _PARTS.isdisjoint(tree.attributes) else super().transform(tree)

    def visit_Attribute(self, node: gast.Attribute) -> Any:
        self.generic_visit(node)
        if node.attr in _PARTS and isinstance(node.ctx, gast.Load) and not is_dy(node.value):
            node.value = self.quote("_dy.holder(value, name)", value=node.value, name=gast.Constant(node.attr, None))
        return node
