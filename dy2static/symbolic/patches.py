"""The only changes to Chainer while a capture runs, all of them aware of the thread and undone afterwards."""
from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
from typing import Any, Callable, Dict, Iterator, Tuple

import chainer
import numpy as np
from chainer.configuration import GlobalConfig, LocalConfig, _ConfigContext
from chainer.functions.activation.elu import ELU
from chainer.functions.activation.softplus import Softplus
from chainer.functions.loss.contrastive import Contrastive
from chainer.functions.loss.huber_loss import HuberLoss
from chainer.functions.loss.triplet import Triplet
from chainer.functions.noise.dropout import Dropout
from chainer.functions.noise.simplified_dropconnect import SimplifiedDropconnect
from chainer.functions.noise.zoneout import Zoneout
from chainer.variable import Variable

from ..capture_context import CaptureContext
from ..heap.aborts import CaptureAborted
from ..heap.global_state_guard import assigned
from ..heap.locations import user_location
from ..runtime.definitions import REPLACED
from ..runtime.hooks import stage
from ..runtime.settings import SETTINGS
from ..threads.locks import lock
from .values import SymbolicArray, SymbolicParameter, SymbolicScalar, SymbolicVariable

_lock = lock()
_blocks: Dict[object, int] = {}         # in which the patches are on, and their threads


def _symbolic_apply(node: chainer.FunctionNode, inputs: Tuple[Any, ...]) -> Tuple[Variable, ...]:
    """``FunctionNode.apply`` on a capturing thread: always the capture's, also when all operands are real."""
    capture = stage.capture
    if capture is not None:
        return capture.chainer.apply(node, inputs)
    observer, apply = stage.observer, REPLACED[_symbolic_apply]
    return apply(node, inputs) if observer is None else observer.apply(apply, node, inputs)


def _symbolic_init(variable: Variable, data: Any, device: Any, name: Any, grad: Any, grad_valid: bool,
                   requires_grad: bool, *rest: Any) -> None:
    """``Variable(array)`` of a symbolic array makes a symbolic Variable."""
    capture = stage.capture
    if capture is None or type(data) is not SymbolicArray:
        REPLACED[_symbolic_init](variable, data, device, name, grad, grad_valid, requires_grad, *rest)
        return
    if grad is not None or data.is_scalar:
        capture.abort("a Variable is made with a gradient or of a NumPy scalar")
    if type(variable) not in (Variable, chainer.Parameter):
        capture.abort(f"a Variable of type {type(variable).__name__}")
    kind = SymbolicParameter if isinstance(variable, chainer.Parameter) else SymbolicVariable
    object.__setattr__(variable, "__class__", kind)
    kind.__init__(variable, capture, capture.chainer.new_variable(data, requires_grad), requires_grad)
    if name is not None and kind is SymbolicVariable:
        variable.__dict__["named"] = name, user_location()


def _symbolic_local(config: LocalConfig, name: str) -> Any:
    """An entry of ``chainer.config``; of the user's entries, what the capture reads."""
    capture = stage.capture
    if capture is None or name in SETTINGS or config is not chainer.config or \
            sys._getframe(1).f_code is _ConfigContext.__enter__.__code__:
        return REPLACED[_symbolic_local](config, name)
    return capture.entries.read(name)


def _symbolic_global(config: GlobalConfig, name: str) -> Any:
    """An entry of ``chainer.global_config``, likewise."""
    capture = stage.capture
    if capture is None or name in SETTINGS or name.startswith("_") or name in GlobalConfig.__dict__:
        return REPLACED[_symbolic_global](config, name)
    return capture.entries.read(name, everywhere=False)


def _write_symbolic_local(config: LocalConfig, name: str, value: Any) -> None:
    """Sets an entry of ``chainer.config``; of the user's entries, what was there before is relied on."""
    capture = stage.capture
    if capture is not None and sys._getframe(1).f_code not in _IN_CONTEXT:
        assigned()
        if name not in SETTINGS:
            capture.entries.assigned(config._local, name)
    REPLACED[_write_symbolic_local](config, name, value)


def _write_symbolic_global(config: GlobalConfig, name: str, value: Any) -> None:
    """Sets an entry of ``chainer.global_config``, likewise."""
    capture = stage.capture
    if capture is not None:
        assigned(for_all_threads=True)
        if name not in SETTINGS:
            capture.entries.assigned(config, name)
    REPLACED[_write_symbolic_global](config, name, value)


_IN_CONTEXT = (_ConfigContext.__enter__.__code__, _ConfigContext.__exit__.__code__)


def _symbolic_force_array(x: Any, dtype: Any = None) -> Any:
    """``chainer.utils.force_array``: an array of no dimensions in place of a NumPy scalar."""
    capture = stage.capture
    if capture is None or type(x) is not SymbolicArray or not x.is_scalar:
        return REPLACED[_symbolic_force_array](x, dtype)
    return capture.numpy.call(np.array, (x,) if dtype is None else (x, dtype), {})


def _symbolic_size_of_shape(shape: Any) -> Any:
    """``chainer.utils.size_of_shape``: of sizes that only the run knows, a size."""
    return REPLACED[_symbolic_size_of_shape](shape) if stage.capture is None else math.prod(shape)


def _symbolic_elu(node: ELU, alpha: Any = 1.0) -> None:
    """``ELU(alpha)``, which would need to know a number that differs from call to call."""
    alpha = _float_of_run(alpha)
    if type(alpha) is SymbolicScalar:
        node.alpha = alpha
    else:
        REPLACED[_symbolic_elu](node, alpha)


def _symbolic_softplus(node: Softplus, beta: Any = 1.0) -> None:
    """``Softplus(beta)``, likewise."""
    beta = _float_of_run(beta)
    if type(beta) is SymbolicScalar:
        node.beta, node.beta_inv = beta, 1.0 / beta
    else:
        REPLACED[_symbolic_softplus](node, beta)


def _taking_numbers() -> Callable:
    """The ``__init__`` of a function that computes with its numbers as with floats: NumPy's, and arrays of one, become floats."""
    def init(node: chainer.FunctionNode, *args: Any, **kwargs: Any) -> None:
        if stage.capture is not None:
            args, kwargs = tuple(map(_float_of_run, args)), {name: _float_of_run(arg) for name, arg in kwargs.items()}
        REPLACED[init](node, *args, **kwargs)
    return init


def _float_of_run(number: Any) -> Any:
    """A number of a float type that differs from call to call, or an array of one, as a float; anything else as it is."""
    capture = stage.capture
    if capture is not None and type(number) is SymbolicArray and number.ndim == 0 and number.dtype.kind == "f":
        return capture.inputs.float_of(number)
    return number


_PATCHES: Dict[Tuple[Any, str], Callable] = {
    (chainer.FunctionNode, "apply"): _symbolic_apply,
    (Variable, "_init_impl"): _symbolic_init,
    (LocalConfig, "__getattr__"): _symbolic_local,
    (LocalConfig, "__setattr__"): _write_symbolic_local,
    (GlobalConfig, "__getattribute__"): _symbolic_global,
    (GlobalConfig, "__setattr__"): _write_symbolic_global,
    (ELU, "__init__"): _symbolic_elu,
    (Softplus, "__init__"): _symbolic_softplus,
    **{(cls, "__init__"): _taking_numbers()
       for cls in (Contrastive, Dropout, HuberLoss, SimplifiedDropconnect, Triplet, Zoneout)},
    (chainer.utils, "force_array"): _symbolic_force_array,
    (chainer.utils, "size_of_shape"): _symbolic_size_of_shape,
}
#: What converted code finds in place of functions of Chainer's.
REPLACEMENTS = (_symbolic_force_array, _symbolic_size_of_shape)

#: What Chainer has there.
_ORIGINALS = {(owner, name): getattr(owner, name) for owner, name in _PATCHES}
REPLACED.update({patch: _ORIGINALS[place] for place, patch in _PATCHES.items()})


@contextlib.contextmanager
def patched() -> Iterator[None]:
    """Chainer with the patches on; other threads see it unchanged.  Blocks nest, and overlap with those of other threads."""
    block = object()
    try:                                                # the user may interrupt what follows
        with _lock:
            _blocks[block] = threading.get_ident()
            if len(_blocks) == 1:
                _put_on()
        yield
    finally:
        with _lock:
            _blocks.pop(block, None)
            if not _blocks:
                _take_all_off()


def _put_on() -> None:
    for (owner, name), patch in _PATCHES.items():
        if vars(owner).get(name) is not patch:
            REPLACED[patch] = getattr(owner, name)
            setattr(owner, name, patch)


def _take_all_off() -> None:
    for (owner, name), patch in _PATCHES.items():
        _take_off(owner, name, patch)


def _leave_alone() -> None:
    """In a forked process: the blocks of other threads have ended."""
    thread = threading.get_ident()
    for block in [block for block, its_thread in _blocks.items() if its_thread != thread]:
        del _blocks[block]
    if not _blocks:
        _take_all_off()


if hasattr(os, "register_at_fork"):                     # not on Windows
    os.register_at_fork(after_in_child=_leave_alone)


def _take_off(owner: Any, name: str, patch: Callable) -> None:
    """Put back what was there before, unless somebody else has put something there meanwhile."""
    if vars(owner).get(name) is not patch:
        return
    if REPLACED[patch] is getattr(object, name, None):  # inherited
        delattr(owner, name)
    else:
        setattr(owner, name, REPLACED[patch])


def _check_originals() -> None:
    """Stop the capture if somebody has replaced a function of Chainer's that compiled code never calls."""
    for (owner, name), patch in _PATCHES.items():
        if REPLACED[patch] is not _ORIGINALS[owner, name]:
            raise CaptureAborted(f"{owner.__name__}.{name} was replaced, and compiled code would not call what is there now",
                                 whole=True,
                                 hint="put it back, or use a function hook: calls run in eager mode while one is registered")


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """No capture on this thread inside the block."""
    saved, stage.capture = stage.capture, None
    try:
        yield
    finally:
        stage.capture = saved


@contextlib.contextmanager
def capturing(capture: CaptureContext) -> Iterator[None]:
    """``capture`` is what runs on this thread inside the block, with Chainer patched."""
    with patched():
        _check_originals()
        saved, stage.capture = stage.capture, capture
        try:
            yield
        finally:
            stage.capture = saved
