"""Links whose numbers do not change: native code keeps what it makes of their weights."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Tuple, TypeVar

import chainer
import numpy as np

from .errors import SignatureError
from .native import frozen

AnyLink = TypeVar("AnyLink", bound=chainer.Link)
#: An array of a Link, how it is replaced, and what it is called.
_Place = Tuple[np.ndarray, Callable[[np.ndarray], None], str]


def freeze(link: AnyLink) -> AnyLink:
    """Make the parameters and persistent arrays of a Link and its children read-only, for inference.

    Each array is replaced by a read-only copy.  NumPy never makes such a copy writeable again, so native code may keep what it
    makes of weights alone: matrices and filters in the order in which kernels read them.  This takes about as much memory as the
    weights, and is made when it is first used.  Results stay the same, bit for bit.

    What writes into a frozen array raises ValueError, the same as in eager mode: an optimizer's update, `load_npz`, or batch
    normalization in training mode.  Parameters may still be replaced (``link.W.array = other``), and have gradients.  `unfreeze`
    makes the arrays writeable.  A copy (`copy.deepcopy`, ``link.copy("copy")``, pickle) has writeable arrays.

    link: a Link whose parameters are initialized, on the host.  Its arrays may be of any shape and dtype.

    Returns the Link.  Raises ValueError, and changes nothing, if a parameter is not initialized or an array is not NumPy's, and
    `SignatureError` for anything but a Link.
    """
    places = [place for place in _places(link) if not frozen.is_frozen(place[0])]
    different: Dict[int, np.ndarray] = {id(array): array for array, _, _ in places}
    copies = dict(zip(different, frozen.copies(list(different.values()))))
    for array, replace, _ in places:
        replace(copies[id(array)])
    return link


def unfreeze(link: AnyLink) -> AnyLink:
    """Make the frozen arrays of a Link and its children writeable again, as copies, and return the Link.

    Raises `SignatureError` for anything but a Link.
    """
    places = [place for place in _places(link) if frozen.is_frozen(place[0])]
    copies: Dict[int, np.ndarray] = {}
    for array, replace, _ in places:
        replace(copies.setdefault(id(array), array.copy()))
    return link


def _places(link: chainer.Link) -> List[_Place]:
    """The arrays of a Link and its children.

    Raises `SignatureError` for anything but a Link, and ValueError for what is not an array of the host.
    """
    if not isinstance(link, chainer.Link):
        raise SignatureError(f"freeze and unfreeze take a Link, not {type(link).__name__}")
    found = [*_parameters(link), *_persistent(link)]
    for array, _, name in found:
        if type(array) is not np.ndarray:
            raise ValueError(f"{name} is not initialized: call the Link once, or give it its input size" if array is None else
                             f"{name} is an array of type {type(array).__name__}: send the Link to the host first")
        if array.dtype.hasobject:
            raise ValueError(f"{name} holds objects, which are not frozen")
    return found


def _parameters(link: chainer.Link) -> Iterator[_Place]:
    for name, parameter in link.namedparams():
        def replace(array: np.ndarray, parameter: chainer.Parameter = parameter) -> None:
            parameter.array = array
        yield parameter.array, replace, f"parameter {name}"


def _persistent(link: chainer.Link) -> Iterator[_Place]:
    for path, child in link.namedlinks():
        for name in sorted(child._persistent):
            def replace(array: np.ndarray, child: chainer.Link = child, name: str = name) -> None:
                setattr(child, name, array)
            value: Any = getattr(child, name)
            if isinstance(value, chainer.get_array_types()):
                yield value, replace, f"persistent array {path.rstrip('/')}/{name}"
