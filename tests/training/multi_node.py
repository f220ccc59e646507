"""Run by mpiexec: steps with ChainerMN's optimizer, compiled and eager, on each process; it says what is wrong.

    mpiexec -n 2 python tests/training/multi_node.py
"""
import sys
import time

from dy2static import to_static
import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
import numpy as np

from dy2static.training import StaticUpdater


class MLP(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(6, 8)
            self.l2 = L.Linear(8, 3)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


def steps(communicator, compile_, form):
    """Parameters and gradients after some steps.

    Each process has its own data; the first one compiles later, and the second one has a batch of another size.
    """
    rank = communicator.rank
    np.random.seed(rank)
    model = L.Classifier(MLP())
    optimizer = chainermn.create_multi_node_optimizer(chainer.optimizers.Adam(), communicator).setup(model)
    data = chainer.datasets.TupleDataset(np.random.rand(26, 6).astype("f"), np.random.randint(0, 3, 26).astype("i"))

    def written_out(x, t):
        loss = model(x, t)
        model.cleargrads()
        loss.backward()
        optimizer.update()

    def given(x, t):
        optimizer.update(model, x, t)

    if form == "updater":
        cls = StaticUpdater if compile_ else chainer.training.updaters.StandardUpdater
        updater = cls(chainer.iterators.SerialIterator(data, 5, shuffle=False), optimizer)
        for number in range(7):
            time.sleep(0.1 * (number == 1 and rank == 0))
            updater.update()
    else:
        step = {"written out": written_out, "given": given}[form]
        step = to_static(step, strict=True) if compile_ else step
        for number in range(7):
            time.sleep(0.1 * (number == 1 and rank == 0))
            size = 3 if number == 4 and rank == 1 else 5
            step(*chainer.dataset.concat_examples(data[number:number + size]))
    return [array for _, param in sorted(model.namedparams()) for array in (param.array, param.grad)]


def main():
    """The exit status: whether all is well on this process."""
    communicator = chainermn.create_communicator("naive")
    wrong = []
    for form in ("written out", "given", "updater"):
        expected, found = [steps(communicator, compile_, form) for compile_ in (False, True)]
        if not all(np.allclose(one, other, 1e-4, 1e-6) for one, other in zip(expected, found)):
            wrong.append(f"{form}: not what eager computes")
        parts = communicator.mpi_comm.allgather(found)
        if not all((one == other).all() for part in parts for one, other in zip(part, found)):
            wrong.append(f"{form}: the processes have come apart")
    print(f"process {communicator.rank} of {communicator.size}: {wrong or 'as in eager mode'}", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
