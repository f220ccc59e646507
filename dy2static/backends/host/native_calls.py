"""Calls of compiled code as lines of a function."""
from __future__ import annotations

from typing import Optional

from ...ir.graph import Node, Value
from ...ir.types import Extent, Scalar
from ..compiled_calls import CompiledCall, Conversion
from .emitter import Emitter


def write_native(out: Emitter, node: Node) -> None:
    """Write a call of compiled code: what it reads, then the arrays that it fills; it gives the other results."""
    compiled: CompiledCall = node.attrs["call"]
    arguments = [_converted(out, value.type.symbol if isinstance(value.type, Extent) else out.values.texts[value], how)
                 for value, how in zip(node.inputs, compiled.entering)]
    filled = [value for k, value in enumerate(node.outputs) if k not in compiled.given]
    for value in node.outputs:
        out.values.forget(value)
    for value in filled:
        out.make(value, node)
        arguments.append(out.values.texts[value])
    names = [_given(out, node.outputs[k]) for k in compiled.given]
    function = out.names.bind("native", compiled)
    out.compiled.add(function)
    call = f"{function}({', '.join(arguments)})"
    out.text.line(f"{', '.join(names)} = {call}" if names else call, node)
    for value in filled:
        if isinstance(value.type, Scalar):
            out.text.line(f"{out.values.texts[value]} = {out.values.texts[value]}[()]", node)
    for name, how in zip(names, compiled.given.values()):
        if how is not None:
            out.text.line(f"{name} = {_converted(out, name, how)}", node)


def _given(out: Emitter, value: Value) -> str:
    return value.type.symbol if isinstance(value.type, Extent) else out.values.new(value)


def _converted(out: Emitter, text: str, how: Optional[Conversion]) -> str:
    """A value on its way into compiled code, or out of it."""
    if how is None:
        return text
    settings = [out.values.attribute(name, setting) for name, setting in how.settings]
    return f"{out.names.bind(how.name, how.function)}({', '.join([text, *settings])})"
