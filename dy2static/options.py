"""What a function was compiled with: the options of `to_static`, checked once."""
from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, ClassVar, Iterable, Optional, Tuple, Union

import numpy as np

from . import config
from .errors import SignatureError

Recompute = Union[str, int]


@dataclass(frozen=True)
class Options:
    """The options of `to_static`, which says what they mean; verbosity: as `set_verbosity`, for this function.

    Raises `SignatureError` for what an option cannot be.
    """

    strict: Union[bool, str] = False
    cache_limit: int = 32
    cache_bytes: Optional[int] = None
    check: int = 0
    rng: str = "eager"
    backend: Optional[str] = None
    recompute: Optional[Recompute] = None
    dynamic: bool = True
    verbosity: int = 0
    input_spec: Tuple[Any, ...] = ()
    grads: str = "keep"

    #: Whether the function is called between parts of another one, or is a part itself.
    is_inner: ClassVar[bool] = False

    def __post_init__(self) -> None:
        made = {
            "strict": _strict(self.strict),
            "dynamic": switch("dynamic", self.dynamic),
            "cache_limit": count("cache_limit", self.cache_limit, 1),
            "cache_bytes": None if self.cache_bytes is None else count("cache_bytes", self.cache_bytes),
            "check": count("check", self.check), "verbosity": count("verbosity", self.verbosity),
            "rng": word("rng", self.rng, ("eager", "fast")),
            "backend": None if self.backend is None else word("backend", self.backend, config.BACKENDS),
            "recompute": None if self.recompute is None else _recompute(self.recompute),
            "input_spec": _specs(self.input_spec), "grads": word("grads", self.grads, ("keep", "drop")),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)
        if self.check and self.rng == "fast":
            raise SignatureError('check compares with the eager run, which draws other numbers than rng="fast"')
        if self.check and self.grads == "drop":
            raise SignatureError('check compares with the eager run, which keeps the gradients that grads="drop" drops')

    @property
    def allows_parts(self) -> bool:
        """Whether a line that cannot be compiled may run as Python between compiled parts."""
        return self.strict is not True

    @property
    def backend_now(self) -> str:
        """The backend of new programs."""
        return self.backend or config.BACKEND.value

    @property
    def recompute_now(self) -> Recompute:
        """What the backwards of new programs compute again."""
        return _recompute(config.RECOMPUTE.value) if self.recompute is None else self.recompute

    @property
    def verbosity_now(self) -> int:
        """How much is logged: the more of what this function and the process ask for."""
        return max(self.verbosity, config.VERBOSITY.value)


@dataclass(frozen=True)
class InnerOptions(Options):
    """Those of a part, or of a function that is called between parts."""

    is_inner: ClassVar[bool] = True


def switch(name: str, given: Any) -> bool:
    """Return the value of a boolean option.  Raises `SignatureError` for anything but True, False, 1 and 0."""
    if isinstance(given, (int, np.bool_, np.integer)) and given in (0, 1):
        return bool(given)
    raise SignatureError(f"{name} is True or False, not {given!r}")


def count(name: str, given: Any, least: int = 0) -> int:
    """What was given for a whole number that is not less than ``least``.  Raises `SignatureError`."""
    try:
        found = operator.index(given)
    except TypeError:
        found = least - 1
    if found < least:
        raise SignatureError(f"{name} is a whole number, at least {least}, not {given!r}")
    return found


def word(name: str, given: Any, known: Iterable[str]) -> str:
    """What was given for one of some words.  Raises `SignatureError`."""
    known = tuple(known)
    if isinstance(given, str) and given in known:
        return given
    *others, last = [f'"{each}"' for each in known]
    raise SignatureError(f"{name} is {', '.join(others)} or {last}, not {given!r}", hint=did_you_mean(given, known))


def none_unknown(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise `SignatureError` for an argument that a function does not have, with the nearest that it has."""
    known = tuple(known)
    for name in [each for each in given if each not in known]:
        raise SignatureError(f"{function} has no argument {name!r}",
                             hint=did_you_mean(name, known) or f"it has {', '.join(sorted(known))}")


def did_you_mean(given: Any, known: Iterable[str]) -> Optional[str]:
    """A hint at the known word that is most like what was given; None where none is."""
    other = config.nearest(given, known) if isinstance(given, str) else ""
    return f'"{other}"?' if other else None


def _strict(given: Any) -> Union[bool, str]:
    if isinstance(given, str) and given != "parts":
        raise SignatureError(f'strict is True, False or "parts", not {given!r}', hint=did_you_mean(given, ("parts",)))
    return given if isinstance(given, str) else switch("strict", given)


def _recompute(given: Any) -> Recompute:
    try:
        option: Recompute = config.recompute(given)
    except ValueError:
        raise SignatureError(f'recompute is "auto", "none", "cheap", "sublinear" or a number of bytes, not {given!r}',
                             hint=did_you_mean(given, ("auto", "none", "cheap", "sublinear"))) from None
    return option


def _specs(given: Any) -> Tuple[Any, ...]:
    if given is None or isinstance(given, (list, tuple)):
        return tuple(given or ())
    raise SignatureError(f"input_spec is a list of InputSpecs, one for each argument, not {given!r}",
                         hint="for one argument, too: [...]")


#: What there is if nothing is asked for; the same on NumPy.
DEFAULTS, ON_NUMPY = Options(), Options(backend="numpy")
