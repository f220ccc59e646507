"""Training steps that are compiled as a whole: `StaticUpdater`, and what `to_static` makes of an updater."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Tuple

from chainer.dataset import convert
from chainer.training.updaters import StandardUpdater

from .diagnostics.explain import Explanation
from .options import DEFAULTS, Options
from .runtime.program import Program
from .runtime.staticness import StaticCallable
from .static_function import OPTIONS, StaticFunction

if TYPE_CHECKING:
    from .capture_context import CaptureContext


def _step(optimizer: Any, loss_func: Any, /, *args: Any, **kwargs: Any) -> None:
    optimizer.update(loss_func, *args, **kwargs)


_step.__name__, _step.__qualname__ = "update_core", "StaticUpdater.update_core"     # as warnings name it


class StandardStep(StaticFunction):
    """``update_core`` of a `StaticUpdater`: Python fetches and converts a batch; the rest of the step is one program.

    `explain` and `program` take the converted batch: ``updater.update_core.explain(x, t)``.
    """

    def __init__(self, options: Options = DEFAULTS):
        super().__init__(_step, options)                # type: ignore[arg-type]

    def __call__(self, updater: Any) -> None:
        iterator = updater._iterators["main"]
        batch = iterator.next()
        arrays = convert._call_converter(updater.converter, batch, updater.input_device)
        optimizer = updater._optimizers["main"]
        loss_func = updater.loss_func or optimizer.target
        if isinstance(arrays, tuple):
            super().__call__(optimizer, loss_func, *arrays)
        elif isinstance(arrays, dict):
            super().__call__(optimizer, loss_func, **arrays)
        else:
            super().__call__(optimizer, loss_func, arrays)
        if updater.auto_new_epoch and iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)

    def captured(self, capture: CaptureContext) -> Callable[..., Any]:
        """What a capture runs that meets a call: the step itself, whose data it cannot fetch."""
        return capture.callee(StandardUpdater.update_core)

    def _arguments(self) -> Tuple[Any, ...]:
        return (self.dispatcher.options,)

    def program(self, updater: Any, *args: Any, **kwargs: Any) -> Program:
        """As `StaticFunction.program`, for the arrays of a batch."""
        return super().program(*_given(updater), *args, **kwargs)

    def explain(self, updater: Any, *args: Any, **kwargs: Any) -> Explanation:
        """As `StaticFunction.explain`, for the arrays of a batch."""
        return super().explain(*_given(updater), *args, **kwargs)


def _given(updater: Any) -> List[Any]:
    optimizer = updater.get_optimizer("main")
    return [optimizer, updater.loss_func or optimizer.target]


class StaticUpdater(StandardUpdater):
    """Replaces ``chainer.training.updaters.StandardUpdater``, with the same arguments: each step is one compiled program.

    Python fetches the batch and converts it; the loss, its gradients, the update and what is reported are compiled.  The
    ``update_core`` of a subclass is compiled between the lines that get its data.  ``updater.update_core`` is a
    `StaticFunction`, which has `StaticFunction.stats`.  For options, give an updater to `to_static`.
    """

    update_core: Any = StandardStep()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("update_core")
        if own is not None and not isinstance(own, StaticCallable):
            cls.update_core = _compiled(own, DEFAULTS)


def _compiled(update_core: Callable[..., Any], options: Options) -> StaticFunction:
    """A step that is written in Python, compiled between the lines that get its data."""
    static = StaticFunction(update_core, options)       # type: ignore[arg-type]
    static.dispatcher.in_parts.gets_data = True
    return static


def compile_updater(updater: Any, options: Options) -> Any:
    """Give an updater a class of its own in which the step is compiled; copies and pickles keep it."""
    cls = type(updater)
    update_core = cls.update_core
    if isinstance(update_core, StaticCallable):
        return updater
    is_standard = update_core is StandardUpdater.update_core
    body: Dict[str, Any] = {
        "update_core": StandardStep(options) if is_standard else _compiled(update_core, options),
        "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__, "__reduce_ex__": _reduce,
        OPTIONS: options}
    bases = (cls, StaticUpdater) if issubclass(cls, StandardUpdater) else (cls,)
    if cls is StandardUpdater:
        bases = (StaticUpdater,)
    updater.__class__ = type(cls)(cls.__name__, bases, body)  # type: ignore[misc]
    return updater


def _reduce(updater: Any, protocol: int) -> Any:
    cls = type(updater)
    base = StandardUpdater if cls.__bases__ == (StaticUpdater,) else cls.__bases__[0]
    return _restore, (base, getattr(cls, OPTIONS)), dict(updater.__dict__)


def _restore(base: type, options: Options) -> Any:
    return compile_updater(base.__new__(base), options)  # type: ignore[call-overload]
