"""Updates of float16 on a GPU, by Chainer's optimizers: the arithmetic of their CUDA kernels.

A kernel of CuPy computes an expression of float16 in float32, and rounds where it assigns.  Its hyperparameters are float16, too;
those of Adam are float32.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from chainer.optimizers import (
    ada_delta,
    ada_grad,
    adam,
    corrected_momentum_sgd,
    momentum_sgd,
    nesterov_ag,
    rmsprop,
    rmsprop_graves,
    sgd,
)


def _wide(x: Any) -> Any:
    """An array of float16 as float32."""
    return x.astype(np.float32)


def _assign(x: Any, wide: Any) -> None:
    """Round an array of float32 to float16, into the memory of another one: the larger of two that are the same."""
    half = wide.astype(np.float16)
    np.maximum(half, half, out=x)


def _rounded(like: Any, number: Any) -> Any:
    """A hyperparameter, rounded to float16, for each element of an array: times one, also where the element is NaN."""
    ones = ((like == like) | (like != like)).astype(np.float16)
    return (ones * number).astype(np.float32)


def _sgd(self: Any, param: Any) -> None:
    if param.grad is not None:
        x = param.data
        _assign(x, _wide(x) - _rounded(x, self.hyperparam.lr) * _wide(param.grad))


def _momentum_sgd(self: Any, param: Any) -> None:
    if param.grad is not None:
        x, v, hp = param.data, self.state["v"], self.hyperparam
        _assign(v, _rounded(x, hp.momentum) * _wide(v) - _rounded(x, hp.lr) * _wide(param.grad))
        _assign(x, _wide(x) + _wide(v))


def _corrected_momentum_sgd(self: Any, param: Any) -> None:
    if param.grad is not None:
        x, v, hp = param.data, self.state["v"], self.hyperparam
        _assign(v, _rounded(x, hp.momentum) * _wide(v) - _wide(param.grad))
        _assign(x, _wide(x) + _rounded(x, hp.lr) * _wide(v))


def _nesterov_ag(self: Any, param: Any) -> None:
    if param.grad is not None:
        x, v, grad = param.data, self.state["v"], _wide(param.grad)
        lr, momentum = _rounded(x, self.hyperparam.lr), _rounded(x, self.hyperparam.momentum)
        _assign(v, _wide(v) * momentum - lr * grad)
        _assign(x, _wide(x) + (momentum * momentum * _wide(v) - (1 + momentum) * lr * grad))


def _ada_grad(self: Any, param: Any) -> None:
    if param.grad is not None:
        x, h, hp, grad = param.data, self.state["h"], self.hyperparam, _wide(param.grad)
        _assign(h, _wide(h) + grad * grad)
        _assign(x, _wide(x) - _rounded(x, hp.lr) * grad / (np.sqrt(_wide(h)) + _rounded(x, hp.eps)))


def _ada_delta(self: Any, param: Any) -> None:
    if param.grad is not None:
        x, msg, msdx, grad = param.data, self.state["msg"], self.state["msdx"], _wide(param.grad)
        one_minus_rho, eps = _rounded(x, 1 - self.hyperparam.rho), _rounded(x, self.hyperparam.eps)
        _assign(msg, _wide(msg) + one_minus_rho * (grad * grad - _wide(msg)))
        dx = _wide((np.sqrt((_wide(msdx) + eps) / (_wide(msg) + eps)) * grad).astype(np.float16))
        _assign(msdx, _wide(msdx) + one_minus_rho * (dx * dx - _wide(msdx)))
        _assign(x, _wide(x) - dx)


def _rmsprop(self: Any, param: Any) -> None:
    if param.grad is not None:
        x, ms, hp, grad = param.data, self.state["ms"], self.hyperparam, _wide(param.grad)
        alpha, eps = _rounded(x, hp.alpha), _rounded(x, hp.eps)
        _assign(ms, alpha * _wide(ms) + (1 - alpha) * grad * grad)
        denominator = np.sqrt(_wide(ms) + eps) if hp.eps_inside_sqrt else np.sqrt(_wide(ms)) + eps
        _assign(x, _wide(x) - _rounded(x, hp.lr) * grad / denominator)


def _rmsprop_graves(self: Any, param: Any) -> None:
    if param.grad is not None:
        x, n, g, delta = param.data, self.state["n"], self.state["g"], self.state["delta"]
        hp, grad, alpha = self.hyperparam, _wide(param.grad), _rounded(param.data, self.hyperparam.alpha)
        _assign(n, alpha * _wide(n) + (1 - alpha) * grad * grad)
        _assign(g, alpha * _wide(g) + (1 - alpha) * grad)
        root = np.sqrt(_wide(n) - _wide(g) * _wide(g) + _rounded(x, hp.eps))
        _assign(delta, _wide(delta) * _rounded(x, hp.momentum) - _rounded(x, hp.lr) * grad / root)
        _assign(x, _wide(x) + _wide(delta))


def _adam(self: Any, param: Any) -> None:
    if param.grad is not None:
        hp, grad, x = self.hyperparam, _wide(param.grad), param.data
        self._check_eps(np.float32)
        m, v = _wide(self.state["m"]), _wide(self.state["v"])
        m = m + (1 - hp.beta1) * (grad - m)
        v = v + (1 - hp.beta2) * (grad * grad - v)
        largest = v
        if hp.amsgrad:
            largest = np.maximum(_wide(self.state["vhat"]), v)
            _assign(self.state["vhat"], largest)
        _assign(self.state["m"], m)
        _assign(self.state["v"], v)
        if hp.adabound:
            lower, upper = self.bounds
            step = np.clip(self.alpha_t / (np.sqrt(largest) + hp.eps), lower, upper) * m
        else:
            step = self.alpha_t * m / (np.sqrt(largest) + hp.eps)
        _assign(x, _wide(x) - hp.eta * (step + hp.weight_decay_rate * _wide(x)))


#: What updates float16 as a rule's kernel does.
HALF = {
    sgd.SGDRule: _sgd, momentum_sgd.MomentumSGDRule: _momentum_sgd,
    corrected_momentum_sgd.CorrectedMomentumSGDRule: _corrected_momentum_sgd, nesterov_ag.NesterovAGRule: _nesterov_ag,
    ada_grad.AdaGradRule: _ada_grad, ada_delta.AdaDeltaRule: _ada_delta, rmsprop.RMSpropRule: _rmsprop,
    rmsprop_graves.RMSpropGravesRule: _rmsprop_graves, adam.AdamRule: _adam}
