"""Parts of few operations beside the same lines in eager mode: from how many operations on the call of a part pays.

    python benchmarks/small_parts.py [--blocks 25] [--sizes 4,1000,100000] [--functions]

Each program has some operations of NumPy or functions of Chainer's and then a line that is refused.  Parts of any size are called
here, also those that `dy2static.dispatch.paying` leaves to Python.  With ``--functions``: the calls of Chainer's functions of
tests/function_cases, each with such a line behind it.
"""
import argparse
import linecache
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import dy2static  # noqa: E402  (before chainer)
import breaks  # noqa: E402
import call_matrix  # noqa: E402
import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import numpy as np  # noqa: E402
import parts  # noqa: E402

from dy2static.dispatch import paying  # noqa: E402

#: Lines that a part is made of; the last gives ``h``.
FUNCTIONS = {"1 function": ["h = F.tanh(x)"],
             "2 functions": ["h = F.sin(F.tanh(x))"], "3 functions": ["h = F.cos(F.sin(F.tanh(x)))"]}
_STEP = ["h = h * 0.5 + x", "h = np.tanh(h) - x"]
OPERATIONS = {f"{4 * k + 1} operations": ["h = x * 2", *_STEP * k] for k in (0, 1, 2, 4, 8, 16)}
CALLS = 30                  # before anything is measured


def function_of(name, lines):
    """The function of some lines, with a break behind them."""
    text = "def f(x):\n" + "".join(f"    {line}\n" for line in [*lines, "refuse(0)", "return h"])
    file, names = f"/parts/{name}.py", {"F": F, "np": np, "refuse": breaks.refuse}
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec"), names)
    return names["f"]


def measured(function, args, backends, blocks):
    """The least seconds of eager, and of each backend."""
    compiled = [dy2static.to_static(function, backend=backend) for backend in backends]
    for static in compiled:
        for _ in range(CALLS):
            static(*args)
    runs = [lambda run=run: run(*args) for run in (function, *compiled)]
    return parts.least_seconds(runs, blocks, 20)


def show(name, seconds):
    """Print a row: seconds, and how many times as fast as eager."""
    eager, *others = seconds
    print(f"{name:<44}{eager * 1e6:>10.1f}" + "".join(f"{each * 1e6:>10.1f}{eager / each:>7.2f}" for each in others), flush=True)


def operations(options):
    """The table of programs of a few operations."""
    least = paying.LEAST, paying.LEAST_OF_NUMPY
    paying.LEAST = paying.LEAST_OF_NUMPY = 1
    try:
        for size in map(int, options.sizes.split(",")):
            for name, lines in {**FUNCTIONS, **OPERATIONS}.items():
                x = np.linspace(-1, 1, size, dtype=np.float32)
                args = (x if name in OPERATIONS else chainer.Variable(x),)
                show(f"{name} on {size} floats", measured(function_of(name, lines), args, ("numpy", "c"), options.blocks))
    finally:
        paying.LEAST, paying.LEAST_OF_NUMPY = least


def functions(options):
    """The rows of Chainer's functions that are slower in parts than in eager mode, and how many there are."""
    ratios = []
    for case in call_matrix.ROWS:
        def f(*args, function=case.function):
            y = function(*args)
            breaks.refuse(0)
            return y
        args = [chainer.Variable(np.array(a), requires_grad=np.asarray(a).dtype.kind == "f") for a in case.arrays("float32", 0)]
        try:
            with chainer.using_config("train", case.train), np.errstate(all="ignore"):
                seconds = measured(f, args, ("numpy",), options.blocks)
        except Exception:                               # Chainer's own: some rows are of what it refuses
            continue
        ratios.append(seconds[0] / seconds[1])
        if ratios[-1] < 0.95:
            show(str(case), seconds)
    print(f"{len(ratios)} calls; as fast as eager: least {min(ratios):.2f}, median {np.median(ratios):.2f}, "
          f"{sum(ratio < 0.95 for ratio in ratios)} below 0.95")


def main(arguments=None):
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--blocks", type=int, default=25)
    parser.add_argument("--sizes", default="4,1000,100000")
    parser.add_argument("--functions", action="store_true", help="the calls of Chainer's functions, on NumPy, instead")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    dy2static.config.BACKGROUND.value = 0
    print(f"{'microseconds':<44}{'eager':>10}{'numpy':>10}{'':>7}{'' if options.functions else 'c':>10}")
    (functions if options.functions else operations)(options)


if __name__ == "__main__":
    main()
