"""The text of ``docs/onnx_ops.md``: made of the declarations of ops, and of what their samples become."""
import warnings

from ops.test_ops import CASES

from dy2static.errors import ExportError
from dy2static.export.to_onnx.control import CONTROL
from dy2static.export.to_onnx.model import legalized
from dy2static.export.to_onnx.writer import GraphWriter, Options
from dy2static.ir.op import OPS
from dy2static.ir.types import type_of

_HEAD = """# Ops in ONNX

This page is made by `pytest tests/export/test_onnx_page.py --update-golden` from the declarations of ops (`onnx=`) and their
samples. It names the operators that an op becomes for arrays of float32, with opset 18; constants, `Reshape`, `Cast` and `Shape` are
left out. For other dtypes and attributes they may be others: operands are converted to a wider dtype where onnxruntime has no kernel.

- *in steps*: taken apart into other ops, whose operators are named.
- *nothing*: the value as it is.
- *refused*: `ExportError` names the user's line.
"""

_LEFT_OUT = {"Identity", "Reshape", "Cast", "Shape", "Constant"}
#: What ops that have no samples become.
_CONTROL = {"if_": "`If`", "while_": "`Loop`", "scan": "`Loop`", "raise_": "refused, or left out with `checks=\"leave out\"`",
            "nothing": "a constant", "union_new": "a number and a value of each alternative", "union_tag": "the number",
            "union_get": "the value",
            "broadcast_to": "`Expand`; nothing in front of an operator that broadcasts"}


def page():
    """The whole page."""
    rows = [(name, form(op)) for name, op in sorted(OPS.items())]
    refused = [name for name, text in rows if text == "refused"]
    return "\n".join([
        _HEAD, f"{len(rows)} ops: {len(rows) - len(refused)} have a form, {len(refused)} are refused.", "",
        "| op | in ONNX |", "|---|---|", *[f"| `{name}` | {text} |" for name, text in rows if text != "refused"], "",
        f"Refused: {', '.join(f'`{name}`' for name in refused)}.", ""])


def form(op):
    """What an op becomes, in words."""
    if op.name in _CONTROL:
        return _CONTROL[op.name]
    if op.onnx is None and op.decompose is None:
        return "refused"
    found = {}
    for case in CASES:
        if case.op is op:
            found.update(dict.fromkeys(operators(case)))
    if not found:
        return f"`{op.onnx}`" if isinstance(op.onnx, str) else "in steps" if op.onnx is None else _said(op)
    text = ", ".join(f"`{name}`" for name in found if name not in _LEFT_OUT) or "nothing"
    return f"in steps: {text}" if op.onnx is None else text


def operators(case):
    """The operators that a sample becomes; none where it is refused."""
    graph = case.graph(map(type_of, case.operands()))
    writer = GraphWriter(Options(18, random=True), CONTROL)
    for k, value in enumerate(graph.inputs):
        writer.note(f"x{k}", value.dtype)
        writer.declare(value, (f"x{k}",))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            writer.graph(legalized(graph))
    except ExportError:
        return []
    return [node.op_type for node in writer.scope.nodes]


def _said(op):
    """The first line of what its rule says, for ops without samples."""
    return (op.onnx.__doc__ or "").strip().split("\n")[0].rstrip(".")
