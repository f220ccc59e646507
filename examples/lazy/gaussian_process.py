"""Hyperparameters of a Gaussian process by the gradient of the marginal likelihood, in NumPy's spelling.

    python examples/lazy/gaussian_process.py [--steps 40]

The kernel is signal² exp(-|a - b|² / (2 length²)) + noise² I (Rasmussen and Williams, Gaussian Processes for Machine Learning,
equations 2.31 and 5.8).  The data (442 patients, 10 measurements of each) come with scikit-learn.
"""
import argparse

from dy2static import lazy
import numpy as np
from sklearn.datasets import load_diabetes


def patients(count):
    """x: (count, 10) and y: (count,), scaled to deviation 1, to learn from, and as many or fewer others to predict: float64."""
    bunch = load_diabetes()
    x, y = bunch.data / bunch.data.std(axis=0), (bunch.target - bunch.target.mean()) / bunch.target.std()
    order = np.random.RandomState(0).permutation(len(x))
    return x[order[:count]], y[order[:count]], x[order[count:2 * count]], y[order[count:2 * count]]


def kernel(a, b, theta):
    """The covariances of points: (N, D) and (M, D) give (N, M).  theta: logarithms of signal, length and noise."""
    distances = (a ** 2).sum(axis=1)[:, None] + (b ** 2).sum(axis=1) - 2 * (a @ b.T)
    return np.exp(2 * theta[0] - 0.5 * distances * np.exp(-2 * theta[1]))


def covariance(theta, x, eye):
    """Of noisy observations at x: (N, D) gives (N, N).  eye: the unit matrix."""
    return kernel(x, x, theta) + np.exp(2 * theta[2]) * eye


def negative_log_likelihood(theta, x, y, eye):
    """Of y: (N,) at x: (N, D), without the constant term: equation 5.8."""
    noisy = covariance(theta, x, eye)
    return 0.5 * (y @ np.linalg.solve(noisy, y)) + np.log(np.diagonal(np.linalg.cholesky(noisy))).sum()


def gradient_of(theta, x, y, eye):
    """The gradient of `negative_log_likelihood` by theta: lazy, (3,).

    Functions of linear algebra have no gradients of their own, so the sensitivity of the covariance is written out (equation 5.9).
    """
    inverse = np.linalg.inv(covariance(theta, x, eye))
    weights = inverse @ y
    sensitivity = 0.5 * (inverse - weights[:, None] * weights)
    return lazy.grad(lambda theta: (sensitivity * covariance(theta, x, eye)).sum())(theta)


def numerical_gradient(theta, *given, step=1e-5):
    """The same by central differences, with NumPy: (3,)."""
    return np.array([(negative_log_likelihood(theta + move, *given) - negative_log_likelihood(theta - move, *given)) / (2 * step)
                     for move in np.eye(3) * step])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    x, y, x_new, y_new = patients(120)
    given = x, y, np.eye(len(x))
    arrays = [lazy.array(each) for each in given]
    theta, moment, before = lazy.array(np.zeros(3)), np.zeros(3), lazy.stats()
    start = negative_log_likelihood(theta, *arrays)
    for step in range(options.steps):
        gradient = gradient_of(theta, *arrays)
        if step == 0:
            apart = abs(gradient - numerical_gradient(np.zeros(3), *given)).max()
            print(f"largest difference to numerical gradients {float(apart):.1e}")
        moment = 0.7 * moment + gradient
        theta = theta - 0.003 * moment
        lazy.evaluate(theta, moment)
    loss = negative_log_likelihood(theta, *arrays)
    print(f"negative log likelihood {float(start):.3f} at first, {float(loss):.3f} at last")
    after = lazy.stats()
    weights = np.linalg.solve(covariance(theta, arrays[0], arrays[2]), arrays[1])
    error = np.mean((kernel(lazy.array(x_new), arrays[0], theta) @ weights - y_new) ** 2)
    print(f"signal, length, noise {np.round(np.exp(np.asarray(theta)), 3)}")
    print(f"squared error on other patients {float(error):.3f}, of the mean {np.mean(y_new ** 2):.3f}")
    print(f"structures {after['structures'] - before['structures']}, captures {after['captures'] - before['captures']}")


if __name__ == "__main__":
    main()
