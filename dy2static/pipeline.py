"""The whole compiler in one place: a Python function and a call of it in, a program out."""
from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, Mapping, Optional, Set, Tuple

import chainer

from . import passes
from .capture.capture import Capture
from .capture.free_sizes import FreeSizes
from .codegen import hotpath
from .codegen.assemble import assemble
from .codegen.backends import Emission
from .codegen.differentiate import Differentiation, compile_again, compile_backward, differentiate
from .conversion import convert
from .errors import Dy2StaticError, InternalError
from .options import ON_NUMPY, Options
from .runtime import backprop, hooks, updating
from .runtime.collection import uncollected
from .runtime.profile import Profile
from .runtime.program import Program
from .runtime.segment import Segment
from .runtime.warming import Becoming, Steps, finished
from .staging import staging
from .symbolic import texts
from .symbolic.patches import capturing
from .world.aborts import CaptureAborted
from .world.locations import error_location
from .world.outcome import Outcome


@uncollected()
def compile_call(function: Callable, args: Tuple, kwargs: Mapping[str, Any], varying: Set[Tuple] = frozenset(),
                 observed: Mapping[Tuple, Tuple] = {}, options: Options = ON_NUMPY,
                 free_sizes: Optional[FreeSizes] = None) -> Program:
    """The program for one call: source → transformers → symbolic run → graph → passes → generated Python, and C.

    free_sizes: which sizes of the arrays are symbols.
    options: those of `to_static`; with the backend "auto" the program is one of NumPy calls that can be made again as native
        code: `Program.hot`.

    Nothing real is changed.  Raises `CaptureAborted` where the call cannot be put into a graph, and whatever the
    user's code raises.
    """
    return compile_outcome(trace(function, args, kwargs, varying, observed, free_sizes), options)


@uncollected()
def compile_outcome(outcome: Outcome, options: Options = ON_NUMPY) -> Program:
    """The program of what a symbolic run gave."""
    with _ours(outcome):                                # behind the symbolic run no code of the user's runs
        graph = passes.run(passes.CLEAN, outcome.graph)
        graph = passes.run((passes.fast_random,), graph) if options.rng == "fast" else graph
        nodes = differentiate(outcome, graph, options.recompute_now)    # one FunctionNode, or a few where there are cuts
        program = _program(outcome, nodes, options.backend_now == "c")
        if options.backend_now == "auto":
            program.hot = Becoming(functools.partial(_native_steps, outcome, nodes))
            program.with_clocks = functools.partial(_program, outcome, nodes, True)
        return program


_UNKNOWN = "what a call gives that is not compiled, or an object of another library, enters a computation"


def _program(outcome: Outcome, nodes: Differentiation, native: bool, profile: Optional[Profile] = None) -> Program:
    """The program of a graph, of NumPy calls or with native code.  profile: whose clocks are in it."""
    return finished(_steps(outcome, nodes, native, profile))


def _steps(outcome: Outcome, nodes: Differentiation, native: bool, profile: Optional[Profile] = None) -> Steps[Program]:
    make = functools.partial(Emission, nodes.graph, name="forward", escaping=set(nodes.graph.outputs), saved=nodes.saved)
    if native:
        hotpath.prepare()
    with _ours(outcome):
        emission = make(native=native, clock=None if profile is None else profile.clock("forward"))
        yield emission
        forward = emission.finish()
        program = assemble(outcome, nodes, forward)
        if native:
            hotpath.note(program.call)
        for segment in program.segments:
            segment.plan = segment.plan.made_for(native, profile)
        program.with_clocks = functools.partial(_program, outcome, nodes, native)
        program.readable = (lambda: make(native=False).finish().source) if forward.native_code else None
        return program


def _native_steps(outcome: Outcome, nodes: Differentiation, before: Program) -> Steps[Program]:
    """The program as native code, with all the backward programs that it has had so far."""
    with _ours(outcome):
        making = _steps(outcome, nodes, True)
        forward = next(making)
        native = [Segment(segment.name, segment.plan.made_for(True, None)) for segment in before.segments]
        yield from compile_again(list(zip(before.segments, native)))
        yield forward
        program = finished(making)
        for segment, made in zip(program.segments, native):
            segment.backward.update(made.backward)
        return program


@contextlib.contextmanager
def _ours(outcome: Outcome) -> Iterator[None]:
    """No code of the user's runs here: what goes wrong is our mistake."""
    try:
        yield
    except Dy2StaticError:
        raise
    except Exception as error:
        raise InternalError(f"the graph of {outcome.graph.name} cannot be compiled: {error!r}") from error


def trace(function: Callable, args: Tuple, kwargs: Mapping[str, Any], varying: Set[Tuple],
          observed: Mapping[Tuple, Tuple], free_sizes: Optional[FreeSizes] = None) -> Outcome:
    """The symbolic run of one call."""
    capture = Capture(varying, observed, dict(chainer.config._local.__dict__), function.__qualname__, free_sizes)
    try:
        with capturing(capture):
            return capture.run(function, args, kwargs)
    except CaptureAborted as stop:
        stop.events = tuple(capture.events)
        if capture.unknown.needed and capture.unknown.codes:
            stop.again, stop.observe = True, tuple(capture.unknown.codes)
        raise
    except Exception as error:
        if capture.unknown.codes:
            raise CaptureAborted(_UNKNOWN, error_location(error), again=True, observe=tuple(capture.unknown.codes)) from None
        raise
    finally:
        capture.world.dispose()


def install() -> None:
    """Give the run time its doors to the compiler."""
    backprop.install()
    updating.install()
    hooks.convert = convert
    hooks.compile_backward = compile_backward
    hooks.symbolic_types.update(staging.SYMBOLIC_TYPES)
    hooks.handlers.update({**staging.HANDLERS, **texts.HANDLERS})

