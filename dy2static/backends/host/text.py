"""The lines of a function while it is written, each with the user's line it comes from."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, List, Optional

from ...ir.graph import Node
from ..text import Line


class Text:
    """Lines at the present depth of indentation."""

    def __init__(self) -> None:
        self.lines: List[Line] = []
        self._indent = ""

    def line(self, text: str, node: Optional[Node] = None) -> None:
        """Add a line.  node: what it is for."""
        self.lines.append((self._indent + text, node.loc if node is not None else None))

    @contextmanager
    def aside(self) -> Iterator[List[Line]]:
        """Lines that are written inside stand one step to the right, in a list of their own, which this gives."""
        before, self.lines, self._indent = self.lines, [], self._indent + "    "
        yield self.lines
        self.lines, self._indent = before, self._indent[:-4]

    def add(self, lines: List[Line]) -> None:
        """Add the lines of a block, or ``pass`` where it has none."""
        self.lines += lines or [(f"{self._indent}    pass", None)]

    def expression(self, lines: List[Line], name: str) -> Optional[str]:
        """What the only line of a block assigns to this name; None where the block is more than that."""
        begin = f"{self._indent}    {name} = "
        return lines[0][0][len(begin):] if len(lines) == 1 and lines[0][0].startswith(begin) else None
