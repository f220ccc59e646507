"""What is counted: checks that hold, and that do not."""
from __future__ import annotations


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
