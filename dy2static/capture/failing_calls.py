"""What a function of Chainer's raises for arrays that it cannot take: code of the user's may catch that, and look at it."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import chainer

from ..ir.graph import Value
from ..runtime.opaque import copy_node
from ..symbolic.size_trials import holds_sizes
from ..symbolic.views import arrays_in


def as_raised(error: Exception, node: chainer.FunctionNode, values: Sequence[Value], made_up: Callable[[Value], Any]) -> Exception:
    """The error that the function itself raises in place of one of its lowering; that one where the function raises another kind.

    Sizes and axes decide whether a lowering fails, so the function is tried on made-up contents.
    """
    if arrays_in(list(node.__dict__.values())) or holds_sizes([*node.__dict__.values(), *[v.type for v in values]]):
        return error
    try:
        copy_node(node).forward(tuple(map(made_up, values)))
    except type(error) as found:
        return found.with_traceback(error.__traceback__)
    except Exception:                                   # on contents that are none of its own
        return error
    return error
