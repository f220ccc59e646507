"""The way into a compiled function: the first program whose guards hold."""
from __future__ import annotations

from typing import Any

from ..runtime.hooks import stage
from ..runtime.program import MISS
from ..runtime.raised_errors import is_undone
from ..runtime.traceback import hide_internals


def left_by(error: Exception) -> None:
    """Have the traceback of an error that leaves a compiled call show the user's lines only; captures need all of them."""
    if stage.capture is None:
        hide_internals(error)


class Entry:
    """Calls a function by its programs; what fits none goes to its dispatcher."""

    def __init__(self, dispatcher: Any):
        self.dispatcher = dispatcher
        self._calls, self._cache = dispatcher.calls, dispatcher.cache

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            for call in self._calls:
                result = call(args, kwargs)
                if result is not MISS:
                    if call is not self._cache.last:
                        self._cache.used(call)
                    return result
            return self.dispatcher.miss(args, kwargs)
        except Exception as error:
            if not is_undone(error) or not self.dispatcher.has_python:
                left_by(error)
                raise
        return self._run_again(args, kwargs)

    def _run_again(self, args: Any, kwargs: Any) -> Any:
        """The eager call: what it raises has no other error as its context."""
        try:
            return self.dispatcher.fallback.run(args, kwargs)
        except Exception as error:
            left_by(error)
            raise
