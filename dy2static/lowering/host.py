"""Ops that run Python objects: NumPy calls on arrays, calls that stay on the host, and Chainer functions kept whole."""
from __future__ import annotations

from typing import Any, Dict, Tuple

from ..ir.op import declare
from ..ops.onnx_forms import contents
from ..runtime.host_calls import Call


def _declared_types(*_: Any, types: Tuple, **__: Any) -> Tuple:
    return types


def _run(*operands: Any, call: Call, types: Tuple) -> Any:
    results = call(*operands)
    return results[0] if len(types) == 1 else results


_ATTRS: Dict[str, Any] = {"call": None, "types": ()}

#: A NumPy call outside Chainer's graph (on ``x.array``): pure, no gradient.
numpy_call = declare("numpy_call", "*operands", _ATTRS, kind="opaque", infer=_declared_types, numpy=_run, onnx=contents.called)

#: The same for one that may fail on what its operands hold: it runs even if nothing needs its result.
checked_call = declare("checked_call", "*operands", _ATTRS, kind="opaque", infer=_declared_types, numpy=_run, effect=True,
                       onnx=contents.called)

#: One that gives arrays of sizes that only the run knows: ``extents`` names them, (symbol, output, axis).
sized_call = declare("sized_call", "*operands", {**_ATTRS, "extents": ()}, kind="opaque", infer=_declared_types,
                     numpy=lambda *operands, call, types, extents: _run(*operands, call=call, types=types), effect=True,
                     onnx=contents.called)

#: Anything else: runs at every call, once, in program order.
host_call = declare("host_call", "*operands", _ATTRS, kind="opaque", infer=_declared_types, numpy=_run, effect=True, places=True)
