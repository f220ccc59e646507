"""Training steps in every combination of optimizer, option and dtype, compiled as a whole and eagerly, compared after each step.

``python -m tests.training.step_grid --backend numpy --optimizers SGD,Adam --hooks none,WeightDecay --dtypes f,e,d`` prints for each
combination what became of the step (whole, in parts, or eager), how often it was captured, and each difference; then totals.
"""
from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import sys
import time
import traceback
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from dy2static import config, to_static  # before Chainer

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
import chainer  # noqa: E402
import numpy as np  # noqa: E402
from against_eager import Picture, Values  # noqa: E402
from step_options import OPTIMIZERS, OPTIONS, STEPS, World  # noqa: E402

from dy2static.errors import FallbackWarning  # noqa: E402

#: The step before which a snapshot is taken, and how many follow it.
SNAPSHOT, RESUMED = 7, 5

#: How a float is shown.
_FLOAT = re.compile(r"-?\d+\.\d+(e[-+]\d+)?")

#: Per dtype character, how far results of native code may be apart, relative and absolute, after one step.
CLOSE = {"e": (2e-2, 4e-3), "f": (1e-4, 1e-5), "d": (1e-8, 1e-10)}


class Combination(NamedTuple):
    """What is trained, and in which dtype."""

    optimizer: str
    option: str
    dtype: str

    def __str__(self) -> str:
        return " ".join(self)


class Report(NamedTuple):
    """What became of a combination.

    kind: whole, parts or eager.  cuts, captures, late: of these, how many; late are captures in the last quarter of the steps.  host: nodes
    that call Python.  reasons: of cuts and calls that ran eagerly.  problems: lines that say where eager and compiled differ.
    """

    name: Combination
    kind: str
    cuts: int
    host: int
    captures: int
    late: int
    reasons: Tuple[str, ...]
    problems: Tuple[str, ...]

    def __str__(self) -> str:
        cuts = f" with {self.cuts} cuts" if self.cuts else ""
        late = f" ({self.late} late)" if self.late else ""
        found = f"  {len(self.problems)} DIFFERENCES" if self.problems else ""
        return f"{str(self.name):40} {self.kind}{cuts}, {self.host} host nodes, {self.captures} captures{late}{found}"


class Run:
    """Steps of one world, with what could be seen after each."""

    def __init__(self, name: Combination, compile: Callable):
        np.random.seed(3)
        self.name, self.option = name, OPTIONS[name.option]
        self.world = World(name.optimizer, self.option, name.dtype)
        self.step = compile(self.option.step(self.world))
        self.seen: List[Dict[str, Any]] = []
        self.random = np.random.get_state()

    def go(self, steps: Sequence[int], after: Callable = lambda: None) -> None:
        """Take these steps, with random numbers of this run's own."""
        np.random.set_state(self.random)
        for k in steps:
            self.option.between(self.world, k)
            self.seen.append(self._observed(self.world.batch(k, self.option)))
            after()
        self.random = np.random.get_state()

    def _observed(self, batch: Tuple[np.ndarray, ...]) -> Dict[str, Any]:
        result = error = None
        dtype = chainer.using_config("dtype", self.world.dtype)
        with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(io.StringIO()) as out, dtype:
            warnings.simplefilter("always")
            try:
                result = self.step(*batch)
            except (Exception, KeyboardInterrupt) as raised:
                error = type(raised).__name__, re.sub(r"axis \d", "axis", str(raised))      # labels index a transposed array eagerly
        # which operation meets what is not finite first depends on the order of the gradients: see docs/limitations.md
        said = sorted({(w.category.__name__, "" if w.category is RuntimeWarning else str(w.message)) for w in warned
                       if not issubclass(w.category, FallbackWarning)})
        kind, keys, position, has_gauss, gauss = np.random.get_state()
        world = self.world
        params = {name: (param.grad_var is None, param.grad) for name, param in world.model.namedparams()}
        return {"error": error, "warnings": tuple(said), "output": out.getvalue(),
                "random": (hash(keys.tobytes()), position, has_gauss, gauss), "batch": Picture().of(batch),
                "all": Picture().of([result, world.model, world.optimizer, world.log]), "grads": Picture().of(params)}

    def snapshot(self) -> Tuple[bytes, bytes]:
        """What Chainer's serializers save of the model and the optimizer."""
        found = []
        for target in (self.world.model, self.world.optimizer):
            file = io.BytesIO()
            chainer.serializers.save_npz(file, target, compression=False)
            found.append(file.getvalue())
        return found[0], found[1]

    def load(self, saved: Tuple[bytes, bytes]) -> None:
        """Become what was saved."""
        for target, content in zip((self.world.model, self.world.optimizer), saved):
            chainer.serializers.load_npz(io.BytesIO(content), target)


def snapshots(name: Combination, compile: Callable) -> Tuple[List[List[Dict[str, Any]]], List[Any]]:
    """The steps after a snapshot: both parts eager, compiled then eager, eager then compiled; and the first of the snapshots."""
    found, saved = [], []
    for before, behind in ((_same, _same), (compile, _same), (_same, compile)):
        first, second = Run(name, before), Run(name, behind)
        first.go(range(SNAPSHOT))
        saved.append(first.snapshot())
        second.load(saved[-1])
        second.go(range(SNAPSHOT, SNAPSHOT + RESUMED))
        found.append(second.seen)
    return found, saved


def _same(function: Callable) -> Callable:
    return function


def compare(name: Combination, backend: str = "numpy", steps: int = STEPS, resume: bool = True, **options: Any) -> Report:
    """Run a combination both ways."""
    made, captures = [], []

    def compile(function: Callable) -> Callable:
        made.append(to_static(function, backend=backend, **options))
        return made[-1]
    eager, compiled = Run(name, _same), Run(name, compile)
    eager.go(range(steps))
    compiled.go(range(steps), lambda: captures.append(made[0].stats()["captures"]))
    exact = backend == "numpy"
    problems = differences(eager.seen, compiled.seen, exact)
    if resume and OPTIONS[name.option].form != "uninitialised":
        found, _ = snapshots(name, compile)
        problems += [f"compiled, resumed eagerly: {line}" for line in differences(found[0], found[1], exact)]
        problems += [f"eager, resumed compiled: {line}" for line in differences(found[0], found[2], exact)]
    return _report(name, made[0], captures, problems)


def _report(name: Combination, static: Any, captures: List[int], problems: List[str]) -> Report:
    stats = static.stats()
    reasons = [*map(str, static.dispatcher.fallback.refused.values()), *(f"{cut}" for cut in _cuts(static))]
    kind = "eager" if not stats["captures"] else ("parts" if stats["cuts"] else "whole")
    late = captures[-1] - captures[-1 - len(captures) // 4]
    return Report(name, kind, stats.get("cuts", 0), stats.get("host_call", 0), captures[-1], late, tuple(reasons), tuple(problems))


def _cuts(static: Any) -> List[Any]:
    divided = static.dispatcher.in_parts.divided
    return [] if divided is None else divided.parts.known.found


def differences(eager: List[Dict], compiled: List[Dict], exact: bool) -> List[str]:
    """Lines that say where the steps of two runs differ: those of the first step that does."""
    for k, (a, b) in enumerate(zip(eager, compiled)):
        found = [f"step {k}: {line}" for key in a for line in _compare(a[key], b[key], key, exact, 1 + k)]
        if found:
            return found
    return []


def _compare(a: Any, b: Any, path: str, exact: bool, times: int) -> List[str]:
    if type(a) is tuple and type(b) is tuple and len(a) == len(b):
        named = a[0] if a and isinstance(a[0], str) else ""
        return [line for i, (x, y) in enumerate(zip(a, b)) for line in _compare(x, y, f"{path}.{named}{i}", exact, times)]
    if isinstance(a, Values) and isinstance(b, Values) and a.array.shape == b.array.shape and a.array.dtype == b.array.dtype:
        return _unequal(a.array, b.array, path, exact, times)
    if not exact and type(a) is str and _FLOAT.fullmatch(a) and type(b) is str and _FLOAT.fullmatch(b):
        return _unequal(np.array(a, "f4"), np.array(b, "f4"), path, exact, times)
    return [] if a == b else [f"{path}: eager {a!r:.200}, compiled {b!r:.200}"]


def _bits(array: np.ndarray) -> bytes:
    """What must be equal: every bit, but for the sign and payload of NaN, which follow from the order of operands."""
    return (np.where(np.isnan(array), array.dtype.type(np.nan), array) if array.dtype.kind == "f" else array).tobytes()


def _unequal(a: np.ndarray, b: np.ndarray, path: str, exact: bool, times: int) -> List[str]:
    if _bits(a) == _bits(b):
        return []
    if exact or a.dtype.char not in CLOSE:
        zeros = "a zero has another sign" if np.array_equal(a, b, equal_nan=a.dtype.kind == "f") else "bits"
        return [f"{path}: {zeros}: eager {a.ravel()[:4]}, compiled {b.ravel()[:4]}"]
    rtol, atol = CLOSE[a.dtype.char]
    same = np.allclose(a, b, rtol=rtol * times, atol=atol * times, equal_nan=True)
    return [] if same else [f"{path}: eager {a.ravel()[:4]}, compiled {b.ravel()[:4]}"]


# --- the program ----------------------------------------------------------------------------------------------------------

def combinations(optimizers: Sequence[str], options: Sequence[str], dtypes: Sequence[str]) -> List[Combination]:
    """All of these with each other."""
    return [Combination(optimizer, option, dtype) for optimizer in optimizers for option in options for dtype in dtypes]


def _named(text: str, known: Sequence[str]) -> List[str]:
    """The names in a text with commas, or all."""
    found = [name for name in text.split(",") if name] or list(known)
    unknown = set(found) - set(known)
    if unknown:
        raise SystemExit(f"no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return found


def totals(reports: Sequence[Report], seconds: float) -> str:
    """What a run found, in some lines."""
    kinds = {kind: sum(report.kind == kind for report in reports) for kind in ("whole", "parts", "eager")}
    differ = sum(bool(report.problems) for report in reports)
    reasons: Dict[str, int] = {}
    for report in reports:
        for reason in report.reasons:
            reasons[reason] = reasons.get(reason, 0) + 1
    lines = [_row(option, [report for report in reports if report.name.option == option])
             for option in dict.fromkeys(report.name.option for report in reports)]
    lines += [f"{len(reports)} combinations in {seconds:.0f} s: {kinds}, {differ} differ, "
             f"{sum(report.late > 0 for report in reports)} captured late"]
    return "\n".join(lines + [f"  {count:5} {reason}" for reason, count in sorted(reasons.items(), key=lambda item: -item[1])])


def _row(option: str, reports: Sequence[Report]) -> str:
    """What became of one option, over all optimizers and dtypes."""
    kinds = [f"{kind} {count}" for kind in ("whole", "parts", "eager") if (count := sum(r.kind == kind for r in reports))]
    differ = [str(report.name) for report in reports if report.problems]
    found = f"{len(differ)} differ, {differ[0]} first" if differ else "equal"
    return (f"{option:20} {', '.join(kinds):20} cuts {max(r.cuts for r in reports)}, host nodes {max(r.host for r in reports)}, "
            f"captures {max(r.captures for r in reports)}, late {max(r.late for r in reports)}; {found}")


def main() -> int:
    """Run what the command line names; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default="numpy", choices=("numpy", "c", "auto"))
    parser.add_argument("--optimizers", default="", help=", ".join(OPTIMIZERS))
    parser.add_argument("--hooks", default="", help="options: " + ", ".join(OPTIONS))
    parser.add_argument("--dtypes", default="f", help="e, f and d are float16, float32 and float64")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--no-resume", action="store_true", help="without snapshots")
    parser.add_argument("--most", type=int, default=3, help="how many differences of one combination are shown")
    given = parser.parse_args()
    config.BACKGROUND.value = 0
    start, reports = time.time(), []
    for name in combinations(_named(given.optimizers, list(OPTIMIZERS)), _named(given.hooks, list(OPTIONS)), _named(given.dtypes, "fed")):
        try:
            report = compare(name, given.backend, given.steps, not given.no_resume)
        except Exception:
            report = Report(name, "eager", 0, 0, 0, 0, (), (traceback.format_exc(),))
        reports.append(report)
        print("\n".join([str(report), *(f"    {line}" for line in report.problems[:given.most])]), flush=True)
    print(totals(reports, time.time() - start))
    return int(any(report.problems for report in reports))


if __name__ == "__main__":
    sys.exit(main())
