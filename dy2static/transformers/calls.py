"""Calls, so that what is called is converted too."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import Transformer, is_dy


class Calls(Transformer):
    """Ask ``_dy.call`` what to run in place of what is called.

    Calls of ``super`` and of ``_dy`` itself stay.  Decorators are applied as they are; a call within a
    decorator expression is a call like any other.

    Before:  y = self.l1(F.relu(x), *rest, **options)
    After:   y = _dy.call(self.l1)(_dy.call(F.relu)(x), *rest, **options)
    """

    def visit_Call(self, node: gast.Call) -> Any:
        if is_dy(node.func):  # `_dy.call(f)(x)`: made before
            node.args, node.keywords = self.visit_all(node.args), self.visit_all(node.keywords)
            node.func.args = self.visit_all(node.func.args)
            return node
        self.generic_visit(node)
        if is_dy(node) or isinstance(node.func, gast.Name) and node.func.id == "super":
            return node
        node.func = self.quote("_dy.call(function)", function=node.func)
        return node
