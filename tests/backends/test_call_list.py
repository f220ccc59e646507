"""Programs of many steps: their calls are rows of a table, which computes what the calls would."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.backends.c import call_list
from dy2static.native import compiler

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
STEPS = 30


class Tagger(chainer.Chain):
    """Look-ups, products, gates, losses that are numbers, and a product of these numbers."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed, self.cell, self.out = L.EmbedID(9, 6), L.StatelessLSTM(6, 5), L.Linear(5, 4)

    def forward(self, words, targets, rate):
        c = h = None
        loss, weights = 0, 1
        for word, target in zip(words, targets):
            c, h = self.cell(c, h, self.embed(word))
            step = F.softmax_cross_entropy(self.out(h), target)
            loss += step * rate
            weights = weights * 0.5 + F.sum(h) * step
        return loss, weights, h


def batch():
    r = np.random.RandomState(0)
    return r.randint(0, 9, (STEPS, 3)).astype("i"), r.randint(-1, 4, (STEPS, 3)).astype("i"), np.float32(0.7)


def trained(function, model):
    model.cleargrads()
    loss, weights, h = function(model, *batch())
    (loss + weights + F.sum(h)).backward()
    return [loss.array, weights.array, h.array, *[parameter.grad.copy() for _, parameter in sorted(model.namedparams())]]


def compiled():
    return to_static(lambda model, *arguments: model(*arguments), strict=True, backend="c")


@pytest.fixture
def model():
    np.random.seed(0)
    return Tagger()


def text_of(function, model):
    return function.program(model, *batch()).native_code


def test_a_table_computes_what_the_calls_would(model, monkeypatch):
    """The same bits, and close to eager mode."""
    listed = compiled()
    found = trained(listed, model)
    eager = trained(lambda model, *arguments: model(*arguments), model)
    monkeypatch.setattr(call_list, "_LEAST", 10 ** 9)
    straight = compiled()
    for table, calls, plain in zip(found, trained(straight, model), eager):
        np.testing.assert_array_equal(table, calls)
        np.testing.assert_allclose(table, plain, 1e-4, 1e-5)
    with_table, without = text_of(listed, model), text_of(straight, model)
    assert "_calls[] = {" in with_table and "_calls[] = {" not in without
    assert with_table.count(");\n") < without.count(");\n") / 3


def test_a_call_that_fails_ends_the_table(model):
    """An index out of range raises what it raises in eager mode, and the next call computes again."""
    function, (words, targets, rate) = compiled(), batch()
    before = trained(function, model)
    outside = words.copy()
    outside[-2, 1] = 9
    with pytest.raises(IndexError) as eager:
        model(outside, targets, rate)
    with pytest.raises(IndexError) as native:
        function(model, outside, targets, rate)
    assert str(native.value) == str(eager.value)
    for first, second in zip(before, trained(function, model)):
        np.testing.assert_array_equal(first, second)


def test_few_steps_are_calls(model):
    """A table is for many calls."""
    function, (words, targets, rate) = compiled(), batch()
    function(model, words[:3], targets[:3], rate)
    assert "_calls[] = {" not in function.program(model, words[:3], targets[:3], rate).native_code


def test_rows_name_their_calls(model):
    """What stands in the text beside the numbers of a row, and the user's lines in front of each function."""
    function = compiled()
    trained(function, model)
    text = text_of(function, model)
    rows = [line for line in text.split("_calls[] = {", 1)[1].split("};", 1)[0].splitlines() if line]
    assert len(rows) >= 2 * STEPS and all("/* " in row and "part_" in row for row in rows)
    assert "/* test_call_list.py:" in text


def test_numpy_scalars_between_calls_do_not_end_a_table(monkeypatch):
    """What goes from an array to a NumPy scalar and back is the same number; here, of two loops over pairs."""
    def direction(q, pairs):
        factors = []
        for s, y in pairs:
            factors.append(s.dot(q))
            q = q - factors[-1] * y
        for (s, y), a in zip(reversed(pairs), reversed(factors)):
            q = q + (a - y.dot(q)) * s
        return q

    arrays = np.random.RandomState(0).randn(17, 6).astype("f") / 3
    arguments = arrays[0], [(arrays[2 * i + 1], arrays[2 * i + 2]) for i in range(8)]
    listed = to_static(direction, strict=True, backend="c")
    found = listed(*arguments)
    monkeypatch.setattr(call_list, "_LEAST", 10 ** 9)
    straight = to_static(direction, strict=True, backend="c")
    np.testing.assert_array_equal(found, straight(*arguments))
    np.testing.assert_allclose(found, direction(*arguments), 1e-5, 1e-6)
    assert "_calls[] = {" in listed.program(*arguments).native_code
