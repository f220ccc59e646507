"""Calls that look at the frame they are made in: such code must stay in the function it was written in."""
from __future__ import annotations

import gast

from dy2static.pyast.scopes import FUNCTIONS, own_nodes

_ALWAYS = ("locals", "eval", "exec")
_WITHOUT_ARGUMENTS = ("vars", "dir", "super")


def looks_at_frame(node: gast.AST) -> bool:
    """Whether ``node`` is a call whose meaning depends on the function it stands in.

    These are ``locals()``, ``vars()``, ``dir()``, ``eval``, ``exec``, ``super()``, and any call that counts frames
    (``stacklevel=2``).
    """
    if not isinstance(node, gast.Call):
        return False
    if any(keyword.arg == "stacklevel" for keyword in node.keywords):
        return True
    if not isinstance(node.func, gast.Name):
        return False
    return node.func.id in _ALWAYS or (node.func.id in _WITHOUT_ARGUMENTS and not node.args and not node.keywords)


def reads_names_unseen(function: gast.AST) -> bool:
    """Whether a function reads its locals by other ways than their names."""
    return any(looks_at_frame(node) and isinstance(node.func, gast.Name) and node.func.id != "super"
               and not any(keyword.arg == "stacklevel" for keyword in node.keywords)
               for node in gast.walk(function))
