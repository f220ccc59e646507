"""Work in a thread of its own, which does not keep the process from ending."""
from __future__ import annotations

import threading
from typing import Any, Callable, Optional


class Background:
    """A call of a function in the background, begun at once."""

    def __init__(self, work: Callable[[], Any]):
        self._result: Any = None
        self._error: Optional[BaseException] = None
        self._work = work
        self._thread = threading.Thread(target=self._run, name="dy2static compiler", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:                  # raised by `result`
            self._error = error

    def done(self) -> bool:
        """Whether `result` has nothing to wait for."""
        return not self._thread.is_alive()

    def result(self) -> Any:
        """What the function gives, or raises."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result
