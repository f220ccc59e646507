"""Why there is no native code."""
from __future__ import annotations

from .. import config
from ..errors import BackendError


class NoCompiler(BackendError):
    """There is no C compiler on this machine."""

    code = "D2S402"


class BuildFailed(BackendError):
    """The compiler refused a text, or what it made cannot be loaded."""

    code = "D2S403"


class Refused(BuildFailed):
    """The compiler refused a text."""

    @classmethod
    def stands(cls, reason: BackendError) -> bool:
        """Whether this is to be an error: a refused text, under ``DY2STATIC_STRICT_BUILD``."""
        return bool(config.STRICT_BUILD.value) and isinstance(reason, cls)
