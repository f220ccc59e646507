"""What is counted: checks that hold, and that do not."""
from __future__ import annotations

import contextlib
import traceback
from typing import Iterator


class Checks:
    """Counts what holds and what does not, and prints the latter."""

    def __init__(self) -> None:
        self.passed = self.failed = 0

    def check(self, name: str, problem: str) -> None:
        """One check: it holds if there is no problem."""
        if problem:
            self.failed += 1
            print(f"FAILED {name}: {problem}", flush=True)
        else:
            self.passed += 1

    @contextlib.contextmanager
    def guarded(self, name: str) -> Iterator[None]:
        """In its block, an error of any kind is one check that does not hold; what comes after the block runs all the same."""
        try:
            yield
        except Exception as error:                       # a fault of what is checked, or of a library: both are to be found
            self.check(name, "".join(traceback.format_exception(type(error), error, error.__traceback__)[-4:]).strip())
