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
    target = cupy.cuda.Device(number_of(device))
    with target:
        if not isinstance(x, cupy.ndarray) or x.device == target:
            return cupy.array(x)
        _wait(target, x.device)
        copy = cupy.array(x)
    _wait(x.device, target)                             # what comes next on its stream may use the memory of the array again
    return copy


def _wait(waiting: Any, device: Any) -> None:
    """Let the current stream of one GPU wait for what is in that of another one."""
    import cupy
    with device:
        event = cupy.cuda.Event(disable_timing=True)
        event.record()
    with waiting:
        cupy.cuda.get_current_stream(waiting.id).wait_event(event)


def _vjp(g: Value, y: Value, x: Value, *, device: str) -> Tuple[Value]:
    return (to_device(g, device=x.type.device),)


def _infer(x: Tensor, *, device: str) -> Tensor:
    return replace(x, device=device)


#: A copy of an array on a device, "cpu" or "cupy:0": in each run, a transfer.
to_device: OpDef = declare("to_device", "x", {"device": HOST}, kind="movement", places=True, infer=_infer, vjp=_vjp,
                           numpy="send({x}, {device})", calls=(send,),
                           samples=(sample((2, 3), device=""), sample((), dtype="int32", device="")))
