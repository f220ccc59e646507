"""`StaticUpdater` and ``to_static(updater)``: what a trainer, its extensions and its files see is what they see eagerly."""
import copy
import pickle

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer.training import extensions
from chainer.training.updaters import ParallelUpdater, StandardUpdater
from updaters import MLP, Accumulating, Counting, DCGANUpdater, WGANUpdater, assert_same, examples, gan, standard

from dy2static import CaptureError, FallbackWarning, to_static
from dy2static.training import StaticUpdater

pytestmark = pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")


def steps(updater, models, count):
    """What is reported in each of some steps, and parameters, gradients and counters after them."""
    reporter = chainer.Reporter()
    for name, model in models.items():
        reporter.add_observer(name, model)
        reporter.add_observers(name, model.namedlinks(skipself=True))
    seen = []
    np.random.seed(3)
    for _ in range(count):
        with reporter.scope({}):
            updater.update()
            seen.append({name: np.array(getattr(value, "array", value)) for name, value in reporter.observation.items()})
    return seen, state(updater, models), np.random.rand()


def state(updater, models):
    """All that a step leaves."""
    found = {f"{name}{path}": value for name, model in models.items() for path, param in model.namedparams()
             for path, value in [(path, param.array), (f"{path}.grad", param.grad),
                                 *((f"{path}.{key}", item) for key, item in (param.update_rule.state or {}).items())]}
    for name, optimizer in updater.get_all_optimizers().items():
        found.update({f"{name}.t": optimizer.t, f"{name}.epoch": optimizer.epoch})
    iterator = updater.get_iterator("main")
    return {**found, "at": iterator.current_position, "epoch": updater.epoch, "iteration": updater.iteration}


def compiled(updater, **options):
    """The updater compiled; a warning is an error."""
    return to_static(updater, strict=True, backend="numpy", **options)


def logged(make, tmp_path):
    """What LogReport writes for trainers with an Evaluator and a falling rate: one of an epoch, another resumed from its snapshot."""
    logs = []
    for epochs in (1, 3):
        updater, models = make()
        trainer = chainer.training.Trainer(updater, (epochs, "epoch"), out=str(tmp_path))
        log = extensions.LogReport(trigger=(2, "iteration"))
        data = updater.get_iterator("main").dataset
        trainer.extend(extensions.Evaluator(chainer.iterators.SerialIterator(data, 5, repeat=False, shuffle=False), models["main"]))
        trainer.extend(extensions.ExponentialShift("alpha", 0.9), trigger=(1, "iteration"))
        trainer.extend(extensions.snapshot(filename="snapshot"), trigger=(1, "epoch"))
        trainer.extend(log)
        if logs:
            chainer.serializers.load_npz(str(tmp_path / "snapshot"), trainer)
        trainer.run()
        logs.append([{key: value for key, value in entry.items() if key != "elapsed_time"} for entry in log.log])
        assert updater.get_optimizer("main").epoch == epochs
    return logs, state(updater, models)


def of_the_model(**kwargs):
    """Chainer's updater with a compiled model."""
    updater, models = standard(**kwargs)
    to_static(models["main"])
    return updater, models


def by_method(**kwargs):
    """An updater whose method was replaced by a compiled one."""
    updater, models = standard(**kwargs)
    updater.update_core = to_static(updater.update_core, backend="numpy")
    return updater, models


@pytest.mark.parametrize("make, kwargs", [
    (lambda **kwargs: standard(StaticUpdater, **kwargs), {}), (of_the_model, {}),
    (lambda **kwargs: standard(StaticUpdater, **kwargs), {"device": "@numpy", "loss_scale": 4.0})], ids=["plain", "model", "scaled"])
def test_a_trainer_logs_the_same(tmp_path, make, kwargs):
    (expected, left), (logs, left_compiled) = (logged(lambda: made(**kwargs), tmp_path) for made in (standard, make))
    assert [list(entry) for log in logs for entry in log] == [list(entry) for log in expected for entry in log]
    for one, other in zip(sum(logs, []), sum(expected, [])):
        assert one == pytest.approx(other, rel=1e-4)
    assert_same(left_compiled, left)


@pytest.mark.parametrize("make", [of_the_model, by_method])
def test_ways_to_compile(make):
    updater, models = make()
    assert_same(steps(updater, models, 4), steps(*standard(), 4))
    made = updater.update_core if make is by_method else models["main"].forward
    assert made.stats()["programs"] and not made.stats()["fallbacks"]


class Written(StandardUpdater):
    """A step that is written out: its converter gets the device of the updater, and a normalization has statistics."""

    norm = L.BatchNormalization(6)

    def update_core(self):
        x, t = self.converter(self.get_iterator("main").next(), self.device)
        model = self.get_optimizer("main").target
        loss = model(self.norm(x), t)
        model.cleargrads()
        loss.backward()
        self.get_optimizer("main").update()


@pytest.mark.parametrize("device", [None, "@numpy"])
def test_a_step_that_reads_its_device_is_compiled_but_for_the_line_with_the_data(device):
    expected, found = [], []
    for seen, compile in ((expected, lambda method: method), (found, lambda method: to_static(method, backend="numpy"))):
        Written.norm = L.BatchNormalization(6)
        updater, models = standard(Written, device=device)
        updater.update_core = compile(updater.update_core)
        seen += [steps(updater, models, 6), Written.norm.avg_mean]
    assert_same(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
    assert updater.update_core.stats()["cuts"] == 1 and not updater.update_core.stats()["fallbacks"]


class Paced(Counting):
    """A step that looks at where its updater and its iterator are."""

    def update_core(self):
        self.get_optimizer("main").alpha = 1e-2 * 0.5 ** self.epoch if self.iteration > 1 else 1e-3
        super().update_core()


@pytest.mark.parametrize("make", [standard, lambda: standard(Paced), lambda: gan(DCGANUpdater)], ids=["standard", "paced", "dcgan"])
def test_a_function_that_lets_an_updater_make_its_step_runs_in_parts(make):
    """Python gets the data; the step is compiled, and where the updater and its iterator are is read as it is eagerly."""
    found = []
    for compile in (lambda function: function, lambda function: to_static(function, backend="numpy")):
        updater, models = make()
        reporter, seen = chainer.Reporter(), []
        for name, model in models.items():
            reporter.add_observer(name, model)

        def step():
            with reporter.scope({}):
                updater.update()
                reported = reporter.observation
            return updater.iteration, updater.epoch, updater.epoch_detail, updater.is_new_epoch, updater.previous_epoch_detail, reported
        made = compile(step)
        np.random.seed(3)
        for _ in range(9):
            *at, reported = made()
            seen.append({"at": np.array(at, dtype=float), **{name: np.array(value.array) for name, value in reported.items()}})
        found.append((seen, state(updater, models), np.random.rand()))
    assert_same(found[1], found[0])
    assert made.stats()["parts"] and not made.stats()["fallbacks"]


@pytest.mark.parametrize("strict, make", [
    (True, standard), (True, lambda: standard(auto_new_epoch=False)), (True, lambda: standard(Accumulating)),
    (True, lambda: standard(Counting)), (True, lambda: gan(WGANUpdater)), (True, lambda: gan(DCGANUpdater)),
    (False, lambda: standard(loss_scale=8.0)),
], ids=["standard", "no-epochs", "accumulating", "super", "wgan", "dcgan", "scaled"])
def test_steps_are_those_of_eager(make, strict):
    updater, models = make()
    expected = steps(updater, models, 7)
    updater, models = make()
    again = to_static(updater, strict=strict, backend="numpy")
    assert again is updater and isinstance(again, StaticUpdater)
    assert_same(steps(updater, models, 7), expected)
    assert updater.update_core.stats()["fallbacks"] == 0 or not strict


def test_the_first_capture_of_a_step_has_its_counters_as_inputs():
    updater, models = standard()
    compiled(updater)
    for _ in range(5):
        updater.update()
    info = updater.update_core.cache_info()
    assert (info.captures, info.fallbacks) == (1, 0)


def test_a_schedule_makes_one_further_program():
    updater, models = standard()
    compiled(updater)
    extension = extensions.ExponentialShift("alpha", 0.9)
    trainer = chainer.training.Trainer(updater, (12, "iteration"))
    extension.initialize(trainer)
    for _ in range(12):
        updater.update()
        extension(trainer)
    info = updater.update_core.cache_info()
    assert (info.captures, info.fallbacks) == (2, 0)


def _as_dict(batch, device):
    x, t = chainer.dataset.concat_examples(batch, device)
    return {"x": x * 2, "t": t}


def _alone(batch, device):
    return chainer.dataset.concat_examples(batch, device)[0]


@pytest.mark.parametrize("converter", [_as_dict, _alone])
def test_converters_and_loss_functions(converter):
    runs = []
    for compile_ in (lambda updater: updater, compiled):
        updater, models = standard(converter=converter, loss_func=lambda *args, **kwargs: loss(model, *args, **kwargs))
        model = models["main"].predictor
        runs.append(steps(compile_(updater), {"main": model}, 4))
    assert_same(*runs[::-1])
    assert updater.update_core.stats()["fallbacks"] == 0


def loss(model, x, t=None):
    y = model(x)
    return F.sum(y * y) if t is None else F.softmax_cross_entropy(y, t)


@pytest.mark.parametrize("first", [True, False], ids=["compiled-first", "eager-first"])
def test_a_snapshot_is_resumed(first, tmp_path):
    updater, models = standard()
    steps(updater, models, 3)
    expected = steps(updater, models, 3)
    updater, models = standard()
    steps(compiled(updater) if first else updater, models, 3)
    chainer.serializers.save_npz(tmp_path / "snapshot.npz", updater)
    updater, models = standard()
    chainer.serializers.load_npz(tmp_path / "snapshot.npz", updater)
    assert_same(steps(updater if first else compiled(updater), models, 3), expected)


def test_a_failing_step_leaves_what_eager_leaves():
    left = []
    for compile_ in (lambda updater: updater, compiled):
        np.random.seed(1)
        updater, models = standard(dataset=_Broken(examples(10)))
        compile_(updater)
        steps(updater, models, 1)
        with pytest.raises(ValueError, match="broken example"):
            for _ in range(4):
                updater.update()
        left.append(state(updater, models))
    assert_same(left[1], left[0])


class _Broken(chainer.dataset.DatasetMixin):
    def __init__(self, data):
        self.data, self.asked = data, 0

    def __len__(self):
        return len(self.data)

    def get_example(self, i):
        self.asked += 1
        if self.asked > 17:
            raise ValueError("broken example")
        return self.data[i]


def test_a_subclass_compiles_its_own_step():
    class Own(StaticUpdater):
        def update_core(self):
            x, t = self.converter(self.get_iterator("main").next(), self.device)
            loss = self.get_optimizer("main").target(x, t)
            self.get_optimizer("main").target.cleargrads()
            loss.backward()
            self.get_optimizer("main").update()

    expected = steps(*standard(), 4)
    updater, models = standard(Own)
    assert_same(steps(updater, models, 4), expected)
    stats = updater.update_core.stats()
    assert (stats["parts"], stats["cuts"], stats["fallbacks"]) == (1, 0, 0)


def test_a_line_of_a_step_that_cannot_be_compiled():
    class Odd(StandardUpdater):
        def update_core(self):
            x, t = self.converter(self.get_iterator("main").next(), self.device)
            model, optimizer = self.get_optimizer("main").target, self.get_optimizer("main")
            loss = model(x, t)
            model.cleargrads()
            loss.backward()
            optimizer.update()
            self.last = "abc"[int(loss.array * 8) % 32:]

    with pytest.raises(CaptureError, match="cannot be compiled"):
        compiled(standard(Odd)[0]).update()
    expected = steps(*standard(), 3)
    updater, models = standard(Odd)
    with pytest.warns(FallbackWarning, match="self.last") as warned:
        assert_same(steps(to_static(updater), models, 3), expected)
    assert len(warned) == 1


def test_copies_and_pickles_stay_compiled():
    updater, models = standard()
    compiled(updater)
    for again in (copy.deepcopy(updater), pickle.loads(pickle.dumps(updater))):
        assert isinstance(again, StaticUpdater)
        again.update()
        assert again.update_core.stats()["programs"] == 1
    assert to_static(updater) is updater and updater.iteration == 0


def test_parallel_updater_with_a_compiled_model():
    runs = []
    for compile_ in (lambda model: model, to_static):
        np.random.seed(0)
        model = compile_(chainer.links.Classifier(MLP()))
        optimizer = chainer.optimizers.MomentumSGD().setup(model)
        iterator = chainer.iterators.SerialIterator(examples(), 6)
        updater = ParallelUpdater(iterator, optimizer, devices={"main": "@numpy", "second": "@numpy"})
        runs.append(steps(updater, {"main": model, "second": updater._models["second"]}, 4))
    assert_same(*runs[::-1])
    assert type(updater._models["second"]).forward.cache_info().programs > 0


def test_a_step_of_many_ways_is_not_taken_for_an_update_rule():
    """An updater's ``update_core`` has the name of a rule's, whose calls are captured by themselves."""
    model, seen = L.Linear(2, 2), {}

    @to_static(backend="numpy")
    def update_core(x):
        for i in range(4):
            if x[i, 0] > 0.5:
                seen[i] = i
        model.cleargrads()
        F.sum(F.tanh(model(x))).backward()

    with pytest.warns(FallbackWarning, match=r"if x\[i, 0\] > 0.5") as warned:
        update_core(np.eye(4, 2, dtype="f"))
    assert len(warned) == 1 and seen == {0: 0} and model.W.grad is not None
