"""Chooses the regularisation of a logistic regression by a gradient through Newton's method.

    python examples/newton.py [--steps 8]

The weights that fit the training data best depend on the strength of the regularisation.  Newton's method finds them:
a `while` that ends when the gradient of the loss is small, each step solving a linear system.  Because the loop is
compiled with its gradient, the loss on other data can be differentiated with respect to the strength, and a few
steps of gradient descent choose it.  The gradient is checked against finite differences, and against eager.

The data (569 tumours, 30 measurements of each) come with scikit-learn; nothing is downloaded.
"""
import argparse
import time

from dy2static import to_static
import chainer
import chainer.functions as F
import numpy as np
from sklearn.datasets import load_breast_cancer


def tumours():
    """((x, t) to fit, (x, t) to validate): x: (N, 31) float64, the last column 1; t: (N,) float64 in {0, 1}."""
    bunch = load_breast_cancer()
    x = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    x, t = np.column_stack([x, np.ones(len(x))]), bunch.target.astype(np.float64)
    order = np.random.RandomState(0).permutation(len(x))
    return (x[order[:300]], t[order[:300]]), (x[order[300:]], t[order[300:]])


def fit(x, t, log_strength):
    """(the weights that minimise cross entropy + strength / 2 * |w|^2: (D,), the steps taken)."""
    n, d = x.shape
    strength = F.exp(log_strength)
    w = chainer.Variable(np.zeros((d, 1)))
    steps, size = 0, 1.0
    while size > 1e-8 and steps < 50:
        p = F.sigmoid(F.matmul(x, w))
        gradient = F.matmul(x, p - t[:, None], transa=True) / n + F.broadcast_to(strength, w.shape) * w
        weighted = x * F.broadcast_to(p * (1 - p), x.shape)
        hessian = F.matmul(x, weighted, transa=True) / n + F.broadcast_to(strength, (d, d)) * np.eye(d)
        w = w - F.matmul(F.inv(hessian), gradient)
        size = float(abs(gradient.array).max())
        steps += 1
    return w[:, 0], steps


def validation_loss(data, log_strength):
    """(the cross entropy on the validation data of what was fitted to the other, the share of right answers, steps)."""
    (x, t), (x_2, t_2) = data
    w, steps = fit(x, t, log_strength)
    z = F.matmul(x_2, w)
    loss = F.mean(F.softplus(z) - z * t_2)
    return loss, ((z.array > 0) == t_2).mean(), steps


def slope(function, data, log_strength):
    """The derivative of the loss with respect to the logarithm of the strength."""
    log_strength = chainer.Variable(np.array(log_strength))
    loss, _, _ = function(data, log_strength)
    loss.backward()
    return float(log_strength.grad)


def finite_difference(function, data, log_strength, eps=1e-4):
    up, down = [function(data, chainer.Variable(np.array(log_strength + e)))[0].array for e in (eps, -eps)]
    return float((up - down) / (2 * eps))


def seconds(function, *args, repeat=20):
    started = time.perf_counter()
    for _ in range(repeat):
        slope(function, *args)
    return (time.perf_counter() - started) / repeat


def main():
    """Check the gradient, use it, and show how fast it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8, help="steps of gradient descent on the strength")
    options = parser.parse_args()
    data = tumours()
    compiled = to_static(validation_loss, strict=True)

    print(f"{'strength':>10}{'compiled':>16}{'eager':>16}{'differences':>16}   derivative by log(strength)")
    for log_strength in np.log([1e-4, 1e-3, 1e-2, 1e-1]):
        found = [slope(compiled, data, log_strength), slope(validation_loss, data, log_strength),
                 finite_difference(validation_loss, data, log_strength)]
        print(f"{np.exp(log_strength):>10.4f}" + "".join(f"{g:>16.10f}" for g in found))
        assert np.allclose(found, found[0], rtol=1e-5)

    print(f"\n{'strength':>10}{'loss':>10}{'accuracy':>10}{'Newton steps':>14}")
    log_strength = chainer.Variable(np.array(np.log(1e-4)))
    for _ in range(options.steps + 1):
        loss, accuracy, steps = compiled(data, log_strength)
        print(f"{np.exp(log_strength.array):>10.5f}{float(loss.array):>10.5f}{float(accuracy):>10.4f}{steps:>14}")
        log_strength.cleargrad()
        loss.backward()
        log_strength = chainer.Variable(np.asarray(log_strength.array - 20 * log_strength.grad))

    eager, ours = seconds(validation_loss, data, np.log(0.01)), seconds(compiled, data, np.log(0.01))
    print(f"\nloss and gradient: eager {1e3 * eager:.2f} ms, compiled {1e3 * ours:.2f} ms, {eager / ours:.1f} times as fast")
    print(compiled.cache_info())


if __name__ == "__main__":
    main()
