"""Steps of a tagger on lists of sequences whose lengths are fresh in every batch, beside eager Chainer and lengths that come again.

    python benchmarks/sequences.py [--batch 16] [--units 64] [--link NStepBiLSTM] [--steps 20]

Embedding, a recurrent network, a linear layer, the loss over all rows, gradients and Adam.  "fresh": one program with free sizes,
and no batch twice; "recurring": the same program, and one batch; "unrolled": a program for the very lengths of that batch
(``dynamic=False``), with its first call beside the first of the others.  All in turns in one process, on one thread, the least of
the rounds.
"""
import argparse
import os
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--units", type=int, default=64)
parser.add_argument("--link", default="NStepBiLSTM")
parser.add_argument("--steps", type=int, default=20)
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

from dy2static import to_static  # noqa: E402
import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
import numpy as np  # noqa: E402

WORDS, TAGS = 2000, 10


class Tagger(chainer.Chain):
    def __init__(self, link, units):
        super().__init__()
        with self.init_scope():
            self.embed, self.rnn = L.EmbedID(WORDS, units), getattr(L, link)(1, units, units, 0.0)
            self.out = L.Linear(2 * units if "Bi" in link else units, TAGS)

    def loss(self, xs, ts):
        ys = self.rnn(*[None] * self.rnn.n_cells, [self.embed(x) for x in xs])[-1]
        return F.softmax_cross_entropy(self.out(F.concat(ys, axis=0)), F.concat(ts, axis=0))


def batch(random):
    lengths = random.randint(5, 41, options.batch)
    return [[random.randint(0, n, length).astype("i") for length in lengths] for n in (WORDS, TAGS)]


def seconds(run, batches):
    """Of one step, the lesser of the processor's and the wall's time."""
    clocks = time.perf_counter, time.process_time
    begin = [clock() for clock in clocks]
    for xs, ts in batches:
        run(xs, ts)
    return min(clock() - first for clock, first in zip(clocks, begin)) / len(batches)


def steps_of(make):
    """A step of training of a new model; make: what becomes of its loss."""
    model = Tagger(options.link, options.units)
    optimizer, loss = chainer.optimizers.Adam().setup(model), make(model.loss)

    def run(xs, ts):
        model.cleargrads()
        loss(xs, ts).backward()
        optimizer.update()
    return run, loss


random = np.random.RandomState(0)
fixed = [batch(random)] * options.steps
eager, _ = steps_of(lambda loss: loss)
free, compiled = steps_of(lambda loss: to_static(loss, backend="c"))
unrolled, other = steps_of(lambda loss: to_static(loss, backend="c", dynamic=False))
first = [seconds(run, fixed[:1]) for run in (eager, free, unrolled)]
print(f"first step: eager {first[0]:.2f} s, free sizes {first[1]:.2f} s, unrolled {first[2]:.2f} s", flush=True)
found = {}
for _ in range(5):
    fresh = [batch(random) for _ in range(options.steps)]
    for name, run, batches in (("eager", eager, fresh[:3]), ("fresh", free, fresh), ("recurring", free, fixed),
                               ("unrolled", unrolled, fixed)):
        found[name] = min(seconds(run, batches), found.get(name, np.inf))
for name, took in found.items():
    print(f"{name:<12}{took * 1e3:8.2f} ms per step{found['eager'] / took:8.1f} x eager")
print(f"captures: {compiled.stats()['captures']}; nodes {compiled.stats()['nodes']}, unrolled {other.stats()['nodes']}")
