"""Native functions in the places of those that surround every call: Variables, backward, gradients, updates."""
from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any, Callable, Dict, List, Tuple

import chainerx
import numpy as np
from chainer import Chain, ChainList, Link, optimizer, optimizers
from chainer.backends import cuda
from chainer.optimizers import adam, momentum_sgd, sgd
from chainer.variable import Parameter, Variable, VariableNode

from .. import config
from ..errors import BackendError
from ..native import compiler, hotpath
from ..native.failures import Refused
from ..runtime import array_writes, backprop, definitions, guard_tests, node, stores, updating
from ..runtime.node import CompiledFunction, HiddenLeaves

_SECONDS = 0.2              # so long after the first native program: a first call is not to wait for a compiler twice
_MOST_SECONDS = 5.0         # so long it waits at most for compilers that programs wait for
_GLANCE = 0.05              # between two looks at these
_waiting: List[threading.Timer] = []
_replaced: List[Tuple[Dict, Any, Callable]] = []
_early: List[weakref.ref] = []
_found: Dict[str, Callable] = {}                        # the native functions, by their names in the C text
_unused = [True]            # whoever takes it out replaces the functions: there is no lock that a fork could leave closed

# what is where: the namespace, the key, and the name in the C text
_PLACES: Tuple[Tuple[Dict, Any, str], ...] = (
    (vars(node), "make_variable", "make_variable"), (vars(node), "make_variables", "make_variables"),
    (vars(node), "connect", "connect"), (vars(node), "store_gradients", "store_gradients"),
    (vars(node), "is_replaced", "is_replaced"),
    (vars(stores), "write_arrays", "write_arrays"), (vars(stores), "same_items", "same_items"),
    (vars(array_writes), "overlap", "overlap"), (vars(guard_tests), "check", "check"),
    (vars(guard_tests), "distinct", "distinct"),
    (vars(backprop), "prepared", "prepared"), (vars(backprop), "finished", "finished"),
    (vars(updating), "cleared", "cleared"), (vars(guard_tests), "fits", "fits"), (vars(definitions), "unchanged", "unchanged"),
    (updating.RULES, optimizers.SGD, "updated_by_sgd"), (updating.RULES, optimizers.MomentumSGD, "updated_by_momentum_sgd"),
    (updating.RULES, optimizers.Adam, "updated_by_adam"), (updating.RULES, optimizers.AdamW, "updated_by_adam"),
)


def prepare() -> None:
    """`start` now, if that library has been compiled on this machine before; else in a while, beside everything else.

    With ``DY2STATIC_BACKGROUND=0`` calls wait for it.
    """
    if _waiting or not _unused:
        return
    try:
        kept = hotpath.is_kept()
    except BackendError:
        return
    if kept or not config.BACKGROUND.value:
        start()
    else:
        timer = threading.Timer(_SECONDS, _start_beside)
        timer.daemon = True
        _waiting.append(timer)                          # another thread may have come here at the same time: then there are two
        timer.start()


def _start_beside() -> None:
    """`start` as soon as the compilers that programs wait for leave a processor free."""
    until = time.monotonic() + _MOST_SECONDS
    while compiler.are_busy() and time.monotonic() < until:
        time.sleep(_GLANCE)
    start()


def is_coming() -> bool:
    """Whether the functions are about to be compiled, or are being compiled."""
    return any(timer.is_alive() for timer in _waiting)


def note(call: Callable) -> None:
    """Let the entry of a native program have the functions, too, that are still being compiled, or just have been."""
    if is_coming():
        _early.append(weakref.ref(call))
    if _found:
        _give(call)


def _give(call: Callable) -> None:
    call.__globals__.update({name: function for name, function in _found.items() if name in call.__globals__})


def start() -> None:
    """Let native functions do it from now on, where there can be any; a second time nothing happens."""
    if not _unused or chainerx.is_available():
        return
    try:
        found = hotpath.functions(_objects(), {name: space[key] for space, key, name in _PLACES})
        _unused.pop()
    except IndexError:                                  # another thread was faster
        return
    except BackendError as reason:                      # what lacks is announced by the programs
        if Refused.stands(reason):
            raise
        return
    for space, key, name in _PLACES:
        _replaced.append((space, key, space[key]))
        space[key] = found[name]
    _found.update(found)                                # before what is early is looked at: `note` may run meanwhile
    for call in [reference() for reference in _early]:
        if call is not None:
            _give(call)
    _early.clear()


def stop() -> None:
    """Have everything done in Python again."""
    _found.clear()
    while _replaced:
        space, key, function = _replaced.pop()
        space[key] = function
    _unused[:] = [True]


def _start_again() -> None:
    """In a forked process: no other thread starts them."""
    _waiting.clear()
    if not _found:                                      # or another thread was about to
        stop()


if hasattr(os, "register_at_fork"):                     # not on Windows
    os.register_at_fork(after_in_child=_start_again)


def _objects() -> Tuple[Any, ...]:
    """Chainer's classes and methods, and what new objects of these classes hold, made by the Python functions."""
    leaf, made = [node.make_variable(np.ones((), np.float32), False) for _ in range(2)]
    node.connect(HiddenLeaves.segment, (leaf,), (made,), (), None, False)
    return (
        Variable, VariableNode, Parameter, CompiledFunction, optimizer.Hyperparameter,
        {**leaf.__dict__, "_data": None, "_node": None},
        {**leaf._node.__dict__, "_variable": None, "dtype": None, "shape": None},
        dict.fromkeys(made._node._creator_node.__dict__), backprop.ONES,
        Link.params, Link.namedparams, Chain.params, Chain.namedparams, ChainList.params, ChainList.namedparams,
        sgd.SGDRule, momentum_sgd.MomentumSGDRule, adam.AdamRule, node.store_gradient, vars(object)["__getattribute__"],
        weakref.getweakrefcount, cuda.ndarray)
