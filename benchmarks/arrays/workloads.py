"""What is computed: the cells, their arrays, and the programs in NumPy's spelling, which most libraries take as they are."""
import numpy as np

CELLS = {
    "chain": "ten elementwise operations on 1M float32",
    "softmax": "softmax regression, 784 to 10, a step on each of 1,000 minibatches of 64 (time of one)",
    "black_scholes": "Black-Scholes prices of calls, 10M float64",
    "pairs": "distances of 10,000 points to 64 centres in 16 dimensions, and the nearest",
    "stencil": "five points of 2000 by 2000 float64",
    "sums_0": "sum over axis 0 of 2000 by 2000 float32",
    "sums_1": "sum over axis 1 of the same",
    "spread_0": "standard deviation over axis 0 of the same",
    "four": "x + 1 on four float64, built and computed",
}


def arrays(cell, small=False):
    """The arrays of a cell by name, always the same ones; ``small``: in sizes for tests."""
    rng = np.random.RandomState(0)
    if cell == "chain":
        return {"x": rng.uniform(0.5, 2, 1000 if small else 1_000_000).astype("f")}
    if cell == "softmax":
        return {"x": rng.rand(4 if small else 1000, 64, 784).astype("f"), "t": rng.randint(0, 10, (4 if small else 1000, 64)),
                "w": (rng.randn(784, 10) * 0.01).astype("f")}
    if cell == "black_scholes":
        n = 1000 if small else 10_000_000
        return {"s": rng.uniform(10, 50, n), "k": rng.uniform(10, 50, n), "t": rng.uniform(1, 2, n)}
    if cell == "pairs":
        return {"x": rng.rand(100 if small else 10_000, 16), "c": rng.rand(64, 16)}
    if cell == "four":
        return {"x": rng.rand(4)}
    n = 20 if small else 2000
    return {"x": rng.rand(n, n) if cell == "stencil" else rng.rand(n, n).astype("f")}


def programs(np):
    """The programs by cell, on arrays of ``np``: a namespace in NumPy's spelling."""
    def chain(x):
        y = x * 2 + 1
        y = np.sqrt(y) * x - 0.5
        y = y * y + x
        return np.abs(y) / (x + 1)

    def black_scholes(s, k, t):
        rate, volatility = 0.02, 0.3
        root = volatility * np.sqrt(t)
        d1 = (np.log(s / k) + (rate + volatility * volatility / 2) * t) / root
        d2 = d1 - root
        return s * normal(d1) - k * np.exp(-rate * t) * normal(d2)

    def normal(x):
        """The distribution function by the polynomial of Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.17."""
        a = np.abs(x)
        k = 1 / (1 + 0.2316419 * a)
        w = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
        found = 1 - 0.3989422804014327 * np.exp(a * a * -0.5) * w
        return np.where(x < 0, 1 - found, found)

    def pairs(x, c):
        distances = np.sum(x * x, axis=1)[:, None] - 2 * (x @ c.T) + np.sum(c * c, axis=1)
        return np.argmin(distances, axis=1)

    def stencil(x):
        return 0.25 * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]) - x[1:-1, 1:-1]

    return {"chain": chain, "black_scholes": black_scholes, "pairs": pairs, "stencil": stencil,
            "sums_0": lambda x: np.sum(x, axis=0), "sums_1": lambda x: np.sum(x, axis=1), "spread_0": lambda x: np.std(x, axis=0),
            "four": lambda x: x + 1}


def softmax_step(np, x, hot, w):
    """The weights after a step of softmax regression.  hot: rows with a one at the label."""
    z = x @ w
    e = np.exp(z - np.max(z, axis=1, keepdims=True))
    p = e / np.sum(e, axis=1, keepdims=True)
    return w - (0.1 / x.shape[0]) * (x.T @ (p - hot))


def hot(t):
    """Labels (N, B) as rows with a one: (N, B, 10) float32."""
    return np.eye(10, dtype="f")[t]


def check(found):
    """Numbers that all libraries agree on."""
    found = np.asarray(found, dtype="d")
    return [float(found.sum()), float(np.abs(found).sum()), *map(float, found.ravel()[:3])]


ELEMENTWISE = "chain black_scholes pairs stencil sums_0 sums_1 spread_0 four"
