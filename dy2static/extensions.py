"""Extensions of `chainer.training.Trainer`."""
from __future__ import annotations

import statistics
import time
from typing import Any, Dict, List

import chainer
from chainer.training import extension

from . import config
from .dispatch.all_functions import enable, totals
from .errors import SignatureError

#: What is reported, by the names of `StaticFunction.stats`.
_REPORTED = ("programs", "captures", "fallbacks", "cuts")


class CompileReport(extension.Extension):
    """Reports counts of captures and fallbacks to `LogReport` and `PrintReport`.

    Entries, with ``prefix`` in front: ``programs``, how many there are; ``captures``, how many were made in this iteration;
    ``fallbacks``, the calls of this iteration that ran eagerly; ``cuts``, the lines that run as Python between compiled parts.
    `LogReport` shows means over its iterations: from the second epoch on, captures and fallbacks are to be 0.

    targets: compiled functions; without any, all compiled functions of this process.
    eager_iterations: the first so many iterations run with compilation turned off, and their updates are timed.  From then on there
        is also ``saved``: by how many seconds the update of this iteration was shorter than the median of those.  It is negative
        where functions are captured.  `saved_seconds` is the sum so far.  Reading of data in the update counts, on both sides;
        other extensions do not.

    Raises `SignatureError` for a number of iterations below 0.

    Example::

        trainer.extend(dy2static.extensions.CompileReport())
        trainer.extend(extensions.LogReport())
        trainer.extend(extensions.PrintReport(["epoch", "main/loss", "compile/captures", "compile/fallbacks"]))
    """

    trigger = (1, "iteration")
    priority = extension.PRIORITY_WRITER

    def __init__(self, *targets: Any, prefix: str = "compile/", eager_iterations: int = 0):
        if type(eager_iterations) is not int or eager_iterations < 0:
            raise SignatureError(f"eager_iterations is a number of iterations, not {eager_iterations!r}")
        self.targets, self.prefix, self.eager_iterations = targets, prefix, eager_iterations
        self.saved_seconds = 0.0
        self._before: Dict[str, int] = {}
        self._eager: List[float] = []
        self._seconds = 0.0
        self._updater: Any = None

    def __call__(self, trainer: Any) -> None:
        found = self._stats()
        each = {"captures", "fallbacks"}
        chainer.reporter.report({self.prefix + name: found.get(name, 0) - (self._before.get(name, 0) if name in each else 0)
                                 for name in _REPORTED})
        self._before = found
        if self._updater is not None:
            self._report_seconds()

    def _report_seconds(self) -> None:
        if len(self._eager) < self.eager_iterations:
            self._eager.append(self._seconds)
            if len(self._eager) == self.eager_iterations:
                enable(True)
            return
        saved = statistics.median(self._eager) - self._seconds
        self.saved_seconds += saved
        chainer.reporter.report({f"{self.prefix}saved": saved})

    def initialize(self, trainer: Any) -> None:
        """Count from here on, and time updates, if that was asked for and functions are compiled at all."""
        self._before = self._stats()
        if not self.eager_iterations or not config.ENABLED.value:
            return
        enable(False)
        self._updater, update = trainer.updater, trainer.updater.update

        def timed() -> None:
            begin = time.perf_counter()
            update()
            self._seconds = time.perf_counter() - begin
        self._updater.update = timed

    def finalize(self) -> None:
        """Leave the updater as it was, with compilation turned on."""
        if self._updater is not None:
            del self._updater.update
            self._updater = None
            enable(True)

    def _stats(self) -> Dict[str, int]:
        if not self.targets:
            return totals()
        found: Dict[str, int] = {}
        for target in self.targets:
            for name, count in target.stats().items():
                found[name] = found.get(name, 0) + count
        return found
