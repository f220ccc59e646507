"""Random sessions on lazy arrays beside NumPy: writes, views, names and deletions, looked at in any order.

``python -m tests.lazy.ownership_machine --examples 2000 --steps 60`` runs it long, with compiled programs.
"""
import argparse
import functools
import operator

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from dy2static import lazy

VIEWS = {
    "rows": lambda x: x[1:], "last": lambda x: x[..., -1:], "turned": lambda x: x.T, "every second": lambda x: x[::2],
    "flat": lambda x: x.reshape(-1), "ravel": lambda x: np.ravel(x), "one": lambda x: x[0], "diagonal": lambda x: np.diagonal(x.reshape(2, 2)),
    "new axis": lambda x: x[None], "swapped": lambda x: np.swapaxes(x, 0, -1), "flipped": lambda x: np.flip(x),
    "square": lambda x: x.reshape(2, -1), "squeezed": lambda x: x.squeeze(), "real": lambda x: x.real, "half": lambda x: np.array_split(x, 2)[1],
    "many views": lambda x: functools.reduce(lambda y, _: y[::-1], range(11), x), "trimmed": lambda x: np.trim_zeros(x.reshape(-1)),
    "einsum": lambda x: np.einsum("...i->i...", x), "diag": lambda x: np.diag(x.reshape(2, 2)), "no copy": lambda x: x.astype(float, copy=False),
    "wide": lambda x: np.broadcast_to(x, (2, *x.shape)), "at least": lambda x: np.atleast_2d(x),
}
MAKERS = {
    "plus": lambda x: x + 1, "negative": lambda x: -x, "twice": lambda x: np.multiply(x, 2), "sum": lambda x: x.sum(), "copy": lambda x: x.copy(),
    "whole": lambda x: x.astype(int), "cumulated": lambda x: np.cumsum(x), "chosen": lambda x: x[np.array([0, 0])],
    "columns": lambda x: x.max(axis=0), "joined": lambda x: np.concatenate([x, x]), "element": lambda x: x[(0,) * x.ndim],
}
IN_PLACE = [operator.iadd, operator.isub, operator.imul]
LOOKS = [np.asarray, str, lambda x: x.tolist(), lambda x: float(np.sum(x)), lambda x: x.shape, lambda x: [np.array(row) for row in x]]


def outcome(f, *args):
    """What a call gives, or the kind of the error."""
    try:
        return f(*args)
    except (ValueError, TypeError, IndexError) as error:
        return type(error)


class Sessions(RuleBasedStateMachine):
    """Pairs of an array and the lazy array that stands for it."""

    def __init__(self):
        super().__init__()
        self.pairs, self.foreign = [], []

    def pick(self, data):
        return self.pairs[data.draw(st.integers(0, len(self.pairs) - 1))]

    def add(self, wanted, got):
        if isinstance(wanted, type):                    # an error of NumPy's: the lazy one comes when it is computed, or now
            got = got if isinstance(got, type) else outcome(lambda: np.asarray(got))
            assert got is wanted
        elif np.size(wanted) <= 64:
            self.pairs.append((wanted, got))

    @rule(shape=st.sampled_from([(4,), (2, 2), (1, 4), (3,), (), (0, 2)]), is_whole=st.booleans(), keep=st.booleans())
    def make(self, shape, is_whole, keep):
        x = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(int if is_whole else float)
        if keep:                                        # somebody else has it, and may write to it
            self.pairs.append((x.copy(), lazy.array(x)))
            self.foreign.append(x)
        else:
            self.pairs.append((x.copy(), lazy.array(x.copy())))

    @precondition(lambda self: self.foreign)
    @rule(data=st.data())
    def write_to_a_foreign_array(self, data):
        data.draw(st.sampled_from(self.foreign))[...] = 77

    @precondition(lambda self: self.pairs)
    @rule(data=st.data(), name=st.sampled_from(sorted({**VIEWS, **MAKERS})))
    def call(self, data, name):
        x, y = self.pick(data)
        f = {**VIEWS, **MAKERS}[name]
        self.add(outcome(f, x), outcome(f, y))

    @precondition(lambda self: self.pairs)
    @rule(data=st.data())
    def combine(self, data):
        (a, x), (b, y) = self.pick(data), self.pick(data)
        self.add(outcome(np.add, a, b), outcome(np.add, x, y))

    @precondition(lambda self: self.pairs)
    @rule(data=st.data(), index=st.sampled_from([0, slice(1, None), -1, Ellipsis, np.array([0])]), value=st.sampled_from([5, 2.5]))
    def store(self, data, index, value):
        x, y = self.pick(data)
        self.same_change(x, y, lambda z: operator.setitem(z, index, value))

    @precondition(lambda self: self.pairs)
    @rule(data=st.data())
    def store_an_array(self, data):
        (x, y), (a, b) = self.pick(data), self.pick(data)
        if np.shape(x) == np.shape(a) and getattr(x, "ndim", 0):
            self.same_change(x, y, lambda z: operator.setitem(z, slice(None), b if z is y else a))

    @precondition(lambda self: self.pairs)
    @rule(data=st.data(), kind=st.sampled_from(IN_PLACE))
    def in_place(self, data, kind):
        place = data.draw(st.integers(0, len(self.pairs) - 1))
        x, y = self.pairs[place]
        if isinstance(x, np.ndarray) and not x.flags.writeable:
            assert outcome(kind, y, 2) is ValueError
        else:
            self.pairs[place] = kind(x, 2), kind(y, 2)

    @precondition(lambda self: self.pairs)
    @rule(data=st.data(), index=st.sampled_from([0, slice(1, None), (slice(None), 0), np.array([0, 0])]), kind=st.sampled_from(IN_PLACE))
    def change_a_part(self, data, index, kind):
        x, y = self.pick(data)
        self.same_change(x, y, lambda z: operator.setitem(z, index, kind(z[index], 3)))

    @precondition(lambda self: self.pairs)
    @rule(data=st.data())
    def out(self, data):
        x, y = self.pick(data)
        if isinstance(x, np.ndarray) and x.flags.writeable:
            assert np.add(x, 1, out=x) is x and np.add(y, 1, out=y) is y

    def same_change(self, x, y, change):
        wanted = outcome(change, x)
        got = outcome(change, y)
        if wanted is not got:                           # the lazy one fails when it is computed, and has no value afterwards
            assert isinstance(wanted, type) and outcome(np.asarray, y) is wanted
            self.pairs = [pair for pair in self.pairs if np.size(pair[0]) and not np.may_share_memory(pair[0], x)]

    @precondition(lambda self: self.pairs)
    @rule(data=st.data())
    def another_name(self, data):
        self.pairs.append(self.pick(data))

    @precondition(lambda self: self.pairs)
    @rule(data=st.data())
    def forget(self, data):
        self.pairs.pop(data.draw(st.integers(0, len(self.pairs) - 1)))

    @precondition(lambda self: self.pairs)
    @rule(data=st.data(), look=st.sampled_from(LOOKS))
    def look(self, data, look):
        x, y = self.pick(data)
        wanted, got = outcome(look, x), outcome(look, y)
        assert isinstance(wanted, type) == isinstance(got, type)
        if not isinstance(wanted, (type, str)):
            np.testing.assert_equal(got, wanted)

    @precondition(lambda self: self.pairs)
    @rule(data=st.data())
    def compute_several(self, data):
        chosen = [self.pick(data) for _ in range(3)]
        for (x, _), result in zip(chosen, lazy.evaluate(*[y for _, y in chosen])):
            np.testing.assert_array_equal(result, x)

    def teardown(self):
        for x, y in self.pairs:
            np.testing.assert_array_equal(np.asarray(y), x)
            assert y.dtype == x.dtype and type(y.evaluate()) is type(x)


def run(examples, steps):
    run_state_machine_as_test(Sessions, settings=settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None, suppress_health_check=list(HealthCheck)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--steps", type=int, default=50)
    given = parser.parse_args()
    run(given.examples, given.steps)
    print("no difference")
