"""Functions with decisions and loops on array values, called many times, and what they may not write."""
import builtins
import gc
import json
import math
import threading

import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable

from dy2static import FallbackWarning, to_static
from dy2static.control_flow import staging


def param(*values):
    return chainer.Parameter(np.array(values, "f"))


def shrink_loop(x, w):
    n = 0
    while float((x * x).array.sum()) > 0.5 and n < 10:
        x = F.tanh(x * w)
        if float(x.array[0]) > 0.2:
            x = x - 0.1
        n += 1
    return x, n


@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize("shape", [(3,), (1,), (2, 2)])
def test_dtypes(dtype, shape):
    """Values, dtypes and gradients in half, single and double precision."""
    def make(compile):
        w = chainer.Parameter(np.full(shape, 0.75, dtype))

        def f(x):
            n = 0
            while float((x * x).array.sum()) > 0.5 and n < 10:
                x = F.tanh(x * w)
                n += 1
            if n > 2:
                x = x * w
            return x
        return compile(f), [w]
    calls = [lambda k=k: (variable(*shape, seed=k, dtype=dtype, low=-2, high=2),) for k in range(4)]
    against_eager.check(make, calls, compiled=True)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3)])
def test_sizes(shape):
    """Arrays without axes and without elements."""
    def make(compile):
        def f(x):
            while float(x.array.sum()) > 0.5:
                x = x * 0.5
            return F.sin(x) if x.array.sum() > 0 else F.sum(x * 2)
        return compile(f), None

    def make_same_shape(compile):
        def f(x):
            while float(x.array.sum()) > 0.5:
                x = x * 0.5
            return F.sin(x) if x.array.sum() > 0 else x
        return compile(f), None
    calls = [lambda low=low: (variable(*shape, low=low, high=low + 2),) for low in (-2, 0, 1)]
    against_eager.check(make, calls)
    against_eager.check(make_same_shape, calls, compiled=True)


def test_no_recapture():
    """One program serves all branches and trip counts."""
    w = param(0.5, 0.75, 0.9)
    @to_static
    def g(x):
        return shrink_loop(x, w)[0]
    for k in range(50):
        g(variable(3, seed=k, low=-2, high=2))
    assert g.stats()["captures"] == 1 and g.stats()["fallbacks"] == 0


def test_many_calls_before_backward():
    """Each call keeps the branches it took and what its loop saved."""
    def total(compile):
        w = param(0.5, 0.75, 0.9)

        def step(x):
            return shrink_loop(x, w)[0]
        run = compile(step)
        xs = [variable(3, seed=k, low=-2, high=2) for k in range(12)]
        ys = [run(x) for x in xs]
        gc.collect()
        for k in (5, 3, 8):
            ys[k].grad = np.ones(3, "f")
            ys[k].backward()
        against_eager.weighted_sum(ys).backward()
        return [x.grad for x in xs] + [w.grad]
    for a, b in zip(total(lambda f: f), total(to_static)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_many_trips():
    """A loop of many iterations, and its gradient."""
    def run(compile):
        def f(x):
            n = 0
            while n < 5000 and float(x.array.sum()) > -1e9:
                x = x * 0.9999
                n += 1
            return x, n
        x = variable(3, dtype="d")
        y, n = compile(f)(x)
        F.sum(y).backward()
        return y.array, x.grad, n
    for a, b in zip(run(lambda f: f), run(to_static)):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_threads():
    """Calls of one program on several threads at once, each with its own branches."""
    w = param(0.5, 0.75, 0.9)

    def step(x):
        return shrink_loop(x, w)[0]
    run, failed = to_static(step), []
    expected = {k: step(variable(3, seed=k, low=-2, high=2)).array for k in range(20)}
    run(variable(3))

    def work(first):
        for k in range(first, 20, 2):
            y = run(variable(3, seed=k, low=-2, high=2))
            if not np.allclose(y.array, expected[k], rtol=2e-5):
                failed.append(k)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_messages_made_of_array_values_are_compiled():
    """An error under a decision is made by the run, with what arrays hold in its text."""
    def f(x):
        if x.array.min() < 0:
            raise ValueError("low: %.2f" % x.array.min(), len(x))
        return F.sqrt(x)
    compiled = to_static(f, strict=True)
    for low in (0.5, -2, 0.5, -1):
        x = variable(3, low=low, high=low + 0.5)
        try:
            expected = f(x).array
        except ValueError as error:
            with pytest.raises(ValueError) as found:
                compiled(x)
            assert found.value.args == error.args
        else:
            np.testing.assert_array_equal(compiled(x).array, expected)


def write_a_name(x):
    builtins.a_name_of_the_tests = 3
    return x * 2


def write_a_name_in_a_branch(x):
    if x.array[0] > 0:
        builtins.a_name_of_the_tests = 3
    return x * 2


def write_into_the_dict(x):
    __builtins__["a_name_of_the_tests"] = 3
    return x * 2


@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
@pytest.mark.parametrize("function", [write_a_name, write_a_name_in_a_branch, write_into_the_dict], ids=lambda f: f.__name__)
def test_written_built_in_names(function):
    """They are written in each call, as in eager mode."""
    compiled = to_static(function)
    for sign in (1, -1, 1):
        found = []
        for each in (function, compiled):
            each(sign * variable(3, low=0.1, high=1))
            found.append(vars(builtins).pop("a_name_of_the_tests", None))
        assert found[0] == found[1]


def write_to_modules(x):
    math.a_name_of_the_tests = np.a_name_of_the_tests = 3
    return F.relu(x)


def write_to_a_class(x):
    json.JSONEncoder.a_name_of_the_tests = 3
    return F.relu(x)


def count_on_a_function(x):
    F.relu.a_name_of_the_tests = getattr(F.relu, "a_name_of_the_tests", 0) + 1
    return F.relu(x)


def write_by_name(x):
    setattr(math, "a_name_of_the_tests", 3)
    return F.relu(x)


def write_and_delete(x):
    import json as module
    module.a_name_of_the_tests = 3
    y = F.relu(x) * module.a_name_of_the_tests
    del module.a_name_of_the_tests
    return y


@pytest.mark.parametrize("function", [write_to_modules, write_to_a_class, count_on_a_function, write_by_name, write_and_delete],
                         ids=lambda f: f.__name__)
def test_attributes_of_libraries(function):
    """They are written by Python in each call, with a warning, and never by a capture."""
    compiled = to_static(function)
    owners = math, np, json, json.JSONEncoder, F.relu

    def call(each):
        results = [each(variable(3, low=-1, high=1)).array for _ in range(3)]
        return results, [vars(owner).get("a_name_of_the_tests") for owner in owners]
    try:
        expected = call(function)
        for owner in owners:
            if "a_name_of_the_tests" in vars(owner):
                del owner.a_name_of_the_tests
        with pytest.warns(FallbackWarning, match="an attribute of the library object .* is set or deleted"):
            found = call(compiled)
    finally:
        for owner in owners:
            if "a_name_of_the_tests" in vars(owner):
                del owner.a_name_of_the_tests
    assert found[1] == expected[1]
    np.testing.assert_array_equal(found[0], expected[0])


def test_snapshots_leave_built_in_names_out(monkeypatch):
    """There are hundreds, and each block would be compared with all of them."""
    made, kind = [], staging.Snapshot
    monkeypatch.setattr(staging, "Snapshot", lambda *args: made.append(kind(*args)) or made[-1])
    to_static(shrink_loop)(variable(3, low=0.1, high=1), param(1, 2, 3))
    assert made and not any("__import__" in kept.contents for before in made for kept in before.kept.values() if isinstance(kept.item, dict))
