"""The one door to the package ``onnx``: nodes, graphs, tensors and files."""
from __future__ import annotations

import contextlib
import errno
import os
from typing import Any, BinaryIO, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ...errors import BackendError, Location

#: Bytes of parameters above which they stand in a file of their own: a message of protobuf has at most 2 GB.
EXTERNAL_ABOVE = 1 << 31
#: The IR version of files, by the first opset that needs it: as low as can be, for runtimes of some age.
_IR_VERSIONS = ((24, 12), (23, 11), (21, 10), (19, 9), (0, 8))


def package() -> Any:
    """The package ``onnx``.  Raises `BackendError` where there is none."""
    try:
        import onnx
    except ImportError as error:
        raise BackendError("the package onnx is needed to write ONNX files", hint="pip install onnx onnxruntime") from error
    return onnx


def tensor_type(dtype: Any) -> int:
    """The number that a dtype has in ONNX."""
    return int(package().helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def node(operator: str, operands: Sequence[str], results: Sequence[str], attrs: Mapping[str, Any], loc: Optional[Location]) -> Any:
    """A node; ``doc_string`` and metadata have the user's line."""
    made = package().NodeProto(op_type=operator, input=_trimmed(operands), output=list(results), name=results[0])
    for name, value in attrs.items():
        made.attribute.append(_attribute(name, value))
    if loc is not None:
        made.doc_string = f"{loc.file}:{loc.line}  {loc.text().strip()}"
        if hasattr(made, "metadata_props"):
            for key, text in (("file", loc.file), ("line", str(loc.line)), ("function", loc.function)):
                made.metadata_props.add(key=key, value=text)
    return made


def _trimmed(operands: Sequence[str]) -> List[str]:
    """The operands without those at the end that are left out."""
    found = list(operands)
    while found and not found[-1]:
        found.pop()
    return found


def _attribute(name: str, value: Any) -> Any:
    if isinstance(value, np.dtype):
        value = tensor_type(value)
    if isinstance(value, list) and not value:
        return package().helper.make_attribute(name, value, attr_type=package().AttributeProto.INTS)
    return package().helper.make_attribute(name, value)


def graph(name: str, nodes: Sequence[Any], outputs: Sequence[str]) -> Any:
    """A branch: a graph inside of a node; the types of its values follow."""
    value = package().ValueInfoProto
    return package().GraphProto(name=name, node=nodes, output=[value(name=n) for n in outputs])


def body(name: str, nodes: Sequence[Any], number: str, going: str, state: Sequence[str], outputs: Sequence[str]) -> Any:
    """The graph of a ``Loop``, which takes the number of the iteration, whether it goes on, and the state."""
    made = graph(name, nodes, outputs)
    made.input.extend([value_info(number, np.int64, ()), value_info(going, bool, ()),
                       *(package().ValueInfoProto(name=n) for n in state)])
    return made


def value_info(name: str, dtype: Any, shape: Sequence[Any]) -> Any:
    """What an input or output is: an array whose sizes are numbers, or texts for those that are free."""
    return package().helper.make_tensor_value_info(name, tensor_type(dtype), list(shape))


def sequence_info(name: str, dtype: Any) -> Any:
    """An input or output that is a list of arrays."""
    return package().helper.make_tensor_sequence_value_info(name, tensor_type(dtype), None)


def model(name: str, nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], arrays: Mapping[str, np.ndarray],
          opset: int, doc: str, version: str) -> Any:
    """The whole model."""
    onnx = package()
    made = onnx.GraphProto(name=name, node=nodes, input=inputs, output=outputs,
                           initializer=[onnx.numpy_helper.from_array(array, key) for key, array in arrays.items()])
    ir = next(number for first, number in _IR_VERSIONS if opset >= first)
    return onnx.ModelProto(ir_version=ir, producer_name="dy2static", producer_version=version, doc_string=doc, graph=made,
                           opset_import=[onnx.helper.make_opsetid("", opset)])


def write(model: Any, path: Any, external_above: Optional[int] = None) -> None:
    """Write a file, and a file ``path.data`` of the arrays where these are large.  A file is there wholly, or not at all.

    The folder is made if it is not there.
    """
    path = os.fspath(path)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    limit = EXTERNAL_ABOVE if external_above is None else external_above
    size = sum(len(tensor.raw_data) for tensor in model.graph.initializer)
    if size >= limit:
        _move_arrays(model, path)
    with _new_file(path) as file:
        file.write(model.SerializeToString())


@contextlib.contextmanager
def _new_file(path: str) -> Iterator[BinaryIO]:
    """A file to write, which is in the place of the path when it is whole.  Nothing stays of it where that fails."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "there is a folder in the place of the file", path)
    unfinished = f"{path}.unfinished"
    try:
        with open(unfinished, "wb") as file:
            yield file
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(unfinished)
        raise


def _move_arrays(model: Any, path: str) -> None:
    """Let the arrays of a model stand in ``path.data``, each at a multiple of 64 bytes."""
    name, place = f"{os.path.basename(path)}.data", 0
    with _new_file(f"{path}.data") as file:
        for tensor in model.graph.initializer:
            if len(tensor.raw_data) < 1024:
                continue
            file.write(b"\0" * (-place % 64))
            place += -place % 64
            facts: Tuple[Tuple[str, Any], ...] = (("location", name), ("offset", place), ("length", len(tensor.raw_data)))
            file.write(tensor.raw_data)
            place += len(tensor.raw_data)
            tensor.ClearField("raw_data")
            tensor.data_location = package().TensorProto.EXTERNAL
            for key, value in facts:
                tensor.external_data.add(key=key, value=str(value))


def checked(model: Any) -> Dict[str, Any]:
    """Let ONNX check the model, and infer all shapes: gives what it found of each value.  Raises its errors."""
    onnx = package()
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    return {info.name: info for info in (*inferred.graph.value_info, *inferred.graph.output)}
