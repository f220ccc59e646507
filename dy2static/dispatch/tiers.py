"""Which backends the programs of a function run on: with "auto", NumPy first, and native code when it has been made beside."""
from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any, Callable, Generator, List, Mapping, MutableMapping, Optional, Sequence, Tuple, TypeVar

from .. import config
from ..backends.base import Backend
from ..backends.registry import BACKENDS, backend_for
from ..errors import InternalError
from ..options import Options
from ..pipeline import build, ours
from ..program.assemble import assemble
from ..program.backward import BackwardCompilation, Target
from ..program.recipe import Recipe
from ..runtime.budget import CaptureBudget
from ..runtime.cache import Cache
from ..runtime.profile import Profile
from ..runtime.program import MISS, Program
from ..runtime.segment import Segment

T = TypeVar("T")

#: Work in steps.  What is given on the way is None, or has a method ``ready()`` that tells whether going on need not wait.
Steps = Generator[Any, None, T]

#: The backends of "auto": what a program runs on at first, and what it is made again for.
_AUTO = "numpy", "c"


def finished(steps: Steps[T]) -> T:
    """What the work gives in the end, waiting where that must be."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class Tiers:
    """The policy of one function: its programs in ``programs`` are still to be made again for another backend.

    told: is called with the reason where that cannot be.
    """

    def __init__(self, options: Options, cache: Cache, budget: CaptureBudget, lock: Any,
                 told: Callable[[str], None]):
        self._options, self._cache, self._budget, self._lock, self._told = options, cache, budget, lock, told
        self._becoming: MutableMapping[Program, Becoming] = weakref.WeakKeyDictionary()

    @property
    def first(self) -> Backend:
        """The backend of new programs."""
        name = self._options.backend_now
        return BACKENDS[_AUTO[0] if name == "auto" else name]

    def add(self, program: Program) -> None:
        """Add a program.  With the backend "auto" it is compiled to machine code after many calls."""
        if self._options.backend_now == "auto":
            backend = backend_for(program.recipe.outcome.device, BACKENDS[_AUTO[1]])
            self._becoming[program] = Becoming(program.recipe.made_for(Target(backend)))

    def is_warming(self, program: Program) -> bool:
        """Whether a program is still to be made again."""
        return program in self._becoming

    @property
    def is_coming(self) -> bool:
        """Whether a program is being made again."""
        return any(becoming.has_begun for becoming in list(self._becoming.values()))

    def call_of(self, program: Program) -> Callable[..., Any]:
        """What to call for a program."""
        if program not in self._becoming:
            return program.call
        return WarmingCall(program, config.NATIVE_AFTER.value, self._hot)

    def with_clocks(self, program: Program, profile: Profile) -> Program:
        """The program with the clocks of a profile, for the backend that it ends on."""
        becoming = self._becoming.get(program)
        recipe = program.recipe if becoming is None else becoming.recipe
        return build(recipe.made_for(Target(recipe.target.backend, profile)))

    def _hot(self, call: "WarmingCall") -> None:
        """The program has been called often: it becomes another one, as soon as that has been made."""
        wait = not config.BACKGROUND.value
        if not self._lock.acquire(blocking=wait):
            return                                      # another thread is at it, or captures
        try:
            program = call.program
            becoming = self._becoming.get(program)
            if becoming is None:
                return                                  # another thread was faster
            try:
                made = becoming.advance(program, wait)
            except MemoryError:                         # the call can do without, and another one begins again
                return
            except InternalError as error:
                del self._becoming[program]
                if config.VERIFY.value:
                    raise
                self._told(f"it does not become native code: {error.args[0]} (please report it)")
                return
            if made is not None:
                del self._becoming[program]
                call.program = made = replace(made, profiler=program.profiler)
                self._cache.exchange(program, made)
                self._cache.prefer(made.call)
                self._budget.paid(program)
        finally:
            self._lock.release()


class Becoming:
    """A program that is made again by its ``recipe``, in steps between its calls."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        self._steps: Optional[Steps[Program]] = None
        self._pending: Any = None

    @property
    def has_begun(self) -> bool:
        """Whether the program has been called often enough for that."""
        return self._steps is not None

    def advance(self, program: Program, wait: bool) -> Optional[Program]:
        """Do one step; gives the new program, or None where it is still on its way."""
        if self._steps is None:
            self._steps = _again(self.recipe, program.segments)
        if self._steps.gi_running:                      # a handler of a signal has interrupted a step, and calls the function
            return None
        try:
            if wait:
                return finished(self._steps)
            while self._pending is None or self._pending.ready():
                self._pending = next(self._steps)
                if self._pending is None:
                    break                               # enough work for one call
        except StopIteration as end:
            made: Program = end.value
            return made
        except BaseException:                           # the user has interrupted it: the next call begins again
            self._steps = self._pending = None
            raise
        return None


def _again(recipe: Recipe, before: Sequence[Segment]) -> Steps[Program]:
    """The program of a recipe, with all the backward programs that these segments have had so far."""
    with ours(recipe.outcome):
        forward = recipe.start()
        # the plans are of the same values; but a forward from the disk needs none, and its segments know where backwards are kept
        after = [Segment(segment.name, segment.planned, recipe.target) for segment in before]
        yield from _backwards_again(list(zip(before, after)))
        yield forward
        program = assemble(recipe, forward.finish())
        for segment, made in zip(program.segments, after):
            segment.backward.update(made.backward)
        return program


def _backwards_again(segments: Sequence[Tuple[Segment, Segment]]) -> Steps[None]:
    """Make the backward programs of the first of each two segments for the other one, too, whose plan is of the same values."""
    begun = []
    for before, after in segments:
        for key in list(before.backward):
            yield None
            begun.append((before.backward[key], after.backward, key, BackwardCompilation(after, *key)))
    inside: List[Tuple[Segment, Segment]] = []
    for known, programs, key, compilation in begun:
        yield compilation
        made = programs[key] = compilation.finish()
        inside += [(known.again, made.again)] if known.again is not None and made.again is not None else []
    if inside:
        yield from _backwards_again(inside)


class WarmingCall:
    """Called in place of a program; after ``left`` calls, each asks ``hot(self)`` to put another one in its place."""

    __slots__ = ("program", "left", "hot")

    def __init__(self, program: Program, left: int, hot: Callable[["WarmingCall"], None]):
        self.program, self.left, self.hot = program, left, hot

    def __call__(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        if self.left <= 0:
            self.hot(self)
        result = self.program.call(args, kwargs)
        if result is not MISS:
            self.left -= 1
        return result
