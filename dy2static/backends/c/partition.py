"""Which nodes C takes, and the regions they make: each becomes one ``native`` node of the graph."""
from __future__ import annotations

from dataclasses import replace
from typing import Callable, Collection, Dict, List, Sequence, Set

import numpy as np

from ...ir.c_forms import c_expression, c_type
from ...ir.dims import Dim, is_known
from ...ir.graph import Graph, Node, Value
from ...ir.sizes_read import dims_of, made_symbols
from ...ir.types import Extent, Scalar, Stack, Tensor, dims_in
from ...ir.types import List as ListType
from ...lowering.numpy.legalize import CALLS, call_as_ops
from ...passes.effects import must_run
from ...passes.legalize.decompose import decomposes
from ..compiled_calls import NATIVE, NATIVE_EFFECT
from ..loops import layout
from ..loops.groups import REDUCTIONS
from ..run_sizes import symbols_of
from . import kernels_blocks, kernels_convolution, kernels_indexing, kernels_picking, kernels_pooling, lists
from .draws import NATIVE_DRAWS, STANDALONE_DRAWS, draws
from .kernels_dense import ALONE
from .lists import LISTS, has_list, is_list
from .scalars import has_scalar_form
from .vector_sorts import is_left_to_numpy

#: Tables up to this size stand in the text; larger ones are inputs.
_LARGEST_TABLE = 64

#: Draws: other nodes may move past them, because they see no arrays.
_DRAWS = ("random_uniform", "random_between", "random_normal", "fast_begin", "fast_uniform", "fast_between", "fast_normal",
          "fast_kept")


def supported(node: Node, standalone: bool = False) -> bool:
    """Whether C computes a node, with all that is in its regions.

    standalone: in a function that no Python stands behind: also tables of any size, all draws, what raises, and lists and stacks
        whose items have sizes that only the run knows; none of these enters or leaves.
    """
    if node.op.name == "raise_":
        return standalone
    if not all(_has_memory_form(value, standalone) for value in (*node.inputs, *node.outputs)):
        return False
    name = node.op.name
    if name in CALLS:
        instead = call_as_ops(node)
        return instead is not None and all(supported(new, standalone) for new in instead)
    if not all(map(is_known, dims_of(node))) and not _fits_run_sizes(node):
        return False
    if name in LISTS:
        return lists.takes(node, standalone)
    if standalone and name in ("constant", *STANDALONE_DRAWS):
        return True
    if node.regions:
        return name in ("if_", "while_", "scan") and all(
            supported(inner, standalone) for region in node.regions for inner in region.nodes) \
            and all(_plain_control(node, region, standalone) for region in node.regions)
    if any(isinstance(v.type, Stack) for v in (*node.inputs, *node.outputs)):
        return name in ("stack_product", "stack_scatter") and node.outputs[0].dtype.kind == "f"
    if node.op.kind == "scalar":
        return has_scalar_form(node) or name in ("py_constant", "dimension") and _fits(node)
    if any(isinstance(v.type, Scalar) for v in node.inputs) and name not in ("getitem_at", "scatter_at", "put"):
        return False
    if node.op.kind == "elementwise":
        types = [v.type for v in node.inputs]
        return c_expression(node.op, [v.name for v in node.inputs], types, node.outputs[0].type, node.attrs) is not None
    if node.op.decompose is not None:
        return decomposes(node)
    return name in _TAKEN and _TAKEN[name](node)


#: Ops whose text is right for sizes that only the run knows.
_OF_ANY_SIZE = frozenset((
    *REDUCTIONS, *layout.RULES, "matmul", "take", "scatter_add", "concat", "stack", "reshape", "full", "getitem_at", "scatter_at",
    "take_along", "add_along", "stack_scatter", "sequence_places", "dimension", "argmax", "argmin", "arange", "argsort", "bincount",
    "cumprod", "cumsum", "linear_recurrence", "pad", "pretransposed", "put_diagonal", "put_diagonals", "select",
    "shift", "sort", "stack_product", "weighted_add", "weighted_take", *STANDALONE_DRAWS, *LISTS)) - {"diagonal"}


#: Ops whose text is right for any number of images of any size, if their channels and windows are known.
_OF_ANY_IMAGES = {**dict.fromkeys(kernels_convolution.CONVOLUTIONS, kernels_convolution.known_of),
                  **dict.fromkeys(kernels_pooling.WINDOWS, kernels_pooling.known_of)}


def _fits_run_sizes(node: Node) -> bool:
    """Whether C computes a node for sizes that only the run knows."""
    if node.op.name in ("scatter_slice", "pick", "add_at", "put"):
        return all(entry[2] == 1 or entry[1:] == (None, -1) or all(e is None or is_known(e) for e in entry[:2])
                   for entry in node.attrs["index"] if isinstance(entry, tuple))
    if node.op.name in _OF_ANY_IMAGES:
        windows = tuple([attr for name, attr in node.attrs.items() if name != "size"])
        return not any(True for _ in dims_in((windows, _OF_ANY_IMAGES[node.op.name](node))))
    return bool(node.regions) or node.op.kind == "elementwise" or node.op.decompose is not None or node.op.name in _OF_ANY_SIZE


def _reduces(node: Node) -> bool:
    kind = node.outputs[0].dtype.kind
    return node.op.name in ("any", "all") or kind in "iu" or kind == "f" and node.inputs[0].dtype.kind == "f"


def _fits(node: Node) -> bool:
    value = node.attrs.get("value", node.attrs.get("size"))
    if isinstance(value, Dim):
        return True
    if isinstance(node.outputs[0].type, Tensor):
        return isinstance(value, (bool, int, float, np.generic)) and (
            node.outputs[0].dtype.kind == "f" or value in (0, 1, True, False))
    return isinstance(value, (bool, float)) or isinstance(value, int) and -2 ** 62 < value < 2 ** 62


def _has_memory_form(value: Value, standalone: bool = False) -> bool:
    type = value.type
    if isinstance(type, Stack):
        return not isinstance(type.elem, (Stack, ListType)) and _has_memory_form(Value(type.elem)) and all(
            n if is_known(n) else standalone for n in type.elem.shape)
    if isinstance(type, ListType):
        return lists.has_memory_form(type, standalone)
    if isinstance(type, Tensor):
        return c_type(type.dtype) is not None
    return isinstance(type, Scalar) and (type.kind != "numpy" or c_type(type.dtype) is not None)


def _plain_control(node: Node, region: Graph, standalone: bool) -> bool:
    """Whether a region gives what the node gives, and always ends; one that raises may be a side of a branch."""
    if standalone and node.op.name == "if_" and region.nodes and region.nodes[-1].op.name == "raise_":
        return True
    if node.op.name == "if_" and any(isinstance(v.type, Stack) for v in (*node.inputs, *node.outputs)):
        return False
    if node.op.name == "if_" and [v.type for v in region.outputs] != [v.type for v in node.outputs]:
        return False
    if standalone and any(inner.op.name in ("list_stack", "list_array") for inner in region.walk()):
        return False                                           # how much memory its result takes is known in there only
    carried = node.attrs.get("carried", 0)
    return not any(isinstance(v.type, Stack) for v in node.outputs[:carried]) and all(
        _has_memory_form(v, standalone) for v in region.outputs)


def _is_float(node: Node) -> bool:
    return node.outputs[0].dtype.kind == "f"


def _always(node: Node) -> bool:
    return True


#: For each op that is no list, no number and not elementwise, whether C takes a node of it; what comes later counts.
_TAKEN: Dict[str, Callable[[Node], bool]] = {
    **dict.fromkeys((*layout.RULES, *ALONE), _always),
    **dict.fromkeys(STANDALONE_DRAWS, lambda node: False),
    **dict.fromkeys(NATIVE_DRAWS, lambda node: node.outputs[0].ndim > 0),
    **dict.fromkeys(kernels_pooling.WINDOWS, kernels_pooling.takes),
    **dict.fromkeys(kernels_convolution.CONVOLUTIONS, kernels_convolution.takes),
    **dict.fromkeys(kernels_blocks.BLOCKS, kernels_blocks.takes),
    **dict.fromkeys(kernels_indexing.AXES, kernels_indexing.takes),
    **dict.fromkeys(kernels_picking.PICKS, kernels_picking.takes),
    "full": _fits, "matmul": _is_float,
    "constant": lambda node: node.attrs["value"].size <= _LARGEST_TABLE,
    "arange": lambda node: node.outputs[0].dtype.kind in "iuf" and all(isinstance(node.attrs[k], int) for k in ("start", "step")),
    **dict.fromkeys(REDUCTIONS, _reduces)}


def partition(graph: Graph, kept: Collection[Value] = (), is_inner: bool = False) -> Graph:
    """The graph with a ``native`` node for each group of nodes that C computes at once, also inside of other regions.

    kept: values besides the outputs that are read afterwards.  is_inner: this is a region of a node that stays NumPy's.
    Values keep their identity.
    """
    return _Partition(graph, set(kept) | set(graph.outputs), is_inner).run()


class _Partition:
    def __init__(self, graph: Graph, wanted: Set[Value], is_inner: bool):
        self.graph, self.wanted = graph, wanted
        self.producer = {v: node for node in graph.nodes for v in node.outputs}
        self.order = {node: k for k, node in enumerate(graph.nodes)}
        self.readers: Dict[Value, List[Node]] = {}
        for node in graph.nodes:
            for value in node.inputs:
                self.readers.setdefault(value, []).append(node)
        self.leaving = set(self.wanted)                        # with what those are views of
        for node in reversed(graph.nodes):
            if node.op.view and not self.leaving.isdisjoint(node.outputs):
                self.leaving.add(node.inputs[0])
        self.native = {node for node in graph.nodes if supported(node) and not _has_effect(node) and not is_left_to_numpy(node)}
        self.native -= self._share_sizes_made_within()
        while leaks := {node for node in self.native if self._may_leak(node)}:
            self.native -= leaks                               # what these read may then be seen by others
        self._leave_lists(is_inner)
        self.sizes = {symbol: node for node in graph.nodes for inner in node.walk() for symbol, _, _ in made_symbols(inner)}
        self.level: Dict[Node, int] = {}

    def _share_sizes_made_within(self) -> Set[Node]:
        """Control flow in whose regions lists become arrays, with a size that something around it has, too."""
        within = {node: set(_made_within(node)) for node in self.graph.nodes if node.regions}
        found = {node for node, symbols in within.items() if symbols}
        if not found:
            return found
        around = {symbol for value in self.graph.inputs for dim in dims_in(value.type) for symbol in dim.symbols}
        return {node for node in found if not within[node].isdisjoint(around.union(
            *[symbols_of(other) for other in self.graph.nodes if other is not node],
            *[dim.symbols for value in (*node.inputs, *node.outputs) for dim in dims_in(value.type)]))}

    def _leave_lists(self, is_inner: bool) -> None:
        """Lists are handed over as a whole: those that others read, too, stay with them, but for what loops make of them.
        What leaves, and its items, are objects that may be compared: none of it is native."""
        if is_inner:
            self.native -= {node for node in self.native if has_list(node)}
        waiting = [v for v in self.graph.outputs if is_list(v)]
        waiting += [v for node in self.graph.nodes if not node.regions and node.op.name not in LISTS
                    for v in node.inputs if is_list(v)]
        left: Set[Value] = set()
        while waiting:
            value = waiting.pop()
            if value not in left:
                left.add(value)
                for node in self._around(value):
                    self.native.discard(node)
                    waiting += [v for v in (*node.inputs, *node.outputs) if is_list(v)]
        waiting = [v for node in self.graph.nodes for v in (*node.inputs, *node.outputs) if is_list(v)]
        while waiting:
            value = waiting.pop()
            nodes = self._around(value)
            leaving = [node for node in nodes if node in self.native and not node.regions]
            if leaving and any(node not in self.native for node in nodes):
                self.native.difference_update(leaving)
                waiting += [v for node in leaving for v in (*node.inputs, *node.outputs) if is_list(v)]

    def _around(self, value: Value) -> List[Node]:
        """What makes and what reads a value."""
        return [*self.readers.get(value, ()), *([self.producer[value]] if value in self.producer else ())]

    def _may_leak(self, node: Node) -> bool:
        """Control flow whose result may be an array that was there before, as a whole, and leaves: a copy would be told apart."""
        if not node.regions:
            return False
        passed = [k for k, v in enumerate(node.outputs) if v in self.leaving and self._passes_on(node, k)]
        return bool(passed) and not (node.op.name == "if_" and self._are_own(node, passed))

    def _are_own(self, node: Node, passed: Sequence[int]) -> bool:
        """Whether native code alone makes and reads what a decision passes on to these outputs, each array once."""
        outer = [dict(zip(region.inputs, node.inputs[1:])) for region in node.regions]
        found = [[operand[region.outputs[k]] for k in passed if region.outputs[k] in operand]
                 for region, operand in zip(node.regions, outer)]
        made = [{v for inner in region.nodes if not inner.regions and not inner.op.view for v in inner.outputs}
                for region in node.regions]
        if not all(region.outputs[k] in operand or region.outputs[k] in own
                   for region, operand, own in zip(node.regions, outer, made) for k in passed):
            return False
        return all(len(set(values)) == len(values) for values in found) and all(
            value not in self.leaving and self._is_native_alone(value) for values in found for value in values)

    def _is_native_alone(self, value: Value) -> bool:
        """Whether native code makes a new array, and nothing else reads it, or a view of it."""
        node = self.producer.get(value)
        return node in self.native and not node.regions and not _stays_outside(node) and not node.op.view and all(
            reader in self.native and (not _stays_outside(reader) or all(map(self._is_read_natively, reader.outputs)))
            for reader in self.readers.get(value, ()))

    def _is_read_natively(self, view: Value) -> bool:
        return view not in self.wanted and all(reader in self.native and not _stays_outside(reader)
                                               for reader in self.readers.get(view, ()))

    def _passes_on(self, node: Node, k: int) -> bool:
        if not isinstance(node.outputs[k].type, Tensor):
            return False
        regions = node.regions if node.op.name == "if_" else node.regions[-1:]
        for region in regions:
            made = {v: inner for inner in region.nodes for v in inner.outputs}
            value = region.outputs[k]
            while value in made and made[value].op.view:
                if made[value].op.name in ("broadcast_to", "diagonal"):        # NumPy's are read-only
                    return True
                value = made[value].inputs[0]
            if value not in made or made[value].regions:
                return True
        return False

    def run(self) -> Graph:
        """All nodes in an order in which they can run, those of each level that are native as one."""
        self._find_levels()
        by_level: Dict[int, List[Node]] = {}
        for node in self.graph.nodes:
            by_level.setdefault(self.level[node], []).append(node)
        nodes: List[Node] = []
        for level in sorted(by_level):
            inside = [node for node in by_level[level] if node in self.native]
            nodes += self._region(inside) if inside else []
            nodes += [self._with_regions(node) for node in by_level[level] if node not in self.native]
        return self.graph.with_(nodes=tuple(nodes))

    def _find_levels(self) -> None:
        """The number of the region a node is in: that of what it reads, one more behind each node that is not native,
        and behind each that may write into arrays.  Draws, and what may raise, stay in their order: where one raises, what
        stands before it has been drawn, and no other."""
        barrier = highest = 0
        next_ordered = {True: 0, False: 0}                     # the first level for it, in native code or not
        for node in self.graph.nodes:
            is_ordered, native = node.op.name in _DRAWS or draws(node) or must_run(node), node in self.native
            level = max(barrier, next_ordered[native]) if is_ordered else barrier
            for value in node.inputs:
                before = self.producer.get(value)
                if before is not None:
                    level = max(level, self.level[before] + (before not in self.native and native))
            for symbol in symbols_of(node) if self.sizes else ():
                before = self.sizes.get(symbol)
                if before is not None and before is not node and before in self.level:
                    level = max(level, self.level[before] + (before not in self.native and native))
            self.level[node] = level
            highest = max(highest, level)
            if is_ordered:
                next_ordered = {True: level + (not native), False: level}
            if not native and _has_effect(node) and node.op.name not in _DRAWS:
                self.level[node] = highest
                barrier = highest + 1

    def _with_regions(self, node: Node) -> Node:
        if not node.regions:
            return node
        return replace(node, regions=tuple(partition(region, is_inner=True) for region in node.regions))

    def _region(self, nodes: Sequence[Node]) -> List[Node]:
        """The native node, and behind it the views that others read."""
        inside = set(nodes)
        made = {v for node in nodes for v in node.outputs}
        views: List[Node] = []
        wanted = {v for v in made if v in self.wanted or any(node not in inside for node in self.readers.get(v, ()))}
        for node in reversed(nodes):                           # views that leave are made outside, of what they are views of
            if _stays_outside(node) and not wanted.isdisjoint(node.outputs):
                views.insert(0, node)
                wanted -= set(node.outputs)
                wanted |= {v for v in node.inputs if v in made}
        kept = _needed(nodes, wanted)
        if not any(_works(node) for node in kept):
            return list(nodes)
        outputs = tuple(v for node in kept for v in node.outputs if v in wanted)
        kept = self._with_sources(kept)
        made = {v for node in kept for v in node.outputs}
        inputs = tuple(dict.fromkeys(v for node in kept for v in node.inputs if v not in made))
        found = [symbol for node in kept for symbol, _, _ in made_symbols(node)]
        symbols = sorted(set().union(*map(symbols_of, kept)) - set(found).union(*map(_made_within, kept)))
        inputs += tuple(Value(Extent(symbol), symbol) for symbol in symbols)
        outputs += tuple(Value(Extent(symbol), symbol) for symbol in dict.fromkeys(found))
        region = Graph(inputs, outputs, tuple(kept), "native")
        native = Node(NATIVE_EFFECT if any(map(must_run, kept)) else NATIVE, inputs, outputs, {"region": region}, (), kept[0].loc)
        return [native, *views]

    def _with_sources(self, nodes: Sequence[Node]) -> List[Node]:
        """The nodes, and before them those outside that only rename elements, or need none: constants, views."""
        made = {v for node in nodes for v in node.outputs}
        found: List[Node] = []
        waiting = [v for node in reversed(nodes) for v in node.inputs]
        while waiting:
            value = waiting.pop()
            source = self.producer.get(value)
            if value in made or source not in self.native or not _stays_outside(source):
                continue
            made.update(source.outputs)
            found.append(source)
            waiting += source.inputs
        return sorted(found, key=self.order.__getitem__) + list(nodes)


def _made_within(node: Node) -> List[str]:
    """The symbols of sizes that the regions of a node find out."""
    return [symbol for region in node.regions for inner in region.walk() for symbol, _, _ in made_symbols(inner)]


def _has_effect(node: Node) -> bool:
    """Whether a node does something besides what it gives; a call that may only fail makes native code decline, which also
    takes back what it has drawn."""
    return any(inner.op.effect and inner.op.name not in CALLS and inner.op.name not in NATIVE_DRAWS for inner in node.walk())


def _stays_outside(node: Node) -> bool:
    if node.op.name in CALLS:
        instead = call_as_ops(node) or ()
        return any(new.op.view for new in instead) and all(new.op.view or new.op.kind == "scalar" for new in instead)
    return node.op.name in layout.RULES or node.op.name in ("reshape", "getitem_at", "constant", "full", "py_constant", "dimension")


def _needed(nodes: Sequence[Node], wanted: Set[Value]) -> List[Node]:
    """The nodes that these values need, and those that may raise."""
    live, kept = set(wanted), []
    for node in reversed(nodes):
        if not live.isdisjoint(node.outputs) or must_run(node):
            kept.append(node)
            live.update(node.inputs)
    kept.reverse()
    return kept


def _works(node: Node) -> bool:
    """Whether a node does more than to rename, or to compute with single numbers, which Python does as fast."""
    if node.op.name in CALLS and all(v.type.shape == () for v in (*node.inputs, *node.outputs)):
        return False
    return bool(node.regions) or not (_stays_outside(node) or node.op.kind == "scalar")
