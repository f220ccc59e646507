"""Steps of training of the models in tests/models, eager and compiled, in the steady state.

    python benchmarks/zoo.py [PART OF A NAME ...] [--seconds 3] [--backend auto] [--profile] [--write]

Both run in one process, in turns; what counts is the fastest run of each step, by wall or processor time.  A step is what
the tests train with: data, forward, backward, the update by the optimizer, and what each model does besides.

``--write`` puts the table into docs/performance.md; ``--profile`` shows where the time of the compiled functions goes.
"""
import argparse
import contextlib
import datetime
import io
import pathlib
import random
import sys
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import dy2static  # noqa: E402  (before chainer)
import numpy as np  # noqa: E402
from models.zoo import ZOO  # noqa: E402

WARM = 12                   # calls of each program before it is timed: the eleventh begins to make native code of it
PATIENCE = 60               # seconds to wait for that
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- begin models -->\n", "<!-- end models -->"


class Run:
    """One model, eager or compiled."""

    def __init__(self, entry, backend=None):
        self.entry, self.statics = entry, []

        def compile(target):
            made = dy2static.to_static(target, backend=backend)
            self.statics.append(made)
            return made
        random.seed(3)
        np.random.seed(3)
        self.step, _ = entry.make((lambda target: target) if backend is None else compile)
        self.best = [float("inf")] * entry.steps

    def cycle(self):
        """Time each of the steps once."""
        for k in range(self.entry.steps):
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                began = time.perf_counter(), time.process_time()
                self.step(k)
                spent = time.perf_counter() - began[0], time.process_time() - began[1]
                self.best[k] = min(self.best[k], *spent)

    def warm(self, count):
        """Run without taking the time."""
        for _ in range(count):
            self.cycle()
        self.best = [float("inf")] * self.entry.steps

    @property
    def seconds(self):
        """Per step, on average."""
        return sum(self.best) / len(self.best)


def measure(entry, backend, seconds):
    """Eager and compiled."""
    eager, compiled = Run(entry), Run(entry, backend)
    eager.warm(1)
    compiled.warm(WARM)
    until = time.perf_counter() + PATIENCE
    while any(dispatcher.tiers.is_warming(program) for dispatcher in [static_of(made).dispatcher for made in compiled.statics]
              for program in dispatcher.programs) \
            and time.perf_counter() < until:
        compiled.warm(1)
    until = time.perf_counter() + seconds
    rounds = 0
    while rounds < 3 or time.perf_counter() < until:
        eager.cycle()
        compiled.cycle()
        rounds += 1
    return eager, compiled


def main(arguments=None):
    """Measure, print, and write if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--seconds", type=float, default=3, help="for each model")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    options = parser.parse_args(arguments)
    rows = []
    print(f"{'model':<45} {'eager, µs':>12} {'compiled, µs':>13} {'ratio':>7}")
    for name, entry in ZOO.items():
        if options.parts and not any(part.lower() in name.lower() for part in options.parts):
            continue
        eager, compiled = measure(entry, options.backend, options.seconds)
        rows.append((name, 1e6 * eager.seconds, 1e6 * compiled.seconds))
        print("{:<45} {:>12,.0f} {:>13,.0f} {:>7.2f}".format(*rows[-1], rows[-1][1] / rows[-1][2]), flush=True)
        if options.profile:
            show_profile(compiled)
    if options.write:
        write(rows)
    return rows


def show_profile(run):
    """Where the compiled functions spend their time."""
    with contextlib.ExitStack() as stack:
        profiles = [stack.enter_context(static_of(made).profile()) for made in run.statics]
        run.warm(5)
    print(*profiles, sep="\n\n")


def static_of(made):
    """The compiled function: what was made, or the method of a Link."""
    if hasattr(made, "profile"):
        return made
    return next(vars(type(made))[name] for name in ("__call__", "forward") if name in vars(type(made)))


def write(rows):
    """Put the table into the page."""
    lines = [f"Measured on {datetime.date.today()}, Python {sys.version.split()[0]}, NumPy {np.__version__}.", "",
             "| model | eager, µs | compiled, µs | eager / compiled |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {eager:,.0f} | {compiled:,.0f} | {eager / compiled:.2f} |" for name, eager, compiled in rows]
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text("".join([before, BEGIN, *[line + "\n" for line in lines], END, after]), encoding="utf-8")


if __name__ == "__main__":
    main()
