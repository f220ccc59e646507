"""Rounds over processes: each mode of a cell in a process of its own, of which one runs at a time; ratios are formed within rounds.

`training.py` and `networks.py` say which columns and cells there are, and call `run`.  A package of cases (`steps`, `nets`,
`further`, `recent`, `twins`) has ``workloads`` (``CELLS`` and ``arrays(cell, small)``) and a file ``in_<framework>`` for each
framework (``CELLS``, ``VERSION``, ``begin``).
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
MEMORY_STEPS = 20                   # after so many steps the peak of memory is read


class Column(NamedTuple):
    """A column: what a process is asked for.  The fastest of the modes that compute the right numbers counts.

    environment: the folder of its Python; "" is the one that runs.
    """

    title: str
    framework: str
    modes: Tuple[str, ...]
    environment: str = ""


class Entry(NamedTuple):
    """A column's figures of a cell; ratio: its time as a multiple of ours, the median of those of the rounds."""

    mode: str
    us: float
    ratio: float
    difference: float
    first_s: float
    counts: dict


def run(description, packages, columns, ours, arguments=None):
    """Measure the cells of these packages; gives {cell: {title: figures}}.  The first column tells which numbers are right."""
    options = parsed(description, arguments)
    if options.install:
        peers = sorted({column.environment for column in columns} - {""})
        print(environments.install(peers, options.environments) or "installed")
        return None
    found = [column for column in columns if python_of(column, options) and is_wanted(column.title, options.columns, ";")]
    rows = {}
    for package, cell in cells_of(packages):
        if is_wanted(cell, options.cells, ","):
            begun = started(package, cell, found, options)
            rows[cell] = peaks(*begun) if options.memory else times(*begun, columns, ours, options)
            print(cell, *(f"{title}: {entry}" for title, entry in rows[cell].items()), sep="\n    ", flush=True)
    titles = [column.title for column in columns if any(column.title in row for row in rows.values())]
    shown = str if options.memory else time_of
    lines = [[cell, *(shown(row.get(title, "")) for title in titles)] for cell, row in rows.items()]
    print("\n" + report.table(["", *titles], lines))
    return rows


def cells_of(packages):
    return [(package, cell) for package in packages for cell in importlib.import_module(package + ".workloads").CELLS]


def parsed(description, arguments):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="make the environments of the peers, and stop")
    parser.add_argument("--environments", default=str(HERE / "environments"), help="the folder of the environments")
    parser.add_argument("--cells", default="", help="beginnings of their names, with commas; all if empty")
    parser.add_argument("--columns", default="", help="beginnings of their titles, with semicolons; all if empty")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.15, help="of each mode in a round")
    parser.add_argument("--small", action="store_true", help="sizes for tests")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of times")
    return parser.parse_args(arguments)


def is_wanted(name, wanted, separator):
    return not wanted or any(name.startswith(part.strip()) for part in wanted.split(separator))


def python_of(column, options):
    """The Python of a column, or None."""
    return environments.python_of(environments.Column("", "", (), column.environment), options.environments)


# ---- the process of a mode

def work(package, framework_name, mode, cell, threads, small, memory):
    """Make the case of one mode, tell of its first steps, and run blocks as lines on the standard input ask for them."""
    measure.limit_threads(threads)
    answers = os.fdopen(os.dup(1), "w")                     # what frameworks print goes to the errors
    os.dup2(2, 1)

    def tell(**record):
        answers.write(json.dumps(record) + "\n")
        answers.flush()
    try:
        case = made(package, framework_name, mode, cell, small, memory, tell)
    except Exception as error:                              # any framework may fail in any way: that is a result
        tell(error=f"{type(error).__name__}: {error}"[:300])
        return
    if case is not None:
        for line in sys.stdin:
            tell(us=round(1e6 * least(case, float(line), threads), 3))
        tell(**counts(case))


def made(package, framework_name, mode, cell, small, memory, tell):
    """The case, after its first steps; None where that framework has no such mode of the cell."""
    framework = importlib.import_module(f"{package}.in_{framework_name}")
    workloads = importlib.import_module(package + ".workloads")
    make = framework.CELLS.makers.get(cell, {}).get(mode)
    if make is None:
        tell(error="")
        return None
    framework.begin(mode)
    before = measure.forget_peak()
    case = make(workloads.arrays(cell, small), cell, mode)
    check, first = [], None
    for i in range(max(case.checked, MEMORY_STEPS if memory else 4)):
        started = time.perf_counter()
        handle = case.step()
        if case.wait is not None:
            case.wait(handle)
        first = time.perf_counter() - started if first is None else first
        if i < case.checked:
            check += [float(number) for number in case.check(handle)]
    tell(check=check, first_s=round(first, 3), version=framework.VERSION, peak_mib=round((measure.peak() - before) / 1024, 1))
    return case


def least(case, seconds, threads=1):
    """The least seconds per step of several groups of steps: by wall time or, on one thread, processor time."""
    step, wait = case.step, case.wait or (lambda handle: None)
    count, found = 1, []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or not found:
        began = time.perf_counter(), time.process_time()
        for _ in range(count):
            wait(step())
        wall, processor = time.perf_counter() - began[0], time.process_time() - began[1]
        found.append((min(wall, processor) if threads == 1 else wall) / count)
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

    def __init__(self, package, column, mode, cell, options):
        self.column, self.mode = column, mode
        asked = json.dumps([package, column.framework, mode, cell, options.threads, options.small, options.memory])
        self.errors = open(os.devnull, "w")
        self.process = subprocess.Popen([python_of(column, options), str(HERE / "rounds.py"), asked], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env={**os.environ, **NATIVE, **measure.thread_variables(options.threads), "PYTHONPATH": ""})
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


def started(package, cell, columns, options):
    """The processes of a cell that have made their cases, and why others could not."""
    workers, failed = [], {}
    for column in columns:
        for mode in column.modes:
            worker = Worker(package, column, mode, cell, options)
            if "error" in worker.begun:
                worker.end()
                if worker.begun["error"]:
                    failed.setdefault(column.title, worker.begun["error"].splitlines()[0][:100])
            else:
                workers.append(worker)
    return workers, failed


def times(workers, failed, columns, title_of_ours, options):
    """{title: Entry or why there is none}: rounds in which one process runs at a time."""
    for turn in range(options.rounds if workers else 0):
        k = turn % len(workers)
        for worker in workers[k:] + workers[:k]:
            worker.block(options.seconds)
    for worker in workers:
        worker.end()
    expected = next((worker.begun["check"] for worker in workers if worker.column == columns[0]), None)
    ours = next((worker.blocks for worker in workers if worker.column.title == title_of_ours), None)
    entries = dict(failed)
    for worker in workers:
        begun = worker.begun
        entry = Entry(worker.mode, min(worker.blocks), ratio(worker.blocks, ours), report.difference(expected, begun["check"]),
                      begun["first_s"], worker.ended)
        kept = entries.get(worker.column.title)
        if entry.difference < WRONG and (not isinstance(kept, Entry) or entry.us < kept.us):
            entries[worker.column.title] = entry
        elif kept is None:
            entries[worker.column.title] = f"wrong: differs by {entry.difference:.0e}"
    return {column.title: entries[column.title] for column in columns if column.title in entries}


def peaks(workers, failed):
    """{title: MiB that the steps added to what the process held before the model was made}"""
    for worker in workers:
        worker.end()
    found = dict(failed)
    for worker in workers:
        kept = found.get(worker.column.title)
        found[worker.column.title] = min(worker.begun["peak_mib"], kept if isinstance(kept, float) else math.inf)
    return found


def ratio(blocks, ours):
    return statistics.median(a / b for a, b in zip(blocks, ours)) if ours else math.nan


def time_of(entry):
    """Microseconds per step, and as a multiple of ours."""
    if isinstance(entry, str):
        return "wrong" if entry.startswith("wrong") else "no" if entry else ""
    return f"{report.microseconds(entry.us)} ({entry.ratio:.2f})"


if __name__ == "__main__":
    work(*json.loads(sys.argv[1]))
