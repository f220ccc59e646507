"""A tree as Python text to be read."""

from __future__ import annotations

import ast
from typing import Dict, List, Optional

import gast

from dy2static.threads.quiet import quiet

with quiet():  # astor touches names that new Pythons deprecate
    import astor


def unparse(tree: gast.AST) -> str:
    """The source text of a gast tree, ending in a newline.

    astor prints it, since it breaks long lines well; where what it printed does not parse to the same tree
    (it does not know every node, and some f-strings come out wrong) ``ast.unparse`` prints instead.
    """
    converted = ast.fix_missing_locations(gast.gast_to_ast(tree))
    text = _with_astor(converted)
    if text is None or not _parses_to(text, converted):
        text = ast.unparse(converted)
    return text.rstrip("\n") + "\n"


def lines_of(tree: gast.AST, text: str) -> Dict[int, int]:
    """For the lines of what `unparse` printed of a tree on which statements begin, the lines of the user's that these stand for."""
    statements = _statements(ast.fix_missing_locations(gast.gast_to_ast(tree)))
    printed = [node for root in ast.parse(text).body for node in _statements(root)]
    if len(printed) != len(statements):
        return {}
    return {there.lineno: here.lineno for here, there in zip(statements, printed)}


def _statements(tree: ast.AST) -> List[ast.stmt]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def _with_astor(tree: ast.AST) -> Optional[str]:
    with quiet():
        try:
            return astor.to_source(tree)
        except Exception:  # anything: it fails by AttributeError, SyntaxError, ... on what it does not know
            return None


def _parses_to(text: str, tree: ast.AST) -> bool:
    try:
        parsed = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    if isinstance(tree, ast.Module):
        return ast.dump(parsed) == ast.dump(tree)
    wanted = ast.Expr(tree) if isinstance(tree, ast.expr) else tree
    return [ast.dump(statement) for statement in parsed.body] == [ast.dump(wanted)]
