"""A closed program as a model of ONNX."""
from __future__ import annotations

from typing import Any, Iterable, List, Mapping, Sequence, Set, Tuple

import numpy as np

from ...errors import ExportError
from ...ir.dims import Dim, Size
from ...ir.graph import Graph, Value
from ...ir.onnx_forms import Name
from ...ir.op import OPS
from ...ir.types import List as ListType
from ...ir.types import Scalar, Tensor
from ...passes.legalize.decompose import decompose
from ..program import FreeSize
from . import proto
from .control import CONTROL
from .writer import GraphWriter, Options

#: An input or output, and its name.
Named = Tuple[Value, str]
#: An argument, and the number of one of its axes.
Axis = Tuple[Name, int]


def has_form(op: Any) -> bool:
    """Whether ONNX has the op as it is."""
    return op.onnx is not None or op.name in CONTROL


def legalized(graph: Graph) -> Graph:
    """The graph with ops taken apart that ONNX has no form for."""
    return decompose(graph, kept=[name for name, op in OPS.items() if has_form(op)])


def model_of(graph: Graph, arguments: Sequence[Named], parameters: Sequence[Tuple[Value, str, np.ndarray]],
             results: Sequence[Named], sizes: Mapping[Size, str], options: Options, name: str = "graph", doc: str = "",
             version: str = "", limited: Sequence[Tuple[Name, FreeSize]] = (), tied: Sequence[Tuple[Axis, Axis]] = ()) -> Any:
    """The model.  sizes: the names of free sizes.  limited: those that may not be any number, each with the argument that has it.

    tied: axes that have to be as long as each other.
    Raises `ExportError`, with the user's line.
    """
    writer = GraphWriter(options, CONTROL)
    for taken in (*(n for _, n in arguments), *(n for _, n, _ in parameters), *(n for _, n in results)):
        writer.fresh(taken)
    inputs = []
    for value, given in arguments:
        writer.note(given, _dtype(value))
        writer.declare(value, (given,))
        inputs.append(_info(value, given, sizes))
    for value, given, array in parameters:
        writer.initializer(given, np.ascontiguousarray(array).reshape(array.shape))
        writer.declare(value, (given,))
    for given, size in limited:
        writer.fail_if(_does_not_fit(writer, given, size), f"{size.name} has to be {size.in_words}")
    for one, other in tied:
        differs = writer.node("Not", writer.node("Equal", _length(writer, one), _length(writer, other)))
        writer.fail_if(differs, f"axis {other[1]} of {other[0]} has to be as long as axis {one[1]} of {one[0]}")
    writer.graph(legalized(graph))
    for value, given in results:
        if isinstance(value.type, Scalar) or isinstance(value.type, (Tensor, ListType)):
            found = writer.name_of(value)
            found = found if isinstance(value.type, ListType) else writer.behind_checks(found)
            writer.append("Identity", (found,), (given,), (writer.dtype(found),), {})
        else:
            raise ExportError(f"the result {given} is {value.type}, which no output of ONNX is")
    nodes = _live(writer.scope.nodes, [given for _, given in results])
    used = _used(nodes)
    arrays = {key: array for key, array in writer.initializers.items() if key in used}
    outputs = [_info(value, given, sizes) for value, given in results]
    return proto.model(name, nodes, inputs, outputs, arrays, options.opset, doc, version)


def _does_not_fit(writer: GraphWriter, argument: Name, size: FreeSize) -> Name:
    """Whether the size of an argument is one that the program is not for."""
    number = _length(writer, (argument, size.axis))
    found = writer.node("Less", number, writer.constant(size.least, np.int64))
    if size.most is not None:
        found = writer.node("Or", found, writer.node("Greater", number, writer.constant(size.most, np.int64)))
    if size.factor > 1:
        rest = writer.node("Mod", number, writer.constant(size.factor, np.int64))
        found = writer.node("Or", found, writer.node("Greater", rest, writer.constant(0, np.int64)))
    return found


def _length(writer: GraphWriter, axis: Axis) -> Name:
    """How long an axis of an argument is."""
    return writer.node("Gather", writer.shape_of(axis[0]), writer.constant(axis[1], np.int64), axis=0)


def _dtype(value: Value) -> np.dtype:
    type_ = value.type
    if isinstance(type_, ListType):
        type_ = type_.elem
    if not isinstance(type_, (Tensor, Scalar)):
        raise ExportError(f"{value.name} is {type_}, which no input of ONNX is")
    return type_.dtype


def _info(value: Value, name: str, sizes: Mapping[Size, str]) -> Any:
    if isinstance(value.type, ListType):
        return proto.sequence_info(name, _dtype(value))
    return proto.value_info(name, _dtype(value), [_size(n, sizes) for n in value.shape])


def _size(n: Any, sizes: Mapping[Size, str]) -> Any:
    """A number, the name of a free size, or None for one that follows from others."""
    return sizes.get(n) if isinstance(n, Dim) else int(n)


def _live(nodes: Sequence[Any], results: Iterable[str]) -> List[Any]:
    """The nodes that a result depends on."""
    needed, kept = set(results), []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed |= _read_by(node)
            kept.append(node)
    return kept[::-1]


def _read_by(node: Any) -> Set[str]:
    """The names that a node, or a graph in it, reads."""
    found = set(node.input)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                found |= _read_by(inner)
            found.update(output.name for output in attribute.g.output)
    return found


def _used(nodes: Sequence[Any]) -> Set[str]:
    return set().union(*map(_read_by, nodes)) if nodes else set()


