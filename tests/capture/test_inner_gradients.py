"""`chainer.grad`, `backward` and what goes with them, called inside the compiled function: as eagerly, and in the graph."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import Variable

from dy2static import to_static
from tests import against_eager


def array(*shape, seed=0, low=-1.0, high=1.0, dtype="f"):
    return np.random.RandomState(seed).uniform(low, high, shape).astype(dtype)


def variable(*shape, **options):
    return Variable(array(*shape, **options))


def three():
    return variable(2, 3), variable(2, seed=1), variable(4, 3, seed=2)


def pair():
    return variable(3, low=0.5, high=2), variable(3, seed=1, low=0.5, high=2)


def one():
    return (variable(3, low=0.5, high=2),)


# --- programs: functions of Variables ------------------------------------------------------------------------------------

def maml(w, b, x):
    loss = F.mean_squared_error(F.tanh(F.linear(x, w, b)), F.linear(x, w).array)
    gw, gb = chainer.grad([loss], [w, b], enable_double_backprop=True)
    return F.sum(F.sigmoid(F.linear(x, w - 0.1 * gw, b - 0.1 * gb)) ** 2)


def maml_of_two_steps(w, b, x):
    params = [w, b]
    for _ in range(2):
        loss = F.mean(F.relu(F.linear(x, *params)) ** 2)
        grads = chainer.grad([loss], params, enable_double_backprop=True)
        params = [p - 0.1 * g for p, g in zip(params, grads)]
    return F.mean(F.linear(x, *params) ** 2)


def first_order(w, b, x):
    loss = F.mean_squared_error(F.tanh(F.linear(x, w, b)), F.linear(x, w).array)
    grads = chainer.grad([loss], [w, b])
    return [p - 0.1 * g for p, g in zip([w, b], grads)], grads


def gradient_penalty(w, b, x):
    h = F.sum(F.leaky_relu(F.linear(x, w, b)), axis=1)
    g, = chainer.grad([F.sum(h)], [x], enable_double_backprop=True)
    return F.mean((F.sqrt(F.sum(g ** 2, axis=1) + 1e-4) - 1) ** 2) + F.mean(h)


def newton(x):
    for _ in range(4):
        f = F.sum(x ** 4 + 3 * x ** 2 + x)
        g, = chainer.grad([f], [x], enable_double_backprop=True)
        h, = chainer.grad([F.sum(g)], [x])
        x = x - g / h
    return x


def third_order(x):
    y = F.sum(F.sin(x) * x)
    for _ in range(3):
        g, = chainer.grad([y], [x], enable_double_backprop=True)
        y = F.sum(g * x)
    return y


def intermediate(x, z):
    h = F.tanh(x * z)
    y = F.sum(h * h + F.exp(h) * x)
    gh, gx, gz = chainer.grad([y], [h, x, z], enable_double_backprop=True)
    return F.sum(gh * gx) + F.sum(gz * h), gh, gx


def several_outputs(x, z):
    y1, y2 = x * z, F.exp(x)
    return chainer.grad([y1, y2, y1], [x, z, y1], [None, z, x])


def given_gradients(x, z):
    y = F.exp(x) * z
    return chainer.grad([y], [x, z], [x * 2.0], [z, None], enable_double_backprop=True)


def of_itself(x, z):
    y = x * z
    return chainer.grad([y], [y, x]), chainer.grad([x], [x])


def nothing(x, z):
    gx, gz = chainer.grad([F.sum(x * 2.0)], [x, z])
    return gx, gz, gz is None


def constant_gradient(x, z):
    g, = chainer.grad([F.sum(x * 3.0 + z)], [x], enable_double_backprop=True)
    return g, g.requires_grad


def detached(x, z):
    y = F.sum(x * x.array + F.linear(F.reshape(z, (1, 3)), F.reshape(x, (1, 3)).array))
    gx, gz = chainer.grad([y], [x, z])
    return gx, gz


def equal_leaves(x, z):
    v, w = Variable(x.array), Variable(x.array)
    x.cleargrad()
    F.sum(x).backward()
    g, = chainer.grad([F.sum(x)], [x])
    return v, F.sum(w * z * g)


def without_backprop(x, z):
    with chainer.no_backprop_mode():
        h = x * z
    y = h * z
    gx, gz, gh = chainer.grad([F.sum(y)], [x, z, h])
    return gx is None, gz, gh, y


def unchained(x, z):
    h = x * z
    y = h * x
    h.unchain()
    gx, gz, gh = chainer.grad([F.sum(y * h)], [x, z, h])
    return gx, gz is None, gh, y, h.creator is None


def unchained_result(x, z):
    """The other result of the same function was computed from it."""
    c, h = F.lstm(F.stack([x]), F.stack([F.concat([x, z, x, z], axis=0)]))
    c.unchain()
    return h, c.creator is None, c * 2


def unchained_backward(x, z):
    h = F.exp(x)
    a, b = F.split_axis(F.concat([h, z], axis=0), 2, 0)
    y = a * z
    y.unchain_backward()
    return y * b + h, b.creator is None


def forgotten(x, z):
    """Of a function that only allows itself to be differentiated once, and stays whole."""
    gx, = chainer.grad([F.sum(F.forget(lambda h: F.sin(h) * 2, x) * z)], [x])
    return gx + z


def scaled(x):
    return chainer.grad([F.sum(x ** 3)], [x], loss_scale=8.0)


def set_inside(x):
    v = Variable(x.array)
    chainer.grad([F.sum(v ** 3)], [v], set_grad=True)
    return v.grad * 2, v.grad_var * x


def backward_of_leaf(x):
    v = Variable(x.array)
    loss = F.sum(v ** 3)
    loss.backward()
    first = v.grad
    F.sum(v * 2.0).backward()
    return first, v.grad, loss.grad is None, loss.grad_var is None, x * v.grad


def cleared(x):
    v = Variable(x.array)
    F.sum(v ** 3).backward()
    v.cleargrad()
    before = v.grad
    F.sum(v ** 2).backward(enable_double_backprop=True)
    g = v.grad_var
    v.grad = None
    return before is None, v.grad is None, F.sum(g * x)


def backward_of_inputs(x, z):
    x.cleargrad()
    z.cleargrad()
    loss = F.sum(x ** 2 * z)
    loss.backward()
    return loss, x.grad * 2, z.grad_var.requires_grad


def accumulated(x, z):
    loss = F.sum(x ** 2 * z)
    loss.backward()
    loss.backward()
    return loss, x.grad + 1


def backward_twice_differentiable(x, z):
    loss = F.sum(x ** 2 * F.tanh(z))
    loss.backward(enable_double_backprop=True)
    return F.sum(x.grad_var * z.grad_var)


def backward_with_gradient(x):
    y = x * x
    y.grad = x.array * 2
    y.backward()
    return x.grad, y.grad is None


def through_branch(x, z):
    h = x * z
    if h.array.sum() > 0:
        y = F.exp(h) * x
    else:
        y = F.sin(h) + x
    gx, gz = chainer.grad([F.sum(y)], [x, z], enable_double_backprop=True)
    return F.sum(gx * gz), gx


def through_loop(x, z):
    h = x * z
    while h.array.sum() < 20:
        h = h * z + x
    g, = chainer.grad([F.sum(h)], [h])
    return g, h


def state_through_loop(x, z):
    h = x * z
    n = 0
    while n < 3 and h.array.sum() < 200:
        h = F.tanh(h * 1.5) * 2
        n += 1
    gx, = chainer.grad([F.sum(h)], [x], enable_double_backprop=True)
    return F.sum(gx * z)


def newton_in_loop(x):
    while F.sum(abs(x * x - 2)).array > 1e-4:
        g, = chainer.grad([x * x - 2], [x])
        x = x - (x * x - 2) / g
    return x


def newton_of_gradients_in_loop(x):
    n = 0
    while n < 20:
        g, = chainer.grad([F.sum(x ** 4 + x ** 2 + x)], [x], enable_double_backprop=True)
        if F.sum(abs(g)).array < 1e-3:
            break
        h, = chainer.grad([F.sum(g)], [x])
        x = x - g / h
        n += 1
    return x


def in_branch(x, z):
    if z.array.sum() > 3:
        h = x * z
        g, = chainer.grad([F.sum(h ** 2)], [h])
        y = g * x
    else:
        y = x * 2.0
    return y


def leaf_in_loop(x):
    w = x.array
    n = 0
    while (w * w).sum() > 0.1:
        v = Variable(w)
        F.sum(v ** 2 + v ** 4).backward()
        w = w - 0.05 * v.grad
        n += 1
    return w, n, x * w


def many_functions(w, b, x):
    h = F.batch_normalization(F.linear(x, w, b), b.array + 2, b.array)
    h = F.log_softmax(F.dropout(h, 0.0)) * F.softmax(h) + F.maximum(h, h * 0.5) - F.clip(h, -0.5, 0.5)
    h = F.concat([h, F.sigmoid(h)], axis=1)[:, 1:3]
    loss = F.softmax_cross_entropy(h, np.array([0, 1, 1, 0], "i"), enable_double_backprop=True) + F.max(h)
    gw, gb, gx = chainer.grad([loss], [w, b, x], enable_double_backprop=True)
    return F.sum(gw ** 2) + F.sum(gx ** 2), gw, gb, gx


def with_retain_grad(x, z):
    h = x * z
    F.sum(h * h).backward(retain_grad=True)
    return h.grad


COMPILED = [
    (maml, three), (maml_of_two_steps, three), (first_order, three), (gradient_penalty, three), (newton, one),
    (third_order, one), (intermediate, pair), (several_outputs, pair), (given_gradients, pair), (of_itself, pair),
    (nothing, pair), (constant_gradient, pair), (detached, pair), (equal_leaves, pair), (without_backprop, pair),
    (unchained, pair), (unchained_backward, pair), (forgotten, pair), (scaled, one), (set_inside, one), (backward_of_leaf, one), (cleared, one),
    (backward_of_inputs, pair), (accumulated, pair), (backward_twice_differentiable, pair), (backward_with_gradient, one),
    (through_branch, pair), (through_loop, pair), (state_through_loop, pair), (newton_in_loop, one),
    (newton_of_gradients_in_loop, one), (in_branch, pair), (leaf_in_loop, one), (many_functions, three), (with_retain_grad, pair)]


@pytest.mark.parametrize("program, inputs", COMPILED, ids=lambda x: x.__name__)
def test_program(program, inputs):
    """Values, flags, gradients kept by Variables, and the outer gradients."""
    against_eager.check(lambda compile: compile(program), [inputs] * 2, compiled=True)


def test_one_result_is_unchained():
    """The gradients of the other results stay."""
    against_eager.check(lambda compile: compile(unchained_result), [pair] * 2, compiled=True)


@pytest.mark.parametrize("program, inputs", COMPILED, ids=lambda x: x.__name__)
def test_second_outer_gradients(program, inputs):
    """The gradients of the gradients of what comes out."""
    found = []
    for function in (program, to_static(program, strict=True)):
        given = inputs()
        outputs = against_eager.floats_in(function(*given))
        if not any(y.creator is not None for y in outputs):
            return
        total = against_eager.weighted_sum(outputs)
        first = chainer.grad([total], given, enable_double_backprop=True)
        total = against_eager.weighted_sum([g for g in first if g is not None])
        second = [] if total is None or total.creator is None else chainer.grad([total], given)
        found.append([None if g is None else against_eager.Values(g.array) for g in (*first, *second)])
    for eager, compiled in zip(*found):
        assert eager == compiled


# --- programs with parameters, and series of calls -----------------------------------------------------------------------

class Critic(chainer.Chain):
    """WGAN with gradient penalty."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(3, 4, initialW=array(4, 3))
            self.l2 = L.Linear(4, 1, initialW=array(1, 4, seed=1))

    def score(self, x):
        return self.l2(F.leaky_relu(self.l1(x)))

    def forward(self, real, fake):
        mixed = Variable(real * np.float32(0.3) + fake * np.float32(0.7))
        g, = chainer.grad([self.score(mixed)], [mixed], enable_double_backprop=True)
        penalty = F.mean_squared_error(F.sqrt(F.batch_l2_norm_squared(g)), np.ones(len(real), "f"))
        return F.mean(self.score(fake)) - F.mean(self.score(real)) + 10 * penalty


class Meta(chainer.Chain):
    """MAML: one inner step per task, and the gradient through it."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(3, 4, initialW=array(4, 3))
            self.l2 = L.Linear(4, 1, initialW=array(1, 4, seed=1))

    def net(self, p, x):
        return F.linear(F.relu(F.linear(x, p[0], p[1])), p[2], p[3])

    def forward(self, xs, ys):
        p = [self.l1.W, self.l1.b, self.l2.W, self.l2.b]
        total = 0
        for x, y in zip(xs, ys):
            loss = F.mean_squared_error(self.net(p, x), y)
            fast = [a - 0.1 * g for a, g in zip(p, chainer.grad([loss], p, enable_double_backprop=True))]
            total += F.mean_squared_error(self.net(fast, y * x), y)
        return total / len(xs)


class Trained(chainer.Chain):
    """Clears its gradients and computes them itself; says what they are."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(3, 4, initialW=array(4, 3))
            self.unused = L.Linear(3, 4, initialW=array(4, 3))
        self.norm = None

    def forward(self, x):
        self.cleargrads()
        loss = F.sum(F.tanh(self.l1(x)) ** 2)
        loss.backward()
        self.norm = sum([float((p.grad ** 2).sum()) for p in self.params() if p.grad is not None])
        print(self.l1.W.grad)
        return loss


class Accumulating(Trained):
    """Adds to the gradients that are there."""

    def forward(self, x):
        loss = F.sum(self.l1(x) ** 2)
        loss.backward()
        return loss, self.l1.W.grad * 2


@pytest.mark.parametrize("cls, call", [
    (Critic, lambda: (array(5, 3), array(5, 3, seed=4))), (Meta, lambda: (array(2, 5, 3), array(2, 5, 1, seed=4))),
    (Trained, lambda: (array(5, 3),))])
def test_links(cls, call):
    """Parameters: the gradients of the losses, and those that the function writes itself."""
    def make(compile):
        model = cls()
        model.cleargrads()
        return compile(model), [model]
    against_eager.check(make, [call] * 2, compiled=True)


def test_gradients_that_were_there():
    """Whether a Parameter has a gradient before the call decides which program runs; NaN is one, too."""
    def make(compile):
        model = Accumulating()
        return compile(model), [model]

    def set_gradients(roots):
        for p in roots[0].params():
            p.grad = np.ones_like(p.array)
        return array(5, 3),

    def connected(roots):
        roots[0].l1.W.grad_var = F.exp(roots[0].l1.W)
        return array(5, 3),
    against_eager.check(make, [lambda: (array(5, 3),), set_gradients, lambda: (array(5, 3, seed=1),), connected], compiled=True)


# --- what is not captured ------------------------------------------------------------------------------------------------

def not_required(x, z):
    c = Variable(z.array, requires_grad=False)
    gx, gc = chainer.grad([F.sum(x * c)], [x, c])
    return gx, gc is None


def kept_by_what_leaves(x, z):
    v = Variable(x.array)
    F.sum(v * v).backward()
    return v


def view_of_what_was_given(x, z):
    """Eagerly, the gradient of `x` is the array that `y` was given, in another shape."""
    y, given = F.reshape(x, (1, 3)), z.array[None] * 1
    y.grad = given
    y.backward()
    given[0, 0] = 5
    return x.grad * 2, given


def backward_in_branch(x, z):
    if x.array.sum() > 0:
        F.sum(x * z).backward()
    return x * 2.0


def through_iterations(x, z):
    h = x
    while h.array.sum() < 20:
        h = h * z + x
        g, = chainer.grad([F.sum(h)], [x])
    return g


def through_iterations_only(x, z):
    """The first iteration has no gradient with respect to `y`; the later ones have one, through what is carried."""
    y, h, total = z * 2.0, x * 1.0, x * 0.0
    while h.array.sum() < 50:
        g, = chainer.grad([F.sum(h * h)], [y])
        total = total if g is None else total + g
        h = h * y + 1.0
    return total


def only_in_one_branch(x, z):
    y = x * x if x.array.sum() > 0 else x * z
    return chainer.grad([F.sum(y)], [x, z])


def one_of_two(x, z):
    y = x if x.array.sum() > 0 else z
    return chainer.grad([F.sum(y * x)], [y])


def outside(x, z):
    h = chainer.Variable(x.array)
    h.retain_data()
    return h.grad


def one_of_two_past_another(x, z):
    y = x if x.array.sum() > 0 else x * z
    h = x * z
    gy, gh = chainer.grad([F.sum(h * h)], [y, h])
    return gy is None, gh


def unchained_behind_a_decision(x, z):
    """What is cut stands before the decision, behind which the function is captured for each side."""
    y = x * z
    if y.array.sum() > 0:
        print(F.sum(y))
    y.unchain_backward()
    return y * x


@pytest.mark.parametrize("program", [backward_in_branch, one_of_two, only_in_one_branch, one_of_two_past_another,
                                     unchained_behind_a_decision],
                         ids=lambda x: x.__name__)
def test_decided_by_forks(program):
    """Where a gradient cannot be joined, the rest of the function is captured for each side."""
    signs = [pair, lambda: (variable(3, low=-2, high=-1), variable(3, seed=1))]
    against_eager.check(lambda compile: compile(program), signs * 2)


@pytest.mark.parametrize("program", [kept_by_what_leaves, view_of_what_was_given])
def test_in_parts(program):
    """The Variable gets its gradient in the second part."""
    against_eager.check(lambda compile: compile(program), [pair] * 2, compiled=None)


def test_backward_of_what_is_no_scalar():
    """Most of Chainer's functions fail, too, where nothing says what the gradient is."""
    y = to_static(lambda x: F.tanh(x))(variable(3))
    with pytest.raises(TypeError, match="is no scalar and has no gradient; call it on the sum or the mean"):
        y.backward()


@pytest.mark.parametrize("program", [not_required, through_iterations, through_iterations_only, outside],
                         ids=lambda x: x.__name__)
def test_refused(program):
    """Run eagerly."""
    against_eager.check(lambda compile: compile(program), [pair] * 2, compiled=False)


def test_gradient_of_what_was_computed_before():
    """An input with a creator: eagerly, `backward` goes on to what it was computed from."""
    def f(h):
        F.sum(h * h).backward()
        return h * 2.0
    for function in (f, to_static(f)):
        x = variable(3)
        for h, expected in ((x * 2.0, 8 * x.array), (Variable(x.array), None)):
            function(h)
            assert (x.grad is None) if expected is None else np.allclose(x.grad, expected)
            assert (h.grad is None) is (expected is not None)
            x.cleargrad()


def test_gradient_with_respect_to_what_is_behind_an_argument():
    """The function reads nothing of a Variable from which its argument was computed before the call."""
    def f(h, w):
        gradient, = chainer.grad([F.sum(h * h)], [w])
        return None if gradient is None else gradient.array
    compiled = to_static(f)
    w = variable(3)
    for h in (Variable(array(3)), w * 2.0, Variable(array(3)), F.sin(w)):
        expected, actual = f(h, w), compiled(h, w)
        assert (actual is None) is (expected is None)
        assert expected is None or np.allclose(actual, expected)
    assert compiled.cache_info().captures > 0


LOSSES = chainer.Chain(first=L.Linear(3, 3, initialW=array(3, 3)))


def behind_a_loop(x, z):
    """A step: which Variables lose their creators is for the run to say, and nothing is differentiated afterwards."""
    h = LOSSES.first(F.stack([x, z]))
    while float(F.sum(h * h).array) > 0.1:
        h = F.tanh(h) * 0.5
    loss = F.sum(F.where(h.array > 0, h, h * z) ** 2)
    chainer.report({"loss": loss}, LOSSES)
    LOSSES.cleargrads()
    loss.backward()
    loss.unchain_backward()
    return loss, loss.creator is None, LOSSES.first.W.grad, LOSSES.first.b.grad


def kept_behind_a_branch(x, z):
    h = x * z
    y = F.exp(h) if h.array.sum() > 0 else x * 2
    F.sum(y).unchain_backward()
    return h, y * z


def differentiated_behind_a_branch(x, z):
    h = x * z
    y = F.sum(F.exp(h) if h.array.sum() > 0 else x * 2)
    y.unchain_backward()
    gradient, = chainer.grad([F.sum(h * h)], [x])
    return gradient, h.creator is None


@pytest.mark.parametrize("program, whole", [
    (behind_a_loop, True), (kept_behind_a_branch, False), (differentiated_behind_a_branch, False)])
def test_unchained_where_the_run_decides(program, whole):
    def observed(function, x, z):
        reporter = chainer.Reporter()
        reporter.add_observer("main", LOSSES)
        with reporter:
            found = function(x, z)
        creators = [y.creator is None for y in found if isinstance(y, Variable)]
        arrays = [y.array if isinstance(y, Variable) else y for y in (*found, *reporter.observation.values())]
        return [*creators, *reporter.observation], arrays

    compiled = to_static(program, backend="numpy", strict="parts" if whole else False)
    for low in (0.5, -2, 0.5, -2) if whole else (0.5, 0.6):     # between parts, siblings are unchained together
        args = variable(3, low=low, high=low + 1), variable(3, seed=1, low=0.5, high=2)
        eager, made = observed(program, *args), observed(compiled, *args)
        assert eager[0] == made[0]
        for one, other in zip(eager[1], made[1]):
            np.testing.assert_allclose(np.asarray(one, "f"), np.asarray(other, "f"), rtol=1e-4)
    assert not whole or compiled.stats()["cuts"] == 0


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
def test_in_debug_mode_nan_in_a_gradient_that_is_added_to_is_an_error():
    link = L.Linear(3, 2)

    @to_static(backend="numpy")
    def step(x):
        loss = F.sum(link(x) ** 2)
        loss.backward()
        return loss.array

    with chainer.using_config("debug", True), pytest.raises(RuntimeError, match="NaN is detected on backward"):
        step(np.ones((2, 3), "f"))
