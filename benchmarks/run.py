"""dy2static side by side with Chainer, PyTorch, JAX, TensorFlow and Paddle: the same workloads, weights and losses.

    python benchmarks/run.py --install               # the peers, each in an environment of its own (needs a network)
    python benchmarks/run.py                         # measures on one thread, writes the table, the picture and the figures
    python benchmarks/run.py --threads 2 --rounds 5 --cells W2,W5.train --columns "dy2static, c;JAX"
    python benchmarks/run.py --rounds 2 --seconds 0.4 --patience 1 --minutes 20      # quicker
    python benchmarks/run.py --memory                # only peak memory; a minute
    python benchmarks/run.py --report                # only writes again what has been measured

A peer that is not installed is left out, and the page says so.  Every cell runs in processes of its own, one for each
framework and setting; a round is one pass over all of them, and ratios are formed within a round.  The first
process of a cell starts with empty caches of compiled code, later ones find them filled.  Every run adds to
benchmarks/results/ (--fresh starts over) and writes

    docs/performance.json      what was measured, on what
    docs/performance.md        the tables, between the markers of that page
    docs/performance.svg       the picture (if matplotlib is installed)
"""
import argparse
import itertools
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

import environments
import report
import workloads

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
CACHES = {"DY2STATIC_CACHE_DIR": "dy2static", "TORCHINDUCTOR_CACHE_DIR": "inductor", "JAX_COMPILATION_CACHE_DIR": "jax"}
ALWAYS = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}       # as the others: whatever was compiled is kept
MEMORY_CELLS = ("W5.grad", "W5.train", "W11.grad", "W11.train")
MEMORY_COLUMNS = ("Chainer", "dy2static, numpy", "dy2static, c", "PyTorch")
LONG_CELLS = tuple(cell for cell in workloads.CELLS if cell.endswith(".train"))


class OutOfTime(Exception):
    """The minutes are over."""


def main():
    options = arguments()
    if options.install:
        failed = environments.install(options.peers.split(","), options.environments)
        for peer, words in failed.items():
            print(f"{peer} could not be installed and will be left out: {' '.join(words)}")
        return
    if options.fresh:
        shutil.rmtree(options.results, ignore_errors=True)
    options.results.mkdir(parents=True, exist_ok=True)
    if not options.report:
        for column in missing(options):
            print(f"not installed or not for this CPU, left out: {column.title}")
        if not options.memory or not (options.results / "machine.json").exists():
            write_machine(options)
        try:
            if not options.memory:
                measure(options)
            if options.memory or not options.no_extras:
                measure_memory(options)
            if not options.memory and not options.no_extras:
                measure_long(options)
        except OutOfTime:
            print("the time is over; what is missing is left out")
    publish(options)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="make the environments of the peers, and stop")
    parser.add_argument("--peers", default=",".join(environments.PEERS), help="which, with commas")
    parser.add_argument("--environments", default=str(HERE / "environments"), help="the folder of the environments")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", default="", help="cells (W5.train) or workloads (W5), with commas; all if empty")
    parser.add_argument("--columns", default="", help="beginnings of their titles, with semicolons; all if empty")
    parser.add_argument("--also", action="append", default=[], metavar="PYTHON",
                        help="another Python with Chainer, such as one with another NumPy: two more columns")
    parser.add_argument("--seconds", type=float, default=0.9, help="how long each mode is measured in a round")
    parser.add_argument("--patience", type=float, default=8, help="seconds to wait at most, per process, for a quiet machine")
    parser.add_argument("--timeout", type=float, default=480, help="seconds for one process")
    parser.add_argument("--minutes", type=float, default=math.inf, help="start nothing more after so long, and write what there is")
    parser.add_argument("--small", action="store_true", help="sizes for tests: does everything run?")
    parser.add_argument("--no-extras", action="store_true", help="neither memory nor losses after 100 steps")
    parser.add_argument("--memory", action="store_true", help="only peak memory")
    parser.add_argument("--fresh", action="store_true", help="forget what has been measured")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="where records are collected")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the folder of the page, the picture and the figures")
    options = parser.parse_args()
    if options.small and options.docs == DOCS:
        parser.error("--small measures nothing worth showing: it needs another folder, --docs FOLDER")
    options.until = time.monotonic() + 60 * options.minutes
    return options


def columns(options):
    """The columns that are wanted and installed, with the Python of each."""
    also = [column._replace(title=f"{column.title} ({numpy_of(python)})", environment=python)
            for python in options.also for column in environments.COLUMNS[:5] if column.title in ("Chainer", "dy2static, c")]
    wanted = [name.strip() for name in options.columns.split(";") if name.strip()]
    for column in (*environments.COLUMNS, *also, environments.LIMITS):
        python = column.environment if column in also else environments.python_of(column, options.environments)
        if python and (not wanted or column is environments.BASE or any(column.title.startswith(name) for name in wanted)):
            yield column, python


def missing(options):
    return [c for c in environments.COLUMNS if environments.python_of(c, options.environments) is None]


def numpy_of(python):
    return subprocess.run([python, "-c", "import numpy; print('NumPy', numpy.__version__)"], stdout=subprocess.PIPE,
                          text=True, check=True).stdout.strip()


def cells(options):
    wanted = [name for name in options.cells.split(",") if name]
    return [cell for cell in workloads.CELLS if not wanted or cell in wanted or cell.split(".")[0] in wanted]


def measure(options):
    """All rounds; the order of the processes turns, so that no one always goes first."""
    found = processes(columns(options))
    # of a number of threads measured before, this goes on
    first = 1 + max([record["round"] for record in records(options, "times") if record["threads"] == options.threads], default=-1)
    for turn, cell in itertools.product(range(first, first + options.rounds), cells(options)):
        k = turn % len(found)
        for together, python in found[k:] + found[:k]:
            cache = options.results / "caches" / report.slug(f"{together[0].title} {cell} {options.threads}")
            cold = not cache.exists()
            cache.mkdir(parents=True, exist_ok=True)
            answers = start(options, together, python, cell, cache=cache)
            append(options, "times", [{**answer, "round": turn, "cold": cold} for answer in answers])
            for answer in answers:
                print(f"round {turn}  {cell:<10} {answer['column']:<24} {answer['mode']:<18} {summary(answer)}", flush=True)


def processes(found):
    """The columns in groups that one process can measure side by side: [(columns, Python)]."""
    groups = {}
    for column, python in found:
        groups.setdefault((python, column.framework, str(column.settings)), []).append(column)
    return [(together, key[0]) for key, together in groups.items()]


def measure_memory(options):
    """Peak memory of training, each mode in a process of its own."""
    for cell in cells(options):
        for column, python in columns(options):
            if cell in MEMORY_CELLS and column.title in MEMORY_COLUMNS and sys.platform == "linux":
                append(options, "memory", start(options, [column], python, cell, "--memory"))


def measure_long(options):
    """The losses after 100 steps, eager and compiled."""
    for cell in cells(options):
        for column, python in columns(options):
            if cell in LONG_CELLS and column.title in ("Chainer", "dy2static, numpy", "dy2static, c"):
                append(options, "long", start(options, [column], python, cell, "--steps", "100"))


def start(options, together, python, cell, *further, cache=None):
    """The records of one process of `measure.py` for these columns, each with the column it belongs to."""
    if time.monotonic() > options.until:
        raise OutOfTime
    of_mode = {mode: column.title for column in together for mode in column.modes}
    environment = {**os.environ, **ALWAYS, **together[0].settings, "PYTHONPATH": str(HERE.parent)}
    if cache is not None:
        environment.update({name: str(cache / folder) for name, folder in CACHES.items()})
    command = [python, str(HERE / "measure.py"), "--framework", together[0].framework, "--cell", cell, "--modes", ",".join(of_mode),
               "--seconds", str(options.seconds), "--patience", str(options.patience), "--threads", str(options.threads),
               *(["--small"] if options.small else []), *further]
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=options.timeout)
        answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        error = f"exit status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}" if done.returncode else None
    except subprocess.TimeoutExpired:
        answers, error = [], f"takes more than {options.timeout:.0f} s"
    if error and not answers:
        answers = [{"cell": cell, "framework": together[0].framework, "mode": mode, "error": error} for mode in of_mode]
    return [{**answer, "column": of_mode[answer["mode"]], "threads": options.threads} for answer in answers]


def summary(answer):
    return report.microseconds(report.estimate(answer)[0]) + " µs" if "blocks" in answer else answer["error"].splitlines()[0][:80]


def append(options, kind, answers):
    with open(options.results / f"{kind}.jsonl", "a") as file:
        file.writelines(json.dumps(answer) + "\n" for answer in answers)


def records(options, kind):
    path = options.results / f"{kind}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write_machine(options):
    """What it is measured on and what is measured: kept with the records, the last run's counts."""
    found = {"date": time.strftime("%Y-%m-%d"), "commit": commit(), "processor": processor(), "processors": os.cpu_count(),
             "system": f"{platform.system()} {platform.machine()}", "python": platform.python_version(),
             "left_out": sorted({column.environment or column.title for column in missing(options)})}
    (options.results / "machine.json").write_text(json.dumps(found))


def commit():
    """The commit of this checkout; "+" says that files differ from it, "" that it is none."""
    ask = lambda *command: subprocess.run(["git", *command], cwd=str(HERE), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                          text=True).stdout.strip()
    return ask("rev-parse", "--short", "HEAD") + ("+" if ask("status", "--porcelain", "--untracked-files=no") else "")


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def publish(options):
    """Write the figures, the page and the picture from all records."""
    machine = options.results / "machine.json"
    results = report.results_of(json.loads(machine.read_text()) if machine.exists() else {}, records(options, "times"),
                                records(options, "memory"), records(options, "long"))
    options.docs.mkdir(parents=True, exist_ok=True)
    (options.docs / "performance.json").write_text(report.as_json(results))
    for page in (options.docs / "performance.md", options.docs.parent / "README.md"):
        if page.exists():
            page.write_text(report.fill(page.read_text(), json.loads(report.as_json(results))))     # in the order of the file
            print(f"written: {page}")
    try:
        import picture
    except ImportError:
        print("matplotlib is not installed: the picture is left as it is")
    else:
        picture.draw(results, options.docs / "performance.svg")


if __name__ == "__main__":
    main()
