"""Functions that no Python stands behind: they say where they fail, and take all memory from an arena.

In a native program a function that cannot go on says so, and NumPy computes the same or raises.  In a text of its own (`export.c`)
it gives the number of a `Failure` instead.
"""
from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...errors import Location
from ...ir.graph import Node
from .text import Text

#: A line that says which nodes the lines behind it are for: a number of `Standalone.nodes`.
_MARK = re.compile(r"\s*/\*@(\d+)\*/$")
_BAIL = "goto bail;"

#: Why a function fails, and in words.
INDEX, ZERO, NUMBER, LENGTH, SIZE, VALUE = "index", "zero", "number", "length", "size", "value"
REASONS = {INDEX: "an index is out of range", ZERO: "division by zero", NUMBER: "a number does not fit into its type",
           LENGTH: "a list is empty, or of another length", SIZE: "a size is zero or below",
           VALUE: "there is no result for such a value"}

_BY_OP = {**dict.fromkeys(("py_truediv", "py_floordiv", "py_mod"), ZERO),
          **dict.fromkeys(("list_pop", "list_add", "list_join", "list_stack", "list_array"), LENGTH)}


class Failure(NamedTuple):
    """What goes wrong, a key of `REASONS` or an exception of the user's, and the user's lines where it may."""

    reason: str
    places: Tuple[Location, ...]

    def __str__(self) -> str:
        places = " or ".join(map(str, self.places))
        reason = REASONS.get(self.reason, self.reason)
        return f"{places}: {reason}" if places else reason


class Standalone:
    """Notes where the lines of a function come from, and what it means if they fail.

    failures: number k + 1 is what the function gives for the k-th.
    """

    def __init__(self) -> None:
        self.failures: List[Failure] = []
        self._nodes: List[Sequence[Node]] = []
        self._numbers: Dict[Failure, int] = {}

    def mark(self, text: Text, nodes: Sequence[Node]) -> None:
        """The lines that follow are for these nodes."""
        self._nodes.append(nodes)
        text.lines.append(f"/*@{len(self._nodes) - 1}*/")

    def number(self, reason: str, places: Tuple[Location, ...] = ()) -> int:
        """What stands for a failure."""
        failure = Failure(reason, places)
        if failure not in self._numbers:
            self.failures.append(failure)
            self._numbers[failure] = len(self.failures)
        return self._numbers[failure]

    def placed(self, lines: Sequence[str]) -> List[str]:
        """The lines of a function, which set ``failed`` where they leave it; comments name the user's lines."""
        found: List[str] = []
        nodes: Sequence[Node] = ()
        shown: Optional[Tuple[Location, ...]] = None
        for line in lines:
            mark = _MARK.match(line)
            if mark is not None:
                nodes = self._nodes[int(mark.group(1))]
                places = _places(nodes)
                if places and places != shown:
                    found.append(f"    /* {_comment(', '.join(map(str, places)))} */")
                    shown = places
            elif _BAIL in line:
                found.append(line.replace(_BAIL, f"{{ failed = {self._failing(line, nodes)}; {_BAIL} }}"))
            else:
                found.append(line)
        return found

    def _failing(self, line: str, nodes: Sequence[Node]) -> int:
        for node in nodes:
            if node.op.name == "raise_":
                return self.number(_raised(node), _places([node]))
        failing = [node for node in nodes if node.op.may_raise] or nodes
        by_op = {_BY_OP.get(node.op.name) for node in failing} - {None}
        if "(uint64_t)" in line and ">=" in line:
            reason = INDEX
        elif by_op:
            reason = by_op.pop()
            reason = NUMBER if reason == ZERO and "== 0" not in line else reason
        elif all(node.op.kind == "scalar" for node in failing):
            reason = NUMBER
        elif any(node.op.may_raise for node in nodes):
            reason = INDEX
        else:
            reason = VALUE
        return self.number(str(reason), _places(failing))


def _raised(node: Node) -> str:
    """What an exception says: ``ValueError: too large``."""
    name, message = node.attrs["exception"].__name__, node.attrs["message"]
    return f"{name}: {message}" if isinstance(message, str) and message else name


def _places(nodes: Sequence[Node]) -> Tuple[Location, ...]:
    return tuple(dict.fromkeys(node.loc for node in nodes if node.loc is not None))


def _comment(text: str) -> str:
    return text.replace("*/", "* /")
