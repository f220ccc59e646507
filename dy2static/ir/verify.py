"""Checks the rules of the IR."""
from __future__ import annotations

from typing import List, Optional, Set, Tuple
from weakref import WeakKeyDictionary

from ..errors import Location, VerifyError
from .building import infer
from .graph import Graph, Node, Value
from .types import Token, alike

#: The nodes whose types were right, with the names and ids of the attributes that they had then: most passes keep most nodes.
_right: "WeakKeyDictionary[Node, List[Tuple[str, int]]]" = WeakKeyDictionary()


def verify(graph: Graph) -> Graph:
    """Give the graph back if it keeps the rules.  Raises `VerifyError` at the first node that does not.

    Values are defined once and before their use, names are unique, outputs have the types the op's rule gives for
    the operands, attributes are canonical and no values of the graph, a token is taken once, and regions keep the same
    rules by themselves: they see their own inputs only.  Linear in nodes and edges.
    """
    defined: Set[Value] = set()
    names: Set[str] = set()
    taken: Set[Value] = set()

    def define(value: Value, loc: Optional[Location]) -> None:
        if value in defined:
            raise VerifyError(f"{value.name} is defined twice", loc)
        if not value.name or value.name in names:
            raise VerifyError(f"the name {value.name!r} is not unique", loc)
        defined.add(value)
        names.add(value.name)

    for value in graph.inputs:
        define(value, None)
    for node in graph.nodes:
        for value in node.inputs:
            if value not in defined:
                raise VerifyError(f"{node.op.name} uses {value.name} before its definition", node.loc)
            if isinstance(value.type, Token) and value in taken:
                raise VerifyError(f"the token {value.name} is taken twice", node.loc)
            taken.add(value)
        for region in node.regions:
            verify(region)
        attrs = [(name, id(attr)) for name, attr in node.attrs.items()]
        if _right.get(node) != attrs:
            _check_types(node)
            _right[node] = attrs
        for value in node.outputs:
            define(value, node.loc)
    for value in graph.outputs:
        if value not in defined:
            raise VerifyError(f"the output {value.name} is not defined")
    return graph


def _check_types(node: Node) -> None:
    if len(node.regions) != len(node.op.regions):
        raise VerifyError(f"{node.op.name} has {len(node.regions)} regions, not {len(node.op.regions)}", node.loc)
    for name, attr in node.attrs.items():
        if isinstance(attr, Value):
            raise VerifyError(f"{node.op.name}: the attribute {name} is a value of the graph, which only inputs may be", node.loc)
    try:
        attrs, types = infer(node.op, tuple(v.type for v in node.inputs), node.attrs, node.regions)
    except (TypeError, ValueError, IndexError) as error:
        raise VerifyError(f"{node.op.name}: {error}", node.loc) from error
    if len(types) != len(node.outputs) or not all(alike(t, v.type) for t, v in zip(types, node.outputs)):
        rule, found = ", ".join(map(str, types)), ", ".join(str(v.type) for v in node.outputs)
        raise VerifyError(f"{node.op.name}: the rule gives {rule}; the node has {found}", node.loc)
    if node.op.canonical is not None and any(attrs[name] != node.attrs[name] for name in node.attrs):
        raise VerifyError(f"{node.op.name}: attributes {dict(node.attrs)} are not canonical", node.loc)
