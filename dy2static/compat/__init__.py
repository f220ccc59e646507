"""Lets the unmaintained Chainer 7.8.1 run on today's Python and NumPy.

``install()`` has a few modules of Chainer edited while they are imported; ``patches.py`` lists every edit
with its reason.  It has to come before ``import chainer``, so ``import dy2static`` comes before it too.
"""
from __future__ import annotations

import importlib.util
import sys

from dy2static.compat import loader
from dy2static.errors import BackendError

INSTALL_CHAINER = (
    'python -m pip install "setuptools<81" wheel',
    "python -m pip install --no-build-isolation chainer==7.8.1",
)


def install() -> None:
    """Edit Chainer's modules when they are imported, from here on.  Any number of calls do what one does.

    A Chainer that is imported already runs as it is; only what it has not imported yet is edited.

    Raises:
        BackendError: Chainer is not installed, or an import of it has failed earlier in this process.
    """
    if "chainer" not in sys.modules:
        _check_untouched()
    loader.insert(BackendError)


def _check_untouched() -> None:
    if importlib.util.find_spec("chainer") is None:
        raise BackendError("Chainer is not installed in this Python",
                           hint="install it with these two commands:\n    " + "\n    ".join(INSTALL_CHAINER))
    # Python drops a package whose import failed, but keeps the submodules that were loaded by then, unedited.
    if any(name.startswith("chainer.") for name in sys.modules):
        raise BackendError(
            "`import chainer` came before `import dy2static` and failed; what it left behind cannot be used",
            hint="write `import dy2static` above `import chainer` and start a new process (restart a "
                 "notebook's kernel); `python -m dy2static doctor` tells more")
