"""Arrays sent from one device to another."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Tuple

from ..ir.devices import HOST, is_gpu, number_of
from ..ir.graph import Value
from ..ir.op import OpDef, declare, sample
from ..ir.types import Tensor


def send(x: Any, device: str) -> Any:
    """A copy of an array on a device."""
    if not is_gpu(device):
        return x.get() if hasattr(x, "get") else x.copy()
    import cupy
    with cupy.cuda.Device(number_of(device)):
        return cupy.array(x)


def _vjp(g: Value, y: Value, x: Value, *, device: str) -> Tuple[Value]:
    return (to_device(g, device=x.type.device),)


def _infer(x: Tensor, *, device: str) -> Tensor:
    return replace(x, device=device)


#: A copy of an array on a device, "cpu" or "cupy:0": in each run, a transfer.
to_device: OpDef = declare("to_device", "x", {"device": HOST}, kind="movement", places=True, infer=_infer, vjp=_vjp,
                           numpy="send({x}, {device})", calls=(send,),
                           samples=(sample((2, 3), device=""), sample((), dtype="int32", device="")))
