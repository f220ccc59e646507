"""A Python function as a gast tree, every node with its place in the user's file."""

from __future__ import annotations

import ast
import contextlib
from typing import Any, Iterator, Optional, Tuple

import gast

from dy2static.errors import Location, UnsupportedSyntaxError
from dy2static.pyast import source
from dy2static.pyast.scopes import walk

RESERVED = "_dy"


def parse(function: Any) -> gast.FunctionDef:
    """The definition of ``function`` without its own decorators; line numbers are those of its file.

    Every node has ``origin``, an ``errors.Location``.  A lambda becomes a definition with one ``return``.
    The tree itself has ``is_lambda`` and ``class_name`` (of the class around it, or None).

    Raises SourceNotFoundError, UnsupportedSyntaxError.
    """
    found = source.fetch(function)
    qualname = getattr(function, "__qualname__", found.name)
    with reporting_depth(Location(found.file, found.first_line, 0, qualname)):
        tree = gast.ast_to_gast(found.node)
    is_lambda = isinstance(tree, gast.Lambda)
    if is_lambda:
        tree = _definition_of(tree)
    tree.decorator_list = []
    tree.is_lambda, tree.class_name = is_lambda, found.class_name
    locate(tree, found.file, qualname, found.lines)
    for node in walk(tree):
        if isinstance(node, gast.Name) and node.id == RESERVED:
            raise UnsupportedSyntaxError(
                f"the name {RESERVED} is used by converted code", node.origin, "choose another name"
            )
    return tree


@contextlib.contextmanager
def reporting_depth(at: Optional[Location]) -> Iterator[None]:
    """Report code that is nested deeper than Python's recursion limit lets trees be visited."""
    try:
        yield
    except RecursionError:
        raise UnsupportedSyntaxError(
            "the code is nested too deeply to be compiled",
            at,
            "split the expression, the chain of elif, or the function",
        ) from None


def parse_text(text: str, name: str = "f", file: str = "<text>") -> gast.FunctionDef:
    """The function ``name`` that ``text`` defines at its top level, as ``parse`` would give it."""
    module = gast.ast_to_gast(ast.parse(text, file))
    tree = next(node for node in module.body if getattr(node, "name", None) == name)
    tree.is_lambda, tree.class_name = False, None
    locate(tree, file, name, tuple(text.splitlines()))
    return tree


def locate(tree: gast.AST, file: str, function: str, lines: Tuple[str, ...]) -> None:
    """Put ``origin`` on every node; nodes without a position of their own have their parent's."""
    pending = [(tree, Location(file, getattr(tree, "lineno", 1), 0, function))]
    while pending:
        node, origin = pending.pop()
        line = getattr(node, "lineno", None)
        if line is not None:
            origin = Location(file, line, _column(lines, line, node.col_offset), function)
        node.origin = origin
        for child in gast.iter_child_nodes(node):
            pending.append((child, origin))


def _column(lines: Tuple[str, ...], line: int, offset: int) -> int:
    """The column in characters, from the offset in UTF-8 bytes that ``ast`` gives."""
    text = lines[line - 1] if line <= len(lines) else ""
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))


def _definition_of(node: gast.Lambda) -> gast.FunctionDef:
    returned = gast.copy_location(gast.Return(node.body), node.body)
    return gast.copy_location(gast.FunctionDef("lambda_", node.args, [returned], [], None, None, []), node)
