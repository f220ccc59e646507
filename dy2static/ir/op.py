"""Ops as declarations: everything the compiler knows about one primitive stands in one value."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

from ..threads.locks import cached_property

#: Every declared op by name, in order of declaration.  Filled by `declare` only.
OPS: Dict[str, "OpDef"] = {}

#: The form for CuPy of an op that NumPy computes, on copies.
ON_HOST = "on host"

#: Of the gradient of a list: each item says for itself whether it is there.
BY_ITEM = "by item"

#: The same where the last item has one for sure.
LAST = "by item, and the last has one"

KINDS = ("elementwise", "reduction", "view", "contraction", "movement", "creation", "scalar", "control", "effect",
         "opaque")


@dataclass(frozen=True)
class Sample:
    """One input set of an op's tests: per operand a shape or a ready value, dtypes, attributes."""

    operands: Tuple[Any, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    dtype: Any = "float32"
    low: float = -1.0
    high: float = 1.0


def sample(*operands: Any, dtype: Any = "float32", low: float = -1.0, high: float = 1.0, **attrs: Any) -> Sample:
    """A test sample: operands are shapes (tuples) filled at random in [low, high), or arrays used as they are."""
    return Sample(operands, attrs, dtype, low, high)


@dataclass(frozen=True)
class Decomposition:
    """An op in terms of simpler ones, for backends that have no loops for the whole.

    rule: ``rule(*values, **attrs)`` emits the simpler ops and gives the result, or a tuple of results.  The last bits may differ.
    holds: ``holds(*types)``: whether the rule gives what the op gives, for operands of these types.
    """

    rule: Callable[..., Any]
    holds: Callable[..., bool]


@dataclass(frozen=True, eq=False)
class OpDef:
    """A primitive op.

    inputs: names of the operands; a name that starts with ``*`` takes the rest.
    attrs: static attributes with their defaults.
    kind: one of `KINDS`; passes and backends group ops by it.
    infer: ``infer(*types, **attrs)`` gives the type of the output, or a tuple of types; raises TypeError or
        ValueError for operands the op does not take.  Shapes are in `Dim` arithmetic.
    vjp: ``vjp(g, y, *xs, **attrs)`` gives one gradient `Value`, or None, per operand, built from other ops; or a pair of
        it and whether it is there (a bool `Value`, or for a list `BY_ITEM`).  With several outputs ``g`` (entries may
        be None) and ``y`` are tuples.  None: not differentiable.
    asks_present: its ``vjp`` also takes ``present``: per output, whether its gradient is there, which may be a bool `Value`;
        of a list, True (each item has one) or `BY_ITEM`.
    numpy: the NumPy meaning, as text or as a callable ``numpy(*arrays, **attrs)``.  Text has holes: ``{operand}``
        (of ``*xs``, ``{xs}``: the names with commas, ``{xs_0}`` the first), ``{attr}``, ``{T}`` (dtype of the result)
        and ``{out}``.  With ``{out}`` it is one statement per line that fills an array made before (of several outputs
        the others are ``{out_1}``, ...; None stands for one that is never read); without, it is an expression (a tuple,
        for several outputs).  The template of an elementwise op is also right for operands that NumPy
        broadcasts.  `template.numpy_source` fills the holes.
    cupy: the meaning on CuPy, where that is not ``numpy`` with CuPy's functions in place of NumPy's of the same names: in the same
        form (text with ``{out}``, text without, or a callable).  The text may use ``np`` and ``cupyx``.  `ON_HOST`: arrays are
        copied to the host, ``numpy`` computes there, and the results are copied back.
    c: the meaning of an elementwise op for one element, as one C expression: text with the holes ``{operand}``
        (of ``*xs``, ``{xs_0}``), ``{attr}`` (a constant of the result's type), ``{T}`` (the C type of the result),
        ``{s}`` and ``{t}`` (how functions for the dtypes of the result and of the first operand end: ``f32``, ``i64``).
        Or a callable ``c(types, result, attrs)`` that gives such text, or None.  `c_forms.c_expression` fills the holes.
    onnx: the meaning as nodes of ONNX (`ir.onnx_forms`): the name of an operator that takes the operands and gives the
        result, or a rule ``onnx(o, types, results, *operands, **attrs)`` that writes nodes with the `OnnxWriter` ``o`` and
        gives the name of the result, or a tuple of names; it raises `NotInOnnx` for what it cannot express.  Operands of an
        elementwise op broadcast.  None: the op is taken apart by ``decompose``, or cannot be exported.
    decompose: the op in terms of simpler ones; `passes.legalize.decompose` applies it for backends that ask for that.
    calls: functions that the template calls by their names.
    holes: ``holes(*types, **attrs)`` gives the text of more holes, or another text for an attribute's hole.
    canonical: ``canonical(*types, **attrs)`` gives the attributes in their one form (no negative axis, no ``-1``
        in a shape, hashable), before ``infer`` and ``vjp`` see them.  It leaves canonical attributes as they are.
    inplace_ok: ``{out}`` may be the array of an operand that has the same shape and dtype.  By default that is so
        for elementwise templates of one statement.
    view: the result may share memory with the first operand.
    effect: the node must stay, in its place: it writes, draws, prints or may raise.
    places: ``infer`` says on which device a result is; without, it is where the operands are.
    regions: names of the graphs a node of this op holds; ``infer`` gets them as ``regions=``.
    may_raise: the run may fail on what operands hold (an index out of range): effects before it must have happened.
    samples: inputs for the op test matrix.
    """

    name: str
    inputs: Tuple[str, ...]
    attrs: Mapping[str, Any]
    kind: str
    infer: Callable[..., Any]
    vjp: Optional[Callable[..., Any]] = None
    asks_present: bool = False
    numpy: Union[str, Callable[..., Any], None] = None
    cupy: Union[str, Callable[..., Any], None] = None
    c: Union[str, Callable[..., Optional[str]], None] = None
    onnx: Union[str, Callable[..., Any], None] = None
    decompose: Optional[Decomposition] = None
    calls: Tuple[Callable[..., Any], ...] = ()
    holes: Optional[Callable[..., Mapping[str, str]]] = None
    canonical: Optional[Callable[..., Mapping[str, Any]]] = None
    inplace_ok: bool = False
    view: bool = False
    effect: bool = False
    places: bool = False
    may_raise: bool = False
    regions: Tuple[str, ...] = ()
    samples: Tuple[Sample, ...] = ()

    @cached_property
    def variadic(self) -> bool:
        return any(name.startswith("*") for name in self.inputs)

    def __call__(self, *inputs: Any, **attrs: Any) -> Any:
        """Add a node of this op to the graph being built; gives its output value, or a tuple of them."""
        return _emit(self, inputs, attrs)

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def declare(name: str, inputs: Union[str, Tuple[str, ...]] = (), attrs: Optional[Mapping[str, Any]] = None, *,
            kind: str, infer: Callable[..., Any], **rest: Any) -> OpDef:
    """Declare an op and return it.  ``inputs`` may be one string of names: ``"x y"`` or ``"*xs"``."""
    if name in OPS:
        raise ValueError(f"op {name!r} is declared twice")
    if kind not in KINDS:
        raise ValueError(f"op {name!r}: unknown kind {kind!r}")
    numpy = rest.get("numpy")
    if kind == "elementwise" and isinstance(numpy, str) and "{out}" in numpy and "\n" not in numpy:
        rest.setdefault("inplace_ok", True)
    names = tuple(inputs.split()) if isinstance(inputs, str) else tuple(inputs)
    op = OpDef(name, names, dict(attrs or {}), kind, infer, **rest)
    OPS[name] = op
    return op


def _emit(op: OpDef, inputs: Tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    return _EMITTER[0](op, inputs, attrs)


#: How a call of an op adds a node: set by `building`, which knows graphs; this module must not.
_EMITTER: list = [None]
