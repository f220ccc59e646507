"""A training step as one function: gradients, updates in place, and backwards that read what was updated."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import register_lowering, save, to_static
from dy2static.errors import CaptureError, RunError, SaveError, SignatureError

BACKENDS = ("numpy", "c")


def parameters(function, *shapes):
    """A Link that gives ``function(x, *parameters)``."""
    class Made(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                for i, shape in enumerate(shapes):
                    setattr(self, f"p{i}", chainer.Parameter(np.random.RandomState(i).randn(*shape).astype("f")))

        def forward(self, x):
            return function(x, *[getattr(self, f"p{i}") for i in range(len(shapes))])
    return Made


def arrays(*shape):
    return np.random.RandomState(0).randn(*shape).astype("f")


ROWS, IMAGES = arrays(4, 6), arrays(2, 3, 7, 7)
READING = {
    "linear": (lambda: L.Linear(6, 3), ROWS), "convolution": (lambda: L.Convolution2D(3, 4, 3), IMAGES),
    "convolution 1d": (lambda: L.Convolution1D(3, 4, 3), arrays(2, 3, 9)),
    "deconvolution": (lambda: L.Deconvolution2D(3, 4, 3), IMAGES), "batch norm": (lambda: L.BatchNormalization(3), IMAGES),
    "layer norm": (lambda: L.LayerNormalization(6), ROWS), "prelu": (lambda: L.PReLU((6,)), ROWS),
    "embed": (lambda: L.EmbedID(3, 6), np.array([0, 2, 1, 1], "i")), "highway": (lambda: L.Highway(6), ROWS),
    "product": (parameters(lambda x, p: x * p, (4, 6)), ROWS), "difference": (parameters(lambda x, p: p - x, (4, 6)), ROWS),
    "quotient": (parameters(lambda x, p: x / p, (4, 6)), ROWS),
    "power": (parameters(lambda x, p: x * p ** 2, (4, 6)), ROWS), "einsum": (parameters(
        lambda x, p: F.einsum("ij,jk->ik", x, p), (6, 2)), ROWS),
    "of results": (parameters(lambda x, p, q: x * F.tanh(p) * F.exp(q) * F.softmax(p), (4, 6), (4, 6)), ROWS),
    "of bent results": (parameters(lambda x, p, q: x * F.relu(p) * F.softplus(q) + F.elu(p) * F.leaky_relu(q) - F.maximum(
        p, q) * F.sin(p) + F.log_softmax(p) * F.clip(q, -0.5, 0.5), (4, 6), (4, 6)), ROWS),
    "of smooth results": (parameters(lambda x, p, q: x * F.sigmoid(p) * F.cos(q) + F.square(p) * F.absolute(q) - F.minimum(p, q), (
        4, 6), (4, 6)), ROWS),
    "joined": (parameters(lambda x, p, q: F.linear(x, F.concat([p, q], axis=0)), (2, 6), (1, 6)), ROWS),
}


def gradients(model):
    return [p.grad for p in model.params()]


def assert_alike(eager, static, exact=False):
    for a, b in zip(eager, static):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, **(dict(rtol=0, atol=0) if exact else dict(rtol=2e-5, atol=2e-6)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", READING)
def test_a_backward_reads_parameters_as_they_are_by_then(name, backend):
    def made():
        np.random.seed(0)
        model = READING[name][0]()
        optimizer = chainer.optimizers.SGD(0.005).setup(model)

        def step(x):
            y = model(chainer.Variable(x) if x.dtype.kind == "f" else x)
            first, second = F.sum(F.sin(y)), F.sum(F.cos(y * 0.3))
            model.cleargrads()
            first.backward()
            optimizer.update()
            model.cleargrads()
            second.backward()
        return model, step
    (eager, step), (static, other) = made(), made()
    compiled = to_static(strict=True, backend=backend)(other)
    for _ in range(3):
        step(READING[name][1])
        compiled(READING[name][1])
    assert_alike(gradients(eager), gradients(static))
    assert_alike([p.array for p in eager.params()], [p.array for p in static.params()])


def test_what_is_not_known_to_read_again_is_refused():
    model = parameters(lambda x, p: x * F.normalize(p), (4, 6))()
    optimizer = chainer.optimizers.SGD().setup(model)

    @to_static(strict=True)
    def step(x):
        y = model(x)
        first, second = F.sum(y), F.sum(y * y)
        first.backward()
        optimizer.update()
        second.backward()
    with pytest.raises(CaptureError, match="changed in place that a backward reads"):
        step(ROWS)


def test_a_function_of_the_users_may_have_the_name_of_one_of_chainers():
    class Mul(chainer.FunctionNode):
        def forward(self, inputs):
            self.kept = [a * 1 for a in inputs]         # what an update does not reach
            return inputs[0] * inputs[1],

        def backward(self, indexes, gradients):
            return gradients[0] * self.kept[1], gradients[0] * self.kept[0]

    register_lowering(Mul)(lambda node, a, b: a * b)
    model = parameters(lambda x, p: Mul().apply((x, p))[0], (4, 6))()
    optimizer = chainer.optimizers.SGD().setup(model)

    @to_static(strict=True)
    def step(x):
        y = model(x)
        first, second = F.sum(y), F.sum(y * y)
        first.backward()
        optimizer.update()
        second.backward()
    with pytest.raises(CaptureError, match="changed in place that a backward reads"):
        step(chainer.Variable(ROWS))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("generator_first", (False, True))
def test_two_optimizers(generator_first, backend):
    def made():
        np.random.seed(0)
        generator = chainer.Sequential(L.Linear(3, 6), L.BatchNormalization(6), F.tanh, L.Linear(6, 5))
        critic = chainer.Sequential(L.Linear(5, 6), F.leaky_relu, L.Linear(6, 1))
        optimizers = [chainer.optimizers.MomentumSGD().setup(model) for model in (generator, critic)]
        optimizers[1].add_hook(chainer.optimizer_hooks.WeightDecay(0.1))

        def of_critic(critic, fake, real):
            return F.sum(F.softplus(-real)) / 4 + F.sum(F.softplus(fake)) / 4

        def of_generator(generator, fake):
            return F.sum(F.softplus(-fake)) / 4

        def step(z, x):
            real, fake = critic(x), critic(generator(z))
            if generator_first:
                optimizers[0].update(of_generator, generator, fake)
            optimizers[1].update(of_critic, critic, fake, real)
            if not generator_first:
                optimizers[0].update(of_generator, generator, fake)
            return fake.array
        return chainer.ChainList(generator, critic), step
    (eager, step), (static, other) = made(), made()
    compiled = to_static(strict=True, backend=backend)(other)
    for i in range(5):
        z, x = arrays(4, 3) + i, arrays(4, 5) - i
        assert_alike([step(z, x)], [compiled(z, x)], exact=backend == "numpy")
    assert_alike(gradients(eager), gradients(static), exact=backend == "numpy")
    assert_alike([p.array for p in eager.params()], [p.array for p in static.params()], exact=backend == "numpy")


def model_and_optimizer():
    np.random.seed(0)
    model = L.Linear(6, 3)
    return model, chainer.optimizers.SGD(0.1).setup(model)


def test_gradients_that_were_taken_inside_are_spent():
    model, optimizer = model_and_optimizer()

    @to_static(strict=True)
    def step(x):
        loss = F.sum(model(x))
        model.cleargrads()
        loss.backward()
        optimizer.update()
        return loss
    for _ in range(3):
        loss = step(ROWS)
        assert loss.creator is not None and loss.requires_grad
        with pytest.raises(RunError, match="has taken these gradients itself") as caught:
            loss.backward()
    assert "optimizer.update()" in str(caught.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_that_read_no_updated_parameter_can_be_differentiated_afterwards(backend):
    generator, critic = L.Linear(6, 6), L.Linear(6, 3)
    optimizer = chainer.optimizers.SGD(0.1).setup(generator)

    def step(x):
        y_real, y_fake = critic(x), critic(generator(x))
        loss = F.sum(y_fake)
        generator.cleargrads()
        loss.backward()
        optimizer.update()
        return loss, y_real
    compiled = to_static(step, strict=True, backend=backend)
    start = [(p, p.array.copy()) for model in (generator, critic) for p in model.params()]
    found = []
    for call in (step, compiled):
        for parameter, array in start:
            parameter.array[...] = array
        for _ in range(3):
            loss, y_real = call(ROWS)
            critic.cleargrads()
            F.sum(y_real ** 2).backward()
        found.append([array.copy() for p, _ in start for array in (p.array, p.grad)])
        if call is compiled:
            with pytest.raises(RunError, match="has taken these gradients itself"):
                (loss + F.sum(y_real)).backward()
    for eager, ours in zip(*found):
        np.testing.assert_allclose(ours, eager, rtol=1e-5, atol=1e-6)


def test_a_loss_whose_gradient_was_not_taken_is_left_to_eager_mode():
    model, optimizer = model_and_optimizer()

    @to_static
    def step(x):
        first, second = F.sum(model(x)), F.sum(model(x) ** 2)
        model.cleargrads()
        first.backward()
        optimizer.update()
        return second
    with pytest.warns(UserWarning, match="a `backward` after the call may read an array"):
        second = step(ROWS)
    second.backward()


@pytest.mark.parametrize("function, why", (
    (lambda x, p, q: p + q, "one array is the gradient of both"),
    (lambda x, p, q: F.sum(x) * F.sum(p), "the gradient is a view that repeats one number")))
def test_gradients_that_share_memory_are_not_written(function, why):
    model = parameters(function, (4, 6), (4, 6))()

    def halved():
        model.cleargrads()
        F.sum(model(ROWS) * 3).backward()
        for parameter in model.params():
            if parameter.grad is not None:
                parameter.grad[...] *= 0.5
        return gradients(model)
    with pytest.raises(CaptureError, match="is changed in place that"):
        to_static(strict=True)(halved)()


def test_an_array_that_may_be_a_view_is_not_read_after_the_change():
    model, _ = model_and_optimizer()

    def read_after(x):
        model.cleargrads()
        F.sum(model(x)).backward()
        flat = model.W.grad.ravel()
        model.W.grad[...] *= 2
        return flat
    eager = read_after(ROWS)
    with pytest.raises(CaptureError, match="may share memory with"):
        to_static(strict=True)(read_after)(ROWS)
    np.testing.assert_array_equal(to_static(read_after)(ROWS), eager)


def test_parameters_are_reshaped_and_updated():
    def made():
        model = parameters(lambda x, p, q: F.matmul(x, F.reshape(p, (6, 2))) + F.broadcast_to(q, (4, 2)), (3, 4), (2,))()
        optimizer = chainer.optimizers.Adam().setup(model)
        optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(0.1))

        def step(x):
            optimizer.update(lambda: F.sum(model(x) ** 2))
        return model, step
    (eager, step), (static, other) = made(), made()
    compiled = to_static(strict=True, backend="numpy")(other)
    for _ in range(4):
        step(ROWS)
        compiled(ROWS)
    assert_alike([p.array for p in eager.params()], [p.array for p in static.params()], exact=True)


def test_a_step_is_not_saved(tmp_path):
    parameter = chainer.Parameter(arrays(4, 6))

    @to_static(strict=True)
    def step(x):
        loss = F.sum(parameter * x)
        parameter.cleargrad()
        loss.backward()
        parameter.array -= 0.1 * parameter.grad
        return loss
    step(ROWS)
    with pytest.raises(SaveError, match="a training step is not saved"):
        save(step, tmp_path / "model")


def test_methods_that_are_replaced_between_steps(monkeypatch):
    model, optimizer = model_and_optimizer()

    @to_static(strict=True)
    def step(x):
        optimizer.update(lambda: F.sum(model(x)))
    for _ in range(3):
        step(ROWS)
    before = model.W.array.copy()
    monkeypatch.setattr(chainer.Parameter, "update", lambda self: None)
    step(ROWS)
    np.testing.assert_array_equal(model.W.array, before)
    monkeypatch.undo()
    monkeypatch.setattr(chainer.optimizers.sgd.SGDRule, "update_core_cpu", lambda self, param: None)
    step(ROWS)
    np.testing.assert_array_equal(model.W.array, before)


class Normalized(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first, self.norm = L.Linear(6, 3), L.BatchNormalization(3)

    def forward(self, x):
        return self.norm(self.first(x))


def with_a_target(model, other, optimizer, x):
    """The target follows the model behind the update; its running statistics do, too."""
    loss = F.sum((model(x) - other(x).array) * x[:, :3])
    model.cleargrads()
    loss.backward()
    optimizer.update()
    other.copyparams(model)
    return loss


def with_a_worker(model, other, optimizer, x):
    """The gradients are those of a copy, twice; the second ones are added to what is there."""
    other.copyparams(model)
    model.cleargrads()
    for part in (x[:3], x[1:]):
        other.cleargrads()
        F.sum(other(part) * part[:, :3]).backward()
        model.addgrads(other)
    optimizer.update()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("step", [with_a_target, with_a_worker], ids=lambda step: step.__name__)
def test_parameters_and_gradients_of_another_link(step, backend):
    def made():
        np.random.seed(0)
        model, other = Normalized(), Normalized()
        return model, other, chainer.optimizers.MomentumSGD(0.01).setup(model)
    eager, static, compiled = made(), made(), to_static(step, strict=True, backend=backend)
    for i in range(5):
        step(*eager, ROWS + i % 2)
        compiled(*static, ROWS + i % 2)
        for a, b in zip(eager[:2], static[:2]):
            assert_alike([p.array for p in a.params()], [p.array for p in b.params()], exact=backend == "numpy")
            assert_alike(gradients(a), gradients(b), exact=backend == "numpy")
            assert_alike([a.norm.avg_mean, a.norm.avg_var], [b.norm.avg_mean, b.norm.avg_var], exact=backend == "numpy")


def test_a_write_that_a_returned_variable_reads_stops_a_strict_capture():
    model, other = L.Linear(6, 3), L.Linear(6, 3)

    @to_static(strict=True)
    def step(x):
        y = F.sum(other(x * model.b.array.sum()) * model(x))
        other.copyparams(model)
        return y
    with pytest.raises(CaptureError, match="changed in place"):
        step(ROWS)


def test_hooks_of_rules_act_once():
    model, optimizer = model_and_optimizer()
    seen = []
    model.b.update_rule.add_hook(lambda rule, param: seen.append(rule.t), name="seen", timing="post")

    @to_static(strict=True)
    def step(x):
        optimizer.update(lambda: F.sum(model(x)))
    for _ in range(5):
        step(ROWS)
    assert seen == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_that_are_dropped(backend):
    def made():
        np.random.seed(0)
        model = chainer.Sequential(L.Linear(6, 4), F.tanh, L.Linear(4, 3))
        fixed = L.Linear(3, 2)
        optimizer = chainer.optimizers.Adam().setup(model)
        optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(0.1))

        def step(x):
            loss = F.sum(fixed(model(x)) ** 2)
            model.cleargrads()
            fixed.cleargrads()
            loss.backward()
            optimizer.update()
            return loss
        return model, fixed, step
    (eager, fixed, step), (static, other, compiled) = made(), made()
    compiled = to_static(strict=True, backend=backend, grads="drop")(compiled)
    for _ in range(4):
        step(ROWS)
        compiled(ROWS)
    assert_alike([p.array for p in eager.params()], [p.array for p in static.params()], exact=backend == "numpy")
    assert gradients(static) == [None] * 4
    assert_alike(gradients(fixed), gradients(other), exact=backend == "numpy")


def test_dropped_gradients_cannot_be_compared():
    with pytest.raises(SignatureError, match="keeps the gradients"):
        to_static(lambda x: x, grads="drop", check=1)
    with pytest.raises(SignatureError, match="grads"):
        to_static(lambda x: x, grads="none")
