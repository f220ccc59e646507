"""A graph as a text to read: a line for each node, with types, attributes, and the user's lines; bodies are indented."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np

from ..errors import Location
from .dims import Dim

#: The most elements of a constant, and characters of another attribute, that are shown.
_MOST_ELEMENTS, _MOST_CHARACTERS = 8, 80

#: The column at which the user's lines begin, if the text before it is not longer.
_PLACES_AT = 80


def listing(graph: Any) -> str:
    """The text of a graph.

    ``name(x: float32[2, 3]):`` and its nodes, ``y: float32[2, 3] = op(x, attribute=2)  # file.py:7``.  Attributes that have their
    default are left out.  Loops and branches have their bodies below them, each with the names of its own inputs.
    """
    return "\n".join([text for text, _ in listed(graph, with_places=True)])


def listed(graph: Any, with_places: bool = False) -> List[Tuple[str, Optional[Location]]]:
    """The lines of `listing`, each with the user's line; with_places: which is part of the text, too."""
    return _Listing(with_places).graph(graph, graph.name or "graph", 0)


class _Listing:
    """Gives each value a name of its own: values of different regions may share one."""

    def __init__(self, with_places: bool) -> None:
        self.with_places = with_places
        self.names: Dict[Any, str] = {}
        self.taken: Set[str] = set()

    def name(self, value: Any) -> str:
        if value not in self.names:
            hint = name = value.name or "v"
            count = 0
            while name in self.taken:
                count += 1
                name = f"{hint}_{count}"
            self.taken.add(name)
            self.names[value] = name
        return self.names[value]

    def typed(self, values: Sequence[Any]) -> str:
        return ", ".join([f"{self.name(value)}: {value.type}" for value in values])

    def graph(self, graph: Any, title: str, depth: int) -> List[Tuple[str, Optional[Location]]]:
        lines: List[Tuple[str, Optional[Location]]] = [(f"{'  ' * depth}{title}({self.typed(graph.inputs)}):", None)]
        for node in graph.nodes:
            lines += self.node(node, depth + 1)
        outputs = ", ".join(map(self.name, graph.outputs))
        return [*lines, (f"{'  ' * (depth + 1)}return {outputs}".rstrip(), None)]

    def node(self, node: Any, depth: int) -> List[Tuple[str, Optional[Location]]]:
        operands = [*map(self.name, node.inputs), *attributes(node.op.attrs, node.attrs)]
        results = f"{self.typed(node.outputs)} = " if node.outputs else ""
        text = f"{'  ' * depth}{results}{node.op.name}({', '.join(operands)})"
        if self.with_places and node.loc is not None:
            text = f"{text:<{_PLACES_AT}}  # {os.path.basename(node.loc.file)}:{node.loc.line}"
        lines = [(text, node.loc)]
        titles = node.op.regions if len(node.op.regions) == len(node.regions) else [f"body {k}" for k in range(len(node.regions))]
        for title, region in zip(titles, node.regions):
            lines += self.graph(region, title, depth + 1)
        return lines


def attributes(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> List[str]:
    """The attributes that differ from their defaults, as ``name=value``."""
    return [f"{name}={attribute(value)}" for name, value in given.items()
            if name not in defaults or defaults[name] is not value and not _is_same(defaults[name], value)]


def _is_same(default: Any, value: Any) -> bool:
    return type(default) is type(value) and isinstance(value, (bool, int, float, str, tuple)) and default == value


def attribute(value: Any) -> str:
    """An attribute in one line: arrays by their elements if they are few, functions and types by their names."""
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return f"{value.dtype.name}({value.item()!r})"
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(attribute, value))
        return _shortened(f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})")
    if isinstance(value, Dim) or type(value).__module__ == f"{__package__}.types":
        return str(value)
    shown = getattr(type(value), "shown", None)
    if shown is not None:
        return _shortened(shown(value, attribute))
    if isinstance(value, type) or callable(value) and hasattr(value, "__qualname__"):
        return value.__qualname__
    return _shortened(" ".join(repr(value).split()))


def _array(array: np.ndarray) -> str:
    shown = ", ".join([repr(item) for item in array.ravel()[:_MOST_ELEMENTS].tolist()])
    if array.ndim == 0:
        return shown
    more = ", …" if array.size > _MOST_ELEMENTS else ""
    return f"[{shown}{more}]"


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS - 1] + "…"
