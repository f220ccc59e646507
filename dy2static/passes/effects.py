"""Which nodes have effects, so that they must stay where they are even if nothing reads their results."""
from __future__ import annotations

from ..ir.graph import Node

#: Kinds of ops that run code of which the graph does not say what it does with arrays, or hold graphs.
OPEN_KINDS = ("control", "effect", "opaque")

#: Where the function is that raises the user's exceptions; one of the user's may have the same name.
_RAISING = "dy2static.runtime.raising"


def has_effect(node: Node) -> bool:
    """Whether a node writes, draws, prints or may raise on purpose, or holds a region with such a node."""
    if node.op.effect or not node.regions:
        return node.op.effect
    return any(region.has_effect for region in node.regions)


def raises_always(node: Node) -> bool:
    """Whether a node does nothing but raise an exception of the user's program."""
    call = node.attrs.get("call") if node.op.name == "host_call" else None
    return call is not None and call.name == "raise" and getattr(call.function, "__module__", "") == _RAISING


def may_write(node: Node) -> bool:
    """Whether a node, or one in its regions, runs code that may write into any array."""
    if not node.regions:
        return node.op.effect and callable(node.op.numpy)
    return any(inner.op.effect and callable(inner.op.numpy) for inner in node.walk())


def must_run(node: Node) -> bool:
    """Whether a node, or one inside it, must run even if nothing reads its results: it has an effect, or may raise."""
    if node.op.effect or node.op.may_raise or not node.regions:
        return node.op.effect or node.op.may_raise
    return any(region.must_run for region in node.regions)
