"""What `CompileReport` tells a trainer."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer.training import extensions

import dy2static
from dy2static import to_static
from dy2static.errors import FallbackWarning


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


def observations(model, *reports):
    """What is observed in each of four iterations."""
    data = chainer.datasets.TupleDataset(np.ones((4, 3), "f"), np.zeros(4, "i"))
    optimizer = chainer.optimizers.SGD().setup(model)
    updater = chainer.training.StandardUpdater(chainer.iterators.SerialIterator(data, 2, shuffle=False), optimizer)
    trainer = chainer.training.Trainer(updater, (2, "epoch"))
    found = []

    @chainer.training.make_extension(trigger=(1, "iteration"), priority=extensions.snapshot().priority - 300)
    def look(trainer):
        found.append({name: value for name, value in trainer.observation.items() if "/" in name and "main" not in name})

    for report in (*reports, look):
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
