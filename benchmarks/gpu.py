"""Training steps and inference on a GPU: eager Chainer on CuPy, compiled, PyTorch, torch.compile and JAX.

    python benchmarks/gpu.py [--only mlp,lstm] [--columns "to_static;JAX"] [--seconds 0.5] [--budget 150] [--json FILE] [--tf32]
    python benchmarks/gpu.py --device cpu --sizes small         # tries the program without a GPU; its times mean nothing

A step is forward, backward and the update of all parameters.  The numbers are microseconds per step, launches included: the time of
many steps, after which the process waits for the device.  Processes run one after the other.  Those of one process (a framework, or
a framework with its compiler) measure their columns in alternating blocks; the median counts.  Before that, the losses
and the norm of all parameters after two steps are compared with those of the first column.  All compute in float32, without TF32
(``--tf32``: with it).  What each prints is written as soon as it is measured, so the program may be stopped at any time.
"""
import argparse
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from rounds import HERE, WRONG, Column, is_wanted, python_of

import report
from gpus import workloads

#: The columns of each process.  torch.compile takes longest to compile, so it comes last.
PROCESSES = (
    (Column("Chainer", "chainer", ("eager",)), Column("to_static", "chainer", ("whole",)),
     Column("without graphs", "chainer", ("without_graphs",)), Column("forward only", "chainer", ("model",))),
    (Column("PyTorch", "torch", ("eager_fused",), "torch"),),
    (Column("JAX", "jax", ("jit",), "jax"),),
    (Column("torch.compile", "torch", ("compile_fused",), "torch"),
     Column("reduce-overhead", "torch", ("reduce_overhead_fused",), "torch")),
)
COLUMNS = [column for columns in PROCESSES for column in columns]
WRONG_WITH_TF32 = 2e-2              # relative difference from which numbers are called wrong: TF32 has three digits
PATIENCE = 10                       # seconds that a process may take longer than it should


def main(arguments=None):
    """Measure, print lines and tables; gives {cell: {title: record}}."""
    options = parsed(arguments)
    about, results = begun(options)
    print(f"{about['gpu'] or 'no GPU'}, TF32 {'on' if options.tf32 else 'off'}", flush=True)
    until = time.time() + options.budget
    cells = [cell for cell in workloads.CELLS if is_wanted(cell, options.only, ",")]
    for columns in PROCESSES:
        wanted = [column for column in columns if is_wanted(column.title, options.columns, ";")]
        if wanted:
            for record in measured(wanted, cells, options, until):
                take(record, wanted, results, about, options)
    print("", *dict.fromkeys(about["versions"].values()), "",
          "Microseconds per step, and as a multiple of the first column:", "", table(results, time_of), "",
          "Seconds of the first step, and of the first five:", "", table(results, first_of), sep="\n", flush=True)
    return results


def parsed(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="beginnings of cells, with commas; all if empty")
    parser.add_argument("--columns", default="", help="beginnings of titles, with semicolons; all if empty")
    parser.add_argument("--seconds", type=float, default=0.4, help="how long each column of a cell is measured")
    parser.add_argument("--limit", type=float, default=40, help="seconds that the first steps of a column of a cell may take")
    parser.add_argument("--budget", type=float, default=150, help="seconds after which no cell begins")
    parser.add_argument("--tf32", action="store_true", help="let products and convolutions round to TF32, in all columns")
    parser.add_argument("--json", default="", help="the file of all figures, written after each of them; what is in it is kept")
    parser.add_argument("--sizes", choices=("full", "small"), default="full", help="small: sizes for tests")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: Chainer runs on the stand-in for CuPy")
    parser.add_argument("--environments", default=str(HERE / "environments"),
                        help="the folder of the environments of PyTorch and JAX; what is not there runs in this one")
    return parser.parse_args(arguments)


def begun(options):
    """What is said of all figures, and the figures that the file has for the same GPU, precision and sizes."""
    about = {"gpu": gpu(), "tf32": options.tf32, "sizes": options.sizes, "versions": {}}
    kept = json.loads(Path(options.json).read_text()) if options.json and Path(options.json).exists() else {}
    if any(kept.get(name) != about[name] for name in ("gpu", "tf32", "sizes")):
        kept = {"cells": {}, "versions": {}}
    return {**about, "versions": kept["versions"]}, {cell: kept["cells"].get(cell, {}) for cell in workloads.CELLS}


def gpu():
    """The name of the GPU and the version of its driver, or ""."""
    if shutil.which("nvidia-smi") is None:
        return ""
    asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


# ---- processes

def measured(columns, cells, options, until):
    """The records of a process for these columns.  Where it ends early, another one goes on without the mode that ended it."""
    modes = [mode for column in columns for mode in column.modes]
    left = {cell: list(modes) for cell in cells}
    while any(left.values()) and time.time() < until:
        now = None
        with Process(columns[0], left, options, until) as process:
            for record in process.records():
                if "mode" not in record:
                    yield record
                elif len(record) == 2:
                    now = record
                else:
                    left[record["cell"]].remove(record["mode"])
                    yield record
        if process.status == 0:
            return
        if now is None:
            yield from ({"cell": cell, "mode": mode, "error": f"the process does not begin: {process.said()}"}
                        for cell in cells for mode in left[cell])
            return
        if now["mode"] in left[now["cell"]]:
            left[now["cell"]].remove(now["mode"])
            yield {**now, "error": f"the process ended, status {process.status}: {process.said()}"}


class Process:
    """A process that measures; it is killed if it takes much longer than it should.  status: how it ended."""

    def __init__(self, column, left, options, until):
        asked = {"framework": column.framework, "device": options.device, "tf32": options.tf32,
                 "small": options.sizes == "small", "seconds": options.seconds, "limit": options.limit, "until": until,
                 "cells": [item for item in left.items() if item[1]]}
        self.process = subprocess.Popen([python_of(column, options) or sys.executable, str(HERE / "gpus" / "measuring.py"),
                                         json.dumps(asked)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.errors, self.status = [], None
        self.reader = threading.Thread(target=lambda: self.errors.extend(self.process.stderr))
        self.killer = threading.Timer(until - time.time() + options.limit + PATIENCE, self.process.kill)

    def __enter__(self):
        self.reader.start()
        self.killer.start()
        return self

    def __exit__(self, *error):
        self.killer.cancel()
        if error[0] is not None:
            self.process.kill()
        self.status = self.process.wait()
        self.reader.join()

    def records(self):
        return map(json.loads, self.process.stdout)

    def said(self):
        """The last line of its errors."""
        return (self.errors or [""])[-1].strip()[:300]


# ---- figures

def take(record, columns, results, about, options):
    """Put a record into the results, and print it."""
    if "version" in record:
        about["versions"][columns[0].title] = record["version"]
        return
    title = next(column.title for column in columns if record["mode"] in column.modes)
    row = results[record["cell"]]
    if "error" not in record:
        measured_before = [row[column.title] for column in COLUMNS if "check" in row.get(column.title, {})]
        reference = (measured_before or [record])[0]["check"]
        record["difference"] = report.difference(reference, record["check"])
        if not record["difference"] <= (WRONG_WITH_TF32 if options.tf32 else WRONG):
            record["error"] = f"wrong: differs by {record['difference']:.0e}: {record['check']} instead of {reference}"
    row[title] = record
    print(f"{record['cell']}, {title}: {described(record)}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps({**about, "cells": results}, indent=1))


def described(record):
    """The record in words."""
    parts = [record["error"]] if "error" in record else []
    if "us" in record:
        parts += [f"{report.microseconds(record['us'])} µs", f"first step {record['first_s']:.2f} s",
                  f"first five {record['warm_s']:.2f} s", f"differs by {record['difference']:.0e}"]
        parts += [f"{record[name]} {name}" for name in ("captures", "fallbacks", "cuts") if record.get(name)]
        parts += record["warnings"]
    return "; ".join(parts)


def table(results, shown):
    """A table with a column for each title that was measured."""
    titles = [column.title for column in COLUMNS if any(column.title in row for row in results.values())]
    return report.table(["", *titles], [[cell, *(shown(row, title) for title in titles)] for cell, row in results.items() if row])


def time_of(row, title):
    """Microseconds per step, and as a multiple of those of the first column if it was measured."""
    record = row.get(title, {})
    if "error" in record:
        return "wrong" if record["error"].startswith("wrong") else "no"
    base = row.get(COLUMNS[0].title, {}).get("us")
    ratio = f" ({report.short_ratio(record['us'] / base)})" if record and base else ""
    return report.microseconds(record["us"]) + ratio if record else ""


def first_of(row, title):
    record = row.get(title, {})
    return f"{record['first_s']:.2f}, {record['warm_s']:.2f}" if "us" in record else ""


if __name__ == "__main__":
    main()
