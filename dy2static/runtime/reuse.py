"""Whether captures pay: signatures that are captured again and again, for programs that no later call can use."""
from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Tuple

from .cache import Cache, Recent
from .program import MISS, Program

#: So many captures of one signature are not watched: flags and modes of a model.
_SOME = 8

#: So many watched ones in a row that no later call used are enough.
_MOST_UNUSED = 16


class Reuse:
    """Of one function: per signature, how many captures there were, and of the last ones how many no call has used."""

    def __init__(self) -> None:
        self.captures: Dict[Tuple, int] = Recent()
        self.unused: Dict[Tuple, int] = Recent()

    def captured(self, signature: Tuple, cache: Cache, program: Program) -> bool:
        """Note a capture that gave this program; gives whether such captures have not paid for long."""
        count = self.captures[signature] = self.captures.get(signature, 0) + 1
        if count > _SOME:
            self.unused[signature] = self.unused.get(signature, 0) + 1
            call = cache.call_of(program)
            cache.replace(call, _Watched(self, signature, cache, call))
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

    def __init__(self, reuse: Reuse, signature: Tuple, cache: Cache, call: Callable):
        self.reuse, self.signature, self.cache, self.call = reuse, signature, cache, call

    def __call__(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        result = self.call(args, kwargs)
        if result is not MISS:
            self.reuse.unused[self.signature] = 0
            self.cache.replace(self, self.call)
        return result
