"""L-BFGS with a backtracking line search, compiled as a whole: gradients, loops and writes into arrays included.

    python examples/lbfgs.py [--memory 5]

`minimise` is ordinary Chainer and NumPy.  Its outer `while` ends when the gradient is small, its inner one when the
objective has gone down enough; the gradient comes from `chainer.grad`, and the last steps are kept in two arrays that are
written in place.  ``to_static`` makes one function of it, which runs from the first step to the last without Python
deciding anything about Variables.  What it fits is a classifier of handwritten digits, by logistic regression.

The data (1,797 images of 8x8 pixels) come with scikit-learn; nothing is downloaded.
"""
import argparse
import time

from dy2static import to_static
import chainer
import chainer.functions as F
import numpy as np
from sklearn.datasets import load_digits


def digits():
    """((x, t) to learn from, (x, t) to test with): x: (N, 65) float64, the last column 1; t: (N,) int32."""
    bunch = load_digits()
    x, t = np.column_stack([bunch.data / 16, np.ones(len(bunch.data))]), bunch.target.astype(np.int32)
    order = np.random.RandomState(0).permutation(len(x))
    return (x[order[:1440]], t[order[:1440]]), (x[order[1440:]], t[order[1440:]])


def objective(x, t, w):
    """Cross entropy with a little regularisation: a Variable without dimensions.  w: (65 * 10,) float64"""
    return F.softmax_cross_entropy(F.matmul(x, w.reshape(x.shape[1], 10)), t) + 5e-4 * F.sum(w * w)


def value_and_gradient(x, t, w):
    """Both as arrays, at the array w."""
    w = chainer.Variable(w)
    loss = objective(x, t, w)
    gradient, = chainer.grad([loss], [w])
    return loss.array, gradient.array


def direction(gradient, s, y, rho):
    """The array that the last steps ``s`` and changes of the gradient ``y`` make of the gradient: about H^-1 g.

    s, y: (memory, D) float64, the newest last; rho: (memory,) float64, 0 where there is no step yet.
    The two loops of Nocedal and Wright, Numerical Optimization, algorithm 7.4.
    """
    r = gradient.copy()
    alpha = np.zeros(len(rho))
    for i in reversed(range(len(rho))):
        alpha[i] = rho[i] * s[i].dot(r)
        r -= alpha[i] * y[i]
    if rho[-1] > 0:
        r /= rho[-1] * y[-1].dot(y[-1])
    for i in range(len(rho)):
        r += (alpha[i] - rho[i] * y[i].dot(r)) * s[i]
    return r


def push(rows, row):
    """Forgets the first row and puts the new one last, in place."""
    rows[:-1] = rows[1:].copy()
    rows[-1] = row


def minimise(x, t, memory=5, tolerance=1e-5, limit=200):
    """(weights: (650,), loss, steps, evaluations of the objective) at the minimum."""
    w = np.zeros(x.shape[1] * 10)
    s, y, rho = np.zeros((memory, len(w))), np.zeros((memory, len(w))), np.zeros(memory)
    loss, gradient = value_and_gradient(x, t, w)
    steps, evaluations = 0, 1
    while abs(gradient).max() > tolerance and steps < limit:
        d = direction(gradient, s, y, rho)
        slope = gradient.dot(d)
        rate = 1.0
        new_loss, new_gradient = value_and_gradient(x, t, w - rate * d)
        evaluations += 1
        while new_loss > loss - 1e-4 * rate * slope and rate > 1e-8:
            rate *= 0.5
            new_loss, new_gradient = value_and_gradient(x, t, w - rate * d)
            evaluations += 1
        change = new_gradient - gradient
        curvature = -rate * d.dot(change)
        if curvature > 1e-12:
            push(s, -rate * d)
            push(y, change)
            push(rho, 1 / curvature)
        w = w - rate * d
        loss, gradient = new_loss, new_gradient
        steps += 1
    return w, loss, steps, evaluations


def main():
    """Minimise eagerly and compiled, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memory", type=int, default=5, help="steps to remember")
    options = parser.parse_args()
    (x, t), (x_2, t_2) = digits()
    compiled = to_static(minimise, strict=True)
    compiled(x, t, options.memory)                    # the first call compiles
    seconds, weights = [], []
    print(f"{'':<10}{'loss':>12}{'steps':>7}{'evaluations':>13}{'accuracy':>10}{'seconds':>9}")
    for name, function in {"eager": minimise, "compiled": compiled}.items():
        started = time.perf_counter()
        w, loss, steps, evaluations = function(x, t, options.memory)
        seconds.append(time.perf_counter() - started)
        weights.append(w)
        accuracy = (x_2.dot(w.reshape(-1, 10)).argmax(axis=1) == t_2).mean()
        print(f"{name:<10}{float(loss):>12.8f}{steps:>7}{evaluations:>13}{accuracy:>10.4f}{seconds[-1]:>9.3f}")
    print(f"largest difference between the weights: {abs(weights[0] - weights[1]).max():.1e}")
    print(compiled.cache_info())


if __name__ == "__main__":
    main()
