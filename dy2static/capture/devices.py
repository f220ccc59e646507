"""Devices: an array that is sent to where it is stays that very array, one that is sent elsewhere is copied at every run."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Tuple

import chainer
import numpy as np
from chainer._backend import Device
from chainer.backends import cuda
from chainer.backends._cpu import CpuDevice
from chainer.dataset import convert
from chainer.device_resident import DeviceResident
from chainer.function_node import FunctionNode
from chainer.functions.connection.convolution_2d import Convolution2DFunction
from chainer.functions.connection.convolution_nd import ConvolutionND
from chainer.functions.connection.deconvolution_2d import Deconvolution2DFunction
from chainer.functions.connection.deconvolution_nd import DeconvolutionND

from ..ir.devices import HOST, is_gpu
from ..ir.graph import Node
from ..record.paths import Constant
from ..runtime.devices import current_device, device_named
from ..symbolic.host_objects import SymbolicObject
from ..symbolic.lists import StagedList
from ..symbolic.values import SymbolicArray

if TYPE_CHECKING:
    from .protocols import Calls, Capture


#: What cuDNN may compute, and the settings by which it does so.
_CONVOLUTIONS = Convolution2DFunction, ConvolutionND, Deconvolution2DFunction, DeconvolutionND
_CONVOLUTION_OPS = {"conv", "conv_transpose", "conv_grad_weight"}
_OF_CUDNN = {"use_cudnn", "cudnn_deterministic"}


def has_own_libraries(node: FunctionNode, changed: Mapping[str, Any], device: str) -> bool:
    """Whether the call has changed settings of cuDNN that count for a function; a program has those with which it starts."""
    return is_gpu(device) and isinstance(node, _CONVOLUTIONS) and not _OF_CUDNN.isdisjoint(changed)


def check_gradients(capture: Capture, nodes: Iterable[Node]) -> None:
    """Stop at gradients of convolutions if the call has changed settings of cuDNN: in eager mode, these count for the gradients."""
    start = capture.start_config
    changed = [name for name in sorted(_OF_CUDNN)
               if getattr(chainer.config, name) != start.get(name, getattr(chainer.global_config, name))]
    if changed and any(inner.op.name in _CONVOLUTION_OPS and is_gpu(inner.outputs[0].type.device)
                       for node in nodes for inner in node.walk()):
        capture.abort(f"gradients of convolutions on a GPU are taken with another `{changed[0]}` than at the start of the call",
                      hint="set it around the call of the compiled function", whole=True)


def is_converter(function: Any) -> bool:
    """Whether an object that is called is one of Chainer's own converters, as `chainer.dataset.concat_examples`."""
    return isinstance(function, convert.Converter)


def converter(calls: Calls, function: convert.Converter) -> Callable[..., Any]:
    """What to call for one of Chainer's own converters."""
    heap = calls.capture.heap
    return calls.callee(heap.shadow(function, heap.source(Constant, None, function)))


def adopted(calls: Calls, result: Any) -> Any:
    """What a library function gave; a device has a shadow, as any object that is made inside."""
    return calls.callee(CpuDevice)() if type(result) is CpuDevice else result


def _send(calls: Calls, function: Callable, device: Any, arrays: Any) -> Any:
    return _each(calls, arrays, lambda array: calls.callee(device.send_array)(array))


def _send_array(calls: Calls, function: Callable, device: Any, array: Any) -> Any:
    return _on_cpu(calls, array)


def _to_cpu(calls: Calls, function: Callable, array: Any, stream: Any = None) -> Any:
    if stream is not None:
        calls.capture.abort("to_cpu is called with a stream")
    return _each(calls, array, lambda item: _on_cpu(calls, item))


def _send_to_gpu(calls: Calls, function: Callable, device: Any, array: Any) -> Any:
    return _on_gpu(calls, array, device_named(device))


def _to_gpu(calls: Calls, function: Callable, array: Any, device: Any = None, stream: Any = None) -> Any:
    if stream is not None:
        calls.capture.abort("to_gpu is called with a stream")
    if device in (None, cuda.DummyDevice) and calls.capture.placement.device:
        calls.capture.placement.on_current()
    number = current_device() if device in (None, cuda.DummyDevice) else device if isinstance(device, int) else device.id
    return _each(calls, array, lambda item: _on_gpu(calls, item, f"cupy:{number}"))


def _as_numpy(calls: Calls, function: Callable, array: Any, stream: Any = None, order: str = "C", out: Any = None, *,
              blocking: bool = True) -> Any:
    is_plain = (stream, order, out, blocking) == (None, "C", None, True)
    if type(array) is not SymbolicArray or not is_gpu(array.place) or not is_plain:
        calls.capture.abort("`asnumpy` is called for what is no array on a GPU, or with options")
    return _on_cpu(calls, array)


def _each(calls: Calls, arrays: Any, one: Callable[[Any], Any]) -> Any:
    """One array, or those in a list or tuple; what is in there twice is converted once."""
    if not isinstance(arrays, (list, tuple)):
        return one(arrays)
    if type(arrays) is StagedList and arrays.symbolic is not None:
        calls.capture.abort("a list whose length depends on array values is sent to a device", because=arrays.symbolic)
    known: Dict[int, Tuple[Any, Any]] = {}
    made: List[Any] = []
    for array in arrays:
        if id(array) not in known:
            known[id(array)] = array, None if array is None else one(array)
        made.append(known[id(array)][1])
    kind = calls.callee(type)(arrays)
    return made if kind is list else calls.callee(kind)(made)


def _on_cpu(calls: Calls, array: Any) -> Any:
    if type(array) is SymbolicArray and is_gpu(array.place):
        return calls.capture.placement.sent(array, HOST)
    if array is None or isinstance(array, np.ndarray):
        return array
    if type(array) is SymbolicObject or not isinstance(array, (int, float, np.generic)):
        calls.capture.abort("what is no array is sent to a device")
    return calls.callee(np.asarray)(array)


def _on_gpu(calls: Calls, array: Any, device: Any) -> Any:
    if array is None:
        return None
    if type(array) is not SymbolicArray or array.is_scalar:
        calls.capture.abort("what is no array is sent to a device")
    return calls.capture.placement.sent(array, device)


def _use(calls: Calls, function: Callable, device: Any) -> Any:
    calls.capture.abort("the current GPU is changed inside the compiled function", hint="use `with chainer.using_device(...)`")


def _read(calls: Calls, function: Callable, owner: Any) -> Any:
    return function(owner)


def _padded(calls: Calls, function: Callable, arrays: Any, padding: Any) -> Any:
    """Arrays of several sizes as one, filled up."""
    shapes = [array.shape for array in arrays]
    if len({len(shape) for shape in shapes}) > 1:
        calls.capture.abort("arrays with different numbers of dimensions are padded")
    shape = tuple([max(sizes) for sizes in zip(*shapes)])
    result = calls.callee(np.full)((len(arrays), *shape), padding, dtype=arrays[0].dtype)
    for i, array in enumerate(arrays):
        result[(i, *map(slice, shapes[i]))] = array
    return result


#: Functions of Chainer's that a capture replaces.
DEVICE_HANDLERS: Dict[Any, Callable] = {
    Device.send: _send,
    CpuDevice.send_array: _send_array,
    cuda.GpuDevice.send_array: _send_to_gpu,
    cuda.GpuDevice.use: _use,
    getattr(cuda.Device, "use", _use): _use,
    cuda.to_cpu: _to_cpu,
    cuda.to_gpu: _to_gpu,
    getattr(cuda.cupy, "asnumpy", _as_numpy): _as_numpy,
    convert._concat_arrays_with_padding: _padded,
    DeviceResident.xp.fget: _read,
    DeviceResident.device.fget: _read,
}
