"""One node as lines of a function: which way it is written, and those that fill arrays or are expressions."""
from __future__ import annotations

import re

import numpy as np

from ...errors import InternalError
from ...ir.graph import Node
from ...ir.sizes_read import made_symbols
from ...ir.template import attr_source, fills_out
from ...ir.types import List as ListType
from ...ir.types import Scalar, Tensor
from ...runtime.host_calls import Call
from ...runtime.result_types import check_result
from ..compiled_calls import NATIVE_VIEW, is_native
from .emitter import Emitter
from .native_calls import write_native
from .python_calls import write_call, write_change, write_raise
from .templates import without_out

#: The name of a result before it is known whether the text needs one.
_OUT = "result_0_"

_SUM = re.compile(r"\b(?:add\.(?:reduce|accumulate)|multiply\.(?:reduce|accumulate)|sum|prod|cumsum|cumprod)\(")

_TURNED = re.compile(r"\w+\.T")


def write_node(out: Emitter, node: Node) -> None:
    """Write a node without regions, the sizes that it makes known, and a look at what it gives where that may be anything."""
    if node.op.name == "constant":
        _constant(out, node)
    elif node.op.name == "py_constant" and type(node.attrs["value"]) in (bool, int):
        out.values.texts[node.outputs[0]] = _literal(node.attrs["value"])
    elif node.op.name == "nothing":
        out.values.texts[node.outputs[0]] = "None"
    elif node.op.name == "raise_":
        write_raise(out, node)
    elif is_native(node) or node.op is NATIVE_VIEW:
        write_native(out, node)
    elif node in out.changes.nodes:
        write_change(out, node)
    elif node.outputs and node.outputs[0] in out.into:
        _into_operand(out, node)
    elif len(node.outputs) > 1 and fills_out(node.op):
        _into_several(out, node)
    elif any(out.values.is_placed(v) for v in node.outputs):
        _into_buffer(out, node)
    elif isinstance(out.library.of(*node.outputs, *node.inputs).form(node.op), str):
        _into_new(out, node) if fills_out(node.op) else _expression(out, node)
    elif node.op.numpy is not None:
        write_call(out, node)
    else:
        raise InternalError(f"{node.op.name} has no NumPy form", node.loc)
    for symbol, value, axis in made_symbols(node):
        text = out.values.texts[value]
        out.text.line(f"{symbol} = len({text})" if axis < 0 else f"{symbol} = {text}.shape[{axis}]", node)
    call = node.attrs.get("call")
    if isinstance(call, Call) and not call.trusted:
        _check_results(out, node)


def _check_results(out: Emitter, node: Node) -> None:
    for value in node.outputs:
        inner = value.type.elem if isinstance(value.type, ListType) else value.type
        if isinstance(inner, (Tensor, Scalar)):
            check, type_ = out.names.bind("check_result", check_result), out.names.bind("said_type", value.type)
            out.text.line(f"{check}({out.values.texts[value]}, {type_}, {attr_source(inner.shape)})", node)


def _constant(out: Emitter, node: Node) -> None:
    """A 0-d array or an array in the namespace; a copy of it where somebody could write into it."""
    (value,) = node.outputs
    text = out.values.number(np.array(node.attrs["value"]), out.library.of(value), value.name)
    if value in out.held:
        out.text.line(f"{out.values.new(value)} = {text}.copy()", node)
    else:
        out.values.texts[value] = text


def _into_buffer(out: Emitter, node: Node) -> None:
    (value,) = node.outputs
    name = out.values.buffer(value)
    if out.plan.slots[out.plan.places[value]].view is None:
        for line in out.templates.filling(out.templates.lines(node, name), node, name):
            out.text.line(line, node)


def _into_operand(out: Emitter, node: Node) -> None:
    """A result in the memory of an input."""
    (value,) = node.outputs
    name = out.values.texts[value] = out.values.texts[out.into[value]]
    for line in out.templates.lines(node, name):
        out.text.line(line, node)


def _into_several(out: Emitter, node: Node) -> None:
    """Several results, each in its buffer or in new memory; None stands for a result that is never read."""
    filled = []
    for value in node.outputs:
        out.values.forget(value)
        if value in out.reads.uses or out.values.is_placed(value):
            out.make(value, node)
        filled.append(out.values.texts.get(value, "None"))
    for line in out.templates.lines(node, filled):
        out.text.line(line, node)


def _into_new(out: Emitter, node: Node) -> None:
    """A result in memory of its own, which NumPy makes where it can."""
    value = node.outputs[0]
    lines = out.templates.lines(node, _OUT)
    simple = without_out(lines[0], _OUT) if len(lines) == 1 and value.ndim and not _is_widened(lines[0], node) else None
    if simple is None and out.values.replaces_operand(value):
        out.values.forget(value)                               # the operand is still to be read
    name = out.values.new(value)
    if simple is not None:
        out.text.line(f"{name} = {simple}", node)
    else:
        out.text.line(f"{name} = {out.values.empty(value)}", node)
        for line in out.templates.filling(lines, node, _OUT):
            out.text.line(line.replace(_OUT, name), node)


def _is_widened(line: str, node: Node) -> bool:
    """Whether NumPy would choose another dtype: that of sums and products of small ints and bools, and of powers of bools."""
    dtype = node.outputs[0].dtype
    if dtype.kind == "f" or dtype.itemsize == 8:
        return False
    return "power(" in line and node.inputs[0].dtype.kind == "b" or _SUM.search(line) is not None


def _expression(out: Emitter, node: Node) -> None:
    """A view of an operand, or a number."""
    value = node.outputs[0]
    (text,) = out.templates.lines(node, "out")
    if text.isidentifier() or out.reads.uses.get(value) == 1 and _TURNED.fullmatch(text):
        out.values.texts[value] = text
    else:
        out.assign(node, text)


def _literal(value: int) -> str:
    """A number as an operand. Negative numbers are in parentheses: they may follow another operator."""
    return f"({value!r})" if value < 0 else repr(value)
