"""Gradients of lazy arrays beside differences, and what has none."""
import numpy as np
import pytest

from dy2static import CaptureError, FallbackWarning, lazy
from dy2static.errors import SignatureError
from dy2static.lazy.structures import structures

X, T = np.random.RandomState(0).rand(6, 3), np.random.RandomState(1).rand(6)
W, V = np.array([0.3, 0.9, 0.6]), np.array([1.0, -2.0, 0.5])


def loss(w):
    p = 1 / (1 + np.exp(-(lazy.array(X) @ w)))
    return ((p - T) ** 2).sum() / 3 + np.log(w).mean(axis=0) * np.sqrt(w[0]) + (w ** 3).sum() + np.where(w > 0.5, w, 0.0).max()


def differences(f, w, eps=1e-5):
    return np.array([(f(w + eps * d) - f(w - eps * d)) / (2 * eps) for d in np.eye(len(w))])


WANTED = differences(lambda w: float(loss(lazy.array(w))), W)


def test_the_gradient_of_a_function():
    value, g = lazy.value_and_grad(loss)(W)
    assert not value.is_evaluated and not g.is_evaluated
    np.testing.assert_allclose(g, WANTED, rtol=1e-6)
    np.testing.assert_allclose(value, loss(lazy.array(W)), rtol=1e-12)
    np.testing.assert_allclose(lazy.grad(loss)(W), WANTED, rtol=1e-6)


def test_gradients_go_through_elements_until_the_array_is_written_to():
    a = lazy.array(np.array([2.0, 3.0]))
    assert lazy.grad(a[0] * a[0] * a[1], [a])[0].tolist() == [12, 4]
    z = a[0] * a[1]
    a[1] = 5
    with pytest.raises(ValueError, match="has been computed"):
        lazy.grad(z, [a])
    assert float(z) == 6


def test_the_gradient_by_arrays_it_was_built_from():
    a = lazy.array(W)
    g, = lazy.grad(loss(a), [a])
    np.testing.assert_allclose(g, WANTED, rtol=1e-6)
    part = a * 2                                        # by one of two intermediate results that are equal
    np.testing.assert_allclose(lazy.grad((part * (a * 2)).sum(), part), 2 * W)


def test_second_derivatives():
    hessian = differences(lambda w: np.asarray(lazy.grad(loss)(w)), W)
    np.testing.assert_allclose(lazy.hessian_vector_product(loss, (W,), (V,))[0], hessian @ V, rtol=1e-5)
    np.testing.assert_allclose(lazy.grad(lambda w: (lazy.grad(loss)(w) * V).sum())(W), hessian @ V, rtol=1e-5)


def test_orders_and_numbers():
    def cube(s):
        return s ** 3
    assert [float(f(2.0)) for f in (lazy.grad(cube), lazy.grad(lazy.grad(cube)), lazy.grad(lazy.grad(lazy.grad(cube))))] == [12, 12, 6]


def test_products_with_jacobians():
    y, tangent = lazy.jvp(lambda w: np.exp(w) * w, (W,), (V,))
    np.testing.assert_allclose(tangent, np.exp(W) * (1 + W) * V)
    np.testing.assert_allclose(y, np.exp(W) * W)
    y, pullback = lazy.vjp(lambda a, b: a @ b, X, W)
    np.testing.assert_allclose(y, X @ W)                # computed before the gradients are asked for
    by_a, by_b = pullback(T)
    np.testing.assert_allclose(by_a, np.outer(T, W))
    np.testing.assert_allclose(by_b, T @ X)


def test_what_was_computed_inside_goes_on():
    def f(w):
        h = w * w
        z = h[0] * 3 + h.sum() if float(h.sum()) > 0 else h.sum()
        assert h.is_evaluated
        return z + h[1]
    np.testing.assert_allclose(lazy.grad(f)(W), 2 * W + [6 * W[0], 2 * W[1], 0])


def test_an_outer_gradient_goes_through_an_inner_one_that_was_computed():
    def f(s):
        g = lazy.grad(lambda w: (w * w * s).sum())(lazy.array(W))
        str(g)
        return (g * s).sum()
    np.testing.assert_allclose(lazy.grad(f)(3.0), 12 * W.sum())


def test_writes_inside():
    def f(w):
        y = w * 2
        seen = y.T
        y *= w[0]
        return (y + seen).sum()
    np.testing.assert_allclose(lazy.grad(f)(W), [4 * W.sum() + 4 * W[0], 4 * W[0], 4 * W[0]])


A = np.array([[3, 0.5, 0.25], [-0.5, 4, 1], [0.125, 0.75, 2]])
WEIGHTS = np.arange(1.0, 10).reshape(3, 3)


def stored(index, value):
    def f(w):
        y = w.reshape(3, 1) * A
        y[index] = value(w)
        return (y * y * WEIGHTS).sum()
    return f


def updated(w):
    y = w * 2
    y[1:] *= w[0]
    y[0] += 3 * y[2]
    return (y * y).sum()


ASSIGNMENTS = {
    "element": stored((1, 2), lambda w: w[0] * w[1]), "row": stored(1, lambda w: w * w), "number": stored((slice(None), 1), lambda w: 2.5),
    "view": stored((slice(None, None, -2), slice(1, None)), lambda w: w[1:] ** 2), "mask": stored(A > 0.6, lambda w: w[2] * w[2]),
    "twice": stored(([0, 2, 0], [1, 1, 1]), lambda w: w * w), "updated": updated,
}
MATRICES = {
    "inv": lambda w: (np.linalg.inv(A * w) * WEIGHTS).sum(), "det": lambda w: np.linalg.det(A * w),
    "solve": lambda w: (np.linalg.solve(A * w, w * w) * W).sum(), "columns": lambda w: (np.linalg.solve(A * w, A + w) * WEIGHTS).sum(),
    "cholesky": lambda w: (np.linalg.cholesky(A @ A.T + np.diag(w * w)) * WEIGHTS).sum(), "trace": lambda w: np.trace(A * w * w, 1),
    "diagonal": lambda w: (np.diagonal((A * w).reshape(3, 3, 1), -1, 1, 0) * w[:2]).sum(), "norm": lambda w: np.linalg.norm(A * w),
    "norms": lambda w: (np.linalg.norm(A * w, axis=1, keepdims=True) * WEIGHTS).sum(), "outer": lambda w: (np.outer(w, w) * A).sum(),
}


@pytest.mark.parametrize("f", [*ASSIGNMENTS.values(), *MATRICES.values()], ids=[*ASSIGNMENTS, *MATRICES])
def test_item_assignment_and_linear_algebra(f):
    value, g = lazy.value_and_grad(f)(W)
    np.testing.assert_allclose(value, f(W.copy()), rtol=1e-12)
    np.testing.assert_allclose(g, differences(f, W), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f", [MATRICES["solve"], ASSIGNMENTS["row"]], ids=["solve", "row"])
def test_second_derivatives_of_these(f):
    hessian = differences(lambda w: np.asarray(lazy.grad(f)(w)), W)
    np.testing.assert_allclose(lazy.hessian_vector_product(f, (W,), (V,))[0], hessian @ V, rtol=1e-5)


@pytest.mark.parametrize("f", [MATRICES["cholesky"], ASSIGNMENTS["twice"], ASSIGNMENTS["mask"]], ids=["cholesky", "twice", "mask"])
def test_native_gradients_of_these(f):
    with lazy.backend("c"):
        g = lazy.grad(f)(W.astype("f"))
        assert g.dtype == np.float32
        np.testing.assert_allclose(g, differences(f, W), rtol=1e-4)


def test_what_is_singular_fails_as_in_numpy():
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        lazy.grad(lambda w: np.linalg.inv(np.zeros((3, 3)) * w).sum())(W).evaluate()


def test_as_many_stores_as_contents_say_have_none():
    def f(w):
        y = w * 2
        y[y > 1] = w[y > 1]
        return y.sum()
    with pytest.raises(CaptureError, match="cannot be compiled"):
        lazy.grad(f)(W).evaluate()


def test_a_loop_of_steps_is_compiled_once():
    step = lazy.value_and_grad(lambda w, b, x, t: ((x @ w + b - t) ** 2).mean(), by=(0, 1))
    w, b, rng = lazy.array(np.zeros(3)), lazy.array(0.0), np.random.RandomState(0)
    made = 0
    for number in range(40):
        made = structures.made if number == 2 else made
        x = rng.rand(8, 3)
        _, (gw, gb) = step(w, b, lazy.array(x), lazy.array(x @ [1, 2, 3.0] + 4))
        w -= 0.3 * gw
        b = b - 0.3 * gb
        lazy.evaluate(w, b)
        assert w._node.depth == 0 and not w._node.args  # nothing is kept of earlier steps
    assert structures.made == made
    assert abs(float(b) - 4) < 1


def test_no_dependence_is_zeros():
    a, b = lazy.value_and_grad(lambda a, b: (a * 2).sum(), by=(0, 1))(W, W)[1]
    assert b.tolist() == [0, 0, 0] and a.tolist() == [2, 2, 2]


@pytest.mark.parametrize("f, error", [
    (lambda w: np.sort(w).sum(), "goes through sort"), (lambda w: np.median(w), "goes through median"),
    (lambda w: w * 2, "take the sum or the mean"),
])
def test_what_has_no_gradient(f, error):
    with pytest.raises((CaptureError, TypeError), match=error):
        lazy.grad(f)(W).evaluate()


def test_what_is_called_at_once_has_none():
    with pytest.warns(FallbackWarning), pytest.raises(CaptureError, match="svd has no gradient"):
        lazy.grad(lambda w: np.linalg.svd(w.reshape(1, 3))[1].sum())(W)


def test_what_was_computed_before_has_none():
    a = lazy.array(W)
    h = a * 2
    h.evaluate()
    for y in (h, h[0] + a.sum(), (h + 1).sum()):
        with pytest.raises(ValueError, match="has been computed"):
            lazy.grad(y, [a])


def test_places_of_arguments():
    with pytest.raises(SignatureError, match="argument 1"):
        lazy.grad(loss, by=1)(W)
    with pytest.raises(TypeError, match="returns a lazy array"):
        lazy.grad(lambda w: 3.0)(W)


def test_ties_of_the_axis():
    np.testing.assert_allclose(lazy.grad(lambda x: (x.sum(axis=0) * x.mean(axis=1)[:3]).sum())(X[:3]),
                               np.broadcast_to(X[:3].mean(axis=1), (3, 3)) + X[:3].sum(axis=0)[:, None] / 3)
