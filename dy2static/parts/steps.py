"""``optimizer.update(loss_function, ...)`` between compiled parts: what it calls is compiled, not the call as a whole."""
from __future__ import annotations

import functools
import types
from typing import Any, Callable, List, Optional

from chainer.optimizer import GradientMethod

from ..runtime import updating

#: The method as Chainer has it.
UPDATE: types.FunctionType = updating.ORIGINALS[updating.update]        # type: ignore[assignment]


def under(function: Any) -> Any:
    """The function that a method or a partial function calls."""
    while type(function) in (types.MethodType, functools.partial):
        function = function.__func__ if type(function) is types.MethodType else function.func
    return function


class Step:
    """The method ``update`` of one optimizer.

    route: gives what to call for a function, its compiled form if it has one.  routed: gives the compiled form of `UPDATE`.
    used: the functions that were called.
    """

    def __init__(self, optimizer: GradientMethod, route: Callable[[Any], Any], routed: Callable[[types.FunctionType], Callable]):
        self.optimizer, self.route, self.routed = optimizer, route, routed
        self.used: List[Any] = []

    def __call__(self, lossfun: Any = None, *args: Any, **kwds: Any) -> None:
        optimizer = self.optimizer
        if lossfun is not None:
            function = self.route(lossfun)
            self.used.append(under(function))
            updating.take_gradients(optimizer, function(*args, **kwds))
        if updating.is_native(optimizer):
            optimizer.update()
        else:
            update = self.routed(UPDATE)
            self.used.append(update)
            update(optimizer)

    def is_worth_it(self) -> Optional[bool]:
        """Whether the compiled functions among those that were called pay for their calls; None while that is not known."""
        found = [function.is_worth_it() for function in self.used if hasattr(function, "is_worth_it")]
        return True if True in found else None if None in found else False
