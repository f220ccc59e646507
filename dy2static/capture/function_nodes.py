"""Function nodes of Chainer: the classes that implement them, and their attributes after `apply`."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import chainer

if TYPE_CHECKING:
    from .protocols import Capture


def implementation_of(node: chainer.FunctionNode) -> type:
    """The class of a function; of an old-style one, that of the `chainer.Function`."""
    return type(node.function if isinstance(node, chainer.function.FunctionAdapter) else node)


def name_of(node: chainer.FunctionNode) -> str:
    """The class of a function; not its label, which may look at numbers that are symbolic."""
    return implementation_of(node).__name__


def trap_attributes(node: chainer.FunctionNode, written: Optional[frozenset], capture: Capture) -> None:
    """Stop the capture when somebody reads what ``forward`` would have left in the node: it has not run.

    written: the attributes that it sets; None where that is not known, and then all of the node's own, and those of its class that
        methods assign.
    """
    holder = node.function if isinstance(node, chainer.function.FunctionAdapter) else node
    names = written
    if names is None:
        names = frozenset(holder.__dict__) | capture.heap.objects.open_classes.stored_by(type(holder))

    def read(trapped: Any, name: str) -> Any:
        if name in names or (written is None and not name.startswith("_") and not hasattr(type(trapped), name)):
            capture.abort(f"`.{name}` of {type(trapped).__name__} is read after it was applied")
        return object.__getattribute__(trapped, name)
    cls = type(holder)
    holder.__class__ = type(cls.__name__, (cls,), {"__getattribute__": read, "__module__": cls.__module__})
