"""Matrix products for generated code, against NumPy: every shape of edge, transposition, stride and scale."""
import ctypes
import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static
from dy2static.backends.c import backend
from dy2static.native import compiler, library, products

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")

NAMES = {"f32": (np.float32, ctypes.c_float, 2e-5), "f64": (np.float64, ctypes.c_double, 1e-13)}
SHAPES = ((2, 2, 1), (3, 5, 7), (12, 32, 4), (13, 33, 5), (20, 48, 8), (25, 70, 33), (7, 16, 64), (64, 10, 100), (70, 40, 9),
          (2, 200, 50), (11, 17, 400), (200, 40, 30), (1, 300, 31), (1, 7, 5), (300, 1, 31), (5, 1, 1), (1, 1, 70), (1, 129, 1),
          (3, 6, 37), (8, 9, 65), (5, 4, 128), (6, 3, 48))


def matrices(m, n, k, trans_a, trans_b, dtype, pad):
    """A and B as they are stored, in the corner of larger arrays."""
    random = np.random.RandomState(m + n + k)
    a = random.standard_normal((k, m) if trans_a else (m, k)).astype(dtype)
    b = random.standard_normal((n, k) if trans_b else (k, n)).astype(dtype)
    return tuple(np.pad(x, ((0, 0), (0, pad)), constant_values=np.nan)[:, :x.shape[1]] for x in (a, b))


def call(address, name, trans_a, trans_b, m, n, k, alpha, a, b, beta, c):
    scalar, word = NAMES[name][1], ctypes.c_int64
    function = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int, word, word, word, scalar, ctypes.c_void_p, word,
                                ctypes.c_void_p, word, scalar, ctypes.c_void_p, word)(address)
    function(trans_a, trans_b, m, n, k, alpha, a.ctypes.data, a.strides[0] // a.itemsize, b.ctypes.data,
             b.strides[0] // b.itemsize, beta, c.ctypes.data, c.strides[0] // c.itemsize)


def check(address, name, m, n, k, trans_a, trans_b, alpha=1, beta=0, pad=0):
    dtype, _, tolerance = NAMES[name]
    a, b = matrices(m, n, k, trans_a, trans_b, dtype, pad)
    whole = np.full((m, n + pad), np.nan if beta == 0 else 0.5, dtype)
    c = whole[:, :n]
    before = np.zeros_like(c) if beta == 0 else c.astype(np.float64)
    outside = whole[:, n:].copy()
    expected = alpha * ((a.T if trans_a else a).astype(np.float64) @ (b.T if trans_b else b)) + beta * before
    call(address, name, trans_a, trans_b, m, n, k, alpha, a, b, beta, c)
    np.testing.assert_allclose(c, expected, rtol=tolerance, atol=tolerance * k)
    np.testing.assert_array_equal(whole[:, n:], outside)
    return c


@pytest.mark.any_python
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products(name, shape):
    address = products.address(name)
    for trans_a, trans_b, pad in itertools.product((0, 1), (0, 1), (0, 3)):
        check(address, name, *shape, trans_a, trans_b, pad=pad)
        check(address, name, *shape, trans_a, trans_b, alpha=0.5, beta=2, pad=pad)
        check(address, name, *shape, trans_a, trans_b, beta=1, pad=pad)


@pytest.mark.any_python
@pytest.mark.parametrize("name", NAMES)
def test_sizes_at_the_edges_of_blocks(name):
    for m, n, k in ((193, 33, 3), (2, 3, 385), (97, 65, 193), (1, 2, 80000), (2, 1, 80000)):
        check(products.address(name), name, m, n, k, 0, 1)
        check(products.address(name), name, m, n, k, 1, 0, beta=1)


@pytest.mark.any_python
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m, n, k", [(400, 1061, 400), (400, 385, 800), (193, 34, 800), (200, 17, 1000), (299, 61, 130), (150, 61, 90)])
def test_products_of_many_rows(name, m, n, k):
    """Panels of B are packed once, before or as they are needed: more of them than fit at a time, an edge that is done twice, one that
    is not, A read where it is."""
    address = products.address(name)
    for trans_a, trans_b in itertools.product((0, 1), (0, 1)):
        check(address, name, m, n, k, trans_a, trans_b, alpha=0.5, beta=2, pad=3)
        whole = check(address, name, m, n, k, trans_a, trans_b)
        a, b = matrices(m, n, k, trans_a, trans_b, NAMES[name][0], 0)
        some = np.empty((100, n), whole.dtype)
        call(address, name, trans_a, trans_b, 100, n, k, 1, a, b, 0, some)
        np.testing.assert_array_equal(some, whole[:100])


@pytest.mark.any_python
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m, n, k", [(2, 137, 40), (4, 200, 33), (6, 64, 19), (13, 32, 40), (13, 710, 400), (9, 31, 500), (40, 61, 800),
                                     (61, 20, 400), (100, 140, 90), (101, 530, 500)], ids=str)
def test_products_of_few_rows(name, m, n, k):
    """Wide tiles, panels packed by the first tile and in strips, one and two blocks of rows, transposed products with edges on all sides."""
    for trans_a, trans_b in itertools.product((0, 1), (0, 1)):
        check(products.address(name), name, m, n, k, trans_a, trans_b, pad=3)
        check(products.address(name), name, m, n, k, trans_a, trans_b, alpha=0.5, beta=2, pad=3)


@pytest.mark.any_python
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m, n, k", [(64, 10, 784), (784, 10, 64), (97, 16, 30), (100, 17, 9), (51, 31, 900), (50, 2, 40), (49, 3, 21),
                                     (61, 13, 8), (33, 5, 70), (8, 7, 12)], ids=str)
def test_products_of_few_columns(name, m, n, k):
    """The larger matrix read where it is, with edges on all sides; each element as where only some rows are asked for."""
    address = products.address(name)
    for trans_a, trans_b in itertools.product((0, 1), (0, 1)):
        check(address, name, m, n, k, trans_a, trans_b, alpha=0.5, beta=2, pad=3)
        check(address, name, m, n, k, trans_a, trans_b, beta=1, pad=3)
        whole = check(address, name, m, n, k, trans_a, trans_b, pad=3)
        a, b = matrices(m, n, k, trans_a, trans_b, NAMES[name][0], 3)
        some = np.empty((m - 2, n), whole.dtype)
        call(address, name, trans_a, trans_b, m - 2, n, k, 1, a, b, 0, some)
        np.testing.assert_array_equal(some, whole[:m - 2])


@pytest.mark.any_python
def test_large_products_of_two_threads():
    address = products.address("f32")
    with ThreadPoolExecutor(2) as pool:
        first, *others = pool.map(lambda _: check(address, "f32", 400, 600, 400, 0, 1), range(8))
    for other in others:
        np.testing.assert_array_equal(other, first)


@pytest.mark.any_python
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("trans_a", (0, 1))
def test_products_of_a_matrix_and_its_own_transpose_are_symmetric(name, trans_a):
    dtype, _, tolerance = NAMES[name]
    for n, k, pad in ((131, 70, 3), (200, 64, 0), (300, 33, 0)):
        a, _ = matrices(n, n, k, trans_a, 0, dtype, pad)
        whole = np.full((n, n + pad), np.nan, dtype)
        call(products.address(name), name, trans_a, 1 - trans_a, n, n, k, 0.5, a, a, 0, whole[:, :n])
        expected = 0.5 * (a.T.astype(np.float64) @ a if trans_a else a.astype(np.float64) @ a.T)
        np.testing.assert_allclose(whole[:, :n], expected, rtol=tolerance, atol=tolerance * k)
        np.testing.assert_array_equal(whole[:, :n], whole[:, :n].T)
        assert np.isnan(whole[:, n:]).all()


@pytest.mark.any_python
@pytest.mark.parametrize("m, n, k", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 4, 0), (4, 1, 0)])
def test_empty_products(m, n, k):
    for beta in (0, 2):
        check(products.address("f32"), "f32", m, n, k, 0, 0, beta=beta)


@pytest.mark.any_python
def test_nan_and_infinity_pass_through():
    a, b = np.ones((5, 6), np.float32), np.ones((6, 40), np.float32)
    a[1, 2], b[3, 4], b[5, 39] = np.nan, np.inf, -np.inf
    c = np.empty((5, 40), np.float32)
    call(products.address("f32"), "f32", 0, 0, 5, 40, 6, 1, a, b, 0, c)
    np.testing.assert_array_equal(c, a @ b)


HEADERS = f"""
#include "{library.HEADER}"
#define DY_PRODUCTS_F32
#define DY_PRODUCTS_F64
#include "{products.HEADER}"
"""

RUN = """
static int run_%s(char **p, int64_t *n, double *d)
{
    %s
    return 0;
}
"""


def generated(*bodies):
    """Functions of two arrays and a result, in one text."""
    text = HEADERS + "".join([RUN % (number, body) + library.wrapper(f"f_{number}", ("array", "array"), ("array",), run=f"run_{number}")
                              for number, body in enumerate(bodies)])
    built = compiler.build(text)
    return [library.bind(built, f"f_{number}", lambda *args: pytest.fail("declined")) for number in range(len(bodies))]


@pytest.mark.any_python
def test_from_generated_code():
    cases, bodies = [], []
    for name, (m, n, k), (trans_a, trans_b) in itertools.product(NAMES, [(2, 3, 4), (8, 8, 8), (16, 16, 16), (1, 40, 40)],
                                                                 [(0, 0), (0, 1), (1, 0)]):
        a, b = map(np.ascontiguousarray, matrices(m, n, k, trans_a, trans_b, NAMES[name][0], 0))
        cases.append((name, (m, n, k), trans_a, trans_b, a, b))
        bodies.append(f"dy_gemm_{name}({trans_a}, {trans_b}, {m}, {n}, {k}, 1, (void *)p[0], {a.shape[1]}, (void *)p[1], {b.shape[1]}, 0,"
                      f"(void *)p[2], {n});")
    for (name, (m, n, k), trans_a, trans_b, a, b), function in zip(cases, generated(*bodies)):
        dtype, _, tolerance = NAMES[name]
        c = np.empty((m, n), dtype)
        function(a, b, c)
        np.testing.assert_allclose(c, (a.T if trans_a else a) @ (b.T if trans_b else b), rtol=tolerance * 100, atol=tolerance,
                                   err_msg=f"{name} {m} {n} {k} {trans_a} {trans_b}")


@pytest.mark.any_python
def test_batches():
    random = np.random.RandomState(0)
    a, b = random.rand(3, 4, 5).astype("f"), random.rand(5, 6).astype("f")
    c = np.empty((3, 4, 6), "f")
    product, = generated("dy_gemm_batch_f32(3, 0, 0, 4, 6, 5, 1, (void *)p[0], 5, 20, (void *)p[1], 6, 0, 0, (void *)p[2], 6, 24);")
    product(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_a_child_process_multiplies():
    address = products.address("f32")
    check(address, "f32", 200, 200, 200, 0, 0)
    child = os.fork()
    if not child:
        try:
            check(address, "f32", 200, 200, 200, 0, 0)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("function, asked", [(lambda x: F.matmul(x, x), ["f32"]), (F.tanh, [])], ids=["product", "none"])
def test_the_library_of_products_is_begun_before_the_passes(function, asked, monkeypatch):
    """It takes the compiler longest."""
    order, start, usual = [], products.start, backend.run
    monkeypatch.setattr(products, "start", lambda name: order.append(name) or start(name))
    monkeypatch.setattr(backend, "run", lambda *given: order.append("passes") or usual(*given))
    to_static(function, strict=True, backend="c")(np.ones((3, 3), "f"))
    assert order[:order.index("passes")] == asked
