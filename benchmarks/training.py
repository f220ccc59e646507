"""Whole steps of training, as one compiled function each, beside the same steps of JAX and PyTorch.

    python benchmarks/training.py --install                  # JAX and PyTorch, each in an environment of its own
    python benchmarks/training.py [--cells W2,P300] [--columns "whole;JAX"] [--rounds 15] [--seconds 0.15]
    python benchmarks/training.py --memory                   # peak memory of W11 with Adam, a process each

A step is forward, cleargrads, backward and the update of all parameters.  Each framework has a process of its own; in a
round each of them runs for a moment while the others wait, and ratios are formed within rounds.  One thread, on the processor.
What is not installed is left out.
"""
import argparse
import contextlib
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Tuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import environments  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402

WRONG = 1e-3                        # relative difference to eager Chainer from which numbers are called wrong
NATIVE = {"DY2STATIC_BACKEND": "c"}
OURS = "whole"


class Column(NamedTuple):
    """A column: what a process is asked for.  The fastest of the modes that compute the right numbers counts."""

    title: str
    framework: str
    modes: Tuple[str, ...]


COLUMNS = (
    Column("Chainer", "chainer", ("eager",)),
    Column("model compiled", "chainer", ("model",)),
    Column(OURS, "chainer", ("whole",)),
    Column("JAX", "jax", ("jit", "jit_vmap", "jit_scan")),
    Column("PyTorch", "torch", ("eager", "eager_fused")),
    Column("torch.compile", "torch", ("compile_fused", "compile_foreach", "compile_single")),
)


def main(arguments=None):
    options = parsed(arguments)
    if options.worker:
        return work(options)
    if options.install:
        print(environments.install(["jax", "torch"], options.environments) or "installed")
        return None
    found = [column for column in COLUMNS if python_of(column, options) and is_wanted(column.title, options.columns, ";")]
    from steps import workloads
    cells = [cell for cell in workloads.CELLS if is_wanted(cell, options.cells, ",")]
    rows = {}
    for cell in cells:
        rows[cell] = (peaks if options.memory else times)(cell, found, options)
        print(cell, *(f"{title}: {entry}" for title, entry in rows[cell].items()), sep="\n    ", flush=True)
    print("\n" + (memory_table if options.memory else time_table)(rows))
    return rows


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="make the environments of the peers, and stop")
    parser.add_argument("--environments", default=str(HERE / "environments"), help="the folder of the environments")
    parser.add_argument("--cells", default="", help="beginnings of their names, with commas; all if empty")
    parser.add_argument("--columns", default="", help="beginnings of their titles, with semicolons; all if empty")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.15, help="of each mode in a round")
    parser.add_argument("--small", action="store_true", help="sizes for tests")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of times")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def is_wanted(name, wanted, separator):
    return not wanted or any(name.startswith(part.strip()) for part in wanted.split(separator))


def python_of(column, options):
    """The Python of a column, or None."""
    environment = "" if column.framework == "chainer" else column.framework
    return environments.python_of(environments.Column("", "", (), environment), options.environments)


# ---- the process of a mode

def work(options):
    """Make the case of one mode, tell of its first steps, and run blocks as lines on the standard input ask for them."""
    measure.limit_threads(1)
    answers = os.fdopen(os.dup(1), "w")                     # what frameworks print goes to the errors
    os.dup2(2, 1)

    def tell(**record):
        answers.write(json.dumps(record) + "\n")
        answers.flush()
    framework_name, mode = options.worker.split(".")
    try:
        case = made(framework_name, mode, options, tell)
    except Exception as error:                              # any framework may fail in any way: that is a result
        tell(error=f"{type(error).__name__}: {error}"[:300])
        return
    if case is not None:
        for line in sys.stdin:
            tell(us=round(1e6 * least(case, float(line)), 3))
        tell(**counts(case))


def made(framework_name, mode, options, tell):
    """The case, after its first steps; None where that framework has no such mode of the cell."""
    framework = importlib.import_module("steps.in_" + framework_name)
    from steps import workloads
    make = framework.CELLS.makers.get(options.cells, {}).get(mode)
    if make is None:
        tell(error="")
        return None
    framework.begin(mode)
    before = measure.forget_peak()
    case = make(workloads.arrays(options.cells, options.small), options.cells, mode)
    check, first = [], None
    for i in range(max(case.checked, 20 if options.memory else 4)):
        started = time.perf_counter()
        handle = case.step()
        if case.wait is not None:
            case.wait(handle)
        first = time.perf_counter() - started if first is None else first
        if i < case.checked:
            check += case.check(handle)
    tell(check=check, first_s=round(first, 3), version=framework.VERSION, peak_mib=round((measure.peak() - before) / 1024, 1))
    return case


def least(case, seconds):
    """The least seconds per step, by wall or processor time, of several groups of steps."""
    step, wait = case.step, case.wait or (lambda handle: None)
    count, found = 1, []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or not found:
        began = time.perf_counter(), time.process_time()
        for _ in range(count):
            wait(step())
        spent = time.perf_counter() - began[0], time.process_time() - began[1]
        found.append(min(spent) / count)
        count = max(1, min(1000, round(0.01 / max(min(found), 1e-7))))
    return min(found)


def counts(case):
    """Of a compiled case: its captures, calls that ran eagerly, and lines that ran as Python."""
    if case.compiled is None:
        return {}
    stats = case.compiled.stats()
    return {name: stats.get(name, 0) for name in ("captures", "fallbacks", "cuts")}


# ---- all processes of a cell

class Worker:
    """A process that runs one mode of a cell when it is asked to."""

    def __init__(self, column, mode, cell, options):
        self.column, self.mode = column, mode
        command = [python_of(column, options), str(HERE / "training.py"), "--worker", f"{column.framework}.{mode}", "--cells", cell,
                   *(["--small"] if options.small else []), *(["--memory"] if options.memory else [])]
        self.errors = open(os.devnull, "w")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env={**os.environ, **NATIVE, "PYTHONPATH": ""})
        self.begun, self.blocks, self.ended = self.answer(), [], {}

    def answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"exit status {self.process.wait()}"}

    def block(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        self.blocks.append(self.answer()["us"])

    def end(self):
        """What the process tells at last."""
        self.process.stdin.close()
        with contextlib.suppress(json.JSONDecodeError):
            self.ended = json.loads(self.process.stdout.readline() or "{}")
        self.process.wait()
        self.errors.close()


def started(cell, columns, options):
    """The processes of a cell that have made their cases, and why others could not."""
    workers, failed = [], {}
    for column in columns:
        for mode in column.modes:
            worker = Worker(column, mode, cell, options)
            if "error" in worker.begun:
                worker.end()
                if worker.begun["error"]:
                    failed.setdefault(column.title, worker.begun["error"].splitlines()[0][:100])
            else:
                workers.append(worker)
    return workers, failed


def times(cell, columns, options):
    """{title: Entry or why there is none}: rounds in which one process runs at a time."""
    workers, failed = started(cell, columns, options)
    for turn in range(options.rounds if workers else 0):
        k = turn % len(workers)
        for worker in workers[k:] + workers[:k]:
            worker.block(options.seconds)
    for worker in workers:
        worker.end()
    expected = next((worker.begun["check"] for worker in workers if worker.column is COLUMNS[0]), None)
    ours = next((worker.blocks for worker in workers if worker.column.title == OURS), None)
    entries = dict(failed)
    for worker in workers:
        begun = worker.begun
        entry = Entry(worker.mode, min(worker.blocks), ratio(worker.blocks, ours), report._difference(expected, begun["check"]),
                      begun["first_s"], worker.ended)
        kept = entries.get(worker.column.title)
        if entry.difference < WRONG and (not isinstance(kept, Entry) or entry.us < kept.us):
            entries[worker.column.title] = entry
        elif kept is None:
            entries[worker.column.title] = f"wrong: differs by {entry.difference:.0e}"
    return {column.title: entries[column.title] for column in columns if column.title in entries}


def peaks(cell, columns, options):
    """{title: MiB that the steps added to what the process held before the model was made}"""
    workers, failed = started(cell, columns, options)
    for worker in workers:
        worker.end()
    found = dict(failed)
    for worker in workers:
        found[worker.column.title] = min(worker.begun["peak_mib"], found.get(worker.column.title, math.inf))
    return found


class Entry(NamedTuple):
    """A column's figures of a cell; ratio: its time as a multiple of ours, the median of those of the rounds."""

    mode: str
    us: float
    ratio: float
    difference: float
    first_s: float
    counts: dict


def ratio(blocks, ours):
    return statistics.median(a / b for a, b in zip(blocks, ours)) if ours else math.nan


def time_table(rows):
    """Microseconds per step, and as a multiple of the step compiled whole."""
    titles = [column.title for column in COLUMNS if any(column.title in row for row in rows.values())]

    def shown(entry):
        if entry is None or isinstance(entry, str):
            return "" if entry is None else "wrong" if entry.startswith("wrong") else "no"
        return f"{report.microseconds(entry.us)} ({entry.ratio:.2f})"
    return report.table(["", *titles], [[cell, *(shown(row.get(title)) for title in titles)] for cell, row in rows.items()])


def memory_table(rows):
    titles = [column.title for column in COLUMNS if any(column.title in row for row in rows.values())]
    return report.table(["", *titles], [[cell, *(str(row.get(title, "")) for title in titles)] for cell, row in rows.items()])


if __name__ == "__main__":
    main()
