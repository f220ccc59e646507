"""Texts made of values: f-strings, and ``%`` of a literal text."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.pyast import templates
from dy2static.transformers.base import Transformer
from dy2static.transformers.if_else import IfElse


class FStrings(Transformer):
    """Make f-strings, and ``%`` of a text, calls, so that the host can format symbolic parts; the order is Python's.

    An f-string with both a conversion and a format that is computed stays: Pythons differ in which comes first.

    Before:  return f"{a} of {b!r:>5}", "%d" % c
    After:   return _dy.fstring(_dy.format_(a), ' of ', _dy.format_(b, '>5', 'r')), _dy.percent('%d', c)
    """

    requires = (IfElse,)  # which knows the plain form
    changes = (gast.JoinedStr, gast.BinOp)

    def visit_BinOp(self, node: gast.BinOp) -> Any:
        self.generic_visit(node)
        left = node.left
        if not isinstance(node.op, gast.Mod) or not isinstance(left, gast.Constant) or not isinstance(left.value, str):
            return node
        return self.quote("_dy.percent(left, right)", left=left, right=node.right)

    def visit_JoinedStr(self, node: gast.JoinedStr) -> Any:
        parts = [part for part in node.values if isinstance(part, gast.FormattedValue)]
        for part in parts:
            part.value = self.visit(part.value)
        if not parts or not all(_is_plain(part) for part in parts):
            return node
        made = [self._part(part) for part in node.values]
        return made[0] if len(made) == 1 else self.quote("_dy.fstring(parts)", parts=made)

    def _part(self, part: gast.AST) -> gast.AST:
        if not isinstance(part, gast.FormattedValue):
            return part
        spec = part.format_spec and self.visit(part.format_spec)
        rest = [] if spec is None else [_constant(spec)]
        if part.conversion != -1:
            rest = (rest or [gast.Constant("", None)]) + [gast.Constant(chr(part.conversion), None)]
        return templates.expression("_dy.format_(value, rest)", part, value=part.value, rest=rest)


def _is_plain(part: gast.FormattedValue) -> bool:
    """Whether the format of a part is written out, or there is no conversion."""
    spec = part.format_spec
    return spec is None or part.conversion == -1 or all(isinstance(each, gast.Constant) for each in spec.values)


def _constant(spec: gast.AST) -> gast.AST:
    """A format without holes as the text that it is."""
    if isinstance(spec, gast.JoinedStr) and all(isinstance(each, gast.Constant) for each in spec.values):
        return templates.place(gast.Constant("".join(each.value for each in spec.values), None), spec)
    return spec
