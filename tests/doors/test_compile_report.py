"""What `CompileReport` tells a trainer."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer.training import extensions

import dy2static
from dy2static import config, to_static
from dy2static.errors import FallbackWarning, SignatureError


class Model(chainer.Chain):
    def __init__(self, refused=False):
        super().__init__()
        self.refused = refused
        with self.init_scope():
            self.l = L.Linear(3, 2)

    @to_static
    def forward(self, x, t):
        if self.refused:
            x.ctypes.shape[0]
        loss = F.softmax_cross_entropy(self.l(x), t)
        chainer.report({"loss": loss}, self)
        return loss


def observations(model, *reports, failing=False):
    """What is observed in each of four iterations."""
    data = chainer.datasets.TupleDataset(np.ones((4, 3), "f"), np.zeros(4, "i"))
    optimizer = chainer.optimizers.SGD().setup(model)
    updater = chainer.training.StandardUpdater(chainer.iterators.SerialIterator(data, 2, shuffle=False), optimizer)
    trainer = chainer.training.Trainer(updater, (2, "epoch"))
    found = []

    @chainer.training.make_extension(trigger=(1, "iteration"), priority=extensions.snapshot().priority - 300)
    def look(trainer):
        found.append({name: value for name, value in trainer.observation.items() if "/" in name and "main" not in name})

    @chainer.training.make_extension(trigger=(2, "iteration"))
    def fail(trainer):
        raise KeyError("in the second iteration")

    for report in (*reports, look, *([fail] if failing else [])):
        trainer.extend(report)
    trainer.run()
    return found


def test_captures_and_programs():
    model = Model()
    found = observations(model, dy2static.extensions.CompileReport(model.forward))
    assert [each["compile/captures"] for each in found] == [1, 0, 0, 0]
    assert [each["compile/programs"] for each in found] == [1] * 4
    assert not any(each["compile/fallbacks"] or each["compile/cuts"] for each in found)


def test_calls_that_run_eagerly_and_all_functions():
    with pytest.warns(FallbackWarning):
        found = observations(Model(refused=True), dy2static.extensions.CompileReport(prefix="c/"))
    assert sum(each["c/fallbacks"] + each["c/cuts"] for each in found) > 0


def test_time_that_is_saved(monkeypatch):
    """By a clock of ours: eager updates take 5, 3 and 4 seconds, the compiled one 1."""
    model, now, taken = Model(), [0.0], iter([5, 3, 4, 1])

    def update(updater):
        now[0] += next(taken)
        right(updater)
    right = chainer.training.StandardUpdater.update
    monkeypatch.setattr(chainer.training.StandardUpdater, "update", update)
    monkeypatch.setattr(dy2static.extensions.time, "perf_counter", lambda: now[0])
    Model.forward.clear_cache()
    report = dy2static.extensions.CompileReport(model.forward, eager_iterations=3)
    found = observations(model, report)
    assert [each.get("compile/saved") for each in found] == [None, None, None, 3.0] and report.saved_seconds == 3.0
    assert [each["compile/captures"] for each in found] == [0, 0, 0, 1]
    assert config.ENABLED.value


def test_compilation_is_on_again_after_an_error(capsys):
    updates = []
    report = dy2static.extensions.CompileReport(eager_iterations=9)
    with pytest.raises(KeyError):
        observations(Model(), report, lambda trainer: updates.append(trainer.updater), failing=True)
    assert config.ENABLED.value and "update" not in vars(updates[0])


def test_nothing_is_timed_where_nothing_is_compiled():
    with config.ENABLED.set(0):
        found = observations(Model(), dy2static.extensions.CompileReport(eager_iterations=1))
        assert not config.ENABLED.value
    assert not any("compile/saved" in each for each in found)
    with pytest.raises(SignatureError, match="number of iterations"):
        dy2static.extensions.CompileReport(eager_iterations=-1)
