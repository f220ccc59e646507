"""A model that was loaded: a Link whose call runs the programs of its file."""
from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NoReturn, Optional, Sequence, Tuple

import chainer

from .. import pipeline
from ..capture_context import CaptureContext
from ..dispatch.dispatcher import Dispatcher
from ..errors import InternalError, LoadError, SignatureError
from ..ir.dims import Dim
from ..options import DEFAULTS, Options
from ..program.guards import Guards, compile_diagnosis
from ..record.guards import ArrayMatch, Guard, VariableMatch
from ..record.outcome import Outcome
from ..record.paths import Argument
from ..runtime.ledger import Bill
from ..runtime.program import Program
from ..static_function import BoundStaticFunction, StaticFunction
from .inlining import inlined
from .paths import OUTSIDE

if TYPE_CHECKING:
    from chainer.link import Link as _Base  # by its home: users check with --strict
else:
    _Base = object


class Missing:
    """A mode that a model was saved without, and why.

    small: None, or the size of an axis, 0 or 1: the mode is there, but not for arrays with such an axis.
    """

    def __init__(self, train: bool, enable_backprop: bool, reason: str, small: Optional[int] = None):
        self.train, self.enable_backprop, self.reason, self.small = train, enable_backprop, reason, small

    def said(self) -> List[Any]:
        """As JSON."""
        return [self.train, self.enable_backprop, self.reason, *([] if self.small is None else [self.small])]

    def concerns(self, train: bool, enable_backprop: bool, given: Sequence[Any]) -> bool:
        """Whether it may be why there is no program for a call in this mode with these arguments."""
        return (self.train, self.enable_backprop) == (train, enable_backprop) and (
            self.small is None or any([self.small in getattr(array, "shape", ()) for array in given]))

    def __str__(self) -> str:
        return f"train={self.train}, enable_backprop={self.enable_backprop}: {self.reason}"


class SavedFunction(StaticFunction):
    """The function of a loaded model: its programs are those of the file, compiled when they are first needed.

    It takes the layer and the arguments.  arguments: the names of these.  feeds: as an ``input_spec`` named them.
    """

    def __init__(self, name: str, arguments: Sequence[str], outcomes: Sequence[Outcome], missing: Sequence[Missing],
                 options: Options = DEFAULTS, feeds: Sequence[str] = ()):
        super().__init__(_no_python, options, SavedDispatcher(outcomes, missing, options))  # type: ignore[arg-type]
        self.__qualname__ = self.__name__ = name
        self.arguments, self.outcomes, self.missing = tuple(arguments), tuple(outcomes), tuple(missing)
        self.feeds = tuple(feeds)

    @property
    def code(self) -> str:
        """The generated function of the program used last; "" before the first call.  The model's own source is not there."""
        program = self._cache.current
        return "" if program is None else program.code

    def stages(self, level: Any = "all", diff: bool = False) -> str:
        """An empty string: a loaded model has no transformed source."""
        return ""

    def placed(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """Arguments given by name, in their places."""
        placed, rest = list(args), dict(kwargs)
        for name in self.arguments[len(args):]:
            if name not in rest:
                break
            placed.append(rest.pop(name))
        return tuple(placed), rest

    def captured(self, capture: CaptureContext) -> Callable[..., Any]:
        """As `StaticCallable.captured`: its graph becomes part of the graph of the caller."""
        return lambda *args, **kwargs: inlined(capture, self.outcomes, args, kwargs)

    def __reduce__(self) -> Any:
        raise TypeError("a loaded model is not pickled: save it with dy2static.save")


def _no_python(*args: Any, **kwargs: Any) -> NoReturn:
    raise SignatureError("a loaded model has no Python code to run")


class SavedDispatcher(Dispatcher):
    """Finds the program of a call among those of a file, and compiles it the first time."""

    has_python = False

    def __init__(self, outcomes: Sequence[Outcome], missing: Sequence[Missing], options: Options):
        super().__init__(_no_python, options)           # type: ignore[arg-type]
        self._outcomes, self._missing = tuple(outcomes), tuple(missing)
        self.cache.park(False)

    def enable(self, enabled: bool) -> None:
        """Do nothing: there is no eager function to run."""

    def miss(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A call for which no program has been compiled yet."""
        if chainer.get_function_hooks():
            return self.as_one_function(args, kwargs)
        with self.lock:
            program = self._compile(args, kwargs, "")
        return self.cache.call_of(program)(args, kwargs)

    def _compile(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any], why: str, bill: Optional[Bill] = None) -> Program:
        _forget_removed_hooks(args[0])
        outcome = self._fitting(args, kwargs)
        try:
            program = self._entered(pipeline.compile_outcome(outcome, self.options, self.tiers.first))
        except InternalError as error:                  # what holds of every capture may not of what a file says
            raise LoadError(f"a program of the loaded model cannot be compiled: {error.args[0]}") from error
        self.captures += 1
        self.cache.put(program, self._call_of(program))
        return program

    def _fitting(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Outcome:
        """What was captured of such a call.  Raises `SignatureError` where nothing was."""
        entries = dict(chainer.config._local.__dict__)
        wanted = bool(chainer.config.train), bool(chainer.config.enable_backprop)
        misfits: List[Tuple[Outcome, List[int]]] = []
        for outcome in self._outcomes:
            if (outcome.train, outcome.enable_backprop) != wanted:
                continue
            now = dataclasses.replace(outcome, config=entries)
            failed = list(compile_diagnosis(Guards(now))(args, kwargs))
            if not failed:
                return now
            misfits.append((now, failed))
        raise self._no_program(misfits, wanted, [*args[1:], *kwargs.values()])

    def _no_program(self, misfits: Sequence[Tuple[Outcome, List[int]]], wanted: Tuple[bool, bool],
                    given: Sequence[Any]) -> SignatureError:
        absent = [item.reason for item in self._missing if item.concerns(*wanted, given)]
        if not misfits:
            return SignatureError(f"the model was saved without train={wanted[0]}, enable_backprop={wanted[1]}: "
                                  + "; ".join(absent or ["it was not called like this before it was saved"]))
        outcome, failed = max(misfits, key=lambda pair: (-1 not in pair[1], -len(pair[1]), max(pair[1])))
        reasons = [outcome.guards[k].describe() + _shared_sizes(outcome.guards, k) for k in failed if k >= 0]
        call = ", ".join(map(_kind, given)) or "no arguments"
        if not reasons:
            return SignatureError(f"no program of the loaded model takes this call with {call}: it was saved for another number or "
                                  "kind of arguments", hint="give the arguments of the model, by position or by their names there")
        also = f"; not saved: {'; '.join(absent)}" if absent else ""
        is_empty = any([0 in getattr(array, "shape", ()) for array in given])
        return SignatureError(f"no program of the loaded model takes this call with {call}; "
                              f"the nearest wants {'; '.join(reasons[:3])}{also}",
                              hint="leave the call out for arrays without elements" if is_empty else
                              "give arrays of the dtypes that it was saved for: `x.astype(...)`"
                              if _has_other_dtypes(outcome, failed, given) else
                              "save the model with an input_spec in which sizes that differ are None")

    def explain(self, args: Tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """There is no source to explain."""
        raise SignatureError("a loaded model has no source that could be explained", hint="print its `program(...).graph`")


def _has_other_dtypes(outcome: Outcome, failed: Sequence[int], given: Sequence[Any]) -> bool:
    """Whether an argument is an array of another dtype than a program takes."""
    guards = [outcome.guards[k] for k in failed if k >= 0]
    return any([getattr(given[guard.source.key - 1], "dtype", guard.dtype) != guard.dtype for guard in guards
                if isinstance(guard, (ArrayMatch, VariableMatch)) and isinstance(guard.source, Argument)])


def _shared_sizes(guards: Sequence[Guard], place: int) -> str:
    """Which sizes of an array are those of arrays before it."""
    known: Dict[Dim, str] = {}
    for guard in guards[:place + 1]:
        shape = guard.shape if isinstance(guard, (ArrayMatch, VariableMatch)) else ()
        whose = "" if guard.source is None else guard.source.describe()
        own = {size: f"axis {axis} of {whose}" for axis, size in enumerate(shape) if isinstance(size, Dim)}
        if guard is guards[place]:
            return "".join([f", where {here} has the size of {known[size]}" for size, here in own.items() if size in known])
        known = {**own, **known}
    return ""


def _kind(given: Any) -> str:
    """What an argument is, as guards say it: ``ndarray (2, 4) float64``."""
    is_array = isinstance(given, (chainer.Variable, *chainer.get_array_types()))
    return " ".join([type(given).__name__, *[str(getattr(given, name)) for name in ("shape", "dtype") if is_array]])


def _forget_removed_hooks(layer: chainer.Link) -> None:
    """Programs were captured where no Link of the model had hooks: one whose last hook was deleted has none, either."""
    for link in layer.links():
        if "_local_link_hooks" in link.__dict__ and not link.__dict__["_local_link_hooks"]:
            del link.__dict__["_local_link_hooks"]


class TranslatedLayer(_Base):
    """A loaded model: a `chainer.Link` with the parameters and programs of the saved model.

    Call it like the saved model.  `program`, `graph`, `code`, `profile` and the like are those of `function`.
    Its parameters keep their names (``namedparams()``), so serializers and optimizers work with it.
    """

    function: SavedFunction
    methods: Mapping[str, SavedFunction] = {}
    mode: Optional[bool] = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for these arguments.

        Raises `SignatureError` if the file has no such program, and the exceptions of the saved function.
        """
        if kwargs:
            args, kwargs = self.function.placed(args, kwargs)
        if self.mode is None:
            return self.function(self, *args, **kwargs)
        with chainer.using_config("train", self.mode):
            return self.function(self, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__.get("methods", {}).get(name)
        if found is None:
            there = ", ".join(self.__dict__.get("methods", {}))
            raise AttributeError(f"the loaded model has no attribute {name!r}; " + (
                f"methods that were saved are {there}" if there else "no other method was saved with it"))
        return self.function_of(found)

    def function_of(self, function: SavedFunction) -> "SavedMethod":
        """Return one of the saved functions, as a method of this model."""
        return SavedMethod(function, self)

    def train(self) -> None:
        """Run later calls with ``chainer.config.train`` True; without `train` and `eval`, the current value decides."""
        self.__dict__["mode"] = True

    def eval(self) -> None:
        """Run later calls with ``chainer.config.train`` False."""
        self.__dict__["mode"] = False

    def in_mode(self) -> Any:
        """Return a context manager that sets ``chainer.config.train`` as `train` and `eval` said."""
        return contextlib.nullcontext() if self.mode is None else chainer.using_config("train", self.mode)

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """The `Program` that runs for these arguments."""
        return self.function_of(self.function).program(*args, **kwargs)

    @property
    def code(self) -> str:
        """As `SavedFunction.code`."""
        return self.function.code  # type: ignore[no-any-return]

    @property
    def graph(self) -> Any:
        """The graph of the program used last; None before the first call."""
        return self.function.graph


class SavedMethod(BoundStaticFunction):
    """A function of a loaded model with the layer that it belongs to."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self.static.placed(args, kwargs)  # type: ignore[attr-defined]
        with self.instance.in_mode():
            return self.static(self.instance, *args, **kwargs)

    def captured(self, capture: CaptureContext) -> Callable[..., Any]:
        """As `SavedFunction.captured`."""
        def call(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = self.static.placed(args, kwargs)  # type: ignore[attr-defined]
            with self.instance.in_mode():
                return self.static.captured(capture)(self.instance, *args, **kwargs)
        return call

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """As `StaticFunction.program`."""
        args, kwargs = self.static.placed(args, kwargs)  # type: ignore[attr-defined]
        return self.static.program(self.instance, *args, **kwargs)


class TranslatedChain(TranslatedLayer, chainer.Chain):
    """A loaded Chain, Link, function or method."""


class TranslatedChainList(TranslatedLayer, chainer.ChainList):
    """A loaded ChainList or Sequential."""


def make_layer(base: type) -> Any:
    """A layer without anything in it, of the kind of a Link: `chainer.Chain` or `chainer.ChainList`."""
    layer = TranslatedChainList() if base is chainer.ChainList else TranslatedChain()
    layer.__dict__[OUTSIDE] = []
    return layer


