"""What `profile` gives: where the time of compiled calls went, by the user's lines."""
from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Any, Callable, ContextManager, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..errors import Location
from ..markup import cell, counted, escaped, heading, page_part, table
from .clocks import Clock
from .program import MISS, Program

_now = time.perf_counter_ns


class Record(NamedTuple):
    """What a part of a program took: an operation, or a loop nest of native code that does several at once.

    direction: "forward" or "backward".  operations: their names.  places: the user's lines that they come from.
    native: whether it is native code.  calls: how often it ran.  seconds: all of them together.  share: of all records.
    library: what computes it: "C", "NumPy", "CUDA", "CuPy"; "" for what is in no line.
    """

    direction: str
    operations: Tuple[str, ...]
    places: Tuple[Location, ...]
    native: bool
    calls: int
    seconds: float
    share: float
    library: str


#: What stands for the rest of a call: finding the program, its guards, the Variables of the result, what is stored.
AROUND = "guards, results, writes"


class Profile:
    """Inside its ``with`` block, compiled calls of this thread, and what makes their gradients, take the time of their parts.

    Its string is a table of `records`, the slowest first.  calls: how many were timed; seconds: all of them.
    It may be entered again: the counts go on.  opened: has calls timed in a ``with`` block.
    with_clocks: makes a program again, with the clocks of this profile.
    """

    def __init__(self, name: str, opened: Callable[["Profile"], ContextManager[Any]],
                 with_clocks: Callable[[Program, "Profile"], Program]):
        self._with_clocks = with_clocks
        self.name, self.calls, self._spent = name, 0, 0
        self._opened, self._stack = opened, contextlib.ExitStack()
        self._clocks: List[Clock] = []
        self._timed: Dict[Program, Program] = {}

    def __enter__(self) -> "Profile":
        self._stack.enter_context(self._opened(self))
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    @property
    def seconds(self) -> float:
        """How long the calls took, without their backward."""
        return self._spent * 1e-9

    @property
    def records(self) -> Tuple[Record, ...]:
        """All parts that ran, the slowest first. One record without a line has the remaining time of the calls."""
        found: Dict[Tuple, List[int]] = {}
        for clock in self._clocks:
            for part, calls, spent in clock.read():
                library = clock.libraries[part.native] if part.native or part.places else ""
                entry = found.setdefault((clock.direction, *part, library), [0, 0])
                entry[0] += calls
                entry[1] += spent
        around = self._spent - sum([spent for key, (_, spent) in found.items() if key[0] == "forward"])
        if self.calls:
            found["forward", (AROUND,), (), False, ""] = [self.calls, max(around, 0)]
        total = sum([spent for _, spent in found.values()]) or 1
        records = [Record(*key[:-1], calls, spent * 1e-9, spent / total, key[-1]) for key, (calls, spent) in found.items()]
        return tuple(sorted(records, key=lambda record: -record.seconds))

    def __repr__(self) -> str:
        return f"<profile of {self.name}: {self.calls} calls>"

    def _repr_html_(self) -> str:
        records = self.records
        rows = [[cell(f"{record.share:.1%}", "number"), cell(f"<span class='bar' style='width:{record.share * 120:.0f}px'></span>"),
                 cell(f"{record.calls}", "number"), cell(f"{record.seconds / record.calls * 1e6:,.1f}", "number"),
                 cell(record.direction), cell(record.library),
                 cell(escaped(", ".join(record.operations))), cell(escaped(_places(record.places)))] for record in records]
        return page_part(heading(self._summary(records)),
                         table(("share", "", "calls", "µs each", "", "", "operation", "lines"), rows))

    def __str__(self) -> str:
        records = self.records
        rows = [("share", "calls", "µs each", "", "", "operation", "lines")]
        rows += [(f"{record.share:.1%}", f"{record.calls}", f"{record.seconds / record.calls * 1e6:,.1f}",
                  record.direction, record.library,
                  _shortened(", ".join(record.operations), 48), _places(record.places)) for record in records]
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = ["  ".join(text.rjust(width) if k < 3 else text.ljust(width)
                           for k, (text, width) in enumerate(zip(row, widths))).rstrip() for row in rows]
        return "\n".join([self._summary(records), *lines])

    def _summary(self, records: Sequence[Record]) -> str:
        if not self.calls:
            return f"{self.name}: no compiled call was timed"
        text = f"{self.name}: {counted(self.calls, 'call')} of {self.seconds / self.calls * 1e6:,.1f} µs"
        backward = sum([record.seconds for record in records if record.direction == "backward"])
        runs = sum([clock.runs for clock in self._clocks if clock.direction == "backward"])
        return f"{text}; backward {counted(runs, 'run')} of {backward / runs * 1e6:,.1f} µs" if runs else text

    # --- what compiled calls tell it --------------------------------------------------------------------------------

    def clock(self, direction: str) -> Clock:
        """The clock of one more generated function."""
        clock = Clock(direction)
        self._clocks.append(clock)
        return clock

    def timed(self, program: Program, call: Callable) -> "TimedCall":
        """What to call for a program, in place of ``call``."""
        return TimedCall(self, program, call)

    def version(self, program: Program) -> Program:
        """The program with clocks in it, made when it is first called."""
        if program not in self._timed:
            self._timed[program] = self._with_clocks(program, self)
        return self._timed[program]

    def settle(self) -> None:
        """Wait for devices whose times have not been read."""
        for clock in self._clocks:
            clock.settle()

    def called(self, spent: int) -> None:
        """One more call, of so many nanoseconds."""
        self.calls += 1
        self._spent += spent


class TimedCall:
    """Called in place of a program while its calls are profiled, in the thread that does so."""

    __slots__ = ("profile", "program", "call", "thread", "timed")

    def __init__(self, profile: Profile, program: Program, call: Callable):
        self.profile, self.program, self.call = profile, program, call
        self.thread = threading.get_ident()
        self.timed: Optional[Callable] = None

    def __call__(self, args: Tuple, kwargs: Mapping[str, Any]) -> Any:
        if threading.get_ident() != self.thread:
            return self.call(args, kwargs)
        if self.timed is None:
            if self.program.diagnose(args, kwargs):
                return MISS
            self.timed = self.profile.version(self.program).call
        begin = _now()
        result = self.timed(args, kwargs)
        self.profile.settle()
        if result is not MISS:
            self.profile.called(_now() - begin)
        return result


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[:width - 1] + "…"


def _places(places: Sequence[Location]) -> str:
    """Lines as a reader wants them: ``net.py:12  h = F.relu(x)``, or ``net.py:12, 14, 20``."""
    if len(places) == 1:
        return f"{os.path.basename(places[0].file)}:{places[0].line}  {_shortened(places[0].text().strip(), 60)}"
    files: Dict[str, List[str]] = {}
    for place in places:
        files.setdefault(os.path.basename(place.file), []).append(str(place.line))
    return "; ".join([_shortened(f"{file}:{', '.join(lines)}", 70) for file, lines in files.items()])
