"""What a compiled function is to its caller: `StaticFunction`, and what it tells of itself."""
from __future__ import annotations

import functools
import sys
import types
import weakref
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

import chainer

from .conversion import levels_of, source_of, stages_of
from .diagnostics.explain import Explanation
from .diagnostics.pages import function_page
from .dispatch.dispatcher import Dispatcher
from .dispatch.entry import Entry, left_by
from .errors import SignatureError
from .explorer.gathered import gathered
from .explorer.page import Page, page
from .options import DEFAULTS, Options
from .runtime.cache import Misses
from .runtime.profile import Profile
from .runtime.program import Program
from .runtime.staticness import StaticCallable

#: What the class that `to_static` gives a Link has its options in.
OPTIONS = "_dy2static_options"

#: What functions have, and what of it can be set.
_SETTABLE, _FIXED = ("__code__", "__defaults__", "__kwdefaults__"), ("__closure__", "__globals__")
#: What methods have of their functions.
_SHARED = (*_SETTABLE, *_FIXED, "__name__", "__qualname__")


def _of_function(name: str) -> Any:
    """An attribute of the Python function, which a call goes by when it is set."""
    def read(static: "StaticFunction") -> Any:
        return getattr(static.python_function, name)

    def write(static: "StaticFunction", value: Any) -> None:
        setattr(static.python_function, name, value)

    return property(read, write, doc=f"The ``{name}`` of the Python function.")


class StaticFunction(Entry, StaticCallable):
    """A compiled function.  It has one program for each kind of call; each is one differentiable op.

    Call it like the original function.  See `code`, `program`, `graph`, `explain`, `stats`, `cache_info`.
    places: the classes that hold it (weakly referenced), and its names there.
    """

    __name__: str
    __qualname__: str
    dispatcher: Dispatcher
    __code__, __defaults__, __kwdefaults__ = map(_of_function, _SETTABLE)
    __closure__, __globals__ = map(_of_function, _FIXED)

    def __init__(self, function: types.FunctionType, options: Options = DEFAULTS, dispatcher: Optional[Dispatcher] = None):
        functools.update_wrapper(self, function)
        self.python_function = function
        super().__init__(dispatcher or Dispatcher(function, options))
        self.places: List[Tuple["weakref.ref[type]", str]] = []

    def __get__(self, instance: Any, owner: Optional[type] = None) -> Any:
        return self if instance is None else BoundStaticFunction(self, instance)

    def __set_name__(self, owner: type, name: str) -> None:
        self.places.append((weakref.ref(owner), name))

    def __reduce__(self) -> Any:
        return self.__qualname__ if self._is_global() else (type(self), self._arguments())

    def _arguments(self) -> Tuple[Any, ...]:
        return self.python_function, self.dispatcher.options

    def _is_global(self) -> bool:
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        return found is self

    def __deepcopy__(self, memo: Any) -> "StaticFunction":
        return self

    def __repr__(self) -> str:
        return f"<static {self.__qualname__}>"

    def _repr_html_(self) -> str:
        return function_page(self.__qualname__, self.dispatcher.programs, self.cache_info()._asdict(),
                             list(self.dispatcher.fallback.refused.values()), self.dispatcher.in_parts.cuts)

    @property
    def code(self) -> str:
        """The transformed Python source of the function; of one that runs in parts, the Python between them and the source of each.

        Raises `SourceNotFoundError` where there is no source, and `UnsupportedSyntaxError` for what cannot be compiled.
        """
        code = source_of(self.python_function)  # type: ignore[arg-type]
        return self.dispatcher.in_parts.code if self.dispatcher.in_parts.is_used else code

    @property
    def parts(self) -> List["StaticFunction"]:
        """The compiled parts of the function, in the order of the source, if it runs in parts.

        `explain` shows the lines between them.
        """
        return [StaticFunction(part.function, self.dispatcher.options, part.compiled.dispatcher)  # type: ignore[arg-type, attr-defined]
                for part in self.dispatcher.in_parts.parts.all()]

    def stages(self, level: Any = "all", diff: bool = False) -> str:
        """Return the source after each transformer that ``level`` names (as in `set_code_level`).

        diff: return the changes of each transformer instead.

        Raises `SignatureError` for a level that names no transformer, and what `code` raises: `SourceNotFoundError`,
        `UnsupportedSyntaxError`.
        """
        levels = levels_of(level)
        wanted = [stage for stage in stages_of(self.python_function) if stage.is_wanted(levels)]  # type: ignore[arg-type]
        return "\n\n".join(f"# {stage.number} {stage.name}\n{stage.text(diff).strip()}" for stage in wanted) + "\n"

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The program that a call with these arguments runs (compiled if need be, not run).

        Raises `CaptureError` if such a call runs eagerly.
        """
        return self.dispatcher.program(args, kwargs)

    @property
    def graph(self) -> Any:
        """The graph of the program used last; None before the first."""
        program = self._cache.current
        return None if program is None else program.graph

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Return a report with one line per source line: whether it is in the graph, stays Python or calls the host, and why.

        The report is a string with attributes; see `Explanation`.
        """
        return self.dispatcher.explain(args, kwargs)

    def explore(self, *args: Any, **kwargs: Any) -> Page:
        """Return a page about a call with these arguments: source, stages, graph, generated code, memory and cache.

        The call is not run.  Notebooks show the page; ``save(path)`` writes it into a file.
        """
        return self.explored(args, kwargs)

    def explored(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], profile: Optional[Profile] = None) -> Page:
        """Return the page of `explore` with the times of a profile.

        Raises `UnsupportedSyntaxError` for what cannot be compiled between the lines of a function in parts.
        """
        explanation = self.dispatcher.explain(args, kwargs)
        programs = []
        if explanation.reason is None and not explanation.cuts:
            programs = [("", self.program(*args, **kwargs))]
        elif explanation.cuts:
            found = [(part.title, part.compiled.dispatcher.cache.current)      # type: ignore[attr-defined]
                     for part in self.dispatcher.in_parts.parts.all()]
            programs = [(name, program) for name, program in found if program is not None]
        return Page(page(gathered(self.python_function, explanation, programs, profile, self.explain_misses(),
                                  self.cache_info()._asdict())))

    def profile(self) -> Profile:
        """Measure the time of each operation of the calls in a ``with`` block: see `Profile`.  Print the profile for a table."""
        return self.dispatcher.profile()

    def stats(self) -> Dict[str, int]:
        """Counts, summed over the programs of the function and of its parts.

        captures: captures made.
        fallbacks: calls that ran eagerly as a whole.
        programs: programs in the cache.
        refused: signatures that run eagerly.
        as_python: calls that ran as Python because that was measured to be faster.
        segments: differentiable pieces, each of which is one FunctionNode of a call.
        nodes: nodes of the graphs.
        regions: nodes with a body, which are branches and loops.
        host_call: nodes that call Python at every call, once, in program order.
        opaque: nodes that call a function of Chainer, or yours, as a whole, because it has no lowering.
        numpy_call: nodes that call NumPy.
        checked_call: nodes that call NumPy and may raise, so that they run even if their results are not used.
        sized_call: nodes that call NumPy with a result whose size depends on values.
        stores: nodes that store a pending write, or make a Variable, before a host call can see it.
        native: nodes that run as native code.
        parts: compiled parts of a function that cannot be compiled as a whole.
        cuts: places where such a function is divided.
        peak_bytes: the largest number of bytes that one call of a program and its backward hold at once; see `Program.memory`.
        """
        return self.dispatcher.stats()

    def cache_info(self) -> "CacheInfo":
        """The numbers of programs, captures, fallbacks and misses, and the bytes that the programs take; see `CacheInfo`.

        >>> double = dy2static.to_static(lambda x: x + x)
        >>> double(np.ones(2)), double(np.zeros(2))
        (array([2., 2.]), array([0., 0.]))
        >>> double.cache_info()[:4]    # programs, limit, captures, fallbacks
        (1, 32, 1, 0)
        """
        cache = self.dispatcher.cache
        return CacheInfo(len(cache.programs), cache.limit, self.dispatcher.captures, self.dispatcher.fallback.count,
                         cache.missed, cache.evicted, cache.nbytes, cache.limit_bytes, self.dispatcher.budget.remaining)

    def explain_misses(self) -> Misses:
        """The last misses, in order, each with its reason and what was done.  Printed, one line for each."""
        return Misses(self.dispatcher.cache.misses)

    def clear_cache(self) -> None:
        """Drop all programs."""
        self.dispatcher.clear()


def entry_point(cls: type) -> str:
    """The method of a Link that a call runs first and that the user wrote."""
    for base in cls.__mro__:
        if base is chainer.Link:
            break
        for name in ("__call__", "forward"):
            if name in base.__dict__:
                return name
    raise SignatureError(f"{cls.__name__} has neither forward nor __call__",
                         hint="write `forward`, or decorate the method or the function that computes the loss")


class CacheInfo(NamedTuple):
    """What `StaticFunction.cache_info` gives.

    programs, limit: how many there are, and may be.  captures: how many were made.  fallbacks: calls that ran eagerly.
    misses: calls that no program could take (`StaticFunction.explain_misses` has the reasons).  evicted: programs that
    had to go.  bytes, limit_bytes: about how much memory the programs keep, and may keep together.  paused: so many more calls
    that find no program run eagerly before one is captured again, because captures have not paid; 0 mostly.
    """

    programs: int
    limit: int
    captures: int
    fallbacks: int
    misses: int = 0
    evicted: int = 0
    bytes: int = 0
    limit_bytes: Optional[int] = None
    paused: int = 0


class _OfMethod:
    """An attribute that the class has for itself, and each object from its function."""

    def __init__(self, name: str, of_class: Any):
        self.name, self.of_class = name, of_class

    def __get__(self, method: Any, owner: Optional[type] = None) -> Any:
        return self.of_class if method is None else getattr(method.static.python_function, self.name)


class BoundStaticFunction(StaticCallable):
    __slots__ = ("static", "instance", "__weakref__")

    __doc__ = _OfMethod("__doc__", "A `StaticFunction` as a method of an object.")  # type: ignore[assignment]
    __annotations__ = _OfMethod("__annotations__", {})  # type: ignore[assignment]

    def __init__(self, static: StaticFunction, instance: Any):
        self.static, self.instance = static, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.static(self.instance, *args, **kwargs)
        except Exception as error:
            left_by(error)
            raise

    @property
    def python_function(self) -> Callable[..., Any]:              # type: ignore[override]
        """The method as it was written."""
        return types.MethodType(self.static.python_function, self.instance)

    __wrapped__ = python_function                       # where `inspect` finds the parameters and the source

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

    def explore(self, *args: Any, **kwargs: Any) -> Page:
        """As `StaticFunction.explore`."""
        return self.static.explore(self.instance, *args, **kwargs)

    def explored(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], profile: Optional[Profile] = None) -> Page:
        """As `StaticFunction.explored`."""
        return self.static.explored((self.instance, *args), kwargs, profile)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _SHARED:
            raise AttributeError(name)
        return getattr(self.static, name)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, BoundStaticFunction) and (self.static, id(self.instance)) == (other.static, id(other.instance))

    def __hash__(self) -> int:
        return hash((self.static, id(self.instance)))

    def __repr__(self) -> str:
        return f"<bound static {self.static.__qualname__} of {self.instance!r}>"
