"""From a graph to a device function: which nodes kernels compute, and the walk over them."""
from __future__ import annotations

from typing import Collection, Dict, Mapping, Optional, Sequence, Set, Union

import numpy as np

from ...ir.devices import HOST
from ...ir.dims import Dim, is_known
from ...ir.graph import Graph, Node, Value
from ...ir.sizes_read import dims_of
from ...ir.types import Tensor
from ...lowering.numpy.legalize import CALLS, call_as_ops, legalize_numpy_calls
from ...passes import Pass, Pipeline, run
from ...passes.cleanup.dce import eliminate_dead
from ...passes.legalize.decompose import decompose, decomposed, decomposes
from ..loops import layout
from ..loops.fuse import Run, fuse
from ..loops.groups import REDUCTIONS, Group
from ..loops.layout import place_of
from ..loops.recompute import recompute
from ..run_sizes import with_run_sizes
from .counts import with_counts
from .kernels.alone import ALONE
from .kernels.finished_products import finish_of, read_by_nodes, write_finished
from .kernels.joins import JOINS, join_in_place, made_by
from .kernels.products import multiply_in_place
from .kernels.windows import WINDOWS
from .kernels.writes import WRITES, is_taken
from .nests.parallel import at_once
from .nests.render import reduces, render
from .picks_first import picks_first
from .program.steps import DeviceFunction, OpenFunction
from .text.dtypes import expression, memory_type
from .text.function import FunctionText, Planner, no_plan
from .views_first import views_first

#: Ops whose elements kernels may compute from their places, and views that these may go through.
_INLINE: Mapping[str, Collection[str]] = {"philox": (), "arange": ("reshape", "broadcast_to")}

#: Tables up to this size stand in the text of kernels.
_LARGEST_TABLE = 64

#: What a region goes through before it becomes kernels.
REGION = Pipeline("cuda region", "a part of a graph for a GPU, before it becomes kernels", (
    Pass(legalize_numpy_calls, is_verified=False), Pass(decompose, is_verified=False), Pass(with_counts, is_verified=False),
    Pass(with_run_sizes, is_verified=False), Pass(eliminate_dead, is_verified=False), Pass(views_first, is_verified=False),
    Pass(picks_first, is_verified=False)))


def supported(node: Node) -> bool:
    """Whether kernels compute a node: of arrays without sizes that are known to be zero, without control flow."""
    if node.regions or not all(map(_is_array, (*node.inputs, *node.outputs))):
        return False
    name = node.op.name
    if name in CALLS:
        instead = call_as_ops(node)
        return instead is not None and all(map(supported, instead))
    if not all(map(is_known, dims_of(node))) and not _takes_run_sizes(node):
        return False
    if node.op.kind == "elementwise":
        return expression(node, [v.name for v in node.inputs]) is not None
    if node.op.decompose is not None:
        return decomposes(node) and (not any(True for _ in dims_of(node)) or _has_steps(node))
    if name in REDUCTIONS:
        return reduces(node)
    if name == "full":
        return isinstance(node.attrs["value"], Dim) or _is_number(node.attrs["value"], node.outputs[0])
    if name == "constant":
        return bool(node.attrs["value"].size <= _LARGEST_TABLE)
    if name == "matmul":
        return bool(node.outputs[0].dtype.kind == "f")
    if name == "arange":
        return bool(node.outputs[0].dtype.kind == "i") and all(isinstance(node.attrs[k], int) for k in ("start", "stop", "step"))
    if name == "philox":
        return node.outputs[0].dtype in (np.float32, np.float64)
    if name in WRITES:
        return is_taken(node)
    return name in layout.RULES or name in ALONE


def _is_array(value: Value) -> bool:
    return isinstance(value.type, Tensor) and value.type.device != HOST and memory_type(value.dtype) is not None and all(
        isinstance(n, Dim) or isinstance(n, (int, np.integer)) and n > 0 for n in value.shape)


#: Ops besides elementwise ones whose kernels are right for sizes that only the run knows.
_OF_ANY_SIZE = frozenset((
    *REDUCTIONS, *layout.RULES, "matmul", "reshape", "pretransposed", "concat", "stack", "full", "arange", "philox", "take",
    "take_along", "add_along", "scatter_add", "argmax", "argmin", "cumsum", "cumprod", "shift", "pad",
    *WINDOWS)) - {"getitem", "diagonal"}


def _has_steps(node: Node) -> bool:
    """Whether kernels compute what a composite node with sizes that only the run knows becomes."""
    steps = eliminate_dead(with_counts(Graph(node.inputs, node.outputs, tuple(decomposed(node)))))
    return all(map(supported, steps.nodes))


def _takes_run_sizes(node: Node) -> bool:
    """Whether kernels compute a node some of whose sizes only the run knows: its slices have known ends, or go one by one."""
    if node.op.name in ("getitem", "scatter_slice", "pick"):
        return all(entry[2] == 1 or all(e is None or is_known(e) for e in entry[:2])
                   for entry in node.attrs["index"] if isinstance(entry, tuple))
    return node.op.kind == "elementwise" or node.op.decompose is not None or node.op.name in _OF_ANY_SIZE


def _is_number(number: object, value: Value) -> bool:
    return isinstance(number, (bool, int, float, np.generic)) and (value.dtype.kind == "f" or number in (0, 1))


def write(graph: Graph, plan: Planner = no_plan, wide: bool = False) -> Union[DeviceFunction, OpenFunction]:
    """The kernels of a graph all of whose nodes are `supported`, and what launches them.

    plan: how cuDNN computes a convolution.  wide: as of `FunctionText`.
    """
    graph = run(REGION, graph)
    function = FunctionText(graph, plan, wide)
    made = {v for node in graph.nodes for v in node.outputs}
    read_by = _readers(graph)
    function.inline = {node.outputs[0]: node for node in graph.nodes if node.op.name in _INLINE and _is_for_loops(
        node.outputs[0], read_by, _INLINE[node.op.name])}
    fused = _fused(function, [node for node in graph.nodes if node.outputs[0] not in function.inline], read_by)
    copied = []
    for number, value in enumerate(graph.outputs, start=function.first_output):
        place = function.places.of(value)
        is_own = place.whole and place.base in made and place.base not in function.places.constants
        if is_own and not function.has_memory(place.base):
            function.put_at(place.base, number)
        else:
            copied.append((value, number))
    _put_in_place(function, fused)
    function.needed = fused.needed
    readers = read_by_nodes(fused, function.places)
    finishing: Set[object] = set()                                     # groups that are steps together with the product before
    for part, following in zip(fused.parts, (*fused.parts[1:], None)):
        if part in finishing:
            continue
        function.clock += 1
        found = finish_of(function, fused, readers, part, following)
        if found is not None and following is not None:
            finishing.add(following)
            write_finished(function, found)
            continue
        if isinstance(part, Group):
            function.nodes = tuple(part.nodes)
            if part.nodes:
                render(part, function)
        else:
            assert isinstance(part, Node)
            function.nodes = (part,)
            ALONE[part.op.name](function, part)
    for value, number in copied:
        function.clock, function.nodes = function.clock + 1, tuple([node for node in graph.nodes if value in node.outputs])
        function.copy(place_of(value), function.places.of(value), number)
    return function.finish()


def _fused(function: FunctionText, nodes: Sequence[Node], read_by: Mapping[Value, Collection[Optional[Node]]]) -> Run:
    """The nodes in groups, each of which computes again what would take more time to load."""
    fused = fuse(nodes, function.places, read_by)
    readers = read_by_nodes(fused, function.places)
    found = [finish_of(function, fused, readers, part, following) for part, following in zip(fused.parts, fused.parts[1:])]
    finishes = [finish for finish in found if finish is not None]
    absent = {v for finish in finishes for node in (finish.node, *finish.group.nodes[:-1]) for v in node.outputs}
    return recompute(fused, function.places, at_once, {*absent, *function.inline}, [finish.group for finish in finishes])


def _put_in_place(function: FunctionText, fused: Run) -> None:
    """Let operands of joins, and products that are only copied to another order, be made where they go."""
    nodes = [part for part in fused.parts if isinstance(part, Node)]
    joins, copies = [[node for node in nodes if node.op.name in names] for names in (JOINS, ("reshape",))]
    if joins or copies:
        made = made_by(function, fused)
        for node in joins:
            join_in_place(function, node, made)
        for node in copies:
            multiply_in_place(function, node, made)


def _is_for_loops(value: Value, read_by: Mapping[Value, Collection[Optional[Node]]], views: Collection[str]) -> bool:
    """Whether loop nests alone read a value, or views of it with these names; a broadcast view is none to look through again."""
    return all(reader is not None and (_is_loop(reader) or reader.op.name in views and _is_for_loops(
        reader.outputs[0], read_by, () if reader.op.name == "broadcast_to" else views)) for reader in read_by.get(value, ()))


def _is_loop(node: Node) -> bool:
    """Whether a node is part of a loop nest, which reads elements."""
    return node.op.kind == "elementwise" or node.op.name in REDUCTIONS


def _readers(graph: Graph) -> Dict[Value, Set[Optional[Node]]]:
    """What reads each value: nodes, and None for the end of the graph."""
    found: Dict[Value, Set[Optional[Node]]] = {}
    for node in graph.nodes:
        for value in node.inputs:
            found.setdefault(value, set()).add(node)
    for value in graph.outputs:
        found.setdefault(value, set()).add(None)
    return found
