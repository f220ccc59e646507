"""Trains a classifier of handwritten digits on several processes, with ChainerMN and a compiled model.

    python -m pip install ".[examples,mpi]"
    mpiexec -n 2 python examples/chainermn/train_digits.py [--epochs 10] [--eager]

Each process has its own part of the data.  The optimizer averages the gradients of all processes; the evaluator averages
accuracies; the checkpointer saves the state of each process, from which the next run with the same ``--out`` goes on.  The first
process prints.  With ``--eager`` the model is not compiled: the numbers are the same up to rounding.
"""
import argparse

from dy2static import to_static
import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
import numpy as np
from chainer.training import extensions
from chainermn import global_except_hook
from sklearn.datasets import load_digits


class MLP(chainer.Chain):
    """Two layers with ReLU."""

    def __init__(self, n_units=64, n_out=10):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(64, n_units)
            self.l2 = L.Linear(n_units, n_out)

    def forward(self, x):
        """The scores of the ten digits: (N, 10) float.  x: (N, 64) float"""
        return self.l2(F.relu(self.l1(x)))


def digits():
    """Examples to learn from and to test with: pairs of 64 floats in [0, 1] and a label."""
    bunch = load_digits()
    x, t = (bunch.data / 16).astype(np.float32), bunch.target.astype(np.int32)
    order = np.random.RandomState(0).permutation(len(x))
    return [chainer.datasets.TupleDataset(x[part], t[part]) for part in (order[:1440], order[1440:])]


def main():
    """Train, evaluate after each epoch, and print on the first process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batchsize", type=int, default=40, help="of each process")
    parser.add_argument("--eager", action="store_true", help="do not compile")
    parser.add_argument("--out", default="result")
    options = parser.parse_args()

    global_except_hook.add_hook()               # a process that raises ends all others, which would wait for it
    communicator = chainermn.create_communicator("naive")
    np.random.seed(0)
    model = L.Classifier(MLP())
    if not options.eager:
        to_static(model)
    optimizer = chainermn.create_multi_node_optimizer(chainer.optimizers.Adam(alpha=0.003), communicator).setup(model)

    parts = digits() if communicator.rank == 0 else [None, None]
    learning, testing = [chainermn.scatter_dataset(part, communicator, shuffle=False) for part in parts]
    iterator = chainer.iterators.SerialIterator(learning, options.batchsize)
    updater = chainer.training.updaters.StandardUpdater(iterator, optimizer)
    trainer = chainer.training.Trainer(updater, (options.epochs, "epoch"), out=options.out)

    evaluator = chainermn.create_multi_node_evaluator(
        extensions.Evaluator(chainer.iterators.SerialIterator(testing, options.batchsize, repeat=False), model), communicator)
    trainer.extend(evaluator)
    checkpointer = chainermn.create_multi_node_checkpointer("digits", communicator)
    checkpointer.maybe_load(trainer, optimizer)
    trainer.extend(checkpointer, trigger=(5, "epoch"))
    if communicator.rank == 0:
        trainer.extend(extensions.LogReport(filename=None))
        trainer.extend(extensions.PrintReport(["epoch", "main/loss", "validation/main/loss", "validation/main/accuracy"]))
    trainer.run()

    found = evaluator()
    if communicator.rank == 0:
        print("processes %d   test accuracy %.4f" % (communicator.size, found["validation/main/accuracy"]))


if __name__ == "__main__":
    main()
