"""Chainer's MNIST example of static graphs, on scikit-learn's handwritten digits: with and without a side effect.

    python examples/static_graph/mnist.py [--model MLPSideEffect] [--epoch 10] [--unit 100] [--quick]

What a program for ``chainer.static_graph`` changes is its import.  Training with a Trainer is repeated without the
decorator (``chainer.config.use_static_graph``) from the same seed, and both are shown.
"""
import argparse
import tempfile
import time

from dy2static import static_code, static_graph
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions
from sklearn.datasets import load_digits


class MLP(chainer.Chain):
    """Three layers."""

    def __init__(self, n_units, n_out):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, n_units)
            self.l2 = L.Linear(None, n_units)
            self.l3 = L.Linear(None, n_out)

    @static_graph
    def __call__(self, x):
        """The opinion on every image: (N, 10) float32.  x: (N, 64) float32"""
        h1 = F.relu(self.l1(x))
        h2 = F.relu(self.l2(h1))
        return self.l3(h2)


class MLPSideEffect(MLP):
    """The same, with code that has to run in every iteration.  (It would also without ``static_code``.)"""

    def __init__(self, n_units, n_out):
        super().__init__(n_units, n_out)
        self.side_effect_counter = 0

    @static_code
    def example_side_effect(self):
        self.side_effect_counter += 1
        if self.side_effect_counter % 100 == 0:
            print("side effect counter:", self.side_effect_counter)

    @static_graph
    def __call__(self, x):
        """As that of `MLP`."""
        self.example_side_effect()
        h1 = F.relu(self.l1(x))
        h2 = F.relu(self.l2(h1))
        return self.l3(h2)


def train(args, use_static_graph):
    """Train with a Trainer; the losses of all epochs, the accuracy on the test set, the seconds, and the model."""
    np.random.seed(0)
    chainer.config.use_static_graph = use_static_graph
    model = L.Classifier({"MLP": MLP, "MLPSideEffect": MLPSideEffect}[args.model](args.unit, 10))
    optimizer = chainer.optimizers.Adam().setup(model)
    digits = load_digits()
    data = chainer.datasets.TupleDataset((digits.data / 16).astype("f"), digits.target.astype("i"))
    train_set, test_set = chainer.datasets.split_dataset_random(data, 1400, seed=0)
    updater = training.updaters.StandardUpdater(chainer.iterators.SerialIterator(train_set, args.batchsize), optimizer)
    with tempfile.TemporaryDirectory() as folder:
        trainer = training.Trainer(updater, (args.epoch, "epoch"), out=folder)
        test = chainer.iterators.SerialIterator(test_set, args.batchsize, repeat=False, shuffle=False)
        trainer.extend(extensions.Evaluator(test, model))
        log = extensions.LogReport(filename=None)
        trainer.extend(log)
        start = time.perf_counter()
        trainer.run()
        seconds = time.perf_counter() - start
    return [entry["main/loss"] for entry in log.log], log.log[-1]["validation/main/accuracy"], seconds, model.predictor


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=["MLP", "MLPSideEffect"], default="MLP")
    parser.add_argument("--batchsize", type=int, default=50)
    parser.add_argument("--epoch", type=int, default=10)
    parser.add_argument("--unit", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="two epochs")
    args = parser.parse_args()
    if args.quick:
        args.epoch = 2
    written, accuracy_as_written, slow, _ = train(args, False)
    losses, accuracy, fast, model = train(args, True)
    for number, (one, other) in enumerate(zip(written, losses), 1):
        print(f"epoch {number}: loss {one:.5f} as written, {other:.5f} with static graphs")
    print(f"test accuracy {accuracy_as_written:.4f} as written, {accuracy:.4f} with static graphs")
    print(f"{slow / fast:.2f} times as fast")
    if args.model == "MLPSideEffect":
        print("calls that were counted:", model.side_effect_counter)
    print(f"{sum(map(len, model.schedule_manager.schedules.values()))} schedules; the one used last:")
    print(model.static_schedule)


if __name__ == "__main__":
    main()
