"""Calls that look at the frame they are made in."""

from __future__ import annotations

import gast

from dy2static.library_facts.python import BUILTINS
from dy2static.library_facts.table import named
from dy2static.pyast.scopes import walk

_ALWAYS, _WITHOUT_ARGUMENTS = named("frames", BUILTINS), named("frames_bare", BUILTINS)
_SEEING = _ALWAYS | _WITHOUT_ARGUMENTS


def reads_names_unseen(function: gast.FunctionDef) -> bool:
    """Whether a function, as `parse` gives it, reads its variables other than by name, so that an added name would show.

    It does so by ``locals()``, ``vars()``, ``dir()``, ``eval`` and ``exec``.
    """
    return not _SEEING.isdisjoint(function.names) and any(
        isinstance(node, gast.Call)
        and isinstance(node.func, gast.Name)
        and (
            node.func.id in _ALWAYS
            or node.func.id in _WITHOUT_ARGUMENTS
            and not node.args
            and not node.keywords
        )
        for node in walk(function)
    )


def counts_frames(node: gast.AST) -> bool:
    """Whether ``node`` is a call that must be made by the very function it stands in.

    These are ``super()``, which takes its arguments from there, and any with ``stacklevel=``.
    """
    return isinstance(node, gast.Call) and (
        any(keyword.arg == "stacklevel" for keyword in node.keywords)
        or isinstance(node.func, gast.Name)
        and node.func.id == "super"
        and not node.args
        and not node.keywords
    )


def may_count_frames(tree: gast.FunctionDef) -> bool:
    """Whether there may be such calls in a function, as `parse` gives it."""
    return "super" in tree.names or "stacklevel" in tree.keywords
