"""Callable objects of libraries that are made in compiled functions: each call makes its own, and those that keep state run as Python."""
import functools
import types

import chainer
import chainer.links as L
import numpy as np
import pytest
from chainer.initializers import Constant
from chainer.optimizer_hooks import WeightDecay
from chainer.serializers import DictionarySerializer
from chainer.training.triggers import IntervalTrigger

from dy2static import not_to_static, to_static


def outside(x, box):
    kept = DictionarySerializer()
    kept.save(box.link)
    return box.link(x), sorted(kept.target), len(kept.target)


def into_a_table(x, box):
    DictionarySerializer(box.table).save(box.link)
    return box.link(x), len(box.table)


def asked(x, box):
    box.updater.iteration += 1
    return x * 2, IntervalTrigger(2, "iteration")(box)


def stored(x, box):
    before = box.kept
    box.kept = WeightDecay(0.5)
    return x * box.kept.rate, before is box.kept, before is not None and before.rate


def returned(x, box):
    made = Constant(2)
    box.kept = made
    return x * 2, made, [made]


def kept_by_a_parameter(x, box):
    if box.count % 2 == 0:
        box.made = L.Linear(None, 2, initialW=Constant(0.5))
    box.count += 1
    return box.made(x)


def shared_by_two_parameters(x, box):
    init = Constant(0.5)
    box.made, other = L.Linear(None, 2, initialW=init), L.Linear(None, 2, initialW=init)
    return box.made(x) + other(x), box.made.W.initializer is other.W.initializer, [init.fill_value]


@not_to_static
def change(hook):
    hook.rate += 1


def changed_on_the_host(x, box):
    hook = WeightDecay(0.5)
    change(hook)
    return x * hook.rate


@not_to_static
def keep(box, item):
    box.kept = item


def holds_a_list(x, box):
    keep(box, functools.partial(max, [3], default=[4]))
    return x * 2


def make_box():
    return types.SimpleNamespace(link=L.Linear(3, 2, initialW=0.5), table={}, updater=types.SimpleNamespace(iteration=0), kept=None,
                                 count=0, made=None)


def series(function, box):
    """What five calls give, where the caller changes what they have made in between."""
    found = []
    for i in range(5):
        result = function(chainer.Variable(np.full((2, 3), i, "f")), box)
        first, rest = (result[0], result[1:]) if isinstance(result, tuple) else (result, ())
        found.append((first.array.tolist(), [item for item in rest if isinstance(item, (int, float, list)) and item and item != [box.kept]]))
        made = [box.kept, box.made and box.made.W.initializer]
        found.append([(vars(item) if hasattr(item, "__dict__") else None) and sorted(map(repr, vars(item).items())) for item in made])
        found.append(rest[-1][0] is rest[0] is box.kept if rest and isinstance(rest[-1], list) and isinstance(rest[0], Constant) else None)
        for item in made:
            for name in ("rate", "fill_value"):
                if hasattr(item, name):
                    setattr(item, name, 10 + i)
            if isinstance(item, functools.partial):
                found.append(repr(item.args))
                item.args[0].append(i)
    return found


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("function", (outside, into_a_table, asked, stored, returned, kept_by_a_parameter, shared_by_two_parameters,
                                      changed_on_the_host, holds_a_list),
                         ids=lambda f: f.__name__)
def test_each_call_has_its_own(function):
    assert series(to_static(function, backend="numpy"), make_box()) == series(function, make_box())


def test_what_the_caller_has_stays_the_object():
    """Beside what is made inside."""
    init = Constant(2)

    def function(x, given):
        return x * 2, init, given, Constant(3)

    compiled, given = to_static(function, strict=True), WeightDecay(0.1)
    results = [compiled(chainer.Variable(np.ones(3, "f")), given) for _ in range(3)]
    assert all(result[1] is init and result[2] is given for result in results)
    assert len({id(result[3]) for result in results}) == 3
