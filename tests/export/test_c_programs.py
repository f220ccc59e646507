"""Exported models in C: control flow, lists, free sizes, errors with lines, draws, threads; the folder and what builds it."""
import shutil
import subprocess
import threading

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import InputSpec
from dy2static.errors import ExportError
from dy2static.export.captured import exported
from dy2static.export.to_c.loader import Failed
from tests.export.c_library import GCC, STRICT, CLibrary, close

pytestmark = pytest.mark.skipif(GCC is None, reason="there is no C compiler")


class Net(chainer.Chain):
    """A convolution with what follows it, a loop that ends by what arrays hold, two results."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv, self.bn, self.fc = L.Convolution2D(3, 4, 3, pad=1), L.BatchNormalization(4), L.Linear(4 * 3 * 3, 5)

    def forward(self, x):
        h = self.fc(F.max_pooling_2d(F.relu(self.bn(self.conv(x))), 2))
        turns = 0
        while float(h.array.max()) > 0.25 and turns < 20:
            h = h * 0.5
            turns += 1
        return F.softmax(h), F.argmax(h, axis=1)


class Decoder(chainer.Chain):
    """Greedy decoding with a GRU: as many symbols as it takes to the end, in a list."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed, self.gru, self.out = L.EmbedID(7, 6), L.StatelessGRU(6, 6), L.Linear(6, 7)

    def forward(self, h):
        symbol = F.argmax(self.out(h), axis=1)
        found = []
        while len(found) < 9 and (len(found) < 2 or int(symbol.array[0]) != 0):
            h = self.gru(h, self.embed(symbol))
            symbol = F.argmax(self.out(h), axis=1)
            found.append(F.cast(symbol, "int64"))
        return F.stack(found), 2 * h


def rows(x, places):
    return x[places] * 2


def checked(x):
    assert float(x.array.min()) >= 0, "x is negative"
    if float(x.array.max()) > 9:
        raise ValueError("x is too large")
    return F.sqrt(x)


def newton(x):
    y = x
    for _ in range(12):
        y = 0.5 * (y + x / y)
        if float(abs(y.array * y.array - x.array).max()) < 1e-6:
            break
    return 1 * y


def ordered(x):
    return np.sort(x), np.argsort(x, kind="stable")


def noisy(x):
    return F.dropout(x, 0.25)


def branches(x):
    if float(x.array.sum()) > 0:
        return F.tanh(x)
    return F.exp(x)


def path(x):
    """A list that is joined, and read from its end; another one whose items a decision chooses, and which nothing reads."""
    found, unread, h = [], [], x
    while h.max() > 0.1:
        h = h * 0.5
        found.append(h[:1])
        if h[0] > 0.2:
            unread.append(h)
    return np.concatenate(found), np.stack(found[::-1], axis=1)


def truths(x):
    low, high = x < 0.5, x > 0.75
    return ~low & ~high, (low | high[:, :1]) ^ high[0], ~low.any()


def drawn(x):
    return x * np.random.rand(*x.shape), np.random.normal(1, 2, (len(x), 2)) + np.random.uniform(-1, 1, len(x))[:, None]


def apart(a, b, c, d, e):
    """Arrays of sizes of their own, of which no array has the product."""
    return np.outer(a, b).sum() + c.sum() * d.sum() - e


def parity(x):
    """By a number that may be zero, which no size is."""
    return x * 2 if len(x) % 2 == 0 else x - len(x) % 2


def ends(x):
    """Places that are zero in arrays of one row."""
    return x[-1] * 2, F.flip(x, 0) + x[::-1], F.concat([x[-1:], x[:1]], axis=0)


def weighted(x):
    """One weight for each image, where images may be so small that nothing is repeated."""
    x = F.average_pooling_2d(x, 3, 2, 1)
    weights = F.sum(x, axis=(2, 3))[:, :, None, None]
    return F.sum(x * F.broadcast_to(weights, x.shape), axis=(2, 3))


def windows(x):
    count = (x.shape[0] - 4) // 2 + 1
    return x[np.arange(4) + 2 * np.arange(count)[:, None]]


def hashed(x):
    """Bits of arrays, also in place, and of numbers."""
    h = np.zeros(len(x), np.int32) + 7
    for k in range(x.shape[1]):
        h ^= x[:, k]
        h <<= 3
        h = (h * 31) & 0xFFFFFF | h >> 29
    total, bits = int(h[0]) & 255, 0
    while total > 0:
        bits += total & 1
        total >>= 1
    return h, ~h, (h & 1) == 0, bits, (~bits ^ 5) << 2


def turned(x):
    """Rows that come round, however few there are, and those in the middle."""
    return np.roll(x, 1, axis=0), np.roll(x, -7), np.median(x, axis=0), np.round(x, 1), np.argsort(x, axis=0), np.prod(x > 0.5, axis=0), x[::2] * 2, x[::-3, ::2] + 1


def nested(x):
    """A decision within a branch, whose number the other branch does not have."""
    y = x * 2
    if float(x.array.min()) > 0 and float(x.array.mean()) < 0.6:
        y = F.exp(-x)
    n, h = 0, x
    while n < 6 and float(h.array.max()) > 0.3:
        h, n = h * 0.6, n + 1
    return y, h, n


def quotient(n):
    k = int(n.array)
    total = 0
    while k > -3:
        total += 12 // k
        k -= 1
    return n * total


class Halved(chainer.Chain):
    """Images of any size that are halved twice, by windows and by steps, and doubled again; half of them by weights of places."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a, self.b = L.Convolution2D(2, 6, 3, pad=1), L.Convolution2D(6, 6, 3, stride=2, pad=1)
            self.up, self.out = L.Deconvolution2D(6, 6, 2, stride=2), L.Convolution2D(12, 2, 1)

    def forward(self, x):
        h = F.relu(self.a(x))
        half = self.up(F.relu(self.b(F.max_pooling_2d(h, 2))))
        both = F.concat([F.unpooling_2d(half, 2, cover_all=False), h])
        return self.out(both) + F.resize_images(F.average_pooling_2d(x, 2), x.shape[2:])


class Loss(chainer.Chain):
    """A network through time with its loss: a stack for each gradient, items of free size."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a, self.b, self.out = L.Linear(4, 6), L.Linear(6, 6), L.Linear(6, 3)

    def forward(self, x, t):
        h = F.tanh(self.a(x))
        turns = 0
        while float(F.sum(h * h).array) > 1 and turns < 9:
            h = 0.7 * F.tanh(self.b(h))
            turns += 1
        return F.softmax_cross_entropy(self.out(h), t)


def float_array(*shape):
    return np.random.RandomState(3).uniform(0.25, 1, shape).astype("f")


FREE = InputSpec([None, 4])
PROGRAMS = {
    "net": (Net, [InputSpec([None, 3, 6, 6])], False, [(float_array(n, 3, 6, 6),) for n in (1, 2, 5)]),
    "decoder": (Decoder, [InputSpec([None, 6])], False, [(float_array(n, 6),) for n in (2, 3)]),
    "rows": (lambda: rows, [FREE, InputSpec([3], "int64")], False, [(float_array(5, 4), np.array([0, -5, 4]))]),
    "checked": (lambda: checked, [FREE], False, [(float_array(5, 4),)]),
    "newton": (lambda: newton, [InputSpec([3])], False, [(float_array(3),)]),
    "noisy": (lambda: noisy, [FREE], True, [(float_array(6, 4),)]),
    "branches": (lambda: branches, [FREE], False, [(float_array(2, 4),), (-float_array(3, 4),)]),
    "ordered": (lambda: ordered, [InputSpec([None])], False, [(np.array([2, np.nan, -1, -0.0, 2, -np.nan, 0], "f"),)]),
    "halved": (Halved, [InputSpec([None, 2, None, None])], False, [(float_array(n, 2, *size),) for n, size in (
        (1, (8, 12)), (2, (4, 4)), (3, (20, 64)))]),
    "path": (lambda: path, [InputSpec([None])], False, [(float_array(3),), (3 * float_array(2),)]),
    "truths": (lambda: truths, [FREE], False, [(float_array(3, 4),)]),
    "drawn": (lambda: drawn, [FREE], False, [(float_array(5, 4),)]),
    "windows": (lambda: windows, [InputSpec([None])], False, [(float_array(n),) for n in (9, 4)]),
    "apart": (lambda: apart, [InputSpec([None])] * 5, False, [[float_array(n) for n in (300, 301, 302, 303, 304)]]),
    "parity": (lambda: parity, [FREE], False, [(float_array(n, 4),) for n in (4, 5)]),
    "ends": (lambda: ends, [FREE], False, [(float_array(n, 4),) for n in (1, 2, 5)]),
    "weighted": (lambda: weighted, [InputSpec([None, 3, None, None])], False, [
        (float_array(2, 3, *size),) for size in ((5, 4), (2, 3), (2, 2))]),
    "hashed": (lambda: hashed, [InputSpec([None, 3], "int32")], False, [(np.arange(3 * n).reshape(n, 3).astype("i") * 77 - 99,) for n in (1, 4)]),
    "turned": (lambda: turned, [FREE], False, [(float_array(n, 4),) for n in (1, 2, 5)]),
    "nested": (lambda: nested, [FREE], False, [(float_array(3, 4),), (float_array(2, 4) - 0.5,), (float_array(2, 4) + 9,)]),
    "quotient": (lambda: quotient, [InputSpec([], "int64")], False, [(np.array(-7),)]),
}


#: Functions of arrays.
OF_ARRAYS = (rows, ordered, path, truths, drawn, windows, apart, parity, hashed, turned)


def eager(target, training, arrays):
    np.random.seed(4)
    with chainer.using_config("train", training), chainer.no_backprop_mode():
        result = target(*[chainer.Variable(x) for x in arrays] if target not in OF_ARRAYS else arrays)
    results = result if isinstance(result, tuple) else (result,)
    return [r.array if isinstance(r, chainer.Variable) else r for r in results]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    library, targets = CLibrary(), {}
    for name, (make, spec, training, _) in PROGRAMS.items():
        np.random.seed(5)
        targets[name] = make()
        library.add(exported(targets[name], spec, training=training))
    built = dict(zip(PROGRAMS, library.build(tmp_path_factory.mktemp("c"), ("-O2",))))
    if shutil.which("clang"):
        library.check(tmp_path_factory.mktemp("clang"), "clang")
    return targets, built


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_eager_gives(models, name):
    target, model = models[0][name], models[1][name]
    for arrays in PROGRAMS[name][3]:
        random = model.random(4) if model.entry.draws else None
        close(model(*arrays, random=random), eager(target, PROGRAMS[name][2], arrays))


def test_gradients_and_steps_of_sgd(tmp_path):
    np.random.seed(6)
    net, spec = Loss(), [InputSpec([None, 4]), InputSpec([None], "int32")]
    library = CLibrary()
    library.add([exported(net, spec), exported(net, spec, gradients=True)])
    model, = library.build(tmp_path, ("-O1",))
    optimizer = chainer.optimizers.SGD(0.5).setup(net)
    for count in (3, 2, 5):
        x, t = float_array(count, 4), np.arange(count, dtype="i") % 3
        results = model(x, t)
        loss = net(chainer.Variable(x), t)
        net.cleargrads()
        loss.backward()
        grads = {name: param.grad for name, param in net.namedparams()}
        names = [result.name for result in model.entry.program.results]
        assert names[0] == "output" and set(names[1:]) == {f"grad{name}" for name in grads}
        close(results, [loss.array, *(grads[name[4:]] for name in names[1:])])
        optimizer.update()
        model.update(results, 0.5)
    np.testing.assert_array_equal(type(model)(model.entry, model.library, model.weights)(x, t)[0], model(x, t)[0])


def test_errors_name_the_line(models):
    with pytest.raises(Failed, match=r"test_c_programs\.py:\d+: an index is out of range") as error:
        models[1]["rows"](float_array(5, 4), np.array([0, 1, 5]))
    assert error.value.code > 0
    with pytest.raises(Failed, match=r"test_c_programs\.py:\d+: division by zero"):
        models[1]["quotient"](np.array(2))
    with pytest.raises(Failed, match=r"test_c_programs\.py:\d+: AssertionError: x is negative"):
        models[1]["checked"](-float_array(5, 4))
    with pytest.raises(Failed, match=r"test_c_programs\.py:\d+: ValueError: x is too large"):
        models[1]["checked"](20 * float_array(5, 4))
    with pytest.raises(Failed, match="a size is outside"):
        models[1]["rows"](float_array(0, 4), np.array([0, 1, 2]))
    assert models[1]["rows"].arena_bytes(0) == models[1]["rows"].arena_bytes(1 << 62) == 0 < models[1]["rows"].arena_bytes(1)


def test_the_arena_is_all_the_memory_there_is(models):
    model = models[1]["net"]
    small, large = model.arena_bytes(1), model.arena_bytes(8)
    assert small < large
    x = float_array(8, 3, 6, 6)
    model(x)
    model.arena = model.arena[:small]
    model.arena_bytes = lambda *sizes: small
    try:
        with pytest.raises(Failed, match="the arena is too small"):
            model(x)
    finally:
        del model.arena_bytes


def test_other_weights_are_refused(models):
    model = models[1]["net"]
    with pytest.raises(Failed, match="not the weights"):
        type(model)(model.entry, model.library, models[1]["decoder"].weights)
    for place in (64, model.weights.nbytes - 1, 20):    # the first weight, the end of the file, the checksum itself
        weights = model.weights.copy()
        weights[place] ^= 1
        with pytest.raises(Failed, match="the weights are damaged: their checksum is another one"):
            type(model)(model.entry, model.library, weights)
    weights[16:24] = weights[64] = 0                    # weights of one's own have no checksum
    type(model)(model.entry, model.library, weights)


def test_files_of_others_are_not_overwritten(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(ExportError, match="README.md exists, and is no file of an exported model"):
        dy2static.export.c(rows, [float_array(2, 4), np.array([0, 1])], tmp_path)
    with pytest.raises(ExportError, match="README.md exists, and is no file of an exported model"):
        dy2static.export.c(rows, [float_array(2, 4), np.array([0, 1])], tmp_path / "README.md")
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    with pytest.raises(IsADirectoryError):
        dy2static.export.onnx(rows, [float_array(2, 4), np.array([0, 1])], tmp_path)
    assert not tmp_path.with_name(f"{tmp_path.name}.unfinished").exists()


def test_threads_share_a_model(models):
    model, target = models[1]["net"], models[0]["net"]
    batches = [float_array(n, 3, 6, 6) * (n + 1) for n in range(1, 9)]
    expected = [eager(target, False, (x,)) for x in batches]
    own = [type(model)(model.entry, model.library, model.weights) for _ in batches]
    for one in own:
        one._model = model._model                       # one model, an arena for each thread
    results = [[] for _ in batches]

    def work(k):
        for _ in range(20):
            results[k].append(own[k](batches[k]))
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found, wanted in zip(results, expected):
        for one in found:
            close(one, wanted)


def test_the_folder_builds_and_runs(tmp_path):
    net, x = Net(), float_array(2, 3, 6, 6)
    found = dy2static.export.c(net, [InputSpec([None, 3, 6, 6])], tmp_path, name="net")
    assert found.name == "net" and found.weights_bytes == (tmp_path / "net.weights").stat().st_size
    assert "batch" in (tmp_path / "README.md").read_text() and "-lnet" in (tmp_path / "net.pc.in").read_text()
    np.save(tmp_path / "x.npy", x)
    compile_ = [GCC, *STRICT, "-O1", "net.c", "main.c", "-o", "net_main", "-lm"]
    subprocess.run(compile_, cwd=tmp_path, check=True)
    subprocess.run(["./net_main", "--weights", "net.weights", "x.npy"], cwd=tmp_path, check=True)
    close([np.load(tmp_path / f"output_{k}.npy") for k in range(2)], eager(net, False, (x,)))
    np.save(tmp_path / "wrong.npy", x[:, :2])
    np.save(tmp_path / "none.npy", x[:0])
    (tmp_path / "huge.npy").write_bytes((tmp_path / "x.npy").read_bytes().replace(b"(2, 3, 6, 6), }" + b" " * 18, b"(4611686018427387904, 3, 6, 6), }"))
    weights = "--weights", "net.weights"
    for arguments, message in (((*weights, "wrong.npy"), "wrong.npy: has another shape"), ((*weights, "none.npy"), "net: a size is outside"),
                               ((*weights, "huge.npy"), "huge.npy: is cut off"), (("x.npy",), "has to be named: --weights net.weights"),
                               (("--weights", "x.npy", "x.npy"), "x.npy: these are not the weights")):
        done = subprocess.run(["./net_main", *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1 and message in done.stderr
    if shutil.which("c++"):
        (tmp_path / "user.cpp").write_text('#include "net.h"\nint size() { return (int)sizeof(net_results) + NET_OK; }\n')
        subprocess.run(["c++", "-std=c++98", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "user.cpp"], cwd=tmp_path, check=True)


def test_arguments_that_come_back_and_names_of_c(tmp_path):
    def main(int, x):                                       # names that C has taken
        return x, x + int, x, {"double": int.T}
    found = dy2static.export.c(main, [InputSpec([None, 3]), InputSpec([None, 3])], tmp_path)
    assert found.name == "main_" and "int_" in (tmp_path / "main_.h").read_text()
    library = CLibrary()
    library.add(exported(main, [InputSpec([None, 3]), InputSpec([None, 3])]))
    model, = library.build(tmp_path)
    a, b = float_array(4, 3), -float_array(4, 3)
    close(model(a, b), (b, a + b, b, a.T))


def test_weights_in_the_source(tmp_path):
    net, x = Net(), float_array(1, 3, 6, 6)
    dy2static.export.c(net, [InputSpec([1, 3, 6, 6])], tmp_path, weights="source")
    assert not (tmp_path / "forward.weights").exists()
    np.save(tmp_path / "x.npy", x)
    subprocess.run([GCC, *STRICT, "-O1", "forward.c", "main.c", "-o", "run", "-lm"], cwd=tmp_path, check=True)
    subprocess.run(["./run", "x.npy"], cwd=tmp_path, check=True)
    close([np.load(tmp_path / "output_0.npy")], eager(net, False, (x,))[:1])


def test_results_of_computed_sizes_are_written_whole(tmp_path):
    dy2static.export.c(windows, [InputSpec([None])], tmp_path)
    np.save(tmp_path / "x.npy", float_array(9))
    subprocess.run([GCC, *STRICT, "-O1", "windows.c", "main.c", "-o", "run", "-lm"], cwd=tmp_path, check=True)
    subprocess.run(["./run", "--weights", "windows.weights", "x.npy"], cwd=tmp_path, check=True)
    close([np.load(tmp_path / "output.npy")], [windows(float_array(9))])


def test_what_has_no_form_in_c_is_refused_with_its_line(tmp_path):
    def f(x):
        return F.relu(F.inv(x))
    with pytest.raises(ExportError, match="inv of float32.* has no form in C") as error:
        dy2static.export.c(f, [InputSpec([3, 3])], tmp_path / "none")
    assert error.value.at.file == __file__ and not (tmp_path / "none").exists()
    def joined(x):
        found = [x, x * 2]
        if float(x.array.sum()) > 0:
            while len(found) < 5:
                found.append(found[-1] * 2)
                if found[-1].array.max() > 3:
                    break
            return F.sum(F.stack(found))
        return F.sum(x)
    with pytest.raises(ExportError, match="a list that becomes an array in a branch or loop on array values has no form in C") as error:
        dy2static.export.c(joined, [InputSpec([3])], tmp_path / "none")
    assert "F.stack(found)" in str(error.value)
    with pytest.raises(ExportError, match="half of .* is an array of float16, which C does not have"):
        dy2static.export.c(lambda x, half: x + 1, [InputSpec([3]), InputSpec([3], "float16")], tmp_path / "none")
    with pytest.raises(ValueError, match="'file' or 'source'"):
        dy2static.export.c(f, [InputSpec([3, 3])], tmp_path, weights="somewhere")
