"""What is an array on one side of a decision and a Variable on the other: code that gives it to Chainer needs no second program."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import array, variable

from dy2static import to_static


def calls():
    return [lambda k=k: (variable(3, 3, seed=k), array(3, 3, seed=k + 9)) for k in range(5)]


def taught(x, m):
    """Teacher forcing: the next input is what the decoder gave, or what it should have given."""
    frame, outs = np.zeros_like(m), []
    for t in range(6):
        h = F.tanh(F.linear(frame, x))
        outs.append(h)
        frame = m[t % 3][None] * np.ones_like(m) if np.random.rand() < 0.5 else h
    return F.stack(outs), F.sum(outs[-1])


def required_in_some_runs(x, m):
    y = F.exp(m) if m.sum() > 0 else m
    z = F.relu(x if m[0, 0] > 0 else m)
    return F.concat((F.tanh(y), z), axis=1), y.shape, z.ndim, y.dtype.name, y is None


def nested(x, m):
    y = m
    if m[0, 0] > 0:
        y = x * 2 if m[0, 1] > 0 else m * 3
    if m[1, 1] > 0:
        y = F.sin(y)
    return F.sum(F.exp(y), axis=0)


def array_of_a_variable(x, m):
    """The array is that of a Variable, past which no gradient goes."""
    h = F.tanh(x)
    y = h.array if m[0, 0] > 0 else h
    return F.exp(y) + F.sin(y) * x


def differentiated_inside(x, m):
    y = m if m[0, 0] > 0 else x * x
    loss = F.sum(F.linear(y, x) ** 2)
    g, = chainer.grad([loss], [x])
    return g * 1


@pytest.mark.parametrize("function", [taught, required_in_some_runs, nested, array_of_a_variable, differentiated_inside],
                         ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_functions_of_chainer_take_either(function, backend):
    compiled = against_eager.check(lambda compile: compile(function), calls(), compiled=True, backend=backend)
    assert (compiled.stats()["programs"], compiled.stats()["cuts"]) == (1, 0)


def told_apart(x, m):
    """Everything that shows which of them it is."""
    def chosen(k):
        return m * 2 if m[k, k] > 0 else x * k
    box = [chosen(0)]
    if isinstance(chosen(1), chainer.Variable):
        box.append("a Variable")
    total = chosen(2) + m
    return box, type(total) is np.ndarray, F.sum(F.exp(total))


def refused_by_one(x, m):
    y = m if m[0, 0] > 0 else x * 2
    try:
        return float(y.sum()) > 100, F.relu(x)
    except AttributeError as error:
        return type(error), F.tanh(x)


def written_later(x, m):
    a = m.copy()
    y = a if m[0, 0] > 0 else x * 2
    a[0] = 7
    return F.tanh(y), a


def one_object(x, m):
    a = m + 1
    y = a if m[0, 0] > 0 else x
    return y is a, y is x, F.relu(y) if y is not None else None


def hashed(x, m):
    y = m if m[0, 0] > 0 else x * 2
    try:
        return {y: 1}, x
    except TypeError as error:
        return type(error).__name__, x


def kept(x, m, box={}):
    box["y"] = m if m[0, 0] > 0 else x * 2
    return F.tanh(box["y"]), type(box["y"]).__name__, len(box["y"]), box["y"][0]


@pytest.mark.parametrize("function", [told_apart, refused_by_one, written_later, one_object, hashed, kept], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_code_that_tells_them_apart_is_as_in_eager_mode(function, backend):
    against_eager.check(lambda compile: compile(function), calls(), backend=backend)


def test_the_message_names_the_decision():
    """Where the sides are too many to be captured one by one."""
    def f(x, m):
        kinds = []
        for k in range(6):
            y = m if m[k % 3, k // 3] > 0 else x * 2
            kinds.append(type(y).__name__)
        return kinds
    compiled = to_static(f, strict=True)
    with pytest.raises(Exception, match=r"is an array float32 \(3, 3\) or a Variable float32 \(3, 3\)") as caught:
        compiled(variable(3, 3), array(3, 3))
    assert "y = m if" in str(caught.value)
