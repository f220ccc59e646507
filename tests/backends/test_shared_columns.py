"""Products of few rows that threads share with the nests behind them, columns by columns."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")]


def array(*shape):
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype("f") / 8


X, H, C, W, GATES = array(20, 200), array(20, 200) * 2, array(20, 200) * 3, array(800, 200), array(20, 800)
SQUARE, ROWS, LEFT = array(256, 256), array(32, 256), array(200, 20)


def lstm(c, h, w, gates):
    return F.lstm(c, gates + F.linear(h, w))


def two_steps(c, h, w, gates):
    c, h = F.lstm(c, gates + F.linear(h, w))
    return F.lstm(c, gates + F.linear(h, w))


def rnn(h, x, w):
    return F.tanh(x + F.linear(h, w))


def neighbours(h, w):
    y = F.tanh(F.linear(h, w))
    return y[:, ::2] * y[:, 1::2] + 1, y


def blocks(h, w):
    y = F.linear(h, w)
    return F.sigmoid(y[:, :400]) * y[:, 400:]


def of_another_row(h, w):
    y = F.linear(h, w)
    return F.tanh(y[::-1])


def of_another_column(h, w):
    y = F.linear(h, w)
    return F.tanh(y[:, ::-1])


def rows(h, w):
    return F.softmax(F.linear(h, w))


#: name: (function, operands, how many functions share columns)
PROGRAMS = {
    "lstm": (lstm, (C, H, W, GATES), 1),
    "two steps": (two_steps, (C, H, W, GATES), 2),
    "rnn": (rnn, (ROWS, ROWS + 1, SQUARE), 1),
    "a turned left matrix": (lambda x, w: F.relu(F.matmul(x, w, transa=True)), (LEFT, array(200, 800)), 1),
    "pairs": (neighbours, (H, W), 1),
    "double precision": (rnn, (ROWS.astype("d"), ROWS.astype("d") + 1, SQUARE.astype("d")), 1),
    "an odd number of units": (lstm, (array(30, 203), array(30, 203), array(812, 203), array(30, 812)), 1),
    "blocks": (blocks, (H, W), 0),
    "another row": (of_another_row, (H, W), 0),
    "another column": (of_another_column, (H, W), 0),
    "rows": (rows, (H, W), 0),
    "little work": (rnn, (ROWS[:9], ROWS[:9] + 1, SQUARE), 0),
}


def results(found):
    return [y.array for y in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, threads, monkeypatch):
    """As in eager mode, and bit by bit the same with any number of threads."""
    function, operands, count = PROGRAMS[name]
    texts, start = [], compiler.start
    monkeypatch.setattr(compiler, "start", lambda text, *flags: texts.append(text) or start(text, *flags))
    compiled, found = to_static(function, backend="c", strict=True), []
    with chainer.no_backprop_mode():
        for number in (1, 2, 3):
            threads(number)
            found.append(results(compiled(*operands)))
        for ours, eager in zip(found[0], results(function(*operands))):
            np.testing.assert_allclose(ours, eager, rtol=1e-4, atol=1e-5)
    for others in found[1:]:
        for ours, one in zip(others, found[0]):
            np.testing.assert_array_equal(ours, one)
    assert "".join(texts).count("dy_share_evenly(part_") == count


def test_gradients(threads):
    operands = [chainer.Variable(a) for a in (C, H, W, GATES)]

    def loss(c, h, w, gates):
        c, h = two_steps(c, h, w, gates)
        return F.sum(c * c) + F.sum(h)
    threads(2)
    found = chainer.grad([to_static(loss, backend="c")(*operands)], operands)
    for ours, eager in zip(found, chainer.grad([loss(*operands)], operands)):
        np.testing.assert_allclose(ours.array, eager.array, rtol=1e-3, atol=1e-4)
