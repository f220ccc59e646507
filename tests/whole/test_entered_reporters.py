"""Reporters and scopes that a compiled function enters itself, and summaries of what was reported: as in eager mode."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array
from chainer import reporter

from dy2static import not_to_static, to_static

X, Y = array(6, 4), np.arange(6, dtype=np.int32) % 3


def shown(item):
    """What an object holds, to compare; floats to four digits."""
    if isinstance(item, chainer.Variable):
        return "Variable", shown(item.array), shown(item.grad), item.requires_grad
    if isinstance(item, (np.ndarray, np.generic)):
        return type(item).__name__, item.dtype, shown(item.tolist())
    if isinstance(item, dict):
        return [(key, shown(value)) for key, value in item.items()]
    if isinstance(item, (list, tuple)):
        return [shown(each) for each in item]
    if isinstance(item, float):
        return f"{item:.3e}"
    return shown(vars(item)) if isinstance(item, (reporter.Summary, reporter.DictSummary)) else item


def fails_inside():
    """What is reported before a failure stays, and the reporter has its own observation again."""
    made = chainer.Reporter()
    made.observation, seen = {"own": 1}, {}

    def step(i):
        with made.scope(seen):
            chainer.report({"before": F.sum(X * i)})
            rows = X[np.array([i, 3 + i])]
            chainer.report({"behind": F.sum(rows)})
        return rows
    return step, lambda: (made.observation, seen)


def nested():
    made, other, outer, inner = chainer.Reporter(), chainer.Reporter(), {}, {}

    def step(i):
        with made.scope(outer):
            chainer.report({"outer": F.sum(F.relu(X))})
            with other.scope(inner), made:
                chainer.report({"again": F.sum(X) * i})
            with chainer.reporter.report_scope(inner):
                chainer.report({"inner": F.mean(X) * i})
            names = list(made.observation)
            made.report({"direct": 1.5 * i})
        return names, list(made.observation)
    return step, lambda: (outer, inner, made.observation, other.observation)


def with_names():
    """The reporter learns of an observer later, and under another name."""
    made, model = chainer.Reporter(), L.Linear(4, 3, initialW=0.5)

    def step(i):
        if i in (1, 3):
            made.add_observer(f"at{i}", model)
        seen = {}
        with made.scope(seen), chainer.using_config("keep_graph_on_report", i % 2 == 0):
            loss = F.sum(model(X) ** 2)
            chainer.report({"loss": loss, "number": i}, model)
        model.cleargrads()
        loss.backward()
        return seen, [value is loss for value in seen.values()], model.W.grad
    return step, lambda: made.observation


def evaluates():
    """An evaluation as it is written by hand, with a reporter and a summary of its own."""
    model = L.Classifier(L.Linear(4, 3, initialW=0.5))

    def step(i):
        made, summary = chainer.Reporter(), reporter.DictSummary()
        made.add_observer("main", model)
        made.add_observers("main", model.namedlinks(skipself=True))
        for start in (0, 3):
            seen = {}
            with made.scope(seen), chainer.no_backprop_mode():
                model(X[start:start + 3] * i, Y[start:start + 3])
            summary.add(seen)
        return summary.compute_mean(), summary.make_statistics()
    return step, lambda: None


def summarizes():
    """A summary that is a new one after some steps."""
    held = {"summary": reporter.DictSummary(), "n": 0}

    def step(i):
        loss = F.sum(F.relu(X * i))
        held["summary"].add({"loss": loss, "number": float(i), "weighted": (F.mean(X), 2), "left out": X})
        held["n"] += 1
        if held["n"] < 3:
            return None
        means = held["summary"].compute_mean()
        held.update(summary=reporter.DictSummary(), n=0)
        return means
    return step, lambda: held


@not_to_static
def looks():
    chainer.report({"host": 1.0})
    return len(chainer.reporter._get_reporters())


def calls_the_host():
    """Code that is not compiled finds the reporter, and where to store."""
    made = chainer.Reporter()

    def step(i):
        seen = {}
        with made.scope(seen):
            chainer.report({"loss": F.sum(F.relu(X)) * i})
            depth = looks()
        return seen, depth
    return step, lambda: made.observation


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("make, captures", [(fails_inside, 2), (nested, 3), (with_names, 5), (evaluates, 2), (summarizes, 5),
                                            (calls_the_host, 0)], ids=lambda given: getattr(given, "__name__", ""))
def test_reporters_that_are_entered_inside(make, captures, backend):
    found = []
    for compile in (lambda function: function, lambda function: to_static(function, backend=backend)):
        step, left = make()
        made, seen = compile(step), []
        for i in range(8):
            try:
                result = made(i)
            except (KeyError, IndexError) as error:
                result = type(error)
            seen.append((shown(result), shown(left()), len(reporter._get_reporters())))
        found.append(seen)
    assert found[1] == found[0]
    assert made.cache_info().captures <= captures and bool(captures) is not bool(made.stats()["cuts"] + made.stats()["fallbacks"])
