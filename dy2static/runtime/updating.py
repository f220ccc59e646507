"""Clears gradients and updates parameters as Chainer does, without a dozen Python calls for each parameter.

Only where there is native code: one function for each of Chainer's plain optimizers looks at all parameters of the link,
and updates them if everything is as that optimizer leaves it; otherwise it has changed nothing, and Chainer does it.
"""
from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Tuple

from chainer import Link, Parameter, optimizers
from chainer.optimizer import GradientMethod, UpdateRule

from ..config import ENABLED
from .hooks import stage

_update, _cleargrads, _cleargrad = GradientMethod.update, Link.cleargrads, Parameter.cleargrad


def left_to_chainer(link: Link) -> bool:
    """Decline: nothing has been done."""
    return False


#: ``cleared(link)`` clears the gradients of all parameters of a link, or gives False.
cleared: Callable[[Link], bool] = left_to_chainer

#: ``RULES[type(optimizer)](link)`` updates all parameters of a link, or gives False; for no other types than these.
RULES: Dict[type, Callable[[Link], bool]] = dict.fromkeys(
    (optimizers.SGD, optimizers.MomentumSGD, optimizers.Adam, optimizers.AdamW), left_to_chainer)

# the methods that these stand for: whoever replaces one of them wants it to be called
_METHODS: Tuple[Tuple[type, str, Any], ...] = tuple([(owner, name, getattr(owner, name)) for owner, name in (
    (UpdateRule, "update"), (UpdateRule, "update_core"), (Parameter, "update"), (optimizers.sgd.SGDRule, "update_core_cpu"),
    (optimizers.momentum_sgd.MomentumSGDRule, "update_core_cpu"), (optimizers.adam.AdamRule, "update_core_cpu"))])


@functools.wraps(_cleargrads)
def cleargrads(self: Link) -> None:
    if stage.capture is not None or not ENABLED.value or Parameter.cleargrad is not _cleargrad or not cleared(self):
        _cleargrads(self)


@functools.wraps(_update)
def update(self: GradientMethod, lossfun: Any = None, *args: Any, **kwds: Any) -> None:
    rule = RULES.get(type(self), left_to_chainer)
    if rule is left_to_chainer or stage.capture is not None or not ENABLED.value:
        _update(self, lossfun, *args, **kwds)
        return
    if lossfun is not None:
        take_gradients(self, lossfun(*args, **kwds))
    if _is_plain(self) and rule(self.target):
        self._loss_scaling_isnan = False
        self.t += 1
    else:
        _update(self)


def take_gradients(optimizer: GradientMethod, loss: Any) -> None:
    """Replace the gradients of an optimizer's parameters by those of a loss."""
    if getattr(optimizer, "_use_cleargrads", True):
        optimizer.target.cleargrads()
    else:
        optimizer.target.zerograds()
    loss.backward(loss_scale=optimizer._loss_scale)


def is_native(optimizer: GradientMethod) -> bool:
    """Whether a native function updates all parameters of an optimizer at once."""
    return RULES.get(type(optimizer), left_to_chainer) is not left_to_chainer and _is_plain(optimizer)


def _is_plain(optimizer: GradientMethod) -> bool:
    """Whether an optimizer does nothing but have the parameters updated, by methods that are still Chainer's."""
    hookable = optimizer._hookable
    if hookable is None or hookable._pre_update_hooks or hookable._post_update_hooks or optimizer._loss_scaling_is_dynamic:
        return False
    for owner, name, method in _METHODS:
        if getattr(owner, name) is not method:
            return False
    return True


#: Chainer's methods, by those that stand in their places: what a capture follows.
ORIGINALS: Dict[Callable, Callable] = {update: _update, cleargrads: _cleargrads}


def install() -> None:
    """Replace Chainer's methods by those above."""
    GradientMethod.update, Link.cleargrads = update, cleargrads
