"""Random sessions: programs that are called again and again while classes, modules, numbers and libraries change.

A session is the text of two modules and a list of steps, each a change of the world or a call.  `run` takes the steps
in two worlds at once, one eager and one compiled, and compares everything that can be seen of each call.

``python -m tests.session_programs --seeds 0:500 --backend numpy|c|auto|eager`` prints totals, and for each difference a
script that shows it with as few steps as possible.
"""
from __future__ import annotations

import argparse
import faulthandler
import os
import pickle
import random
import re
import sys
import tempfile
import time
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from dy2static import config  # before Chainer

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))      # as in the tests
import breaks  # noqa: E402
import session_class_pieces  # noqa: E402
import session_function_pieces  # noqa: E402
import session_library_pieces  # noqa: E402
import session_pieces  # noqa: E402
import session_state_pieces  # noqa: E402
import session_worlds  # noqa: E402

#: What all modules of a session begin with.
HEADER = """\
import abc, collections, contextlib, contextvars, copy, dataclasses, enum, functools, itertools, json, logging, math, operator
import os, random, string, sys, threading, time, warnings
import chainer, numpy as np
import chainer.functions as F
import chainer.links as L
"""

_SMALL = ("0", "1", "2", "3", "-1", "0.5", "2.0", "5")
_INTS = ("1", "2", "3", "4", "5", "0", "-1"), ("7", "100", "127", "128", "200", "-200", "256", "40000", "70000", "-70000", "2**31", "2**40",
                                             "2**63", "2**64", "-2**31 - 1", "-129", "16777217", "True")
_FLOATS = ("0.5", "1.5", "2.0", "3.0", "-1.0", "0.25"), ("0.0", "-0.0", "1e5", "65520.0", "1e39", "-1e39", "1e-46", "1e300", "1e16", "0.1",
                                                        "float('nan')", "float('inf')", "7.0")
_WIDE = ("7", "100", "200", "-200", "40000", "70000", "-70000", "2**31", "-2**31 - 1", "2**40", "2**63", "2**64", "1e5", "1e39", "-1e39",
         "1e-46", "1e300", "-0.0", "0.0", "1.0", "3.0", "0.1", "1e16", "2.5", "float('nan')", "float('inf')", "True", "False",
         "np.float32(1.5)", "np.float64(2.5)", "np.int8(3)", "np.int64(70000)", "256", "-129", "65504", "65520.0", "16777217")
_VALUES = ("{e} + 1", "a + {e}", "a * {e}", "{e} - a", "a / {e}", "a // {e}", "a % {e}", "a ** {e}", "np.maximum(a, {e})",
           "np.where(a > 1, {e}, a)", "a > {e}", "h.array * {e}", "h.array + {e}", "{e} / h.array", "h.array.sum() * {e}",
           "np.full(2, {e})", "np.array([{e}, 1])", "(lambda v: (v, type(v).__name__))({e})", "f'{{{e}}}'", "np.float32(1.5) * {e}",
           "{e} * 10 + 7", "{e} == 1", "{e} is True", "[1, 2, 3][:{e}]", "math.copysign(1, {e})", "1 / {e}", "{e} // 2", "{e} % 3",
           "round({e}, 1)", "-{e}", "abs({e})", "({e}) ** 2", "bool({e})", "not {e}", "int({e})", "float({e})", "{e} == {e}",
           "min({e}, 5)", "isinstance({e}, int)", "str({e})", "[{e}, a.dtype.type(1) + {e}]", "np.clip(a, 0, {e})", "np.add(a, {e})",
           "a[0] + {e}", "{e} and 3", "a.astype('f') - {e}", "h.array.astype('e') * {e}", "a == {e}", "np.sqrt({e})", "np.int32(5) + {e}",
           "np.multiply({e}, [1, 2])", "{e} if h.array.sum() > 0 else 1", "a & {e}", "a << {e}", "np.power(a, {e})", "np.exp({e})", "hash({e})")
_USES = ("r = {v}", "r = {v}", "r = {v}", "h = h * {e}", "h = h + {e}", "h = h - {e}", "h = {e} / (h * h + 1)", "h = h ** {e}",
         "h = {e} * F.tanh(h)", "h = F.sin(h) * {e}", "h = F.clip(h, -1.0, float({e}))", "h = F.leaky_relu(h, {e})",
         "h = h * 2 if {e} > 1 else h", "h = F.tanh(h) if {e} else h", "for i in range(int({e}) % 3): h = h * 2",
         "h = F.where(h.array > {e}, h, -h)", "h = h * np.float32({e})", "h = F.scale(h, chainer.Variable(np.array({e}, h.dtype)))",
         "h = h / {e}", "h = F.maximum(h, h * {e})", "r = F.sum(h) * {e}", "r = [h * {e}, {v}]", "r = {{'x': {v}, 'y': {e}}}")
_WITHIN = ("chainer.using_config('debug', True)", "chainer.using_config('debug', True)", "chainer.using_config('train', False)",
           "chainer.no_backprop_mode()", "chainer.using_config('type_check', False)", "chainer.using_config('enable_backprop', False)",
           "np.errstate(all='ignore')", "np.errstate(divide='raise')", "chainer.using_config('user_k', 2)")
_GENERAL = ("!chainer.config.debug = True", "!chainer.config.debug = False", "!chainer.config.debug = False", "f = copy.deepcopy(f)",
            "!chainer.config.train = False", "!chainer.config.type_check = False", "!add_function_hook()", "!remove_function_hooks()",
            "!gc.collect()", "!chainer.config.enable_backprop = False", "!chainer.config.enable_backprop = True")


class Piece(NamedTuple):
    """One ingredient of programs."""

    name: str
    tags: Tuple[str, ...]
    definitions: str
    body: str
    changes: Tuple[str, ...]


class Step(NamedTuple):
    """One step of a session.  piece: the number of the piece it belongs to, -1 for none; order: of the gradients."""

    kind: str
    text: str
    piece: int = -1
    order: int = 0
    within: str = ""


def _read(text: str) -> Dict[str, Piece]:
    found = {}
    for part in text.split("\n=== ")[1:]:
        head, _, rest = part.partition("\n")
        name, *tags = head.split()
        definitions, body, changes = (block.strip("\n") for block in (rest + "\n").split("---\n"))
        found[name] = Piece(name, tuple(tags), definitions, body, tuple(changes.splitlines()))
    return found


PIECES = _read("".join([pieces.TEXT for pieces in (
    session_pieces, session_class_pieces, session_function_pieces, session_library_pieces, session_state_pieces)])
    + (session_state_pieces.MATCHES if sys.version_info >= (3, 10) else ""))
SPECIALS = [[part.strip() for part in line.split(" | ", 4)] for line in session_pieces.SPECIALS.strip().splitlines()]


class Session:
    """The texts of two modules, and steps; equal seeds give equal sessions.

    only: the pieces to choose from, by name or tag.  broken: how often there are breaks (see `breaks`).
    """

    def __init__(self, seed: int, only: Sequence[str] = (), broken: float = 0):
        self.seed, self.random = seed, random.Random(seed)
        known = [p for p in PIECES.values() if not only or p.name in only or set(only) & set(p.tags)]
        count = min(self.random.choice((1, 1, 1, 2, 2, 2, 3)), len(known))
        self.pieces = self.random.sample(known, count)
        self.names = tuple(piece.name for piece in self.pieces)
        self.style = self.pick(_INTS, _INTS, _FLOATS, (_SMALL, _WIDE))
        self.width = 0.1                                # how often numbers are out of the ordinary
        self.moving = self.pick(0.1, 0.4, 0.8)          # how often arguments are new
        self.definitions: Dict[str, List[str]] = {"main": [], "lib": []}
        self.body: List[str] = []
        self.changes: List[Tuple[int, str]] = []
        for number, piece in enumerate(self.pieces):
            self._add(number, piece)
        self.how = self.pick("function", "function", "decorated", "class", "link", "method")
        self.texts = ["'a'", "'a'", "'b'", "''", *[f"'batch{i}'" for i in range(3)]]
        self.steps = self._steps()
        results = ", ".join(["h", *[f"r_{i}" for i in range(count)]])
        if self.how in ("function", "decorated"):
            head = ["def f(x, n=1, t='a', a=None):", "    h = x"]
            tail = [f"    return {results}"]
        else:
            head = ["class Model(chainer.Chain):", "    def __init__(self):", "        super().__init__()", "        with self.init_scope():",
                    "            self.w = chainer.Parameter(np.array([0.5, 1.5, -1.0], 'f'))", "        self.calls = 0", "",
                    "    def forward(self, x, n=1, t='a', a=None):", "        h = x * self.w if x.shape[-1:] == (3,) else x",
                    *["        self.calls += 1"] * self.chance(0.3)]
            tail = [f"        return {results}"]
        indent = "" if len(tail[0]) - len(tail[0].lstrip()) == 4 else "    "
        self.main = "\n".join([HEADER, "import session_lib", *self.definitions["main"], "", *head, *[indent + b for b in self.body], *tail, ""])
        self.lib = "\n".join([HEADER, "import session_main", *self.definitions["lib"], ""])
        if broken:
            names = f"from breaks import {', '.join(breaks.NAMES)}\n"
            self.main, self.lib = (names + breaks.insert(text, f"{seed} {len(text)}", broken) for text in (self.main, self.lib))

    def step_names(self, number: int) -> str:
        """The pieces of the changes before a step, for telling one kind of difference from another."""
        pieces = [self.names[step.piece] if step.piece >= 0 else step.text for step in self.steps[:max(number, 0)] if step.kind == "change"]
        return ", ".join(dict.fromkeys(pieces)) or ", ".join(self.names)

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, p):
        return self.random.random() < p

    # --- texts --------------------------------------------------------------------------------------------------------

    def _number(self):
        small, wide = self.style
        return self.pick(*wide) if self.chance(self.width) else self.pick(*small)

    def _value(self, e):
        return self.pick(*_VALUES).format(e=e)

    def _fill(self, text: str, number: int, special: Optional[List[str]] = None) -> str:
        """A text of the table with all that is open in it chosen."""
        def choose(found):
            what = found.group(1)
            if what.startswith("use:"):
                e = what[4:]
                return self.pick(*_USES).format(e=e, v=self._value(e))
            if what.startswith("use_value:"):
                return self._value(what[10:])
            if what == "num":
                return self._number()
            if what == "small":
                return self.pick(*_SMALL)
            if what.startswith("special"):
                return f"\0{what}\0"
            return self.pick(*what.split("|"))

        before = None
        while before != text:
            before, text = text, re.sub(r"<<((?:(?!<<|>>).)*)>>", choose, text)
        if special is not None:
            name, params, one, other, use = special
            made = {"special": f"def {name}({params}): return {one}", "special_new": f"{name} = lambda {params}: {other}",
                    "special_name": name, "special_use": use,
                    "special_base": self.pick("pass", f"def {name}({params}): return {other}")}
            text = re.sub("\0(.*?)\0", lambda found: made[found.group(1)], text)
        return re.sub(r"_k\b", f"_{number}", text)

    def _add(self, number: int, piece: Piece) -> None:
        home = self.pick("main", "main", "lib")
        special = self.pick(*SPECIALS)
        if "<<special" in piece.definitions and self.chance(0.3):
            special = [special[0], *special[1:]]
        names = {"SELF": f"session_{home}", "OTHER": "session_lib" if home == "main" else "session_main"}

        def fill(text):
            return re.sub(r"\b(SELF|OTHER)\b", lambda found: names[found.group(1)], self._fill(text, number, special))

        self.definitions[home].append(fill(piece.definitions))
        body = ["r = None", *fill(piece.body).splitlines()]
        part = f"part_{number}"
        if home == "main" and self.chance(0.4):
            call = [*body, f"r_{number} = r"]
        else:
            self.definitions[home] += [f"def {part}(h, n, t, a):", *["    " + line for line in body], "    return h, r", ""]
            how = self.pick("module", "from", "inner", "inner_from") if home == "lib" else "plain"
            if how == "from":
                self.definitions["main"].append(f"from session_lib import {part}")
            call = {"inner": ["import session_lib as inner"], "inner_from": [f"from session_lib import {part} as inner"]}.get(how, [])
            name = {"module": f"session_lib.{part}", "inner": f"inner.{part}", "inner_from": "inner"}.get(how, part)
            call = [*call, f"h, r_{number} = {name}(h, n, t, a)"]
        self.body += ["    " + line for line in self._wrapped(number, call)]
        other = "lib" if home == "main" else "main"
        for change in piece.changes:
            self.changes.append((number, re.sub(r"\bOTHER\b", other, re.sub(r"\bM\.", f"{home}.", change))))
        self.specials = {**getattr(self, "specials", {}), number: special}
        if part in "".join(call) and self.chance(0.3):
            self.changes += [(number, f"{home}.{part} = lambda h, n, t, a: (h * 2, 'new')"), (number, f"del {home}.{part}")]

    def _wrapped(self, number: int, call: List[str]) -> List[str]:
        inside = ["    " + line for line in call]
        r = f"r_{number}"
        if self.chance(0.75):
            return [f"{r} = None", *call]
        return self.pick(
            [f"{r} = None", f"if float(h.array.sum()) > {self.pick('0', '1', '-1', '4')}:", *inside],
            [f"{r} = None", "for _ in range(2):", *inside],
            [f"{r} = None", "try:", *inside, "except (ValueError, ArithmeticError, LookupError, TypeError) as error:",
             f"    {r} = type(error).__name__, str(error)"],
            [f"{r} = None", "if n:", *inside])

    # --- steps --------------------------------------------------------------------------------------------------------

    def _steps(self) -> List[Step]:
        """Calls of a few kinds again and again, with changes between them."""
        self.n, self.t, self.array, self.values, self.dtype, self.shape = self._number(), "'a'", self._array(), 0, "f", "2, 3"
        kinds = [self._arguments() for _ in range(self.pick(1, 2, 2, 3))]
        steps: List[Step] = [self._call(kinds[0]), self._call(self.pick(*kinds))]
        last = kinds[0]
        for i in range(self.random.randint(5, 10)):
            self.width = 0.1 if i < 3 else 0.5
            if self.chance(0.35):
                steps.append(self._change())
                steps += [self._change()] * self.chance(0.3)
            if self.chance(self.moving):
                last = self._arguments() if self.chance(self.moving) else self.pick(*kinds)
            steps.append(self._call(last))
        return steps

    def _change(self) -> Step:
        if not self.changes or self.chance(0.1):
            return Step("change", re.sub(r"_k\b", f"_{self.random.randrange(len(self.names))}", self.pick(*_GENERAL)))
        number, change = self.pick(*self.changes)
        return Step("change", self._fill(change, number, self.specials[number]), number)

    def _array(self) -> str:
        dtype = self.pick("b", "b", "B", "h", "i", "l", "e", "f", "f", "d", "?")
        return f"A([1, 0, 1], {dtype!r})" if dtype == "?" else f"A([{self.pick('1, 100, 3', '1, 2, 3', '100, 0, 7')}], {dtype!r})"

    def _arguments(self) -> str:
        """Arguments that differ from the last ones in a thing or two."""
        self.n = self._number() if self.chance(0.7) else self.n
        if self.chance(0.15):
            self.t = self.pick(*self.texts)
        if self.chance(0.1):
            self.array = self._array()
        if self.chance(0.2):
            self.values = self.pick(0, 0, 1, 2, 3)
        if self.chance(0.06):
            self.shape = self.pick("2, 3", "1, 3", "3,", "4, 3", "0, 3", "2, 2", "")
        if self.chance(0.05):
            self.dtype = self.pick("f", "f", "d", "e")
        make = self.pick(*["V"] * 24, "C", "X")
        return f"{make}(({self.shape}), {self.dtype!r}, {self.values}), {self.n}, {self.t}, {self.array}"

    def _call(self, arguments: str) -> Step:
        order = self.pick(0, 0, 0, 0, 1, 2, 2, 2, -1)
        within = self.pick(*_WITHIN) if self.chance(0.06) else ""
        within = re.sub(r"_k\b", f"_{self.random.randrange(len(self.names))}", within)
        return Step("call", arguments, -1, order, within)


class Shown(NamedTuple):
    """A session by its texts alone."""

    main: str
    lib: str
    how: str
    steps: Tuple[Step, ...]


def script(session, steps: Sequence[Step], backend: str) -> str:
    """A Python text that shows a difference."""
    lines = ["from tests.session_programs import replay, Step", f"MAIN = '''{session.main}'''", f"LIB = '''{session.lib}'''",
             "STEPS = ["] + [f"    {step!r}," for step in steps] + ["]", f"replay(MAIN, LIB, {session.how!r}, STEPS, {backend!r})"]
    return "\n".join(lines) + "\n"


def replay(main: str, lib: str, how: str, steps: Sequence[Step], backend: str) -> Optional[session_worlds.Difference]:
    """Run a session that is given by its texts, and print where it differs."""
    found = session_worlds.run(Shown(main, lib, how, tuple(steps)), backend)
    print(found or "no difference")
    return found


def without_lines(session: Session, steps: Sequence[Step], backend: str, found) -> Shown:
    """The session with the lines that are not needed for a difference taken out of its texts."""
    kept = Shown(session.main, session.lib, session.how, tuple(steps))
    for module in ("main", "lib"):
        lines = getattr(kept, module).splitlines()
        size = max(1, len(lines) // 2)
        while size:
            i = 0
            while i < len(lines):
                fewer = lines[:i] + lines[i + size:]
                shown = kept._replace(**{module: "\n".join(fewer) + "\n"})
                now = _try(shown, backend)
                if now is not None and now.kind == found.kind and now.number == found.number:
                    lines, kept = fewer, shown
                else:
                    i += size
            size //= 2
    return kept


def _try(shown: Shown, backend: str):
    try:
        return session_worlds.run(shown, backend)
    except (SyntaxError, ValueError):
        return None


def _numbers(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last)) if last else range(int(first), int(first) + 1)


class Report(NamedTuple):
    """What became of one session."""

    seed: int
    names: Tuple[str, ...]
    kind: str = ""
    key: str = ""
    text: str = ""


def look_at(seed: int, backend: str, only: Sequence[str], known: Dict[str, int], most: int, counts: Dict[str, int],
            broken: float = 0) -> Report:
    """Run one session; what differs is shown with as few steps and lines as possible, ``most`` times per kind."""
    session = Session(seed, only, broken)
    found = session_worlds.run(session, backend, counts=counts)
    if found is None:
        return Report(seed, session.names)
    rough = f"{found.kind} {session.step_names(found.number)}"
    known[rough] = known.get(rough, 0) + 1
    if known[rough] > most:
        return Report(seed, session.names, found.kind, rough)
    steps, found = session_worlds.reduced(session, backend, found)
    shown = without_lines(session, steps, backend, found)
    pieces = [session.names[int(k)] for k in sorted(set(re.findall(r"_(\d)\b", shown.main + shown.lib))) if int(k) < len(session.names)]
    changes = [re.sub(r"_\d+\b", "_k", step.text) for step in steps if step.kind == "change"]
    key = f"{found.kind}: {', '.join(pieces)} / {'; '.join(changes)}"
    return Report(seed, session.names, found.kind, key, f"{found}\n{script(shown, steps, backend)}")


def run_all(seeds: Sequence[int], backend: str, only: Sequence[str], most: int, chunk: int = 100, broken: float = 0) -> List[Report]:
    """The reports of many sessions; children run them, so that one that dies takes nothing along."""
    reports: List[Report] = []
    known: Dict[str, int] = {}
    totals: Dict[str, int] = {}
    start, left = time.time(), list(seeds)
    while left:
        part, left = left[:chunk], left[chunk:]
        counts: Dict[str, int] = {}
        for report, learned, counts in _in_child(part, backend, only, most, known, broken):
            reports.append(report)
            known = learned
            part = part[1:]
            if report.text:
                print(f"=== seed {report.seed} {report.key}\n{report.text}", flush=True)
        for name, count in counts.items():
            totals[name] = totals.get(name, 0) + count
        if part:                                        # the child died of the next one
            reports.append(Report(part[0], (), "died", "died"))
            print(f"=== seed {part[0]} ends the process", flush=True)
            left = part[1:] + left
    seconds = time.time() - start
    bad = [report for report in reports if report.kind]
    print(f"{len(reports)} sessions, {len(bad)} differ, {len(reports) / seconds:.1f} a second; {totals}")
    for kind in sorted({report.kind for report in bad}):
        print(f"  {kind}: {sum(report.kind == kind for report in bad)}")
    for name in PIECES:
        there = [report for report in reports if name in report.names]
        differ = [report for report in there if report.kind]
        if differ:
            print(f"  {name}: {len(differ)} of {len(there)}")
    return reports


def _in_child(part: Sequence[int], backend: str, only: Sequence[str], most: int, known: Dict[str, int], broken: float):
    """Give the reports of as many of some sessions as a child process survives, with what is known and counted then."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        faulthandler.enable()
        counts: Dict[str, int] = {}
        with os.fdopen(writing, "wb") as pipe:
            for seed in part:
                faulthandler.dump_traceback_later(300, exit=True)
                report = look_at(seed, backend, only, known, most, counts, broken)
                pickle.dump((report, known, counts), pipe)
                pipe.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        while True:
            try:
                yield pickle.load(pipe)
            except EOFError:
                break
    os.waitpid(child, 0)


def main() -> int:
    """Run what the command line names; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=_numbers, default=range(100), help="first:last")
    parser.add_argument("--backend", default="numpy", choices=("numpy", "c", "auto", "eager"))
    parser.add_argument("--only", default="", help="pieces, by name or tag, with commas")
    parser.add_argument("--most", type=int, default=2, help="how often a difference of one kind is shown")
    parser.add_argument("--broken", type=float, default=0, help="how often there are breaks")
    given = parser.parse_args()
    config.VERIFY.value = 1
    config.CACHE_DIR.value = config.CACHE_DIR.value or os.path.join(tempfile.gettempdir(), "session_libraries")
    reports = run_all(given.seeds, given.backend, [name for name in given.only.split(",") if name], given.most, broken=given.broken)
    return int(any(report.kind for report in reports))


if __name__ == "__main__":
    sys.exit(main())
