"""Extensions of `chainer.training.Trainer`."""
from __future__ import annotations

from typing import Any, Dict

import chainer
from chainer.training import extension

from .dispatch.dispatcher import totals

#: What is reported, by the names of `StaticFunction.stats`.
_REPORTED = ("programs", "captures", "fallbacks", "cuts")


class CompileReport(extension.Extension):
    """Reports what became of compiled functions, for `LogReport` and `PrintReport`.

    Entries, with ``prefix`` in front: ``programs``, how many there are; ``captures``, how many were made in this iteration;
    ``fallbacks``, the calls of this iteration that ran eagerly; ``cuts``, the lines that run as Python between compiled parts.
    `LogReport` shows means over its iterations: from the second epoch on, captures and fallbacks are to be 0.

    targets: compiled functions; without any, all that are compiled in this process.

    Example::

        trainer.extend(dy2static.extensions.CompileReport())
        trainer.extend(extensions.LogReport())
        trainer.extend(extensions.PrintReport(["epoch", "main/loss", "compile/captures", "compile/fallbacks"]))
    """

    trigger = (1, "iteration")
    priority = extension.PRIORITY_WRITER

    def __init__(self, *targets: Any, prefix: str = "compile/"):
        self.targets, self.prefix = targets, prefix
        self._before: Dict[str, int] = {}

    def __call__(self, trainer: Any) -> None:
        found = self._stats()
        each = {"captures", "fallbacks"}
        chainer.reporter.report({self.prefix + name: found.get(name, 0) - (self._before.get(name, 0) if name in each else 0)
                                 for name in _REPORTED})
        self._before = found

    def initialize(self, trainer: Any) -> None:
        """Count from here on."""
        self._before = self._stats()

    def _stats(self) -> Dict[str, int]:
        if not self.targets:
            return totals()
        found: Dict[str, int] = {}
        for target in self.targets:
            for name, count in target.stats().items():
                found[name] = found.get(name, 0) + count
        return found
