"""Values whose gradients Chainer computes by a formula of its own.

The derivative of the steps that made a value is the same up to rounding, but it overflows, underflows and is NaN elsewhere.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from ..ir.graph import Value
from ..ir.op import OpDef, declare
from .onnx_forms import arithmetic

#: ``rule(g, *operands, given=...)`` gives the gradient of each operand, or None.
Rule = Callable[..., Tuple[Optional[Value], ...]]

_RULES: Dict[str, Rule] = {}


def gradient_rule(rule: Rule) -> Rule:
    """Make a function a rule for `by_rule`, under its own name.  It takes ``given`` if the rule needs that."""
    if rule.__name__ in _RULES:
        raise ValueError(f"there are two rules {rule.__name__!r}")
    _RULES[rule.__name__] = rule
    return rule


def is_rule(name: Any) -> bool:
    """Whether there is a rule of this name."""
    return type(name) is str and name in _RULES


def _by_rule_vjp(g: Value, y: Value, value: Value, *operands: Value, rule: str, given: Any) -> Tuple[Optional[Value], ...]:
    more = {} if given is None else {"given": given}
    return (None, *_RULES[rule](g, *operands, **more))


#: ``value``, which is computed from ``operands``, and has the gradients that a rule gives.
#:
#: rule: its name.  given: a constant that the rule needs.
by_rule: OpDef = declare(
    "by_rule", "value *operands", {"rule": "", "given": None}, kind="view", view=True, vjp=_by_rule_vjp,
    infer=lambda value, *operands, **attrs: value,
    numpy="{value}",
    onnx=arithmetic.first,
)
