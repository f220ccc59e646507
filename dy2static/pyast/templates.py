"""Templates: Python text with holes becomes nodes that have the place of what they replace."""

from __future__ import annotations

import ast
import functools
import textwrap
from typing import Any, Dict, List, Union

import gast

from dy2static.pyast.kinds import BINDS, BITS
from dy2static.pyast.trees import Reader

Hole = Union[str, gast.AST, List[gast.AST]]

_CONTEXTS = (gast.Load, gast.Store, gast.Del, gast.Param)
_new = gast.AST.__new__
_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset", "origin")


def expression(template: str, at: gast.AST, **holes: Hole) -> gast.AST:
    """The expression ``template`` with its holes filled, placed at ``at``."""
    (statement,) = _parsed(template)
    return _Filler(holes, at).fill(statement.value)


def statements(template: str, at: gast.AST, **holes: Hole) -> List[gast.AST]:
    """The statements of ``template`` with their holes filled, placed at ``at``.

    A hole is a name in the template.  Filled with a string it is another name (also of a function or a
    parameter), with a node that node; with a list, where a list can stand, all of its nodes: arguments,
    parameters, elements, statements.
    """
    return _Filler(holes, at).fill_all(_parsed(textwrap.dedent(template)))


def place(node: gast.AST, at: gast.AST) -> gast.AST:
    """``node`` with the position and origin of ``at``, as far as it has none."""
    for attribute in _PLACE:
        if getattr(node, attribute, None) is None and hasattr(at, attribute):
            setattr(node, attribute, getattr(at, attribute))
    return node


def _on_its_first_line(place: Dict[str, Any]) -> Dict[str, Any]:
    """A place without the lines after its first: Python gives the call of a method the line its attribute ends at."""
    if place.get("end_lineno") != place.get("lineno"):
        place["end_lineno"], place["end_col_offset"] = place["lineno"], place["col_offset"]
    return place


@functools.lru_cache(maxsize=None)
def _parsed(template: str) -> List[gast.AST]:
    return Reader("<template>", "", ()).read(ast.parse(template), None).body


class _Filler:
    """Copies template nodes; the text's own positions are dropped for those of ``at``."""

    def __init__(self, holes: Dict[str, Hole], at: gast.AST):
        self.holes, self.at = holes, at
        self.place = _on_its_first_line(
            {attribute: getattr(at, attribute) for attribute in _PLACE if hasattr(at, attribute)}
        )

    def fill(self, node: gast.AST) -> Any:
        kind = node.__class__
        if kind is gast.Name and node.id in self.holes:
            return self._filled_name(node)
        if not kind._fields and not kind._attributes:
            return node  # a context or operator: these hold nothing and may be shared
        copy = _new(kind)
        made = copy.__dict__
        holds = BITS[kind] | BINDS
        for field in kind._fields:
            value = getattr(node, field)
            if value.__class__ is list:
                value = self.fill_all(value)
                for item in value:
                    holds |= item.__dict__.get("holds", -1) if isinstance(item, gast.AST) else 0
            elif isinstance(value, gast.AST):
                value = self.fill(value)
                holds |= value.__dict__.get("holds", 0 if value.__class__ in _CONTEXTS else -1)
            made[field] = value
        made.update(self.place)
        made["holds"] = holds
        if kind is gast.FunctionDef:
            copy.name = self.holes.get(copy.name, copy.name)
        return copy

    def fill_all(self, nodes: List[Any]) -> List[Any]:
        filled: List[Any] = []
        for node in nodes:
            value = node.value if isinstance(node, gast.Expr) else node
            hole = self.holes.get(value.id) if isinstance(value, gast.Name) else None
            if isinstance(hole, list):
                filled += [self._in_context(item, value.ctx) for item in hole]
            elif isinstance(node, gast.Expr) and isinstance(hole, gast.stmt):
                filled.append(hole)
            else:
                filled.append(self.fill(node) if isinstance(node, gast.AST) else node)
        return filled

    def _filled_name(self, node: gast.Name) -> gast.AST:
        hole = self.holes[node.id]
        if isinstance(hole, str):
            return place(name_of(hole, node.ctx), self.at)
        return self._in_context(hole, node.ctx)

    def _in_context(self, node: gast.AST, context: gast.AST) -> gast.AST:
        """A name put where it is stored to, or a parameter, has to say so."""
        if isinstance(node, gast.Name) and not isinstance(node.ctx, type(context)):
            return place(name_of(node.id, context), node)
        return node


def name_of(name: str, context: gast.AST) -> gast.Name:
    """A name, read or stored to as another node of this context is."""
    made = gast.Name(name, type(context)(), None, None)
    made.holds = BITS[gast.Name] | BINDS
    return made
