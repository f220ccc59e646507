"""Chainer's updaters, trainers and evaluators with what is compiled in them do what they do eagerly."""
import types

import against_eager
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import optimizers, training
from chainer.iterators import SerialIterator
from chainer.training import extensions
from many_steps import MLP

from dy2static import to_static

pytestmark = pytest.mark.filterwarnings("ignore")


def same(function):
    return function


def rows(n=12):
    r = np.random.RandomState(0)
    return list(zip(r.rand(n, 3).astype("f"), r.randint(0, 2, n).astype("i")))


def classifier():
    model = L.Classifier(MLP())
    return model, optimizers.Adam().setup(model)


class Adversaries(training.updaters.StandardUpdater):
    """The updater of Chainer's DCGAN example: two networks, two optimizers, fake images made once."""

    def update_core(self):
        gen_optimizer, dis_optimizer = self.get_optimizer("gen"), self.get_optimizer("dis")
        gen, dis = gen_optimizer.target, dis_optimizer.target
        x_real, _ = self.converter(self.get_iterator("main").next(), self.device)
        y_real = dis(x_real)
        x_fake = gen(np.random.uniform(-1, 1, x_real.shape).astype("f"))
        y_fake = dis(x_fake)
        dis_optimizer.update(self.loss_dis, dis, y_fake, y_real)
        gen_optimizer.update(self.loss_gen, gen, y_fake)

    def loss_dis(self, dis, y_fake, y_real):
        loss = F.mean(F.softplus(-y_real)) + F.mean(F.softplus(y_fake))
        chainer.report({"loss": loss}, dis)
        return loss

    def loss_gen(self, gen, y_fake):
        loss = F.mean(F.softplus(-y_fake))
        chainer.report({"loss": loss}, gen)
        return loss


def standard(compile):
    model, optimizer = classifier()
    updater = training.updaters.StandardUpdater(SerialIterator(rows(), 4, shuffle=False), optimizer)
    updater.update_core = compile(updater.update_core)
    return updater, {"main": model}


def of_the_model(compile):
    model, optimizer = classifier()
    return training.updaters.StandardUpdater(SerialIterator(rows(), 4, shuffle=False), optimizer, loss_func=compile(model)), {"main": model}


def adversaries(compile):
    gen, dis = MLP(3, 3), MLP(3, 1)
    updater = Adversaries(SerialIterator(rows(), 4, shuffle=False), {
        "gen": optimizers.SGD(0.1).setup(gen), "dis": optimizers.SGD(0.1).setup(dis)})
    updater.update_core = compile(updater.update_core)
    return updater, {"gen": gen, "dis": dis}


def parallel(compile):
    """Two copies of a compiled model, whose gradients are added."""
    model = compile(L.Classifier(MLP()))
    optimizer = optimizers.SGD(0.1).setup(model)
    iterator = SerialIterator(rows(), 4, shuffle=False)
    return training.updaters.ParallelUpdater(iterator, optimizer, devices={"main": "@numpy", "second": "@numpy"}), {"main": model}


def observed(make, compile, steps=7):
    """After each update: what was reported, the iterators, the parameters, their gradients and the states of the optimizers."""
    np.random.seed(3)
    updater, links = make(compile)
    reporter, found = chainer.Reporter(), []
    for name, link in links.items():
        reporter.add_observer(name, link)
        reporter.add_observers(name, link.namedlinks(skipself=True))
    updater.connect_trainer(types.SimpleNamespace(reporter=reporter, updater=updater))
    for _ in range(steps):
        observation = {}
        with reporter.scope(observation):
            updater.update()
        reported = {key: np.asarray(getattr(value, "array", value)) for key, value in observation.items()}
        states = [(opt.t, opt.epoch, [(p.update_rule.t, p.update_rule.state, p.array, p.grad) for p in opt.target.params()])
                  for opt in updater.get_all_optimizers().values()]
        found.append({"seen": against_eager.Picture().of(
            [reported, updater.iteration, updater.epoch, updater.is_new_epoch, updater.epoch_detail, states])})
    return found


@pytest.mark.parametrize("make", [standard, of_the_model, adversaries, parallel], ids=lambda make: make.__name__)
def test_updaters(make):
    pairs = zip(observed(make, same), observed(make, to_static))
    problems = [f"update {k}: {line}" for k, pair in enumerate(pairs) for line in against_eager.differences(*pair)]
    assert not problems, "\n".join(problems[:8])


@pytest.mark.parametrize("compiled", ["model", "updater"])
def test_trainer(compiled, tmp_path):
    """A training script with its evaluator, a falling rate and snapshots; the second half is resumed from one."""
    def train(compile, out):
        np.random.seed(5)
        results = []
        for epochs in (2, 4):
            model, optimizer = classifier()
            model = compile(model) if compiled == "model" else model
            updater = training.updaters.StandardUpdater(SerialIterator(rows(), 4, shuffle=False), optimizer)
            if compiled == "updater":
                updater.update_core = compile(updater.update_core)
            trainer = training.Trainer(updater, (epochs, "epoch"), out=str(out))
            trainer.extend(extensions.Evaluator(SerialIterator(rows(6), 4, repeat=False, shuffle=False), model))
            trainer.extend(extensions.ExponentialShift("alpha", 0.9), trigger=(1, "iteration"))
            trainer.extend(extensions.LogReport(trigger=(1, "epoch")))
            trainer.extend(extensions.snapshot(filename="snapshot"), trigger=(2, "epoch"))
            if epochs == 4:
                chainer.serializers.load_npz(str(out / "snapshot"), trainer)
            trainer.run()
            log = [{key: value for key, value in entry.items() if key != "elapsed_time"} for entry in trainer.get_extension("LogReport").log]
            results.append((log, [p.array for p in model.params()], optimizer.alpha, optimizer.t))
        return results
    for eager, found in zip(train(same, tmp_path / "eager"), train(to_static, tmp_path / "compiled")):
        assert [entry.keys() for entry in eager[0]] == [entry.keys() for entry in found[0]] and eager[2:] == found[2:]
        for a, b in zip([*eager[1], *[value for entry in eager[0] for value in entry.values()]],
                        [*found[1], *[value for entry in found[0] for value in entry.values()]]):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
