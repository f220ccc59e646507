"""Blocks of user code that are captured as regions, with everything undone that they did."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Mapping, Tuple

from ..heap.aborts import CaptureAborted
from ..heap.locations import error_location
from ..heap.wording import UNKNOWN, names_ours
from ..runtime.raising import raise_again
from ..symbolic.kept_values import kept_values
from ..symbolic.rollback import Snapshot
from .branches import Branch
from .path_splitting import Path, common, number_of
from .protocols import Staging
from .raising import can_be_made, is_in_generator, is_of_user_code, is_raised, parts_of

#: So often a block of a function is captured anew because a decision in it cannot be joined.
_MOST_FORKS = 32

#: So often each call may be that is captured by itself.
_FORKS_OF_CALL = 8


class Blocks:
    """The blocks of one capture's decisions and loops."""

    def __init__(self, staging: Staging):
        self.staging, self.capture = staging, staging.capture

    def branch(self, block: Callable, state: Tuple, before: Snapshot, sides: Mapping[int, bool] = {},
                frame: Any = None) -> Branch:
        """One block, or one side of a fork in it, with everything undone that it did."""
        def ending(*inner: Any) -> Any:
            try:
                return block(*inner)
            except BaseException as error:  # what user code raises in a block is raised by the runs that come there
                if not is_of_user_code(error):
                    raise
                return self.raise_at_run(error)
        with self.staging.region() as nodes:
            results, marks = self.run_block(ending, state, before, sides, frame)
            writes = before.changes()
            values = kept_values(results, tuple(writes.values()))
        branch = Branch(before, nodes, results, writes, marks, values=values)
        before.restore(stays=True)
        return branch

    def run_block(self, block: Callable, state: Tuple, before: Snapshot, sides: Mapping[int, bool] = {},
                  frame: Any = None) -> Tuple[Any, Mapping]:
        """What a block gives, in the present region, which must be new; and the marks of the path through it.

        Where it makes a decision that cannot be joined, the block is captured once for each side, and these are joined.
        before: the state of things at its start.
        """
        frame = object() if frame is None else frame
        replaced = len(self.staging.replaced)
        outer, self.staging.path = self.staging.path, Path(sides, self.staging.path, frame)
        try:
            results = block(*state)
            for note in self.staging.replaced.changed_since(replaced):
                if note.decision is not None and note.decision[0] is self.staging.path:
                    self.capture.abort("a list or dict that depends on a decision on array values is changed", because=note)
            return results, self.staging.path.marks
        except CaptureAborted as stop:
            reason = stop
        finally:
            self.staging.path = outer
        number = number_of(reason, frame, sides)
        while number is not None and self.capture.forks < _MOST_FORKS:
            self.capture.forks += 1
            self.capture.resume()
            self.staging.replaced.forget_from(replaced)
            self.capture.builder.nodes.clear()
            before.restore()
            try:
                then, orelse = [self.branch(block, state, before, {**sides, number: side}, frame) for side in (True, False)]
                return self._join_tails(number, then, orelse, before), then.marks
            except CaptureAborted as stop:
                reason = stop
            number = number_of(reason, frame, sides)
        raise reason

    def apart(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """A call in which decisions that cannot be joined are joined at its end: its nodes stand where it is."""
        capture, before = self.capture, Snapshot(self.capture, (args, tuple(kwargs.values()), function))
        forks, capture.forks = capture.forks, min(capture.forks, _MOST_FORKS - _FORKS_OF_CALL)
        try:
            with self.staging.region() as nodes:
                results, _ = self.run_block(lambda *state: (function(*args, **kwargs),), (), before)
        finally:
            capture.forks = forks
        capture.builder.nodes.extend(nodes)
        return results[0]

    def _join_tails(self, number: int, then: Branch, orelse: Branch, before: Snapshot) -> Tuple:
        """Both sides of a fork, with what they have in common before it."""
        place, predicate, loc = then.marks[number]
        names = common(then.nodes, orelse.nodes, 0, place, self.capture, loc)
        self.capture.builder.nodes.extend(then.nodes[:place])
        self.capture.builder.loc = loc
        sides = [Branch(before, then.nodes[place:], then.results, then.writes, {}, values=then.values),
                 Branch(before, orelse.nodes[place:], orelse.results, orelse.writes, {}, names, orelse.values)]
        return self.staging.joins.join(predicate, sides, before, (), False)

    def raise_at_run(self, error: BaseException) -> None:
        """Let the host raise what this block raises; what was written before has happened by then."""
        if type(error) is RecursionError:
            self.capture.abort("a function calls itself as deep as array values decide", hint="write a loop, or bound the depth "
                               "by a number that is known (`if depth == 0`)", final=True)
        if any(type(part) is str and names_ours(part) for part in error.args):
            # what was refused is a stand-in, not what it stands for
            self.capture.abort(UNKNOWN, of_host=True)
        if isinstance(error, StopIteration) and is_in_generator():
            self.capture.abort("a generator raises StopIteration under a decision on array values", hint="write `return`")
        if not (type(error) is UnboundLocalError or is_raised(error) and can_be_made(error, self.capture.handling)):
            name = type(error).__name__
            self.capture.abort(f"{name}, raised under a decision on array values, cannot be created again at run time")
        self.capture.effects.check_caught(error)
        with self.capture.operands.ending():
            self.capture.effects.store_writes()
            self.capture.host.call(raise_again, parts_of(error, self.capture.handling), {}, (), None, name="raise")
        made = self.capture.builder.nodes[-1]
        made.attrs["call"].within = None        # it stands where the exception was raised, not where that was noticed
        self.capture.builder.nodes[-1] = replace(made, loc=error_location(error))
