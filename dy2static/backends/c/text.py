"""Lines of C while they are written."""
from __future__ import annotations

import contextlib
from typing import Iterator, List


class Text:
    """Lines of code, indented by the depth of their block."""

    def __init__(self) -> None:
        self.lines: List[str] = []
        self.depth = 1

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.depth + text)

    @contextlib.contextmanager
    def indented(self) -> Iterator[None]:
        """Lines that are added inside stand one step to the right."""
        self.depth += 1
        yield
        self.depth -= 1

    @contextlib.contextmanager
    def apart(self) -> Iterator[List[str]]:
        """Lines that are added inside go into the list that this gives, not into the text."""
        around, depth = self.lines, self.depth
        self.lines, self.depth = [], 1
        yield self.lines
        self.lines, self.depth = around, depth
