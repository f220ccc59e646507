"""The programs of a function whose guards did not hold: which one fits after all, and what the others wanted."""
from __future__ import annotations

import contextlib
import logging
import threading
import types
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..diagnostics.changes import Varying
from ..heap.heap import NUMPY_NUMBERS
from ..heap.list_shadows import holds_numbers
from ..options import Options
from ..record.guards import (
    ArrayMatch,
    ContentsMatch,
    DistinctObjects,
    EqualsMatch,
    ExpressionMatch,
    Guard,
    IdentityMatch,
    LengthMatch,
    SameObject,
    TypeMatch,
)
from ..record.paths import Argument, Source, follow, paths_of, place_of_expression
from ..runtime.cache import Cache, nearest, reason_of
from ..runtime.list_arrays import array_of_list
from ..runtime.program import Program

#: The types of what may be inputs of a program.
_INPUTS = (int, float, str, bytes, *NUMPY_NUMBERS)

#: So often a call looks for a program again because another thread changes what the guards look at.
_MOST_CHANGES = 16

log = logging.getLogger("dy2static")


def may_have_changed(tries: int) -> bool:
    """Whether another thread may have changed, after a program was found or made, what its guards look at."""
    return tries < _MOST_CHANGES and threading.active_count() > 1


class Lookup:
    """Looks at the programs of one function again; what alone varied becomes an input of the next one (``varying``)."""

    def __init__(self, function: types.FunctionType, options: Options, cache: Cache, varying: Varying):
        self.function, self.options, self.cache, self.varying = function, options, cache, varying

    def again(self, args: Tuple, kwargs: Mapping[str, Any]) -> Tuple[Optional[Program], str]:
        """The program that fits after all, if there is one; what the nearest wants otherwise.

        Numbers and texts that alone kept a program from being used become inputs of the next one, and so do arrays that were one
        and are several now.  So do numbers that a program has written since, such as the steps of an optimizer, whatever else
        keeps it from being used.
        """
        misfits = self.misfits(args, kwargs)
        for program, failed in misfits[:1]:             # the one that was made or used last
            if failed:
                self._note_lengths(program, _reader(args, kwargs))
        for program, failed in misfits:
            if -1 in failed or not failed:
                continue
            guards = [program.guards[i] for i in failed]
            if self.options.verbosity_now >= 1:
                log.warning("%s: a program does not fit: %s", self.function.__qualname__,
                            "; ".join(g.describe() for g in guards))
            at = _reader(args, kwargs)
            changed = [each for guard in guards if not isinstance(guard, ExpressionMatch)
                       for each in (guard.broken(at) if isinstance(guard, DistinctObjects) else [guard])]
            others = [guard for guard in changed if not _may_be_input(guard, at)]
            self.varying.note_places([_kind_of_item(guard, at) for guard in others], program.recipe.outcome.named)
            self._note_sizes([guard for guard in guards if isinstance(guard, ExpressionMatch)], program, at)
            if not others:
                self.varying.note(changed)
            else:
                written = [guard for guard, _ in program.recipe.outcome.replaced_numbers]
                if _any_differs(written, args, kwargs):         # the steps of an optimizer, after the first call: all will count
                    self.varying.note([*written, *[g for g in changed if isinstance(g, EqualsMatch) and
                                                   type(g.expected) in (int, float)]])
        found = [program for program, failed in misfits if not failed]
        return found[-1] if found else None, reason_of([pair for pair in misfits if pair[1]])

    def _note_sizes(self, guards: Sequence[ExpressionMatch], program: Program, at: Callable[[Source], Any]) -> None:
        """Note which whole numbers others have come for where Python needed them: they may be sizes."""
        named = program.recipe.outcome.named
        for guard in guards:
            if type(guard.expected) is int:
                needed = paths_of(place_of_expression(guard.text, named))
                self.varying.note_sizes([source.path() for _, source in named
                                         if source.path() in needed and type(at(source)) is int])

    def _note_lengths(self, program: Program, at: Callable[[Source], Any]) -> None:
        """Note which lists have other lengths now.  A diagnosis ends at the first of them."""
        for guard in program.guards:
            if isinstance(guard, LengthMatch):
                with contextlib.suppress(AttributeError, LookupError, TypeError):
                    now = at(guard.source)
                    if len(now) != guard.expected:
                        is_array = type(now) is list and array_of_list(now, None) is not None
                        self.varying.note_length(guard, len(now), holds_numbers(now), is_array)

    def refuse(self, args: Tuple, kwargs: Mapping[str, Any], is_last: bool, is_part: bool, contents: bool) -> bool:
        """Let captures stop at what keeps the nearest program from being used; False where that cannot help.

        is_last: whether captures pause otherwise; so also at what keeps another program from that, where the nearest is one for
        arrays of other shapes.  is_part: whether the function is a part of another one.  contents: also at contents of arrays;
        otherwise only where they are the same in another order.
        """
        misfits = [misfit for misfit in self.misfits(args, kwargs) if not self._is_outdated(*misfit)]
        whole = [(program, failed) for program, failed in misfits
                 if -1 not in failed and all([program.guards[index].is_soft for index in failed])]
        how = is_last, is_part, contents
        return any([self._refuse(*nearest(found), args, kwargs, *how) for found in (misfits, whole)]) or \
            is_last and any(self._refuse(*misfit, args, kwargs, *how) for misfit in misfits)

    def _refuse(self, program: Optional[Program], failed: Sequence[int], args: Tuple, kwargs: Mapping[str, Any],
                is_last: bool, is_part: bool, contents: bool) -> bool:
        if program is None or -1 in failed:
            return False
        at = _reader(args, kwargs)
        guards = [program.guards[index] for index in failed]
        contents = contents or all([guard.is_reordered(at(guard.source)) for guard in guards if isinstance(guard, ContentsMatch)])
        others = [_kind_of_item(guard, at) for guard in guards if not _may_be_input(guard, at)]
        named = program.recipe.outcome.named
        self.varying.note_places(others or guards, named)
        return self.varying.refuse(others or guards, named, is_last, is_part, contents)

    def _is_outdated(self, program: Program, failed: Sequence[int]) -> bool:
        """Whether a program relies on the value of a number or text that later ones take as an input."""
        guards = [program.guards[index] for index in failed if index >= 0]
        return any([self.varying.is_input(guard.source.path()) for guard in guards if isinstance(guard, EqualsMatch)])

    def misfits(self, args: Tuple, kwargs: Mapping[str, Any]) -> List[Tuple[Program, List[int]]]:
        """Each program with the indexes of its guards that do not hold."""
        return [(program, list(program.diagnose(args, kwargs))) for program in list(self.cache.programs)]


def _reader(args: Tuple, kwargs: Mapping[str, Any]) -> Callable[[Source], Any]:
    """Gives what these arguments have at the end of a path."""
    return lambda source: follow(source, lambda root: args[root.key] if isinstance(root, Argument) else kwargs[root.key])


def _kind_of_item(guard: Guard, at: Callable[[Source], Any]) -> Guard:
    """The guard; where there is no array or object of a type any more, one that there is none."""
    return IdentityMatch(guard.source, None) if isinstance(guard, (ArrayMatch, TypeMatch)) and at(guard.source) is None else guard


def _may_be_input(guard: Guard, at: Callable[[Source], Any]) -> bool:
    """Whether what a guard is about may become an input, so that the guard is not needed."""
    if isinstance(guard, SameObject):
        return all(isinstance(at(source), (np.ndarray, tuple)) for source in (guard.source, guard.other))
    if isinstance(guard, LengthMatch):
        return holds_numbers(at(guard.source))
    if isinstance(guard, IdentityMatch):
        return type(guard.expected) is type(at(guard.source)) is bool
    return isinstance(guard, EqualsMatch) and type(guard.expected) in _INPUTS


def _any_differs(guards: Sequence[EqualsMatch], args: Tuple, kwargs: Mapping[str, Any]) -> bool:
    """Whether a number that one of these guards is about is another one now; one that is not there any more does not count.

    The diagnosis of a program ends where an array has another shape, so it may not have come to these guards.
    """
    at = _reader(args, kwargs)
    for guard in guards:
        with contextlib.suppress(AttributeError, LookupError, TypeError):
            if not guard.holds(at):
                return True
    return False
