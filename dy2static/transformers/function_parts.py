"""``f.__defaults__`` and other parts of functions; names that the capture uses for attributes of its own."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import Transformer, is_dy, is_self

_PARTS = frozenset(("__defaults__", "__kwdefaults__", "__closure__", "__globals__"))

#: What a capture's stand-ins for containers, numbers, arrays, Variables and objects of libraries have for itself.
HIDDEN = frozenset((
    "__dict__", "_array", "_array_of_one_type", "_factory", "_is_as_it_was", "_like", "_read", "_taken", "_trim", "_value",
    "absent", "appended_outside", "array_of_items", "arrays", "assigned", "attributes", "before", "capture", "changes",
    "check_place", "choice", "connected", "contents", "depth", "describe", "dropped", "fix", "forget_written", "growth",
    "has_new_flags", "heap", "hint", "hold", "in_order", "is_changed", "is_plain", "is_scalar", "is_text", "items_source",
    "kind", "length", "load", "load_all", "loaded", "made", "meet", "memory", "method", "now", "numbers", "original",
    "originals", "origins", "outside", "owner", "place", "python_type", "real", "refuse", "removed", "seen", "serial",
    "settle", "shared", "slots", "sort", "source", "steps", "symbolic", "text", "truth", "type", "uncertain", "uneven",
    "value", "was_changed", "where", "whole"))

#: Those of objects of other libraries, which may have methods of these names.
_OF_HOST = frozenset(("capture", "describe", "is_text", "method", "owner", "real", "refuse", "value"))

_NAMES = _PARTS | HIDDEN


class FunctionParts(Transformer):
    """Ask ``_dy.holder`` about functions whose parts are read: what these hold may change, and no guard would notice.

    Also about what may be a stand-in, if it has an attribute of this name of its own.  What is called ``self`` is none.

    Before:  return h.__defaults__[0], h.value, self.value
    After:   return _dy.holder(h, "__defaults__").__defaults__[0], _dy.holder(h, "value").value, self.value
    """

    adds_names = False
    changes = (gast.Attribute, gast.Call)

    def transform(self, tree: gast.FunctionDef) -> gast.FunctionDef:
        return tree if _NAMES.isdisjoint(tree.attributes) else super().transform(tree)

    def visit_Call(self, node: gast.Call) -> Any:
        if isinstance(node.func, gast.Attribute) and node.func.attr in HIDDEN - _OF_HOST:
            node.func.value = self.visit(node.func.value)           # lists, numbers, arrays and Variables have no such methods
            node.args, node.keywords = [self.visit(arg) for arg in node.args], [self.visit(given) for given in node.keywords]
            return node
        return self.generic_visit(node)

    def visit_Attribute(self, node: gast.Attribute) -> Any:
        self.generic_visit(node)
        asked = node.attr in _PARTS or node.attr in HIDDEN and not is_self(node.value)
        if asked and isinstance(node.ctx, gast.Load) and not is_dy(node.value):
            node.value = self.quote("_dy.holder(value, name)", value=node.value, name=gast.Constant(node.attr, None))
        return node
