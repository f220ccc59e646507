"""The whole compiler in one place: a Python function and a call of it in, a program out."""
from __future__ import annotations

import contextlib
import traceback
from typing import Any, Callable, Iterator, Mapping, Optional, Set, Tuple

import chainer

from .backends.base import Backend
from .backends.host.backend import NUMPY
from .backends.registry import backend_for
from .capture.capture import Capture
from .capture.dynamic_shapes import FreeSizes
from .control_flow import staging
from .control_flow.raising import Left, raised_in
from .conversion import convert
from .diagnostics.changes import Varying
from .errors import Dy2StaticError, InternalError
from .heap.aborts import CaptureAborted
from .heap.locations import error_location
from .heap.wording import UNKNOWN
from .ir.size_needed import SizeNeeded
from .options import ON_NUMPY, Options
from .program.assemble import assemble
from .program.backward import Batch, Target, compile_backward
from .program.recipe import Parts, Recipe
from .record.builds import Const
from .record.outcome import Outcome
from .runtime import backprop, hooks, updating
from .runtime.collection import uncollected
from .runtime.program import Program
from .symbolic import texts
from .symbolic.patches import capturing


@uncollected()
def compile_call(function: Callable, args: Tuple, kwargs: Mapping[str, Any], varying: Set[Tuple] = frozenset(),
                 observed: Mapping[Tuple, Tuple] = {}, options: Options = ON_NUMPY,
                 free_sizes: Optional[FreeSizes] = None, backend: Backend = NUMPY) -> Program:
    """The program for one call: source → transformers → symbolic run → graph → passes → a function of a backend.

    options: those of `to_static`, but for the backend.  free_sizes: which sizes of the arrays are symbols.

    Nothing real is changed.  Raises `CaptureAborted` where the call cannot be put into a graph, and whatever the
    user's code raises.
    """
    def traced() -> Outcome:
        fixed = varying.fixed if isinstance(varying, Varying) else None
        return trace(function, args, kwargs, varying, observed, free_sizes, fixed, options)

    outcome = traced()
    if outcome.takes_gradients and isinstance(varying, Varying):
        outcome = _with_counts(outcome, traced, varying)
    return compile_outcome(outcome, options, backend)


def _with_counts(outcome: Outcome, traced: Callable[[], Outcome], varying: Varying) -> Outcome:
    """The outcome of a training step in which numbers that it replaces are inputs, since the next step finds other ones.

    traced: repeats the symbolic run.  If that stops with such inputs, the outcome is the one for the numbers of this call.
    """
    counted = [guard for guard, builds in outcome.replaced_numbers
               if not all(isinstance(built, Const) and built.value == guard.expected for built in builds)]
    if not counted:
        return outcome
    before = set(varying)
    varying.note(counted)
    try:
        return traced()
    except (CaptureAborted, SizeNeeded, Exception):     # of any kind: user code meets numbers that are not known
        varying.intersection_update(before)
        return outcome


@uncollected()
def compile_outcome(outcome: Outcome, options: Options = ON_NUMPY, backend: Backend = NUMPY) -> Program:
    """The program of what a symbolic run gave."""
    with ours(outcome):                                 # behind the symbolic run no code of the user's runs
        parts = Parts(outcome, options.rng, options.recompute_now)      # passes, and where the FunctionNodes are
        return build(Recipe(outcome, parts, Target(backend_for(outcome.device, backend))))


def build(recipe: Recipe) -> Program:
    """The program of a recipe."""
    with ours(recipe.outcome):
        return assemble(recipe, recipe.start().finish())


@contextlib.contextmanager
def ours(outcome: Outcome) -> Iterator[None]:
    """In its block no code of the user's runs: what goes wrong is our mistake, an `InternalError`, unless memory is short."""
    try:
        yield
    except (Dy2StaticError, MemoryError):
        raise
    except Exception as error:
        raise InternalError(f"the graph of {outcome.graph.name} cannot be compiled: {error!r}") from error


#: So often a call is captured because contents decide something that were not known to, or because a loop was tried.
_MOST_ATTEMPTS = 6


def trace(function: Callable, args: Tuple, kwargs: Mapping[str, Any], varying: Set[Tuple],
          observed: Mapping[Tuple, Tuple], free_sizes: Optional[FreeSizes] = None, fixed: Optional[Set[Tuple]] = None,
          options: Options = ON_NUMPY) -> Outcome:
    """The symbolic run of one call; again, where contents of small arrays decided something in one that stopped.

    A capture that tried to make a loop of the graph is repeated, too, with all iterations written out; and one that did not know
    how many rows a slice has, which are one or none, knowing that it is one, or that a number is a size of another array; and one
    that did not know which arrays are views, relying on how the caller's arrays lie in memory.

    fixed: what is known to decide (`capture/deciding_contents.py`), to which this call adds; None where contents are made up.
    """
    known, rolls, knows_rows, knows_layouts, sizes, device = frozenset(fixed or ()), True, False, False, {}, ""
    learned = varying if isinstance(varying, Varying) else Varying()
    for _ in range(_MOST_ATTEMPTS):
        capture = Capture(varying, observed, dict(chainer.config._local.__dict__), function.__qualname__, free_sizes, known, device)
        capture.drops_gradients, capture.is_inner, capture.rolls = options.grads == "drop", options.is_inner, rolls
        capture.knows_rows, capture.knows_layouts, capture.assumed_sizes.sizes = knows_rows, knows_layouts, sizes
        capture.heap.refused, capture.heap.grown = learned.refused, learned.grown
        try:
            outcome = _run(capture, function, args, kwargs)
        except (CaptureAborted, SizeNeeded, Exception) as error:    # of any kind: user code meets contents that are not known
            if (capture.leaves_rows or capture.leaves_layouts) and not getattr(error, "again", False):
                knows_rows |= capture.leaves_rows
                knows_layouts |= capture.leaves_layouts
                failed = error
                continue
            if isinstance(error, SizeNeeded):
                raise
            more_sizes = capture.assumed_sizes.with_more(getattr(error, "assumed", None))
            if more_sizes is not None:
                sizes, failed = more_sizes, error
                continue
            if capture.placement.found != device and not device:
                device, failed = capture.placement.found, error
                continue
            if capture.rolled:
                rolls, failed = False, error
                continue
            is_final = fixed is None or getattr(error, "again", False) or getattr(error, "final", False)
            more = frozenset() if is_final else capture.deciding.paths() - learned.loose
            if learned.note_sizes(capture.deciding.numbers_of(more)):
                failed = error
                continue
            if not more:
                raise
            known, failed = known | more, error
            continue
        if fixed is not None:
            fixed |= known
        return outcome
    raise failed


def _run(capture: Capture, function: Callable, args: Tuple, kwargs: Mapping[str, Any]) -> Outcome:
    try:
        with capturing(capture):
            return capture.run(function, args, kwargs)
    except CaptureAborted as stop:
        capture.functions.end()
        traceback.clear_frames(stop.__traceback__)      # arrays of objects among their values hide cycles from the collector
        stop.events = tuple(capture.events)
        stop.passes = capture.heap.has_new_flags()
        if capture.unknown.needed and capture.unknown.codes:
            stop.again, stop.observe = True, tuple(capture.unknown.codes)
        raise
    except BaseException as error:
        if isinstance(error, Exception) and capture.unknown.codes:
            raise CaptureAborted(UNKNOWN, error_location(error), again=True, observe=tuple(capture.unknown.codes)) from None
        if not isinstance(error, Exception) and raised_in(error) in capture.calls.staged_codes:
            raise Left(*error.args) from error          # whoever calls leaves the rest to the eager call
        raise
    finally:
        capture.functions.end()
        capture.heap.dispose()


def install() -> None:
    """Give the run time its doors to the compiler."""
    backprop.install()
    updating.install()
    hooks.convert = convert
    hooks.compile_backward = compile_backward
    hooks.backward_batch = Batch
    hooks.symbolic_types.update(staging.SYMBOLIC_TYPES)
    hooks.handlers.update({**staging.HANDLERS, **texts.HANDLERS})

