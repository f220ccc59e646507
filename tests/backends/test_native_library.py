"""Functions of generated code as built-in functions: what they take, what they give, what they leave to Python."""
import gc
import sys
import threading
import weakref

import numpy as np
import pytest

from dy2static.native import compiler, library

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")

HEADER = f'#include "{library.HEADER}"\n'
DECLINED = "declined"


def function(body, inputs, outputs, fallback=lambda *args: DECLINED, **options):
    """The built-in function around a C body."""
    run = f"static int run(char **p, int64_t *n, double *d)\n{{\n{body}\n}}\n"
    built = compiler.build(HEADER + run + library.wrapper("f", inputs, outputs, **options))
    return library.bind(built, "f", fallback)


def divide(**options):
    return function("const float *a = (float *)p[0], *b = (float *)p[1]; float *c = (float *)p[2];"
                    "for (int i = 0; i < 4; i++) c[i] = a[i] / b[i]; return 0;",
                    ("array", "array"), ("array",), **options)


def ones():
    return np.ones(4, np.float32)


@pytest.mark.parametrize("release_gil", [False, True])
def test_arrays(release_gil):
    out = np.empty(4, np.float32)
    assert divide(release_gil=release_gil)(ones() * 3, ones() * 2, out) is None
    assert (out == 1.5).all()


@pytest.mark.parametrize("many", range(1, 10))
def test_many_arrays(many):
    """More than a few are taken in a loop: all arrive in order, and each of them is looked at."""
    inputs, outputs = ("array",) * many + ("int",) + ("array",) * many, ("array",) * many
    f = function(f"for (int i = 0; i < {many}; i++) *(double *)p[{2 * many} + i] = *(double *)p[i] + n[0] * *(double *)p[{many} + i];"
                 "return 0;", inputs, outputs)
    left, right, out = ([np.full(1, 10 * j + i, float) for i in range(many)] for j in range(3))
    assert f(*left, 3, *right, *out) is None
    assert [float(x[0]) for x in out] == [float(a[0] + 3 * b[0]) for a, b in zip(left, right)]
    for k in {0, many - 1}:
        assert f(*left[:k], None, *left[k + 1:], 3, *right, *out) == DECLINED
        assert f(*left, 3, *right, *out[:k], read_only(np.ones(1)), *out[k + 1:]) == DECLINED


def read_only(x):
    x.flags.writeable = False
    return x


class Sub(np.ndarray):
    pass


ARGUMENTS = {
    "another byte order": (0, lambda: ones().astype(np.dtype("f4").newbyteorder())),
    "with gaps": (1, lambda: np.ones(8, np.float32)[::2]),
    "misaligned": (0, lambda: np.frombuffer(b"\0" * 17, np.uint8)[1:].view(np.float32)),
    "a subclass": (0, lambda: ones().view(Sub)),
    "a number": (0, lambda: 1.0),
    "None": (1, lambda: None),
    "a result that is read-only": (2, lambda: read_only(ones())),
    "division by zero": (1, lambda: ones() * 0),
    "overflow": (0, lambda: ones() * np.float32(1e38)),
    "invalid": (0, lambda: ones() * np.float32(np.inf) * 0),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_what_is_left_to_python(case):
    place, make = ARGUMENTS[case]
    args = [ones(), ones() * np.float32(1e-30), ones()]
    if case == "invalid":
        args[1] = ones() * 0
        make = lambda: ones() * 0
    args[place] = make()
    seen = []
    f = divide(fallback=lambda *args: seen.append(args) or DECLINED)
    assert f(*args) is DECLINED
    assert len(seen[0]) == 3 and all(a is b for a, b in zip(seen[0], args))
    # nothing is left over for the next call
    assert f(ones(), ones(), ones()) is None and len(seen) == 1


@pytest.mark.parametrize("given, is_taken", [
    (np.ones((2, 3), np.float32), True), (np.ones((3, 2), np.float32), False), (np.ones(6, np.float32), False),
    (np.ones((2, 3)), False), (np.ones((2, 3), np.int32), False), (np.ones((2, 4), np.float32), False)],
    ids=lambda x: str(x) if isinstance(x, bool) else f"{x.shape} {x.dtype}")
@pytest.mark.parametrize("is_free", [False, True])
def test_types_of_arrays(is_free, given, is_taken):
    """A function that says for which types it is written gets no others; sizes may be made of numbers that enter with the arrays."""
    types = {0: library.Declared(np.dtype("f4"), ("-1", "rows + 1") if is_free else (2, 3)), 2: library.Declared(np.dtype("q"), ())}
    f = function("*(double *)p[2] = *(float *)p[0] + *(int64_t *)p[1] + n[0]; return 0;", ("array", "int", "array"), ("array",),
                 types=types, sizes={1: "rows"} if is_free else {})
    out = np.zeros(1)
    for number in (np.array(4, "q"), np.array(4, "l")):
        assert f(given, 2, number, out) == (None if is_taken else DECLINED)
    assert out[0] == (7 if is_taken else 0)


@pytest.mark.parametrize("args", [(), (1,), (1, 2), (1, 2, 3, 4)], ids=len)
def test_another_number_of_arguments(args):
    assert divide(fallback=lambda *args: args)(*args) == args


def test_inputs_may_be_read_only():
    assert divide()(read_only(ones()), ones(), ones()) is None


def test_exceptions_of_the_fallback_are_passed_on():
    def fallback(*args):
        raise ZeroDivisionError("as eagerly")

    with pytest.raises(ZeroDivisionError, match="as eagerly"):
        divide(fallback=fallback)(ones(), ones() * 0, ones())


NUMBERS = {
    (("int",), ("int",)): ("n[1] = n[0] + 1; return 0;", (
        ((0,), 1), ((-1,), 0), ((-2,), -1), ((2 ** 62,), 2 ** 62 + 1), ((-2 ** 63,), 1 - 2 ** 63),
        ((2 ** 63,), DECLINED), ((-2 ** 63 - 1,), DECLINED), ((True,), DECLINED), ((1.0,), DECLINED),
        ((np.int64(1),), DECLINED))),
    (("bool",), ("bool",)): ("n[1] = !n[0]; return 0;", (
        ((True,), False), ((False,), True), ((1,), DECLINED), ((np.bool_(True),), DECLINED))),
    (("float",), ("float",)): ("d[1] = d[0] / 2; return 0;", (
        ((1.0,), 0.5), ((-0.0,), -0.0), ((float("inf"),), float("inf")), ((1,), DECLINED), ((np.float64(1),), DECLINED))),
    (("float", "int", "bool"), ("bool", "float", "int")): ("n[2] = 1; n[3] = n[0]; d[1] = d[0]; return n[1];", (
        ((0.5, 7, False), (True, 0.5, 7)), ((0.5, 7, True), DECLINED))),
    ((), ()): ("return 0;", (((), None),)),
    ((), ("int", "int")): ("n[0] = 1; n[1] = 2; return 0;", (((), (1, 2)),)),
}
ROWS = [(kinds, body, args, result) for kinds, (body, table) in NUMBERS.items() for args, result in table]


@pytest.mark.parametrize("kinds, body, args, expected", ROWS, ids=repr)
def test_numbers(kinds, body, args, expected):
    result = function(body, *kinds)(*args)
    if expected is DECLINED:
        assert result is DECLINED
    else:
        assert repr(result) == repr(expected)


def test_the_gil_is_released():
    inside, go_on = np.zeros(1, np.int64), np.zeros(1, np.int64)
    wait = function("volatile int64_t *a = (int64_t *)p[0], *b = (int64_t *)p[1]; *a = 1;"
                    "for (int64_t i = 0; !*b; i++) if (i > 20000000000) return 1; return 0;",
                    (), ("array", "array"), release_gil=True)
    results = []
    thread = threading.Thread(target=lambda: results.append(wait(inside, go_on)))
    thread.start()
    while not inside[0]:
        pass
    go_on[0] = 1
    thread.join()
    assert results == [None]


def test_functions_live_and_die():
    class Fallback:
        def __call__(self, *args):
            return DECLINED

    fallback = Fallback()
    f, gone = divide(fallback=fallback), weakref.ref(fallback)
    del fallback
    gc.collect()
    assert f() is DECLINED and repr(f).startswith("<built-in")
    del f
    gc.collect()
    assert gone() is None


def test_garbage_collector_leaves_the_definition_alone():
    """In a cycle that is garbage it empties what it tracks, while the function still reads its definition when it goes."""
    f = divide(fallback=DECLINED)
    definition = f.__self__[1]
    address = definition.ctypes.data
    assert not gc.is_tracked(definition) and library._word(f, 16) == address
    cycle = [f, definition]
    cycle.append(cycle)
    del f, cycle
    gc.collect()
    assert definition.ctypes.data == address and definition.any()


def test_references_are_given_back():
    f = function("n[1] = n[0]; d[0] = 1; return 0;", ("int", "array"), ("int", "float"))
    array = ones()
    before = sys.getrefcount(array), sys.getrefcount(None)
    for _ in range(1000):
        f(10 ** 6, array)
    assert abs(sys.getrefcount(None) - before[1]) < 100 and sys.getrefcount(array) == before[0]


def test_a_python_that_keeps_its_objects_otherwise(monkeypatch):
    monkeypatch.setattr(library, "_problem", lambda: "a free-threaded Python")
    with pytest.raises(library.NotSupported, match="free-threaded"):
        divide()


def test_this_python_is_supported():
    assert library._problem() == ""
