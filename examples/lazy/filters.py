"""A chain of image filters: blur, edges, contrast, threshold, each a function of arrays.

    python examples/lazy/filters.py

Each filter is written for itself, and returns an array; looking at the last one computes them all as one program.  The images (1797
digits of 8 by 8) come with scikit-learn.
"""
from dy2static import lazy
import numpy as np
from sklearn.datasets import load_digits


def blur(images):
    """The mean of each pixel and its neighbours: (N, H, W) to (N, H - 2, W - 2)."""
    rows = images[:, :-2] + 2 * images[:, 1:-1] + images[:, 2:]
    return (rows[:, :, :-2] + 2 * rows[:, :, 1:-1] + rows[:, :, 2:]) / 16


def edges(images):
    """The length of the gradient at each pixel: (N, H, W) to (N, H - 2, W - 2)."""
    across = images[:, 1:-1, 2:] - images[:, 1:-1, :-2]
    down = images[:, 2:, 1:-1] - images[:, :-2, 1:-1]
    return np.sqrt(across ** 2 + down ** 2)


def contrast(images):
    """Each image with values from 0 to 1."""
    least, most = images.min(axis=(1, 2), keepdims=True), images.max(axis=(1, 2), keepdims=True)
    return (images - least) / np.maximum(most - least, 1e-12)


def chain(images):
    """The strong edges of blurred images: (N, H, W) float to (N, H - 4, W - 4) bool."""
    return contrast(edges(blur(images))) > 0.5


def main():
    images = load_digits().images / 16
    found = chain(lazy.array(images))
    print("computed before anybody looks:", found.is_evaluated)
    for row in np.asarray(found[0]):
        print("".join(".#"[int(each)] for each in row))
    other = np.asarray(found) != chain(images)
    print(f"pixels on edges {float(found.mean()):.4f}, pixels that NumPy finds otherwise {int(other.sum())}")


if __name__ == "__main__":
    main()
