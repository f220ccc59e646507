"""Numbers whose size decides a dtype, or an exception: compiled calls give what NumPy gives for the number of this very call."""
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import to_static
from dy2static.record.guards import ExpressionMatch
from dy2static.symbolic import number_ranges

BY_VALUE = int(np.__version__.split(".")[0]) < 2

INTS = (1, 2, 3, 127, 128, 200, -1, -129, 255, 256, 40000, 70000, 2 ** 31, 2 ** 40, 2 ** 63, 2 ** 64, 7)
FLOATS = (0.5, 1.5, 2.5, 65504.0, 70000.0, -1e5, 1e39, -0.0, float("inf"), float("nan"), 0.1)


def outcome(function, *args):
    """What a call gives, as something that can be compared; the class of an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = function(*args)
        except Exception as error:
            return type(error)
    return [(type(x), getattr(x, "dtype", None), np.shape(x), repr(np.asarray(x).tolist())) for x in (found if type(found) is tuple else (found,))]


def differences(function, calls, **options):
    """The calls that give something else compiled, and the compiled function."""
    compiled = to_static(function, **options)
    found = []
    for call in calls:
        eager, own = outcome(function, *call), outcome(compiled, *call)
        if eager != own:
            found.append((call[1:], eager, own))
    return found, compiled


def meets(a, n):
    return a + n, n - a, a * n, a < n, a == n, np.minimum(a, n), np.where(a > 1, a, n), np.add(a, n * 3)


def added(a, n):
    b = a.copy()
    b += n
    return b


def stored(a, n):
    b = a.copy()
    b[0] = n
    return b


CALLS = {
    "meets": meets, "added": added, "stored": stored, "scaled": lambda a, n: (a * n).astype("d"), "divided": lambda a, n: a / n,
    "clipped": lambda a, n: np.clip(a, 0, n), "full": lambda a, n: np.full((2,), n), "full_like": lambda a, n: np.full_like(a, n),
    "array": lambda a, n: np.array([n, 1]), "asarray": lambda a, n: np.asarray(n) + a, "appended": lambda a, n: np.append(a, n),
    "initial": lambda a, n: np.sum(a, initial=n), "whole": lambda a, n: a // n, "and": lambda a, n: a & n,
    "of a sum": lambda a, n: a.sum() + n, "joined": lambda a, n: np.concatenate([a, np.array([n])]),
    "converted": lambda a, n: a + int(n), "range": lambda a, n: np.arange(3) * n + a[:1], "both": lambda a, n: np.clip(a, -n, n)}


def arrays(*dtypes):
    return {dtype: np.array([1, 2], dtype) for dtype in dtypes}


@pytest.mark.parametrize("name, dtype", [("meets", dtype) for dtype in ("bool", "int32", "uint8", "float16")] +
                         [(name, dtype) for name in CALLS for dtype in ("int8", "float32")])
def test_a_number_that_varies_gives_the_dtype_of_its_own_size(name, dtype):
    for array in (np.array([1, 2], dtype), *((np.array(1, dtype), np.zeros(0, dtype)) if name in ("meets", "added") else ())):
        for numbers in (INTS, FLOATS):
            assert differences(CALLS[name], [(array, n) for n in numbers], backend="numpy")[0] == []


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_native_code_has_the_dtypes_too(dtype, monkeypatch):
    array = np.array([1, 2], dtype)
    for numbers in ((1, 2, 3, 200, -1, 70000, 2 ** 63, 7), (0.5, 1.5, 2.5, 70000.0, 1e39, 0.1)):
        found, compiled = differences(meets, [(array, n) for n in numbers], backend="c")
        assert found == []
    assert differences(added, [(array, n) for n in (1, 2, 3, 200, 16777217, 7)], backend="c")[0] == []
    assert compiled.stats()["native"]


def of_item(a, s):
    return a + s.item(), a < s.item(), np.where(a > 1, a, s.item())


def of_array(a, s):
    return a + s, a - np.stack([s, s]).max(), np.minimum(a, s[()]), a == s


def in_place(a, s):
    b = a.copy()
    b += s.item()
    return b


def in_a_loop(a, s):
    k, n = s.item(), 0
    while n < int(float(s) == float(s)) + 1:
        a = a * k
        n += 1
    return a


def in_a_branch(a, s):
    k = s.item()
    if float(s) > 2:
        k = k + 1
    return a * k


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function", [of_item, of_array, in_place, in_a_loop, in_a_branch])
def test_a_number_that_the_run_computes_gives_the_dtype_of_its_own_size(function, backend):
    dtypes = ("int8", "float32") if backend == "c" else ("int8", "uint8", "float16", "float64")
    for array in arrays(*dtypes).values():
        for dtype, numbers in (("int64", (1, 2, 200, 70000, -1, 2 ** 40, 7)), ("float64", (0.5, 70000.0, 1e39, float("nan"), 0.1))):
            calls = [(array, np.array(n, dtype)) for n in numbers]
            assert differences(function, calls, backend=backend)[0] == []


def test_a_state_that_grows_from_call_to_call():
    class Counter:
        def __init__(self):
            self.n = 1

        def __call__(self, a):
            self.n = self.n * 10 + 7
            return a + self.n, a * self.n

    for backend in ("numpy", "c"):
        eager, own = Counter(), Counter()
        compiled = to_static(own, backend=backend)
        for _ in range(22):
            array = np.array([1, 2], "int32")
            assert outcome(eager, array) == outcome(compiled, array)
        assert eager.n == own.n


def test_a_scale_that_a_loop_multiplies():
    def steps(x, k):
        n = 0
        while n < int(x.sum()):
            k *= 7e10 / 5
            n += 1
        return x * k

    for backend in ("numpy", "c"):
        calls = [(np.array([n], "float32"), 1.0) for n in (3, 5, 2, 3)]
        assert differences(steps, calls, backend=backend)[0] == []


def test_numbers_that_decide_nothing_are_not_guarded():
    def doubles(a, n):
        return a + n, a * n, a < n

    def variables(x, n):
        return F.sum(x * n + n).array

    for function, array in ((doubles, np.array([1.0, 2.0])), (variables, chainer.Variable(np.ones(2, "f")))):
        found, compiled = differences(function, [(array, n) for n in (0.5, 1.5, 70000.0, 1e38, 2.5)], backend="numpy")
        assert found == [] and compiled.stats()["captures"] == 2
        assert not any(isinstance(guard, ExpressionMatch) for guard in compiled.program(array, 0.5).guards)


def test_two_numbers_of_one_call_each_decide():
    def clipped(a, low, high):
        return np.clip(a, low, high)

    numbers = [(0, 1), (-1, 2), (-2, 3), (200, 200), (1, 200), (200, 1), (-200, 200), (1, 2), (40000, 200), (1, 1)]
    for array in arrays("int8", "uint8", "float16").values():
        assert differences(clipped, [(array, *pair) for pair in numbers], backend="numpy")[0] == []


def test_classes_end_where_the_least_dtype_changes():
    for kind, classes in number_ranges._CLASSES.items():
        least = [tuple(np.min_scalar_type(end) for end in ends) for ends in classes]
        assert all(low == high for low, high in least)
        if kind == "f" and BY_VALUE:
            assert [str(low) for low, _ in least] == ["float64", "float32", "float16", "float32", "float64"]


@pytest.mark.skipif(not BY_VALUE, reason="NumPy 2 chooses dtypes by types")
def test_a_call_that_had_effects_says_so():
    def drawn(a, s):
        noise = np.random.rand()
        return a * (s.item() + 0 * noise)

    compiled = to_static(drawn, backend="numpy")
    array = np.ones(2, "float32")
    for n in (0.5, 1.5):
        compiled(array, np.array(n))
    with pytest.raises(dy2static.errors.RunError, match="how large a number is"):
        compiled(array, np.array(1e39))
    assert compiled(array, np.array(1e39)).dtype == np.float64


@pytest.mark.skipif(not BY_VALUE, reason="NumPy 2 chooses dtypes by types")
def test_what_cannot_be_compiled_names_the_line():
    def scaled(a, s):
        return a * s.item()

    compiled = to_static(scaled, backend="numpy", strict=True)
    array = np.ones(2, "float32")
    with pytest.raises(dy2static.errors.CaptureError, match="how large a number is") as caught:
        for n in (0.5, 1e39, 0.5):
            compiled(array, np.array(n))
    assert "a * s.item()" in str(caught.value)


def test_random_sessions():
    random = np.random.RandomState(0)
    names = [name for name in CALLS if name != "range"]
    for _ in range(25):
        function = CALLS[names[random.randint(len(names))]]
        array = np.array([1, 2], ["int8", "uint8", "int16", "uint32", "float16", "float32", "float64"][random.randint(7)])
        numbers = [int(random.choice([-1, 1])) * (1 << int(random.randint(0, 34))) + int(random.randint(-1, 2)) for _ in range(6)]
        if random.rand() < 0.5:
            numbers = [float(n) * 10.0 ** random.randint(-3, 32) for n in numbers]
        found, _ = differences(function, [(array, n) for n in (*numbers, *numbers[:3])], backend="numpy")
        assert found == []


def test_loaded_models_check_numbers_and_go_on(tmp_path):
    def scaled(a, s, n):
        return a * s.item() + n

    compiled = to_static(scaled, backend="numpy")
    array = np.ones(2, "float32")
    for n in (1, 2, 3):
        compiled(array, np.array(0.5), n)
    dy2static.save(compiled, tmp_path / "scaled")
    loaded = dy2static.load(tmp_path / "scaled")
    assert outcome(loaded, array, np.array(0.5), 7) == outcome(scaled, array, np.array(0.5), 7)
    if BY_VALUE:
        for number, n in ((1e39, 7), (0.5, 70000)):
            with pytest.raises(dy2static.errors.Dy2StaticError):
                loaded(array, np.array(number), n)
    assert outcome(loaded, array, np.array(0.25), 9) == outcome(scaled, array, np.array(0.25), 9)


def test_functions_that_stay_whole_get_numbers_as_they_are():
    def clipped(x, s):
        return F.clip(x, -1e30, s.item()).array, F.clip(x, -1e30, float(s) * 2).array

    calls = [(chainer.Variable(np.ones(2, "f")), np.array(n)) for n in (0.5, 1.5, 70000.0, 1e39, 2.5)]
    assert differences(clipped, calls, backend="numpy")[0] == []


class Steps(chainer.Chain):
    """A step of training on part of a batch, which a counter chooses."""

    def __init__(self, end):
        super().__init__(layer=L.Linear(4, 3, initialW=np.linspace(-1, 1, 12, dtype="f").reshape(3, 4)))
        self.end, self.count = end, 0
        self.optimizer = chainer.optimizers.SGD(0.1).setup(self)

    def step(self, x, t):
        self.count += 1
        n = self.end(self.count)
        loss = F.softmax_cross_entropy(self.layer(x[:n]), t[:n])
        self.cleargrads()
        loss.backward()
        self.optimizer.update()
        return loss


@pytest.mark.parametrize("end, captures, is_whole", [(lambda count: min(4, 1 + count // 6), 5, True), (lambda count: 1 + count ** 2 % 37, 13, False)],
                         ids=["few", "many"])
def test_expressions_decide_sizes(end, captures, is_whole):
    """Where a size has to be known, the value of the expression is what a program is for, not the numbers in it, nor the labels."""
    eager, ours = Steps(end), Steps(end)
    static = to_static(Steps.step, backend="numpy")
    rng = np.random.RandomState(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dy2static.FallbackWarning)
        for _ in range(28):
            x, t = rng.randn(40, 4).astype("f"), rng.randint(0, 3, 40).astype("i")
            np.testing.assert_allclose(static(ours, x, t).array, eager.step(x, t).array, rtol=1e-5)
            np.testing.assert_allclose(ours.layer.W.array, eager.layer.W.array, rtol=1e-4, atol=1e-6)
    assert ours.count == eager.count == 28
    found = static.stats()
    assert found["fallbacks"] == 0 and (found["cuts"] == 0) is is_whole and found["captures"] <= captures
