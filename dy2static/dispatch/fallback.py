"""Calls that run eagerly: the signatures that do, and who is told why."""
from __future__ import annotations

import types
import warnings
from typing import Any, Dict, Mapping, Optional, Tuple

from ..errors import CaptureError, FallbackWarning, Location
from ..heap.aborts import CaptureAborted
from ..heap.locations import caller_depth, definition, error_location
from ..heap.wording import hint_for, reason_of
from ..options import Options
from ..runtime.traceback import calls_as_written

#: Calls whose parts did too little are divided again after so many that ran eagerly, then after twice as many, and so on.
_FIRST_PATIENCE = 8

#: So many calls may raise the same error one after the other, each of which is captured; then twice as many run eagerly each time.
_MOST_RAISED = 3

#: No more calls than these run eagerly before one is captured again.
_LONGEST_PATIENCE = 512


class Fallback:
    """What runs eagerly of the calls of one function.

    refused: per signature, why.  count: how many calls ran eagerly.  expects_error: whether the last calls for which there was no
    program have all raised the same error: then the next ones are not captured, until one does not raise, or there were many.
    is_part: whether it is a part of another function, which tells the user.
    """

    def __init__(self, function: types.FunctionType, options: Options, is_part: bool = False):
        self.function, self.options, self.is_part, self.count = function, options, is_part, 0
        self.refused: Dict[Tuple, str] = {}
        self._errors: Dict[Tuple, Tuple] = {}
        self._idle: Dict[Tuple, Tuple[int, int]] = {}   # after how many more calls parts are tried again, and of how many
        self._warned: Dict[str, object] = {}
        self._raised = self._left = 0
        self._kind: Optional[Tuple] = None              # of the errors of these

    def clear(self) -> None:
        """Forget why calls were refused."""
        self._raised = self._left = 0
        for learned in (self.refused, self._errors, self._idle, self._warned):
            learned.clear()

    def learned(self) -> Tuple[Dict, ...]:
        """What is refused now, for `restore`."""
        return dict(self.refused), dict(self._errors), dict(self._idle)

    def restore(self, learned: Tuple[Dict, ...]) -> None:
        """Refuse what was refused then."""
        self.refused, self._errors, self._idle = learned

    @calls_as_written
    def run(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """The call, as the function was written."""
        self.count += 1
        return self.function(*args, **kwargs)

    @property
    def expects_error(self) -> bool:
        """See above."""
        return self._left > 0

    @calls_as_written
    def run_expecting(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """A call that is expected to raise as the ones before it did; if it does not, the next ones are captured again."""
        self._left -= 1
        result = self.function(*args, **kwargs)
        self.not_raised()
        self.count += 1
        return result

    def not_raised(self) -> None:
        """A call has not raised, or its capture has not."""
        self._raised = self._left = 0

    def check(self, signature: Tuple) -> None:
        """Raise `CaptureError` under ``strict``, if calls of this signature are refused for an error."""
        if self.options.strict and signature in self._errors:
            raise self.error(*self._errors[signature])

    def refuse(self, signature: Tuple, reason: str, at: Optional[Location], hint: Optional[str]) -> None:
        """From now on calls of this signature run eagerly."""
        self.refused[signature], self._errors[signature] = reason, (reason, at, hint)

    def put_off(self, signature: Tuple, stop: CaptureAborted) -> None:
        """Let calls of this signature run eagerly for a while: those so far may have returned before the work begins."""
        self.refuse(signature, stop.reason, stop.at, stop.hint)
        patience = 2 * self._idle.get(signature, (0, _FIRST_PATIENCE // 2))[1]
        self._idle[signature] = patience, patience

    def is_due(self, signature: Tuple) -> bool:
        """Count a call of a refused signature; whether that was the last for now."""
        left, patience = self._idle.get(signature, (-1, 0))
        if left < 0:
            return False
        self._idle[signature] = left - 1, patience
        if left == 0:
            self.refused.pop(signature, None)
        return left == 0

    @calls_as_written
    def run_and_tell(self, args: Tuple, kwargs: Mapping[str, Any], reason: str, at: Optional[Location] = None,
                     hint: Optional[str] = None) -> Any:
        """The call, as the function was written, with a warning.  Raises `CaptureError` under ``strict``."""
        self.count += 1
        self.tell(reason, at, hint)
        return self.function(*args, **kwargs)

    @calls_as_written
    def run_after(self, error: Exception, args: Tuple, kwargs: Mapping[str, Any]) -> Tuple[Any, CaptureAborted]:
        """A call whose capture raised what may be the user's own mistake: then it raises here.

        Else it gives the result, and the error as what stopped the capture.
        """
        kind = type(error), error_location(error)
        self._raised, self._kind = (self._raised + 1 if kind == self._kind else 1), kind
        checks_each = self.options.strict or self.options.input_spec        # which say so of the first call that differs
        if self._raised >= _MOST_RAISED and not checks_each:
            self._left = min(1 << self._raised, _LONGEST_PATIENCE)
        result = self.function(*args, **kwargs)
        self.not_raised()
        self.count += 1
        return result, CaptureAborted(reason_of(error), error_location(error))

    def refuse_after(self, stop: CaptureAborted, signature: Tuple, error: Exception) -> None:
        """From now on calls of this signature run eagerly, because a capture raised an error."""
        self.refuse(signature, stop.reason, stop.at, None)
        self.tell(stop.reason, stop.at, None, error)

    def tell(self, reason: str, at: Optional[Location], hint: Optional[str], cause: Optional[BaseException] = None) -> None:
        """Warn of each reason once.  Raises `CaptureError` under ``strict``."""
        if self.options.strict:
            raise self.error(reason, at, hint) from cause
        mine = object()
        if self.is_part or self._warned.setdefault(reason, mine) is not mine:
            return                                      # said before; `setdefault` lets one of several threads say it
        at = at or definition(self.function)
        place = f" ({at}: {at.text().strip()})" if at is not None else ""
        name, hint = self.function.__qualname__, hint or hint_for(reason)
        warnings.warn(f"{name} runs in eager mode for this signature: {reason}{place}; {hint}", FallbackWarning,
                      stacklevel=caller_depth())

    def error(self, reason: str, at: Optional[Location], hint: Optional[str]) -> CaptureError:
        """What is raised under ``strict``."""
        return CaptureError(f"{self.function.__qualname__} cannot be compiled: {reason}", at or definition(self.function),
                            hint or hint_for(reason))
