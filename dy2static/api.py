"""The public names: `to_static` and the switches."""
from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, AbstractSet, Any, Callable, Collection, Optional, Sequence, Tuple, Union, overload

import chainer
from chainer.training import Trainer, Updater

from . import config
from .backends.pipelines import pass_levels_of
from .conversion import levels_of
from .dispatch.all_functions import clear_all, enable
from .errors import SignatureError
from .lowering.registration import Function
from .options import Options, count, none_unknown, switch
from .runtime.staticness import IGNORED, NOT_STATIC, StaticCallable
from .saved.layer import TranslatedLayer
from .static_function import OPTIONS, BoundStaticFunction, StaticFunction, entry_point
from .training import compile_updater

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .typed import Class, Decorator, P, R, Same, Settings, TypedFunction

#: A module, or its name.
Module = Union[types.ModuleType, str]


@overload
def to_static(target: None = None, **options: Unpack[Settings]) -> Decorator: ...
@overload
def to_static(target: Class, **options: Unpack[Settings]) -> Class: ...         # type: ignore[overload-overlap]
@overload
def to_static(target: Same, **options: Unpack[Settings]) -> Same: ...           # type: ignore[overload-overlap]
@overload
def to_static(target: Callable[P, R], **options: Unpack[Settings]) -> TypedFunction[P, R]: ...
def to_static(target: Any = None, *, strict: Union[bool, str] = False, cache_limit: int = 32, cache_bytes: Optional[int] = None,
              check: int = 0, rng: str = "eager", backend: Optional[str] = None,
              recompute: Any = None, dynamic: bool = True, input_spec: Optional[Sequence[Any]] = (),
              grads: str = "keep", full_graph: bool = False, build_strategy: Any = None, **unknown: Any) -> Any:
    """Compile a function, a method, a Chain class, a Chain or an updater.

    target: a Python function or lambda; a bound method; a class derived from `chainer.Link` (its ``forward`` or
        ``__call__`` is decorated); a Link (the same object comes back, with that method compiled); or an updater (the
        same object, with ``update_core`` compiled).  Without a target, `to_static` returns a decorator with these options.
    strict: True raises `CaptureError` for the first line that cannot be compiled.  ``"parts"`` lets such lines run as Python
        between compiled parts, and raises only if nothing is left to compile.  False warns in both cases.
    cache_limit: the largest number of programs per function; the least recently used one is evicted first.
    cache_bytes: about how many bytes the programs may take together; checked when a program is added; at least one stays.
    check: run the first `check` calls of each program in eager mode, too; `DivergenceError` names the first line that differs.
    rng: where Chainer's functions (dropout and the like) draw random numbers from.  ``"eager"``: the same numbers as in eager
        mode.  ``"fast"``: other numbers, from a counter-based generator whose key each call draws from NumPy's global generator.
    backend: what programs run on.  ``"numpy"``: NumPy calls.  ``"c"``: native code, if there is a C compiler.  ``"auto"``: NumPy
        for the first ten calls of each program, then native code.  On CuPy arrays, native code is CUDA kernels, and CuPy is
        called in place of NumPy.  None: DY2STATIC_BACKEND, or "auto".
    recompute: what the backward recomputes instead of keeping (rematerialization).  ``"none"``: nothing.  ``"auto"``: what
        elementwise operations make of intermediate results, where that saves much memory.  ``"cheap"``: also what they make of
        inputs.  ``"sublinear"``: all but the values that split the forward into segments (Chen et al., 2016).  A number: keep so
        many bytes, with as little recomputation as possible.  With the last three, as with `F.forget`, the inputs of a call must
        not change before its backward.  None: DY2STATIC_RECOMPUTE, or "auto".
    dynamic: whether sizes that differ from call to call become free.  At the third size of an axis, one program is compiled for
        all sizes, if the function does not need the number.
    input_spec: an `InputSpec`, or an array or Variable of the same kind, for each positional argument except ``self``, in lists,
        tuples and dicts like the arguments; numbers and strings stand for themselves, None for anything.  None in a shape is free
        from the first call on.  A call with other arguments raises `SignatureError`.
    grads: ``"keep"`` leaves the gradients of updated Parameters in ``param.grad``.  ``"drop"`` clears those that a program both
        computes and updates, as `cleargrad` would, so that they need no arrays.  Eager calls always keep them.
    full_graph: Paddle's name for ``strict``.
    build_strategy: accepted as in Paddle, and ignored: all that such strategies turn on is always done.  The backend ``"CINN"`` is
        ``"c"``.

    Raises `SignatureError` for anything else.
    """
    none_unknown("to_static", unknown, to_static.__kwdefaults__ or ())
    backend = "c" if isinstance(backend, str) and backend == "CINN" else backend
    strict = switch("full_graph", full_graph) or strict
    return _compile(target, Options(strict, cache_limit, cache_bytes, check, rng, backend, recompute, dynamic,
                                    input_spec=input_spec or (), grads=grads))  # type: ignore[arg-type]


def _compile(target: Any, options: Options) -> Any:
    if target is None:
        return lambda actual: _compile(actual, options)
    if isinstance(target, (StaticCallable, TranslatedLayer)):
        return target
    if isinstance(target, types.FunctionType):
        return target if getattr(target, NOT_STATIC, False) else StaticFunction(target, options)
    if isinstance(target, types.MethodType) and isinstance(target.__func__, types.FunctionType):
        return BoundStaticFunction(StaticFunction(target.__func__, options), target.__self__)
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(_compile(target.__func__, options))
    if isinstance(target, functools.partial):
        return functools.partial(_compile(target.func, options), *target.args, **target.keywords)
    if isinstance(target, type) and issubclass(target, chainer.Link):
        return _compile_class(target, options)
    if isinstance(target, chainer.Link):
        return _compile_link(target, options)
    if isinstance(target, Updater):
        return compile_updater(target, options)
    if callable(target) and isinstance(getattr(type(target), "__call__", None), types.FunctionType):    # noqa: B004
        return BoundStaticFunction(StaticFunction(type(target).__call__, options), target)  # type: ignore[arg-type]
    raise SignatureError(f"to_static takes a function, a method, a Chain class, a Link or an updater, not {type(target).__name__}",
                         hint=next((hint for kind, hint in _INSTEAD if isinstance(target, kind)),
                                   "C functions and builtins have no source to compile" if callable(target) else None))


#: What to compile in place of objects of some types.
_INSTEAD: Tuple[Tuple[Any, str], ...] = (
    (chainer.Variable, "give it the function or Link that computes the Variable: to_static(model)(x)"),
    (property, "put `@to_static` below `@property`"),
    (functools.cached_property, "put `@to_static` below `@cached_property`"),
    (type(functools.lru_cache(len)), "put `@to_static` below the decorator that keeps results"),
    (functools.partialmethod, "give it the function: partialmethod(to_static(function), ...)"),
    (chainer.Optimizer, "give it the function that calls update, or the updater: to_static(StandardUpdater(iterator, optimizer))"),
    (Trainer, "give it the updater: to_static(trainer.updater)"),
    ((list, tuple, dict), "give it each of the functions and Links, one by one"),
    ((str, types.ModuleType), "give it the function or the Link itself"),
    (type, "classes other than Links have no function to compile: decorate their methods"))


@overload
def not_to_static(function: None = None) -> Callable[[Function], Function]: ...
@overload
def not_to_static(function: Function) -> Function: ...
def not_to_static(function: Any = None) -> Any:
    """Mark a function that must not be compiled: compiled code calls it as Python, at every call.  Returns the function.

    Without a function, returns a decorator: itself.

    >>> @not_to_static
    ... def log(loss):
    ...     print("loss", loss)

    Raises `SignatureError` for an object that cannot be marked, such as a function that is not written in Python.
    """
    if function is None:
        return not_to_static
    try:
        setattr(function, NOT_STATIC, True)
    except (AttributeError, TypeError):
        raise SignatureError(f"not_to_static marks functions of Python, not {function!r}",
                             hint="what is not written in Python runs on the host in any case") from None
    return function


def ignore_module(modules: Union[Module, Sequence[Module], AbstractSet[Module]]) -> None:
    """Do not compile the functions of these modules and their submodules, as if each were marked `not_to_static`.

    modules: a module or its name, or a list of these.

    Libraries that are never converted (NumPy, the standard library and others) are handled as before.  Functions of these
    modules that are decorated themselves are compiled when code outside the modules calls them.  All programs are dropped.

    Raises `SignatureError` for anything but modules and names.
    """
    given: Collection[Any] = modules if isinstance(modules, (list, tuple, set, frozenset)) else [modules]
    if not all(isinstance(module, (types.ModuleType, str)) for module in given):
        raise SignatureError("ignore_module takes modules, or their names")
    IGNORED.update(module if isinstance(module, str) else module.__name__ for module in given)
    clear_all()


def _compile_class(cls: type, options: Options) -> type:
    name = entry_point(cls)
    method = getattr(cls, name)
    static = method if isinstance(method, StaticCallable) else StaticFunction(method, options)
    setattr(cls, name, static)
    if isinstance(static, StaticFunction):
        static.__set_name__(cls, name)
    return cls


def _compile_link(link: chainer.Link, options: Options) -> chainer.Link:
    """Give a Link a class of its own in which the entry point is compiled; copies and pickles keep it."""
    cls = type(link)
    name = entry_point(cls)
    method = getattr(cls, name)
    if isinstance(method, StaticCallable):
        return link
    body = {name: StaticFunction(method, options), "__module__": cls.__module__, "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__, "__reduce_ex__": _reduce_static_link, OPTIONS: options,
            "code": property(lambda self: getattr(type(self), name).code)}
    link.__class__ = type(cls)(cls.__name__, (cls,), body)  # type: ignore[misc]
    return link


def _reduce_static_link(link: chainer.Link, protocol: int) -> Any:
    base = type(link).__mro__[1]
    return _restore_static_link, (base, getattr(type(link), OPTIONS)), dict(link.__dict__)


def _restore_static_link(base: type, options: Options) -> chainer.Link:
    return _compile_link(base.__new__(base), options)  # type: ignore[call-overload]


def set_code_level(level: Any = "last", diff: bool = False) -> None:
    """Log converted code after the transformers with these names or numbers, after ``"all"``, the ``"last"``, or none (``""``).

    diff: log what each of them changed.  Functions that are converted already are not logged: see
    `StaticFunction.stages`.

    Raises `SignatureError` for a level that names no transformer.
    """
    levels = levels_of(level)
    config.CODE_LEVEL.value = ",".join([*levels, *(["diff"] if switch("diff", diff) and levels else [])])


def set_pass_level(level: Any = "all") -> None:
    """Log graphs after the passes or pipelines with these names, after ``"all"`` passes, the ``"last"``, or none (``""``).

    level: a name or several; `pipelines` has them.  Functions that are compiled already are not logged.

    Raises `SignatureError` for a name that is neither a pass nor a pipeline.
    """
    config.PASS_LEVEL.value = ",".join(pass_levels_of(level))


def set_verbosity(level: int = 0) -> None:
    """Set the level of logging: 0 warnings, 1 also captures and misses, 2 conversions, 3 graphs, 4 generated code.

    Levels above 4 are as 4.  Raises `SignatureError` for anything but a whole number of at least 0.
    """
    config.VERBOSITY.value = count("level", level)


def enable_to_static(enabled: bool = True) -> None:
    """Turn compilation on or off for the whole process.  While it is off, compiled functions run in eager mode.

    Raises `SignatureError` for anything but True and False.
    """
    enable(switch("enabled", enabled))

