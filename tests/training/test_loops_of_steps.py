"""Many steps of training in one call are a loop of the program, and leave what they leave eagerly, to the last bit."""
import chainer
import chainer.functions as F
import many_steps
import numpy as np
import pytest
from chainer import optimizers
from many_steps import MLP, batches, trained

from dy2static import to_static

CLIPPED = [chainer.optimizer_hooks.WeightDecay(0.01), chainer.optimizer_hooks.GradientClipping(0.1)]


def by_rows(compile, kind=optimizers.Adam, hooks=()):
    """The batches and labels in arrays; the sum of the losses."""
    model, optimizer = trained(kind, hooks)

    @compile
    def epoch(xs, ts):
        total = 0.0
        for x, t in zip(xs, ts):
            loss = F.softmax_cross_entropy(model(x), t)
            model.cleargrads()
            loss.backward()
            optimizer.update()
            total += float(loss.array)
        return total
    return epoch, [optimizer]


def by_numbers(compile):
    """A loss function that mentions the number of the batch, and draws; a rate that falls."""
    model, optimizer = trained(optimizers.MomentumSGD)

    @compile
    def epoch(xs, ts):
        for i in range(len(xs)):
            optimizer.update(lambda: F.softmax_cross_entropy(model(F.dropout(xs[i], 0.2)), ts[i]))
            optimizer.lr *= 0.99
        optimizer.new_epoch()
    return epoch, [optimizer]


def by_slices(compile):
    """Every fourth row is the first of a batch; the last batch is smaller."""
    model, optimizer = trained(optimizers.RMSprop)

    @compile
    def epoch(xs, ts):
        x, t, losses = xs.reshape(-1, 3)[:-1], ts.reshape(-1)[:-1], []
        for i in range(0, len(x), 4):
            loss = F.softmax_cross_entropy(model(x[i:i + 4]), t[i:i + 4])
            model.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(float(loss.array))
        return np.mean(losses)
    return epoch, [optimizer]


def shuffled(compile):
    """In an order that is drawn."""
    model, optimizer = trained(optimizers.SGD)

    @compile
    def epoch(xs, ts):
        x, t = xs.reshape(-1, 3), ts.reshape(-1)
        order = np.random.permutation(len(x))
        for i in range(0, len(x), 4):
            chosen = order[i:i + 4]
            loss = F.softmax_cross_entropy(model(x[chosen]), t[chosen])
            model.cleargrads()
            loss.backward()
            optimizer.update()
        return loss
    return epoch, [optimizer]


def learner_inside(compile):
    """A copy is trained, and the model moves towards it."""
    model, optimizer = trained(optimizers.SGD)
    learner = MLP()
    inner = optimizers.Adam().setup(learner)

    @compile
    def step(xs, ts):
        for p, q in zip(learner.params(), model.params()):
            p.array[...] = q.array
        for i, x in enumerate(xs):
            inner.update(lambda: F.softmax_cross_entropy(learner(x), ts[i]))
        for p, q in zip(model.params(), learner.params()):
            p.array[...] += 0.5 * (q.array - p.array)
    return step, [inner]


def observed(compile, model, between=lambda: None):
    """What a reporter has of an epoch: names in order, kinds of values, values."""
    optimizer, reporter = optimizers.Adam().setup(model), chainer.Reporter()
    reporter.add_observer("main", model)

    @compile
    def epoch(xs, ts):
        for x, t in zip(xs, ts):
            optimizer.update(model, x, t)
            between()
            chainer.report({"step": optimizer.t, "loss": float(model.loss.array)})

    def call(xs, ts):
        found = {}
        with reporter.scope(found):
            epoch(xs, ts)
        return repr([(name, type(v).__name__, getattr(v, "requires_grad", None), getattr(v, "creator", None), getattr(v, "array", v))
                     for name, v in found.items()])
    call.stats = lambda: epoch.stats()
    return call, [optimizer]


def classifier(compile):
    """The link reports loss and accuracy, and keeps them; the step reports numbers."""
    return observed(compile, chainer.links.Classifier(MLP()))


def scaled(compile):
    """Dynamic loss scaling, with a batch whose gradients are not finite."""
    model, optimizer = trained(lambda: optimizers.MomentumSGD(0.05))
    optimizer.loss_scaling(1)

    @compile
    def epoch(xs, ts):
        for i in range(len(xs)):
            optimizer.update(lambda: F.softmax_cross_entropy(model(xs[i]), ts[i]))
    return epoch, [optimizer]


KINDS = (optimizers.NesterovAG, optimizers.AdaDelta, optimizers.SMORMS3, optimizers.RMSpropGraves, optimizers.AdaGrad, optimizers.AdamW,
         optimizers.AMSGrad)
PROGRAMS = {"adam": by_rows, "clipped": lambda compile: by_rows(compile, optimizers.SGD, CLIPPED), "numbers": by_numbers,
            "slices": by_slices, "shuffled": shuffled, "learner": learner_inside, "classifier": classifier,
            **{kind.__name__: lambda compile, kind=kind: by_rows(compile, kind) for kind in KINDS}}


def state(optimizer):
    """What a step may change: of the optimizer, the rules and the parameters."""
    found = {"t": optimizer.t, "epoch": optimizer.epoch, **{name: x for name, x in optimizer.hyperparam.get_dict().items()}}
    for name, p in optimizer.target.namedparams():
        rule = p.update_rule
        found.update({name: p.array.copy(), name + " grad": None if p.grad is None else p.grad.copy(), name + " t": rule.t})
        found.update({f"{name} {key}": np.array(x) for key, x in (rule.state or {}).items()})
    return found


def ran(make, compile, calls):
    """What each call gave or raised, what it left, and the next number that would be drawn."""
    np.random.seed(0)
    function, watched = make(compile)
    seen = []
    for number, (xs, ts) in enumerate(calls):
        np.random.seed(number)
        try:
            result = function(xs, ts)
        except IndexError as error:
            result = type(error)
        seen.append((getattr(result, "array", result), [state(optimizer) for optimizer in watched], np.random.rand()))
    return function, seen


def same(want, got, backend):
    assert len(want) == len(got)
    for (result, states, drawn), (result_2, states_2, drawn_2) in zip(want, got):
        assert drawn == drawn_2 and type(result) is type(result_2)
        for x, y in [(result, result_2), *((a[key], b[key]) for a, b in zip(states, states_2) for key in {**a, **b})]:
            if backend == "numpy" or not isinstance(x, (np.ndarray, np.generic, float)):
                np.testing.assert_array_equal(x, y)
            else:
                np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


def loops_in(function):
    return function.stats()["regions"]


CASES = [(name, "numpy") for name in PROGRAMS] + [("adam", "c"), ("shuffled", "c")]


@pytest.mark.parametrize("name, backend", CASES)
def test_steps_become_a_loop(name, backend):
    calls = [batches(count, seed)() for seed, count in enumerate((9, 9, 9, 9, 12))]
    compiled, got = ran(PROGRAMS[name], lambda f: to_static(f, backend=backend), calls)
    same(ran(PROGRAMS[name], lambda f: f, calls)[1], got, backend)
    assert loops_in(compiled) and not compiled.stats()["fallbacks"] and not compiled.stats()["cuts"]


def test_graph_does_not_grow():
    sizes = []
    for count in (8, 40):
        compiled, _ = ran(by_rows, lambda f: to_static(f, backend="numpy"), [batches(count)()])
        sizes.append(len(compiled.graph.nodes))
    assert sizes[0] == sizes[1]


def test_a_bad_label_in_the_middle():
    """The steps before it have happened, and nothing else."""
    xs, ts = batches(9)()
    bad = ts.copy()
    bad[5, 2] = 7
    calls = [(xs, ts), (xs, ts), (xs, bad), (xs, ts)]
    compiled, got = ran(by_rows, lambda f: to_static(f, backend="numpy"), calls)
    same(ran(by_rows, lambda f: f, calls)[1], got, "numpy")
    assert got[2][0] is IndexError and loops_in(compiled)


def shown(compile):
    """What is printed in an iteration could look at what was reported before."""
    return observed(compile, chainer.links.Classifier(MLP()), lambda: print(end=""))


def written_later(compile):
    """A capture that stops because of the loop is tried again with all iterations written out."""
    model, optimizer = trained(optimizers.SGD)

    @compile
    def step(xs, ts):
        hidden = F.tanh(model.l1(xs[0]))
        for x, t in zip(xs, ts):
            loss = F.softmax_cross_entropy(model(x), t)
            model.l2.cleargrads()
            loss.backward()
            model.l2.W.array -= 0.1 * model.l2.W.grad
        model.cleargrads()
        F.sum(model.l2(hidden)).backward()
        optimizer.update()
    return step, [optimizer]


@pytest.mark.parametrize("make", [written_later, shown, scaled, lambda compile: by_rows(compile, optimizers.MSVAG)],
                         ids=["written_later", "shown", "scaled", "MSVAG"])
def test_steps_that_do_not_fit(make):
    calls = [batches(8, seed)() for seed in range(3)]
    _, got = ran(make, lambda f: to_static(f, backend="numpy"), calls)
    same(ran(make, lambda f: f, calls)[1], got, "numpy")


def test_few_steps_are_written_out():
    compiled, got = ran(by_rows, lambda f: to_static(f, backend="numpy"), [many_steps.batches(4)()])
    assert not loops_in(compiled)
