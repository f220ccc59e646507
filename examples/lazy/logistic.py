"""Logistic regression over minibatches: array code in NumPy's spelling, computed when a value is looked at.

    python examples/lazy/logistic.py [--epochs 20]

The minibatches are small, so NumPy's calls compute them; of larger ones, the expression of an iteration would be compiled
once.  The data (569 tumours, 30 measurements of each) come with scikit-learn.
"""
import argparse

from dy2static import lazy
import numpy as np
from sklearn.datasets import load_breast_cancer


def tumours():
    """(x, t): x: (N, 31) float64, the last column 1; t: (N,) float64 in {0, 1}."""
    bunch = load_breast_cancer()
    x = (bunch.data - bunch.data.mean(axis=0)) / bunch.data.std(axis=0)
    order = np.random.RandomState(0).permutation(len(x))
    return np.column_stack([x, np.ones(len(x))])[order], bunch.target[order].astype(float)


def fit(array, x, t, epochs, size=64, rate=0.5):
    """The weights after some epochs: (31,), and the loss of the last minibatch.  array: what makes arrays of data."""
    w = array(np.zeros(x.shape[1]))
    for _ in range(epochs):
        for start in range(0, len(x) - size + 1, size):
            part, labels = array(x[start:start + size]), array(t[start:start + size])
            p = 1 / (1 + np.exp(-(part @ w)))
            loss = -np.mean(labels * np.log(p) + (1 - labels) * np.log(1 - p))
            w = w - rate * (part.T @ (p - labels)) / size
            float(loss)                                 # here p, loss and w are computed
    return np.asarray(w), float(loss)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    x, t = tumours()
    before = lazy.stats()
    w, loss = fit(lazy.array, x[:400], t[:400], options.epochs)
    expected, _ = fit(np.array, x[:400], t[:400], options.epochs)
    after = lazy.stats()
    right = np.mean((x[400:] @ w > 0) == t[400:])
    print(f"loss {loss:.4f}, accuracy on other data {right:.3f}")
    print(f"largest difference to NumPy {abs(w - expected).max():.1e}")
    print(f"minibatches {options.epochs * 6}, structures {after['structures'] - before['structures']}, "
          f"captures {after['captures'] - before['captures']}")


if __name__ == "__main__":
    main()
