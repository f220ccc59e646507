"""Functions and Links as ONNX files: control flow, lists, free sizes, gradients, state; what is refused before anything is written."""
import os
import sys

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from onnx_runs import check, run, session

import dy2static
from dy2static import InputSpec, cli
from dy2static.errors import ExportError, ExportWarning, LoadError, SignatureError
from dy2static.export.captured import exported
from dy2static.export.to_onnx import proto
from dy2static.export.to_onnx.door import model_of_program
from dy2static.export.to_onnx.writer import Options


def leaves(x):
    if isinstance(x, (list, tuple)):
        return [leaf for part in x for leaf in leaves(part)]
    return [x.array if isinstance(x, chainer.Variable) else np.asarray(x)]


def compare(f, specs, *inputs, allowed=1e-5, **options):
    """Export for the specs, and compare with eager for each tuple of inputs."""
    program = exported(f, specs)
    model = model_of_program(program, Options(**options))
    proto.checked(model)
    opened = session(model)
    for arrays in inputs:
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            expected = leaves(f(*map(chainer.Variable, arrays)))
        found = run(opened, dict(zip([a.name for a in program.arguments], leaves(arrays))))
        assert len(found) == len(expected)
        for actual, wanted in zip(found.values(), expected):
            check(actual, wanted, allowed)
    return model


def vector(*numbers):
    return np.array(numbers, "f")


# Control flow ---------------------------------------------------------------------------------------------------


def test_branches_and_loops_on_arrays():
    def f(x):
        h, n = x, 0
        while float(F.max(abs(h)).array) > 1:
            h = h / 2 if n % 2 == 0 else h - h * 0.25
            n += 1
        return (F.relu(h) if h.array[0] > 0 else F.sigmoid(h)), n

    compare(f, [InputSpec([3])], (vector(0.5, 0, 0.25),), (vector(8, -3, 1),), (vector(-100, 3, 2),))


def test_a_loop_of_rows_with_a_list_that_is_stacked():
    def f(xs, threshold):
        hs, h = [], xs[0] * 0
        for x in xs:
            h = F.tanh(h + x)
            if h.array.sum() > threshold.array:
                hs.append(h * 2)
        hs.append(h)
        return F.stack(hs)

    compare(f, [InputSpec([4, 2]), InputSpec([])], (np.ones((4, 2), "f"), np.array(0, "f")), (-np.ones((4, 2), "f"), np.array(0, "f")))


def test_numbers_of_numpy_in_a_list_that_may_stay_empty():
    def suppressed(scores, overlaps):
        kept, gone = [], scores.array < 0
        for k in np.argsort(-scores.array):
            if gone[k]:
                continue
            kept.append(k)
            gone = gone | (overlaps.array[k] > 0.5)
        return np.array(kept, np.int64), len(kept)

    square = np.random.RandomState(0).rand(4, 4).astype("f")
    compare(suppressed, [InputSpec([4]), InputSpec([4, 4])], (vector(1, -2, 3, 2), square), (vector(1, 4, 3, 2), 0 * square),
            (vector(-1, -1, -1, -2), square))


def test_joined_lists_of_loops_need_no_check():
    def path(x):
        found, h = [], x.array
        while h.max() > 0.1:
            h = h * 0.5
            found.append(h[:1])
        return np.concatenate(found), np.stack(found[::-1], axis=1), ~(h > 0.05)

    compare(path, [InputSpec([None])], (vector(1, 2),), (vector(0.3, 0.1, 0.2),))


def test_results_that_decisions_choose():
    def f(x, y):
        if x.array[0] > 0:
            return x, y * 2
        if x.array[1] > 0:
            return y, y
        return x + 1, y

    pairs = [(vector(a, b), vector(5, 6)) for a in (1, -1) for b in (1, -1)]
    compare(f, [InputSpec([2]), InputSpec([2])], *pairs)


def test_none_before_the_first_iteration():
    def f(xs):
        best = None
        for x in xs:
            if best is None or x.array.sum() > best.array.sum():
                best = x * 1
        return best

    compare(f, [InputSpec([3, 2])], (np.array([[1, 2], [5, 0], [3, 1]], "f"),), (np.array([[9, 2], [5, 0], [3, 1]], "f"),))


class Reader(chainer.Chain):
    """Reads rows until it is sure."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.cell = L.StatelessGRU(4, 6)
            self.out = L.Linear(6, 3)

    def forward(self, image):
        h = chainer.Variable(self.xp.zeros((1, 6), "f"))
        row, sure = 0, 0.0
        while row < image.shape[0] and sure < 0.6:
            h = self.cell(h, image[row:row + 1])
            sure = float(F.max(F.softmax(self.out(h))).array)
            row += 1
        return self.out(h), row


def test_a_recurrent_network_that_stops_when_it_is_sure():
    np.random.seed(3)
    net = Reader()
    images = [(np.random.normal(0, 3, (8, 4)).astype("f"),) for _ in range(4)]
    compare(net, [InputSpec([8, 4])], *images)


def test_checks_in_loops_and_branches_fail_in_the_run():
    def f(xs, limit):
        total = xs[0] * 0
        for x in xs:
            if x.array[0] > 0:
                assert float(x.array[1]) < float(limit.array), "too much"
                total = total + x
            if total.array[0] > 100:
                if total.array[1] > 100:
                    raise OverflowError
        return total

    program = exported(f, [InputSpec([3, 2]), InputSpec([])])
    model = model_of_program(program, Options(checks="fail"))
    proto.checked(model)
    opened = session(model)
    rows = np.array([[1, 2], [-1, 50], [3, 4]], "f")
    check(run(opened, {"xs": rows, "limit": np.array(10, "f")})["output"], vector(4, 6), 0)
    with pytest.raises(Exception, match="AssertionError"):
        run(opened, {"xs": rows, "limit": np.array(3, "f")})
    with pytest.raises(Exception, match="OverflowError"):
        run(opened, {"xs": rows * 100, "limit": np.array(1e9, "f")})


# Sizes ----------------------------------------------------------------------------------------------------------


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(2, 4, 3, pad=1)
            self.bn = L.BatchNormalization(4)
            self.l1 = L.Linear(4, 3)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.bn(self.conv(x))), 2)
        return self.l1(F.mean(h, axis=(2, 3)))


def test_any_batch_with_names_of_the_users():
    model = compare(Net(), [InputSpec([None, 2, 6, 6], name="image")],
                    *[(np.random.rand(n, 2, 6, 6).astype("f"),) for n in (1, 2, 5)])
    assert [v.name for v in model.graph.input] == ["image"] and [v.name for v in model.graph.output] == ["output"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert {"conv/W", "conv/b", "bn/gamma", "l1/W"} <= {tensor.name for tensor in model.graph.initializer}
    convolution = next(node for node in model.graph.node if node.op_type == "Conv")
    assert os.path.basename(__file__) in convolution.doc_string and "self.conv(x)" in convolution.doc_string


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_sequences_of_any_length(count, training):
    """The tables of their rows are computed by the run; in training, rows are put into the order of dropout's draws, of which none drops here."""
    net = L.NStepBiLSTM(2, 4, 3, 0.0)

    def f(xs):
        h, _, ys = net(None, None, list(xs))
        return h, F.concat(ys, axis=0)
    program = exported(f, [[InputSpec([None, 4]) for _ in range(count)]], training=training)
    opened = session(model_of_program(program, Options(random=True)))
    for lengths in ((2, 5, 3), (4, 4, 2), (7, 2, 7)):
        xs = [np.random.RandomState(n).randn(n, 4).astype("f") for n in lengths[:count]]
        with chainer.using_config("train", training), chainer.no_backprop_mode():
            expected = leaves(f(xs))
        found = run(opened, dict(zip([a.name for a in program.arguments], xs)))
        for actual, wanted in zip(found.values(), expected):
            check(actual, wanted, 1e-5)


def test_a_number_that_is_known_on_one_way():
    def f(x):
        n = 0
        while float(F.sum(x).array) > 1:
            x, n = F.tanh(x) * 0.5, n + 1
        if n > 1:
            return F.sum(x), n, 0.5
        return F.sum(x).array, 7, float(F.max(x).array)
    model = compare(f, [InputSpec([3])], (vector(0.1, 0.2, 0.3),), (vector(2, 3, 4),), (vector(1, 0.5, 0.25),))
    assert len(model.graph.output) == 3


def test_masks_pick_elements():
    """As detectors choose their boxes: arrays whose sizes the run finds out."""
    def f(boxes, scores):
        keep = scores.array > 0.3
        boxes, scores = boxes.array[keep], scores.array[keep]
        order = np.argsort(-scores)
        boxes, scores = boxes[order], scores[order]
        low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
        high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
        return boxes, scores, np.prod(np.maximum(high - low, 0), axis=2), np.nonzero(keep)[0], len(order)

    def g(x):
        x = x.array
        return x[x > 0], x[:, x[0] > 0], np.flatnonzero(x > 1), np.argwhere(x > 1), np.where(x < 0)[1], np.unique(x.astype("i"))
    boxes = np.random.RandomState(0).uniform(0, 5, (3, 8, 4)).astype("f")
    scores = [vector(0.1, 0.9, 0.4, 0.35), vector(0.5, 0.2, 0.7, 0.1, 0.31, 0.99, 0.0, 0.45)]
    compare(f, [InputSpec(["n", 4]), InputSpec(["n"])], *[(b[:len(s)], s) for b, s in zip(boxes, scores)])
    compare(g, [InputSpec([None, 3])], *[(np.random.RandomState(n).uniform(-3, 3, (n, 3)).astype("f"),) for n in (2, 5)])
    with pytest.raises(ExportError, match="has no form in C"):
        dy2static.export.c(g, [InputSpec([None, 3])], "unused")
    for function in (lambda x: np.where(x.array > 0, 1, 2j), lambda x: np.unique(x.array.astype("i"), True)[1]):     # no places, no values
        with pytest.raises(ExportError):
            exported(function, [InputSpec([None, 3])])


def test_joined_lists_of_any_length():
    def f(x):
        out, h = [], x
        while float(F.sum(h).array) > 1:
            h = h * 0.5
            out.append(h.array)
        return np.concatenate(out), np.vstack(out), np.stack(out, axis=1)
    compare(f, [InputSpec([2, 3])], (np.full((2, 3), 4, "f"),), (np.full((2, 3), 0.3, "f"),), checks="leave out")


def test_sizes_have_the_names_of_their_specs():
    program = exported(lambda x, y: F.sum(x) + F.sum(y, axis=0), [InputSpec(["nodes", 3]), InputSpec(["edges", "width"])])
    assert sorted(size.name for size in program.sizes.values()) == ["edges", "nodes", "width"]


@pytest.mark.filterwarnings("ignore::dy2static.errors.ExportWarning")
def test_runs_of_other_sizes_fail():
    def f(x):
        return x * 2 if len(x) > 1 else x + 1

    program, one = exported(f, [InputSpec([None, 3])]), {"x": np.ones((1, 3), "f")}
    with pytest.raises(Exception, match="batch has to be 2 or more"):
        run(model_of_program(program, Options()), one)
    assert run(model_of_program(program, Options(checks="leave out")), one)["output"][0, 0] == 2


def test_runs_without_rows():
    """As eagerly where that is known to be right; else they fail."""
    net = chainer.Sequential(L.Linear(3, 4), L.BatchNormalization(4), F.relu)
    empty, some = np.zeros((0, 3), "f"), np.random.rand(2, 3).astype("f")
    compare(lambda x: (net(x), x.array[x.array[:, 0] > 0.5], F.sum(x, axis=0)), [InputSpec([None, 3])], (empty,), (some,))
    for f in (lambda x: F.max(x, axis=0), lambda x: F.mean(x), lambda x: x * 2 if len(x) else F.sum(x)):
        program = exported(f, [InputSpec([None, 3])])
        with pytest.raises(Exception, match="batch has to be 1 or more"):
            run(model_of_program(program, Options()), {"x": empty})
        check(run(model_of_program(program, Options()), {"x": some})["output"], f(chainer.Variable(some)).array, 1e-6)


def test_bits_need_a_newer_opset(tmp_path):
    def flags(x, y):
        z = x << 2
        z |= y
        n = int(x[0]) & 6
        return z, x & y, ~x, x >> 1, n ^ 1

    x, y = np.array([-7, 3, 100], np.int16), np.array([1, -2, 5], np.int16)
    specs = [InputSpec([None], "int16")] * 2
    dy2static.export.onnx(flags, specs, tmp_path / "flags.onnx")
    for actual, wanted in zip(run(str(tmp_path / "flags.onnx"), {"x": x, "y": y}).values(), flags(x, y)):
        check(actual, np.asarray(wanted), 0)
    with pytest.raises(ExportError, match="cannot be written in ONNX: there are operators for it from opset 18 on"):
        dy2static.export.onnx(flags, specs, tmp_path / "flags.onnx", opset=17)


def test_rows_come_round_however_few_there_are():
    def f(x):
        x, bits = x.array, x.array > 0
        return np.roll(x, 3, axis=0), np.median(x, axis=0), np.prod(bits, axis=1), bits @ np.arange(2), bits == True  # noqa: E712

    compare(f, [InputSpec([None, 2])], *[(np.random.RandomState(n).randn(n, 2).astype("f"),) for n in (1, 2, 5)])


def test_sizes_as_numbers():
    def f(x):
        n, m = x.shape
        return x.reshape((n * m,)), x[1:], F.sum(x) / n, F.concat([x, x * m], axis=1)

    compare(f, [InputSpec([None, None])], *[(np.random.rand(n, m).astype("f"),) for n, m in ((2, 3), (4, 2), (3, 7))])


def test_images_of_any_size_that_are_halved_and_doubled():
    def f(x):
        half = F.average_pooling_2d(F.max_pooling_2d(x, 2), 2)
        return F.concat([x, F.unpooling_2d(half, 4, cover_all=False)]), F.resize_images(half, x.shape[2:])

    with pytest.warns(ExportWarning, match="a multiple of 4"):
        compare(f, [InputSpec([None, 2, None, None])], *[(np.random.rand(*shape).astype("f"),) for shape in (
            (1, 2, 8, 4), (2, 2, 12, 20), (3, 2, 4, 40))])


# Gradients and state --------------------------------------------------------------------------------------------


class Loss(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.cell = L.Linear(3, 3)
            self.out = L.Linear(3, 2)

    def forward(self, xs, t):
        h = xs[0]
        for x in xs:
            h = F.tanh(self.cell(h) + x)
            if h.array.sum() > 1:
                h = h * 0.5
        return F.softmax_cross_entropy(self.out(h), t)


def test_gradients_are_results(tmp_path):
    np.random.seed(0)
    net, path = Loss(), str(tmp_path / "loss.onnx")
    dy2static.export.onnx(net, [InputSpec([3, 2, 3]), InputSpec([2], "int32")], path, gradients=True)
    for scale in (1, -2):
        xs, t = np.random.normal(scale, 1, (3, 2, 3)).astype("f"), np.array([1, 0], np.int32)
        found = run(path, {"xs": xs, "t": t})
        net.cleargrads()
        with chainer.using_config("train", False):
            loss = net(xs, t)
        loss.backward()
        check(found["output"], loss.array, 1e-5)
        for name, param in net.namedparams():
            check(found[f"grad{name}"], param.grad, 1e-5, name)


class Nested(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(3, 3)

    def forward(self, x):
        h, i = x, 0
        while float(F.sum(h * h).array) > 0.5 and i < 6:
            j = 0
            while float(F.max(h).array) > 0.3 and j < 5:
                h = h * 0.9 - 0.01
                j += 1
            h = F.tanh(self.l(h))
            i += 1
        return F.sum(h * x)


class Collecting(Nested):
    def forward(self, xs):
        hs, h = [], xs[0]
        for x in xs:
            h = F.tanh(self.l(h) + x)
            if float(F.sum(h).array) > 0:
                hs.append(h)
        hs.append(h)
        return F.sum(F.stack(hs))


def test_gradients_through_loops_in_loops(tmp_path):
    np.random.seed(1)
    net, path = Nested(), str(tmp_path / "nested.onnx")
    dy2static.export.onnx(net, [InputSpec([2, 3])], path, gradients=True)
    x = np.random.rand(2, 3).astype("f")
    for scale in (0.1, 1, 3):
        found = run(path, {"x": x * np.float32(scale)})
        net.cleargrads()
        net(x * np.float32(scale)).backward()
        gradient = np.zeros((3, 3), "f") if net.l.W.grad is None else net.l.W.grad     # None where no iteration is made
        check(found["grad/l/W"], gradient, 1e-5)
    with pytest.raises(ExportError, match="list_unstack cannot be written in ONNX"):
        dy2static.export.onnx(Collecting(), [InputSpec([4, 2, 3])], str(tmp_path / "lists.onnx"), gradients=True)


def test_state_is_given_and_given_back(tmp_path):
    net, path = L.LSTM(3, 4), str(tmp_path / "lstm.onnx")
    x = np.random.rand(2, 3).astype("f")
    dy2static.export.onnx(net, [x], path, state=True)
    opened = session(path)
    names = [node.name for node in opened.get_inputs()]
    state = {name: np.zeros((2, 4), "f") for name in names if name.startswith("state/")}
    assert len(state) == 2
    for _ in range(3):
        with chainer.no_backprop_mode():
            expected = net(x).array
        found = run(opened, {names[0]: x, **state})
        check(next(iter(found.values())), expected, 1e-5)
        state = {"state/" + name[5:]: value for name, value in found.items() if name.startswith("next/")}


# Files ----------------------------------------------------------------------------------------------------------


def test_large_parameters_are_in_a_file_of_their_own(tmp_path):
    net, path = L.Linear(40, 30), str(tmp_path / "net.onnx")
    dy2static.export.onnx(net, [InputSpec([None, 40])], path, external_above=1000)
    assert os.path.getsize(path) < 4000 < os.path.getsize(path + ".data")
    assert sorted(os.listdir(tmp_path)) == ["net.onnx", "net.onnx.data"]
    x = np.random.rand(2, 40).astype("f")
    check(run(path, {"x": x})["output"], net(x).array, 1e-5)


def test_what_cannot_be_expressed_is_refused_before_anything_is_written(tmp_path):
    path = str(tmp_path / "f.onnx")

    def inverse(x):
        return F.inv(x)

    def draws(x):
        return F.dropout(x)

    def raises(x):
        if x.array[0] < 0:
            raise ValueError("negative")
        return x + 1

    for f, spec, options, line in ((inverse, [3, 3], {}, "return F.inv(x)"), (draws, [3], {"training": True}, "F.dropout(x)"),
                                   (raises, [2], {}, "x.array[0] < 0")):
        with pytest.raises(ExportError) as error:
            dy2static.export.onnx(f, [InputSpec(spec)], path, **options)
        assert line in str(error.value)
    for options in ({"opset": 16}, {"opset": 99}, {"checks": "no"}):
        with pytest.raises(SignatureError):
            dy2static.export.onnx(raises, [InputSpec([2])], path, **options)
    with pytest.raises(SignatureError, match="the path comes after it"):
        dy2static.export.onnx(raises, path, [InputSpec([2])])
    assert os.listdir(tmp_path) == []
    dy2static.export.onnx(raises, [InputSpec([2])], path, checks="leave out")
    for x in (vector(1, 2), vector(-1, 2)):
        check(run(path, {"x": x})["output"], x + 1, 0)
    dy2static.export.onnx(raises, [InputSpec([2])], path, checks="fail")
    check(run(path, {"x": vector(1, 2)})["output"], vector(2, 3), 0)
    with pytest.raises(Exception, match=r"ValueError: negative \(.*test_onnx_programs.py:\d+\)"):
        run(path, {"x": vector(-1, 2)})
    dy2static.export.onnx(draws, [InputSpec([1000])], path, training=True, random=True)
    found = run(path, {"x": np.ones(1000, "f")})["output"]
    assert set(found) == {0, 2} and 300 < np.count_nonzero(found) < 700
    with pytest.raises(LoadError, match="onnxruntime"):
        dy2static.load(path)


# Doors ----------------------------------------------------------------------------------------------------------

MODULE = """
import dy2static
import chainer.links as L, chainer.functions as F
class Net(L.Linear):
    def __init__(self):
        super().__init__(4, 2)
def f(x, n):
    return F.relu(x) * 2, n + 1
"""


def test_the_command_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "exported_by_command.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert cli.main(["export", "exported_by_command:Net", "--input", "image=Nx4:float32", "-o", "new/net.onnx"]) == 0
    assert capsys.readouterr().out == "wrote new/net.onnx: image -> output\n"
    assert run(str(tmp_path / "new" / "net.onnx"), {"image": np.ones((3, 4), "f")})["output"].shape == (3, 2)
    assert cli.main(["export", "exported_by_command:f", "--input", "2x?", "--input", ":int64", "-o", "f.onnx"]) == 0
    found = run(str(tmp_path / "f.onnx"), {"x": -np.ones((2, 3), "f"), "n": np.array(4)})
    assert found["output_1"] == 5 and not found["output_0"].any()
    for arguments, text in ((["exported_by_command:no", "-o", "a"], "there is no exported_by_command:no"),
                            (["exported_by_command", "-o", "a"], "names no function"),
                            (["exported_by_command:Net", "--weights", "exported_by_command.py", "-o", "a"], "is no .npz file"),
                            (["exported_by_command:f", "--input", "x=2y", "-o", "a"], "says no input")):
        assert cli.main(["export", *arguments]) == 1
        assert text in capsys.readouterr().err


def test_inference_models_of_paddle(tmp_path):
    class Two(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.l1 = L.Linear(4, 2)

        def forward(self, x, y):
            return self.l1(x), y * 2

    net, path = Two(), str(tmp_path / "two.onnx")
    x, y = np.random.rand(3, 4).astype("f"), np.random.rand(3, 2).astype("f")
    _, traced = dy2static.TracedLayer.trace(net, [x, y])
    traced.save_inference_model(path, format="onnx")
    found = list(run(path, {"x": x[:2], "y": y[:2]}).values())
    check(found[0], net.l1(x[:2]).array, 1e-5)
    traced.save_inference_model(path, feed=[0], fetch=[0], format="onnx")
    assert [node.name for node in session(path).get_inputs()] == ["x"]
    with pytest.raises(SignatureError, match="needs the input"):
        traced.save_inference_model(path, feed=[0], format="onnx")
    with pytest.raises(SignatureError, match="no format"):
        traced.save_inference_model(path, format="tflite")


def test_inference_models_without_the_first_input(tmp_path):
    class Rows(chainer.Chain):
        def forward(self, y, x):
            return F.max(x, axis=0), F.mean(y, axis=0), F.sum(x) * len(y)

    path, x = str(tmp_path / "rows.onnx"), np.random.rand(4, 3).astype("f")
    _, traced = dy2static.TracedLayer.trace(Rows(), [np.ones((7, 5), "f"), x])
    traced.save_inference_model(path, feed=[1], fetch=[0], format="onnx")
    assert [(node.name, node.shape) for node in session(path).get_inputs()] == [("x", ["x_0", 3])]
    check(next(iter(run(path, {"x": x[:2]}).values())), x[:2].max(0), 1e-6)
    with pytest.raises(Exception, match="x_0 has to be 1 or more"):
        run(path, {"x": x[:0]})
    traced.save_inference_model(str(tmp_path / "c"), feed=[1], fetch=[0], format="c")
    assert "batch" not in (tmp_path / "c" / "forward.h").read_text()
    with pytest.raises(SignatureError, match="needs the sizes of the input y"):
        traced.save_inference_model(path, feed=[1], fetch=[2], format="onnx")


def test_axes_that_the_program_takes_for_equal_are_compared(tmp_path):
    def counted(x, y, v):
        return F.sum(x * y, axis=1) * len(v)
    path, (x, v) = str(tmp_path / "model.onnx"), (np.ones((3, 2), "f"), np.ones(5, "f"))
    for name in (None, "rows"):
        specs = [InputSpec([name, 2]), InputSpec([name, 2]), InputSpec([None])]
        dy2static.export.onnx(counted, specs, path)
        if name is None:                                # all first axes are taken for equal
            with pytest.raises(Exception, match="axis 0 of v has to be as long as axis 0 of x"):
                run(path, {"x": x, "y": x, "v": v})
            v = v[:3]
        else:
            v = np.ones(5, "f")
        np.testing.assert_array_equal(run(path, {"x": x, "y": x, "v": v})["output"], counted(x, x, v).array)


def test_rows_of_any_number_are_reflected(tmp_path):
    def bordered(x):
        return F.pad(x, ((0, 0), (2, 1)), "reflect")
    path = str(tmp_path / "model.onnx")
    dy2static.export.onnx(bordered, [InputSpec([None, 4])], path)
    for n in (3, 1):
        x = np.arange(4 * n, dtype="f").reshape(n, 4)
        np.testing.assert_array_equal(run(path, {"x": x})["output"], bordered(x).array)
