"""Trains a classifier of handwritten digits, eagerly and compiled, side by side.

    python examples/digits/train.py [--epochs 20] [--quick]

The digits come with scikit-learn (1,797 images of 8x8 pixels); nothing is downloaded.  Every model is trained
twice from equal seeds, as it is and compiled: with Chainer's Trainer, whose ``StaticUpdater`` compiles whole steps, and
with a loop of our own, in which the model alone is compiled.
"""
import argparse
import statistics
import tempfile
import time

from dy2static import __version__, to_static
from dy2static.training import StaticUpdater
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions
from sklearn.datasets import load_digits


class MLP(chainer.Chain):
    """Three layers; ``dropout`` is the share of hidden units to drop in training, 0 for none."""

    def __init__(self, n_units=64, n_out=10, dropout=0.2):
        super().__init__()
        self.dropout = dropout
        with self.init_scope():
            self.l1 = L.Linear(64, n_units)
            self.l2 = L.Linear(n_units, n_units)
            self.l3 = L.Linear(n_units, n_out)

    def forward(self, x):
        h = F.relu(self.l1(x))
        h = F.relu(self.l2(h))
        if self.dropout > 0:
            h = F.dropout(h, self.dropout)
        return self.l3(h)


def digits():
    """(train, test): datasets of (image: (64,) float32 in [0, 1], label: int32)."""
    bunch = load_digits()
    images, labels = (bunch.data / 16).astype(np.float32), bunch.target.astype(np.int32)
    dataset = chainer.datasets.TupleDataset(images, labels)
    return chainer.datasets.split_dataset_random(dataset, 1440, seed=0)


# --- with Chainer's Trainer ---

def classifier(compiled):
    """A model with loss and accuracy; compiled, the Evaluator calls it so."""
    np.random.seed(0)
    model = L.Classifier(MLP())
    return to_static(model) if compiled else model


def make_updater(compiled, model, train, batchsize):
    """One `update()` is one step: forward, backward, the update and what is reported are one program."""
    optimizer = chainer.optimizers.MomentumSGD(lr=0.05)
    optimizer.setup(model)
    iterator = chainer.iterators.SerialIterator(train, batchsize)
    updater = StaticUpdater if compiled else training.updaters.StandardUpdater
    return updater(iterator, optimizer)


def train_with_trainer(compiled, train, test, epochs, batchsize):
    """The log of Chainer's LogReport: one dict per epoch."""
    model = classifier(compiled)
    with tempfile.TemporaryDirectory() as out:
        trainer = training.Trainer(make_updater(compiled, model, train, batchsize), (epochs, "epoch"), out=out)
        iterator = chainer.iterators.SerialIterator(test, batchsize, repeat=False, shuffle=False)
        trainer.extend(extensions.Evaluator(iterator, model))
        log = extensions.LogReport()
        trainer.extend(log)
        trainer.run()
    return [(entry["main/loss"], entry["validation/main/accuracy"]) for entry in log.log]


# --- with a loop of our own ---

def train_step(model, optimizer, x, t):
    """One step on one batch; the loss."""
    loss = F.softmax_cross_entropy(model(x), t)
    model.cleargrads()
    loss.backward()
    optimizer.update()
    return loss


def accuracy_of(model, test):
    """The share of test images that the model gets right."""
    x, t = chainer.dataset.concat_examples(test)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        return float(F.accuracy(model(x), t).array)


def make_model(compiled):
    """(model, optimizer) of the loop of our own: what is compiled is the model alone."""
    np.random.seed(0)
    model = to_static(MLP()) if compiled else MLP()
    optimizer = chainer.optimizers.MomentumSGD(lr=0.05)
    optimizer.setup(model)
    return model, optimizer


def train_with_loop(compiled, train, test, epochs, batchsize):
    """(mean loss, test accuracy) of every epoch, and the model."""
    model, optimizer = make_model(compiled)
    x, t = chainer.dataset.concat_examples(train)
    log = []
    for _ in range(epochs):
        order = np.random.permutation(len(x))
        losses = [float(train_step(model, optimizer, x[i], t[i]).array) for i in np.split(order, len(x) // batchsize)]
        log.append((sum(losses) / len(losses), accuracy_of(model, test)))
    return log, model


# --- speed ---

def seconds_per_step(steps, blocks, per_block):
    """The median time of one call of each function, measured alternately."""
    times = [[] for _ in steps]
    for block in range(blocks + 2):
        for step, found in zip(steps, times):
            started = time.perf_counter()
            for _ in range(per_block):
                step()
            if block >= 2:
                found.append((time.perf_counter() - started) / per_block)
    return [statistics.median(found) for found in times]


def print_speed(what, eager, compiled):
    print(f"  {what:<34}{1 / eager:>8.0f}{1 / compiled:>10.0f}{eager / compiled:>8.2f}x")


def loop_step(compiled, x, t):
    model, optimizer = make_model(compiled)
    return lambda: train_step(model, optimizer, x, t)


def forward_backward(compiled, x):
    """The model alone, forward and backward, as a function without arguments."""
    model, _ = make_model(compiled)

    def step():
        y = model(x)
        y.grad = np.ones_like(y.array)
        model.cleargrads()
        y.backward()
    return step


def inference(compiled, x):
    model, _ = make_model(compiled)

    def step():
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            model(x)
    return step


# --- what is shown ---

def title(text):
    print(f"\n{text}\n{'-' * len(text)}")


def print_logs(eager, compiled):
    """Both logs side by side, and how far they are apart."""
    print(f"  {'':7}{'training loss':^22}{'test accuracy':^22}")
    print(f"  {'epoch':<7}{'eager':>10}{'compiled':>10}  {'eager':>10}{'compiled':>10}")
    shown = sorted({1, 2, 3, 5, 10, 20, 50, len(eager)} & set(range(1, len(eager) + 1)))
    for epoch in shown:
        (loss, accuracy), (loss_2, accuracy_2) = eager[epoch - 1], compiled[epoch - 1]
        print(f"  {epoch:<7}{loss:>10.5f}{loss_2:>10.5f}  {accuracy:>10.4f}{accuracy_2:>10.4f}")
    apart = np.abs(np.array(eager) - np.array(compiled)).max(axis=0)
    print(f"  largest difference in any epoch: loss {apart[0]:.1e}, accuracy {apart[1]:.1e}")
    if apart[0] > 1e-5:
        print("  (sums in another order gave the input of a ReLU another sign; with DY2STATIC_BACKEND=numpy nothing differs)")


def main():
    """Train, compare, time and explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batchsize", type=int, default=32, help="a divisor of 1440")
    parser.add_argument("--quick", action="store_true", help="a few steps of everything")
    options = parser.parse_args()
    epochs, blocks = (2, 3) if options.quick else (options.epochs, 25)
    train, test = digits()
    x, t = chainer.dataset.concat_examples(train[:options.batchsize])
    print(f"dy2static {__version__}, Chainer {chainer.__version__}, NumPy {np.__version__}: "
          f"{len(train)} digits to learn from, {len(test)} to test")

    title("Chainer's Trainer and L.Classifier: eager, and with StaticUpdater")
    print_logs(*[train_with_trainer(compiled, train, test, epochs, options.batchsize) for compiled in (False, True)])

    title("A loop of our own: eager, and with to_static(MLP())")
    (eager, _), (compiled, model) = [
        train_with_loop(compiled, train, test, epochs, options.batchsize) for compiled in (False, True)]
    print_logs(eager, compiled)

    title("Speed, measured alternately (steps per second)")
    print(f"  {'batch of ' + str(options.batchsize):<34}{'eager':>8}{'compiled':>10}")
    pairs = {
        "model, inference": [inference(c, x) for c in (False, True)],
        "model, forward and backward": [forward_backward(c, x) for c in (False, True)],
        "whole step of our own loop": [loop_step(c, x, t) for c in (False, True)],
        "whole step of the Trainer": [make_updater(c, classifier(c), train, options.batchsize).update
                                      for c in (False, True)],
    }
    for what, steps in pairs.items():
        print_speed(what, *seconds_per_step(steps, blocks, 2 if options.quick else 40))

    title("The source after conversion: model.forward.code")
    print(model.forward.code.strip())
    title("The function generated for this batch: model.forward.program(x).code")
    print(model.forward.program(x).code.strip())
    title("What became of each line: model.forward.explain(x)")
    print(model.forward.explain(x))
    title("Counts: model.forward.stats() and model.forward.cache_info()")
    print(model.forward.stats())
    print(model.forward.cache_info())


if __name__ == "__main__":
    main()
