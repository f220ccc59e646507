"""Chainer functions kept whole: each run applies a copy of the node to fresh Variables and keeps the inner tape.

Gradients of any order run Chainer's own backward on that tape, so an opaque function is exact whatever it is.
"""
from __future__ import annotations

import contextlib
import copy
import weakref
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import chainer
import numpy as np
from chainer.function import FunctionAdapter

from ..ir.graph import Value
from ..ir.op import declare
from ..ir.types import Dynamic, Tensor, type_of
from .host import fill


class Tape(NamedTuple):
    """What Chainer's backward needs: the Variables that went in and came out of one application."""

    inputs: Tuple[chainer.Variable, ...]
    outputs: Tuple[chainer.Variable, ...]


class Reads(NamedTuple):
    """What a gradient is computed from: gradients of these outputs, and these inputs."""

    outputs: Tuple[int, ...]
    inputs: Tuple[int, ...]


class OpaqueCall:
    """One application of a FunctionNode.

    node: never run itself; each run works on a copy.
    attributes: those of the node's attributes that hold operands, as templates.
    requires: per input, whether its Variable requires grad.
    connected: per input, whether backward gives it a gradient.
    reads: per input, what its gradient is computed from: indexes of outputs (whose gradients were given), and of inputs;
        None where that is not known.
    config: the entries of ``chainer.config`` that were set where it was applied.
    written: the attributes that ``forward`` sets on the node; None where that is not known.
    """

    __slots__ = ("node", "attributes", "requires", "connected", "reads", "config", "written")

    def __init__(self, node: chainer.FunctionNode, attributes: Mapping[str, Any], requires: Sequence[bool],
                 config: Mapping[str, Any]):
        self.node, self.attributes, self.requires, self.config = node, dict(attributes), tuple(requires), dict(config)
        self.connected: Tuple[bool, ...] = self.requires
        self.reads: Optional[Tuple[Reads, ...]] = None
        self.written: Optional[frozenset] = None

    def __repr__(self) -> str:
        return self.node.label

    def fresh_node(self, operands: Sequence[Any]) -> chainer.FunctionNode:
        """A copy of the node with the operands in its attributes, ready to be applied once."""
        node = copy_node(self.node)
        holder = node.function if isinstance(node, FunctionAdapter) else node
        for name, template in self.attributes.items():
            holder.__dict__[name] = fill(template, operands)
        return node

    def __call__(self, *operands: Any) -> List[Any]:
        """Apply a copy: the output arrays and the tape."""
        tape = self._apply(self.fresh_node(operands), operands)
        return [y.array for y in tape.outputs] + [tape]

    def _apply(self, node: chainer.FunctionNode, operands: Sequence[Any]) -> Tape:
        inputs = tuple([chainer.Variable(array, requires_grad=requires)
                        for array, requires in zip(operands, self.requires)])
        with using_configs(self.config):
            return Tape(inputs, node.apply(inputs))

    def probe(self, arrays: Sequence[np.ndarray]) -> Tuple[Any, ...]:
        """The types of the outputs, learned (with ``connected`` and ``written``) from a run on made-up arrays."""
        node = self.fresh_node(arrays)
        holder = node.function if isinstance(node, FunctionAdapter) else node
        before = dict(holder.__dict__)
        tape = self._apply(node, arrays)
        self.written = frozenset(name for name, value in holder.__dict__.items()
                                 if name not in _BOOKKEEPING and before.get(name, holder) is not value)
        if any(self.requires) and chainer.config.enable_backprop and tape.outputs[0].creator is not None:
            try:
                self._differentiate(tape, True)
            except Exception:                       # what can be differentiated once only may say so at once
                self._differentiate(self._apply(self.fresh_node(arrays), arrays), False)
        return tuple(type_of(y.array) for y in tape.outputs)

    def _differentiate(self, tape: Tape, twice: bool) -> None:
        """Learn ``connected`` from a backward, and ``reads`` from one that can be differentiated again."""
        targets = [x for x in tape.inputs if x.requires_grad]
        ends = {j: y for j, y in enumerate(tape.outputs) if y.dtype.kind == "f"}
        given = {j: chainer.Variable(np.ones_like(y.array)) for j, y in ends.items()}
        gradients = iter([None] * len(targets))
        if ends:
            gradients = iter(chainer.grad(list(ends.values()), targets, list(given.values()), enable_double_backprop=twice))
        found = [next(gradients) if x.requires_grad else None for x in tape.inputs]
        self.connected = tuple(gx is not None for gx in found)
        if twice:
            reached = [set() if gx is None else _nodes_below(gx) for gx in found]
            old = [any(node._old_style_grad_generator for node in nodes) for nodes in reached]     # raise if read
            self.reads = tuple(Reads(tuple(j for j, g in given.items() if g.node in nodes or raises),
                                     tuple(i for i, x in enumerate(tape.inputs) if x.node in nodes or raises))
                               for nodes, raises in zip(reached, old))

    def types(self, arrays: Sequence[np.ndarray]) -> Tuple[Any, ...]:
        """The types of the outputs of a run on these arrays."""
        return tuple(type_of(y.array) for y in self._apply(self.fresh_node(arrays), arrays).outputs)


def _nodes_below(variable: chainer.Variable) -> Set[Any]:
    """The nodes of the Variables that require grad and that this one was computed from, and its own."""
    found, left = set(), [variable.node]
    while left:
        node = left.pop()
        if node.requires_grad and node not in found:
            found.add(node)
            left += [] if node.creator_node is None else node.creator_node.inputs
    return found


#: What `FunctionNode.apply` itself sets.
_BOOKKEEPING = frozenset(("inputs", "outputs", "rank", "stack", "lazy_grad_sum", "_input_indexes_to_retain",
                          "_output_indexes_to_retain", "_retained_output_data", "_output_count", "_input_layouts",
                          "_output_layouts", "_node", "_owned_node"))


def copy_node(node: chainer.FunctionNode) -> chainer.FunctionNode:
    """A copy of a node that was not applied yet; for an old-style Function, of both its parts."""
    made = copy.copy(node)
    if isinstance(node, FunctionAdapter):
        function = copy.copy(node.function)
        made._function, made._weak_function = function, None
        function._node, function._owned_node = weakref.ref(made), None
    return made


@contextlib.contextmanager
def using_configs(entries: Mapping[str, Any]) -> Any:
    """``chainer.using_config`` for several entries."""
    with contextlib.ExitStack() as stack:
        for name, value in entries.items():
            stack.enter_context(chainer.using_config(name, value))
        yield


def _types(*_: Any, types: Tuple, **__: Any) -> Tuple:
    return types + (Dynamic(),)


def _run(*operands: Any, call: OpaqueCall, types: Tuple) -> List[Any]:
    return call(*operands)


def _opaque_vjp(g: Sequence[Optional[Value]], y: Sequence[Value], *operands: Value, call: OpaqueCall,
                types: Tuple) -> Tuple[Optional[Value], ...]:
    count = len(call.requires)
    return _emit_vjp(g[:-1], y[-1], operands[:count], call.connected, call.reads) + (None,) * (len(operands) - count)


def _emit_vjp(g: Sequence[Optional[Value]], tape: Value, inputs: Sequence[Value],
              connected: Sequence[bool], reads: Optional[Tuple[Reads, ...]] = None) -> Tuple[Optional[Value], ...]:
    given = tuple(i for i, gradient in enumerate(g) if gradient is not None)
    targets = tuple(i for i, used in enumerate(connected) if used)
    if not targets or not given:
        return (None,) * len(inputs)
    wanted = [inputs[i] for i in targets]
    results = tape_vjp(tape, *[g[i] for i in given], *wanted, given=given, targets=targets,
                       types=tuple(Tensor(x.shape, x.dtype) for x in wanted),
                       reads=None if reads is None else tuple(_places(reads[i], given, targets) for i in targets))
    gradients: Dict[int, Value] = dict(zip(targets, results))
    return tuple(gradients.get(i) for i in range(len(inputs)))


def _places(reads: Reads, given: Tuple[int, ...], targets: Tuple[int, ...]) -> Tuple[int, ...]:
    """Which of the operands of a `tape_vjp`, behind the tape, a gradient is computed from."""
    return tuple([k for k, j in enumerate(given) if j in reads.outputs]
                 + [k for k, i in enumerate(targets, len(given)) if i in reads.inputs])


def _run_vjp(tape: Tape, *arrays: Any, given: Tuple, targets: Tuple, types: Tuple, reads: Any) -> List[Any]:
    again = chainer.config.enable_backprop
    gradients = tuple([chainer.Variable(array) for array in arrays[:len(given)]])
    wanted = tuple([tape.inputs[i] for i in targets])
    pairs = [(tape.outputs[i], g) for i, g in zip(given, gradients) if tape.outputs[i] is not None]
    found = [None] * len(wanted)
    if pairs:
        found = chainer.grad([y for y, _ in pairs], list(wanted), [g for _, g in pairs], enable_double_backprop=again)
    results = [np.zeros(t.shape, t.dtype) if gx is None else gx.array for gx, t in zip(found, types)]
    return results + [Tape(wanted + gradients, tuple([gx for gx in found]))]


def _vjp_of_vjp(g: Sequence[Optional[Value]], y: Sequence[Value], tape: Value, *operands: Value, given: Tuple,
                targets: Tuple, types: Tuple, reads: Any) -> Tuple[Optional[Value], ...]:
    count, size = len(given), len(operands)
    read = range(size) if reads is None else {k for gradient, places in zip(g, reads) if gradient is not None for k in places}
    order = [*range(count, size), *range(count)]            # the inputs of the tape that a run of this makes
    found = _emit_vjp(g[:-1], y[-1], [operands[k] for k in order], [k in read for k in order])
    return (None,) + found[size - count:] + found[:size - count]


#: ``*operands``: the input arrays, then arrays hidden in attributes.  Outputs: the arrays, then the tape.
opaque = declare("opaque", "*operands", {"call": None, "types": ()}, kind="opaque", infer=_types, numpy=_run,
                 vjp=_opaque_vjp, effect=True)

#: The vector-Jacobian product of what a tape holds.  Outputs: the gradients of ``targets``, then their own tape.
#: reads: per gradient, which of the operands behind the tape it is computed from; None where that is not known.
tape_vjp = declare("tape_vjp", "tape *operands", {"given": (), "targets": (), "types": (), "reads": None}, kind="opaque",
                   infer=_types, numpy=_run_vjp, vjp=_vjp_of_vjp)
