"""A graph as a picture (SVG): nodes in layers from top to bottom, with the bodies of loops and branches inside their nodes."""
from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from ..markup import escaped
from .listing import attributes

#: Sizes in pixels: a character, a line, what is left free around boxes.
_CHARACTER, _LINE, _GAP, _LAYER = 6.6, 15, 14, 26
_WIDEST = 44

_STYLE = ("<style>.d2s-box{fill:#eef3fb;stroke:#5b7db1}.d2s-in{fill:#f4f4f4;stroke:#888}.d2s-body{fill:none;stroke:#999;"
          "stroke-dasharray:3 3}.d2s-edge{fill:none;stroke:#888}.d2s-t{font:11px monospace;fill:#222}.d2s-d{font:10px monospace;"
          "fill:#555}</style>")


class Picture(str):
    """The SVG as a text; notebooks show it as a picture."""

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: Any) -> None:
        """Write it into a file.  Raises OSError."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self)


class _Box(NamedTuple):
    """What is drawn for an input or a node: its lines of text, and the pictures of its bodies; key: what tells it from others."""

    key: Any
    lines: Tuple[str, ...]
    title: str
    bodies: Tuple["_Drawn", ...]
    is_input: bool

    @property
    def width(self) -> float:
        inner = sum(body.width + _GAP for body in self.bodies) + _GAP if self.bodies else 0
        return max(max(len(line) for line in self.lines) * _CHARACTER + _GAP, inner)

    @property
    def height(self) -> float:
        inner = max(body.height for body in self.bodies) + _GAP if self.bodies else 0
        return len(self.lines) * _LINE + 8 + inner


class _Drawn(NamedTuple):
    """A drawn graph: its SVG, with its corner at 0, 0, and its size."""

    svg: str
    width: float
    height: float


def picture(graph: Any) -> Picture:
    """The graph as SVG; what a node computes is in its tooltip."""
    drawn = _draw(graph)
    width, height = drawn.width + 2 * _GAP, drawn.height + 2 * _GAP
    return Picture(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
                   f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="graph of {escaped(graph.name)}">{_STYLE}'
                   f'<rect width="100%" height="100%" fill="#fff"/><g transform="translate({_GAP},{_GAP})">{drawn.svg}</g></svg>')


def _draw(graph: Any, title: str = "") -> _Drawn:
    boxes = {value: _input(value) for value in graph.inputs}
    makers: Dict[Any, Any] = {value: value for value in graph.inputs}
    edges: List[Tuple[Any, Any]] = []
    for node in graph.nodes:
        boxes[node] = _node(node)
        edges += [(makers[value], node) for value in dict.fromkeys(node.inputs) if value in makers]
        makers.update((value, node) for value in node.outputs)
    boxes["results"] = _Box("results", ("return",), "", (), True)
    edges += [(makers[value], "results") for value in dict.fromkeys(graph.outputs) if value in makers]
    places, width, height = _placed(_layers(boxes, edges), boxes, edges)
    top = _LINE if title else 0
    parts = [_text(0, 11, title, "d2s-d")] if title else []
    parts += [_edge(boxes[start], places[start], places[end], boxes[end], top) for start, end in edges]
    parts += [_box(boxes[key], x, y + top) for key, (x, y) in places.items()]
    return _Drawn("".join(parts), width, height + top)


def _input(value: Any) -> _Box:
    return _Box(value, (_shortened(value.name or "v"), _shortened(str(value.type))), "", (), True)


def _node(node: Any) -> _Box:
    types = _shortened(", ".join(str(value.type) for value in node.outputs))
    place = "" if node.loc is None else f"{os.path.basename(node.loc.file)}:{node.loc.line}  {node.loc.text().strip()}"
    title = "\n".join(filter(None, (", ".join(attributes(node.op.attrs, node.attrs)), place)))
    names = node.op.regions if len(node.op.regions) == len(node.regions) else [""] * len(node.regions)
    bodies = tuple(_draw(region, name) for name, region in zip(names, node.regions))
    return _Box(node, tuple(filter(None, (node.op.name, types))), title, bodies, False)


def _layers(boxes: Dict[Any, _Box], edges: Sequence[Tuple[Any, Any]]) -> List[List[Any]]:
    """The keys of boxes by their longest way from the top; what depends on nothing stands right above its first reader."""
    depth = dict.fromkeys(boxes, 0)
    for start, end in edges:                            # in an order in which they can run: starts are final
        depth[end] = max(depth[end], depth[start] + 1)
    with_inputs = {end for _, end in edges}
    readers: Dict[Any, List[int]] = {}
    for start, end in edges:
        readers.setdefault(start, []).append(depth[end])
    for key in boxes:
        if key not in with_inputs and key in readers:
            depth[key] = min(readers[key]) - 1
    layers: List[List[Any]] = [[] for _ in range(max(depth.values()) + 1)]
    for key in boxes:
        layers[depth[key]].append(key)
    return [layer for layer in layers if layer]


def _placed(layers: Sequence[List[Any]], boxes: Dict[Any, _Box],
            edges: Sequence[Tuple[Any, Any]]) -> Tuple[Dict[Any, Tuple[float, float]], float, float]:
    """The corner of each box, and the size of all: boxes stand below the middle of what they read, as far as there is room."""
    sources: Dict[Any, List[Any]] = {}
    for start, end in edges:
        sources.setdefault(end, []).append(start)
    places: Dict[Any, Tuple[float, float]] = {}
    width = y = 0.0
    for layer in layers:
        wanted = {}
        for key in layer:
            middles = [places[source][0] + boxes[source].width / 2 for source in sources.get(key, ()) if source in places]
            wanted[key] = sum(middles) / len(middles) - boxes[key].width / 2 if middles else width
        x = 0.0
        for key in sorted(layer, key=wanted.__getitem__):
            x = max(x, min(wanted[key], width))
            places[key] = (x, y)
            x += boxes[key].width + _GAP
        width = max(width, x - _GAP)
        y += max(boxes[key].height for key in layer) + _LAYER
    return places, width, y - _LAYER


def _box(box: _Box, x: float, y: float) -> str:
    kind = "d2s-in" if box.is_input else "d2s-box"
    parts = [f'<rect class="{kind}" width="{box.width:.0f}" height="{box.height:.0f}" rx="4"/>']
    parts += [_text(7, 15 + _LINE * k, line, "d2s-d" if k else "d2s-t") for k, line in enumerate(box.lines)]
    left, below = float(_GAP), len(box.lines) * _LINE + 8
    for body in box.bodies:
        parts.append(f'<g transform="translate({left:.0f},{below})"><rect class="d2s-body" x="-5" y="-3" '
                     f'width="{body.width + 10:.0f}" height="{body.height + 10:.0f}"/>{body.svg}</g>')
        left += body.width + _GAP
    title = f"<title>{escaped(box.title)}</title>" if box.title else ""
    return f'<g transform="translate({x:.0f},{y:.0f})">{title}{"".join(parts)}</g>'


def _edge(start: _Box, begin: Tuple[float, float], goal: Tuple[float, float], end: _Box, top: float) -> str:
    x, y = begin[0] + start.width / 2, begin[1] + start.height + top
    to_x, to_y = goal[0] + end.width / 2, goal[1] + top
    bend = max((to_y - y) / 2, 10)
    return (f'<path class="d2s-edge" d="M{x:.0f},{y:.0f} '
            f'C{x:.0f},{y + bend:.0f} {to_x:.0f},{to_y - bend:.0f} {to_x:.0f},{to_y:.0f}"/>')


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{escaped(text)}</text>'


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDEST else text[:_WIDEST - 1] + "…"
