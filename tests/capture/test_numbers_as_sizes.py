"""Numbers of the caller's that Python needs as numbers, and that differ from call to call: one program serves all, as with sizes of arrays."""
import random

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import FallbackWarning, to_static


class Curriculum(chainer.Chain):
    """A loss of the first steps: of more and more of them."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.lstm, self.out = L.LSTM(3, 4), L.Linear(4, 3)

    def loss(self, x, n):
        self.lstm.reset_state()
        loss = 0
        for k in range(n):
            loss = loss + F.mean_squared_error(self.out(self.lstm(x[:, k])), x[:, k + 1])
        return loss / n


def steps(x, n):
    h = x[:, 0]
    for k in range(n):
        h = F.tanh(h + x[:, k])
    return F.sum(h) * n


def first(x, n):
    h = x[:, :n]
    return F.sum(F.reshape(F.tanh(F.reshape(h, (-1, 3))), (len(x), n * 3)) ** 2) + n // 2


def rows(x, n):
    return F.sum(F.tanh(x[:, random.sample(range(n + 2), n)]))


def half(x, n):
    return F.sum(sum([x[:, k] for k in range(n // 2)], x[:, 0]))


def key(x, n):
    return F.sum(x) * {k: k + 1 for k in range(30)}[n]


def compared(function, compiled, numbers):
    """Call both with each number: the same values, gradients, errors and random numbers."""
    for i, n in enumerate(numbers):
        found = []
        for call in (function, compiled):
            x = chainer.Variable(np.random.RandomState(i).rand(2, 30, 3).astype("f"))
            random.seed(i)
            try:
                y = call(x, n)
                y.backward()
                found.append((y.array, x.grad, random.random()))
            except (ArithmeticError, AttributeError, LookupError, ValueError) as error:
                found.append((type(error).__name__, random.random()))
        assert len(found[0]) == len(found[1]), (n, found)
        for a, b in zip(*found):
            assert a == b if isinstance(a, str) else a is b or np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5) is None


NUMBERS = (3, 4, 5, 9, 6, 12, 2, 8, 7, 1, 0, -1, 10)


@pytest.mark.parametrize("function, most", [(steps, 7), (first, 6), (rows, 7), (half, 9), (Curriculum().loss, 8)], ids=lambda x: getattr(x, "__name__", None))
def test_one_program_serves_all(function, most):
    compiled = to_static(function, backend="numpy")
    compared(function, compiled, NUMBERS[:9])
    assert compiled.cache_info().captures <= most - 2
    compared(function, compiled, NUMBERS)
    assert compiled.cache_info().captures <= most + 3       # one, none, and below


def test_numbers_beyond_the_rows_of_an_array_raise_as_in_eager_mode():
    compiled = to_static(steps, backend="numpy")
    compared(steps, compiled, (3, 5, 7, 30, 31, 6, 29, 40))


def test_a_number_that_is_a_key_has_a_program_for_each():
    compiled = to_static(key, backend="numpy")
    compared(key, compiled, (3, 4, 5, 9, 3, 4, 40))


def test_a_line_that_needs_numbers_which_are_no_sizes_runs_as_python():
    def keyed(x, n):
        y = F.tanh(x)
        function = ((F.tanh, F.sigmoid, F.relu) * 10)[n]
        return F.sum(F.sigmoid(function(y)))
    compiled = to_static(keyed, backend="numpy")
    with pytest.warns(FallbackWarning, match="another one in nearly every call"):
        compared(keyed, compiled, range(2, 20))
    assert compiled.cache_info().captures <= 8


def test_counts_are_numbers():
    class Counter:
        n = 0

    counter = Counter()

    @to_static(backend="numpy")
    def counted(x):
        counter.n += 1
        return F.sum(x[:counter.n])
    for n in range(1, 9):
        x = np.arange(20, dtype="f")
        assert counted(x).array == x[:n].sum() and counter.n == n


def test_attributes_are_sizes():
    model = Curriculum()
    model.length = 2

    def loss(x, n):
        return F.sum(sum([x[:, k] for k in range(model.length)], x[:, 0]))
    compiled = to_static(loss, backend="numpy")
    for n in range(2, 9):
        model.length = n
        compared(loss, compiled, (n,))
    assert compiled.cache_info().captures <= 4


@pytest.mark.parametrize("draw", [
    lambda x: x[random.choice(range(len(x)))],
    lambda x: F.sum(x[random.sample(range(len(x)), 3)]),
    lambda x: sum([x[k] * k for k in random.choices(range(1, len(x)), k=2)]),
    lambda x: F.sum(x[random.sample(range(len(x)), len(x) // 2)])], ids=["choice", "sample", "choices", "half"])
def test_draws_from_a_range_of_any_length(draw):
    compiled = to_static(lambda x: F.sum(draw(x)), backend="numpy")
    for i, n in enumerate((5, 9, 7, 12, 4, 30, 8)):
        x = np.random.RandomState(i).rand(n, 2).astype("f")
        random.seed(i)
        a, after = compiled(x).array, random.random()
        random.seed(i)
        assert np.allclose(a, F.sum(draw(chainer.Variable(x))).array) and after == random.random()
    assert compiled.cache_info().captures <= 4


def test_more_draws_than_numbers_raise():
    drawn = []

    def sampled(x, n):
        drawn.append(n)
        return F.sum(x[0][random.sample(range(x.shape[1]), n)])
    compiled = to_static(sampled, backend="numpy")
    compared(sampled, compiled, (3, 4, 5, 31, 6, 40, 30))
    assert drawn == [n for n in (3, 4, 5, 31, 6, 40, 30) for _ in range(2)]
