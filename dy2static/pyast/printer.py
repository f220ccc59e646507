"""A tree as Python text to be read."""

from __future__ import annotations

import ast
import warnings
from typing import Optional

import gast

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # astor touches names that new Pythons deprecate
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


def _with_astor(tree: ast.AST) -> Optional[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
