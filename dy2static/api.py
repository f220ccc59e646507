"""The public names: `to_static` and what it returns."""
from __future__ import annotations

import functools
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import chainer

from . import config
from .conversion import conversion_of, stages_of
from .dispatch import Dispatcher, enable
from .errors import SignatureError
from .explain import Explanation
from .runtime.cache import Miss
from .runtime.profile import Profile
from .runtime.program import MISS, Program
from .runtime.staticness import NOT_STATIC, StaticCallable


class StaticFunction(StaticCallable):
    """A function that runs compiled: one generated program per signature, in one differentiable op.

    Calling it is calling the function.  See `code`, `program`, `graph`, `explain`, `stats`, `cache_info`.
    """

    def __init__(self, function: types.FunctionType, **options: Any):
        functools.update_wrapper(self, function)
        self.python_function = function
        self.dispatcher = Dispatcher(function, **options)
        self._calls, self._cache = self.dispatcher.calls, self.dispatcher.cache

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for call in self._calls:
            result = call(args, kwargs)
            if result is not MISS:
                if call is not self._cache.last:
                    self._cache.used(call)
                return result
        return self.dispatcher.miss(args, kwargs)

    def __get__(self, instance: Any, owner: Optional[type] = None) -> Any:
        return self if instance is None else BoundStaticFunction(self, instance)

    def __reduce__(self) -> Any:
        return self.__qualname__ if self._is_global() else (StaticFunction, (self.python_function,))

    def _is_global(self) -> bool:
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        return found is self

    def __deepcopy__(self, memo: Any) -> "StaticFunction":
        return self

    def __repr__(self) -> str:
        return f"<static {self.__qualname__}>"

    @property
    def code(self) -> str:
        """The transformed Python source of the function."""
        return conversion_of(self.python_function).code

    def stages(self, level: Any = "all", diff: bool = False) -> str:
        """The source after each transformer that ``level`` names (as in `set_code_level`), or what each changed."""
        levels = [str(x).lower() for x in (level if isinstance(level, (list, tuple, set)) else [level])]
        wanted = [stage for stage in stages_of(self.python_function) if stage.is_wanted(levels)]
        return "\n\n".join(f"# {stage.number} {stage.name}\n{stage.text(diff).strip()}" for stage in wanted) + "\n"

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The program that a call with these arguments runs (compiled if need be, not run).

        Raises `CaptureError` if such a call runs eagerly.
        """
        return self.dispatcher.program(args, kwargs)

    @property
    def graph(self) -> Any:
        """The graph of the program used last; None before the first."""
        return self.dispatcher.programs[0].graph if self.dispatcher.programs else None

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Per source line: what is in the graph, what stays Python, what the host runs at every call, and why.

        A text whose attributes are the parts; see `Explanation`.
        """
        return self.dispatcher.explain(args, kwargs)

    def profile(self) -> Profile:
        """Times the calls in a ``with`` block, operation by operation: see `Profile`.  Print it for a table."""
        return self.dispatcher.profile()

    def stats(self) -> Dict[str, int]:
        """Counts: captures, fallbacks, programs; and of these the nodes, staged regions, and nodes that run as calls."""
        return self.dispatcher.stats()

    def cache_info(self) -> "CacheInfo":
        """Numbers of programs, captures, fallbacks and misses, and how much memory the programs take; see `CacheInfo`."""
        cache = self.dispatcher.cache
        return CacheInfo(len(cache.programs), cache.limit, self.dispatcher.captures, self.dispatcher.fallbacks,
                         cache.missed, cache.evicted, cache.nbytes, cache.limit_bytes)

    def explain_misses(self) -> List[Miss]:
        """The last calls that no program could take, in order: what they wanted otherwise, and what became of them."""
        return list(self.dispatcher.cache.misses)

    def clear_cache(self) -> None:
        """Forget all programs."""
        self.dispatcher.clear()

    def rollback(self) -> Callable:
        """The function as it was before ``to_static``."""
        return self.python_function


class CacheInfo(NamedTuple):
    """What `StaticFunction.cache_info` gives.

    programs, limit: how many there are, and may be.  captures: how many were made.  fallbacks: calls that ran eagerly.
    misses: calls that no program could take (`StaticFunction.explain_misses` has the reasons).  evicted: programs that
    had to go.  bytes, limit_bytes: about how much memory the programs keep, and may keep together.
    """

    programs: int
    limit: int
    captures: int
    fallbacks: int
    misses: int = 0
    evicted: int = 0
    bytes: int = 0
    limit_bytes: Optional[int] = None


class BoundStaticFunction(StaticCallable):
    """A `StaticFunction` as a method of an object."""

    __slots__ = ("static", "instance")

    def __init__(self, static: StaticFunction, instance: Any):
        self.static, self.instance = static, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.static(self.instance, *args, **kwargs)

    @property
    def python_function(self) -> Callable:              # type: ignore[override]
        return types.MethodType(self.static.python_function, self.instance)

    @property
    def __func__(self) -> StaticFunction:
        return self.static

    @property
    def __self__(self) -> Any:
        return self.instance

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """As `StaticFunction.program`."""
        return self.static.program(self.instance, *args, **kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """As `StaticFunction.explain`."""
        return self.static.explain(self.instance, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.static, name)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, BoundStaticFunction) and (self.static, id(self.instance)) == (other.static, id(other.instance))

    def __hash__(self) -> int:
        return hash((self.static, id(self.instance)))

    def __repr__(self) -> str:
        return f"<bound static {self.static.__qualname__} of {self.instance!r}>"


def to_static(target: Any = None, *, strict: bool = False, cache_limit: int = 32, cache_bytes: Optional[int] = None,
              check: int = 0, rng: str = "eager", backend: Optional[str] = None) -> Any:
    """Compile a function, a method, a Chain class or a Chain.

    target: a Python function or lambda; a bound method; a class derived from `chainer.Link` (its ``forward`` or
        ``__call__`` is decorated); or a Link (the same object comes back, with that method compiled).  Without it,
        a decorator with these options.
    strict: raise `CaptureError` instead of running eagerly with a warning.
    cache_limit: the most programs kept per function; the one used longest ago goes first.
    cache_bytes: about how much memory they may take together, looked at when another one is made; at least one stays.
    check: so many calls of each program also run eagerly, and `DivergenceError` names the first line that differs.
    rng: where Chainer's functions (dropout and its kin) draw from: ``"eager"``, the very numbers that eager draws; or
        ``"fast"``, other ones, from a counter-based generator whose key each call draws from NumPy's global one.
    backend: what programs run on: ``"numpy"``, calls of NumPy; ``"c"``, native code where there is a C compiler;
        ``"auto"``, NumPy for the first ten calls of each program, then native code.  None: DY2STATIC_BACKEND, or "auto".

    Raises `SignatureError` for anything else.
    """
    if rng not in ("eager", "fast"):
        raise SignatureError(f'rng is "eager" or "fast", not {rng!r}')
    if backend not in (None, "auto", "c", "numpy"):
        raise SignatureError(f'backend is "auto", "c" or "numpy", not {backend!r}')
    if check and rng == "fast":
        raise SignatureError('check compares with the eager run, which draws other numbers than rng="fast"')
    options = {"strict": strict, "cache_limit": cache_limit, "cache_bytes": cache_bytes, "check": check, "rng": rng,
               "backend": backend}
    if target is None:
        return lambda actual: to_static(actual, **options)
    if isinstance(target, StaticCallable):
        return target
    if isinstance(target, types.FunctionType):
        return target if getattr(target, NOT_STATIC, False) else StaticFunction(target, **options)
    if isinstance(target, types.MethodType) and isinstance(target.__func__, types.FunctionType):
        return BoundStaticFunction(StaticFunction(target.__func__, **options), target.__self__)
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(to_static(target.__func__, **options))
    if isinstance(target, functools.partial):
        return functools.partial(to_static(target.func, **options), *target.args, **target.keywords)
    if isinstance(target, type) and issubclass(target, chainer.Link):
        return _compile_class(target, options)
    if isinstance(target, chainer.Link):
        return _compile_link(target, options)
    if callable(target) and isinstance(getattr(type(target), "__call__", None), types.FunctionType):    # noqa: B004
        return BoundStaticFunction(StaticFunction(type(target).__call__, **options), target)
    raise SignatureError(f"to_static takes a function, a method, a Chain class or a Link, not {type(target).__name__}",
                         hint="C functions and builtins have no source to compile")


def not_to_static(function: Callable) -> Callable:
    """Mark a function that must stay as it is: inside compiled code it runs on the host, at every call."""
    setattr(function, NOT_STATIC, True)
    return function


def _entry_point(cls: type) -> str:
    """The method of a Link that a call runs first and that the user wrote."""
    for base in cls.__mro__:
        if base is chainer.Link:
            break
        for name in ("__call__", "forward"):
            if name in base.__dict__:
                return name
    raise SignatureError(f"{cls.__name__} has neither forward nor __call__")


def _compile_class(cls: type, options: Dict[str, Any]) -> type:
    name = _entry_point(cls)
    method = getattr(cls, name)
    setattr(cls, name, method if isinstance(method, StaticCallable) else StaticFunction(method, **options))
    return cls


def _compile_link(link: chainer.Link, options: Dict[str, Any]) -> chainer.Link:
    """Give a Link a class of its own in which the entry point is compiled; copies and pickles keep it."""
    cls = type(link)
    name = _entry_point(cls)
    method = getattr(cls, name)
    if isinstance(method, StaticCallable):
        return link
    body = {name: StaticFunction(method, **options), "__module__": cls.__module__, "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__, "__reduce_ex__": _reduce_static_link, "_dy2static_options": options,
            "code": property(lambda self: getattr(type(self), name).code)}
    link.__class__ = type(cls)(cls.__name__, (cls,), body)
    return link


def _reduce_static_link(link: chainer.Link, protocol: int) -> Any:
    base = type(link).__mro__[1]
    return _restore_static_link, (base, type(link)._dy2static_options), dict(link.__dict__)


def _restore_static_link(base: type, options: Dict[str, Any]) -> chainer.Link:
    return _compile_link(base.__new__(base), options)


def set_code_level(level: Any = "last", diff: bool = False) -> None:
    """Log converted code: after the transformers of these names or numbers, ``"all"``, ``"last"``, or none (``""``).

    diff: log what each of them changed.  Functions that are converted already are not logged: see
    `StaticFunction.stages`.
    """
    levels: List[Any] = list(level) if isinstance(level, (list, tuple, set)) else [level]
    config.CODE_LEVEL.value = ",".join(str(x) for x in [*levels, *(["diff"] if diff and level != "" else [])])


def set_verbosity(level: int = 0) -> None:
    """How much is logged: 0 warnings only, 1 captures and misses, 2 conversions, 3 graphs, 4 generated code."""
    config.VERBOSITY.value = int(level)


def enable_to_static(enabled: bool = True) -> None:
    """Turn compilation off or on for the whole process: off, decorated functions run as they were written."""
    enable(enabled)

