"""The states of Chainer's update rules, which the first update makes: a program has them as inputs from its first call on."""
from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, Callable, Dict, NamedTuple, Tuple

import numpy as np
from chainer import Optimizer, Parameter, UpdateRule
from chainer.optimizers import (
    ada_delta,
    ada_grad,
    adam,
    corrected_momentum_sgd,
    momentum_sgd,
    msvag,
    nesterov_ag,
    rmsprop,
    rmsprop_graves,
    sgd,
    smorms3,
)


class Maker(NamedTuple):
    """How a rule makes its state: by ``init_state``, which reads the hyperparameters ``reads``."""

    init_state: Callable[[Any, Parameter], None]
    reads: Tuple[str, ...] = ()


#: The rules that do nothing but make arrays for their state, from the Parameter and these hyperparameters.
MAKERS: Dict[type, Maker] = {rule: Maker(rule.init_state) for rule in (
    ada_delta.AdaDeltaRule, ada_grad.AdaGradRule, corrected_momentum_sgd.CorrectedMomentumSGDRule, momentum_sgd.MomentumSGDRule,
    msvag.MSVAGRule, nesterov_ag.NesterovAGRule, rmsprop.RMSpropRule, rmsprop_graves.RMSpropGravesRule, sgd.SGDRule,
    smorms3.SMORMS3Rule)}
MAKERS[adam.AdamRule] = Maker(adam.AdamRule.init_state, ("amsgrad",))

#: The numbers that each update replaces, by the classes that have them.
_COUNTS: Dict[type, str] = {Optimizer: "t", UpdateRule: "t", msvag.MSVAGRule: "beta_power"}


def is_known(cls: type) -> bool:
    """Whether this is a class of rules of `MAKERS`, which makes states as it does there."""
    return cls in MAKERS and cls.init_state is MAKERS[cls].init_state       # type: ignore[attr-defined]


def state_of(parameter: Parameter) -> Dict[str, Any]:
    """The state of the rule of a Parameter: its ``state``, or what its first update would make that, which nothing refers to yet.

    Raises LookupError if that does not exist, and something else than a rule of Chainer's makes it.
    """
    rule = parameter.update_rule
    if rule._state is not None:
        return rule._state
    if not is_known(type(rule)) or "init_state" in vars(rule):
        raise LookupError(f"the state of a {type(rule).__name__}")
    made = copy.copy(rule)
    made._state = {}
    made.init_state(parameter)
    return made._state


#: From so many bytes on, `described_state` gives memory that was not touched.
_LARGE = 1 << 16


class _Described(np.ndarray):
    """An array of which only the type counts: zeros and ones like it are arrays that hold anything."""

    def __array_function__(self, function: Any, _: Any, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        like = np.empty_like if function in (np.zeros_like, np.ones_like) else function
        return like(*[part.view(np.ndarray) if type(part) is _Described else part for part in args], **kwargs)


def described_state(parameter: Parameter) -> Dict[str, Any]:
    """What `state_of` makes, in arrays that hold anything: a capture needs their types, and untouched memory costs nothing."""
    if type(parameter.array) is not np.ndarray or parameter.array.nbytes < _LARGE:
        return state_of(parameter)
    described: Any = SimpleNamespace(device=parameter.device, data=parameter.array.view(_Described),
                                     update_rule=parameter.update_rule)
    return state_of(described)


def counts_of(cls: type) -> Tuple[str, ...]:
    """The attributes of instances that count updates, or are replaced by each update like a count."""
    return tuple([name for base, name in _COUNTS.items() if issubclass(cls, base)])
