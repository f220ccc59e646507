"""Measures cells in one framework on a GPU; `gpu.py` starts it in that framework's environment.

The only argument is JSON: framework, device ("cuda", or "cpu" to try the program), tf32, small, seconds, limit (of the first steps
of each mode), until (no cell begins after this time), and cells: a list of [cell, modes].  It prints lines of JSON:

    version                 of the framework, first
    cell, mode              this mode is made now
    cell, mode, error       why it cannot do the cell
    cell, mode, us, ...     what was measured

    us              microseconds per step: the median of blocks; a block is many steps, after which the process waits for the device
    blocks          the microseconds of each
    first_s         seconds of the first step: capture, compilation and run, without imports and without making the model
    warm_s          seconds of the first steps together: a step with new states of the optimizer may be compiled once more
    check           loss and norm of the parameters after each of the first two steps, or sums over the output
    warnings        the first of those in the first steps

The blocks of the modes of a cell alternate.
"""
import contextlib
import importlib
import json
import os
import signal
import statistics
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
STAND_IN = HERE.parent / "tests" / "gpu"

BLOCKS = 5
WARM = 5                        # steps before the first block: a CUDA graph is made in one of them


class OutOfTime(BaseException):
    """The first calls of a mode took too long; no handler of frameworks catches it."""


def main(asked):
    answers = os.fdopen(os.dup(1), "w")             # what frameworks print goes to the errors
    os.dup2(2, 1)

    def tell(**record):
        answers.write(json.dumps(record) + "\n")
        answers.flush()
    framework = prepared(asked["framework"], asked["device"], asked["tf32"])
    tell(version=framework.VERSION)
    from gpus import workloads                      # after the environment is set: it imports NumPy
    for cell, modes in asked["cells"]:
        if time.time() < asked["until"]:
            measure(framework, cell, modes, workloads.arrays(cell, asked["small"]), asked, tell)
            framework.forget()


def prepared(name, device, tf32):
    """The framework, imported after what it reads from the environment is set."""
    os.environ.update(DY2STATIC_BACKEND="c", CUPY_TF32=str(int(tf32)), OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "4"))
    if device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    on_stand_in = name == "chainer" and device == "cpu"
    if on_stand_in:
        sys.path[:0] = [str(STAND_IN)]
        importlib.import_module("cupy_double").install()
    framework = importlib.import_module("gpus.in_" + name)
    if on_stand_in:
        importlib.import_module("emulated_double").use()
    framework.begin(device, tf32)
    return framework


def measure(framework, cell, modes, data, asked, tell):
    """Tell what each mode takes.  An error that the device does not get over ends the process."""
    running = {}

    @contextlib.contextmanager
    def attempt(mode):
        try:
            with framework.during(mode):
                yield
        except (Exception, OutOfTime) as error:     # any framework may fail in any way: that is a result
            running.pop(mode, None)
            tell(cell=cell, mode=mode, error=f"{type(error).__name__}: {error}"[:500])
            framework.wait(None)
    for mode in modes:
        make = framework.CELLS.makers[cell].get(mode)
        if make is not None:
            tell(cell=cell, mode=mode)
            with attempt(mode), limited(asked["limit"]):
                running[mode] = Run(make(data, cell, mode), asked["seconds"] / BLOCKS)
    for _ in range(BLOCKS):
        for mode, run in list(running.items()):
            with attempt(mode):
                run.block()
    for mode, run in running.items():
        tell(cell=cell, mode=mode, **run.record())


@contextlib.contextmanager
def limited(seconds):
    """Raise OutOfTime in what is inside after so many seconds."""
    def stop(number, frame):
        raise OutOfTime(f"the first calls take more than {seconds:g} s")
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Run:
    """A case after its first steps, and its blocks, each of about so many seconds."""

    def __init__(self, case, seconds):
        self.case, self.check, self.blocks = case, [], []
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            begun = time.perf_counter()
            for i in range(max(case.checked, WARM)):
                started = time.perf_counter()
                handle = case.step()
                case.wait(handle)
                if i == 0:
                    self.first = time.perf_counter() - started
                if i < case.checked:
                    self.check += [float(number) for number in case.check(handle)]
            self.warm = time.perf_counter() - begun
        self.warnings = [str(one.message)[:300] for one in found][:3]
        self.count = 1
        self.count = max(1, round(seconds / max(self.timed(), 1e-6)))

    def timed(self):
        """The seconds per step of one block."""
        started = time.perf_counter()
        for _ in range(self.count):
            handle = self.case.step()
        self.case.wait(handle)
        return (time.perf_counter() - started) / self.count

    def block(self):
        self.blocks.append(round(1e6 * self.timed(), 1))

    def record(self):
        stats = self.case.compiled.stats() if self.case.compiled is not None else {}
        return {"us": statistics.median(self.blocks), "blocks": self.blocks, "first_s": round(self.first, 3),
                "warm_s": round(self.warm, 3), "check": self.check, "warnings": self.warnings,
                **{name: stats[name] for name in ("captures", "fallbacks", "cuts") if name in stats}}


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
