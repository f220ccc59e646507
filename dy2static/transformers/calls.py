"""Calls, so that what is called is converted too."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import Transformer, is_dy


class Calls(Transformer):
    """Ask ``_dy.call`` what to run in place of what is called.

    Calls of ``_dy`` itself and ``super()`` without arguments are not changed.  Decorators are calls, too: ``_dy.decorator``
    leaves those of libraries as they are.

    Before:  y = self.l1(F.relu(x), *rest, **options)
    After:   y = _dy.call(self.l1)(_dy.call(F.relu)(x), *rest, **options)
    """

    changes = (gast.Call, gast.FunctionDef, gast.ClassDef)

    def visit_FunctionDef(self, node: gast.FunctionDef) -> Any:
        return self._decorated(super().visit_FunctionDef(node))

    def visit_ClassDef(self, node: gast.ClassDef) -> Any:
        return self._decorated(super().visit_ClassDef(node))

    def _decorated(self, node: Any) -> Any:
        node.decorator_list = [each if is_dy(each) else self.quote("_dy.decorator(function)", function=each)
                               for each in node.decorator_list]
        return node

    def visit_Call(self, node: gast.Call) -> Any:
        if is_dy(node.func) and node.func.func.attr == "call":  # `_dy.call(f)(x)`: made before
            node.args, node.keywords = self.visit_all(node.args), self.visit_all(node.keywords)
            node.func.args = self.visit_all(node.func.args)
            return node
        self.generic_visit(node)
        if is_dy(node) or _is_super_of_frame(node):
            return node
        node.func = self.quote("_dy.call(function)", function=node.func)
        return node


def _is_super_of_frame(node: gast.Call) -> bool:
    """Whether this is a ``super()`` that `SuperCalls` has left alone."""
    return isinstance(node.func, gast.Name) and node.func.id == "super" and not node.args
