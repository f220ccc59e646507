"""``contextlib.ExitStack``: Python runs its methods as they are, so that what they call is converted when it is pushed."""
from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Callable, Dict

if TYPE_CHECKING:
    from .protocols import Calls


def _push(calls: Calls, function: Callable, stack: Any, callback: Callable, *is_sync: bool) -> None:
    def exit(*details: Any) -> Any:
        return calls.capture.callee(callback)(*details)

    calls.staged_codes.add(exit.__code__)
    if type(stack) is contextlib.ExitStack:
        if calls.capture.staging.depth:
            calls.capture.abort("an ExitStack gets more to do under a decision on array values")
        function(stack, exit, *is_sync)
    else:                                               # a class of the user's: its methods are converted
        calls.capture.functions.staged(function)(stack, callback, *is_sync)


def _wrapper(calls: Calls, function: Callable, callback: Callable, *args: Any, **kwargs: Any) -> Callable:
    def exit(*details: Any) -> None:
        calls.capture.callee(callback)(*args, **kwargs)

    calls.staged_codes.add(exit.__code__)
    return functools.partial(exit)                      # the caller sets its ``__wrapped__``


_OF_STACKS: Any = contextlib.ExitStack
EXIT_STACK_HANDLERS: Dict[Any, Callable] = {_OF_STACKS._push_exit_callback: _push, _OF_STACKS._create_cb_wrapper: _wrapper}
