"""What the function does to Variables of the caller's: gradients, arrays and names."""
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import check

import dy2static

CALLS = [lambda: ((np.arange(3, dtype="f"),), {}), lambda: ((-np.ones(3, "f"),), {})]


def parameter(name=None):
    return chainer.Parameter(np.random.RandomState(0).randn(3).astype("f"), name=name)


def program(body):
    """A program whose function is ``body(x, p, q)``, of two Parameters."""
    def make(compile):
        p, q = parameter("p"), parameter("q")
        p.cleargrad()
        old = [p.array, q.array]
        return compile(lambda x: body(x, p, q)), [p, q, old]
    return make


# --- gradients ------------------------------------------------------------------------------------------------------------

def read_back(x, p, q):
    p.grad = zeros = np.zeros_like(p.array)
    return p.grad is zeros, p.grad_var, zeros


def of_the_caller(x, p, q):
    p.grad = q.grad = x
    return p.grad is x


def added_to(x, p, q):
    p.grad = np.ones_like(p.array)
    for y in (p * x, p * p * x):
        F.sum(y).backward()


def of_another(x, p, q):
    F.sum(p * x).backward()
    q.grad, p.grad = p.grad, p.grad * 2


def a_view(x, p, q):
    y = np.zeros((2, 3), "f")
    p.grad = y[0]
    return y


def as_optimizers_do(x, p, q):
    p._set_grad(p.device.xp.zeros_like(p.raw_array), layout_check=False)
    q.grad = None
    return q.grad


def zeros(x, p, q):
    p.zerograd()
    F.sum(p * x).backward()


def zeros_in_place(x, p, q):
    q.zerograd()                                        # fills the array that it was made with, of NaN
    return q.grad


# --- arrays ---------------------------------------------------------------------------------------------------------------

def given(x, p, q):
    before = p.array
    p.array = x
    return p.array is x, before, before is p.array


def steps(x, p, q):
    for _ in range(2):
        p.cleargrad()
        F.sum(p * p * x).backward()
        p.array = p.array - p.grad


def written_before(x, p, q):
    p.array[...] += x
    p.data = p.array * 2


def written_afterwards(x, p, q):
    """An array that is made here, assigned, and written in place."""
    p.array = x * 2
    p.array -= 1
    p.array[...] *= p.array
    p.array[0] = 3
    q.data = np.clip(q.data, -0.5, 0.5)
    q.cleargrad()
    F.sum(p * q * q).backward()
    q.array -= 0.1 * q.grad
    q.array *= 0.9


def one_array(x, p, q):
    """All names of the array see what is written, and so do its views."""
    made = x + 1
    p.array = made
    made += 3
    q.array = p.array[::-1].copy()
    part = q.array[1:]
    part *= x[:2]
    p.array[1] += 1
    return made, p.array is made, part, q.array is p.array, F.sum(p * q).array


def one_array_of_two(x, p, q):
    p.array = x * 3
    q.array = p.array
    return p.array is q.array, p.array - 1


def written_by_decisions(x, p, q):
    p.array = x + 1
    if x.sum() > 0:
        p.array -= 1
    else:
        p.array[0] = 7
    while p.array.sum() > 1:
        p.array *= 0.5
    return F.sum(p * x).array


def raised_afterwards(x, p, q):
    p.array = x * 2
    p.array += 1
    if x.sum() < 0:
        raise ValueError("negative")
    p.array *= 3


def gradient_in_each_step(x, p, q):
    p.array = q.array + 1
    for _ in range(3):
        p.cleargrad()
        F.sum(p * p * x).backward()
        p.array -= 0.1 * p.grad
    return p.grad * 2


def exchanged(x, p, q):
    p.array, q.array = q.array, p.array
    return p.array - q.array


def shown(x, p, q):
    p.array = x * 2
    print(p.array)
    p.array = p.array * 2


def raised(x, p, q):
    p.array = x * 2
    if x.sum() < 0:
        raise ValueError("negative")
    p.array = x * 3


def several_ways(x, p, q):
    a = p.array.sum()
    p.array = x * 2
    return None if x.sum() > 0 else (p.array, a)


def names(x, p, q):
    return {v.name: F.sum(v * x) for v in (p, q)}, (p * x).name


def own_attributes(x, p, q):
    """Of the caller's Variables: what is set is there in the next call."""
    found = [(hasattr(v, "scale"), getattr(v, "count", 0)) for v in (p, q, p * x)]
    p.scale = 0.5
    p.count = getattr(p, "count", 0) + 1
    q.last = x * 2
    try:
        p.missing
    except AttributeError as error:
        found.append(str(error))
    return found, p.scale, q.last


WHOLE = [own_attributes, read_back, of_the_caller, added_to, of_another, a_view, as_optimizers_do, zeros, zeros_in_place, given, steps, written_before,
         exchanged, shown, raised, several_ways, names, written_afterwards, one_array, one_array_of_two, written_by_decisions,
         raised_afterwards, gradient_in_each_step]


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("body", WHOLE, ids=lambda body: body.__name__)
def test_compiled(body, backend):
    check(program(body), CALLS, backward=body is names, compiled=None if body in (raised, raised_afterwards) else True, backend=backend)


# --- what a later backward would read ---------------------------------------------------------------------------------------

def forward_after(x, p, q):
    p.array = x * 2
    return F.sum(p * p * p)


def forward_before(x, p, q):
    y = F.sum(p * p * x)
    p.array = x * 2
    return y


def backward_after(x, p, q):
    y = F.sum(p * p * x)
    p.array = x * 2
    y.backward()


def of_a_result(x, p, q):
    y = p * 2
    y.array = x
    return y


def another_shape(x, p, q):
    p.array = np.zeros((2, 2), "f")


@pytest.mark.parametrize("body", [forward_after, forward_before, backward_after, of_a_result, another_shape], ids=lambda body: body.__name__)
def test_left_to_python(body):
    check(program(body), CALLS, rounds=1, backward=body is not another_shape, compiled=False)


def test_what_was_computed_before_keeps_its_array():
    def make(compile):
        p = parameter()
        assign = compile(lambda x, v: setattr(v, "array", x))

        def run(x):
            v = p * p
            y = F.sum(v * v)
            assign(x, v)
            y.backward()
        return run, [p]
    check(make, CALLS)


def test_attributes_of_the_caller_decide():
    """Which of them there are is guarded, and so is what they hold."""
    def make(compile):
        p, v = parameter(), chainer.Variable(np.ones(3, "f"))
        run = compile(lambda x, v: F.sum(p * v) * getattr(p, "scale", 1) + hasattr(v, "tag"))
        states = iter([{}, {"scale": 2}, {"scale": 3.0}, {"scale": 4.0}])

        def call(x):
            vars(p).pop("scale", None)
            vars(p).update(next(states))
            if "scale" in vars(p):
                v.tag = "seen"
            return run(x, v)
        return call, [p]
    check(make, CALLS, rounds=2, backward=False)


def picked(x, p, q):
    p.tag = "p"
    v = p if x.sum() > 0 else q
    return getattr(v, "tag", "none"), v * 2


def carried(x, p, q):
    p.tag, v, tags = "p", p, 0
    while float(F.sum(v).array) < 4:
        tags += hasattr(v, "tag")
        v = v + 1
    return v, tags


def named_result(x, p, q):
    y = F.sum(p * x)
    y.name = "loss"
    p.name = "other"
    return y, y.name, y * 2


@pytest.mark.parametrize("body", [picked, carried, named_result], ids=lambda body: body.__name__)
def test_attributes_in_parts(body):
    check(program(body), CALLS, backward=body is not carried, compiled=None)


def test_names_of_links():
    def make(compile):
        link = L.Linear(3, 2)
        return compile(lambda x: [p.name for p in link.params()]), [link]
    check(make, CALLS, backward=False, compiled=True)


def test_names_that_variables_are_made_with():
    def f(x):
        v, w = chainer.Variable(x * 2, name="v"), chainer.Variable(x * 3, name="w")
        return v, F.sum(v * w), w.name
    static = dy2static.to_static(f)
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dy2static.FallbackWarning)
            v, _, name = static(np.ones(3, "f"))
        assert (v.name, name) == ("v", "w")


def test_reported_variables_have_the_gradients_of_that_moment():
    """The reporter stores copies: of the caller's Variables, and of leaves that are made inside."""
    def f(x, p):
        zero = chainer.Variable(np.zeros((), "f"))
        loss = F.sum(p * x) + zero
        chainer.report({"zero": zero, "loss": loss})
        chainer.report({"before": p})
        p.cleargrad()
        loss.backward()
        chainer.report({"after": p})
        p.cleargrad()
        return zero.grad_var

    found = []
    for function in (f, dy2static.to_static(f, strict=True)):
        for _ in range(3):
            observation, reporter = {}, chainer.Reporter()
            with reporter.scope(observation):
                assert function(np.arange(3, dtype="f"), parameter("p")).array == 1
        found.append({name: (v.array.tolist(), v.grad if v.grad is None else v.grad.tolist()) for name, v in observation.items()})
    assert found[0] == found[1]
    assert found[1]["after"][1] == [0, 1, 2] and found[1]["zero"][1] is None


class Doubled(chainer.Variable):
    def __mul__(self, other):
        return super().__mul__(2 * other)


def test_a_variable_of_a_class_of_the_users_stays_one():
    def f(x):
        made = Doubled(x * 3)
        return made, made * 2, isinstance(made, Doubled)
    compiled, x = dy2static.to_static(f), np.ones(3, "f")
    with pytest.warns(dy2static.FallbackWarning, match="a Variable of type Doubled"):
        made, product, asked = compiled(x)
    assert type(made) is Doubled and asked and product.array.tolist() == [12, 12, 12]
