"""What is certain of ``chainer.report`` while the current reporter is Chainer's own."""
from __future__ import annotations

from typing import Any

from chainer import reporter as chainer_reporter

_report, _Reporter = chainer_reporter.Reporter.report, chainer_reporter.Reporter


def reports_plainly(*observers: Any) -> bool:
    """Whether a report from one of these does nothing but store its values, and cannot fail."""
    reporters = chainer_reporter._get_reporters()
    if not reporters:
        return True
    reporter = reporters[-1]
    if type(reporter) is not _Reporter or _Reporter.report is not _report or "report" in reporter.__dict__ or \
            type(reporter.observation) is not dict:
        return False
    names = reporter._observer_names
    return all([type(names.get(id(observer))) is str for observer in observers])
