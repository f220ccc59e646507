"""``chainer.config`` and what stands around a call: entries, changed between calls and inside, decide what eager does."""
import argparse
import contextlib

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import check, variable
from chainer import config, global_config
from chainer.backends import intel64

from dy2static import not_to_static, to_static
from dy2static.errors import FallbackWarning

ENTRIES = [
    {}, {"train": False}, {}, {"enable_backprop": False}, {"dtype": np.dtype("float16")}, {"dtype": chainer.mixed16},
    {"dtype": np.float64}, {"use_ideep": "auto"}, {"lazy_grad_sum": True}, {"in_recomputing": True}, {"type_check": False},
    {"debug": True}, {"keep_graph_on_report": True}, {"mine": 3}, {"mine": [1, 2]}, {"mine": np.arange(3)},
]


class Normalised(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.bn = L.BatchNormalization(4)

    def forward(self, x):
        return F.relu(self.bn(x))


def mode(x):
    if chainer.config.train:
        return x * 2, F.dropout(x, 0.5) if not chainer.is_debug() else x
    return x * 3, chainer.config.enable_backprop, chainer.is_debug()


def dtype(x):
    return x * 2, chainer.get_dtype(None), chainer.config.dtype


def nan_in_forward(x):
    return F.log(x - 5) * 2


def nan_in_backward(x):
    return F.sqrt(F.relu(x) * 0) * 2


def debug_inside(x):
    with chainer.using_config("debug", True):
        return F.log(x - 5)


@not_to_static
def on_the_host(x):
    print(x.shape, chainer.config.train, getattr(chainer.config, "mine", None), chainer.config.enable_backprop)


def host_calls_inside(x):
    with chainer.using_config("train", False), chainer.using_config("mine", 7), chainer.no_backprop_mode():
        on_the_host(x)
        y = x * 2
    on_the_host(x)
    return y


def wrong_type(x):
    return F.matmul(x, x)


def type_check_inside(x):
    with chainer.using_config("type_check", False):
        return F.reshape(x, (4, 3)) + 1


def inside(x):
    with chainer.using_config("train", False):
        y = F.dropout(x, 0.9) + x
    with chainer.no_backprop_mode():
        z = F.exp(y)
    with chainer.using_config("train", not chainer.config.train):
        return y, z, F.tanh(y), z * y, chainer.config.train


def forced(x):
    with chainer.no_backprop_mode():
        y = F.exp(x)
        with chainer.force_backprop_mode():
            z = F.tanh(x) * y
        return y, z, z * 2


def lazy_inside(x):
    with chainer.using_config("lazy_grad_sum", True):
        return x + x * x + x


def own_entry(x):
    return x * float(np.sum(getattr(chainer.config, "mine", 1)))


def own_entry_inside(x):
    with chainer.using_config("mine", [5, 6]):
        y = x * chainer.config.mine[1]
    with chainer.using_config("mine", x.array.max()):
        y = y * chainer.config.mine
    return y, hasattr(chainer.config, "mine")


def recomputed(x):
    return F.forget(lambda a: F.exp(a) * a, x)


PROGRAMS = [mode, dtype, nan_in_forward, nan_in_backward, debug_inside, host_calls_inside, wrong_type, type_check_inside, inside, forced,
            lazy_inside, own_entry, own_entry_inside, recomputed, Normalised]


@pytest.mark.parametrize("body", PROGRAMS, ids=lambda body: body.__name__)
def test_around_the_call(body):
    """Entries are set around each call, of which some share programs and some must not."""
    def make(compile):
        roots = body() if isinstance(body, type) else None
        function = compile(body if roots is None else roots)

        def within(entries, x):
            with contextlib.ExitStack() as stack:
                for name, value in entries.items():
                    stack.enter_context(chainer.using_config(name, value))
                return function(x)
        return within, [roots]
    with np.errstate(all="ignore"):
        check(make, [lambda entries=entries: (entries, variable(3, 4)) for entries in ENTRIES])


def set_local(value):
    return lambda: setattr(chainer.config, "mine", value())


def set_global(value):
    return lambda: setattr(chainer.global_config, "mine", value())


def nothing():
    """No change."""


#: What is read, the changes before each call, and how many captures these take.
CHANGES = {
    "a list that grows": (lambda x: x * sum(chainer.config.mine),
                          [set_local(lambda: [1, 2]), nothing, lambda: chainer.config.mine.append(3), nothing], 2),
    "a number": (lambda x: x * chainer.config.mine, [set_local(lambda i=i: i / 2) for i in range(6)], 2),
    "a global number": (lambda x: x * chainer.config.mine, [set_global(lambda i=i: i / 2) for i in range(6)], 2),
    "a global number, read there": (lambda x: x * chainer.global_config.mine, [set_global(lambda i=i: i / 2) for i in range(6)], 2),
    "through names of the user's": (lambda x: x * config.mine * global_config.mine if config.train else x,
                                    [set_global(lambda i=i: i / 2) for i in range(6)], 2),
    "local before global": (lambda x: x * getattr(chainer.config, "mine", 7),
                            [nothing, set_global(lambda: 3), set_local(lambda: 4), lambda: delattr(chainer.config, "mine"),
                             set_global(lambda: 4), nothing], None),
    "an array": (lambda x: x * chainer.config.mine, [set_local(lambda i=i: np.full(4, i, "f")) for i in range(4)], 1),
    "not read": (lambda x: F.forget(F.exp, x), [set_local(lambda i=i: np.arange(i)) for i in range(6)], 1),
    "whether it is there": (lambda x: x * 2 if hasattr(chainer.config, "mine") else x,
                            [nothing, set_local(lambda: 1), lambda: delattr(chainer.config, "mine")], 2),
    "an object": (lambda x: x * chainer.config.mine.eps,
                  [set_local(lambda: argparse.Namespace(eps=0.5)), lambda: setattr(chainer.config.mine, "eps", 0.25), nothing], 2),
}


@pytest.fixture
def own_entries():
    yield
    for space in (chainer.config._local, chainer.global_config):
        vars(space).pop("mine", None)


@pytest.mark.parametrize("name", CHANGES)
def test_own_entries(name, own_entries):
    body, changes, captures = CHANGES[name]

    def make(compile):
        for space in (chainer.config._local, chainer.global_config):
            vars(space).pop("mine", None)
        return compile(body), None

    def call(change):
        def prepared():
            change()
            return (variable(3, 4),)
        return prepared
    function = check(make, map(call, changes), rounds=1, compiled=True)
    assert captures is None or function.stats()["captures"] == captures


def test_written_for_good(own_entries):
    def count(x):
        chainer.config.mine = getattr(chainer.config, "mine", 0) + 1
        return x * chainer.config.mine
    check(lambda compile: (vars(chainer.config._local).pop("mine", None), (compile(count), None))[1],
          [lambda: (variable(3),)] * 2, compiled=False)


# --- arrays that are not NumPy's in default layout ---------------------------------------------------------------------------

class Foreign(np.ndarray):
    """Stands for the arrays of iDeep and ChainerX."""


def in_a_layout():
    return chainer.Variable(np.ones((2, 3, 3, 3), "f"), layout=chainer.memory_layouts.CUDNN_CHANNEL_LAST_X)


FOREIGN = {
    "an argument": (lambda x: F.relu(x) * 2, lambda: np.ones(3, "f").view(Foreign), "an array of type .*Foreign"),
    "in a Variable": (lambda x: F.relu(x) * 2, lambda: chainer.Variable(np.ones(3, "f").view(Foreign)), "an array of type .*Foreign"),
    "a layout": (lambda x: x.shape, in_a_layout, "a memory layout of its own"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_arrays_of_others(name):
    """The call runs eagerly and says why."""
    function, make, words = FOREIGN[name]
    static = to_static(function)
    with pytest.warns(FallbackWarning, match=f"{words}.*; only arrays of NumPy and CuPy in default layout are compiled"):
        result = static(make())
    expected = function(make())
    assert type(result) is type(expected)
    np.testing.assert_array_equal(chainer.as_array(result) if isinstance(result, chainer.Variable) else result,
                                  chainer.as_array(expected) if isinstance(result, chainer.Variable) else expected)


def test_ideep(monkeypatch):
    static = to_static(lambda x: x * 2)
    monkeypatch.setattr(intel64, "is_ideep_available", lambda: True)
    with chainer.using_config("use_ideep", "auto"), pytest.warns(FallbackWarning, match="use_ideep is 'auto'"):
        static(np.ones(3, "f"))
    static(np.ones(3, "f"))
    assert static.stats()["captures"] == 1


def printed_within(x):
    with np.printoptions(precision=2):
        print(x.array)
    return x * 2


def printed_after(x):
    np.set_printoptions(precision=3)
    print(x.array)
    np.set_printoptions(precision=8)
    return x * 2


@pytest.mark.parametrize("function", [printed_within, printed_after], ids=lambda function: function.__name__)
def test_how_numpy_prints(function):
    check(lambda compile: (compile(function), None), [lambda: (variable(3),)] * 2, compiled=False)


@pytest.fixture
def no_own_entry():
    """No entry of this thread's own says whether it trains."""
    before = vars(chainer.config._local).pop("train", None)
    yield
    vars(chainer.config._local).pop("train", None)
    if before is not None:
        chainer.config.train = before


def test_train_and_evaluate_in_one_call(no_own_entry):
    """The first call gives the thread an entry of its own that says what it said; the next one is captured as a whole."""
    @to_static(strict=True)
    def both(x):
        chainer.config.train = False
        quiet = F.dropout(x)
        chainer.config.train = True
        return F.dropout(x) - quiet

    x = chainer.Variable(np.ones((2, 3), "f"))
    for _ in range(3):
        assert both(x).array.min() == -1 and chainer.config.train is True
    assert both.cache_info().captures == 1


def test_the_line_that_changes_the_configuration_for_good_runs_as_python(no_own_entry):
    @to_static
    def evaluate(x):
        chainer.config.train = False
        return F.dropout(x) * 2

    x = chainer.Variable(np.ones((2, 3), "f"))
    with pytest.warns(FallbackWarning, match=r"changed for good.*\n?.*chainer.config.train = False"):
        np.testing.assert_array_equal(evaluate(x).array, 2)
    assert chainer.config.train is False and evaluate.stats()["cuts"] == 1
