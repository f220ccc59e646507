"""Random array programs, by NumPy and by lazy arrays: ``python -m tests.lazy.random_expressions --count 10000 [--backend c]``

A program is a row of assignments: operators, ufuncs, reductions, indices, writes, looks, also such that fail.  Both runs must give the
same values, dtypes, shapes, exceptions and warnings.  Where they do not, the program is printed, without the lines that it fails the
same way without.
"""
import argparse
import collections
import pathlib
import random
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT)]

import numpy as np  # noqa: E402

from dy2static import config, lazy  # noqa: E402
from dy2static.errors import FallbackWarning  # noqa: E402
from dy2static.lazy import evaluation, structures  # noqa: E402

DTYPES = ["float32", "float64", "float32", "float64", "int64", "int32", "int16", "uint8", "bool"]
SHAPES = [(3, 4), (3, 4), (4,), (3, 1), (1, 4), (), (2, 3, 4), (0, 4), (1,)]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "{} ** 2 + {}", "{} & {}", "{} | {}", "{} ^ {}",
          "{} < {}", "{} >= {}", "{} == {}", "{} != {}", "np.maximum({}, {})", "np.minimum({}, {})", "np.hypot({}, {})",
          "np.arctan2({}, {})", "np.logical_and({}, {})", "np.where({} > 0, {}, 1)", "{} @ {}", "np.fmod({}, {})",
          "np.copysign({}, {})", "np.concatenate([{}, {}])", "np.stack([{}, {}])", "np.logaddexp({}, {})", "np.add({}, {}, dtype='f8')"]
UNARY = ["-{}", "abs({})", "~{}", "np.exp({})", "np.log({})", "np.sqrt({})", "np.tanh({})", "np.sin({})", "np.floor({})", "np.sign({})",
         "np.square({})", "np.isnan({})", "{}.T", "{}.reshape(-1)", "{}.ravel()", "{}.sum()", "{}.sum(axis=0)", "{}.mean(axis=-1)",
         "{}.max(axis=0)", "{}.min()", "{}.argmax(axis=-1)", "{}.any()", "{}.all(axis=0)", "{}.std()", "{}.prod(axis=-1)",
         "{}.var(axis=0, keepdims=True)", "np.cumsum({}, axis=0)", "np.sort({}, axis=-1)", "np.argsort({}, axis=-1, kind='stable')",
         "{}.astype('float32')", "{}.astype('int64')", "{}.astype(bool)", "{}[0]", "{}[-1]", "{}[..., ::-1]", "{}[1:]", "{}[None]",
         "{}[..., 0]", "{}[[0, 0]]", "{}[5]", "np.clip({}, 0, 1)", "{}.round(1) + 0", "np.expand_dims({}, 0)", "np.roll({}, 1)",
         "np.flip({})", "np.diff({})", "np.broadcast_to({}, (3, 4))", "np.swapaxes({}, 0, -1)", "np.count_nonzero({}) + np.int64(0)",
         "np.linalg.norm({})", "np.log1p({})", "np.trace({})", "np.zeros_like({})", "np.full_like({}, 3)", "{}.copy()", "1 / {}",
         "{} + np.float32(0.5)", "2 * {}", "{} - 1.5", "True + {}", "{} % 3", "{} // 2", "{} > 0.5", "np.repeat({}, 2)", "np.tile({}, 2)",
         "np.median({})", "np.nan_to_num({})", "np.take({}, [0], axis=-1)", "np.pad({}, 1)", "np.outer({}, [1.0, 2.0])", "np.triu({})"]
WRITES = ["{} += 1", "{} *= {}", "{}[0] = {}", "{}[...] = 2", "{}[..., 0] += 1", "np.add({}, {}, out={})", "{} -= 0.5", "{}[{} > 0] = 0"]
LOOKS = ["float({}.sum())", "str({})", "{}.tolist()", "bool({}.any())", "len({})", "{}.shape", "{}.dtype"]


class Program:
    """The text of a program.  leaves: (dtype, shape, seed) of the arrays that it begins with.  Equal seeds give equal programs."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.leaves = [(self.random.choice(DTYPES), self.random.choice(SHAPES), self.random.randrange(10 ** 6))
                       for _ in range(self.random.randint(1, 3))]
        self.names = [f"a{place}" for place in range(len(self.leaves))]
        self.lines = []
        for place in range(self.random.randint(1, 9)):
            self.lines.append(self.line(f"v{place}"))

    def line(self, name):
        kind = self.random.random()
        if kind < 0.08:
            return f"looks.append({self.filled(self.random.choice(LOOKS))})"
        if kind < 0.18:
            return self.filled(self.random.choice(WRITES))
        text = self.filled(self.random.choice(BINARY if kind < 0.5 else UNARY))
        self.names.append(name)
        return f"{name} = {text}"

    def filled(self, text):
        """A text with names in its holes; the last names more often."""
        return text.format(*[self.random.choice(self.names[-2:] if self.random.random() < 0.6 else self.names)
                             for _ in range(text.count("{}"))])


def arrays_of(leaves):
    """The arrays that a program begins with."""
    made = []
    for dtype, shape, seed in leaves:
        rng = np.random.RandomState(seed)
        x = rng.uniform(-2, 3, shape) if dtype[0] == "f" else rng.randint(0 if dtype[0] in "ub" else -3, 2 if dtype == "bool" else 6, shape)
        made.append(np.asarray(x).astype(dtype))
    return made


class Outcome:
    """What a run gives.

    values: NumPy's, in the order of their names.  error: the exception, or None.  ran: how many lines were begun.  warned: texts of
    warnings.
    """

    def __init__(self, leaves, lines, make):
        names = {"np": np, "looks": []}
        names.update({f"a{place}": make(x) for place, x in enumerate(arrays_of(leaves))})
        self.error, self.ran = None, 0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                for self.ran, line in enumerate(lines, 1):
                    exec(line, names)
                found = [names[name] for name in sorted(names) if name[0] in "av" and name[1:].isdigit()]
                self.values = [value.evaluate() if isinstance(value, lazy.LazyArray) else value for value in found]
            except Exception as error:
                self.error = error
        self.looks = names["looks"]
        self.warned = {str(each.message) for each in caught if not issubclass(each.category, FallbackWarning)}


def difference(eager, other, is_exact):
    """What differs between two outcomes; None if nothing does."""
    if eager.error is not None or other.error is not None:
        if type(eager.error) is not type(other.error):
            return f"error {eager.error!r}, not {other.error!r}"
        return None
    for place, (wanted, got) in enumerate(zip(eager.values, other.values)):
        problem = of_values(wanted, got, is_exact)
        if problem:
            return f"value {place}: {problem}"
    if is_exact and len(eager.looks) == len(other.looks):
        for wanted, got in zip(eager.looks, other.looks):
            if repr(wanted) != repr(got) and not (wanted != wanted):
                return f"look: {wanted!r}, not {got!r}"
    if eager.warned != other.warned:
        return f"warnings {sorted(eager.warned)}, not {sorted(other.warned)}"
    return None


def of_values(wanted, got, is_exact):
    """What differs between two arrays or scalars; None if nothing does."""
    if isinstance(wanted, np.ndarray) != isinstance(got, np.ndarray):
        return f"{type(wanted).__name__}, not {type(got).__name__}"
    wanted, got = np.asarray(wanted), np.asarray(got)
    if (wanted.dtype, wanted.shape) != (got.dtype, got.shape):
        return f"{wanted.dtype}{wanted.shape}, not {got.dtype}{got.shape}"
    if wanted.dtype.kind != "f":
        return None if np.array_equal(wanted, got) else f"{wanted}, not {got}"
    accuracy = (1e-6 if wanted.dtype.itemsize == 4 else 1e-13) * (1 if is_exact else 100)
    size = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    with np.errstate(all="ignore"):
        same = np.isclose(got, wanted, rtol=accuracy, atol=accuracy * min(size, 1e30), equal_nan=True)
    return None if same.all() else f"{wanted}, not {got}"


def problem_of(leaves, lines, backend):
    """What a program does otherwise with lazy arrays, up to the line that fails in NumPy; None if nothing."""
    eager = Outcome(leaves, lines, lambda x: x)
    small = evaluation.SMALL
    with config.BACKEND.set("c" if backend == "c" else "numpy"):
        evaluation.SMALL = small if backend == "direct" else -1
        try:
            other = Outcome(leaves, lines[:eager.ran], lazy.array)
        finally:
            evaluation.SMALL = small
    return difference(eager, other, backend != "c")


def shortened(leaves, lines, backend):
    """The program without the lines that it fails the same way without."""
    kind = problem_of(leaves, lines, backend).split(":")[0][:20]
    for place in reversed(range(len(lines))):
        fewer = lines[:place] + lines[place + 1:]
        found = problem_of(leaves, fewer, backend)
        if found is not None and found.split(":")[0][:20] == kind and "NameError" not in found:
            lines = fewer
    return lines


def main(arguments=None):
    """Run programs, print those that differ; gives how many do."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--backend", default="numpy", choices=("numpy", "c", "direct"), help="direct: small arrays without programs")
    options = parser.parse_args(arguments)
    config.BACKGROUND.value = structures.WORTH_COMPILING = 0
    counted = collections.Counter()
    for seed in range(options.first, options.first + options.count):
        program = Program(seed)
        problem = problem_of(program.leaves, program.lines, options.backend)
        counted["different" if problem else "same"] += 1
        if problem:
            lines = shortened(program.leaves, program.lines, options.backend)
            print(f"seed {seed}: {problem_of(program.leaves, lines, options.backend)}\n    {program.leaves}")
            print("".join(f"    {line}\n" for line in lines), flush=True)
    print(f"NumPy {np.__version__}, {options.backend}: {dict(counted)}, structures {lazy.stats()['structures']}")
    return counted["different"]


if __name__ == "__main__":
    sys.exit(bool(main()))
