"""Four small programs that tell what a lazy array is: whose memory, what is computed once, what is compiled once, which backend.

    python examples/lazy/four_programs.py
"""
from dy2static import lazy
import numpy as np


def of_local_data():
    """A lazy result whose data were local to a function, and changed after it was built."""
    data = np.arange(4.0)
    result = np.sqrt(lazy.array(data)) + 1
    data[:] = -1
    return result


def parts():
    """Two results, one of which contains the other: either may be looked at first, and nothing is computed twice."""
    rng = np.random.RandomState(0)
    x, w, b = (lazy.array(rng.rand(*shape)) for shape in ((3, 4), (4,), (3,)))
    part = x.dot(w)
    return part, part + b


def minibatches():
    """How many structures and programs a loop over 100 minibatches makes."""
    before = lazy.stats()
    w, b = lazy.array(np.ones(100)), 0.25
    rng = np.random.RandomState(0)
    serialised = []
    for _ in range(100):
        x = lazy.array(rng.rand(500, 100))
        y = x.dot(w) + b
        serialised.append(y.tobytes())
    after = lazy.stats()
    return len(serialised), after["structures"] - before["structures"], after["captures"] - before["captures"]


def main():
    print("1.", of_local_data())
    part, whole = parts()
    print("2. the whole first:", np.round(np.asarray(whole), 3), "and then the part is there:", part.is_evaluated)
    part, whole = parts()
    print("   the part first:", np.round(np.asarray(part), 3), "and the whole, from it:", np.round(np.asarray(whole), 3))
    print("3. minibatches %d, structures %d, captures %d" % minibatches())
    built = np.tanh(lazy.array(np.linspace(0, 1, 5))) * 2
    with lazy.backend("numpy"):
        print("4. built before the backend was chosen:", np.round(np.asarray(built), 3))


if __name__ == "__main__":
    main()
