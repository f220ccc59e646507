"""A Python function as a gast tree, every node with its place in the user's file."""

from __future__ import annotations
import __future__

import ast
import contextlib
from typing import Any, Iterator, Optional, Tuple

import gast

from dy2static.errors import Location, UnsupportedSyntaxError
from dy2static.pyast import source
from dy2static.pyast.kinds import bits_of
from dy2static.pyast.scopes import walk
from dy2static.pyast.trees import Reader

RESERVED = "_dy"


def parse(function: Any) -> gast.FunctionDef:
    """The definition of ``function`` without its own decorators; line numbers are those of its file.

    Every node has ``origin``, an ``errors.Location``, and ``holds`` (`kinds.may_hold`).  A lambda becomes a definition
    with one ``return``.  The tree itself has ``is_lambda``, ``class_name`` (of the class around it, or None),
    ``postponed`` (whether annotations are not evaluated), ``names`` (every identifier that names a variable in it),
    ``bound``, ``deleted`` and ``keywords`` (as `trees.Reader`).

    Raises SourceNotFoundError, UnsupportedSyntaxError.
    """
    found = source.fetch(function)
    qualname = getattr(function, "__qualname__", found.name)
    with reporting_depth(Location(found.file, found.first_line, 0, qualname)):
        tree = read_definition(found.node, found.file, qualname, found.lines)
    is_lambda = isinstance(found.node, ast.Lambda)
    tree.decorator_list = []
    tree.is_lambda, tree.class_name = is_lambda, found.class_name
    tree.postponed = bool(source.future_flags(found.code) & __future__.annotations.compiler_flag)
    for node in walk(tree) if RESERVED in tree.names else ():
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


def read_definition(node: Any, file: str, function: str, lines: Tuple[str, ...]) -> gast.FunctionDef:
    """The definition as a gast tree, that of a lambda, too; ``lines`` are those of its file."""
    reader = Reader(file, function, lines)
    tree: Any = reader.read(node, Location(file, node.lineno, 0, function))
    if isinstance(tree, gast.Lambda):
        tree = definition_of(tree)
        reader.names.add(tree.name)
    tree.names, tree.bound, tree.deleted = reader.names, reader.bound, reader.deleted
    tree.keywords, tree.attributes = reader.keywords, reader.attributes
    return tree


def definition_of(tree: gast.Lambda) -> gast.FunctionDef:
    """A definition with one ``return`` that stands for a lambda."""
    returned = gast.copy_location(gast.Return(tree.body), tree.body)
    definition = gast.FunctionDef("lambda_", tree.args, [returned], [], None, None, [])
    for made, old in ((returned, tree.body), (definition, tree)):
        made.origin, made.holds = old.origin, old.holds | bits_of((type(made),))
    return gast.copy_location(definition, tree)
