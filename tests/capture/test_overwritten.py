"""Variables that a call stores and overwrites: no FunctionNode ends there, and nobody can tell, also where the call fails."""
import io
from contextlib import redirect_stdout

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array

from dy2static import not_to_static, to_static
from dy2static.errors import CaptureError

STEPS = 3


class Node(chainer.Chain):
    """A link with places to store Variables in, and a function of each step that may fail before or behind a write."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(3, 3, initialW=array(3, 3))
        self.y = self.h = None
        self.log, self.by_name, self.table = [None, None], {}, np.arange(4, dtype="f")
        self.labels = np.array([0, 1, 2], "i")


def fails(self, ids, k, place):
    """A number that is 0, unless the index is outside of the table."""
    return self.table[ids[k, place]] * 0


def attribute(self, x, ids):
    for k in range(STEPS):
        self.y = F.tanh(self.l(x))
        x = x + fails(self, ids, k, 0)
        x = F.sin(self.y) + x + fails(self, ids, k, 1)
        self.h = x
    return F.sum(x)


def item_and_entry(self, x, ids):
    for k in range(STEPS):
        x = self.log[0] = F.tanh(self.l(x))
        self.by_name["y"] = F.exp(x)
        x = x + fails(self, ids, k, 0)
        self.log[1] = self.by_name["y"] * x
        x = F.sin(self.log[1]) + x + fails(self, ids, k, 1)
    return F.sum(x)


def deleted(self, x, ids):
    for k in range(STEPS):
        self.y = F.tanh(self.l(x))
        x = x + fails(self, ids, k, 0)
        x = F.sin(self.y) + x
        del self.y
        x = x + fails(self, ids, k, 1)
    return F.sum(x)


def swapped(self, x, ids):
    self.y, self.h = F.tanh(x), F.sin(self.l(x))
    for k in range(STEPS):
        x = x + fails(self, ids, k, 0)
        self.y, self.h = self.h, F.exp(self.y * 0.1)
        x = x + fails(self, ids, k, 1)
    self.log[0], self.log[1] = self.h, self.y
    self.log[0], self.log[1] = self.log[1], self.log[0]
    self.y = None
    return F.sum(x * self.h)


def listed(self, x, ids):
    self.log = []
    for k in range(STEPS):
        x = F.tanh(self.l(x))
        self.log = self.log[-1:] + [x]
        x = x + fails(self, ids, k, 0)
        x = x + fails(self, ids, k, 1)
    return F.sum(x)


class Inner(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(3, 3, initialW=array(3, 3, seed=2))
        self.h = None

    def forward(self, x):
        self.h = F.sigmoid(self.l(x))
        return self.h * 2


def nested(self, x, ids):
    for k in range(STEPS):
        self.y = self.inner(self.l(x))
        x = x + fails(self, ids, k, 0)
        x = self.y + x + fails(self, ids, k, 1)
    return F.sum(x)


def in_branches(self, x, ids):
    for k in range(STEPS):
        self.y = F.tanh(self.l(x))
        if float(self.y.array[0, 0]) > 0:
            self.h = self.y * 2
        else:
            self.h = self.y * 3
        x = x + fails(self, ids, k, 0)
        x = self.h + x + fails(self, ids, k, 1)
    return F.sum(x)


def before_a_loop(self, x, ids):
    self.y = F.tanh(self.l(x))
    x = x + fails(self, ids, 0, 0)
    self.y = h = F.sin(self.y)
    while float(F.sum(h).array) > 0.5:
        h = h * 0.5
    x = x + fails(self, ids, 1, 0)
    self.y = h + x
    x = self.y + fails(self, ids, 0, 1)
    return F.sum(x)


def leaves(self, x, ids):
    for k in range(STEPS):
        self.y = chainer.Variable(F.tanh(self.l(x)).array)
        x = x + fails(self, ids, k, 0)
        self.h = F.sin(self.y)
        x = x * self.h + fails(self, ids, k, 1)
    return F.sum(x)


def gradient_inside(self, x, ids):
    for k in range(STEPS):
        before, self.y = x, F.tanh(self.l(x))
        x = x + fails(self, ids, k, 0)
        gradient, = chainer.grad([F.sum(self.y ** 2)], [before], enable_double_backprop=True)
        self.h = gradient
        x = x + gradient + fails(self, ids, k, 1)
    return F.sum(x)


def printed(self, x, ids):
    for k in range(STEPS):
        self.y = F.tanh(self.l(x))
        print("step", k, self.y.shape)
        x = x + fails(self, ids, k, 0)
        print(self.y)
        x = self.y + x + fails(self, ids, k, 1)
    return F.sum(x)


def classified(self, x, ids):
    for k in range(STEPS):
        loss = self.classifier(x, self.labels)
        x = x + fails(self, ids, k, 0)
        x = F.sum(F.sin(self.classifier.y)) + x + fails(self, ids, k, 1)
    return loss + F.sum(x)


class Hook(chainer.LinkHook):
    """Keeps what the link that was called last gave."""

    name = "keeps"

    def __init__(self):
        self.out = None

    def forward_postprocess(self, args):
        self.out = args.out


def hooked(self, x, ids):
    for k in range(STEPS):
        x = F.tanh(self.l(x))
        x = x + fails(self, ids, k, 0)
        x = x + fails(self, ids, k, 1)
    return F.sum(x)


PROGRAMS = (attribute, item_and_entry, deleted, swapped, listed, nested, in_branches, before_a_loop, leaves, gradient_inside, printed,
            classified, hooked)


#: Where each call fails: the step and the place in it.  The first two calls are captured.
FAULTS = (None, None, (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), None)


def run(function, compiled, faults=FAULTS, backend="numpy"):
    """What can be seen of a model after each of several calls, and its method."""
    model = Node()
    model.add_link("inner", Inner())
    model.add_link("classifier", L.Classifier(L.Linear(3, 4, initialW=array(4, 3, seed=3))))
    hook = Hook()
    if function is hooked:
        model.l.add_hook(hook)
    model.__class__ = type("Model", (Node,), {"forward": to_static(backend=backend)(function) if compiled else function})
    reporter = chainer.Reporter()
    reporter.add_observer("main", model.classifier)
    found = []
    for step, fault in enumerate(faults):
        ids = np.zeros((STEPS, 2), "i")
        if fault is not None:
            ids[fault] = 9
        x, error, loss = chainer.Variable(array(3, 3, seed=step)), None, None
        observation = {}
        try:
            with redirect_stdout(io.StringIO()) as out, reporter.scope(observation):
                loss = model(x, ids)
        except IndexError as raised:
            error = str(raised)
        reported = {name: (v.array.copy(), v.creator, v.requires_grad) for name, v in observation.items()}
        found.append((error, out.getvalue(), look(model, loss, hook, x), reported))
    return found, type(model).forward


def look(model, loss, hook, x):
    """The Variables that are left, their gradients with respect to each other, and what they keep in a backward."""
    left = {"loss": loss, "y": model.y if hasattr(model, "y") else None, "h": model.h, "inner.h": model.inner.h, "out": hook.out,
            "classifier.y": model.classifier.y, "classifier.loss": model.classifier.loss,
            **{f"log[{i}]": v for i, v in enumerate(model.log)}, **{f"by_name[{k}]": v for k, v in model.by_name.items()}}
    left = {name: v for name, v in left.items() if v is not None}
    parameters = [x, *(p for _, p in sorted(model.namedparams()))]
    found = {name: (v.array.copy(), v.requires_grad, v.requires_grad and v.creator is None) for name, v in left.items()}
    found["same"] = [[a is b for a in left.values()] for b in left.values()]
    for name, variable in left.items():
        if not variable.requires_grad:
            continue
        for other, target in [*left.items(), *enumerate(parameters)]:
            found[name, other] = arrays(chainer.grad([F.sum(variable)], [target], set_grad=False))
    for name, variable in left.items():
        if variable.requires_grad:
            model.cleargrads()
            F.sum(variable).backward(retain_grad=True)
            found[name, "retained"] = arrays([v.grad_var for v in left.values()]), arrays([p.grad_var for p in parameters])
            for v in [*left.values(), x]:
                v.cleargrad()
    for name, cut in left.items():
        cut.unchain_backward()
        for other, variable in left.items():
            if variable.requires_grad:
                found[other, "behind", name] = arrays(chainer.grad([F.sum(variable)], [*left.values(), *parameters]))
    return found


def arrays(gradients):
    return [None if g is None else g.array.copy() for g in gradients]


def check(left, right, path="result"):
    assert type(left) is type(right), (path, left, right)
    if isinstance(left, np.ndarray):
        np.testing.assert_allclose(right, left, rtol=1e-3, atol=1e-4, err_msg=path)
    elif isinstance(left, dict):
        assert list(left) == list(right), path
        for key in left:
            check(left[key], right[key], f"{path}, {key}")
    elif isinstance(left, (list, tuple)):
        assert len(left) == len(right), path
        for i, (a, b) in enumerate(zip(left, right)):
            check(a, b, f"{path}, {i}")
    else:
        assert left == right, path


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_nobody_can_tell(function):
    eager, _ = run(function, False)
    compiled, static = run(function, True)
    check(eager, compiled)
    assert sum(error is not None for error, *_ in eager) == (3 if function is before_a_loop else 6)
    assert static.cache_info().captures and not static.cache_info().fallbacks


@pytest.mark.parametrize("function", [attribute, item_and_entry, classified], ids=lambda function: function.__name__)
def test_as_many_segments_for_any_number_of_steps(function, monkeypatch):
    counts = []
    for steps in (2, 5):
        monkeypatch.setitem(globals(), "STEPS", steps)
        counts.append([program.counts["segments"] for program in run(function, True, (None,))[1].dispatcher.programs])
    assert counts[0] == counts[1] != []


def test_in_native_code():
    check(run(classified, False)[0], run(classified, True, backend="c")[0])


kept = []


@not_to_static
def keep(by_name):
    kept.append(by_name["y"])


def kept_by_the_host(self, x, ids):
    weights, by_name = self.l.W, self.by_name
    for k in range(STEPS):
        by_name["y"] = y = F.tanh(F.linear(x, weights))
        keep(by_name)
        x = F.sin(y)
    return F.sum(x)


def test_what_the_host_can_keep_survives():
    found = []
    for compiled in (False, True):
        del kept[:]
        model, x = Node(), chainer.Variable(array(3, 3))
        model.__class__ = type("Model", (Node,), {"forward": to_static(kept_by_the_host) if compiled else kept_by_the_host})
        loss = model(x, None)
        del kept[:-STEPS]
        found.append([arrays(chainer.grad([F.sum(a)], [b])) for a in [loss, *kept] for b in [*kept, x, model.l.W]])
    assert type(model).forward.cache_info().captures
    check(*found)


class Reporting(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(3, 3, initialW=array(3, 3))

    def forward(self, x):
        for k in range(STEPS):
            x = F.tanh(self.l(x))
            chainer.report({"x": x, "step": k}, self)
            chainer.report({"last": F.sum(x)}, self)
            if k == 1:
                chainer.report({"x": x * 2, "main/last": x})
        return F.sum(x)


class Keeping(chainer.Reporter):
    """A reporter of the user's."""

    def report(self, values, observer=None):
        self.all = [*getattr(self, "all", []), *values.items()]
        super().report(values, observer)


def reports(compiled, kinds):
    model, found = Reporting(), []
    model.__class__ = type("Model", (Reporting,), {"forward": to_static(Reporting.forward)}) if compiled else Reporting
    for kind in kinds:
        reporter = Keeping() if kind == "own" else chainer.Reporter()
        if kind != "unknown":
            reporter.add_observer("main", model)
        x, observation, error = chainer.Variable(array(3, 3)), {}, None
        with chainer.using_config("keep_graph_on_report", kind == "graph"):
            try:
                if kind == "none":
                    model(x)
                else:
                    with reporter.scope(observation):
                        model(x)
            except KeyError as raised:
                error = str(raised)
        values = [*observation.values(), *(value for _, value in getattr(reporter, "all", []))]
        variables = [v for v in values if isinstance(v, chainer.Variable)]
        found.append((error, list(observation), [v.array.copy() if isinstance(v, chainer.Variable) else v for v in values],
                      [arrays(chainer.grad([F.sum(v)], [x, model.l.W, *variables])) for v in variables]))
    return found, model


@pytest.mark.parametrize("kinds", [("none", "plain", "own", "plain", "unknown", "plain"), ("unknown", "plain"), ("own", "plain"),
                                   ("graph", "plain", "graph")], ids="-".join)
def test_reports(kinds):
    eager, compiled = reports(False, kinds), reports(True, kinds)
    check(eager[0], compiled[0])
    assert type(compiled[1]).forward.cache_info().captures


def test_an_observation_that_is_read():
    observation, reporter = {"v": chainer.Variable(array(2))}, chainer.Reporter()

    def function(x):
        chainer.report({"v": F.sum(x)})
        return observation["v"] * 2
    with reporter.scope(observation):
        assert float(to_static(function)(chainer.Variable(np.ones(2, "f"))).array) == 4
        with pytest.raises(CaptureError, match="observation"):
            to_static(function, strict=True)(chainer.Variable(np.ones(2, "f")))
