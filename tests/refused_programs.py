"""Small programs that are not compiled, one for each reason: what the user is told must help.

A program takes one Variable of shape (2, 3).  Its refused line ends in ``# <-``, where it is known.
"""
import logging
import random
import sys
import traceback

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

from dy2static import not_to_static


class Box:
    """A plain object with state."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Own(Box):
    """A class that says itself how attributes are read."""

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


class Closing(Box):
    """A class that does something when an object goes away."""

    def __del__(self):
        pass


class Net(chainer.Chain):
    """A model, which is not compiled itself."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(3, 3, initialW=np.eye(3, dtype="f"))

    def forward(self, x):
        return self.l(x)


model, box, log = Net(), Box(n=1), logging.getLogger("refused")
log.addHandler(logging.NullHandler())
log.propagate = False


@not_to_static
def changes(item):
    item.n = 2


# --- what belongs outside -----------------------------------------------------------------------------------------------


def from_chx(x):
    x.from_chx()  # <-
    return x * 2


def setup(x):
    chainer.optimizers.Adam().setup(model)  # <-
    return x * 2


def backward_of_many(x):
    y = model(x)
    y.backward()  # <-
    return y


def chainer_backward(x):
    loss = F.sum(model(x))
    chainer.backward([loss])  # <-
    return loss


def node_read(x):
    y = x * 2
    return y, y.node.rank  # <-


def array_assigned(x):
    y = x * 2
    y.array = x.array * 3  # <-
    return y


def data_retained(x):
    y = x * 2
    y.retain_data()  # <-
    return y


def parameter_made(x):
    w = chainer.Parameter(np.ones((2, 3), "f"))
    F.sum(x * w).backward()  # <-
    return w.grad


def seed(x):
    random.seed(0)  # <-
    return F.dropout(x)


def shuffled(x):
    order = [0, 1, 2]
    random.shuffle(order)  # <-
    return x[:, order[0]]


def scope(x):
    with chainer.Reporter().scope({}):
        observation = dict(chainer.get_current_reporter().observation)  # <-
    return x, observation


# --- values that only the run knows -----------------------------------------------------------------------------------


def index_of_list(x):
    names = ["a"] * 100
    return x, names[: int(x.array.sum() * 100)]  # <-


def key(x):
    table = {}
    table[float(x.array.sum())] = 1  # <-
    return x, table


def repeated(x):
    return x, [0] * int(x.array.sum() * 1000)  # <-


def listed(x):
    return x, tuple(range(int(x.array.sum() * 1000)))  # <-


def truth_of_many(x):
    if x.array > 0:  # <-
        return x
    return x * 2


def mask_twice(x):
    return x[x.array > 0, x.array > 0]  # <-


def data_pointer(x):
    return x, x.array.ctypes  # <-


def flags(x):
    return x, F.relu(x).array.flags.writeable  # <-


def unequal_dtype(x):
    return np.roots(x.array[0]) + x.array[0, 0]  # <-


def intersect(x):
    return np.intersect1d(x.array, x.array * 2)  # <-


def windows(x):
    y = np.zeros((2, 5), "f")
    np.add(y[:, int(x.array.sum() * 0):], np.ones((2, 5), "f"), out=y)  # <-
    return x * y[:, :3]


def draws(x):
    return np.random.uniform(size=int(abs(x.array.sum())) + 1)  # <-


def histogram(x):
    return np.histogram(x.array, bins="auto")[0]  # <-


# --- decisions and loops ----------------------------------------------------------------------------------------------


def kinds_in_loop(x):
    s = 0
    while float(x.array.sum()) < 100:  # <-
        x = x + 1
        s = (s, 1)
    return x, s


def range_kept(x):
    r = range(int(abs(x.array.sum())))
    return x, r


def tuple_in_loop(x):
    out = ()
    while float(x.array.sum()) < 100:
        x = x + 1
        out = out + (x,)
    return out


def variables_in_list(x):
    out = []
    while float(x.array.sum()) < 100:
        x = x + 1
        out.append(chainer.Variable(x.array))
    return out


def item_assigned(x):
    out = []
    while float(x.array.sum()) < 100:
        x = x + 1
        out.append(x)
    out[0] = x  # <-
    return F.stack(out)


def recursion(x):
    if float(x.array.sum()) < 100:
        return recursion(x + 1)
    return x


def raised_by_python(x):
    if float(x.array.sum()) > 100:
        [].index(2)  # <-
    return x


def stored_in_loop(x):
    while float(x.array.sum()) < 100:
        x = x + 1
        box.h = x
        print(x)  # <-
    return x


def grows_in_two(x):
    items = []
    box.a, box.b = items, items
    if float(x.array.sum()) > 100:
        raise ValueError("big")  # <-
    return x


# --- the host ---------------------------------------------------------------------------------------------------------


def state_after(x):
    changes(box)
    return x * box.n  # <-


def new_list_given(x):
    items = [x]
    changes_list(items)  # <-
    return x * len(items)


@not_to_static
def changes_list(items):
    items.append(1)


def traceback_logged(x):
    try:
        if float(x.array.sum()) > 100:
            raise ValueError("big")
    except ValueError:
        log.exception("too big")  # <-
    return x


def traceback_printed(x):
    try:
        return {}["k"] * x
    except KeyError:
        traceback.print_exc(file=sys.stderr)  # <-
    return x


def function_leaves(x):
    def inner(y):
        return y * 2
    inner.name = "inner"
    return inner


def sizes_that_may_not_match(x):
    chosen = F.tanh(x)[x.array > 0] * F.tanh(x)[x.array <= 0]  # <-
    return F.sum(chosen)


def sizes_that_may_not_match_for_numpy(x):
    return F.tanh(x) * (x.array[x.array > 0] * x.array[x.array <= 0][:1]).sum()  # <-


def generator_leaves(x):
    return (y for y in [x, x])


def error_leaves(x):
    return x, ValueError("kept")


# --- classes ----------------------------------------------------------------------------------------------------------


def class_attribute(x):
    Box.twice = property(id)  # <-
    return x


def class_derived(x):
    class Inner(Box):  # <-
        pass
    return x


def own_reading(x):
    made = Own(n=2)
    return x * made.n


def closing(x):
    made = Closing(n=2)  # <-
    return x * made.n


def config_for_good(x):
    chainer.config.train = False  # <-
    return x


def numpy_errors(x):
    np.seterr(all="ignore")  # <-
    return x


def with_write(x):
    with np.errstate(all="raise"):  # <-
        y = x.array / x.array.sum()
    return x * y


def forget(x):
    return F.forget(lambda v: model(v) * 2, x)  # <-




def read_from_text(x):
    return float(f"{x.array.sum():.1f}") * x  # <-


def written_into(x):
    y = np.zeros((2, 3), "f")
    np.cumsum(x.array, axis=1, out=y[:, ::-1].T)  # <-
    return y


def unchained(x):
    y = x * 2
    box.y = y
    print(y.array.sum(), y)
    y.unchain()  # <-
    return y * x


def gradient_of_a_number(x):
    y = F.sum(x * 2)
    return chainer.grad([y], [x, 3])  # <-
