"""Captures that are put off to the next call, because a call in eager mode has to show something first."""
from __future__ import annotations

import contextlib
import threading
from typing import Dict, Iterator, List, Tuple

from ..runtime.cache import Recent
from ..threads.locks import lock

#: So often a capture may be put off (parameters not initialized, results not seen yet).
_MOST_TRIES = 4


class Postponed:
    """The stopped captures of one function, by the signatures of the calls.

    Captures of other threads that stop before such a call has ended are not counted as tries: they could not know more.
    """

    def __init__(self) -> None:
        self._stops: Dict[Tuple, int] = Recent()
        self._tries: Dict[Tuple, int] = Recent()
        self._running: Dict[Tuple, List[int]] = {}      # the threads
        self._lock = lock()

    def stopped(self, signature: Tuple) -> bool:
        """Count a capture that has stopped.  Returns whether there may be another one."""
        with self._lock:
            self._stops[signature] = self._stops.get(signature, 0) + 1
            is_alone = set(self._running.get(signature, ())) <= {threading.get_ident()}
            tries = self._tries[signature] = self._tries.get(signature, 0) + is_alone
            return tries <= _MOST_TRIES

    @contextlib.contextmanager
    def shown(self, signature: Tuple) -> Iterator[None]:
        """Run the call in eager mode in the block."""
        thread = threading.get_ident()
        with self._lock:
            self._running.setdefault(signature, []).append(thread)
        try:
            yield
        finally:
            with self._lock:
                self._running[signature].remove(thread)
                if not self._running[signature]:
                    del self._running[signature]

    def succeeded(self, signature: Tuple) -> int:
        """Forget a signature, because a capture gave a program.  Returns how many had stopped."""
        with self._lock:
            self._tries.pop(signature, None)
            return self._stops.pop(signature, 0)

    def clear(self) -> None:
        """Forget all signatures."""
        with self._lock:
            self._stops.clear()
            self._tries.clear()
