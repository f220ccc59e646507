"""Conway's Game of Life in integers: counts of neighbours by shifted copies of the board.

    python examples/lazy/life.py [--generations 60]

Generations are built one upon the other.  The expression is computed when it has grown to its bound, and when the board is
looked at.  The board starts with an image of a digit of scikit-learn's, and a glider.
"""
import argparse

from dy2static import lazy
import numpy as np
from sklearn.datasets import load_digits


def board():
    """The start: (24, 40) int8."""
    cells = np.zeros((24, 40), np.int8)
    cells[8:16, 16:24] = load_digits().images[0] > 7
    cells[1:4, 1:4] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
    return cells


def following(cells):
    """The next generation."""
    rows = np.roll(cells, 1, axis=0) + cells + np.roll(cells, -1, axis=0)
    three_by_three = np.roll(rows, 1, axis=1) + rows + np.roll(rows, -1, axis=1)
    return ((three_by_three == 3) | (cells & (three_by_three == 4))).astype(np.int8)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--generations", type=int, default=60)
    options = parser.parse_args()
    cells, expected = lazy.array(board()), board()
    for _ in range(options.generations):
        cells, expected = following(cells), following(expected)
    for row in cells:
        print("".join(".#"[int(each)] for each in row))
    print(f"alive {int(cells.sum())}, dtype {cells.dtype}, as NumPy: {np.array_equal(np.asarray(cells), expected)}")


if __name__ == "__main__":
    main()
