"""Converts Python's trees to gast's and back, in one walk each: both are part of every first call."""

from __future__ import annotations

import ast
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

import gast

from dy2static.errors import Location, UnsupportedSyntaxError
from dy2static.pyast.kinds import BINDS, BITS, bits_of, may_hold
from dy2static.pyast.scopes import children, identifiers

_Place = Tuple[int, int, int, int]
_AST = ast.AST
_new = ast.AST.__new__


def nodes_of(roots: Iterable[gast.AST], kinds: Tuple[type, ...]) -> Iterator[gast.AST]:
    """The nodes of some kinds in trees, where no transformer has made any, in the order of the source."""
    bits = bits_of(kinds)
    pending = [root for root in roots if may_hold(root, bits)][::-1]
    while pending:
        node = pending.pop()
        if isinstance(node, kinds):
            yield node
        pending += [child for child in children(node) if may_hold(child, bits)][::-1]


def copy_of(node: gast.AST) -> gast.AST:
    """A tree like this one; contexts, operators and what else is noted on nodes are shared."""
    kind = node.__class__
    copy = _new(kind)
    made = copy.__dict__
    made.update(node.__dict__)
    for field in kind._fields:
        value = made.get(field)
        if value.__class__ is list:
            made[field] = [copy_of(item) if isinstance(item, _AST) else item for item in value]
        elif isinstance(value, _AST) and value._fields:
            made[field] = copy_of(value)
    return copy


def first_line(definition: gast.FunctionDef) -> int:
    """The line at which the code of a function begins: that of its first decorator, if it has any."""
    return min([definition.lineno, *(node.lineno for node in definition.decorator_list)])


class _Kind(NamedTuple):
    """How a kind of Python's nodes becomes one of gast's."""

    kind: Any
    bit: int
    taken: Tuple[str, ...]  # fields and attributes; libraries hang more on nodes, also on those that all trees share
    added: Tuple[str, ...]  # fields that Python's nodes do not have
    named: bool  # whether it names variables


class Reader:
    """Makes gast trees of Python's, as ``gast.ast_to_gast`` does; every node has ``origin`` and ``holds``.

    origin: where it stands in the user's file; nodes without a position of their own have their parent's.
    holds: the bits of the kinds of nodes in it.

    names: the identifiers that name variables in all that was read.  bound: those of them that something but a parameter
    binds; deleted: those that may come to have no value.  keywords: the names of arguments in calls.
    attributes: the names of attributes.
    """

    _KINDS: Dict[type, _Kind] = {}

    def __init__(self, file: str, function: str, lines: Tuple[str, ...]):
        self.file, self.function, self.lines = file, function, lines
        self.names: Set[str] = set()
        self.keywords: Set[str] = set()
        self.attributes: Set[str] = set()
        self.bound: Set[str] = set()
        self.deleted: Set[str] = set()
        self._shared: Dict[type, gast.AST] = {}  # contexts and operators hold nothing

    def read(self, node: ast.AST, origin: Optional[Location]) -> gast.AST:
        """The node as gast's; ``origin`` is that of its parent, None where nodes are to have none."""
        cls = node.__class__
        if cls in self._shared:
            return self._shared[cls]
        old = node.__dict__
        line = old.get("lineno")
        if line is not None and origin is not None:
            origin = Location(self.file, line, self._column(line, old["col_offset"]), self.function)
        kind, bit, taken, added, named = self._KINDS.get(cls) or self._kind(cls)
        made: Dict[str, Any] = {}
        for name in taken:
            if name not in old:
                continue
            value = old[name]
            if value.__class__ is list:
                value, held = self._read_items(value, origin)
                bit |= held
            elif isinstance(value, _AST):
                value = self.read(value, origin)
                bit |= value.holds
            made[name] = value
        for name in added:
            made[name] = [] if name == "type_params" else None
        made["holds"] = bit
        if origin is not None:
            made["origin"] = origin
        if cls in self._SPECIAL:
            self._SPECIAL[cls](self, made, origin)
        new = _new(kind)
        new.__dict__.update(made)
        if named:
            self.names.update(identifiers(new))
            self.bound.update(identifiers(new))
        if not taken:
            self._shared[cls] = new
        return new

    def _read_items(self, items: List[Any], origin: Optional[Location]) -> Tuple[List[Any], int]:
        """The list with the nodes in it as gast's, and the bits of what they hold."""
        held, made = 0, []
        for item in items:
            if isinstance(item, _AST):
                item = self.read(item, origin)
                held |= item.holds
            made.append(item)
        return made, held

    def _name(self, made: Dict[str, Any], origin: Optional[Location]) -> None:
        self.names.add(made["id"])
        if made["ctx"].__class__ is not gast.Load:
            made["holds"] |= BINDS
            self.bound.add(made["id"])
            if made["ctx"].__class__ is gast.Del:
                self.deleted.add(made["id"])

    def _arg(self, made: Dict[str, Any], origin: Optional[Location]) -> None:
        """A parameter is a name in gast."""
        self.names.add(made["arg"])
        made.update(id=made.pop("arg"), ctx=self.read(_PARAM, origin))

    def _keyword(self, made: Dict[str, Any], origin: Optional[Location]) -> None:
        self.keywords.add(made["arg"])

    def _attribute(self, made: Dict[str, Any], origin: Optional[Location]) -> None:
        self.attributes.add(made["attr"])

    def _handler(self, made: Dict[str, Any], origin: Optional[Location]) -> None:
        """The name of a handler is a name in gast, too; it has no value after the handler."""
        if made["name"]:
            self.deleted.add(made["name"])
            made["name"] = self.read(ast.Name(made["name"], _STORE), origin)

    #: What else is done for some kinds of nodes: by kind, a method that is given the fields of the new node.
    _SPECIAL = {ast.Name: _name, ast.arg: _arg, ast.keyword: _keyword, ast.Attribute: _attribute, ast.ExceptHandler: _handler}

    def _kind(self, cls: Any) -> _Kind:
        kind = gast.Name if cls is ast.arg else getattr(gast, cls.__name__, None)
        if kind is None:
            raise UnsupportedSyntaxError(f"{cls.__name__} is newer than what can be compiled")
        bit = BITS[kind] | (BINDS if kind in _BINDING else 0)
        added = tuple(name for name in kind._fields if name not in cls._fields and cls is not ast.arg)
        taken = (*cls._fields, *cls._attributes)
        found = self._KINDS[cls] = _Kind(kind, bit, taken, added, kind in _NAMING)
        return found

    def _column(self, line: int, offset: int) -> int:
        """The column in characters, from the offset in UTF-8 bytes that ``ast`` gives."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))


_PARAM, _STORE = gast.Param(), ast.Store()
_NAMING = (
    *(gast.Global, gast.Nonlocal, gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef, gast.Import, gast.ImportFrom),
    *(gast.MatchAs, gast.MatchStar, gast.MatchMapping),
)
_BINDING = (*_NAMING, gast.ExceptHandler, gast.NamedExpr)


def written(tree: gast.AST) -> ast.AST:
    """The tree as Python's, ready to be compiled: nodes without a position have their parent's."""
    return _written(tree, (1, 0, 1, 0))


def _written(node: gast.AST, place: _Place) -> ast.AST:
    cls = node.__class__
    kind, fields, is_placed, shared = _PYTHONS.get(cls) or _python(cls)
    if shared is not None:
        return shared
    old = node.__dict__
    made: Dict[str, Any] = {}
    if is_placed:
        line, column, end_line, end_column = place
        place = (
            old.get("lineno", line),
            old.get("col_offset", column),
            old.get("end_lineno", end_line),
            old.get("end_col_offset", end_column),
        )
        made["lineno"], made["col_offset"], made["end_lineno"], made["end_col_offset"] = place
    for name in fields:
        if name in old:
            value = old[name]
            if value.__class__ is list:
                value = [_written(item, place) if isinstance(item, _AST) else item for item in value]
            elif isinstance(value, _AST):
                value = _written(value, place)
            made[name] = value
    if cls is gast.arguments:
        for name in ("posonlyargs", "args", "kwonlyargs"):
            made[name] = [_parameter(new, each) for new, each in zip(made[name], old[name])]
        for name in ("vararg", "kwarg"):
            made[name] = made[name] and _parameter(made[name], old[name])
    elif cls is gast.ExceptHandler and made["name"] is not None:
        made["name"] = made["name"].id
    new = _new(kind)
    new.__dict__.update(made)
    return new


def _parameter(name: ast.AST, old: gast.Name) -> ast.arg:
    """A name as the parameter that it is in ``old``."""
    annotation = old.annotation and written(old.annotation)
    return ast.copy_location(ast.arg(old.id, annotation, old.type_comment), name)


def _python(cls: Any) -> Tuple[Any, Tuple[str, ...], bool, Any]:
    kind: Any = getattr(ast, "Load" if cls is gast.Param else cls.__name__)
    is_placed = bool(kind._attributes)
    found = _PYTHONS[cls] = (kind, kind._fields, is_placed, None if kind._fields or is_placed else kind())
    return found


#: By kind of gast's: Python's kind, its fields, whether it has a position, and the one node if that holds nothing.
_PYTHONS: Dict[type, Tuple[Any, Tuple[str, ...], bool, Any]] = {}
