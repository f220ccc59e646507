"""A line that cannot be compiled, in the middle of a network of six blocks: what it costs beside the network without it.

    python benchmarks/parts.py [--threads 1] [--blocks 60] [--backends numpy,c] [--quick]

Three networks, of wide and of narrow linear blocks and of convolutions; the line stands between the third and the fourth
block, alone, in a loop over the blocks, in a function that is called there, in a `with`, and in a `try`.  Eager and compiled,
without and with the line, run alternately in one process.  The last column is the speed with the line as a share of that
without it; 0.80 is the aim.
"""
import argparse
import os
import pathlib
import sys
import time
import warnings

if __name__ == "__main__" and "--threads" in sys.argv:      # before NumPy is imported, which reads them once
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[_name] = sys.argv[sys.argv.index("--threads") + 1]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import dy2static  # noqa: E402  (before chainer)
import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
import numpy as np  # noqa: E402

AIM = 0.8


class Blocks(chainer.Chain):
    """Six blocks.  Where ``looks`` is set, the address of an array is asked for after the third, which no program knows."""

    looks, address = True, None

    def __init__(self, make):
        super().__init__()
        with self.init_scope():
            self.b1, self.b2, self.b3, self.b4, self.b5, self.b6 = (make() for _ in range(6))

    def forward(self, x):
        h = F.relu(self.b3(F.relu(self.b2(F.relu(self.b1(x))))))
        if self.looks:
            self.address = h.array.ctypes.data
        return F.relu(self.b6(F.relu(self.b5(F.relu(self.b4(h))))))


class InLoop(Blocks):
    def forward(self, x):
        h = x
        for number, block in enumerate((self.b1, self.b2, self.b3, self.b4, self.b5, self.b6)):
            h = F.relu(block(h))
            if number == 2 and self.looks:
                self.address = h.array.ctypes.data
        return h


class InCallee(Blocks):
    def forward(self, x):
        h = F.relu(self.b2(F.relu(self.b1(x))))
        return F.relu(self.b6(F.relu(self.b5(self.middle(h)))))

    def middle(self, h):
        h = F.relu(self.b3(h))
        if self.looks:
            self.address = h.array.ctypes.data
        return F.relu(self.b4(h))


class InWith(Blocks):
    def forward(self, x):
        h = F.relu(self.b2(F.relu(self.b1(x))))
        with chainer.using_config("user_mode", True):
            h = F.relu(self.b3(h))
            if self.looks:
                self.address = h.array.ctypes.data
            h = F.relu(self.b4(h))
        return F.relu(self.b6(F.relu(self.b5(h))))


class InTry(Blocks):
    def forward(self, x):
        h = F.relu(self.b2(F.relu(self.b1(x))))
        try:
            h = F.relu(self.b3(h))
            if self.looks:
                self.address = h.array.ctypes.data
            h = F.relu(self.b4(h))
        except MemoryError:
            self.address = None
        return F.relu(self.b6(F.relu(self.b5(h))))


PLACES = {"alone": Blocks, "in a loop": InLoop, "in a callee": InCallee, "in a with": InWith, "in a try": InTry}

#: Per network: a block, and the shape of what it takes.
NETWORKS = {
    "linear, 64 of 256": (lambda: L.Linear(256, 256), (64, 256)),
    "linear, 8 of 32": (lambda: L.Linear(32, 32), (8, 32)),
    "3x3, 8 of 16 channels of 14x14": (lambda: L.Convolution2D(16, 16, 3, pad=1), (8, 16, 14, 14)),
}


def model_of(place, network, looks, backend=None):
    """A model, its compiled function if it has one, and its input; equal arguments give equal models."""
    np.random.seed(0)
    make, shape = NETWORKS[network]
    cls = PLACES[place]
    forward = cls.forward if backend is None else dy2static.to_static(cls.forward, backend=backend)
    cls = type(cls.__name__, (cls,), {"forward": forward, "looks": looks})
    return cls(make), np.random.rand(*shape).astype(np.float32)


def inference(model, x):
    """A call without gradients."""
    def run():
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return model(x).array
    return run


def training(model, x):
    """A call and its backward."""
    def run():
        model.cleargrads()
        y = model(x)
        y.grad = np.ones_like(y.array)
        y.backward()
        return [y.array, *[p.grad for _, p in sorted(model.namedparams())]]
    return run


def least_seconds(functions, blocks, calls):
    """The least seconds per call of each function, by wall or processor time: others may use the machine, too."""
    least = [float("inf") for _ in functions]
    for _ in range(blocks):
        for number, function in enumerate(functions):
            began = time.perf_counter(), time.process_time()
            for _ in range(calls):
                function()
            spent = time.perf_counter() - began[0], time.process_time() - began[1]
            least[number] = min(least[number], *[each / calls for each in spent])
    return least


def rows(backend, blocks, calls):
    """Per row: what, place, network; seconds of eager, compiled without the line, and with it; counts of cuts and eager calls."""
    for what in (inference, training):
        for network in NETWORKS:
            for place in PLACES:
                eager = model_of(place, network, True)
                without, broken = (model_of(place, network, looks, backend) for looks in (False, True))
                functions = [what(*each) for each in (eager, without, broken)]
                least_seconds(functions, 1, 3)          # to warm them up
                times = least_seconds(functions, blocks, calls)
                stats = type(broken[0]).forward.stats()
                yield what.__name__, place, network, times, stats.get("cuts", 0), stats["fallbacks"]


def main(arguments=None):
    """Measure and print; the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, help="threads of the matrix products (default: as NumPy likes)")
    parser.add_argument("--blocks", type=int, default=60, help="measurements of each side, of five calls")
    parser.add_argument("--backends", default="numpy,c")
    parser.add_argument("--quick", action="store_true", help="one short measurement of everything: does it run?")
    options = parser.parse_args(arguments)
    dy2static.config.BACKGROUND.value = 0
    shares = []
    for backend in options.backends.split(","):
        print(f"\nbackend {backend}; microseconds\n{'':<56}{'eager':>9}{'without':>9}{'with':>9}{'of eager':>10}{'of without':>12}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for what, place, network, times, cuts, fallbacks in rows(backend, 1 if options.quick else options.blocks, 5):
                eager, without, broken = times
                shares.append(without / broken)
                note = "" if shares[-1] >= AIM else "  <"
                note += "  runs eagerly" if fallbacks else "" if cuts else "  no cut"
                print(f"{what:<10} {network:<31} {place:<12} {1e6 * eager:>10.0f}{1e6 * without:>9.0f}{1e6 * broken:>9.0f}"
                      f"{eager / broken:>10.2f}{without / broken:>12.2f}{note}", flush=True)
    reached = sum(share >= AIM for share in shares)
    print(f"\n{reached} of {len(shares)} at {AIM} or more; the least is {min(shares):.2f}")
    return shares


if __name__ == "__main__":
    main()
