"""Programs that are called with clocks for a while."""
from __future__ import annotations

import contextlib
from typing import Iterator, Optional

from ..diagnostics.check.checked import CheckedCall
from ..runtime.cache import Cache
from ..runtime.profile import Profile, TimedCall
from ..runtime.program import Program


@contextlib.contextmanager
def profiled(cache: Cache, only: Optional[Program], profile: Profile) -> Iterator[None]:
    """Calls with clocks in place of the others.  Those that are checked stay so.  only: the program to profile; None for all."""
    for program in list(cache.programs):
        call = cache.call_of(program)
        if (only is None or program.guards is only.guards) and type(call) is not CheckedCall:
            cache.replace(call, profile.timed(program, call))
    try:
        yield
    finally:
        for program in list(cache.programs):
            call = cache.call_of(program)
            if type(call) is TimedCall and call.profile is profile:
                cache.replace(call, call.call)
