"""Whether captures pay: signatures that are captured again and again, for programs that no later call can use."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Tuple

from .program import MISS

#: So many captures of one signature are not watched: flags and modes of a model.
_SOME = 8

#: So many watched ones in a row that no later call used are enough.
_MOST_UNUSED = 16


class Reuse:
    """Of one function: per signature, how many captures there were, and of the last ones how many no call has used."""

    def __init__(self) -> None:
        self.captures: Dict[Tuple, int] = {}
        self.unused: Dict[Tuple, int] = {}

    def captured(self, signature: Tuple, calls: List[Callable], position: int) -> bool:
        """Note a capture whose call stands in ``calls``; gives whether such captures have not paid for long."""
        count = self.captures[signature] = self.captures.get(signature, 0) + 1
        if count > _SOME:
            self.unused[signature] = self.unused.get(signature, 0) + 1
            calls[position] = _Watched(self, signature, calls, calls[position])
        return self.unused.get(signature, 0) >= _MOST_UNUSED

    def is_at_its_last(self, signature: Tuple) -> bool:
        """Whether one more capture that is not used is one too many."""
        return self.unused.get(signature, 0) >= _MOST_UNUSED - 1

    def clear(self) -> None:
        """Forget all."""
        self.captures.clear()
        self.unused.clear()


class _Watched:
    """A call that tells when it is used again, and then steps aside."""

    def __init__(self, reuse: Reuse, signature: Tuple, calls: List[Callable], call: Callable):
        self.reuse, self.signature, self.calls, self.call = reuse, signature, calls, call

    def __call__(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        result = self.call(args, kwargs)
        if result is not MISS:
            self.reuse.unused[self.signature] = 0
            self.calls[:] = [self.call if call is self else call for call in self.calls]
        return result
