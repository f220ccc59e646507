"""What a function was compiled with: the options of `to_static`, checked once."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Tuple, Union

from . import config
from .errors import SignatureError

Recompute = Union[str, int]


@dataclass(frozen=True)
class Options:
    """The options of `to_static`, which says what they mean; verbosity: as `set_verbosity`, for this function.

    Raises `SignatureError` for what an option cannot be.
    """

    strict: bool = False
    cache_limit: int = 32
    cache_bytes: Optional[int] = None
    check: int = 0
    rng: str = "eager"
    backend: Optional[str] = None
    recompute: Optional[Recompute] = None
    dynamic: bool = True
    verbosity: int = 0
    input_spec: Tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.rng not in ("eager", "fast"):
            raise SignatureError(f'rng is "eager" or "fast", not {self.rng!r}')
        if self.backend not in (None, "auto", "c", "numpy"):
            raise SignatureError(f'backend is "auto", "c" or "numpy", not {self.backend!r}')
        if self.check and self.rng == "fast":
            raise SignatureError('check compares with the eager run, which draws other numbers than rng="fast"')
        if self.recompute is not None:
            object.__setattr__(self, "recompute", _recompute(self.recompute))

    @property
    def backend_now(self) -> str:
        """What new programs run on."""
        return self.backend or config.BACKEND.value

    @property
    def recompute_now(self) -> Recompute:
        """What the backwards of new programs compute again."""
        return _recompute(config.RECOMPUTE.value) if self.recompute is None else self.recompute

    @property
    def verbosity_now(self) -> int:
        """How much is logged: the more of what this function and the process ask for."""
        return max(self.verbosity, config.VERBOSITY.value)


def _recompute(option: Any) -> Recompute:
    if isinstance(option, str) and option.isdigit():
        option = int(option)
    if option in ("none", "cheap", "sublinear") or type(option) is int and option >= 0:
        return option
    raise SignatureError(f'recompute is "none", "cheap", "sublinear" or a number of bytes, not {option!r}')


#: What there is if nothing is asked for; the same on NumPy.
DEFAULTS, ON_NUMPY = Options(), Options(backend="numpy")
