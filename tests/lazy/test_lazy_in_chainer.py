"""Chainer takes lazy arrays outside of compiled functions, as the arrays that they are."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import lazy

DATA = np.linspace(-2, 2, 12, dtype="f").reshape(4, 3)
LABELS = np.array([0, 2, 1, 2], "i")


def both(f):
    """What a function gives for lazy arrays and for NumPy's."""
    return f(lazy.array(DATA) + 1, lazy.array(LABELS) + 0), f(DATA + 1, LABELS + 0)


@pytest.mark.parametrize("f", [
    lambda x, t: F.relu(x),
    lambda x, t: F.softmax_cross_entropy(x, t),
    lambda x, t: F.accuracy(x, t),
    lambda x, t: F.concat([x, x[:, :1]]),
    lambda x, t: F.matmul(x, x.T) + x.sum(),
    lambda x, t: F.linear(x, x),
    lambda x, t: F.max_pooling_2d(x[None, None], 2),
    lambda x, t: F.where(x > 0, x, -x),
    lambda x, t: F.embed_id(t, x),
    lambda x, t: F.get_item(chainer.Variable(x), (slice(1, 3), 0)),
    lambda x, t: chainer.Variable(x)[t] + F.where(chainer.Variable(x > 0), x, -x),
    lambda x, t: chainer.Variable(x) * x + x ** chainer.Variable(x * 0 + 2),
    lambda x, t: x / chainer.as_variable(x + 5),
    lambda x, t: chainer.Variable(chainer.as_array(x)),
    lambda x, t: chainer.Variable(chainer.dataset.concat_examples([x[0], x[1] + 1])),
    lambda x, t: chainer.Variable(chainer.dataset.concat_examples([x[0], x[1, :2]], padding=7)),
    lambda x, t: L.Linear(3, 4, initialW=x, initial_bias=x[:, 0])(x),
    lambda x, t: chainer.Parameter(x, x.shape) + chainer.Parameter(x),
], ids=range(18))
def test_functions_take_them(f):
    found, wanted = both(f)
    assert type(found.array) in (np.ndarray, type(wanted.array)) and found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.array, wanted.array)


def test_gradients_go_through_variables():
    def gradient(x, t):
        h = chainer.Variable(x)
        y = F.sigmoid(h) * x
        y.grad = x * 2
        y.backward()
        return chainer.Variable(h.grad)
    found, wanted = both(gradient)
    np.testing.assert_array_equal(found.array, wanted.array)


def test_training_takes_minibatches_of_them():
    def train(array):
        np.random.seed(0)
        model = L.Classifier(L.Linear(3, 3, initialW=array(np.eye(3, dtype="f"))))
        optimizer = chainer.optimizers.MomentumSGD().setup(model)
        for step in range(3):
            optimizer.update(model, array(DATA) * step, array(LABELS))
        return model.predictor.W.array
    np.testing.assert_array_equal(train(lazy.array), train(np.array))


def test_what_is_written_to_a_variable_does_not_reach_the_lazy_array():
    y = lazy.array(DATA) * 1
    x, parameter = chainer.Variable(y), chainer.Parameter(y)
    x.array += 1
    x.array[0] = 7
    parameter.array[...] = 0
    x.grad = y
    x.grad[...] = 3
    np.testing.assert_array_equal(y, DATA)
    x.array = y
    x.array[...] = 0
    np.testing.assert_array_equal(y, DATA)


def test_an_error_of_the_evaluation_names_the_line_that_built_it():
    y = np.linalg.inv(lazy.array(np.zeros((2, 2))))      # built here
    with pytest.raises(np.linalg.LinAlgError) as caught:
        F.relu(y)
    assert "built here" in str(caught.traceback[-1].statement)


def test_other_objects_are_refused_as_before():
    with pytest.raises(TypeError, match="are expected. Actual: <class 'list'>"):
        chainer.Variable([1.0])
    with pytest.raises(TypeError):
        F.relu("text")
