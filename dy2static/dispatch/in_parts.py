"""Calls that run in parts: what a dispatcher does when one line of its function cannot be compiled."""
from __future__ import annotations

import dis
import types
import warnings
from typing import Any, Callable, Dict, Mapping, Optional, Set, Tuple

from ..conversion import source_of
from ..diagnostics import explain
from ..errors import FallbackWarning
from ..heap.aborts import CaptureAborted
from ..heap.locations import caller_depth, is_installed
from ..options import InnerOptions, Options
from ..parts.cuts import Cut
from ..parts.divided import Divided, Parts
from .paying import CompiledPart

#: When calls of so many signatures run in parts, no others are captured as a whole: they may differ in texts, and in every call.
_MANY_SIGNATURES = 4

#: Parts that do little and have branches are tried again after so many calls, then after so many times as many, and so on.
_FIRST_PATIENCE, _MORE_PATIENCE = 16, 4


def is_bound_once(name: str, code: types.CodeType) -> bool:
    """Whether one place of a function alone gives a local name its value."""
    stored = [step.argval for step in dis.get_instructions(code) if step.opname.startswith("STORE_")]
    names = [each for argval in stored for each in (argval if isinstance(argval, tuple) else (argval,))]
    return names.count(name) + (name in code.co_varnames[:code.co_argcount]) <= 1


def are_of_one_place(function: types.FunctionType, other: types.FunctionType) -> bool:
    """Whether two functions are parts of one function of the user's, or it itself."""
    return function.__code__.co_filename == other.__code__.co_filename and function.__qualname__ == other.__qualname__


class InParts:
    """How the calls of one function run in parts.

    parts: those that it shares with the functions around it; None for a function that is called from outside.
    gets_data: whether it is a training step: all its calls run in parts, between the lines that get the data.
    """

    def __init__(self, function: types.FunctionType, options: Options, make: Callable[[types.FunctionType, Options, Parts], Any],
                 parts: Optional[Parts] = None):
        self.function, self.options, self.is_outermost = function, options, parts is None
        self.gets_data = parts is not None and parts.makes_step(function)
        self.parts = parts or Parts(lambda function, parts: CompiledPart(make(function, self._inner(), parts)))
        self._version, self._has_cuts, self._pays = 0, False, False
        self._patience = self._until_next = _FIRST_PATIENCE
        self._divided: Optional[Divided] = None
        self._signatures: Dict[Tuple, Optional[CaptureAborted]] = {}    # with what stopped, until parts are known to pay
        self._idle: Dict[Tuple, Optional[CaptureAborted]] = {}          # the same of those whose parts did not pay
        self._told: Set[Cut] = set()

    def _inner(self) -> Options:
        """The options of the parts; under ``strict``, those of a training step may have no cuts."""
        given = {**vars(self.options), "strict": self.gets_data and self.options.strict is True, "input_spec": ()}
        return InnerOptions(**given)

    @property
    def is_used(self) -> bool:
        """Whether there are calls that run in parts."""
        return bool(self._signatures)

    @property
    def divided(self) -> Divided:
        """The function in parts."""
        found = self._divided
        if found is None:
            with self.parts.known.lock:                 # another thread may have been faster
                found = self._divided = self._divided or Divided(self.function, self.parts, self.gets_data)
        return found

    @property
    def cuts(self) -> Tuple[Cut, ...]:
        """The lines that run as Python, as far as calls have shown them."""
        return tuple(self.parts.known.found) if self.is_used else ()

    @property
    def code(self) -> str:
        """The source of the function with the calls of its parts, and the converted source of each part."""
        found = [self.divided.code.rstrip()]
        for name, part in self.divided.parts_by_name().items():
            title = f"# {name}: lines {part.run.key.first.line} to {part.run.key.last.end_line}"
            found.append(f"{title}\n{source_of(part.function).rstrip()}")
        return "\n\n".join(found) + "\n"

    def clear(self) -> None:
        """Forget the parts."""
        self._divided, self._pays = None, False
        self._signatures.clear()
        self._idle.clear()
        if self.is_outermost:
            self.parts.clear()
            self._told.clear()

    def learned(self) -> Tuple[Any, ...]:
        """What is known now, for `restore`."""
        return self.parts.learned(), self._pays, dict(self._signatures), dict(self._idle)

    def restore(self, learned: Tuple[Any, ...]) -> None:
        """Run those calls in parts that did so then, and no others."""
        parts, self._pays, self._signatures, self._idle = learned
        self.parts.restore(parts)
        self._divided = None

    def takes(self, signature: Tuple) -> bool:
        """Whether calls of a signature run in parts."""
        return signature in self._signatures or self._takes_all

    @property
    def _takes_all(self) -> bool:
        """Whether calls of so many signatures run in parts that those of others do so, too, without being captured first."""
        return (self._pays or not self.is_outermost) and len(self._signatures) >= _MANY_SIGNATURES

    def is_expected(self, signature: Tuple) -> bool:
        """Whether this is a function that is known to have cuts: then it is divided without being captured first."""
        if self.gets_data and self.parts.may_divide(self.function):
            self._signatures[signature] = None
            return True
        if self.is_outermost:
            return False
        if self._version != self.parts.known.version:
            self._version, self._has_cuts = self.parts.known.version, self.parts.has_cuts(self.function)
        if self._has_cuts:
            self._signatures[signature] = None
        return self._has_cuts

    def learn(self, stop: CaptureAborted, signature: Tuple) -> bool:
        """Divide the function where its capture stopped; False where that does not help."""
        if not self.options.allows_parts or self.parts.known.is_full:
            return False
        learned = self.parts.learn(self.function, stop) is not None or not stop.whole and self.parts.halve(self.function, stop)
        stop.__traceback__ = stop.__context__ = stop.__cause__ = None      # their frames hold the objects of the call
        if learned:
            self._signatures[signature] = stop
        return bool(learned)

    def run(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        """One call in parts."""
        if self.is_outermost and self._until_next:
            self._until_next -= 1
            if not self._until_next:
                self._patience *= _MORE_PATIENCE
                self._until_next = self._patience
                if self.parts.may_do_more:
                    self.parts.try_again()
        return self.divided(*args, **kwargs)

    @property
    def is_worth_it(self) -> Optional[bool]:
        """Whether there are parts that pay for their calls; None while that is not known."""
        found = [compiled.is_worth_it() for compiled in self.parts.compiled()]
        return True if True in found else None if None in found else False

    def settle(self, signature: Tuple) -> Optional[CaptureAborted]:
        """Why calls of a signature run eagerly from now on, after one that ran in parts; None if they go on running in parts.

        Warns of the lines that the parts have learned of, unless there are no parts left.
        """
        known = self.parts.known
        with known.lock:
            if not self.takes(signature):               # another thread has settled it
                return None
            stop = self._signatures.get(signature)
            if known.is_full:
                stop, pays = known.stop or CaptureAborted(f"{len(known.found)} of its lines cannot be compiled"), False
            else:
                pays = None if stop is None else self.is_worth_it
            if pays is False:
                self._idle[signature] = self._signatures.pop(signature, None)
                return stop
            if pays:
                self._pays = True
                if signature in self._signatures:
                    self._signatures[signature] = None
        if len(self._told) < len(known.found):
            self._tell()
        return None

    @property
    def may_pay_later(self) -> bool:
        """Whether parts that did not pay may yet: calls may have returned before they came to the work."""
        return self.parts.may_do_more and not self.parts.known.is_full

    def try_again(self, signature: Tuple) -> None:
        """Let calls of a signature run in parts once more, also in those that have done too little so far."""
        self.parts.try_again()
        self._signatures[signature] = self._idle.pop(signature, None)

    @property
    def is_told(self) -> bool:
        """Whether the user knows of a cut."""
        return bool(self._told)

    def _tell(self) -> None:
        """Warn of each new cut; of those in one file of an installed package, once for each reason."""
        for cut in list(self.parts.known.found):
            with self.parts.known.lock:                 # one of several threads says it
                known = cut in self._told or is_installed(cut.at.file) and any(
                    [(cut.at.file, cut.reason) == (one.at.file, one.reason) for one in self._told])
                self._told.add(cut)
            if not known:
                warnings.warn(f"{self.function.__qualname__}: {cut}; {cut.hint}", FallbackWarning, stacklevel=caller_depth())

    def dispatchers(self) -> Tuple[Any, ...]:
        """Those of the parts, and of the functions that are called between them."""
        return tuple(compiled.dispatcher for compiled in self.parts.compiled()) if self.is_outermost else ()  # type: ignore[attr-defined]

    def report(self) -> Optional[explain.Divided]:
        """The section of `StaticFunction.explain` about parts; None if the function has no parts."""
        if not self.is_used:
            return None
        programs = [dispatcher.programs[-1] for dispatcher in self.dispatchers() if dispatcher.programs]
        spans = [(part.owner.__code__.co_filename, part.run.key.first.line, part.run.key.last.end_line)
                 for part in self.parts.all()]
        return explain.Divided(len(self.parts.all()), tuple(self.parts.known.found), programs, spans)

    def stats(self) -> Dict[str, int]:
        """Counts of parts and cuts."""
        return {"parts": len(self.parts.all()), "cuts": len(self.parts.known.found)}


