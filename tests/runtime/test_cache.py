"""The cache: what is captured again and what is not, its limit, and copies of what is decorated."""
import copy
import gc
import importlib.util
import pickle
import subprocess
import sys
import weakref

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, variable

from dy2static import FallbackWarning, to_static
from dy2static.conversion import convert
from dy2static.runtime.program import Program


class Net(chainer.Chain):
    """A decorated method, a counter and a number that changes."""

    def __init__(self, size=4, seed=1):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(3, size, initialW=array(size, 3, seed=seed))
        self.calls, self.rate = 0, 1.0

    @to_static
    def forward(self, x, scale=1.0):
        self.calls += 1
        return F.tanh(self.a(x)) * scale * self.rate


class Plain(chainer.Chain):
    """Not decorated."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(3, 2, initialW=array(2, 3))

    def forward(self, x):
        return F.relu(self.a(x))


@pytest.fixture(autouse=True)
def empty_cache():
    Net.forward.clear_cache()
    Net.forward.dispatcher.captures = Net.forward.dispatcher.fallback.count = 0


def test_no_captures_after_warming_up():
    model, optimizer = Net(), chainer.optimizers.Adam()
    optimizer.setup(model)
    for k in range(300):
        if k == 4:
            before = Net.forward.cache_info()
        model.cleargrads()
        model.rate = 0.99 ** k
        loss = F.sum(model(array(5, 3, seed=k), scale=1.0 + k) ** 2)
        loss.backward()
        optimizer.update()
    assert model.calls == 300 and Net.forward.cache_info() == before and before.captures <= 4 and not before.fallbacks


def test_instances_share_programs():
    models = [Net(seed=k) for k in range(5)]
    for _ in range(3):
        for k, model in enumerate(models):
            np.testing.assert_allclose(model(array(2, 3)).array, np.tanh(array(2, 3) @ array(4, 3, seed=k).T), rtol=1e-5)
    assert Net.forward.cache_info().captures <= 2
    Net(size=6)(array(2, 3))
    assert Net.forward.cache_info().captures <= 4


def test_limit():
    static = to_static(lambda x: x * 2, cache_limit=3, dynamic=False)
    for _ in range(2):
        for n in range(1, 6):
            np.testing.assert_array_equal(static(np.full(n, 2, "f")), np.full(n, 4, "f"))
            assert static.cache_info().programs <= 3
    assert static.cache_info().captures == 10 and static.cache_info().limit == 3
    captures = static.cache_info().captures
    for n in (3, 4, 5):
        static(np.full(n, 2, "f"))
    assert static.cache_info().captures == captures


def test_numbers_become_inputs():
    static = to_static(lambda x, a, b: F.sum(x * a) + b)
    for k in range(20):
        np.testing.assert_allclose(static(array(3), k, k * 0.5).array, (array(3) * k).sum() + k * 0.5, rtol=1e-5)
    assert static.cache_info().captures <= 3
    for k in range(20):                                 # an int where a float was is another program, once
        static(array(3), k, k)
    assert static.cache_info().captures <= 6


def test_clear():
    static = to_static(lambda x: x * 2)
    static(array(3)), static.clear_cache()
    assert static.cache_info().programs == 0
    static(array(3))
    assert static.cache_info().captures == 2


def copies_of(model):
    return [copy.copy(model), copy.deepcopy(model), model.copy(), model.copy("init"), pickle.loads(pickle.dumps(model))]


def test_copies_of_a_decorated_chain():
    model = Net()
    model(array(2, 3))
    for made in copies_of(model):
        assert type(made) is Net and made.calls == 1
        made.a.W.array = made.a.W.array * 2
        y = made(array(2, 3))
        np.testing.assert_allclose(y.array, np.tanh(array(2, 3) @ made.a.W.array.T), rtol=1e-5)
        assert made.calls == 2 and model.calls == 1
        F.sum(y).backward()
        assert made.a.W.grad is not None


def test_copies_of_a_compiled_link():
    link = to_static(Plain())
    wanted = link(array(2, 3)).array
    for made in copies_of(link):
        assert isinstance(made, Plain) and type(made).__name__ == "Plain"
        if made is not None and made.a.W.array is link.a.W.array or np.array_equal(made.a.W.array, link.a.W.array):
            np.testing.assert_array_equal(made(array(2, 3)).array, wanted)
    plain = Plain()
    assert type(plain) is Plain and "code" not in vars(Plain) and "relu" in link.code


def test_copies_of_a_function():
    for made in (copy.copy(Net.forward), copy.deepcopy(Net.forward), pickle.loads(pickle.dumps(Net.forward))):
        assert made is Net.forward


def test_serialised_state_is_the_same(tmp_path):
    model = Net()
    model(array(2, 3))
    chainer.serializers.save_npz(tmp_path / "m.npz", model)
    other = Net(seed=9)
    other(array(2, 3))
    chainer.serializers.load_npz(tmp_path / "m.npz", other)
    np.testing.assert_array_equal(other(array(2, 3)).array, model(array(2, 3)).array)


def test_inherited_and_overridden():
    class Child(Net):
        def forward(self, x):
            return super().forward(x) + 1

    class Static(Net):
        @to_static
        def forward(self, x):
            return super().forward(x, scale=2.0) + 1
    base, child, static = Net(), Child(), Static()
    for _ in range(3):
        y = base(array(2, 3)).array
        np.testing.assert_allclose(child(array(2, 3)).array, y + 1, rtol=1e-6)
        np.testing.assert_allclose(static(array(2, 3)).array, y * 2 + 1, rtol=1e-6)
    assert base.calls == child.calls == static.calls == 3


def test_unused_first_call_of_uninitialised_parameters():
    model = chainer.Chain(a=L.Linear(None, 2))
    static = to_static(lambda x: model.a(x))
    x = variable(2, 3)
    for _ in range(3):
        assert static(x).shape == (2, 2)
    assert static.cache_info().captures == 1 and static.cache_info().fallbacks == 0


def test_conversions_live_as_long_as_their_code(tmp_path):
    def load(name):
        path = tmp_path / name
        path.write_text("def f(x):\n    return x * 2 if x.array[0] > 0 else x\n")
        spec = importlib.util.spec_from_file_location("same_module", path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made.f

    first, second = load("a.py"), load("b.py")
    assert first.__code__ == second.__code__                # and yet each is from a file of its own
    assert convert(first) is convert(first) is not convert(second)
    assert convert(second).code.co_filename.endswith("b.py")
    kept = weakref.ref(convert(first))
    x = chainer.Variable(np.ones(2, "f"))
    np.testing.assert_array_equal(to_static(first)(x).array, [2, 2])
    del first
    gc.collect()
    assert kept() is None


MODELS_ONE_BY_ONE = """
import gc, weakref
from dy2static import to_static                         # before Chainer, which NumPy 2 needs
import chainer, numpy as np
import chainer.functions as F, chainer.links as L

kept = []
for _ in range(3):
    model = to_static(chainer.Sequential(L.Linear(3, 4), F.relu), strict=True)
    F.sum(model(np.ones((2, 3), "f"))).backward()
    kept.append(weakref.ref(type(model)))
    del model
gc.collect()
assert [ref() for ref in kept] == [None] * 3
"""


def test_models_that_were_compiled_one_by_one_are_freed():
    subprocess.run([sys.executable, "-c", MODELS_ONE_BY_ONE], check=True)


class History:
    """An object whose lists grow with every call."""

    def __init__(self):
        self.losses = []


def test_a_capture_that_stopped_keeps_no_objects_of_the_call():
    class Item:
        k = 1.0
    items = [Item(), Item()]
    scales = weakref.WeakKeyDictionary({item: 2.0 for item in items})

    @to_static(backend="numpy")
    def step(x):
        scales[items[0]] = items[1].k
        return F.tanh(x) * sum(scales.values())
    with pytest.warns(FallbackWarning):
        assert [float(step(variable(3)).array[0] / F.tanh(variable(3)).array[0]) for _ in range(2)] == [3.0, 3.0]
    items.pop()
    gc.collect()
    assert len(scales) == 1


def test_the_length_of_a_growing_list_is_a_number():
    """`len` of a list that only grows is an input of the program, like other numbers that vary."""
    kept = [History(), History()]

    def run(x, history):
        history.losses.append(float(x.array.sum()))
        history.losses.append(0.5)
        return x * len(history.losses)
    compiled = to_static(run, strict=True)
    for k in range(20):
        x = variable(3, seed=k)
        np.testing.assert_array_equal(run(x, kept[0]).array, compiled(x, kept[1]).array)
    assert kept[0].losses == kept[1].losses and compiled.stats()["captures"] == 2


def test_captures_that_pay_go_on():
    """Many programs for arguments of the same shapes are no reason to stop, if they are used."""
    def run(x, mode):
        return x * {mode: len(mode)}[mode]
    compiled = to_static(run, strict=True, cache_limit=64)
    modes = ["m" * k for k in range(1, 41)]
    for mode in modes + modes:
        compiled(variable(3), mode)
        compiled(variable(3), mode)
    assert compiled.stats()["captures"] == 40


def sizes_of(static, sizes):
    """Call for arrays of these sizes; gives how many captures that took."""
    before = static.cache_info().captures
    for n in sizes:
        np.testing.assert_array_equal(static(np.full(n, 2, "f")), np.full(n, 4, "f"))
    return static.cache_info().captures - before


def test_what_was_used_longest_ago_goes_first():
    static = to_static(lambda x: x * 2, cache_limit=3, dynamic=False)
    assert sizes_of(static, [1, 2, 3, 1, 1, 2]) == 3
    assert sizes_of(static, [4]) == 1                   # 3 had to go
    assert sizes_of(static, [1, 2, 4, 1, 2]) == 0
    assert sizes_of(static, [3]) == 1                   # 4 had to go
    assert sizes_of(static, [2, 1]) == 0
    info = static.cache_info()
    assert (info.programs, info.misses, info.evicted) == (3, 5, 2)


def test_reasons_of_misses():
    static = to_static(lambda x, scale, mode: x * scale if mode == "a" else x, cache_limit=2)
    x = np.full(2, 3, "f")
    for scale, mode in ((1.0, "a"), (1.0, "b"), (2.0, "a"), (3.0, "a"), (1.0, "b")):
        static(x, scale, mode)
    static(np.full(5, 3, "f"), 1.0, "b")
    static(x, 4.0, "a")
    reasons = [miss.reason for miss in static.explain_misses()]
    assert len(reasons) == static.cache_info().misses == static.cache_info().captures
    assert reasons[:3] == ["there was no program yet", "no longer argument 2 == 'a'", "no longer argument 1 == 1.0"]
    assert "no longer argument 0: ndarray (2,) float32" in reasons
    assert reasons[-1].endswith("one like it had to go before") and str(static.explain_misses()[0]).startswith("there was no program yet: the call was captured (x0: ")
    refused = to_static(lambda x: x.ctypes.shape[0])
    with pytest.warns(FallbackWarning):
        refused(x), refused(x)
    assert [miss.result for miss in refused.explain_misses()] == ["runs in parts: `.ctypes` of an array is used inside the compiled function"]
    assert refused.cache_info().misses == 1             # the second call runs in parts
    static.clear_cache()
    assert not static.explain_misses()


def test_a_budget_of_bytes_holds_for_thousands_of_calls():
    budget = 400_000
    w = chainer.Parameter(array(40, 6))
    static = to_static(lambda x: F.sum(F.tanh(F.matmul(w, x))), cache_limit=1000, cache_bytes=budget, strict=True,
                           dynamic=False)
    rng, most = np.random.RandomState(0), 0
    for k in range(3_000):
        n = rng.randint(3) if rng.rand() < 0.96 else rng.randint(60)
        w.cleargrad()
        static(np.ones((6, n), "f")).backward()
        if k % 100 == 0:
            most = max(most, static.cache_info().bytes)
    info, programs = static.cache_info(), static.dispatcher.programs
    assert info.evicted > 50 and 3 < info.programs < 40 and info.captures == info.misses == info.evicted + info.programs
    # what the newest program keeps after its backward is looked at when the next one is made
    assert most <= budget + 2 * max(program.nbytes for program in programs)
    gc.collect()
    alive = [item for item in gc.get_objects() if type(item) is Program and item.graph.name == programs[0].graph.name]
    assert len(alive) == len(programs)


def test_one_program_stays_in_any_budget():
    static = to_static(lambda x: x * 2, cache_bytes=1)
    assert sizes_of(static, [3, 3, 4, 4]) == 2 and static.cache_info().programs == 1


def test_free_sizes_in_front_of_what_nothing_uses_any_more():
    """A program of one size that is used now and then stays in front: it is the better one."""
    static = to_static(lambda x: x * 2, backend="numpy")
    for n in (3, 4, 5, 3):
        static(np.zeros(n, "f"))
    sizes = lambda: [p.graph.inputs[0].shape[0] for p in static.dispatcher.cache.programs]  # noqa: E731
    assert [type(n) is int for n in sizes()] == [True, True, False]
    for n in range(60):
        static(np.zeros(6 + n % 2, "f"))
    assert type(sizes()[1]) is not int and (sizes()[0], sizes()[2]) == (3, 4)
    assert static(np.zeros(4, "f")).shape == (4,) and static.cache_info().captures == 3
