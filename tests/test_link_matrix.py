"""Every public entry of ``chainer.links``, compiled and compared with eager: values, gradients, state, an optimizer's steps."""
import copy

import chainer
import numpy as np
import pytest
from against_eager import differences, observe
from link_rows import ENTRIES, ROWS, WITHOUT

from dy2static import to_static

pytestmark = pytest.mark.filterwarnings("ignore")
_CALLS = 5


def arguments(row, seed):
    given = row.call(seed)
    return given if len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict) else (given, {})


def train(row, link, function, calls=_CALLS):
    """What can be seen of a link that is called, differentiated and updated again and again; the last but one in test mode."""
    optimizer = chainer.optimizers.MomentumSGD(0.01).setup(link)
    link.cleargrads()                                       # of a Parameter that was made with an array they are NaN
    found = []
    for seed in range(calls):
        args, kwargs = arguments(row, seed)
        np.random.seed(seed)
        with chainer.using_config("train", seed != calls - 2):
            found.append(observe(function, args, kwargs, [link])[0])
        if all(p.array is not None for p in link.params()):
            optimizer.update()
        link.cleargrads()
    return found


def compiled_and_eager(row):
    """Two links that are alike and their functions: compiled, and not."""
    np.random.seed(0)
    eager = row.make()
    compiled = copy.deepcopy(eager)
    if row.apply is None:
        return (to_static(compiled, strict=row.eager is None), None), (eager, eager)
    static = to_static(row.apply, strict=row.eager is None)
    return (compiled, lambda *args: static(compiled, *args)), (eager, lambda *args: row.apply(eager, *args)), static


def static_of(link):
    """The compiled method of a link."""
    return next(cls.__dict__[name] for cls in type(link).__mro__ for name in ("__call__", "forward") if name in cls.__dict__
                and hasattr(cls.__dict__[name], "stats"))


@pytest.mark.parametrize("name", ROWS)
def test_row(name):
    row = ROWS[name]
    (compiled, function), (eager, plain), *rest = compiled_and_eager(row)
    calls = 2 if name == "GoogLeNet" else _CALLS
    expected = train(row, eager, plain, calls)
    actual = train(row, compiled, function or compiled, calls)
    problems = [f"call {k}: {line}" for k, pair in enumerate(zip(expected, actual)) for line in differences(*pair)]
    assert not problems, "\n".join(text[:400] for text in problems[:6])
    info = (rest[0] if rest else static_of(compiled)).cache_info()
    assert (info.captures == 0 < info.fallbacks) if row.eager else (info.fallbacks == 0 < info.captures), info


def test_every_entry_has_a_row():
    """The list of entries is Chainer's own."""
    assert len(ENTRIES) > 60
    rows = {name.split()[0] for name in ROWS}
    assert sorted(set(ENTRIES) - rows - set(WITHOUT)) == []
    assert not rows & set(WITHOUT)
