"""The regions of a graph: each group of nodes that C computes at once becomes one ``native`` node."""
from __future__ import annotations

from dataclasses import replace
from typing import Collection, Dict, List, Sequence, Set

from ...ir.graph import Graph, Node, Value
from ...ir.sizes_read import made_symbols
from ...ir.types import Extent, Tensor, dims_in
from ...lowering.numpy.legalize import CALLS, call_as_ops
from ...passes.effects import must_run
from ..compiled_calls import NATIVE, NATIVE_EFFECT
from ..loops import layout
from ..run_sizes import symbols_of
from .draws import NATIVE_DRAWS, draws
from .lists import LISTS, has_list, is_list
from .supported import supported
from .vector_sorts import is_left_to_numpy
from .view_copies import Copying, copying, with_native_views

#: Draws: other nodes may move past them, because they see no arrays.
_DRAWS = ("random_uniform", "random_between", "random_normal", "fast_begin", "fast_uniform", "fast_between", "fast_normal",
          "fast_kept")


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
        self.copies: Set[Node] = set()                         # reshapes that copy what native code has made
        self.asked: Dict[Node, Copying] = {}                   # those that may copy
        self.leaving = set(self.wanted)                        # with what those are views of
        for node in reversed(graph.nodes):
            if node.op.view and not self.leaving.isdisjoint(node.outputs):
                self.leaving.add(node.inputs[0])
        self.native = {node for node in graph.nodes if supported(node) and not _has_effect(node) and not is_left_to_numpy(node)}
        self.native -= self._share_sizes_made_within()
        while leaks := {node for node in self.native if self._may_leak(node)}:
            self.native -= leaks                               # what these read may then be seen by others
        self._leave_lists(is_inner)
        for node in graph.nodes:
            found = copying(node, self.producer, self.native)
            if found is not None and self._makes_memory(found.source):
                self.copies.add(node)
            elif found is not None:
                self.asked[node] = found
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
        return self._makes_memory(value) and all(
            reader in self.native and (not self._stays_outside(reader) or all(map(self._is_read_natively, reader.outputs)))
            for reader in self.readers.get(value, ()))

    def _makes_memory(self, value: Value) -> bool:
        """Whether native code puts a value into memory of its own, in C order."""
        node = self.producer.get(value)
        return node in self.copies or node in self.native and not (node.regions or node.op.view or _only_renames(node))

    def _stays_outside(self, node: Node) -> bool:
        """Whether others that read what a node gives get it from outside of the region."""
        return _only_renames(node) and node not in self.copies

    def _is_read_natively(self, view: Value) -> bool:
        return view not in self.wanted and all(reader in self.native and not self._stays_outside(reader)
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
            if self._stays_outside(node) and not wanted.isdisjoint(node.outputs):
                views.insert(0, node)
                wanted -= set(node.outputs)
                wanted |= {v for v in node.inputs if v in made}
        kept = _needed(nodes, wanted)
        if not any(_works(node) or node in self.copies for node in kept):
            return self._with_native_views(nodes)
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
        return [native, *self._with_native_views(views)]

    def _with_native_views(self, nodes: Sequence[Node]) -> List[Node]:
        """These nodes, with native code for reshapes that may copy."""
        asked = {node: self.asked[node] for node in nodes if node in self.asked}
        if not asked:
            return list(nodes)
        own = set(nodes)
        read = {v for node in nodes for v in node.outputs
                if v in self.wanted or any(reader not in own for reader in self.readers.get(v, ()))}
        return with_native_views(nodes, asked, read)

    def _with_sources(self, nodes: Sequence[Node]) -> List[Node]:
        """The nodes, and before them those outside that only rename elements, or need none: constants, views."""
        made = {v for node in nodes for v in node.outputs}
        found: List[Node] = []
        waiting = [v for node in reversed(nodes) for v in node.inputs]
        while waiting:
            value = waiting.pop()
            source = self.producer.get(value)
            if value in made or source not in self.native or not self._stays_outside(source):
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


def _only_renames(node: Node) -> bool:
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
    return bool(node.regions) or not (_only_renames(node) or node.op.kind == "scalar")
