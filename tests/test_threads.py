"""Threads: programs are re-entrant, captures belong to one thread, and other threads see Chainer unchanged."""
import threading

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from against_eager import array, variable

from dy2static import to_static


def in_threads(work, count=6):
    """Run ``work(k)`` in threads at once; the first exception of any is raised here."""
    errors, start = [], threading.Barrier(count)

    def run(k):
        try:
            start.wait()
            work(k)
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def net(x, w, n):
    h = F.tanh(F.matmul(x, w)) * n
    return F.sum(h * h), h


def gradients(function, k, rows):
    x, w = variable(rows, 4, seed=k), variable(4, 5, seed=k + 7)
    loss, h = function(x, w, 0.5 + k)
    loss.backward()
    return loss.array, h.array, x.grad, w.grad


def test_first_calls_at_once():
    static = to_static(net)

    def work(k):
        for rows in (2, 3, 2, 5):
            for a, b in zip(gradients(static, k, rows), gradients(net, k, rows)):
                np.testing.assert_allclose(a, b, rtol=1e-5)
    in_threads(work)
    assert not static.dispatcher.refused


def test_one_program_many_threads():
    static = to_static(net)
    gradients(static, 0, 3), gradients(static, 1, 3), gradients(static, 2, 3)
    captures = static.cache_info().captures

    def work(k):
        for _ in range(60):
            for a, b in zip(gradients(static, k, 3), gradients(net, k, 3)):
                np.testing.assert_allclose(a, b, rtol=1e-5)
    in_threads(work)
    assert static.cache_info().captures == captures


def test_eager_work_while_another_thread_captures():
    """Captures in some threads, eager Chainer in others."""
    apply = chainer.FunctionNode.apply

    def work(k):
        for i in range(15):
            if k % 2:
                model = L.Linear(3, 2, initialW=array(2, 3, seed=i))
                y = F.sum(F.tanh(model(array(4, 3, seed=k))))
                y.backward()
                assert isinstance(y.array, np.ndarray) and model.W.grad is not None
            else:
                fresh = to_static(lambda x: F.sum(F.relu(x) * 2))
                np.testing.assert_allclose(fresh(array(2, 3, seed=i)).array, np.maximum(array(2, 3, seed=i), 0).sum() * 2, rtol=1e-5)
    in_threads(work)
    assert chainer.FunctionNode.apply is apply


class Doubling(chainer.FunctionNode):
    """A user's function: its types are learned from an eager call."""

    def forward(self, inputs):
        return inputs[0] * 2,

    def backward(self, indexes, gys):
        return gys[0] * 2,


def test_observing_and_capturing_at_once():
    apply = chainer.FunctionNode.apply

    def work(k):
        for i in range(10):
            static = to_static(lambda x: Doubling().apply((F.relu(x),))[0])
            for _ in range(3):
                np.testing.assert_allclose(static(array(2, 3, seed=i)).array, np.maximum(array(2, 3, seed=i), 0) * 2)
    in_threads(work)
    assert chainer.FunctionNode.apply is apply


def test_config_of_each_thread():
    """``chainer.config`` is thread-local; so is what a call sees of it."""
    static = to_static(lambda x: (F.dropout(x, 0.5), chainer.config.train))
    x = array(2, 3)
    static(x), static(x)

    def work(k):
        for _ in range(20):
            with chainer.using_config("train", bool(k % 2)):
                y, train = static(x)
                assert train == bool(k % 2) and (train or np.array_equal(y.array, x))
    in_threads(work)
