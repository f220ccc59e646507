"""The surroundings of a training loop: gradients at the border, optimizers, trainers; eager and compiled side by side."""
import contextlib
import io
import json
import os
import tempfile
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import TOLERANCE, array, check
from chainer import gradient_check, optimizer_hooks, optimizers, training
from chainer.datasets import TupleDataset
from chainer.iterators import SerialIterator
from chainer.training import extensions

from dy2static import to_static


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(4, 5, nobias=True, initialW=array(5, 4, seed=1))
            self.bn = L.BatchNormalization(5)
            self.l2 = L.Linear(5, 3, initialW=array(3, 5, seed=2))

    def forward(self, x):
        return self.l2(F.dropout(F.tanh(self.bn(self.l1(x))), 0.3))


def labels(n):
    return (np.arange(n) % 3).astype("i")


def variables():
    return chainer.Variable(array(2, 3)), chainer.Variable(array(2, 3, seed=1))


def state(model):
    return [(name, p.array.copy(), p.grad) for name, p in model.namedparams()] + [model.bn.avg_mean.copy()]


def same(eager, compiled, path="result"):
    """Assert that two nested results are equal, arrays within their tolerance."""
    if isinstance(eager, chainer.Variable):
        return same([eager.array, eager.requires_grad, eager.grad], [compiled.array, compiled.requires_grad, compiled.grad], path)
    if isinstance(eager, (list, tuple)):
        assert len(eager) == len(compiled), path
        return [same(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(eager, compiled))]
    if isinstance(eager, dict):
        assert list(eager) == list(compiled), path
        return [same(eager[k], compiled[k], f"{path}[{k!r}]") for k in eager]
    if isinstance(eager, (np.ndarray, np.floating, float)):
        a, b = np.asarray(eager), np.asarray(compiled)
        rtol, atol = TOLERANCE["e" if a.dtype.char == "e" else "f"]
        assert a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, 5 * rtol, 5 * atol, equal_nan=True), (path, a, b)
        return None
    assert type(eager) is type(compiled) and eager == compiled, (path, eager, compiled)
    return None


def both(body, captures=None):
    """Run ``body(compile)`` eagerly and compiled: the same results, random state, and nothing that falls back."""
    found, made = [], []

    def compile(target):
        made.append(to_static(target, strict=True))
        return made[-1]
    for each in (lambda target: target, compile):
        np.random.seed(3)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found.append((body(each), np.random.random()))
    same(*found)
    counts = sum((getattr(type(m), "forward", m) if isinstance(m, chainer.Link) else m).stats()["captures"] for m in made)
    assert counts == captures or captures is None and counts, counts


# --- gradients at the border -----------------------------------------------------------------------------------------------

def loss(x, y):
    return F.sum(F.tanh(x * y) + x)


def cleared(compile):
    f, out = compile(loss), []
    for requires in (True, False, True):
        x, y = variables()
        y = chainer.Variable(y.array, requires_grad=requires)
        f(x, y).backward()
        out += [x.grad.copy(), y.grad, x.grad_var.requires_grad]
        f(x, y).backward()                              # accumulates
        x.cleargrad()
        f(x, y).backward()
        x.zerograd()
        f(x, y).backward(retain_grad=True)
        out += [x, y]
    return out


def scaled(compile):
    f, out = compile(loss), []
    for scale in (2.0, 128.0):
        x, y = variables()
        value = f(x, y)
        value.backward(loss_scale=scale)
        out += [x, y, value, x._loss_scale, value._loss_scale, x.grad_var._loss_scale]
    return out


def grad_options(compile):
    f, out = compile(lambda x, y: (F.tanh(x * y), x + y, F.sum(x))), []
    for _ in range(2):
        x, y = variables()
        a, b, s = f(x, y)
        z = F.sum(a * b) * s
        g = chainer.grad([z], [x, y, a], enable_double_backprop=True)
        out += [*g, *chainer.grad([F.sum(g[0] * g[1])], [x, y, b])]
        out += chainer.grad([a, b], [x, y], [chainer.Variable(array(2, 3, seed=5)), None], [chainer.Variable(array(2, 3)), None])
        out += chainer.grad([z], [x], set_grad=True, retain_grad=True, enable_double_backprop=True)
        out += [x, a, b, s, z, y.grad]
    return out


def forgotten(compile):
    f, g, out = compile(lambda x: F.tanh(x) + F.dropout(x)), compile(lambda x, y: F.forget(lambda a: F.exp(a) + F.dropout(a), x) * y), []
    for _ in range(3):
        x, y = variables()
        z = F.sum(F.forget(f, x) * g(x, y))
        z.backward()
        out += [x, y, z]
    return out


def checked(compile):
    f = compile(lambda x, y: F.tanh(x * y) + x * x * x)
    x, y, g = [array(2, 3, seed=i, dtype="d") for i in range(3)]
    gradient_check.check_backward(f, (x, y), g, atol=1e-4, rtol=1e-4, dtype="d")
    gradient_check.check_double_backward(f, (x, y), g, (g, g), atol=1e-4, rtol=1e-4, dtype="d")
    detached = compile(lambda x: chainer.Variable(x.array) * x)
    with pytest.raises(AssertionError):
        gradient_check.check_backward(detached, x, g, dtype="d")


@pytest.mark.parametrize("body", [cleared, scaled, grad_options, forgotten, checked], ids=lambda body: body.__name__)
def test_gradients(body):
    both(body)


# --- optimizers ------------------------------------------------------------------------------------------------------------

OPTIMIZERS = ["SGD", "MomentumSGD", "Adam", "AMSGrad", "AdaGrad", "RMSprop", "NesterovAG", "AdaDelta", "RMSpropGraves", "SMORMS3",
              "CorrectedMomentumSGD"]
HOOKS = [lambda: optimizer_hooks.WeightDecay(0.01), lambda: optimizer_hooks.GradientClipping(0.1),
         lambda: optimizer_hooks.GradientHardClipping(-0.01, 0.01), lambda: optimizer_hooks.GradientNoise(0.1),
         lambda: optimizer_hooks.Lasso(0.01), lambda: optimizer_hooks.GradientLARS()]


@pytest.mark.parametrize("how", ["after backward", "with a loss"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, how):
    def body(compile):
        model, out = Net(), []
        optimizer = getattr(optimizers, name)().setup(model)
        for hook in HOOKS:
            optimizer.add_hook(hook())
        compiled = compile(lambda x, t: F.softmax_cross_entropy(model(x), t))
        for i in range(3):
            x, t = array(6, 4, seed=i), labels(6)
            if how == "with a loss":
                optimizer.update(compiled, x, t)
            else:
                value = compiled(x, t)
                model.cleargrads()
                value.backward()
                optimizer.update()
            out += [state(model), optimizer.t]
        return out
    both(body, captures=1)


def master_weights(compile, dtype="e"):
    model, out = Net(), []
    for parameter in model.params():
        parameter.array = parameter.array.astype("e")
    optimizer = optimizers.Adam(eps=1e-3)
    optimizer.use_fp32_update()
    optimizer.setup(compile(model)).loss_scaling(scale=128.0)
    for i in range(3):
        optimizer.update(lambda x, t: F.softmax_cross_entropy(model(x), t), array(6, 4, seed=i, dtype="e"), labels(6))
        out.append(state(model))
    return out


def mixed16(compile):
    with chainer.using_config("dtype", chainer.mixed16):
        return master_weights(compile)


def dynamic_scale(compile):
    model, out = Net(), []
    optimizer = optimizers.SGD().setup(compile(model))
    optimizer.loss_scaling(interval=2)
    for i in range(5):
        x = array(6, 4, seed=i)
        x[0] = np.inf if i == 2 else x[0]
        optimizer.update(lambda x, t: F.softmax_cross_entropy(model(x), t), x, labels(6))
        out += [state(model), optimizer._loss_scale]
    return out


def update_rules(compile):
    model, out = Net(), []
    optimizer = optimizers.SGD().setup(model)
    compiled = compile(lambda x, t: F.softmax_cross_entropy(model(x), t))
    changes = [lambda: None, model.l1.disable_update, model.l1.enable_update,
               lambda: setattr(model.l2.W.update_rule.hyperparam, "lr", 0.5),
               lambda: model.l2.b.update_rule.add_hook(optimizer_hooks.WeightDecay(0.1))]
    for i, change in enumerate(changes):
        change()
        optimizer.update(compiled, array(6, 4, seed=i), labels(6))
        out.append(state(model))
    return out


@pytest.mark.parametrize("body", [master_weights, mixed16, dynamic_scale, update_rules], ids=lambda body: body.__name__)
def test_updates(body):
    both(body, captures=1)


# --- trainers --------------------------------------------------------------------------------------------------------------

class Reporting(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.predictor = Net()

    def forward(self, x, t):
        y = self.predictor(x)
        value = F.softmax_cross_entropy(y, t)
        chainer.report({"loss": value, "accuracy": F.accuracy(y, t)}, self)
        return value


def inner(compile):
    return L.Classifier(compile(Net()))


def whole(compile):
    return compile(L.Classifier(Net()))


def reporting(compile):
    return compile(Reporting())


def train(model, out, epochs, resume=None):
    """Everything that a script usually hangs on a trainer; the logged entries."""
    optimizer = optimizers.MomentumSGD(0.1).setup(model)
    iterator = SerialIterator(TupleDataset(array(10, 4), labels(10)), 4)
    held_out = SerialIterator(TupleDataset(array(7, 4, seed=4), labels(7)), 5, repeat=False, shuffle=False)
    trainer = training.Trainer(training.StandardUpdater(iterator, optimizer, device=-1), (epochs, "epoch"), out=out)
    trainer.extend(extensions.Evaluator(held_out, model, device=-1))
    trainer.extend(extensions.LogReport(trigger=(1, "epoch")))
    trainer.extend(extensions.PrintReport(["epoch", "main/loss", "validation/main/loss"]), name="print")
    trainer.extend(extensions.ExponentialShift("lr", 0.9))
    trainer.extend(extensions.FailOnNonNumber())
    trainer.extend(extensions.snapshot(filename="at_{.updater.epoch}"), trigger=(1, "epoch"))
    if extensions.PlotReport.available():
        trainer.extend(extensions.PlotReport(["main/loss"], file_name="loss.png"))
    if resume is not None:
        chainer.serializers.load_npz(resume, trainer)
    trainer.run()
    with open(os.path.join(out, "log")) as file:
        return [{k: v for k, v in entry.items() if k != "elapsed_time"} for entry in json.load(file)]


@pytest.mark.parametrize("make", [inner, whole, reporting], ids=lambda make: make.__name__)
def test_trainer(make):
    """A run, and one that resumes it; one capture for training, one per shape for evaluation."""
    def body(compile):
        model, out = make(compile), tempfile.mkdtemp()
        first = train(model, out, 2)
        return [first, sorted(os.listdir(out)), train(model, tempfile.mkdtemp(), 3, os.path.join(out, "at_1")),
                [(name, p.array) for name, p in model.namedparams()]]
    both(body, captures=3)


def test_smaller_last_batch():
    """The updater's loss function is compiled: one capture more for the last batch, and no more."""
    def body(compile):
        model = Net()
        iterator = SerialIterator(TupleDataset(array(10, 4), labels(10)), 4, repeat=False, shuffle=False)
        compiled, out = compile(lambda x, t: F.softmax_cross_entropy(model(x), t)), []
        for _ in range(3):
            out += [compiled(*chainer.dataset.concat_examples(batch)) for batch in iterator]
            iterator.reset()
        return out
    both(body, captures=2)


def scope_inside(x):
    seen = {}
    with chainer.reporter.report_scope(seen):
        chainer.report({"a": F.sum(x).array})
    chainer.report({"b": 2.0})
    return x * 2, list(seen)


def reporter_inside(x):
    seen, reporter = {}, chainer.Reporter()
    with reporter, reporter.scope(seen):
        chainer.report({"a": F.sum(x).array})
    return x * 2, list(seen)


@pytest.mark.parametrize("function", [scope_inside, reporter_inside], ids=lambda function: function.__name__)
def test_reporters_inside(function):
    def make(compile):
        static, seen = compile(function), {}

        def reported(x):
            with chainer.Reporter().scope(seen), chainer.Reporter() as reporter, reporter.scope(seen):
                return static(x)
        return reported, seen
    check(make, [lambda: (array(3),)] * 3, rounds=1)


@pytest.mark.parametrize("keep", [False, True])
def test_reports(keep):
    def body(compile):
        model = Reporting()
        compiled, out = compile(lambda x, t: model(x, t)), []
        with chainer.using_config("keep_graph_on_report", keep):
            for i in range(3):
                reporter, seen = chainer.Reporter(), {}
                reporter.add_observer("main", model)
                with reporter.scope(seen):
                    out.append(compiled(array(6, 4, seed=i), labels(6)))
                out += [{k: (v.array, v.creator is None) for k, v in seen.items() if isinstance(v, chainer.Variable)}, list(seen)]
        return out
    both(body, captures=1)
