"""What type checkers see of `to_static`: compiled functions with the signatures of what they were made of.

There is no such module at run time: Python 3.9 has no `ParamSpec`, and a cached call needs no more than `StaticFunction` has.
"""
import functools
from typing import Any, Callable, Generic, Literal, Optional, Sequence, Type, TypedDict, TypeVar, Union, overload

from chainer.link import Link
from chainer.training.updater import Updater  # type: ignore[attr-defined]
from typing_extensions import Concatenate, ParamSpec

from .runtime.staticness import StaticCallable
from .saved.layer import TranslatedLayer
from .static_function import BoundStaticFunction, StaticFunction

P = ParamSpec("P")
Rest = ParamSpec("Rest")
R = TypeVar("R", covariant=True)
Owner = TypeVar("Owner", contravariant=True)
Method = TypeVar("Method", bound=TypedFunction[..., Any])
#: The class comes back.
Class = TypeVar("Class", bound=Type[Link])
#: What comes back as an object of the same class.
Same = TypeVar("Same", bound=Union[Link, Updater, StaticCallable, TranslatedLayer, staticmethod[..., Any],
                                   classmethod[Any, ..., Any], functools.partial[Any]])

class Settings(TypedDict, total=False):
    """The options of `to_static`."""

    strict: Union[bool, Literal["parts"]]
    cache_limit: int
    cache_bytes: Optional[int]
    check: int
    rng: Literal["eager", "fast"]
    backend: Optional[Literal["numpy", "c", "auto", "CINN"]]
    recompute: Union[Literal["none", "auto", "cheap", "sublinear"], int, None]
    dynamic: bool
    input_spec: Optional[Sequence[Any]]
    grads: Literal["keep", "drop"]
    full_graph: bool
    build_strategy: Any

class TypedFunction(StaticFunction, Generic[P, R]):
    """A `StaticFunction` that is called like the function of which it was made."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __get__(self: Method, instance: None, owner: Optional[type] = None) -> Method: ...
    @overload
    def __get__(self: TypedFunction[Concatenate[Owner, Rest], R], instance: Owner,
                owner: Optional[type] = None) -> TypedMethod[Rest, R]: ...

class TypedMethod(BoundStaticFunction, Generic[P, R]):
    """A `TypedFunction` without its first argument: the object is known."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

class Decorator:
    """`to_static` with options, and without a target."""

    @overload
    def __call__(self, target: Class) -> Class: ...             # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: Same) -> Same: ...               # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: Callable[P, R]) -> TypedFunction[P, R]: ...
