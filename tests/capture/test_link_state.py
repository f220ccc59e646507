"""What links keep from call to call, and what is done to them between calls: truncated backpropagation, copies, other parameters."""
import copy
import io
import pickle

import against_eager
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import Picture, array, differences, observe, variable

from dy2static import enable_to_static, to_static

pytestmark = pytest.mark.filterwarnings("ignore")


class Language(chainer.Chain):
    """A cell between two layers."""

    def __init__(self, cell):
        super().__init__()
        with self.init_scope():
            self.embed, self.cell, self.out = L.EmbedID(5, 3), cell, L.Linear(None, 4)

    def forward(self, ids):
        return self.out(F.dropout(self.cell(self.embed(ids)), 0.2))

    def reset_state(self):
        self.cell.reset_state()


class Deep(chainer.Chain):
    """Cells over each other, one of them made of another link's weights."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(5, 3)
            self.cells = chainer.ChainList(L.LSTM(3, 3), L.StatefulGRU(3, 3), L.StatefulPeepholeLSTM(3, 3))
            self.out = L.Linear(3, 5)
        self.out.W = self.embed.W

    def forward(self, ids):
        h = self.embed(ids)
        for cell in self.cells:
            h = cell(h) + h
        return self.out(h)

    def reset_state(self):
        for cell in self.cells:
            cell.reset_state()


CELLS = {name: lambda cls=getattr(L, name): Language(cls(3, 3)) for name in
         ("LSTM", "GRU", "StatefulGRU", "StatefulMGU", "StatefulPeepholeLSTM", "StatefulZoneoutLSTM")}
CELLS["LSTM of a size to come"] = lambda: Language(L.LSTM(None, 3))
CELLS["three"] = Deep


def truncated(model, call):
    """Backpropagation through three calls at a time, then a cut; a new sequence after six; an LSTM's batch gets smaller.

    What is left of the graph behind a cut is not looked at: results that do not depend on each other share one node.
    """
    optimizer = chainer.optimizers.Adam(0.01).setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(1.0))
    found = []
    loss = 0
    for step in range(13):
        if step in (6, 12):
            model.reset_state()
        size = 4 - step % 6 // 2 if step >= 6 and isinstance(getattr(model, "cell", None), L.LSTM) else 4
        y = call(np.arange(step, step + size, dtype=np.int32) * 3 % 5)
        loss = loss + F.softmax_cross_entropy(y, np.arange(size, dtype=np.int32))
        if step % 3 == 2:
            model.cleargrads()
            loss.backward()
            loss.unchain_backward()
            found.append(Picture(with_graph=False).of([loss, model]))
            optimizer.update()
            loss = 0
        found.append(Picture(with_graph=False).of([y, model]))
    model.reset_state()
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        found.append(Picture().of([call(np.zeros(3, np.int32)), model]))
    return found


def alike(make):
    """Two models with equal parameters, the first one compiled."""
    np.random.seed(0)
    eager = make()
    compiled = copy.deepcopy(eager)
    return to_static(compiled), eager


def assert_same(found):
    eager, compiled = found
    problems = [f"{k}: {line}" for k, (a, b) in enumerate(zip(eager, compiled)) for line in differences({"": a}, {"": b})]
    assert not problems, "\n".join(text[:400] for text in problems[:6])


def assert_compiled(model):
    info = type(model).forward.cache_info()
    assert info.captures > 0 == info.fallbacks, type(model).forward.dispatcher.fallback.refused


@pytest.mark.parametrize("name", CELLS)
def test_truncated_backpropagation(name):
    compiled, eager = alike(CELLS[name])
    found = []
    for model in (eager, compiled):
        np.random.seed(1)
        found.append(truncated(model, model))
    assert_same(found)
    assert_compiled(compiled)


def test_reset_inside():
    """A whole sequence in one call, which resets the state itself; what is left is carried on by the next call."""
    def sequence(model, batches, fresh):
        if fresh:
            model.reset_state()
        return [model(ids) for ids in batches]
    batches = [np.array(ids, np.int32) for ids in ([0, 1, 2], [3, 4, 0], [1, 1])]
    compiled, eager = alike(lambda: Language(L.LSTM(3, 3)))
    static = to_static(sequence, strict=True)
    found = []
    for function, model in ((sequence, eager), (static, compiled)):
        np.random.seed(1)
        function(model, batches[:2], True)      # the last layer gets its size
        found.append([])
        for count, fresh in ((3, True), (1, False), (2, True), (3, True)):
            given = model, batches[3 - count:], fresh
            found[-1].append(observe(function, given, {}, [model])[0]["gradients"])
            model.cleargrads()
    assert_same(found)


class Net(chainer.Chain):
    """Two layers, and statistics."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a, self.bn, self.b = L.Linear(3, 4), L.BatchNormalization(4), L.Linear(4, 4)
            self.slope = chainer.Parameter(np.full((), 0.5, "f"))
            self.extra = None
        self.add_persistent("seen", np.zeros((), "i"))

    def forward(self, x):
        self.seen += 1
        h = F.relu(self.bn(self.a(x)))
        h = self.b(h)
        h = h * F.broadcast_to(self.slope, h.shape)
        return h if self.extra is None else h + self.extra(x)


def _initialised(link):
    del link.extra
    with link.init_scope():
        link.extra = L.Linear(3, 4, initialW=np.eye(4, 3, dtype="f"))


def _add_parameter(m):
    with m.init_scope():
        m.more = chainer.Parameter(array(2))


def _without_bias(m):
    del m.a.b
    m.a.b = None


def _smaller(m):
    m.a, m.bn, m.b = L.Linear(3, 2, initialW=array(2, 3)), L.BatchNormalization(2), L.Linear(2, 4, initialW=array(4, 2))


def _file(m):
    """Through a file and back, into other values."""
    file = io.BytesIO()
    chainer.serializers.save_npz(file, m)
    for p in m.params():
        p.array[...] = 7
    m.bn.avg_mean[...] = 3
    file.seek(0)
    chainer.serializers.load_npz(file, m)


def _copy_of_parameters(m):
    m.b.copyparams(L.Linear(4, 4, initialW=np.eye(4, dtype="f") * 0.3))


#: what is done to a model between calls; may give another model to go on with
CHANGES = {
    "array of a parameter": lambda m: setattr(m.a.W, "array", m.a.W.array * 2),
    "contents of a parameter": lambda m: m.a.W.array.__imul__(2),
    "another parameter": lambda m: setattr(m.a, "W", chainer.Parameter(array(4, 3, seed=9))),
    "shared parameter": lambda m: setattr(m.b, "W", chainer.Parameter(array(4, 4, seed=9))),
    "another link": lambda m: setattr(m, "b", L.Linear(4, 4, initialW=np.eye(4, dtype="f"))),
    "a smaller link": _smaller,
    "a link more": _initialised,
    "a parameter more": _add_parameter,
    "no bias": _without_bias,
    "frozen": lambda m: m.a.disable_update(),
    "all frozen": lambda m: m.disable_update(),
    "thawed": lambda m: (m.a.disable_update(), m.a.enable_update()) and None,
    "copied parameters": _copy_of_parameters,
    "file": _file,
    "cpu": lambda m: m.to_cpu() and None,
    "device": lambda m: m.to_device("@numpy") and None,
    "deep copy": copy.deepcopy,
    "shallow copy": copy.copy,
    "copy shares": lambda m: m.copy("share"),
    "copy copies": lambda m: m.copy("copy"),
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "repeated": lambda m: m.repeat(2, mode="copy")[1],
    "statistics": lambda m: setattr(m.bn, "avg_mean", np.ones(4, "f")),
    "start of finetuning": lambda m: m.bn.start_finetuning(),
    "persistent": lambda m: setattr(m, "seen", np.full((), 10, "i")),
    "no training": lambda m: setattr(chainer.config, "train", False),
    "cleargrads": lambda m: m.zerograds(),
    "deleted": lambda m: (delattr(m, "extra"), setattr(m, "extra", None)) and None,
    "slope": lambda m: setattr(m, "slope", chainer.Parameter(np.full((), 2.0, "f"))),
    "named": lambda m: setattr(m.a.W, "name", "weight"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_between_calls(name):
    compiled, eager = alike(Net)
    found = []
    for model in (eager, compiled):
        np.random.seed(1)
        with chainer.using_config("train", True):
            optimizer = chainer.optimizers.SGD(0.1).setup(model)
            model.cleargrads()
            found.append([])
            for step in range(5):
                if step == 2:
                    old, other = model, CHANGES[name](model)
                    if isinstance(other, chainer.Link):
                        model = other
                        optimizer = chainer.optimizers.SGD(0.1).setup(model)
                        found[-1].append(observe(old, (variable(4, 3, seed=9),), {}, [old, model])[0]["gradients"])
                found[-1].append(observe(model, (variable(4, 3, seed=step),), {}, [model])[0]["gradients"])
                optimizer.update()
                model.cleargrads()
    assert_same(found)
    assert_compiled(compiled)


@to_static
class Decorated(Net):
    """Compiled as a class."""


class DecoratedMethod(Net):
    """With a method of its own that is compiled."""

    @to_static
    def forward(self, x):
        return super().forward(x) * 2


@pytest.mark.parametrize("make", [copy.deepcopy, copy.copy, lambda m: m.copy("copy"), lambda m: m.repeat(2, mode="copy")[0],
                                  lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "copy", "own", "repeat", "pickle"])
@pytest.mark.parametrize("cls", [Decorated, DecoratedMethod], ids=lambda cls: cls.__name__)
def test_copies_of_decorated_chains(cls, make):
    """They are compiled, and on their own: as the same copies of the same Chain that is switched off."""
    found = []
    for on in (True, False):
        np.random.seed(2)
        model = cls()
        model.cleargrads()
        x = variable(4, 3)
        run = (lambda m: m(x)) if on else (lambda m: eagerly(m, x))
        first = run(model)
        other = make(model)
        ys = [first, run(other), run(model), run(other)]
        F.sum(ys[1] * ys[2] + ys[3]).backward()
        assert type(other).forward is type(model).forward
        found.append([Picture().of([model, other, ys, x])])
    assert_same(found)


def eagerly(model, x):
    """The call as it is without compilation."""
    enable_to_static(False)
    try:
        return model(x)
    finally:
        enable_to_static(True)


def test_frozen_parameters_stay():
    """`disable_update` keeps optimizers away; the compiled model is the same object for them."""
    compiled, _ = alike(Net)
    optimizer = chainer.optimizers.Adam().setup(compiled)
    compiled.a.disable_update()
    before = [p.array.copy() for p in compiled.params()]
    for seed in range(3):
        optimizer.update(lambda x: F.sum(compiled(x) ** 2), variable(4, 3, seed=seed))
    changed = [not np.array_equal(p.array, old) for p, old in zip(compiled.params(), before)]
    assert changed == [p.update_rule.enabled for p in compiled.params()]


def tagged(x):
    y = x * 2
    y.volatile = "off"
    return y, y + 1


def test_an_attribute_of_a_result_is_not_lost():
    """`L.Parameter` sets ``volatile`` of a Variable that nobody sees; where somebody does, no program is made of the whole."""
    inside, outside = to_static(lambda x: tagged(x)[1], strict=True), to_static(tagged)
    np.testing.assert_array_equal(inside(variable(3)).array, tagged(variable(3))[1].array)
    assert outside(variable(3))[0].volatile == "off"
    assert not outside.cache_info().captures


class Words(chainer.Chain):
    """A stateful network that looks up a word in each step."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed, self.lstm, self.out = L.EmbedID(10, 4), L.LSTM(4, 5), L.Linear(5, 10)

    def forward(self, x, t):
        loss = 0
        for i in range(x.shape[1]):
            loss += F.softmax_cross_entropy(self.out(self.lstm(self.embed(x[:, i]))), t[:, i])
        return loss


def test_indices_in_range():
    """Arrays of the caller's that index are guarded, so that state need not be stored in each step; others are another program."""
    np.random.seed(0)
    eager = Words()
    other = copy.deepcopy(eager)
    compiled = to_static(Words.forward, strict=True)
    random = np.random.RandomState(1)
    for _ in range(4):
        x, t = random.randint(0, 10, (2, 3)).astype("i"), random.randint(-1, 10, (2, 3)).astype("i")
        assert Words.forward(eager, x, t).array == compiled(other, x, t).array
        np.testing.assert_array_equal(eager.lstm.h.array, other.lstm.h.array)
    assert compiled.stats()["stores"] == 0
    x[1, 2] = 30
    for call, model in ((Words.forward, eager), (compiled, other)):
        with pytest.raises(IndexError):
            call(model, x, t)
    np.testing.assert_array_equal(eager.lstm.h.array, other.lstm.h.array)


def kept_before_a_failure(compile):
    """The state of a cell is stored ahead of an index that may be out of range, and unchained behind it."""
    np.random.seed(0)
    cell, kept, optimizer = L.LSTM(3, 4), chainer.Chain(), chainer.optimizers.SGD(0.1)
    optimizer.setup(cell)

    def step(x):
        h = kept.h = cell(x)
        rows = np.zeros(h.shape, "f")
        rows[np.arange(len(rows)), x.array.argmax(1)] = 1
        kept.both = [F.tanh(h), h]
        loss = F.sum(h * rows) + F.sum(kept.both[0])
        cell.cleargrads()
        loss.backward()
        optimizer.update()
        loss.unchain_backward()
        return loss.array
    return compile(step), [cell, kept, optimizer]


def test_state_stored_ahead_of_what_may_fail_is_unchained():
    against_eager.check(kept_before_a_failure, [lambda: (variable(2, 3),)] * 4, compiled=True)


def test_state_unchained_after_a_store_is_a_leaf():
    held = chainer.Chain()

    def step(x, place):
        held.y = F.tanh(x)
        rows = np.zeros(3, "f")
        rows[place] = 1
        loss = F.sum(held.y * rows)
        loss.unchain_backward()
        return loss
    compiled = to_static(step, strict=True)
    x = variable(3)
    compiled(x, np.array([0, 2]))
    F.sum(held.y * 2).backward()
    assert held.y.creator is None and held.y.grad.tolist() == [2, 2, 2] and x.grad is None
    with pytest.raises(IndexError):
        compiled(x, np.array([0, 3]))
    assert held.y.array.tolist() == np.tanh(x.array).tolist()
