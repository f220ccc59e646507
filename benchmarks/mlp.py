"""Eager against compiled for a tiny multilayer perceptron and one of MNIST's shape.

    python benchmarks/mlp.py [--threads 1] [--blocks 40]

Both sides run alternately in one process on equal weights; a ratio above 1 means that compiled is faster.
"""
import argparse
import os

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--threads", type=int, help="threads of the matrix products (default: as NumPy likes)")
parser.add_argument("--blocks", type=int, default=40, help="measurements of each side, of 10 ms or one call")
options = parser.parse_args()
if options.threads:                                 # before NumPy is imported, which reads them once
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(options.threads)

import dy2static  # noqa: E402
import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
import numpy as np  # noqa: E402

from timing import seconds_per_call  # noqa: E402


class MLP(chainer.Chain):
    def __init__(self, activation, n_in, n_units, n_out):
        super().__init__()
        self.activation = activation
        with self.init_scope():
            self.l1 = L.Linear(n_in, n_units)
            self.l2 = L.Linear(n_units, n_units)
            self.l3 = L.Linear(n_units, n_out)

    def forward(self, x):
        h = self.activation(self.l1(x))
        h = self.activation(self.l2(h))
        return self.l3(h)


def loss_of(model, x, t):
    """The model with its loss: what is compiled where a row says "with loss"."""
    return F.softmax_cross_entropy(model(x), t)


def inference(model, loss, optimizer, x, t):
    def run():
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            model(x)
    return run


def forward_backward(model, loss, optimizer, x, t):
    gy = np.random.rand(*model(x).shape).astype(np.float32)

    def run():
        y = model(x)
        y.grad = gy
        model.cleargrads()
        y.backward()
    return run


def loss_backward(model, loss, optimizer, x, t):
    def run():
        y = loss(model, x, t)
        model.cleargrads()
        y.backward()
    return run


def train_step(model, loss, optimizer, x, t):
    step = loss_backward(model, loss, optimizer, x, t)

    def run():
        step()
        optimizer.update()
    return run


def side(case, compiled_model, compiled_loss, shape, batch):
    """What is timed, for one side, on fresh but equal weights."""
    np.random.seed(0)
    model = MLP(*shape)
    x = np.random.rand(batch, shape[1]).astype(np.float32)
    t = np.random.randint(0, shape[3], batch).astype(np.int32)
    optimizer = chainer.optimizers.SGD(lr=0.01).setup(model)
    loss = dy2static.to_static(loss_of) if compiled_loss else loss_of
    return case(dy2static.to_static(model) if compiled_model else model, loss, optimizer, x, t)


SHAPES = {
    "tiny: 16-64-64-4, tanh, batch 8": ((F.tanh, 16, 64, 4), 8),
    "MNIST: 784-1000-1000-10, relu, batch 100": ((F.relu, 784, 1000, 10), 100),
}
CASES = {
    "inference": (inference, False),
    "forward + backward of the model": (forward_backward, False),
    "forward + loss.backward()": (loss_backward, False),
    "   with loss in the compiled function": (loss_backward, True),
    "train step (SGD)": (train_step, False),
    "   with loss in the compiled function ": (train_step, True),
}

print(f"NumPy {np.__version__}, Chainer {chainer.__version__}, dy2static {dy2static.__version__}, "
      f"threads {options.threads or 'by default'}; microseconds")
for title, (shape, batch) in SHAPES.items():
    print(f"\n{title:<42}{'eager':>10}{'compiled':>10}{'ratio':>8}")
    for what, (case, with_loss) in CASES.items():
        functions = [side(case, False, False, shape, batch), side(case, not with_loss, with_loss, shape, batch)]
        eager, compiled = seconds_per_call(functions, options.blocks)
        print(f"  {what:<40}{eager * 1e6:>10.1f}{compiled * 1e6:>10.1f}{eager / compiled:>8.2f}", flush=True)
