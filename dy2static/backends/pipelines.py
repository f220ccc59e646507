"""All pipelines: those of every graph, and those of the backends."""
from __future__ import annotations

from typing import Any, Tuple

from .. import config, passes
from ..errors import SignatureError
from ..options import did_you_mean
from .registry import BACKENDS

_LEVELS = ("all", "last")


def pipelines() -> passes.Pipelines:
    """Return the passes of each pipeline, in order: ``print(dy2static.pipelines())``.

    Each `Pipeline` has a name, a purpose and ``passes``.  A pass has a name, a summary, and ``when``, its condition.
    """
    own = [found for backend in BACKENDS.values() for found in (backend.passes, *backend.inner)]
    return passes.Pipelines((passes.CLEAN, passes.OPTIMIZE, passes.BACKWARD, *own))


def pass_levels_of(level: Any) -> Tuple[str, ...]:
    """The names in a level: of passes, of pipelines, "all", "last".  Raises `SignatureError` for other names."""
    asked = level.split(",") if isinstance(level, str) else level if isinstance(level, (list, tuple)) else [level]
    asked = [name.strip() if isinstance(name, str) else name for name in asked if name != ""]
    known = (*_LEVELS, *passes.named(pipelines()))
    for name in asked:
        if name not in known:
            raise SignatureError(f"{name} is no pass and no pipeline: there are {', '.join(known)}", hint=did_you_mean(name, known))
    return tuple(asked)


def _check_environment() -> None:
    try:
        pass_levels_of(config.PASS_LEVEL.value)
    except SignatureError as error:
        config.PASS_LEVEL.ignore(f"{config.PASS_LEVEL.name} is ignored: {error.args[0]}")


_check_environment()
