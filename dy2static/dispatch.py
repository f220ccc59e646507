"""From a call to its program: the cache of one function, and what happens on a miss."""
from __future__ import annotations

import contextlib
import functools
import logging
import threading
import types
import warnings
import weakref
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

import chainer

from . import config, pipeline
from .capture.free_sizes import FreeSizes, SizeHistory
from .changes import Varying, changes_of, storm_message
from .check.checked import CheckedCall
from .errors import (
    CaptureError,
    Dy2StaticError,
    FallbackWarning,
    InternalError,
    Location,
    SourceNotFoundError,
    UnsupportedSyntaxError,
)
from .explain import Coverage, Explanation, explanation, stopped_by
from .input_spec import Axis, check_arguments, free_axes
from .ir.dims import SizeNeeded
from .lowering.opaque import relied_on
from .options import DEFAULTS, Options
from .runtime.budget import CaptureBudget, Verdict
from .runtime.cache import Cache, Miss, Recent, nearest, reason_of
from .runtime.function_hooks import only_time, seen_as_one_function
from .runtime.hooks import stage
from .runtime.profile import Profile, TimedCall
from .runtime.program import MISS, Program
from .runtime.signatures import signature_of
from .runtime.warming import WarmingCall
from .symbolic.observe import observing
from .world.aborts import CaptureAborted
from .world.debuggers import is_debugging
from .world.locations import caller_depth, definition, error_location
from .world.reads import noting_reads
from .world.untouched import untouched_globals
from .world.wording import hint_for, in_users_words

log = logging.getLogger("dy2static")

#: So often a capture may be put off to the next call (parameters not initialised, results not seen yet).
_MOST_TRIES = 4

#: So often a call looks for a program again because another thread changes what the guards look at.
_MOST_CHANGES = 16

#: All there are, to be told when compilation is turned off or on.
_dispatchers: "weakref.WeakSet[Dispatcher]" = weakref.WeakSet()


class Dispatcher:
    """The programs of one function, and the signatures that run eagerly."""

    def __init__(self, function: types.FunctionType, options: Options = DEFAULTS):
        self.function, self.options = function, options
        self.cache = Cache(options.cache_limit, options.cache_bytes)
        self.programs, self.calls = self.cache.programs, self.cache.calls
        self.cache.park(not config.ENABLED.value)
        self.varying = Varying()
        self.observed: Dict[Tuple, Tuple] = Recent()
        self.refused: Dict[Tuple, str] = {}
        self.postponed: Dict[Tuple, int] = Recent()
        self.sizes = SizeHistory()
        self._wanted = free_axes(options.input_spec, positional(function))
        self.captures = self.fallbacks = 0
        self.budget = CaptureBudget(self.cache)
        self._profile: Optional[Profile] = None
        self._errors: Dict[Tuple, Tuple] = {}
        self._warned: Set[str] = set()
        self._told = False                              # that captures do not pay
        self._lock = threading.RLock()
        _dispatchers.add(self)

    def miss(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """A call for which no guard held: inlined, captured, or run eagerly."""
        capture = stage.capture
        if capture is not None:
            return capture.callee(self.function)(*args, **kwargs)
        if not config.ENABLED.value or is_debugging():
            return self.function(*args, **kwargs)
        if chainer.get_function_hooks():
            return self._hooked(args, kwargs)
        signature = signature_of(args, kwargs) if self.refused else None
        if signature in self.refused:
            if self.options.strict and signature in self._errors:
                raise self._error(*self._errors[signature])
            self.cache.missed += 1
            return self._run_eagerly(args, kwargs)
        verdict = self.budget.ask()
        if verdict is Verdict.EAGER:
            self.cache.missed += 1
            return self._run_eagerly(args, kwargs)
        signature = signature or signature_of(args, kwargs)
        if verdict is Verdict.CAPTURE:
            return self._capture_and_run(signature, args, kwargs)
        if verdict is Verdict.TRIAL:
            return self._try_again(signature, args, kwargs)
        self.cache.note(Miss("", self._look_again(args, kwargs)[1], "runs eagerly, as do the next: captures do not pay"))
        return self._run_eagerly(args, kwargs)

    def _run_eagerly(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        self.fallbacks += 1
        return self.function(*args, **kwargs)

    def _try_again(self, signature: Tuple, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """Captured for once, after many calls that ran eagerly; the first time, a warning tells what keeps changing."""
        told = self._told or not self.budget.is_hopeless
        self._told |= not told
        fitting, failed = (None, []) if told else nearest(self._misfits(args, kwargs))
        captures = self.budget.captures
        try:
            with contextlib.nullcontext({}) if told else noting_reads() as places:
                return self._capture_and_run(signature, args, kwargs)
        finally:
            if not told:
                changes = changes_of(self.function, fitting, failed, places)
                message = storm_message(self.function.__qualname__, captures, self.budget.useful, changes, self.cache.evicted)
                warnings.warn(message, FallbackWarning, stacklevel=caller_depth())

    def _hooked(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """Timing hooks see the compiled call as one function; any other function hook sees the eager run."""
        if not only_time():
            return self._fall_back(args, kwargs, "function hooks are registered")
        return self.as_one_function(args, kwargs)

    def as_one_function(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """The compiled call, which the registered function hooks see as one function."""
        with seen_as_one_function(self.function.__qualname__, args):
            return self.run(args, kwargs)

    def run(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """One call: by the first program whose guards hold."""
        for call in self.calls:
            result = call(args, kwargs)
            if result is not MISS:
                if call is not self.cache.last:
                    self.cache.used(call)
                return result
        return self.miss(args, kwargs)

    def _capture_and_run(self, signature: Tuple, args: Tuple, kwargs: Mapping[str, Any], tries: int = 0) -> Any:
        # What is raised below must not show the symbolic run as its context: hence not inside the except blocks.
        reason = ""
        try:
            with self._lock:
                found, reason = self._look_again(args, kwargs)
                # another thread made it, or a list changed while this one looked
                known = found is not None and (tries == 0 or _was_changed(tries))
                program = found if known else self._compile(args, kwargs, reason)
                if not known:
                    self._charge(program, signature)
        except (UnsupportedSyntaxError, SourceNotFoundError) as error:
            failed: Any = CaptureAborted(error.args[0], error.at, error.hint)
        except InternalError as error:
            if config.VERIFY.value:
                raise
            failed = CaptureAborted(f"{error.args[0]} (a mistake of dy2static's: please report it)")
        except Dy2StaticError:
            raise
        except (CaptureAborted, Exception) as error:
            failed = error
        else:
            result = self._run(program, signature, args, kwargs, known, tries)
            return result if result is not MISS else self._capture_and_run(signature, args, kwargs, tries + 1)
        if not self.options.strict:                     # which raises for this call, and shall for others like it
            self.budget.stopped()
        if isinstance(failed, CaptureAborted):
            return self._stopped(failed, signature, args, kwargs, reason)
        # The user's own mistake: eager raises it from the user's own frames, after the effects that come first.
        self.cache.note(Miss("", reason, f"runs eagerly: it raised {type(failed).__name__}"))
        return self._eager_after(failed, signature, args, kwargs)

    def _charge(self, program: Program, signature: Tuple) -> None:
        """Let the use of a program pay for its capture."""
        self.budget.charge(program)
        if not self.options.strict:
            self.budget.refund(self.postponed.pop(signature, 0))
        call = self.cache.call_of(program)
        if type(call) is not CheckedCall:
            self.cache.replace(call, self._call_of(program))

    def _run(self, program: Program, signature: Tuple, args: Tuple, kwargs: Mapping[str, Any], known: bool,
             tries: int) -> Any:
        result = self.cache.call_of(program)(args, kwargs)
        if known or result is MISS and _was_changed(tries):
            return result
        if result is MISS:
            self.cache.forget(program)
            if any(call.failed for call in relied_on(program.graph)):
                return result                           # the next capture says what this call cannot rely on
            self.refused[signature] = "its guards do not hold for the call they were made from"
            return self._fall_back(args, kwargs, self.refused[signature])
        self.cache.trim()                               # which now also has the working memory of this call
        return result

    def _eager_after(self, error: Exception, signature: Tuple, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        result = self.function(*args, **kwargs)
        reason = f"compiling it raised {type(error).__name__}: {error}"
        if "SymbolicObject" in reason or "BoundHostMethod" in reason:
            reason = "what a call gives that is not compiled, or an object of another library, enters a computation"
        reason = in_users_words(reason)
        self.refused[signature], self._errors[signature] = reason, (reason, error_location(error), None)
        self.fallbacks += 1
        self._warn(reason, error_location(error), None, error)
        return result

    def _stopped(self, stop: CaptureAborted, signature: Tuple, args: Tuple, kwargs: Mapping[str, Any], reason: str) -> Any:
        tries = self.postponed[signature] = self.postponed.get(signature, 0) + 1
        again = stop.again and tries <= _MOST_TRIES
        self.cache.note(Miss("", reason, f"{'is captured next time' if again else 'runs eagerly'}: {stop.reason}"))
        if again:
            with observing(self.observed, stop.observe) if stop.observe is not None else contextlib.nullcontext():
                return self.function(*args, **kwargs)
        self.refused[signature], self._errors[signature] = stop.reason, (stop.reason, stop.at, stop.hint)
        return self._fall_back(args, kwargs, stop.reason, stop.at, stop.hint)

    def _fall_back(self, args: Tuple, kwargs: Mapping[str, Any], reason: str, at: Optional[Location] = None,
                   hint: Optional[str] = None) -> Any:
        self.fallbacks += 1
        self._warn(reason, at, hint)
        return self.function(*args, **kwargs)

    def _warn(self, reason: str, at: Optional[Location], hint: Optional[str],
              cause: Optional[BaseException] = None) -> None:
        if self.options.strict:
            raise self._error(reason, at, hint) from cause
        if reason in self._warned:
            return
        self._warned.add(reason)
        at = at or definition(self.function)
        place = f" ({at}: {at.text().strip()})" if at is not None else ""
        warnings.warn(f"{self.function.__qualname__} runs eagerly for this signature: {reason}{place}; {hint or hint_for(reason)}",
                      FallbackWarning, stacklevel=caller_depth())

    def _error(self, reason: str, at: Optional[Location], hint: Optional[str]) -> CaptureError:
        return CaptureError(f"{self.function.__qualname__} cannot be compiled: {reason}", at or definition(self.function),
                            hint or hint_for(reason))

    # --- compiling ----------------------------------------------------------------------------------------------------

    def _compile(self, args: Tuple, kwargs: Mapping[str, Any], why: str) -> Program:
        check_arguments(self.options.input_spec, positional(self.function), args, kwargs)
        program = self._captured(args, kwargs)
        self.captures += 1
        if self.options.verbosity_now >= 1:
            log.warning("captured %s(%s)", self.function.__qualname__, program.signature)
        if self.options.verbosity_now >= 3:
            log.warning("graph of %s:\n%s", self.function.__qualname__, program.graph)
        if self.options.verbosity_now >= 4:
            log.warning("code of %s:\n%s\n%s", self.function.__qualname__, program.source, program.entry)
        check = self.options.check
        checked = CheckedCall(self.function, program, check, self._checked) if check else None
        self.cache.put(program, checked or self._call_of(program))
        why = f"{why}; one like it had to go before" if program.returned else why
        self.cache.note(Miss(program.signature, why, "was captured"))
        return program

    def _captured(self, args: Tuple, kwargs: Mapping[str, Any]) -> Program:
        """A program for these arguments; with free sizes where those differ from call to call, if that can be."""
        fixed: Set[Axis] = set()
        raised: Set[Axis] = set()
        while True:
            sizes = FreeSizes(self.sizes, fixed, self.options.dynamic, self._wanted, raised)
            try:
                program = self._captured_with(sizes, args, kwargs)
            except (CaptureAborted, SizeNeeded, Exception) as error:    # of any kind: user code meets sizes without numbers
                if not sizes.free or isinstance(error, InternalError) and config.VERIFY.value:
                    raise
                axes = sizes.needed(getattr(error, "sizes", ()))
                number = not isinstance(error, SizeNeeded) and not (isinstance(error, CaptureAborted) and not error.sizes)
                if number or not sizes.can_be_raised(axes):
                    fixed |= axes
                raised |= axes
                continue
            self.sizes.add(sizes, fixed, raised)
            return program

    def _captured_with(self, sizes: FreeSizes, args: Tuple, kwargs: Mapping[str, Any]) -> Program:
        """A program in which varying texts are inputs; if that cannot be, one for these very texts."""
        try:
            return self._captured_once(sizes, args, kwargs)
        except (CaptureAborted, Exception) as error:    # of any kind: what is not converted wants a text, not what stands for it
            if not self.varying.texts or getattr(error, "again", False):
                raise
            failed = error
        with self.varying.without_texts():
            try:
                return self._captured_once(sizes, args, kwargs)
            except (CaptureAborted, Exception):         # for another reason
                raise failed from None

    def _captured_once(self, sizes: FreeSizes, args: Tuple, kwargs: Mapping[str, Any], tries: int = 4) -> Program:
        try:
            with untouched_globals():
                return pipeline.compile_call(self.function, args, kwargs, self.varying, self.observed, self.options, sizes)
        except SystemError as error:
            # Python 3.11 counts the depth of trees per process: other threads that parse something confuse it
            if tries == 0 or "recursion depth mismatch" not in str(error):
                raise
        return self._captured_once(sizes, args, kwargs, tries - 1)

    def _look_again(self, args: Tuple, kwargs: Mapping[str, Any]) -> Tuple[Optional[Program], str]:
        """The program that fits after all, if there is one; what the nearest wants otherwise.

        Numbers and texts that alone kept a program from being used become inputs of the next one.
        """
        misfits = self._misfits(args, kwargs)
        for program, failed in misfits:
            if -1 in failed or not failed:
                continue
            guards = [program.guards[i] for i in failed]
            if self.options.verbosity_now >= 1:
                log.warning("%s: a program does not fit: %s", self.function.__qualname__,
                            "; ".join(g.describe() for g in guards))
            values = [g for g in guards if g.test == "eq" and type(g.expected) in (int, float, str, bytes)]
            if len(values) == len([g for g in guards if g.test != "expr"]):
                self.varying.note(values)
        found = [program for program, failed in misfits if not failed]
        return found[-1] if found else None, reason_of([pair for pair in misfits if pair[1]])

    def _misfits(self, args: Tuple, kwargs: Mapping[str, Any]) -> List[Tuple[Program, List[int]]]:
        """Each program with the indexes of its guards that do not hold."""
        return [(program, list(program.diagnose(args, kwargs))) for program in list(self.programs)]

    def _checked(self, call: CheckedCall) -> None:
        """From now on the program is called as it is."""
        self.cache.replace(call, self._call_of(call.program))

    def _call_of(self, program: Program) -> Callable:
        """What to call for a program."""
        program.profiled = self.profile
        call = self._plain_call(program)
        return call if self._profile is None else self._profile.timed(program, call)

    def _plain_call(self, program: Program) -> Callable:
        call = program.call if program.hot is None else WarmingCall(program, config.NATIVE_AFTER.value, self._hot)
        return self.budget.watched(program, call)

    def _hot(self, call: WarmingCall) -> None:
        """The program has been called often: it becomes native code, as soon as that has been made."""
        wait = not config.BACKGROUND.value
        if not self._lock.acquire(blocking=wait):
            return                                      # another thread is at it, or captures
        try:
            program = call.program
            if program.hot is None:
                return                                  # another thread was faster
            native: Optional[Program] = program
            try:
                native = program.hot(program, wait)
            except InternalError as error:              # the call can do without
                program.hot = None
                if config.VERIFY.value:
                    raise
                self._warn(f"it does not become native code: {error.args[0]} (please report it)", None, None)
            if native is not None:
                program.hot = None
                native.profiled = self.profile
                self.cache.exchange(program, native)
                self.budget.paid(program)
                call.program = native
        finally:
            self._lock.release()

    def enable(self, enabled: bool) -> None:
        """Let calls find the programs, or none of them."""
        self.cache.park(not enabled)

    # --- questions ----------------------------------------------------------------------------------------------------

    def program(self, args: Tuple, kwargs: Mapping[str, Any]) -> Program:
        """The program for these arguments, compiled if there is none yet."""
        for program in self.programs:
            if not program.diagnose(args, kwargs):
                return program
        try:
            with self._lock:
                return self._compile(args, kwargs, self._look_again(args, kwargs)[1])
        except CaptureAborted as stop:
            failed = stop
        raise CaptureError(f"{self.function.__qualname__} runs eagerly for these arguments: {failed.reason}",
                           failed.at or definition(self.function), failed.hint)

    def profile(self, program: Optional[Program] = None) -> Profile:
        """A profile of the calls that one program serves, or of all."""
        return Profile(self.function.__qualname__, functools.partial(self._profiling, program))

    @contextlib.contextmanager
    def _profiling(self, only: Optional[Program], profile: Profile) -> Iterator[None]:
        """Calls with clocks in place of the others.  Those that are checked stay so."""
        before, self._profile = self._profile, profile if only is None else self._profile
        try:
            for program in list(self.cache.programs):
                call = self.cache.call_of(program)
                if (only is None or program.guards is only.guards) and type(call) is not CheckedCall:
                    self.cache.replace(call, profile.timed(program, call))
            yield
        finally:
            self._profile = before
            for program in list(self.cache.programs):
                call = self.cache.call_of(program)
                if type(call) is TimedCall and call.profile is profile:
                    self.cache.replace(call, call.call)

    def explain(self, args: Tuple, kwargs: Mapping[str, Any]) -> Explanation:
        """What became of each line, or why the call runs eagerly."""
        coverage = Coverage()
        program, stop = None, None
        try:
            with untouched_globals(), coverage.watching():
                program = pipeline.compile_call(self.function, args, kwargs, self.varying, self.observed)
        except CaptureAborted as aborted:
            stop = aborted
        except Exception as error:                      # of any kind: the user's code raised it
            stop = stopped_by(error, error_location(error))
        return explanation(self.function, program, stop, coverage)

    def stats(self) -> Dict[str, int]:
        """Counts over all programs."""
        found = {"captures": self.captures, "fallbacks": self.fallbacks, "programs": len(self.programs),
                 "refused": len(self.refused)}
        for program in self.programs:
            for name, count in program.counts.items():
                found[name] = found.get(name, 0) + count
        found["peak_bytes"] = max([program.peak_bytes for program in self.programs], default=0)
        return found

    def clear(self) -> None:
        """Forget everything learned."""
        self.cache.clear()
        self.budget.clear()
        self._told = False
        self.sizes.clear()
        for learned in (self.varying, self.observed, self.refused, self.postponed, self._errors, self._warned):
            learned.clear()


def _was_changed(tries: int) -> bool:
    """Whether another thread may have changed, after a program was found or made, what its guards look at."""
    return tries < _MOST_CHANGES and threading.active_count() > 1


def positional(function: types.FunctionType) -> Tuple[str, ...]:
    """The names of the positional parameters."""
    return function.__code__.co_varnames[:function.__code__.co_argcount]


def enable(enabled: bool) -> None:
    """Turn compilation off or on, also for what is compiled already."""
    config.ENABLED.value = int(enabled)
    for dispatcher in list(_dispatchers):
        dispatcher.enable(enabled)


def clear_all() -> None:
    """Let all functions forget what they learned."""
    for dispatcher in list(_dispatchers):
        dispatcher.clear()
