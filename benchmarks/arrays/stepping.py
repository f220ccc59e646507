"""Cases that every library in NumPy's spelling makes the same way."""
import itertools

from arrays import workloads
from cases import Case


def case_of(program, data, wait=None, compiled=None):
    """A case: the program on the arrays.  wait: computes a result."""
    arguments = list(data.values())
    return Case(lambda: program(*arguments), workloads.check, wait, compiled=compiled)


def softmax(step, data, made, wait, result=lambda w: w):
    """A case whose steps take one minibatch after the other.

    step(x, hot, w) gives new weights; ``made`` makes an array of the library's of NumPy's; wait(w) computes.
    """
    x, hot = data["x"], workloads.hot(data["t"])
    w = made(data["w"])
    places = itertools.cycle(range(len(x)))

    def one():
        nonlocal w
        place = next(places)
        w = step(made(x[place]), made(hot[place]), w)
        return w
    return Case(one, lambda w: workloads.check(result(w)), wait, checked=3)
