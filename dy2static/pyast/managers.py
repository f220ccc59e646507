"""What is known of context managers by their names."""

from __future__ import annotations

import gast

#: These never swallow an exception: nothing runs after a ``with`` of theirs whose body has failed.
_LET_THROUGH = frozenset(
    f"{module}{name}"
    for module, names in {
        "chainer.": ("using_config", "no_backprop_mode", "force_backprop_mode", "using_device"),
        "chainer.configuration.": ("using_config",),
        "chainer.function.": ("no_backprop_mode", "force_backprop_mode"),
        "": ("using_config", "no_backprop_mode", "force_backprop_mode"),
        "self.": ("init_scope",),
        "np.": ("errstate", "printoptions"),
        "numpy.": ("errstate", "printoptions"),
    }.items()
    for name in names
)


def lets_through(node: gast.AST) -> bool:
    """Whether no manager of a ``with`` swallows exceptions, as far as their names say."""
    return all(
        isinstance(item.context_expr, gast.Call) and _dotted(item.context_expr.func) in _LET_THROUGH for item in node.items
    )


def _dotted(node: gast.AST) -> str:
    if isinstance(node, gast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, gast.Name) else ""
