"""Measures one cell in one framework; `run.py` starts it in that framework's environment.

    python benchmarks/measure.py --framework chainer --cell W2.train [--modes eager,dy2static] [--seconds 0.9]

Prints one line of JSON per mode:

    cell, framework, mode, version
    error           why this mode cannot do the cell; then nothing else follows
    first_s         seconds of the first call: capture, compilation and run, without imports and without making the model
    check           loss and norm of the gradients in the first steps, or sums over the output
    blocks          [microseconds per call (median), processors that others kept busy, microseconds of processor time per call]
    captures        programs captured in the first calls; recaptures: afterwards; fallbacks: calls that ran eagerly
    peak_mib        with --memory: how far the memory of the process grew above what it held before the model was made

The blocks of the modes alternate, so that all of them see the same machine.
"""
import argparse
import importlib
import json
import os
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--framework", required=True, help="chainer, torch, jax, tensorflow, paddle, limits")
parser.add_argument("--cell", required=True)
parser.add_argument("--modes", default="", help="with commas; all of them if empty")
parser.add_argument("--seconds", type=float, default=0.9, help="how long each mode is measured")
parser.add_argument("--blocks", type=int, default=3)
parser.add_argument("--patience", type=float, default=8, help="how many seconds to wait at most for other processes to be quiet")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--memory", action="store_true", help="measure memory, not time; takes one mode")
parser.add_argument("--steps", type=int, default=0, help="check the loss after so many steps as well, and measure nothing")
parser.add_argument("--small", action="store_true", help="sizes for tests")

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "FLAGS_paddle_num_threads",
                    "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
QUIET = 0.25                # processors that others may use while we measure


def main():
    options = parser.parse_args()
    limit_threads(options.threads)
    answers = os.fdopen(os.dup(1), "w")             # what frameworks print goes to the errors
    os.dup2(2, 1)
    for record in records(options):
        answers.write(json.dumps(record) + "\n")
        answers.flush()


def thread_variables(count):
    """What the environment of a process says for so many threads: NumPy and the frameworks look once, when they are imported."""
    return dict.fromkeys(THREAD_VARIABLES, str(count))


def limit_threads(count):
    """Before NumPy and the frameworks are imported."""
    os.environ.update(thread_variables(count))
    if hasattr(os, "sched_setaffinity") and count < (os.cpu_count() or 1):      # XLA looks at the affinity alone
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", GLOG_minloglevel="2", CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu")


def records(options):
    """One record for each mode of the framework in that cell."""
    framework = importlib.import_module("frameworks.in_" + options.framework)
    import workloads                                # after limit_threads: it imports NumPy

    wanted = [mode for mode in options.modes.split(",") if mode]
    base = {"cell": options.cell, "framework": options.framework, "version": framework.VERSION}
    data = workloads.arrays(options.cell, options.small)
    gate = Gate(options.patience)
    running, done = [], []
    for mode, make in framework.CELLS.makers.get(options.cell, {}).items():
        if wanted and mode not in wanted:
            continue
        record = {**base, "mode": mode}
        done.append(record)
        try:
            before = forget_peak() if options.memory else 0
            case = make(data, options.cell, mode)
            begin(case, record, gate, options.steps)
            if options.memory:
                record["peak_mib"] = round((peak() - before) / 1024, 1)
            elif not options.steps:
                running.append((case, record))
        except Exception as error:                  # any framework may fail in any way: that is a result
            record["error"] = f"{type(error).__name__}: {error}"[:1000]
    for _ in range(options.blocks):
        for case, record in running:
            record.setdefault("blocks", []).append(block(case, options.seconds / options.blocks, gate))
    for case, record in running:
        if case.compiled is not None:
            info = case.compiled.cache_info()
            record.update(recaptures=info.captures - record["captures"], fallbacks=info.fallbacks)
    done += [{**base, "mode": mode, "error": why} for (cell, mode), why in framework.CELLS.cannot.items()
             if cell == options.cell and (not wanted or mode in wanted)]
    return done


def begin(case, record, gate, long):
    """The first calls: how long the very first takes, and what the checked ones and the last of so many compute."""
    gate.wait()
    checks = []
    for i in range(max(long, case.checked, 3)):
        started = time.perf_counter()
        handle = case.step()
        if case.wait is not None:
            case.wait(handle)
        if i == 0:
            record["first_s"] = round(time.perf_counter() - started, 6)
        if i < case.checked or i == long - 1:
            checks += [float(number) for number in case.check(handle)]
    record["check"] = checks
    if case.compiled is not None:
        record["captures"] = case.compiled.cache_info().captures


def block(case, seconds, gate):
    """One entry of ``blocks``; very short calls are timed in groups."""
    step, wait = case.step, case.wait or (lambda handle: None)
    started = time.perf_counter()
    wait(step())
    once = time.perf_counter() - started
    group = 1 if once > 1e-4 else max(1, int(2e-4 / max(once, 1e-7)))
    gate.wait()
    found, others, own = [], Others(), time.process_time()
    end = time.perf_counter() + seconds
    while len(found) < 2 or time.perf_counter() < end:
        started = time.perf_counter()
        for _ in range(group):
            wait(step())
        found.append((time.perf_counter() - started) / group)
    own = (time.process_time() - own) / (len(found) * group)
    return [round(1e6 * statistics.median(found), 3), round(others.busy(), 3), round(1e6 * own, 3)]


class Others:
    """How many processors the other processes kept busy since this was made; 0 where the system does not tell."""

    def __init__(self):
        self.started, self.then = time.perf_counter(), self.used()

    def busy(self):
        return max(0.0, (self.used() - self.then) / (time.perf_counter() - self.started))

    @staticmethod
    def used():
        try:
            with open("/proc/stat") as file:
                ticks = [int(number) for number in file.readline().split()[1:9]]
        except OSError:
            return 0.0
        idle = ticks[3] + ticks[4]
        return (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:2])


class Gate:
    """Waits until the other processes are quiet; all waiting together takes at most so many seconds."""

    def __init__(self, seconds):
        self.left = seconds

    def wait(self):
        while self.left > 0:
            others, started = Others(), time.perf_counter()
            time.sleep(min(0.15, self.left))
            if others.busy() < QUIET:
                return
            self.left -= time.perf_counter() - started


def forget_peak():
    """What the process holds now, in KiB; `peak` counts from here on."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return peak()


def peak():
    """The most memory the process has held, in KiB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


if __name__ == "__main__":
    sys.exit(main())
