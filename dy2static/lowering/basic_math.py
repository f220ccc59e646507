"""Lowerings of the arithmetic of Variables, `chainer.functions.math.basic_math`.

Numbers are cast to the dtype of the Variable first.  Arrays broadcast; their gradients are summed back.
"""
from __future__ import annotations

from typing import Any, Callable, Optional

from chainer.functions.math import basic_math as M

from .. import ops
from ..ir.graph import Value
from .registry import is_number, lowers, lowers_to, number, varies


@lowers(M.Add)
def add(node: Any, a: Value, b: Value) -> Value:
    return a + b


@lowers(M.MultiAdd)
def multi_add(node: Any, *xs: Value) -> Value:
    # of one operand, the array itself is the result
    if len(xs) == 1:
        return ops.identity(xs[0])
    total = xs[0] + xs[1]
    for x in xs[2:]:
        total = total + x
    return total


@lowers(M.Sub)
def sub(node: Any, a: Value, b: Value) -> Value:
    return a - b


@lowers(M.Mul)
def mul(node: Any, a: Value, b: Value) -> Value:
    return a * b


@lowers(M.Div)
def div(node: Any, a: Value, b: Value) -> Value:
    return a / b


lowers_to("neg", M.Neg)
lowers_to("abs", M.Absolute)                # the second derivative has no path to x: the gradient is ``sign`` of the array
lowers_to("power", M.PowVarVar)             # double backward goes through ``log``, and is NaN for negative bases


def _with_constant(operation: Callable[[Value, Value], Value]) -> Callable[[Any, Value], Optional[Value]]:
    def lowering(node: Any, x: Value) -> Optional[Value]:
        """One operand is a constant of the node; None where that is no number."""
        value = number(node.value, x.dtype)
        return None if value is None else operation(x, value)
    return lowering


add_constant = lowers(M.AddConstant)(_with_constant(lambda x, value: x + value))
sub_from_constant = lowers(M.SubFromConstant)(_with_constant(lambda x, value: value - x))
mul_constant = lowers(M.MulConstant)(_with_constant(lambda x, value: value * x))
div_from_constant = lowers(M.DivFromConstant)(_with_constant(lambda x, value: ops.elementwise.number_by(value, x)))


@lowers(M.PowVarConst)
def pow_var_const(node: Any, x: Value) -> Optional[Value]:
    # the gradient's exponent is the uncast number minus 1
    exponent = node.value
    if varies(exponent):
        if not _has_function_of_its_own(exponent):
            value = number(exponent, x.dtype)
            return None if value is None else ops.power(x, value)
        exponent = exponent.fix()
    return ops.power_const(x, exponent=float(exponent)) if is_number(exponent) else None


def _has_function_of_its_own(exponent: Any) -> bool:
    """Whether NumPy computes ``x ** exponent``, or a gradient of it, by another function than ``power``: it takes the square root
    of -inf, not its power, and its warnings name the function.
    """
    return not exponent.capture.decides(exponent) and bool(exponent * 2 % 1 == 0) and bool(abs(exponent - 2) < 4)


@lowers(M.PowConstVar)
def pow_const_var(node: Any, x: Value) -> Optional[Value]:
    # the gradient multiplies by ``math.log`` of the number: backward raises for one that is not positive
    if is_number(node.value) and not varies(node.value):
        return ops.const_power(x, base=float(node.value))
    value = number(node.value, x.dtype)
    return None if value is None else ops.power(value, x)
