"""Graphs as JSON: nodes name their operands; each is checked by the rules of its op when it is read."""
from __future__ import annotations

import keyword
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from ..backends.extents import symbol_sources
from ..errors import Dy2StaticError, InternalError, LoadError, Location, SaveError
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from ..ir.size_needed import SizeNeeded
from ..ir.sizes_read import dims_of, made_symbols
from ..ir.verify import verify
from ..record.documents import entry, need
from ..runtime.host_calls import Call, Hole, StateCall
from .attributes import check
from .expressions import NAME
from .functions import function_of, name_of
from .notation import ArraysOut, type_in, type_out, value_in, value_out

#: The ops that call functions; others of their kind run code of the user's.
_CALLS = frozenset(("numpy_call", "checked_call", "sized_call", "host_call"))

#: Deeper nested regions are not taken.
_DEEPEST = 60


class Places:
    """The user's lines that nodes come from, each once."""

    def __init__(self) -> None:
        self.found: Dict[Tuple, int] = {}

    def add(self, at: Optional[Location]) -> Optional[int]:
        """The number of a place."""
        if at is None:
            return None
        callers = [self.add(caller) for caller in at.callers if isinstance(caller, Location)]
        key = os.path.basename(at.file), at.line, at.col, at.function, tuple(callers)
        return self.found.setdefault(key, len(self.found))

    def said(self) -> List[Any]:
        """All places in the order of their numbers."""
        return [[*key[:4], list(key[4])] for key in self.found]


def places_in(said: List[Any]) -> List[Location]:
    """The places that `Places.said` wrote."""
    found: List[Location] = []
    for item in said:
        if type(item) is not list or [type(part) for part in item] != [str, int, int, str, list]:
            raise LoadError(f"{str(item)[:80]} is not a place in a source file")
        if not (item[0] + item[3]).isprintable():
            raise LoadError("a place in a source file has a name that cannot be printed")
        if not all(type(k) is int and 0 <= k < len(found) for k in item[4]):
            raise LoadError("a place in a source file is called from one that is not there")
        found.append(Location(*item[:4], callers=tuple([found[k] for k in item[4]])))
    return found


# Out ----------------------------------------------------------------------------------------------------------------


def graph_out(graph: Graph, arrays: ArraysOut, places: Places) -> Dict[str, Any]:
    """A graph as JSON.  Raises `SaveError` at the first node that has no form in a file, with the user's line."""
    return {"inputs": [[v.name, type_out(v.type)] for v in graph.inputs],
            "nodes": [_node_out(node, arrays, places) for node in graph.nodes],
            "outputs": [v.name for v in graph.outputs]}


def _node_out(node: Node, arrays: ArraysOut, places: Places) -> Dict[str, Any]:
    if node.op.kind == "opaque" and node.op.name not in _CALLS or OPS.get(node.op.name) is not node.op:
        call = node.attrs.get("call")
        raise SaveError(f"{call if call is not None else node.op.name} runs as a whole: its code would have to be saved",
                        node.loc, hint="`register_lowering` says what it computes")
    said: Dict[str, Any] = {"op": node.op.name, "of": [v.name for v in node.inputs],
                            "gives": [[v.name, type_out(v.type)] for v in node.outputs]}
    try:
        attributes = {name: _attribute_out(value, arrays) for name, value in node.attrs.items()
                      if not _is_default(value, node.op.attrs.get(name)) and name != "place"}      # which tells captures
    except SaveError as error:
        raise SaveError(error.args[0], node.loc, error.hint) from None
    if attributes:
        said["with"] = attributes
    if node.regions:
        said["regions"] = [graph_out(region, arrays, places) for region in node.regions]
    if node.loc is not None:
        said["at"] = places.add(node.loc)
    return said


def _is_default(value: Any, default: Any) -> bool:
    return type(value) in (type(None), bool, int, str, tuple) and type(value) is type(default) and value == default


def _attribute_out(value: Any, arrays: ArraysOut) -> Any:
    return _call_out(value, arrays) if isinstance(value, Call) else value_out(value, arrays)


def _call_out(call: Call, arrays: ArraysOut) -> Dict[str, Any]:
    function, flatten = name_of(call.function), name_of(call.flatten)
    if function is None or flatten is None:
        raise SaveError(f"{call.name} runs on the host: its code would have to be saved",
                        hint="leave it out of what is saved, or compute it with NumPy or chainer.functions")
    return {"call": function, "name": call.name, "args": value_out(call.args, arrays), "kwargs": value_out(call.kwargs, arrays),
            "flatten": flatten, "single": call.single, "state": isinstance(call, StateCall)}


# In ------------------------------------------------------------------------------------------------------------------


class GraphsIn:
    """The graphs of a file, each read when it is first asked for, and once."""

    def __init__(self, said: List[Any], arrays: Mapping[str, np.ndarray], places: List[Location], name: str):
        self.said, self.arrays, self.places, self.name = said, arrays, places, name
        self._made: Dict[int, Graph] = {}

    def graph(self, number: int) -> Graph:
        """The graph of this number.  Raises `LoadError`."""
        if not 0 <= number < len(self.said):
            raise LoadError(f"there is no graph {number}")
        if number not in self._made:
            self._made[number] = graph_in(self.said[number], self.arrays, self.places, self.name)
        return self._made[number]


def graph_in(said: Any, arrays: Mapping[str, np.ndarray], places: List[Location], name: str) -> Graph:
    """The graph that `graph_out` wrote, checked.  Raises `LoadError`."""
    try:
        graph = verify(_graph_in(said, arrays, places, name, 0))
        _check_symbols(graph)
        return graph
    except LoadError:
        raise
    except InternalError as error:
        raise LoadError(f"the graph {name} breaks a rule: {error.args[0]}") from None
    except (Dy2StaticError, SizeNeeded, Exception) as error:        # a rule of an op that meets what no capture makes
        raise LoadError(f"the graph {name} is not one: {error!r}") from None


def _check_symbols(graph: Graph) -> None:
    """Raise `LoadError` for a size that nothing gives a number."""
    known = frozenset(symbol for symbol, *_ in symbol_sources(graph)).union(*[
        [symbol for symbol, _, _ in made_symbols(node)] for node in graph.walk()])
    for node in graph.walk():
        for size in dims_of(node):
            if not known.issuperset(size.symbols):
                raise LoadError(f"the size {size} is not known")


def _graph_in(said: Any, arrays: Mapping[str, np.ndarray], places: List[Location], name: str, depth: int) -> Graph:
    if depth > _DEEPEST:
        raise LoadError("regions are nested too deeply")
    values: Dict[str, Value] = {}
    inputs = _values_in(entry(said, "inputs", list, "a graph"), values)
    nodes = []
    for node in entry(said, "nodes", list, "a graph"):
        regions = tuple([_graph_in(region, arrays, places, f"{name}_region", depth + 1) for region in node.get("regions", ())])
        nodes.append(_node_in(node, values, arrays, places, regions))
    outputs = tuple([_known(values, output) for output in entry(said, "outputs", list, "a graph")])
    return Graph(inputs, outputs, tuple(nodes), name)


def _node_in(said: Any, values: Dict[str, Value], arrays: Mapping[str, np.ndarray], places: List[Location],
             regions: Tuple[Graph, ...]) -> Node:
    name = entry(said, "op", str, "a node")
    op = OPS.get(name)
    if op is None or op.kind == "opaque" and name not in _CALLS:
        raise LoadError(f"the file has the op {name[:60]!r}, which is not here")
    inputs = tuple([_known(values, operand) for operand in entry(said, "of", list, "a node")])
    attrs = dict(op.attrs)
    for key, value in need(said.get("with", {}), dict, "the attributes of a node").items():
        if key not in attrs:
            raise LoadError(f"{name} has no attribute {key[:60]!r}")
        attrs[key] = _attribute_in(name, key, value, arrays)
        if key == "call":
            _check_holes(attrs[key], len(inputs))
    at = said.get("at")
    if at is not None and not (type(at) is int and 0 <= at < len(places)):
        raise LoadError("a node comes from a place that is not there")
    return Node(op, inputs, _values_in(entry(said, "gives", list, "a node"), values), attrs, regions,
                None if at is None else places[at])


def _attribute_in(op: str, key: str, said: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    is_call = type(said) is dict and "call" in said
    if is_call != (key == "call"):
        raise LoadError(f"the attribute {key} of {op} is of another kind")
    if is_call:
        return _call_in(said, arrays)
    value = value_in(said, arrays)
    check(op, key, value)
    return value


def _call_in(said: Dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Call:
    kind = StateCall if entry(said, "state", bool, "a call") else Call
    args = value_in(entry(said, "args", list, "a call"), arrays)
    kwargs = value_in(entry(said, "kwargs", dict, "a call"), arrays)
    if type(kwargs) is not dict or not all(map(_is_name, kwargs)):
        raise LoadError("the keyword arguments of a call have no names")
    function = function_of(said["call"])
    if any(name in kwargs and not _is_known(kwargs[name]) for name in _CALLED) or \
            function is np.pad and type(kwargs.get("mode", args[2] if len(args) > 2 else "constant")) is not str:
        raise LoadError("a call is given what it would call")
    if not entry(said, "name", str, "a call").isprintable():
        raise LoadError("a call has a name that cannot be printed")
    return kind(function, args, kwargs, function_of(entry(said, "flatten", str, "a call")),
                said["name"], entry(said, "single", bool, "a call"), trusted=False)


#: Arguments that functions call, or call methods of.
_CALLED = ("key", "file")


def _is_name(key: Any) -> bool:
    return type(key) is str and NAME.fullmatch(key) is not None and not keyword.iskeyword(key)


def _is_known(said: Any) -> bool:
    return said is None or callable(said) and name_of(said) is not None


def _holes(template: Any) -> Iterator[Hole]:
    if type(template) is Hole:
        yield template
    elif type(template) in (tuple, list, dict, slice):
        parts = template.values() if type(template) is dict else template
        for part in (template.start, template.stop, template.step) if type(template) is slice else parts:
            yield from _holes(part)


def _check_holes(call: Call, count: int) -> None:
    if any(hole.index >= count for hole in _holes((call.args, call.kwargs))):
        raise LoadError(f"{call.name} is called with an operand that is not there")


def _values_in(said: List[Any], values: Dict[str, Value]) -> Tuple[Value, ...]:
    made = []
    for item in said:
        if type(item) is not list or len(item) != 2 or type(item[0]) is not str:
            raise LoadError(f"{str(item)[:80]} is not a value")
        name, type_ = item
        if not NAME.fullmatch(name) or name.startswith("__") or name in values or len(name) > 200:
            raise LoadError(f"{name[:60]!r} is no name for a new value")
        values[name] = Value(type_in(type_), name)
        made.append(values[name])
    return tuple(made)


def _known(values: Mapping[str, Value], name: Any) -> Value:
    if type(name) is not str or name not in values:
        raise LoadError(f"the value {str(name)[:60]!r} is used and not made")
    return values[name]
