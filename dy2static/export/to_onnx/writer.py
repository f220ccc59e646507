"""Writes the nodes of graphs as nodes of ONNX: names, dtypes, constants and sizes."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from ...errors import ExportError, InternalError
from ...ir.dims import Dim, Size, as_multiple
from ...ir.graph import Graph, Node, Value
from ...ir.onnx_forms import Name, NotInOnnx
from ...ir.types import Extent, Tensor
from . import proto
from .operators import operator, widened
from .patterns import Instead, recognized

#: The last opset whose operators are written.
NEWEST = 24
#: Bytes up to which equal constants are one.
_SMALL = 1 << 12


class Options(NamedTuple):
    """What was asked for.

    random: whether draws become operators.
    checks: what code that raises becomes.  "refuse": an `ExportError`.  "leave out": nothing.  "fail": a node that fails.
    is_fixed: whether the opset may not be a newer one, for operators that are not there before.
    """

    opset: int = 17
    random: bool = False
    checks: str = "refuse"
    is_fixed: bool = False


class Scope:
    """One graph of the model: its nodes, and what is known by name in it and in those around it."""

    def __init__(self, outer: Optional["Scope"] = None):
        self.outer = outer
        self.nodes: List[Any] = []
        self.made: Set[Name] = set()
        self.names: Dict[Value, Tuple[Name, ...]] = {}
        self.lazy: Dict[Value, Node] = {}
        self.symbols: Dict[str, Callable[[], Name]] = {}
        self.sizes: Dict[Size, Name] = {}
        self.checks: List[Name] = []

    def around(self) -> Iterator["Scope"]:
        """This scope, then those around it."""
        scope: Optional[Scope] = self
        while scope is not None:
            yield scope
            scope = scope.outer


class GraphWriter:
    """The `OnnxWriter` of one model.  control: how nodes with regions, and unions, are written, by the name of their op."""

    def __init__(self, options: Options, control: Mapping[str, Callable[["GraphWriter", Node], None]]):
        self.options, self.opset, self._control = options, options.opset, control
        self.scope = Scope()
        self.initializers: Dict[Name, np.ndarray] = {}
        self._dtypes: Dict[Name, np.dtype] = {}
        self._constants: Dict[Any, Name] = {}
        self._taken: Dict[str, int] = {}
        self._hint, self._loc = "v", None       # type: Tuple[str, Optional[Location]]
        self._read: Set[Value] = set()
        self._node: Optional[Node] = None
        self._instead: Dict[Node, Instead] = {}

    # Graphs ---------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def inside(self) -> Iterator[Scope]:
        """Inside the block, nodes go into a graph of their own, which sees those around it."""
        before = self.scope
        self.scope = Scope(before)
        try:
            yield self.scope
        finally:
            self.scope = before

    def declare(self, value: Value, names: Tuple[Name, ...]) -> None:
        """Let a value have these names here; what is not known of sizes follows from its shape."""
        self.scope.names[value] = names
        self._bind(value)

    def _bind(self, value: Value) -> None:
        if isinstance(value.type, Extent):
            self.bind(value.type.symbol, lambda: self.names_of(value)[0])
        for axis, n in enumerate(value.type.shape if isinstance(value.type, Tensor) else ()):
            symbol, factor = as_multiple(n) or ("", 1)
            if symbol and not any(symbol in s.symbols for s in self.scope.around()):
                self.bind(symbol, lambda axis=axis, factor=factor: self._number_of(self.names_of(value)[0], axis, factor))

    def bind(self, symbol: str, size: Callable[[], Name]) -> None:
        """Let a symbol of sizes have a value from here on."""
        self.scope.symbols[symbol] = size
        self.scope.sizes = {n: name for n, name in self.scope.sizes.items() if symbol not in n.symbols}     # type: ignore[union-attr]

    def _number_of(self, x: Name, axis: int, factor: int) -> Name:
        """The number of the symbol that the size of an axis is so many times."""
        size = self.node("Gather", self.shape_of(x), self.constant(axis, np.int64), axis=0)
        return size if factor == 1 else self.node("Div", size, self.constant(factor, np.int64))

    def graph(self, graph: Graph) -> None:
        """Write the nodes of a graph whose inputs have names.  Raises `ExportError`."""
        for node in graph.nodes:
            self._read.update(node.inputs)
        self._read.update(graph.outputs)
        instead, left_out = recognized(graph)
        self._instead.update(instead)
        for node in graph.nodes:
            if node not in left_out:
                self._write(node)

    def _write(self, node: Node) -> None:
        self._node, self._loc = node, node.loc or self._loc
        self._hint = node.outputs[0].name if node.outputs else node.op.name
        if node.op.name == "broadcast_to":
            self.scope.lazy[node.outputs[0]] = node             # its sizes are those of others
            return
        try:
            if node.op.name in self._control:
                self._control[node.op.name](self, node)
                return
            if node.op.onnx is None:
                raise NotInOnnx("ONNX has no operators for it")
            if node.op.kind == "effect":
                self._check_draw(node)
            results = self._results(node)
        except NotInOnnx as error:
            hint = None if "`" in str(error) else "compute it otherwise, or leave it to the program that runs the model"
            name = node.op.name.rstrip("_")
            raise ExportError(f"{name} cannot be written in ONNX: {error}", node.loc or self._loc, hint) from error
        for value, name in zip(node.outputs, results):
            self.declare(value, (name,))

    def _check_draw(self, node: Node) -> None:
        if not self.options.random:
            raise NotInOnnx("random numbers are written with `random=True`, and are others than NumPy's")
        if self.opset > 21:
            raise NotInOnnx("onnxruntime draws random numbers up to opset 21")

    def _results(self, node: Node) -> Tuple[Name, ...]:
        made = self._made(node)
        names = made if isinstance(made, tuple) else (made,)
        if len(names) != len(node.outputs):
            raise InternalError(f"{node.op.name} has {len(names)} results in ONNX, not {len(node.outputs)}", node.loc)
        dtypes = [getattr(v.type, "dtype", None) for v in node.outputs]
        return tuple(name if dtype is None or not name else self.cast(name, dtype) for name, dtype in zip(names, dtypes))

    def _made(self, node: Node) -> Any:
        if node in self._instead:
            instead = self._instead[node]
            return instead.write(self, *map(self.name_of, instead.operands))
        operands, form = self._operands(node), node.op.onnx
        if isinstance(form, str):
            return self.node(form, *operands)
        assert form is not None
        return form(self, [v.type for v in node.inputs], [v.type for v in node.outputs], *operands, **node.attrs)

    def _operands(self, node: Node) -> List[Name]:
        """The names of the operands; those that are repeated to one shape, as they were before if another has that shape."""
        lazy = [self._unrepeated(v) for v in node.inputs] if node.op.kind == "elementwise" else []
        if any(name is None for name in lazy):
            return [self.name_of(v) if name is None else name for v, name in zip(node.inputs, lazy)]
        return [self.name_of(v) for v in node.inputs]

    def _unrepeated(self, value: Value) -> Optional[Name]:
        node = next((s.lazy[value] for s in self.scope.around() if value in s.lazy), None)
        return None if node is None else self._unrepeated(node.inputs[0]) or self.name_of(node.inputs[0])

    def name_of(self, value: Value) -> Name:
        """The name of a value that has one."""
        return self.names_of(value)[0]

    def names_of(self, value: Value) -> Tuple[Name, ...]:
        """The names of a value: several, of a union."""
        for scope in self.scope.around():
            if value in scope.names:
                return scope.names[value]
            if value in scope.lazy:
                name = self.node("Expand", self.name_of(scope.lazy[value].inputs[0]), self.shape(value.shape))
                self.scope.names[value] = (name,)
                return (name,)
        raise InternalError(f"{value.name} has no name in ONNX", self._loc)

    # Nodes ----------------------------------------------------------------------------------------------------------

    def fresh(self, hint: Optional[str] = None) -> Name:
        """A name that is still free."""
        hint = self._hint if hint is None else hint
        count = self._taken.get(hint, 0)
        self._taken[hint] = count + 1
        return hint if not count else self.fresh(f"{hint}_{count}")

    def node(self, name: str, *operands: Name, **attrs: Any) -> Name:
        """The result of one node with one output, in the dtype of its operands."""
        known = operator(name)
        places = [k for k in (range(len(operands)) if known.data is None else known.data) if k < len(operands) and operands[k]]
        if not places:
            return self.nodes(name, operands, (known.result or "int64",), **attrs)[0]
        given = self.dtype(operands[places[0]])
        dtype = widened(name, given)
        if dtype is None:
            raise NotInOnnx(f"onnxruntime has no {name} for {given.name}")
        converted = [self.cast(x, dtype) if k in places and dtype != given else x for k, x in enumerate(operands)]
        y, = self.nodes(name, converted, (known.result or dtype,), **attrs)
        return y if known.result else self.cast(y, given)

    def nodes(self, name: str, operands: Sequence[Name], dtypes: Sequence[Any], **attrs: Any) -> Tuple[Name, ...]:
        """The results of one node, of these dtypes."""
        known = operator(name)
        if known.dtypes is not None and operands and len(dtypes) > 1:
            given = self.dtype(operands[0])
            dtype = widened(name, given)
            if dtype is None:
                raise NotInOnnx(f"onnxruntime has no {name} for {given.name}")
            if dtype != given:
                results = self.nodes(name, (self.cast(operands[0], dtype), *operands[1:]),
                                     [dtype if np.dtype(d) == given else d for d in dtypes], **attrs)
                return tuple(self.cast(y, d) for y, d in zip(results, dtypes))
        results = tuple(self.fresh() for _ in dtypes)
        self.append(name, operands, results, dtypes, attrs)
        return results

    def append(self, name: str, operands: Sequence[Name], results: Sequence[Name], dtypes: Sequence[Any],
               attrs: Mapping[str, Any]) -> None:
        """Add a node whose results have these names."""
        self.scope.nodes.append(proto.node(name, operands, results, attrs, self._loc))
        self.scope.made.update(results)
        for result, dtype in zip(results, dtypes):
            self.note(result, dtype)

    def note(self, name: Name, dtype: Any) -> None:
        """Remember the dtype of a value."""
        self._dtypes[name] = np.dtype(dtype)

    def initializer(self, name: Name, array: np.ndarray) -> Name:
        """An array of the model's, under this name."""
        self.initializers[name] = array
        self.note(name, array.dtype)
        return name

    def constant(self, value: Any, dtype: Any = None) -> Name:
        """An array, or a number as a 0-d array."""
        array = np.asarray(value, None if dtype is None else np.dtype(dtype))
        key = (array.dtype.str, array.shape, array.tobytes()) if array.nbytes <= _SMALL else None
        if key is None or key not in self._constants:
            name = self.initializer(self.fresh("constant"), np.ascontiguousarray(array).reshape(array.shape))
            if key is None:
                return name
            self._constants[key] = name
        return self._constants[key]

    def like(self, value: Any, x: Name) -> Name:
        """A number in the dtype of ``x``."""
        with np.errstate(all="ignore"):
            return self.constant(np.asarray(value).astype(self.dtype(x)))

    def cast(self, x: Name, dtype: Any) -> Name:
        """The value in a dtype."""
        if self.dtype(x) == np.dtype(dtype):
            return x
        return self.nodes("Cast", (x,), (dtype,), to=np.dtype(dtype))[0]

    def dtype(self, x: Name) -> np.dtype:
        """The dtype of a value, or of the items of a sequence."""
        return self._dtypes[x]

    def takes(self, operator: str, dtype: Any) -> bool:
        """Whether an operator computes in a dtype, or in a wider one."""
        return widened(operator, dtype) is not None

    def wanted(self, output: int) -> bool:
        """Whether an output of the op that is being written is read."""
        return self._node is None or self._node.outputs[output] in self._read

    def reduce(self, name: str, x: Name, axes: Sequence[int], keepdims: bool = False) -> Name:
        """A reduction; of no axes, the value itself."""
        if not axes:
            return x
        if name == "ReduceSum" or self.opset >= 18:
            return self.node(name, x, self.constant(list(axes), np.int64), keepdims=int(keepdims))
        return self.node(name, x, axes=list(axes), keepdims=int(keepdims))

    def loop(self, count: Name, state: Sequence[Name], body: Callable[..., Any], pushed: int = 0) -> Tuple[Name, ...]:
        """So many iterations."""
        with self.inside() as scope:
            i, on = self.fresh("i"), self.fresh("going")
            self.note(i, np.int64)
            self.note(on, bool)
            inside = [self.fresh() for _ in state]
            for name, outer in zip(inside, state):
                self.note(name, self.dtype(outer))
            following, items = body(i, *inside)
            results = [self.produced(name) for name in (self.constant(True), *following, *items)]
        graph = proto.body(self.fresh("body"), scope.nodes, i, on, inside, results)
        return self.nodes("Loop", (count, "", *state), [self.dtype(name) for name in results[1:]], body=graph)

    def produced(self, name: Name) -> Name:
        """The value under a name that a node of this very graph gives, as a result of it must be."""
        if name in self.scope.made:
            self.scope.made.discard(name)           # a second result needs a name of its own
            return name
        copy, = self.nodes("Identity", (name,), (self.dtype(name),))
        self.scope.made.discard(copy)
        return copy

    # Checks ---------------------------------------------------------------------------------------------------------

    def fail_if(self, condition: Name, words: str) -> None:
        """Let the run fail where the condition holds, in a node of this name: it picks an element that is not there."""
        count = self.cast(condition, np.int64)
        result = self.fresh()
        self.append("Gather", (self.constant([0], np.int64), count), (result,), (np.int64,), {"axis": 0})
        self.scope.nodes[-1].name = self.fresh(words)
        self.scope.checks.append(result)

    def checked(self) -> Optional[Name]:
        """Zero, once all checks of this graph have been made; None if there are none."""
        total: Optional[Name] = None
        for check in self.scope.checks:
            total = check if total is None else self.node("Add", total, check)
        self.scope.checks = []
        return total

    def behind_checks(self, x: Name) -> Name:
        """The array, once all checks of this graph have been made."""
        zero = self.checked()
        return x if zero is None else self.node("Reshape", x, self.node("Add", self.shape_of(x), zero), allowzero=1)

    # Sizes ----------------------------------------------------------------------------------------------------------

    def shape_of(self, x: Name) -> Name:
        """The shape of a value."""
        return self.node("Shape", x)

    def shape(self, sizes: Sequence[Size]) -> Name:
        """Sizes as an array with one axis."""
        if all(not isinstance(n, Dim) for n in sizes):
            return self.constant(np.array(sizes, np.int64).reshape(-1))
        one = self.constant([1], np.int64)
        return self.node("Concat", *(self.node("Reshape", self.size(n), one) for n in sizes), axis=0)

    def size(self, n: Size) -> Name:
        """A size as a 0-d array."""
        if not isinstance(n, Dim):
            return self.constant(int(n), np.int64)
        for scope in self.scope.around():
            if n in scope.sizes:
                return scope.sizes[n]
            if any(symbol in scope.symbols for symbol in n.symbols):
                break                               # what scopes around this one know is of other sizes
        name = self._computed(n)
        self.scope.sizes[n] = name
        return name

    def _computed(self, n: Dim) -> Name:
        total: Optional[Name] = None
        for monomial, factor in n._terms:
            parts = [self._atom(atom) for atom in monomial]
            if factor != 1 or not parts:
                parts.append(self.constant(factor, np.int64))
            term = parts[0]
            for part in parts[1:]:
                term = self.node("Mul", term, part)
            total = term if total is None else self.node("Add", total, term)
        assert total is not None
        return total

    def _atom(self, atom: Any) -> Name:
        if atom.kind == "symbol":
            for scope in self.scope.around():
                if atom.args[0] in scope.symbols:
                    return scope.symbols[atom.args[0]]()
            raise NotInOnnx("it needs the length of a list, which is not known there")
        args = [self.size(arg) for arg in atom.args]
        if atom.kind == "max":
            return self.node("Max", *args)
        rest = self.node("Mod", *args)              # of ints, with the sign of the divisor
        return self.node("Div", self.node("Sub", args[0], rest), args[1])
