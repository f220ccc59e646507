"""Matrix products: our kernel beside the BLAS that NumPy ships.

    python benchmarks/products.py [--threads 1] [--rows 1,8,64,1024] [--sizes 512x512,768x3072] [--types f32,f64]
                                  [--turns nn,nt,tn,tt] [--rounds 7] [--seconds 0.01] [--cold 0]

Rows of A, inner size x columns, which of A and B are stored transposed (t).  Both are called from one C loop, alternately, with
arrays that stay the same; the fastest of the rounds counts, by processor time with one thread and by wall time with more.  With
``--cold`` MB each call has the next of several copies of B, of so many MB together: the weights of a network.  Printed are
GFLOP/s of ours and of BLAS, and the ratio (above 1: ours is faster); at the end the ratios below 0.97.
"""
import argparse
import ctypes
import glob
import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402

from dy2static.native import compiler, products, team  # noqa: E402

ROWS = "1,8,16,32,64,128,256,1024,4096"
SIZES = "64x64,256x256,512x512,768x768,768x3072,3072x768,1000x2048"
CTYPES = {"f32": (np.float32, "float", "s"), "f64": (np.float64, "double", "d")}

LOOP = """
#include <stdint.h>
#include <time.h>

typedef void ours(int, int, int64_t, int64_t, int64_t, {T}, const {T} *, int64_t, const {T} *, int64_t, {T}, {T} *, int64_t);
typedef void blas(int, int, int, int64_t, int64_t, int64_t, {T}, const {T} *, int64_t, const {T} *, int64_t, {T}, {T} *, int64_t);

static double now(int clock)
{{
    struct timespec t;
    clock_gettime(clock ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}}

double seconds(void *function, int kind, int wall, int64_t count, int ta, int tb, int64_t m, int64_t n, int64_t k,
               int64_t copies, {T} *a, {T} *b, {T} *c)
{{
    const int64_t lda = ta ? m : k, ldb = tb ? k : n;
    const double start = now(wall);
    for (int64_t s = 0; s < count; s++) {{
        {T} *const right = b + s % copies * k * n;
        if (kind)
            ((blas *)function)(101, ta ? 112 : 111, tb ? 112 : 111, m, n, k, 1, a, lda, right, ldb, 0, c, n);
        else
            ((ours *)function)(ta, tb, m, n, k, 1, a, lda, right, ldb, 0, c, n);
    }}
    return now(wall) - start;
}}
"""


class Blas:
    """The library beside NumPy's files: `cblas_?gemm`, with 64-bit sizes."""

    def __init__(self):
        folder = pathlib.Path(np.__file__).parent.parent / "numpy.libs"
        found = glob.glob(str(folder / "*openblas64*"))
        if not found:
            sys.exit(f"there is no OpenBLAS in {folder}")
        self.library = ctypes.CDLL(found[0])

    def find(self, name):
        """A function of it, whatever its names begin with."""
        for prefix in ("", "scipy_"):
            if hasattr(self.library, f"{prefix}{name}64_"):
                return getattr(self.library, f"{prefix}{name}64_")
        sys.exit(f"OpenBLAS has no {name}")

    def core(self):
        """The processor that it takes this one for."""
        name = self.find("openblas_get_corename")
        name.restype = ctypes.c_char_p
        return name().decode()


class Case:
    """One product: the functions of both, and how often they are called in a block."""

    def __init__(self, name, m, k, n, turns, functions, loop, wall, cold):
        dtype, self.functions, self.loop, self.wall = CTYPES[name][0], functions, loop, wall
        random = np.random.RandomState(0)
        trans_a, trans_b = (turn == "t" for turn in turns)
        a = random.standard_normal((k, m) if trans_a else (m, k)).astype(dtype)
        copies = max(1, math.ceil(cold * 1e6 / (n * k * np.dtype(dtype).itemsize)))
        b = np.tile(random.standard_normal((n, k) if trans_b else (k, n)).astype(dtype), (copies, 1))
        c = np.empty((m, n), dtype)
        self.arrays = a, b, c
        word = ctypes.c_int64
        self.given = (trans_a, trans_b, word(m), word(n), word(k), word(copies),
                      *(ctypes.c_void_p(x.ctypes.data) for x in self.arrays))
        self.work = 2e-9 * m * n * k

    def seconds(self, kind, count):
        """Of `count` calls; kind: 0 is ours, 1 is BLAS."""
        return self.loop(self.functions[kind], kind, self.wall, ctypes.c_int64(count), *self.given)

    def measured(self, rounds, block):
        """GFLOP/s of both: the fastest round of each."""
        counts = [max(1, math.ceil(block / max(min(self.seconds(kind, 2) / 2 for _ in range(2)), 1e-9))) for kind in (0, 1)]
        times = [[], []]
        for _ in range(rounds):
            for kind in (0, 1):
                times[kind].append(self.seconds(kind, counts[kind]) / counts[kind])
        return [self.work / min(found) for found in times]


def measure(given):
    """Print a row for each product; return the ratios by name."""
    blas, found = Blas(), {}
    print(f"OpenBLAS runs its kernels for {blas.core()}; {given.threads} thread(s)")
    blas.find("openblas_set_num_threads")(given.threads)
    team.set_threads(given.threads)
    print(f"{'':<24}{'ours':>10}{'BLAS':>10}{'ratio':>8}")
    for name in given.types.split(","):
        _, type, letter = CTYPES[name]
        loop = compiler.build(LOOP.format(T=type)).handle.seconds
        loop.restype = ctypes.c_double
        functions = ctypes.c_void_p(products.address(name)), ctypes.cast(blas.find(f"cblas_{letter}gemm"), ctypes.c_void_p)
        for size in given.sizes.split(","):
            k, n = map(int, size.split("x"))
            for m in map(int, given.rows.split(",")):
                for turns in given.turns.split(","):
                    case = Case(name, m, k, n, turns, functions, loop, int(given.threads > 1), given.cold)
                    ours, theirs = case.measured(given.rounds, given.seconds)
                    row = f"{name} {m} x {size} {turns}"
                    found[row] = ours / theirs
                    print(f"{row:<24}{ours:>10.1f}{theirs:>10.1f}{ours / theirs:>8.2f}", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", default=ROWS)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--types", default="f32,f64")
    parser.add_argument("--turns", default="nn,nt,tn,tt")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.01, help="of a block")
    parser.add_argument("--cold", type=float, default=0, help="MB of copies of B")
    given = parser.parse_args()
    found = measure(given)
    low = {row: ratio for row, ratio in found.items() if ratio < 0.97}
    mean = statistics.geometric_mean(found.values())
    print(f"{len(found)} products, geometric mean of the ratios {mean:.2f}, {len(low)} below 0.97")
    for row in sorted(low, key=low.get):
        print(f"    {row:<24}{low[row]:.2f}")


if __name__ == "__main__":
    main()
