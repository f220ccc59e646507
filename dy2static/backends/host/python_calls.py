"""Calls of Python functions as lines of a function: ops that are one, calls that the user wrote, changes in place."""
from __future__ import annotations

import operator

from ...ir.graph import Node
from ...ir.interpret import make_exception
from ...runtime.host_calls import Call
from .calls import call_text, has_text, part_text
from .emitter import Emitter


def write_call(out: Emitter, node: Node) -> None:
    """Write a call of an op that is a Python function, or the call that such an op makes."""
    arguments = [out.values.texts[v] for v in node.inputs]
    if isinstance(node.attrs.get("call"), Call):
        written = call_text(node.attrs["call"], arguments, out.names.bind)
        if written is not None:
            out.text.line(f"{out.values.assigned(node)} = {written}" if node.outputs else written, node)
            return
    library = out.library.of(*node.outputs, *node.inputs)
    form = library.form(node.op)
    function = out.names.bind(f"do_{node.op.name}", library.function(form, node.op))     # type: ignore[arg-type]
    attributes = [f"{name}={out.values.attribute(name, attr)}" for name, attr in node.attrs.items()]
    text = f"{function}({', '.join(arguments + attributes)})"
    rows = out.rows.get(out.changes.joined.get(node))       # type: ignore[arg-type]
    out.assign(node, text if rows is None else f"{rows}.of({arguments[0]}) if {arguments[0]} else {text}")


def write_change(out: Emitter, node: Node) -> None:
    """Write an append to a list, or a write into an array, that is our own."""
    target, *rest = (out.values.texts[v] for v in node.inputs)
    out.values.texts[node.outputs[0]] = target
    if node.op.name == "list_append":
        out.text.line(f"{target}.append({rest[0]})", node)
        return
    call = node.attrs["call"]
    steps, function, args, _ = call.args[1:]
    if not steps and function is operator.setitem and has_text(args):
        key, item = (part_text(part, [target, *rest], out.names.bind) for part in args)
        out.text.line(f"{target}[{key}] = {item}", node)
    else:
        out.text.line(f"{out.names.bind('write', call.of(call.function.in_place))}({', '.join((target, *rest))})", node)


def write_raise(out: Emitter, node: Node) -> None:
    """Write what raises the exception of a node."""
    make = out.names.bind("make_exception", make_exception)
    exception = out.names.bind("exception", node.attrs["exception"])
    operands = f"[{', '.join(out.values.texts[v] for v in node.inputs)}]"
    out.text.line(f"raise {make}({exception}, {out.values.attribute('message', node.attrs['message'])}, {operands})", node)
