"""k-means on images of digits: distances of all pairs, the nearest centre, means.

    python examples/lazy/kmeans.py [--clusters 10] [--steps 15]

A step is one expression.  The data (1797 images of 8 by 8) come with scikit-learn.
"""
import argparse

from dy2static import lazy
import numpy as np
from sklearn.datasets import load_digits


def step(x, centres):
    """(the nearest centre of each point: (N,) int, the new centres: (K, D), the mean of squared distances)."""
    distances = (x * x).sum(axis=1)[:, None] - 2 * (x @ centres.T) + (centres * centres).sum(axis=1)
    nearest = distances.argmin(axis=1)
    belongs = (nearest[:, None] == np.arange(len(centres))).astype(float)
    counts = np.maximum(belongs.sum(axis=0), 1)
    return nearest, (belongs.T @ x) / counts[:, None], distances.min(axis=1).mean()


def clusters(array, data, k, steps):
    """(assignments: (N,) int, the inertia after each step)"""
    x = array(data)
    centres = array(data[np.random.RandomState(0).choice(len(data), k, replace=False)])
    inertia = []
    for _ in range(steps):
        nearest, centres, spread = step(x, centres)
        inertia.append(float(spread))
    return np.asarray(nearest), inertia


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clusters", type=int, default=10)
    parser.add_argument("--steps", type=int, default=15)
    options = parser.parse_args()
    data, labels = load_digits(return_X_y=True)
    nearest, inertia = clusters(lazy.array, data / 16, options.clusters, options.steps)
    expected, wanted = clusters(np.array, data / 16, options.clusters, options.steps)
    pure = sum(np.bincount(labels[nearest == k]).max() for k in range(options.clusters) if (nearest == k).any()) / len(labels)
    print("mean squared distance", " ".join(f"{each:.3f}" for each in inertia))
    print(f"share of digits with the most frequent one of their cluster {pure:.3f}")
    print(f"points that NumPy puts into another cluster {int((nearest != expected).sum())}, "
          f"largest difference {max(abs(a - b) for a, b in zip(inertia, wanted)):.1e}")


if __name__ == "__main__":
    main()
