"""Eager against compiled where the control flow depends on array values: recurrent loops, Newton, beam search, MAML.

    python benchmarks/control_flow.py [--threads 1] [--blocks 15] [--quick]

Both sides run alternately in one process on the same weights; a ratio above 1 means that compiled is faster.  A row whose
function is not compiled, and so runs eagerly on both sides, says so.
"""
import argparse
import os
import pathlib
import sys
import warnings

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--threads", type=int, help="threads of the matrix products (default: as NumPy likes)")
parser.add_argument("--blocks", type=int, default=15, help="measurements of each side, of 10 ms or one call")
parser.add_argument("--quick", action="store_true", help="one block of everything: does it run?")
options = parser.parse_args()
if options.threads:                                 # before NumPy is imported, which reads them once
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(options.threads)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples"))

from dy2static import to_static  # noqa: E402
import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
import numpy as np  # noqa: E402

import beam_search  # noqa: E402
import lbfgs  # noqa: E402
from timing import seconds_per_call  # noqa: E402

LENGTH, BATCH, UNITS, N_IN = 64, 32, 256, 64


class RNN(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.w = L.Linear(N_IN, UNITS)
            self.u = L.Linear(UNITS, UNITS, nobias=True)
            self.out = L.Linear(UNITS, 10)


def rnn_last(model, x, lengths, t):
    """The loss of the last state of each example, which stops changing where the example ends.  x: (LENGTH, N, N_IN)"""
    h = chainer.Variable(np.zeros((BATCH, UNITS), np.float32))
    i = 0
    while i < lengths.max():
        there = np.broadcast_to((i < lengths)[:, None], h.shape)
        h = F.where(there, F.tanh(model.w(x[i]) + model.u(h)), h)
        i += 1
    return F.softmax_cross_entropy(model.out(h), t)


def rnn_list(model, x, lengths, t):
    """The loss of the mean of the states of each example, from a list of all states."""
    h = chainer.Variable(np.zeros((BATCH, UNITS), np.float32))
    states, i = [], 0
    while i < lengths.max():
        h = F.tanh(model.w(x[i]) + model.u(h)) * (i < lengths)[:, None].astype(np.float32)
        states.append(h)
        i += 1
    mean = F.sum(F.stack(states), axis=0) / lengths[:, None].astype(np.float32)
    return F.softmax_cross_entropy(model.out(mean), t)


def newton(a):
    """The sum of the roots of y + exp(y) = a, by Newton's method on all elements.  a: (64,) float64"""
    y = a * 0
    size = 1.0
    while size > 1e-10:
        e = F.exp(y)
        residual = y + e - a
        y = y - residual / (1 + e)
        size = float(abs(residual.array).max())
    return F.sum(y)


def maml(w1, w2, x, t, x_2, t_2):
    """The loss after one step of gradient descent on another batch; its gradient leads through that step."""
    def loss_of(w1, w2, x, t):
        return F.mean_squared_error(F.matmul(F.tanh(F.matmul(x, w1)), w2), t)

    g1, g2 = chainer.grad([loss_of(w1, w2, x, t)], [w1, w2], enable_double_backprop=True)
    return loss_of(w1 - 0.1 * g1, w2 - 0.1 * g2, x_2, t_2)


def inference(function, *args):
    def run():
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            function(*args)
    return run


def forward_backward(function, *args):
    """Loss and gradients with respect to the model or the Variables among the arguments."""
    inputs = [a for a in args if isinstance(a, (chainer.Variable, chainer.Link))]

    def run():
        loss = function(*args)
        for a in inputs:
            a.cleargrads() if isinstance(a, chainer.Link) else a.cleargrad()
        loss.backward()
    return run


def train_step(function, optimizer, model, *args):
    """A step of training: loss, gradients, update."""
    step = forward_backward(function, model, *args)

    def run():
        step()
        optimizer.update()
    return run


def rows():
    """(what, the function, how to call it) of every row."""
    np.random.seed(0)
    model = RNN()
    optimizer = chainer.optimizers.SGD(lr=1e-4).setup(model)
    x = np.random.randn(LENGTH, BATCH, N_IN).astype(np.float32)
    lengths = np.random.randint(LENGTH // 4, LENGTH + 1, BATCH)
    t = np.random.randint(0, 10, BATCH).astype(np.int32)
    for what, function in {"RNN, last state": rnn_last, "RNN, list and F.stack": rnn_list}.items():
        yield f"{what}, inference", function, lambda f: inference(f, model, x, lengths, t)
        yield f"{what}, training step", function, lambda f: train_step(f, optimizer, model, x, lengths, t)
    a = chainer.Variable(np.linspace(1, 20, 64))
    yield "Newton, 64 elements, inference", newton, lambda f: inference(f, a)
    yield "Newton, 64 elements, with gradient", newton, lambda f: forward_backward(f, a)
    speller = beam_search.Speller()
    beginning = beam_search.encode("me", 2)
    yield "beam search, 4 beams", beam_search.complete, lambda f: inference(f, speller, beginning)
    variables = [chainer.Variable(np.random.randn(*shape).astype(np.float32) * 0.1) for shape in ((20, 40), (40, 1))]
    data = [np.random.randn(*shape).astype(np.float32) for shape in ((10, 20), (10, 1)) * 2]
    yield "MAML, one inner step, with gradient", maml, lambda f: forward_backward(f, *variables, *data)
    (x_digits, t_digits), _ = lbfgs.digits()
    yield "L-BFGS on digits, whole", lbfgs.minimise, lambda f: lambda: f(x_digits[:200], t_digits[:200])


def main():
    print(f"{'milliseconds':<40}{'eager':>9}{'compiled':>10}{'ratio':>8}")
    for what, function, calling in rows():
        compiled = to_static(function)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")           # what is not compiled is shown below
            eager, ours = seconds_per_call([calling(function), calling(compiled)],
                                           *([1, 0] if options.quick else [options.blocks]))
        fell = "  (not compiled)" if compiled.cache_info().fallbacks else ""
        print(f"  {what:<38}{1e3 * eager:>9.3f}{1e3 * ours:>10.3f}{eager / ours:>8.2f}{fell}", flush=True)


if __name__ == "__main__":
    main()
