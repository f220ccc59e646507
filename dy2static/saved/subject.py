"""What is saved: a function and the object it is a method of, and the programs of its calls."""
from __future__ import annotations

import contextlib
import os
import types
from types import MappingProxyType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

import chainer
from chainer.utils.type_check import InvalidType

from .. import pipeline
from ..call_specs import (
    Form,
    Sharing,
    examples,
    fits_in_memory,
    forms,
    larger_sizes_of,
    multiples_of,
    normal,
    sharings,
    sizes_of,
    specs_of,
)
from ..capture.dynamic_shapes import FreeSizes, Restrictions, SizeHistory
from ..dispatch.dispatcher import positional
from ..errors import Dy2StaticError, Location, SaveError, SignatureError
from ..heap.aborts import CaptureAborted
from ..heap.global_state_guard import undisturbed
from ..heap.locations import error_location
from ..heap.reads import noting_reads, place_of
from ..heap.wording import in_users_words
from ..input_spec import Axis, InputSpec, check_count, free_axes
from ..ir.size_needed import SizeNeeded
from ..record.guards import EqualsMatch
from ..record.inputs import ObjectInput
from ..record.outcome import Outcome
from ..record.paths import Attribute
from ..static_function import BoundStaticFunction, StaticFunction, entry_point
from .layer import Missing, SavedFunction, SavedMethod, TranslatedLayer
from .stores import with_writes_last
from .successors import successor_of

#: Which sizes of free axes are left to calls to come.
Restricted = Callable[[Set[Axis]], Restrictions]

#: So many states of a model follow each other that are of other kinds: before the first call, after it, after the second.
_MOST_STATES = 4

#: So many ways to share sizes are tried again with arrays in another form, and in other modes.
_PROBABLE = 3

#: So often a capture is repeated because a number turned out to be counted up.
_MOST_TRIES = 4


class Subject:
    """What `save` was given.

    instance: the first argument of the function, if it is a method; else None.  arguments: names of the others.
    feeds: names that an ``input_spec`` gives to some of them.
    action: what is done with it, for messages.  is_in_one_form: one way of giving the arrays of a call is enough.
    small: the sizes below two for which calls are captured, too.  of_small: what these calls were captured as, and the least size.
    modes: ``chainer.config.train`` and ``enable_backprop`` of what is captured, in this order; training as the first must be there.
    Raises `SignatureError` for what has no function.
    """

    action, is_in_one_form = "saved", False
    small: Sequence[int] = (1, 0)
    modes: Sequence[Tuple[bool, bool]] = ((False, False), (False, True), (True, True), (True, False))

    def __init__(self, target: Any):
        self.instance: Any = None
        self.static: Optional[StaticFunction] = None
        self.feeds: Dict[int, str] = {}
        self.is_whole = isinstance(target, chainer.Link)        # and not one method of it
        self.of_small: Dict[Outcome, int] = {}
        self._sharings: List[Sharing] = []
        self._not_for_small: List[Missing] = []
        target = target.function_of(target.function) if isinstance(target, TranslatedLayer) else target
        self.saved: Optional[SavedFunction] = target.static if isinstance(target, SavedMethod) else None
        if self.saved is not None:
            self.instance, self.name, self.arguments = target.instance, self.saved.__name__, self.saved.arguments
            self.feeds = dict(enumerate(self.saved.feeds))
            return
        if isinstance(target, chainer.Link):
            if target._n_local_link_hooks:
                raise SaveError(f"{type(target).__name__} has link hooks, which run around what is saved",
                                hint="delete them, or save a Chain that has it as a child: hooks of children are saved")
            target = getattr(target, entry_point(type(target)))
        if isinstance(target, BoundStaticFunction):
            self.instance, self.static = target.instance, target.static
        elif isinstance(target, StaticFunction):
            self.static = target
        elif isinstance(target, types.MethodType):
            self.instance, target = target.__self__, target.__func__
            self.static = target if isinstance(target, StaticFunction) else None
        elif isinstance(getattr(type(target), "__call__", None), types.FunctionType):   # noqa: B004
            self.instance, target = target, type(target).__call__
        self.function: Any = target if self.static is None else self.static.python_function
        if not isinstance(self.function, types.FunctionType):
            kind = "a class" if isinstance(target, type) else type(target).__name__
            raise SignatureError(f"what is {self.action} is a function, a method or a Link, not {kind}", hint=_instead_of(target))
        self.name = self.function.__qualname__.rpartition("<locals>.")[2]
        self.arguments = positional(self.function)[self.instance is not None:]

    def methods(self) -> Iterator[Tuple[str, "Subject"]]:
        """The other methods of a Link that are compiled and were called, or have an ``input_spec``, by their names."""
        if isinstance(self.instance, TranslatedLayer) and self.is_whole:
            yield from ((name, Subject(getattr(self.instance, name))) for name in self.instance.methods)
        elif self.is_whole:
            main = entry_point(type(self.instance))
            for name in dict.fromkeys(name for base in type(self.instance).__mro__ for name in vars(base)):
                found = getattr(type(self.instance), name, None)
                if isinstance(found, StaticFunction) and name != main and not hasattr(chainer.ChainList, name):
                    if found.dispatcher.programs or found.dispatcher.options.input_spec:
                        yield name, Subject(BoundStaticFunction(found, self.instance))

    def outcomes(self, input_spec: Optional[Sequence[Any]]) -> Tuple[List[Outcome], List[Missing]]:
        """What its calls are captured as, and the modes in which they cannot be.

        Raises `SaveError` where they can be in none.
        """
        if self.saved is not None:
            if input_spec is not None:
                raise SaveError("a loaded model has the programs it was saved with, and no source to make others from")
            return list(self.saved.outcomes), list(self.saved.missing)
        found: List[Outcome] = []
        described: List[List[Any]] = []
        if input_spec is None and self.static is not None:
            found = [program.recipe.outcome for program in self.static.dispatcher.programs]
            input_spec = self.static.dispatcher.options.input_spec or None
            if input_spec is None:
                for outcome in found:
                    specs = specs_of(outcome, int(self.instance is not None))
                    if specs is not None and repr(specs) not in map(repr, described):
                        described.append(specs)
        if input_spec is not None:
            if type(input_spec) not in (list, tuple):
                raise SignatureError(f"input_spec is a list with an entry for each argument, not {type(input_spec).__name__}",
                                     hint="for one argument, too: save(model, path, [x])")
            check_count(input_spec, self.function)
            described = [[normal(spec) for spec in input_spec]]
            self.feeds = {k: spec.name for k, spec in enumerate(input_spec) if isinstance(spec, InputSpec) and spec.name}
        missing: List[Missing] = []
        for specs in described:
            made, failed = self._captured(specs)
            found += made
            missing += failed
        return found, missing

    def _captured(self, specs: Sequence[Any]) -> Tuple[List[Outcome], List[Missing]]:
        """Captures of calls as specified, in all modes.  Raises `SaveError` where there are none for inference."""
        found: List[Outcome] = []
        missing: List[Missing] = []
        errors: List[SaveError] = []
        self._sharings = self.sharings(specs)
        first = self.modes[0][0]
        for train, enable_backprop in self.modes:
            with chainer.using_config("train", train), chainer.using_config("enable_backprop", enable_backprop):
                made, error = self._in_this_mode(specs)
            found += made
            if not made and error is not None:
                missing.append(Missing(train, enable_backprop, error.reason))
                errors += [error] if train is first else []
        if errors and not any(outcome.train is first for outcome in found):
            raise errors[0]
        missing += self._not_for_small
        self._not_for_small = []
        return found, missing

    def _in_this_mode(self, specs: Sequence[Any]) -> Tuple[List[Outcome], Optional[SaveError]]:
        """Captures in each form that the arrays can be given in, or why there is none.

        That is what cannot be captured, rather than what the user's code raises for arrays in place of Variables (``x.array``).
        """
        found: List[Outcome] = []
        errors: List[SaveError] = []
        for form in forms(specs):
            made, error = self._in_this_form(specs, form)
            found += made
            errors += [] if error is None else [error]
            if made and self.is_in_one_form:
                break
        return found, next((error for error in errors if error.__cause__ is None), errors[0] if errors else None)

    def _in_this_form(self, specs: Sequence[Any], form: Form) -> Tuple[List[Outcome], Optional[SaveError]]:
        error: Optional[SaveError] = None
        for place, sharing in enumerate(self._sharings):
            sizes, *with_small = sizes_of(sharing, self.small)
            restricted = _in_no_way
            try:
                found = self._capture(specs, form, sharing, sizes, restricted)
            except SaveError as refused:
                error = error or refused
                if place >= _PROBABLE - 1 and not isinstance(error, TooSmall):
                    break                               # it is not the sizes
                is_probable = place < _PROBABLE and isinstance(refused, TooSmall)
                fewer = self._for_fewer(specs, form, sharing) if is_probable else None
                if fewer is None:
                    continue
                found, sizes, restricted = fewer
            for small in with_small:
                some = {group: small[group] if small[group] < 2 else size for group, size in sizes.items()}
                found += self._of_small(specs, form, sharing, some, restricted)
            self._sharings = [sharing, *(other for other in self._sharings[:_PROBABLE] if other != sharing)]
            return found, None
        self._sharings = self._sharings[:_PROBABLE]
        return [], error

    def _of_small(self, specs: Sequence[Any], form: Form, sharing: Sharing, sizes: Dict[int, int], restricted: Restricted) \
            -> List[Outcome]:
        """Captures of a call with small sizes; none, and a note of why, where the function does not take them."""
        least = min(sizes.values())
        try:
            found = self._capture(specs, form, sharing, sizes, restricted)
        except SaveError as refused:
            self._not_for_small.append(Missing(chainer.config.train, chainer.config.enable_backprop, refused.reason, least))
            return []
        self.of_small.update(dict.fromkeys(found, least))
        return found

    def _for_fewer(self, specs: Sequence[Any], form: Form, sharing: Sharing) \
            -> Optional[Tuple[List[Outcome], Dict[int, int], Restricted]]:
        """Captures for arrays that are not too small, or whose sizes are multiples of some number; None where there are none.

        As small as can be; with their sizes, and how those of calls to come are restricted.
        """
        ways = [*[(ways, _raised) for ways in larger_sizes_of(sharing)],
                *[(ways, _multiples) for ways in multiples_of(sharing)]]
        for every_size, restricted in ways:
            all_sizes = [sizes for sizes in every_size if fits_in_memory(specs, sharing, sizes)]
            if not all_sizes:
                continue
            try:
                self._capture(specs, form, sharing, all_sizes[-1], restricted)
            except SaveError:                           # if the largest will not do, none will
                continue
            for sizes in all_sizes:
                with contextlib.suppress(SaveError):
                    return self._capture(specs, form, sharing, sizes, restricted), sizes, restricted
        return None

    def sharings(self, specs: Sequence[Any]) -> List[Sharing]:
        """Which free sizes may be one, in the order in which that is tried."""
        return sharings(specs)

    def _capture(self, specs: Sequence[Any], form: Form, sharing: Sharing, sizes: Any, restricted: Restricted) -> List[Outcome]:
        """A call, and those that follow in other states of the model; no axis that a spec leaves free is fixed.

        Raises `SaveError`.
        """
        args = examples(specs, form, sharing, sizes)
        wanted = free_axes(specs, ("self", *self.arguments) if self.instance is not None else self.arguments)
        instance, found = self.instance, []
        while len(found) < _MOST_STATES:
            outcome, numbers = self._state(args if self.instance is None else (instance, *args), wanted, restricted(wanted))
            found.append(outcome)
            successor = None if self.instance is None else successor_of(with_writes_last(outcome), instance, numbers)
            if successor is None:
                break
            instance, wanted = successor.instance, wanted | successor.free
        return found

    def _state(self, args: Tuple, wanted: Set[Axis], restricted: Restrictions) -> Tuple[Outcome, Dict[str, int]]:
        """A call in one state of the model, and the sizes that its symbols had."""
        varying: Set[Tuple] = set()
        for _ in range(_MOST_TRIES):
            sizes = FreeSizes(SizeHistory(), restricted, False, wanted)
            try:
                outcome = self._trace(args, varying, sizes)
            except TooSmall as error:
                if not error.limits:
                    raise
                return self._state(args, wanted, restricted.joined(Restrictions(limits=error.limits)))
            counted = _counted(outcome) - varying
            if not counted:
                break
            varying |= counted
        return outcome, sizes.numbers

    def _trace(self, args: Tuple, varying: Set[Tuple], sizes: FreeSizes) -> Outcome:
        try:
            with noting_reads() as lines:
                outcome = undisturbed(lambda: pipeline.trace(self.function, args, {}, varying, {}, sizes))
        except CaptureAborted as stop:
            hint = "call it once, so that its parameters are there" if "not initialized" in stop.reason else stop.hint
            message = f"{self.name} cannot be {self.action}: {stop.reason}{self._other_cuts(stop)}"
            raise (TooSmall if sizes.free else SaveError)(message, stop.at, hint) from None
        except SizeNeeded as needed:
            if isinstance(needed.__cause__, InvalidType):
                raise self._raised(needed.__cause__, error_location(needed)) from needed.__cause__
            small = TooSmall(f"{self.name} cannot be {self.action} for any size: {needed}", error_location(needed),
                             "give this size in the input_spec")
            small.limits = sizes.new_limits(needed.limits)
            raise small from None
        except Dy2StaticError as error:
            raise SaveError(f"{self.name} cannot be {self.action}: {error.args[0]}", error.at, error.hint) from None
        except Exception as error:                      # of the user's code
            raise self._raised(error, error_location(error)) from error
        self._refuse_numbers_of_processes(outcome, lines)
        return outcome

    def _raised(self, error: Exception, at: Optional[Location]) -> SaveError:
        """What to say where code raises for arrays as they are described."""
        message = in_users_words(str(error))
        is_of_call = at is None and isinstance(error, TypeError)
        return SaveError(f"{self.name} raises {type(error).__name__} for what input_spec describes: {message}", at,
                         f"give a spec for each argument: {', '.join(self.arguments)}" if is_of_call else None)

    def _refuse_numbers_of_processes(self, outcome: Outcome, lines: Dict[Any, Optional[Location]]) -> None:
        """Raise `SaveError` for the rank and the like of a communicator: another process has other ones."""
        objects = {item.source.path() for item in outcome.inputs if isinstance(item, ObjectInput)}
        for guard in outcome.guards:
            if isinstance(guard, EqualsMatch) and isinstance(guard.source, Attribute) and guard.source.parent.path() in objects:
                raise SaveError(f"{self.name} cannot be {self.action}: {guard.source.describe()} belongs to the process that runs",
                                place_of(guard, lines), "read it outside of the function, and give it as an argument")

    def _other_cuts(self, stop: CaptureAborted) -> str:
        """The other lines that are known to run as Python, and that keep it from being saved, too."""
        cuts = () if self.static is None else self.static.dispatcher.in_parts.cuts
        others = [f"line {cut.at.line}: {cut.reason} ({cut.at})" for cut in cuts if not cut.at.same_line(stop.at)]
        return f"; nor can {', '.join(others)}" if others else ""


class TooSmall(SaveError):
    """What a function does depends on how large an array is: perhaps it is the same for all that are larger, or for multiples.

    limits: of axes, up to which it may be.
    """

    limits: Mapping[Axis, int] = MappingProxyType({})


def _instead_of(target: Any) -> Optional[str]:
    """What to give in place of something that has no function."""
    if isinstance(target, type) and issubclass(target, chainer.Link):
        return f"give an object of the class: {target.__name__}(...)"
    if isinstance(target, (str, os.PathLike)):
        return "it comes first: save(model, path, [x]), export.onnx(model, [x], path)"
    return "for a function of a library's, give a function of yours that calls it" if callable(target) else None


def _in_no_way(axes: Set[Axis]) -> Restrictions:
    return Restrictions()


def _raised(axes: Set[Axis]) -> Restrictions:
    return Restrictions(raised=axes)


def _multiples(axes: Set[Axis]) -> Restrictions:
    """Of sizes that are multiples, but for those of first axes."""
    return Restrictions(multiples={(path, axis) for path, axis in axes if axis > 0})


def _counted(outcome: Outcome) -> Set[Tuple]:
    """The paths of numbers that a call reads and writes: a program for each would be one too many."""
    written = {(write.reads.word, write.key, *write.container.path()) for end in outcome.ends for write in end.writes
               if write.reads is not None}
    return {guard.source.path() for guard in outcome.guards
            if isinstance(guard, EqualsMatch) and type(guard.expected) in (int, float) and guard.source.path() in written}
