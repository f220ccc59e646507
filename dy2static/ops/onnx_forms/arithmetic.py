"""Arithmetic, comparisons and selection as nodes of ONNX."""
from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import numpy as np

from ...ir.onnx_forms import Form, Name, NotInOnnx, OnnxWriter
from ...ir.types import Type

Rule = Callable[..., Any]


def apply(form: Form, o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], operands: Sequence[Name],
          attrs: Any) -> Any:
    """What a form gives: an operator's name, or a rule."""
    return o.node(form, *operands) if isinstance(form, str) else form(o, types, results, *operands, **attrs)


def by_kind(floats: Optional[Form], ints: Optional[Form] = None, bools: Optional[Form] = None) -> Rule:
    """One form for each kind of the first operand."""
    def rule(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], *operands: Name, **attrs: Any) -> Any:
        kind = o.dtype(operands[0]).kind
        form = {"f": floats, "i": ints, "u": ints, "b": bools}.get(kind)
        if form is None:
            raise NotInOnnx(f"there is no form for {o.dtype(operands[0]).name}")
        return apply(form, o, types, results, operands, attrs)
    return rule


def of_result(form: Form) -> Rule:
    """The form for operands in the dtype of the result: ``exp`` of ints."""
    def rule(o: OnnxWriter, types: Sequence[Any], results: Sequence[Any], *operands: Name, **attrs: Any) -> Any:
        wide = [o.cast(x, results[0].dtype) for x in operands]
        return apply(form, o, types, results, wide, attrs)
    return rule


def first(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], *operands: Name, **attrs: Any) -> Name:
    """The first operand as it is."""
    return operands[0]


def where(o: OnnxWriter, condition: Name, a: Name, b: Name) -> Name:
    """``a`` where the condition holds, else ``b``."""
    if o.dtype(a).kind == "b":
        return o.node("Or", o.node("And", condition, a), o.node("And", o.node("Not", condition), b))
    return o.node("Where", condition, a, b)


def where_op(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], condition: Name, a: Name, b: Name) -> Name:
    """The op ``where``."""
    return where(o, condition, a, b)


def truth(o: OnnxWriter, x: Name) -> Name:
    """``x != 0``; NaN is true."""
    return o.cast(x, bool)


def logical(operator: str) -> Rule:
    """And, or, not of what counts as true."""
    def rule(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], *operands: Name) -> Name:
        return o.node(operator, *(truth(o, x) for x in operands))
    return rule


def not_equal(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], a: Name, b: Name) -> Name:
    """Whether elements differ; NaN differs from everything."""
    return o.node("Not", o.node("Equal", a, b))


def negative(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name) -> Name:
    """``-x``; of unsigned ints, around."""
    return o.node("Sub", o.like(0, x), x) if o.dtype(x).kind == "u" else o.node("Neg", x)


def square(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name) -> Name:
    """``x * x``."""
    return o.node("Mul", x, x)


def mask(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, keep: Name) -> Name:
    """``x * keep``, NaN and infinity included."""
    return o.node("And", x, keep) if o.dtype(x).kind == "b" else o.node("Mul", x, o.cast(keep, o.dtype(x)))


def is_negative(o: OnnxWriter, x: Name) -> Name:
    """Whether the sign of a float is minus, of zeros too: 1 / x tells them apart."""
    told = where(o, o.node("Equal", x, o.like(0, x)), o.node("Div", o.like(1, x), x), x)
    return o.node("Less", told, o.like(0, x))


def signed(o: OnnxWriter, size: Name, x: Name) -> Name:
    """A float that is not negative with the sign of ``x``: onnxruntime's ``Where`` makes -0.0 to 0.0, a product does not."""
    return o.node("Mul", size, where(o, is_negative(o, x), o.like(-1, x), o.like(1, x)))


def sign(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name) -> Name:
    """The sign: -1, 0 or 1; NaN of NaN."""
    y = o.node("Sign", x)
    return where(o, o.node("IsNaN", x), x, y) if o.dtype(x).kind == "f" else y


def trunc(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name) -> Name:
    """The whole part."""
    if o.dtype(x).kind != "f":
        return x
    return signed(o, o.node("Floor", o.node("Abs", x)), x)


def clip(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name, *, x_min: Any, x_max: Any) -> Name:
    """Elements between two bounds; NaN stays."""
    for bound, operator in ((x_min, "Max"), (x_max, "Min")):
        if bound is not None:
            x = o.node(operator, x, o.like(bound, x))
    return x


def is_finite(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name) -> Name:
    """Neither NaN nor infinite."""
    if o.dtype(x).kind != "f":
        return o.node("Equal", x, x)
    return o.node("Not", o.node("Or", o.node("IsNaN", x), o.node("IsInf", x)))


def is_nan(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], x: Name) -> Name:
    """NaN, of which ints have none."""
    return o.node("IsNaN", x) if o.dtype(x).kind == "f" else o.node("Not", o.node("Equal", x, x))


def cast(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], x: Name, **attrs: Any) -> Name:
    """The value in another dtype.  Floats become small ints by way of int32, as NumPy's loops do it."""
    to = results[0].dtype
    if o.dtype(x).kind == "f" and to.kind in "iu" and to.itemsize < 4:
        x = o.cast(x, np.int32)
    elif o.dtype(x).kind == "f" and to == np.uint32:
        x = o.cast(x, np.int64)
    return o.cast(x, to)


# Division -------------------------------------------------------------------------------------------------------


def _signs_differ(o: OnnxWriter, a: Name, b: Name) -> Name:
    zero = o.like(0, a)
    return o.node("Xor", o.node("Less", a, zero), o.node("Less", b, zero))


def _is(o: OnnxWriter, x: Name, number: Any) -> Name:
    return o.node("Equal", x, o.like(number, x))


def _safe_divisor(o: OnnxWriter, b: Name) -> Name:
    """The divisor, 1 in place of those by which a processor cannot divide every int: 0, and -1."""
    bad = _is(o, b, 0)
    if o.dtype(b).kind == "i":
        bad = o.node("Or", bad, _is(o, b, -1))
    return where(o, bad, o.like(1, b), b)


def quotient(o: OnnxWriter, a: Name, b: Name) -> Name:
    """``a // b`` of ints, 0 where ``b`` is."""
    divisor = _safe_divisor(o, b)
    y = o.node("Div", a, divisor)
    if o.dtype(a).kind == "i":
        rest = o.node("Sub", a, o.node("Mul", y, divisor))
        below = o.node("And", o.node("Not", _is(o, rest, 0)), _signs_differ(o, rest, divisor))
        y = o.node("Sub", y, o.cast(below, o.dtype(a)))
        y = where(o, _is(o, b, -1), o.node("Neg", a), y)
    return where(o, _is(o, b, 0), o.like(0, a), y)


def _int_rest(o: OnnxWriter, a: Name, b: Name, fmod: int) -> Name:
    y = o.node("Mod", a, _safe_divisor(o, b), fmod=fmod)
    bad = _is(o, b, 0)
    return where(o, bad, o.like(0, a), y)


def _float_rest(o: OnnxWriter, a: Name, b: Name) -> Name:
    """The remainder with the sign of ``b``."""
    rest = o.node("Mod", a, b, fmod=1)
    apart = o.node("And", o.node("Not", _is(o, rest, 0)), _signs_differ(o, rest, b))
    return signed(o, o.node("Abs", where(o, apart, o.node("Add", rest, b), rest)), b)


def _float_quotient(o: OnnxWriter, a: Name, b: Name) -> Name:
    # NumPy takes the remainder first, so that a quotient is never above the exact one
    rest = o.node("Mod", a, b, fmod=1)
    y = o.node("Div", o.node("Sub", a, rest), b)
    below = o.node("And", o.node("Not", _is(o, rest, 0)), _signs_differ(o, rest, b))
    y = o.node("Sub", y, o.cast(below, o.dtype(a)))
    whole = o.node("Floor", y)
    close = o.node("Greater", o.node("Sub", y, whole), o.like(0.5, y))
    whole = o.node("Add", whole, o.cast(close, o.dtype(a)))
    exact = o.node("Div", a, b)
    return signed(o, o.node("Abs", where(o, _is(o, b, 0), exact, whole)), exact)


def floor_divide(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], a: Name, b: Name) -> Name:
    """``a // b``."""
    return (_float_quotient if o.dtype(a).kind == "f" else quotient)(o, a, b)


def remainder(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], a: Name, b: Name) -> Name:
    """``a % b``, with the sign of ``b``."""
    return _float_rest(o, a, b) if o.dtype(a).kind == "f" else _int_rest(o, a, b, 0)


def fmod(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], a: Name, b: Name) -> Name:
    """The remainder with the sign of ``a``."""
    return o.node("Mod", a, b, fmod=1) if o.dtype(a).kind == "f" else _int_rest(o, a, b, 1)


# Powers ---------------------------------------------------------------------------------------------------------


def int_power(o: OnnxWriter, base: Name, exponent: Name) -> Name:
    """Powers of ints by ints that are not negative, by squaring: exact, and around as NumPy's."""
    dtype = o.dtype(base)
    exponent = o.cast(exponent, np.int64)
    spread = o.node("Mul", exponent, o.like(0, exponent))
    base = o.node("Add", o.cast(base, np.int64), spread)
    start = o.node("Add", spread, o.like(1, spread))

    def body(i: Name, y: Name, factor: Name, rest: Name) -> Any:
        two = o.like(2, rest)
        odd = _is(o, o.node("Mod", rest, two), 1)
        y = where(o, odd, o.node("Mul", y, factor), y)
        return (y, o.node("Mul", factor, factor), o.node("Div", rest, two)), ()
    exponent = o.node("Add", exponent, o.node("Mul", base, o.like(0, base)))
    return o.cast(o.loop(o.constant(63, np.int64), (start, base, exponent), body)[0], dtype)


def power(o: OnnxWriter, types: Sequence[Type], results: Sequence[Type], a: Name, b: Name) -> Name:
    """``a ** b``."""
    return o.node("Pow", a, b) if o.dtype(a).kind == "f" else int_power(o, a, b)


#: The steps of the powers that NumPy has functions for.
_POWERS = {1: lambda o, x: x, 2: lambda o, x: o.node("Mul", x, x), 0.5: lambda o, x: o.node("Sqrt", x),
           -1: lambda o, x: o.node("Div", o.like(1, x), x)}


def power_const(o: OnnxWriter, types: Sequence[Type], results: Sequence[Any], x: Name, *, exponent: Any) -> Name:
    """``x ** exponent``."""
    x = o.cast(x, results[0].dtype)
    if o.dtype(x).kind != "f":
        return _repeated(o, x, int(exponent))
    return _POWERS[exponent](o, x) if exponent in _POWERS else o.node("Pow", x, o.like(exponent, x))


def _repeated(o: OnnxWriter, x: Name, exponent: int) -> Name:
    if exponent < 0:
        raise NotInOnnx("ints have no negative powers")
    y: Optional[Name] = None
    while exponent:
        if exponent & 1:
            y = x if y is None else o.node("Mul", y, x)
        exponent >>= 1
        x = o.node("Mul", x, x) if exponent else x
    return o.node("Add", o.node("Mul", x, o.like(0, x)), o.like(1, x)) if y is None else y
