"""From a call to its program: the cache of one function, and what happens on a miss."""
from __future__ import annotations

import contextlib
import functools
import logging
import types
import warnings
from dataclasses import replace
from typing import Any, Callable, ClassVar, Dict, Iterator, Mapping, Optional, Tuple

import chainer

from .. import config, pipeline
from ..diagnostics.changes import Varying, changes_of, storm_message
from ..diagnostics.check.checked import CheckedCall
from ..diagnostics.explain import Coverage, Explanation, explanation, stopped_by
from ..errors import CaptureError, Dy2StaticError, FallbackWarning, InternalError, SourceNotFoundError, UnsupportedSyntaxError
from ..heap.aborts import CaptureAborted
from ..heap.debuggers import is_debugging
from ..heap.global_state_guard import undisturbed
from ..heap.locations import caller_depth, definition, error_location
from ..heap.reads import noting_reads
from ..input_spec import check_arguments, check_count
from ..lowering.opaque import relied_on
from ..options import DEFAULTS, Options
from ..parts.divided import Parts
from ..runtime import hooks
from ..runtime.budget import CaptureBudget, Verdict
from ..runtime.cache import Cache, Miss, Recent, nearest
from ..runtime.function_hooks import only_time, seen_as_one_function
from ..runtime.hooks import stage
from ..runtime.ledger import Bill, Ledger
from ..runtime.profile import Profile
from ..runtime.program import MISS, Program
from ..runtime.progress import shown
from ..runtime.signals import RaisedByHandler, handled_outside
from ..runtime.signatures import signature_of
from ..runtime.traceback import calls_as_written
from ..symbolic.observe import observing
from ..threads.alive import Alive
from ..threads.locks import lock
from .counting import counted
from .fallback import Fallback
from .in_parts import InParts, are_of_one_place, is_bound_once
from .lookup import Lookup, may_have_changed
from .pacing import Pacing
from .postponed import Postponed
from .profiling import profiled
from .refusals import Refusals
from .sizes import Captures, positional
from .tiers import Tiers

log = logging.getLogger("dy2static")


class Dispatcher:
    """The programs of one function, and the signatures that run eagerly.

    has_python: whether calls can run eagerly.  all: the dispatchers that there are.
    """

    has_python = True
    all: "ClassVar[Alive[Dispatcher]]" = Alive()

    def __init__(self, function: types.FunctionType, options: Options = DEFAULTS, parts: Optional[Parts] = None):
        check_count(options.input_spec, function)
        self.function, self.options = function, options
        self.cache = Cache(options.cache_limit, options.cache_bytes)
        self.programs, self.calls = self.cache.programs, self.cache.calls
        self.cache.park(not config.ENABLED.value)
        self.varying = Varying()
        self.observed: Dict[Tuple, Tuple] = Recent()
        self.postponed = Postponed()
        self.captures = 0
        self.in_parts = InParts(function, options, self._part, parts)
        self.budget = CaptureBudget(self.cache, self.in_parts.parts.ledger)
        self._profile: Optional[Profile] = None
        self.is_told = False                            # that captures do not pay
        self.lock = lock()
        self.fallback = Fallback(function, options, parts is not None)
        self.tiers = Tiers(options, self.cache, self.budget, self.lock, self._no_tier)
        self.sizes = Captures(function, options, self.varying, self.observed)
        self.lookup = Lookup(function, options, self.cache, self.varying)
        self.refusals = Refusals(self)
        self.pacing = Pacing(self)
        Dispatcher.all.add(self)

    def _part(self, function: types.FunctionType, options: Options, parts: Parts) -> "Dispatcher":
        """The dispatcher of a part of this function, or of a function that is called between its parts.

        It begins with what others of the same function have learned of names that stand for one thing throughout, and captures
        stop in it where they do in this function.
        """
        made = Dispatcher(function, options, parts)
        made.sizes.begin_with(self.sizes)
        alike = [other for other in (self, *self.in_parts.dispatchers()) if are_of_one_place(other.function, function)]
        whole = next((other.function for other in alike if not parts.is_part(other.function)), function)
        own = [name if is_bound_once(name, whole.__code__) else None for name in positional(function)]
        for other in alike:
            made.varying.begin_with(other.varying, positional(other.function), own)
        return made

    @calls_as_written
    def miss(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """A call for which no guard held: inlined, captured, or run eagerly."""
        capture = stage.capture
        if capture is not None:
            return capture.callee(self.function)(*args, **kwargs)
        if not config.ENABLED.value or is_debugging():
            return self.function(*args, **kwargs)
        if hooks.values and not hooks.values.keys().isdisjoint(map(type, (*args, *kwargs.values()))):
            return self.run(*hooks.with_values(args, kwargs))
        if chainer.get_function_hooks():
            return self._hooked(args, kwargs)
        result = self.refusals.serve(args, kwargs)
        if result is not MISS:
            return result
        self.pacing.missed()
        signature = signature_of(args, kwargs) if self.in_parts.is_used or self.fallback.refused else None
        if self.in_parts.takes(signature):
            return self._in_parts(signature, args, kwargs)
        if signature in self.fallback.refused:
            self.fallback.check(signature)
            if self.fallback.is_due(signature):
                self.in_parts.try_again(signature)
                return self._in_parts(signature, args, kwargs)
            self.cache.missed += 1
            return self.fallback.run(args, kwargs)
        if self.in_parts.gets_data or not self.in_parts.is_outermost:
            signature = signature or signature_of(args, kwargs)
            if self.in_parts.is_expected(signature):
                return self._in_parts(signature, args, kwargs)
        if self.fallback.expects_error:
            self.cache.missed += 1
            return self.fallback.run_expecting(args, kwargs)
        verdict = self.budget.ask()
        if verdict is Verdict.EAGER:
            self.cache.missed += 1
            return self.fallback.run(args, kwargs)
        signature = signature or signature_of(args, kwargs)
        if self._refuses(verdict, args, kwargs) or verdict is Verdict.CAPTURE:
            return self._capture_and_run(signature, args, kwargs)
        if verdict is Verdict.TRIAL:
            return self._try_again(signature, args, kwargs)
        with self.lock:                                 # another thread may capture, and reads what varies
            reason = self.lookup.again(args, kwargs)[1]
        self.cache.note(Miss(reason, "runs eagerly, as do the next: captures do not pay"))
        return self.fallback.run(args, kwargs)

    def _refuses(self, verdict: Verdict, args: Tuple, kwargs: Mapping[str, Any]) -> bool:
        if not self.refusals.may_refuse(verdict):
            return False
        with self.lock:
            return self.refusals.refuse(verdict, args, kwargs)

    def take_back(self, kept: Mapping[Program, Any]) -> None:
        """Use programs again that were taken out when something was left to Python."""
        self.budget.go_on(kept)
        for program in kept:
            self.cache.put(program, self._call_of(program))

    def _try_again(self, signature: Tuple, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """Captured for once, after many calls that ran eagerly; the first time, a warning tells what keeps changing."""
        told = self.is_told or not self.budget.is_hopeless
        self.is_told |= not told
        changes = [] if told else changes_of(self.function, *nearest(self.lookup.misfits(args, kwargs)), args, kwargs)
        captures = self.budget.captures
        try:
            with contextlib.nullcontext({}) if told else noting_reads() as places:
                return self._capture_and_run(signature, args, kwargs)
        finally:
            if not told:
                placed = [change.placed(self.function, places) for change in changes]
                message = storm_message(self.function.__qualname__, captures, self.budget.useful, placed, self.cache.evicted)
                warnings.warn(message, FallbackWarning, stacklevel=caller_depth())

    def _hooked(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """Timing hooks see the compiled call as one function; any other function hook sees the eager run."""
        if not only_time():
            return self.fallback.run_and_tell(args, kwargs, "function hooks are registered")
        return self.as_one_function(args, kwargs)

    def as_one_function(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """The compiled call, which the registered function hooks see as one function."""
        with seen_as_one_function(self.function.__qualname__, args):
            return self.run(args, kwargs)

    def run(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """One call: by the first program whose guards hold."""
        for call in self.cache.behind:
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
            with self.lock, handled_outside(), self.budget.ledger.bill() as bill:
                found, reason = self.lookup.again(args, kwargs)
                # another thread made it, or a list changed while this one looked
                known = found is not None and (tries == 0 or may_have_changed(tries))
                program = found if known else self._compile(args, kwargs, reason, bill)
                if not known:
                    self._charge(program, signature, bill)
                    self.fallback.not_raised()
        except (UnsupportedSyntaxError, SourceNotFoundError) as error:
            failed: Any = CaptureAborted(error.args[0], error.at, error.hint)
        except InternalError as error:
            if config.VERIFY.value:
                raise
            failed = CaptureAborted(f"{error.args[0]} (a mistake of dy2static's: please report it)")
        except MemoryError as error:                    # which may be short in this call only
            failed = CaptureAborted(f"there is no memory for it: {error}", again=True)
        except RaisedByHandler as raised:
            raise raised.error from raised.error.__cause__
        except Dy2StaticError:
            raise
        except (CaptureAborted, Exception) as error:
            failed = error
        else:
            result = self._run(program, signature, args, kwargs, known, tries)
            return result if result is not MISS else self._capture_and_run(signature, args, kwargs, tries + 1)
        if self.options.allows_parts:                   # which raises for this call, and shall for others like it
            self.budget.stopped()
        if isinstance(failed, CaptureAborted):
            return self._stopped(failed, signature, args, kwargs, reason)
        # The user's own mistake: eager raises it from the user's own frames, after the effects that come first.
        self.cache.note(Miss(reason, f"runs eagerly: it raised {type(failed).__name__}"))
        result, stop = self.fallback.run_after(failed, args, kwargs)
        if not self.in_parts.learn(stop, signature):
            self.fallback.refuse_after(stop, signature, failed)
        elif not self.options.strict:
            self.fallback.tell(stop.reason, stop.at, None)
        return result

    def _charge(self, program: Program, signature: Tuple, bill: Bill) -> None:
        """Let the use of a program pay for its capture."""
        self.budget.charge(program, bill)
        if self.options.allows_parts:
            self.budget.refund(self.postponed.succeeded(signature))
        call = self.cache.call_of(program)
        if type(call) is not CheckedCall:
            self.cache.replace(call, self._call_of(program))

    def _run(self, program: Program, signature: Tuple, args: Tuple, kwargs: Mapping[str, Any], known: bool,
             tries: int) -> Any:
        result = self.cache.call_of(program)(args, kwargs)
        if known or result is MISS and may_have_changed(tries):
            return result
        if result is MISS:
            self.cache.forget(program)
            if any(call.failed for call in relied_on(program.graph)):
                return result                           # the next capture says what this call cannot rely on
            reason = self.fallback.refused[signature] = "its guards do not hold for the call they were made from"
            return self.fallback.run_and_tell(args, kwargs, reason)
        self.cache.trim()                               # which now also has the working memory of this call
        return result

    def _stopped(self, stop: CaptureAborted, signature: Tuple, args: Tuple, kwargs: Mapping[str, Any], reason: str) -> Any:
        may_again = self.postponed.stopped(signature)
        again = may_again and stop.again
        in_parts = not again and self.in_parts.learn(stop, signature)
        again = again or may_again and stop.passes and not in_parts
        became = "is captured next time" if again else "runs in parts" if in_parts else "runs eagerly"
        self.cache.note(Miss(reason, f"{became}: {stop.reason}"))
        if again:
            watch = observing(self.observed, stop.observe) if stop.observe is not None else contextlib.nullcontext()
            with self.postponed.shown(signature), watch:
                return self.function(*args, **kwargs)
        if in_parts:
            return self._in_parts(signature, args, kwargs)
        self.fallback.refuse(signature, stop.reason, stop.at, stop.hint)
        return self.fallback.run_and_tell(args, kwargs, stop.reason, stop.at, stop.hint)

    def _in_parts(self, signature: Tuple, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """A call in parts; if they turn out not to pay, the next ones run eagerly."""
        try:
            return self.in_parts.run(args, kwargs)
        finally:
            stop = self.in_parts.settle(signature) if self.in_parts.is_outermost else None
            if stop is not None:
                if self.in_parts.may_pay_later:
                    self.fallback.put_off(signature, stop)
                else:
                    self.fallback.refuse(signature, stop.reason, stop.at, stop.hint)
                self.fallback.count += 1
                if self.options.strict or not self.in_parts.is_told:
                    self.fallback.tell(stop.reason, stop.at, stop.hint)

    # --- compiling ----------------------------------------------------------------------------------------------------

    def _compile(self, args: Tuple, kwargs: Mapping[str, Any], why: str, bill: Bill) -> Program:
        check_arguments(self.options.input_spec, positional(self.function), args, kwargs)
        with shown(f"compiling {self.function.__qualname__}"):
            program = self._entered(self.sizes.program(self.tiers.first, args, kwargs, bill))
        self.captures += 1
        if self.options.verbosity_now >= 1:
            log.warning("captured %s(%s)", self.function.__qualname__, program.signature)
        if self.options.verbosity_now >= 3:
            log.warning("graph of %s:\n%s", self.function.__qualname__, program.graph)
        if self.options.verbosity_now >= 4:
            log.warning("code of %s:\n%s\n%s", self.function.__qualname__, program.source, program.entry)
        check = self.options.check
        checked = CheckedCall(self.function, program, check, self._checked) if check else None
        was_here = self.cache.put(program, checked or self._call_of(program))
        why = f"{why}; one like it had to go before" if was_here else why
        self.cache.note(Miss(why, "was captured", program.signature))
        return program

    def _entered(self, program: Program) -> Program:
        """A new program as one of this function: with its profiles, and with what becomes of it."""
        program = replace(program, profiler=self.profile)
        self.tiers.add(program)
        return program

    def _no_tier(self, reason: str) -> None:
        self.fallback.tell(reason, None, None)

    def _checked(self, call: CheckedCall) -> None:
        """From now on the program is called as it is."""
        self.cache.replace(call, self._call_of(call.program))

    def _call_of(self, program: Program) -> Callable:
        """What to call for a program."""
        call = self.budget.watched(program, self.tiers.call_of(program))
        return call if self._profile is None else self._profile.timed(program, call)

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
            with self.lock:
                return self._compile(args, kwargs, self.lookup.again(args, kwargs)[1], Bill(Ledger()))
        except CaptureAborted as stop:
            failed = stop
        how = "runs in parts" if self.in_parts.is_used else "runs eagerly"
        raise CaptureError(f"{self.function.__qualname__} {how} for these arguments: {failed.reason}",
                           failed.at or definition(self.function), failed.hint)

    def profile(self, program: Optional[Program] = None) -> Profile:
        """A profile of the calls that one program serves, or of all."""
        return Profile(self.function.__qualname__, functools.partial(self._profiling, program), self.tiers.with_clocks)

    @contextlib.contextmanager
    def _profiling(self, only: Optional[Program], profile: Profile) -> Iterator[None]:
        """Calls with clocks in place of the others.  Those that are checked stay so."""
        before, self._profile = self._profile, profile if only is None else self._profile
        with profiled(self.cache, only, profile), contextlib.ExitStack() as parts, self.pacing.paused():
            try:
                for dispatcher in self.in_parts.dispatchers():
                    parts.enter_context(dispatcher._profiling(None, profile))
                yield
            finally:
                self._profile = before

    def explain(self, args: Tuple, kwargs: Mapping[str, Any]) -> Explanation:
        """What became of each line, or why the call runs eagerly."""
        coverage = Coverage()
        program, stop, is_open = None, None, False
        try:
            with coverage.watching():
                program = undisturbed(lambda: pipeline.compile_call(self.function, args, kwargs, self.varying, self.observed))
        except CaptureAborted as aborted:
            stop = aborted
            is_open = stop.at is not None and self.options.allows_parts and not stop.whole and not self.fallback.refused
        except Exception as error:                      # of any kind: the user's code raised it
            stop = stopped_by(error, error_location(error))
        return explanation(self.function, program, stop, coverage, self.in_parts.report(), is_open, self.pacing.reason)

    def stats(self) -> Dict[str, int]:
        """Counts over all programs."""
        own = {"captures": self.captures, "fallbacks": self.fallback.count, "programs": len(self.programs),
               "refused": len(self.fallback.refused), "as_python": self.pacing.calls}
        return counted(own, self.programs, self.in_parts)

    def clear(self) -> None:
        """Forget everything learned."""
        with self.lock:
            self.cache.clear()
            self.budget.clear()
            self.is_told = False
            for learned in (self.sizes, self.varying, self.observed, self.postponed, self.fallback, self.in_parts, self.refusals,
                            self.pacing):
                learned.clear()
