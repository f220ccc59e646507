"""The templates of ops as lines of a function."""
from __future__ import annotations

import ast
import re
from typing import List, Optional, Sequence, Union

import numpy as np

from ...ir.graph import Node
from ...ir.template import filled
from .library import NUMPY_CALLS, Library
from .reads import Reads
from .values import Values

_COMMENT, _ONE_AXIS = re.compile(r"\s+#.*$"), re.compile(r"axis=\((\d+),\)")

#: A call of a function with arguments that hold no brackets and no text: what most templates are.
_PLAIN_CALL = re.compile(r"[\w.]+\([^()'\"]*\)")

#: A number as an argument of its own.
_NUMBER = re.compile(r"(?<=, )-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?=[,)])")


class Templates:
    """Fills in the templates of nodes, and makes of them what NumPy takes fastest."""

    def __init__(self, reads: Reads, values: Values, library: Library):
        self.reads, self.values, self.names, self.library = reads, values, values.names, library

    def lines(self, node: Node, out: Union[str, Sequence[str]]) -> List[str]:
        """The lines of a node's template.  out: the array, or the arrays, to fill."""
        operands = [self.values.texts[v] for v in self.reads.operands[node]]
        library = self.library.of(*node.outputs, *node.inputs)
        special = library.special.get(node.op.name)
        text = special(node, operands, out) if special is not None and isinstance(out, str) else None
        if text is None:
            types = [v.type for v in node.inputs]
            form = library.form(node.op)
            text = filled(form, node.op, operands, out, types, node.outputs[0].type, node.attrs)     # type: ignore[arg-type]
        lines = [_COMMENT.sub("", line) if "#" in line else line for line in text.split("\n")]
        if node.op.kind == "reduction":
            lines = [_ONE_AXIS.sub(r"axis=\1", line) for line in lines]     # NumPy takes it faster
        if library.gives_numbers and (node.op.kind == "elementwise" or node.op.name == "mean"):
            lines = [line if "axis=" in line else self._with_typed_numbers(line, node) for line in lines]
        for function in node.op.calls:
            name = self.names.bind(function.__name__, library.function(function, node.op))
            lines = [re.sub(rf"\b{function.__name__}(?=\()", name, line) for line in lines]
        return [library.text(line, self.names) for line in lines]

    def filling(self, lines: List[str], node: Node, out: str) -> List[str]:
        """The lines without the ``out=`` that NumPy before 2.2 gets wrong: of maxima along an axis that runs backwards."""
        if node.op.name not in ("max", "min") or not self.reads.may_run_backwards(node.inputs[0]):
            return lines
        library = self.library.of(*node.outputs)
        return [library.text(f"np.copyto({out}, {without_out(line, out)})", self.names) for line in lines]

    def _with_typed_numbers(self, line: str, node: Node) -> str:
        """The line with arrays of no dimensions for Python numbers: NumPy converts those in every call."""
        dtype = node.outputs[0].dtype
        if dtype.kind != "f" or any(v.dtype != dtype for v in node.inputs) or not line.startswith("np."):
            return line
        return _NUMBER.sub(lambda number: self.values.number(np.array(ast.literal_eval(number.group()), dtype), NUMPY_CALLS), line)


def without_out(line: str, out: str) -> Optional[str]:
    """The call without its ``out=``, which then makes its result itself; None if it is not one such call."""
    end = f", out={out})"
    if not line.endswith(end):
        return None
    text = line[:-len(end)] + ")"
    if not _PLAIN_CALL.fullmatch(text):
        try:
            tree = ast.parse(text, mode="eval").body
        except SyntaxError:
            return None
        if not isinstance(tree, ast.Call):
            return None
    return None if re.search(rf"\b{out}\b", text) else text
