"""What a function raises where arrays decide, as ops: a capture has calls of Python there."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Set

from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from ..ops.control import raise_
from ..passes.effects import raises_always

#: Calls that make texts, by their names: those of messages are left out.
_TEXTS = ("str", "repr", "format", "join", "ascii", "fstring", "percent")


def with_raises(graph: Graph) -> Graph:
    """The graph with ``raise_`` nodes for its exceptions, without the nodes that format their messages.

    A region that raises ends there, and has no results but one of type `Never`.
    """
    return _Raising().graph(graph)


class _Raising:
    def __init__(self) -> None:
        self.count = 0

    def graph(self, graph: Graph) -> Graph:
        """The graph, or a region."""
        kept: List[Node] = []
        for node in graph.nodes:
            if raises_always(node):
                made = self._raise(node)
                return graph.with_(nodes=tuple(_without_texts([*kept, made], ())), outputs=made.outputs)
            kept.append(replace(node, regions=tuple(map(self.graph, node.regions))) if node.regions else node)
        return graph.with_(nodes=tuple(_without_texts(kept, graph.outputs)))

    def _raise(self, node: Node) -> Node:
        self.count += 1
        args = node.attrs["call"].args
        exception, given = args[0], args[1]
        builder = Builder("raise")
        builder.loc = node.loc
        kind = exception if isinstance(exception, type) else RuntimeError
        builder.add(raise_, (), {"exception": kind, "message": _message(given)})
        made, = builder.nodes
        return replace(made, outputs=tuple([Value(v.type, f"raised_{self.count}") for v in made.outputs]))


def _message(args: Any) -> str:
    """The text of an exception, where that does not change."""
    texts = [part for part in args if isinstance(part, str)] if isinstance(args, tuple) else []
    return texts[0] if len(texts) == 1 and len(args) == 1 else ""


def _without_texts(nodes: List[Node], outputs: Any) -> List[Node]:
    """The nodes, without those that format strings which are never read."""
    read: Set[Value] = set(outputs)
    kept = []
    for node in reversed(nodes):
        is_text = node.op.name == "host_call" and node.attrs["call"].name in _TEXTS
        if is_text and not read.intersection(node.outputs):
            continue
        read.update(node.inputs)
        kept.append(node)
    return kept[::-1]
