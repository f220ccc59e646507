"""The closed programs that exporters write: names, free sizes, constants, and what is refused with the user's line."""
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import InputSpec
from dy2static.errors import ExportError, ExportWarning
from dy2static.export.captured import exported
from dy2static.ir.interpret import interpret


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(4, 8)
            self.bn = L.BatchNormalization(8)
            self.l2 = L.Linear(8, 3)

    def forward(self, x):
        return F.softmax(self.l2(F.dropout(F.relu(self.bn(self.l1(x))))))


def run(program, *arrays):
    return interpret(program.graph, *arrays, *[parameter.array for parameter in program.parameters])


def names(parts):
    return [part.name for part in parts]


def test_a_link_becomes_a_program_for_any_batch():
    net = Net()
    program = exported(net, [InputSpec([None, 4])])
    assert names(program.arguments) == ["x"] and names(program.results) == ["output"] and program.name == "forward"
    assert names(program.parameters) == ["l1/W", "l1/b", "bn/avg_mean", "bn/gamma", "bn/beta", "bn/avg_var", "l2/W", "l2/b"]
    size, = program.sizes.values()
    assert (size.name, size.argument, size.axis, size.least) == ("batch", 0, 0, 0)
    for count in (1, 2, 5):
        x = np.random.rand(count, 4).astype("f")
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            np.testing.assert_array_equal(run(program, x)[0], net(x).array)


def test_calls_of_numpy_on_known_arrays_are_constants():
    def f(x):
        y = x * np.tril(np.ones((3, 3), bool))
        while y.array.sum() > 1:
            y = y - np.triu(np.full((3, 3), 2, "f"))
        return y

    program = exported(f, [InputSpec([3, 3])])
    assert not [node for node in program.graph.walk() if node.op.kind == "opaque"]
    x = np.random.rand(3, 3).astype("f") * 5
    np.testing.assert_allclose(run(program, x)[0], f(chainer.Variable(x)).array, rtol=1e-6)


def test_values_that_are_reported_need_no_python():
    net = L.Classifier(L.Linear(3, 2))
    with pytest.warns(ExportWarning, match="report"):
        program = exported(net, [InputSpec([4, 3]), InputSpec([4], "int32")], state=True)
    assert names(program.results) == ["output", "next/accuracy", "next/loss", "next/y"]
    x, t = np.random.rand(4, 3).astype("f"), np.array([0, 1, 1, 0], "i")
    np.testing.assert_allclose(run(program, x, t)[0], net(x, t).array, rtol=1e-6)


def test_arrays_choose_among_results_of_one_type():
    def f(x, y):
        if x.array[0] > 0:
            return x, 1
        return (y * 2, 1) if y.array[0] > 0 else (x + 1, 1)

    program = exported(f, [InputSpec([2]), InputSpec([2])])
    for a, b in ((1, 1), (-1, 1), (-1, -1)):
        x, y = np.array([a, 2], "f"), np.array([b, 3], "f")
        np.testing.assert_array_equal(run(program, x, y)[0], f(chainer.Variable(x), chainer.Variable(y))[0].array)
    with pytest.raises(ExportError, match="decide whether a part is"):
        exported(lambda x: x if x.array[0] > 0 else F.sum(x), [InputSpec([2])])


@pytest.mark.parametrize("is_in", [
    lambda x: int(x[0]) in (1, 3, 5), lambda x: int(x[0]) not in [1, 2.0, "2", None], lambda x: float(x[0]) in {1, 2.5}, lambda x: x[0] in (2, 3),
    lambda x: int(x[0]) in range(2, 1000), lambda x: int(x[0]) in range(1, 9, 3), lambda x: 3 in (int(x[0]), int(x[1])), lambda x: int(x[0]) in (),
    lambda x: 3 in x, lambda x: x[1] + 1 in x[:, None]], ids=range(10))
def test_decisions_by_membership(is_in):
    def f(x):
        return x * 2 if is_in(x) else x + 1

    program = exported(f, [InputSpec([None], "int64")])
    for n in (1, 2, 3, 5):
        x = np.array([n, n + 1, 9])
        np.testing.assert_array_equal(run(program, x)[0], f(x))


class Gated(chainer.Chain):
    """State that is stored before a later line may raise, and an attribute that is written only."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.gru = L.StatefulGRU(3, 3)

    def forward(self, x):
        h = self.gru(x)
        self.largest = h.array.max(axis=1)
        return 2 * F.permutate(h, np.array([2, 1, 0], "i"), axis=1)


@pytest.mark.parametrize("count", [None, 2])
def test_state_that_is_stored_in_the_middle(count, tmp_path):
    net = Gated()
    with pytest.raises(ExportError, match="changes state between calls: largest, gru/h"):
        exported(net, [InputSpec([count, 3])])
    program = exported(net, [InputSpec([count, 3])], state=True)
    assert names(program.arguments) == ["x", "state/gru/h"] and names(program.results) == ["output", "next/gru/h", "next/largest"]
    dy2static.save(net, tmp_path, [InputSpec([count, 3])])
    loaded = dy2static.load(tmp_path)
    h = np.zeros((2, 3), "f")
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        for seed in range(3):
            x = np.random.RandomState(seed).randn(2, 3).astype("f")
            expected = net(x).array
            np.testing.assert_allclose(loaded(x).array, expected, rtol=1e-5)
            output, h, largest = run(program, x, h)
            for found, wanted in ((output, expected), (h, net.gru.h.array), (largest, net.largest), (loaded.largest, net.largest)):
                np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_small_sizes_that_an_index_does_not_take():
    program = exported(lambda x: x[-1] + np.median(x, axis=0), [InputSpec([None, 3])])
    size, = program.sizes.values()
    assert size.least == 1


def test_draws_of_the_functions_own_are_ops():
    def f(x):
        y = x + np.random.uniform(-1, 1, (2, 3)).astype("f") * np.random.rand(3)
        return y if np.random.rand() < 0.5 else y * np.random.normal(1, 2, size=x.shape)

    program = exported(f, [InputSpec([2, 3])])
    assert not [node for node in program.graph.walk() if node.op.kind == "opaque"]
    x = np.ones((2, 3), "f")
    for seed in range(4):
        np.random.seed(seed)
        found = run(program, x)[0]
        np.random.seed(seed)
        np.testing.assert_allclose(found, f(x), rtol=1e-6)


def test_names_of_arguments_in_containers_and_of_results():
    def f(x, pair, options, unread):
        a, b = pair
        return {"sum": x + a, "more": (b.T, options["k"] + 1)}, 3, x

    program = exported(f, [InputSpec([2, 3]), (InputSpec([2, 3]), InputSpec([None, 5])),
                           {"k": InputSpec([2], "int64", name="keys")}, InputSpec([7])])
    assert names(program.arguments) == ["x", "pair_0", "pair_1", "keys", "unread"]
    assert names(program.results) == ["output_0_sum", "output_0_more_0", "output_0_more_1", "output_2"]
    assert program.fixed == {"output_1": 3} and program.results[-1].value is program.arguments[0].value
    assert [size.name for size in program.sizes.values()] == ["batch"]

    net = Net()
    net.classes = ("cat", "dog", 3)
    program = exported(lambda x, way: (net(x), {"classes": net.classes, "way": way}), [InputSpec([2, 4]), "fast"])
    assert program.fixed == {"output_1_classes": ("cat", "dog", 3), "output_1_way": "fast"}


def test_a_program_is_for_sizes_of_one_only_where_these_compute_the_same():
    def changes(x):
        return x * 2 if x.shape[0] == 1 else x * 3

    def mean(x):
        return (x - x.mean(axis=0)) @ np.eye(4, dtype="f")

    with pytest.warns(ExportWarning, match="for batch of 2 or more"):
        program = exported(changes, [InputSpec([None, 4])])
    assert [size.least for size in program.sizes.values()] == [2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = exported(mean, [InputSpec([None, 4])])
    assert [size.least for size in program.sizes.values()] == [0]
    program = exported(lambda x: F.mean(x, axis=0), [InputSpec([None, 4])])     # divides by the size
    assert [size.least for size in program.sizes.values()] == [1]


def test_a_program_with_state_has_the_sizes_of_the_spec(tmp_path):
    """That of one row changes no state here; it is none for many rows."""
    class Counted(chainer.Chain):
        largest = np.zeros((), "f")

        def forward(self, x):
            if len(x) > 1 and x.sum() > 0:
                self.largest = x.max()
            return x * 2

    with pytest.raises(ExportError, match="the contents of arrays decide which state"):
        exported(Counted(), [InputSpec([None, 3])], state=True)
    dy2static.save(lambda x: x * 2, tmp_path / "fixed", [InputSpec([2, 3])])
    with pytest.raises(ExportError, match="no program for free sizes"):
        exported(dy2static.load(tmp_path / "fixed"), [InputSpec([None, 3])])


def test_arguments_that_nothing_reads_have_any_size():
    program = exported(lambda x, options: x * 2, [InputSpec([None, 3]), {"mask": InputSpec(["rows", 4], "bool")}])
    assert [(size.name, size.argument, size.least) for size in program.sizes.values()] == [("batch", 0, 0), ("rows", 1, 0)]


def test_sizes_that_may_be_zero():
    """As far as that computes the same, and none of them may not be zero together with others where that does not."""
    def attend(query, keys):
        return F.matmul(F.softmax(F.matmul(query, keys, transb=True)), keys)

    specs = [InputSpec(["rows", 4]), InputSpec(["keys", 4])]
    for f, least in ((attend, [0, 1]), (lambda x, y: F.concat([x, y], axis=0), [0, 0]),
                     (lambda x, y: F.max(F.concat([x, y], axis=0)), [0, 1]), (lambda x, y: x[0] + F.sum(y), [1, 0]),
                     (lambda x, y: (x[x[:, 0] > 0], x * len(y)), [0, 0]), (lambda x, y: (x * 2, y * 2, float(F.sum(x).array)), [0, 0])):
        assert [size.least for size in exported(f, specs).sizes.values()] == least
    named = [InputSpec([name], name=name) for name in "abcd"]           # many sizes are zero together
    for f, number in ((lambda a, b, c, d: a.sum() + b.sum() + c.sum() * d.sum(), 0),
                      (lambda a, b, c, d: a.sum() + b.sum() + c.sum() * d.max(), 1)):
        assert [size.least for size in exported(f, named).sizes.values()] == [number] * 4


def test_a_program_is_for_multiples_where_images_are_halved_and_doubled():
    def f(x):
        return x + F.unpooling_2d(F.max_pooling_2d(x, 2), 2, cover_all=False)

    with pytest.warns(ExportWarning, match="height of a multiple of 2, 2 or more"):
        program = exported(f, [InputSpec([None, 3, "height", 8])])
    assert [(size.name, size.least, size.factor) for size in program.sizes.values()] == [("batch", 1, 1), ("height", 2, 2)]


def test_a_program_is_for_sizes_up_to_the_rows_of_a_table():
    table = np.ones((40, 3), "f")
    with pytest.warns(ExportWarning, match="length of 0 to 40"):
        program = exported(lambda x: x + table[:x.shape[1]], [InputSpec([None, "length", 3])])
    assert [(size.name, size.least, size.most) for size in program.sizes.values()] == [("batch", 0, None), ("length", 0, 40)]
    assert not any("call" in node.op.name for node in program.graph.nodes)


SCALE = np.float32(1.5) * np.ones(3, "f")


def test_arrays_of_globals_are_constants_and_control_flow_stays():
    def f(x):
        while x.sum() < 10:
            x = x + SCALE
        return x

    program = exported(f, [np.ones(3, "f")])
    assert names(program.parameters) == ["SCALE"]
    assert [node.op.name for node in program.graph.nodes if node.regions] == ["while_"]
    np.testing.assert_array_equal(run(program, np.ones(3, "f"))[0], f(np.ones(3, "f")))


def test_a_loaded_model_is_exported_like_the_original(tmp_path):
    net = Net()
    dy2static.save(net, tmp_path / "model", [InputSpec([None, 4])])
    original, loaded = (exported(target, [InputSpec([None, 4])]) for target in (net, dy2static.load(tmp_path / "model")))
    x = np.random.rand(3, 4).astype("f")
    np.testing.assert_array_equal(run(loaded, x)[0], run(original, x)[0])
    with pytest.raises(ExportError, match="no program for such arguments"):
        exported(dy2static.load(tmp_path / "model"), [InputSpec([None, 5])])


def test_what_only_shows_is_left_out_with_a_warning():
    def f(x):
        print("the sum is", x.sum())
        chainer.report({"sum": x.sum()})
        return x + 1

    with pytest.warns(ExportWarning, match=r"without print \(.*test_exported_programs.py:\d+\), "):
        program = exported(f, [InputSpec([3])])
    assert not [node for node in program.graph.nodes if node.op.kind == "opaque"]


class Stateful(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.lstm = L.LSTM(4, 3)

    def forward(self, x):
        return self.lstm(x)


@pytest.mark.parametrize("target, spec, message", [
    (Stateful(), InputSpec([None, 4]), "forward changes state"),
    (lambda x: x + np.frombuffer(open(__file__, "rb").read(3), "u1"), InputSpec([3]), "runs in Python|exported"),
    (lambda x: x if x.sum() > 1 else (x, x), InputSpec([3]), "decides of which structure"),
    (lambda x: None, InputSpec([3]), "gives back no array"),
])
def test_what_needs_python_is_refused_with_its_line(target, spec, message):
    with pytest.raises(ExportError, match=message) as raised:
        exported(target, [spec])
    assert raised.value.at.file == __file__ and raised.value.hint is not None or "no array" in message


class Loss(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.net = Net()
            self.unused = L.Linear(2, 2)

    def forward(self, x, t, steps):
        h = self.net.l2(F.relu(self.net.l1(x)))
        for _ in range(int(steps)):
            h = F.tanh(h) if h.array.sum() > 0 else h * 0.5
        return F.softmax_cross_entropy(h, t), h


def test_gradients_of_a_loss_through_branches_are_those_of_backward():
    model, x, t = Loss(), np.random.rand(5, 4).astype("f"), np.array([0, 1, 2, 0, 1], "i")
    program = exported(model, [InputSpec([None, 4]), InputSpec([None], "int32"), 3], gradients=True)
    wanted = ["net/l1/W", "net/l1/b", "net/l2/W", "net/l2/b"]
    assert names(program.results) == ["output_0", "output_1", *[f"grad/{name}" for name in wanted]]
    loss, _, *found = run(program, x, t)
    with chainer.using_config("train", False):
        eager = model(x, t, 3)[0]
        model.cleargrads()
        eager.backward()
    np.testing.assert_array_equal(loss, eager.array)
    params = dict(model.namedparams())
    for name, gradient in zip(wanted, found):
        np.testing.assert_allclose(gradient, params["/" + name].grad, rtol=1e-6)


def test_gradients_of_arguments_begin_with_an_argument():
    def f(x, y, unread):
        return F.sin(x) * y

    spec = chainer.Variable(np.zeros((2, 3), "f"))
    program = exported(f, [spec, spec, spec], gradients=["x", "unread"])
    assert names(program.arguments) == ["x", "y", "unread", "grad_output"]
    assert names(program.results) == ["output", "grad/x"] and program.fixed == {"grad/unread": None}
    x, y, g = np.random.rand(3, 2, 3).astype("f")
    np.testing.assert_allclose(run(program, x, y, x, g)[1], g * y * np.cos(x), rtol=1e-6)


def test_what_has_no_gradient_is_refused():
    with pytest.raises(ExportError, match="not an array of floats"):
        exported(lambda x: x > 1, [InputSpec([3])], gradients=["x"])
    with pytest.raises(ExportError, match="no argument or parameter 'z'"):
        exported(lambda x: x * 2, [InputSpec([3])], gradients=["z"])


def test_state_becomes_arguments_and_results():
    model = Stateful()
    program = exported(model, [InputSpec([None, 4])], state=True)
    assert names(program.arguments) == ["x", "state/lstm/c", "state/lstm/h"]
    assert names(program.results) == ["output", "next/lstm/c", "next/lstm/h"]
    assert [size.least for size in program.sizes.values()] == [1]
    state = [np.zeros((2, 3), "f"), np.zeros((2, 3), "f")]
    for x in np.random.rand(3, 2, 4).astype("f"):
        output, *state = run(program, x, *state)
        with chainer.no_backprop_mode():
            np.testing.assert_allclose(output, model(x).array, rtol=1e-6)


def test_statistics_of_batch_normalization_are_state():
    net = L.BatchNormalization(3)
    program = exported(net, [InputSpec([None, 3])], training=True, state=True)
    assert names(program.arguments) == ["x", "state/avg_mean", "state/avg_var"]
    x = np.random.rand(5, 3).astype("f")
    found = run(program, x, net.avg_mean.copy(), net.avg_var.copy())
    net(x)
    for value, name in zip(found[1:], names(program.results)[1:]):
        np.testing.assert_allclose(value, getattr(net, name[len("next/"):]), rtol=1e-6)


def test_one_row_beside_draws_indices_and_numbers():
    """Programs of one row are compared with the general one by what they draw, pick and count, too."""
    def f(x, places):
        noise = np.random.rand(len(x), 1)
        return {"y": (x * noise < 0.5).sum(axis=1), "picked": x[places], "count": len(x)}

    state = np.random.get_state()[1].copy()
    program = exported(f, [InputSpec([None, 3]), InputSpec([None], "int64")])
    assert [size.least for size in program.sizes.values()] == [1, 0]        # no place is in an array of no rows
    np.testing.assert_array_equal(np.random.get_state()[1], state)
