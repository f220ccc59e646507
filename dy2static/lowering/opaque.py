"""Chainer functions kept whole: each run applies a copy of the node to fresh Variables and keeps the inner tape.

Gradients of any order run Chainer's own backward on that tape, so an opaque function is exact whatever it is.
"""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

from ..ir.graph import Graph, Node, Value
from ..ir.op import declare
from ..ir.types import Dynamic, python_scalar
from ..runtime.checked_range import Reliance
from ..runtime.observed import Observed, Untouched
from ..runtime.opaque import OpaqueCall, Reads, run_vjp
from .checked_range import within, zero
from .host import host_call


def _types(*_: Any, types: Tuple, **__: Any) -> Tuple:
    return types + (Dynamic(),)


def _run(*operands: Any, call: OpaqueCall, types: Tuple) -> List[Any]:
    return call(*operands)


def _opaque_vjp(g: Sequence[Optional[Value]], y: Sequence[Value], *operands: Value, call: OpaqueCall, types: Tuple,
                present: Sequence[Any]) -> Tuple[Optional[Value], ...]:
    count = len(call.requires)
    return _emit_vjp(call, g[:-1], present, y[-1], operands[:count], call.connected, call.reads,
                     call.written is None) + (None,) * (len(operands) - count)


def _emit_vjp(call: OpaqueCall, g: Sequence[Optional[Value]], present: Sequence[Any], tape: Value, inputs: Sequence[Value],
              connected: Sequence[bool], reads: Optional[Tuple[Reads, ...]], asks: bool) -> Tuple[Any, ...]:
    """The gradients of the inputs.  asks: each with the bool that says whether there is one, which only the run knows."""
    given = tuple(i for i, gradient in enumerate(g) if gradient is not None)
    targets = tuple(i for i, used in enumerate(connected) if used)
    if not targets or not given:
        return (None,) * len(inputs)
    wanted = [inputs[i] for i in targets]
    uncertain = tuple(k for k, i in enumerate(given) if isinstance(present[i], Value))
    asks = asks or bool(uncertain)
    results = tape_vjp(tape, *[g[i] for i in given], *wanted, *[present[given[k]] for k in uncertain], call=call, given=given,
                       targets=targets, uncertain=uncertain, types=tuple(x.type for x in wanted), asks=asks,
                       reads=None if reads is None else tuple(_places(reads[i], given, targets) for i in targets))
    count = len(targets)
    gradients: Dict[int, Any] = dict(zip(targets, zip(results[:count], results[count + 1:]) if asks else results))
    return tuple(gradients.get(i) for i in range(len(inputs)))


def _places(reads: Reads, given: Tuple[int, ...], targets: Tuple[int, ...]) -> Tuple[int, ...]:
    """Which of the operands of a `tape_vjp`, behind the tape, a gradient is computed from."""
    return tuple([k for k, j in enumerate(given) if j in reads.outputs]
                 + [k for k, i in enumerate(targets, len(given)) if i in reads.inputs])


def _vjp_of_vjp(g: Sequence[Optional[Value]], y: Sequence[Value], tape: Value, *operands: Value, call: OpaqueCall, given: Tuple,
                targets: Tuple, uncertain: Tuple, types: Tuple, asks: bool, reads: Any, again: Optional[bool],
                present: Sequence[Any]) -> Tuple[Any, ...]:
    count, end = len(given), len(types)
    size = count + end
    read = range(size) if reads is None else {k for gradient, places in zip(g, reads) if gradient is not None for k in places}
    order = [*range(count, size), *range(count)]            # the inputs of the tape that a run of this makes
    found = _emit_vjp(call, g[:end], present, y[end], [operands[k] for k in order], [k in read for k in order], None,
                      reads is None)
    return (None,) + found[size - count:] + found[:size - count] + (None,) * len(uncertain)


#: ``*operands``: the input arrays, then arrays hidden in attributes.  Outputs: the arrays, then the tape.
opaque = declare("opaque", "*operands", {"call": None, "types": ()}, kind="opaque", infer=_types, numpy=_run,
                 vjp=_opaque_vjp, asks_present=True, effect=True)


def relied_on(graph: Graph) -> List[Any]:
    """The applications and host calls of which a run of the graph may see that they do something else than was relied on."""
    found: Dict[Any, Any] = {}
    for call in map(_relied_on, graph.walk()):
        if call is None:
            continue
        found[id(call) if not isinstance(call, Reliance) else call.place] = call
    return list(found.values())


def _relied_on(node: Node) -> Any:
    call = node.attrs.get("call")
    if node.op is opaque and call.observed is not None:
        return call
    if getattr(getattr(call, "function", None), "__func__", None) is OpaqueCall.require_gradient:
        return call.function.__self__
    if node.op is host_call and isinstance(call.flatten, Observed):
        return call.flatten
    if node.op is host_call and isinstance(call.function, Untouched):
        return call.function
    return Reliance(node.attrs["place"]) if node.op in (within, zero) and node.attrs["place"] else None


#: Draws of the global generators.
DRAWS = frozenset(("random_uniform", "random_between", "random_normal", "random_typed"))


#: What only computes, or checks.
_NO_EFFECTS = ("opaque", "checked_call", "zero")


def effects_before(graph: Graph) -> FrozenSet[str]:
    """The names of what a run does, besides computing and calling functions of the user's, before it sees what is relied on."""
    found: Set[str] = set()
    before: FrozenSet[str] = frozenset()
    is_late = False
    for node in graph.nodes:
        inner = list(node.walk())
        found.update([n.op.name for n in inner if n.op.effect and n.op.name not in _NO_EFFECTS and not _is_pure(n)])
        relied = [n for n in inner if _relied_on(n) is not None]
        before = frozenset(found) if relied else before
        is_late = is_late or not all([n.op.effect for n in relied])     # passes may put it behind an effect
    return frozenset(found) if is_late else before


def follows_sizes(graph: Graph) -> bool:
    """Whether the graph has functions of which it was learned what they give for all sizes."""
    return any(node.op is opaque and node.attrs["call"].sizes for node in graph.walk())


def _is_pure(node: Node) -> bool:
    return node.op is host_call and isinstance(node.attrs["call"].flatten, Observed) and node.attrs["call"].flatten.pure


def _gradient_types(*_: Any, types: Tuple, asks: bool, **__: Any) -> Tuple:
    return types + (Dynamic(),) + (python_scalar("py_bool"),) * (len(types) * asks)


#: The vector-Jacobian product of what a tape holds.  Operands behind the tape: the gradients of the outputs in ``given``, the
#: inputs in ``targets``, bools that say whether the gradients at the places ``uncertain`` of ``given`` are there (if not, they
#: are zeros, and Chainer's backward is not to see them).  Outputs: the gradients of ``targets`` (zeros for None), then their
#: own tape; asks: then, per gradient, whether it is there.
#: reads: per gradient, which of the operands behind the tape it is computed from; None where that is not known.
#: again: whether it can be differentiated again; None: if the run asks for that.
tape_vjp = declare("tape_vjp", "tape *operands",
                   {"call": None, "given": (), "targets": (), "uncertain": (), "types": (), "asks": False, "reads": None,
                    "again": None}, kind="opaque", infer=_gradient_types, numpy=run_vjp, vjp=_vjp_of_vjp, asks_present=True)
