"""Captures with free sizes, and with varying texts as inputs: tried, and tried again without those that cannot be."""
from __future__ import annotations

import types
from typing import Any, Dict, Mapping, Tuple

from .. import config, pipeline
from ..backends.base import Backend
from ..capture.dynamic_shapes import FreeSizes, Restrictions, SizeHistory
from ..capture.ragged_lists import sequences_in
from ..diagnostics.changes import Varying
from ..errors import InternalError
from ..heap.aborts import CaptureAborted
from ..heap.global_state_guard import undisturbed
from ..input_spec import free_axes
from ..ir.size_needed import SizeNeeded
from ..options import Options
from ..runtime.ledger import Bill
from ..runtime.program import Program

#: After so many tries an axis that is in the way is not free, without a try for some of its sizes; after twice as many, none is.
_MOST_TRIES = 12


class Captures:
    """How the calls of one function are captured, by what was learned of its earlier calls.

    varying: numbers and texts that are inputs.  observed: what functions gave that the host runs.
    """

    def __init__(self, function: types.FunctionType, options: Options, varying: Varying, observed: Dict[Tuple, Tuple]):
        self.function, self.options, self.varying, self.observed = function, options, varying, observed
        self._history = SizeHistory()
        self._wanted = free_axes(options.input_spec, positional(function))

    def clear(self) -> None:
        """Forget the sizes of earlier calls."""
        self._history.clear()

    def begin_with(self, other: Captures) -> None:
        """Begin with what another part of the same function has learned."""
        self._history.leaves_orders |= other._history.leaves_orders

    def leave_orders(self) -> bool:
        """Let captures stop where items are put into an order by sizes; False if that cannot help."""
        return self._history.leave_orders()

    def learned(self) -> Dict[str, Any]:
        """What is known of sizes now, for `restore`."""
        return self._history.learned()

    def restore(self, learned: Mapping[str, Any]) -> None:
        """Know again what was known then."""
        self._history.restore(learned)

    def program(self, backend: Backend, args: Tuple, kwargs: Mapping[str, Any], bill: Bill) -> Program:
        """A program for these arguments; with free sizes where those differ from call to call, if that can be.

        bill: of what this takes; when that is too much, there is no try with free sizes any more.
        Raises `CaptureAborted`, and what the user's code raises.
        """
        restricted = Restrictions()
        members = sequences_in(args, kwargs)
        tries = 0
        while True:
            sizes = FreeSizes(self._history, restricted, self.options.dynamic, self._wanted, members)
            try:
                program = self._with_sizes(sizes, backend, args, kwargs)
            except (CaptureAborted, SizeNeeded, Exception) as error:    # of any kind: user code meets sizes without numbers
                if not sizes.free or getattr(error, "at_once", False) or isinstance(error, InternalError) and config.VERIFY.value:
                    if getattr(error, "again", False):
                        self._history.met(sizes)
                    raise
                tries += 1
                if tries >= 2 * _MOST_TRIES or bill.is_too_much:
                    restricted.fixed.update(sizes.free)
                else:
                    sizes.restrict(error, restricted, tries >= _MOST_TRIES or _wants_numbers(error))
                continue
            self._history.add(sizes)
            return program

    def _with_sizes(self, sizes: FreeSizes, backend: Backend, args: Tuple, kwargs: Mapping[str, Any]) -> Program:
        """A program in which varying texts are inputs; if that cannot be, one for these very texts."""
        try:
            return self._once(sizes, backend, args, kwargs)
        except (CaptureAborted, Exception) as error:    # of any kind: what is not converted wants a text, not what stands for it
            if not self.varying.texts or getattr(error, "final", False):
                raise
            failed = error
        with self.varying.without_texts():
            try:
                return self._once(sizes, backend, args, kwargs)
            except (CaptureAborted, Exception):         # for another reason
                raise failed from None

    def _once(self, sizes: FreeSizes, backend: Backend, args: Tuple, kwargs: Mapping[str, Any], tries: int = 4) -> Program:
        try:
            return undisturbed(lambda: pipeline.compile_call(self.function, args, kwargs, self.varying, self.observed, self.options,
                                                             sizes, backend))
        except SystemError as error:
            # Python 3.11 counts the depth of trees per process: other threads that parse something confuse it
            if tries == 0 or "recursion depth mismatch" not in str(error):
                raise
        return self._once(sizes, backend, args, kwargs, tries - 1)


def _wants_numbers(error: BaseException) -> bool:
    """Whether a capture with free sizes stopped where sizes with a higher least number would not do."""
    if isinstance(error, CaptureAborted):
        return bool(error.sizes) or error.final and not error.again
    return not isinstance(error, SizeNeeded)


def positional(function: types.FunctionType) -> Tuple[str, ...]:
    """The names of the positional parameters."""
    return function.__code__.co_varnames[:function.__code__.co_argcount]
