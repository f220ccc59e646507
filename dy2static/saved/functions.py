"""The functions that a file may name: those that compute, draw, print, or do what we made them for; none that reads or
writes files, imports, or calls what it is given."""
from __future__ import annotations

import builtins
import functools
import math
import operator
import random
import string
import warnings
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import chainer
import numpy as np
from chainer.utils.type_check import InvalidType

from ..capture import attempts, effects, expressions, label_counts, masks, number_calls
from ..errors import LoadError
from ..runtime.node import make_variable, store_gradient
from ..staging import raising
from ..symbolic import stand_ins, texts, writes

_NUMPY = """
all allclose amax amin angle any append arange argmax argmin argpartition argsort argwhere around array array_equal array_equiv
array_split asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d average
bartlett bincount blackman block broadcast_arrays broadcast_to choose clip column_stack compress concat concatenate convolve
copy corrcoef correlate count_nonzero cov cross cumprod cumsum cumulative_prod cumulative_sum delete diag diag_indices
diag_indices_from diagflat diagonal diff digitize dot dsplit dstack ediff1d einsum empty empty_like expand_dims extract eye
fix flatnonzero flip fliplr flipud full full_like geomspace gradient hamming hanning histogram histogram2d
histogram_bin_edges histogramdd hsplit hstack i0 identity imag indices inner insert interp intersect1d in1d isclose iscomplex
isin isneginf isposinf isreal ix_ kaiser kron lexsort linspace logspace matrix_transpose max mean median meshgrid min moveaxis
nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd
nansum nanvar ndim nonzero ones ones_like outer packbits pad partition percentile permute_dims poly polyadd polyder polydiv
polyfit polyint polymul polysub polyval prod ptp quantile ravel ravel_multi_index real repeat reshape resize roll rollaxis
roots rot90 round searchsorted select setdiff1d setxor1d shape sinc size sort split squeeze stack std sum swapaxes take
take_along_axis tensordot tile trace transpose trapezoid trapz tri tril tril_indices tril_indices_from trim_zeros triu
triu_indices triu_indices_from union1d unique unpackbits unravel_index unstack unwrap vander var vdot vsplit vstack where
zeros zeros_like copyto put place putmask fill_diagonal put_along_axis round_ product cumproduct sometrue alltrue row_stack astype
"""
_LINALG = """
cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_norm matrix_power matrix_rank multi_dot norm pinv qr slogdet
solve svd svdvals tensorinv tensorsolve vector_norm LinAlgError
"""
_NUMPY_RANDOM = """
beta binomial chisquare choice dirichlet exponential gamma geometric gumbel laplace logistic lognormal multinomial
multivariate_normal normal permutation poisson rand randint randn random random_integers random_sample ranf rayleigh sample
standard_cauchy standard_exponential standard_gamma standard_normal standard_t triangular uniform weibull
"""
_RANDOM = "betavariate choice choices expovariate gammavariate gauss lognormvariate normalvariate paretovariate randint " \
          "random randrange sample triangular uniform vonmisesvariate weibullvariate"
_OPERATOR = "abs add and_ concat contains eq floordiv ge getitem gt index inv invert is_ is_not le lshift lt matmul mod mul ne " \
            "neg not_ or_ pos pow rshift sub truediv truth xor iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift " \
            "isub itruediv ixor setitem"
_BUILTINS = "abs bool divmod enumerate float int len list max min pow print reversed round sorted str sum tuple zip repr"
_METHODS = frozenset("""
all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum diagonal dot flatten
item max mean min nonzero partition prod ptp ravel repeat reshape round searchsorted sort squeeze std sum swapaxes take tolist
trace transpose var fill put itemset
""".split())
_TEXT_METHODS = frozenset(("format", "join"))
_UFUNC_METHODS = frozenset(("reduce", "accumulate", "outer", "reduceat", "at"))
_ATTRIBUTES = frozenset(("T", "mT", "real", "imag", "shape", "ndim", "size", "dtype", "nbytes", "itemsize", "flat"))


def _public() -> Iterator[Tuple[str, Any]]:
    """The functions that anybody may call, by their names."""
    for prefix, owner, names in (
            ("numpy", np, _NUMPY), ("numpy.linalg", np.linalg, _LINALG), ("numpy.random", np.random, _NUMPY_RANDOM),
            ("random", random, _RANDOM), ("operator", operator, _OPERATOR), ("builtins", builtins, _BUILTINS)):
        yield from ((f"{prefix}.{name}", getattr(owner, name)) for name in names.split() if hasattr(owner, name))
    yield from ((f"numpy.{name}", found) for name, found in vars(np).items() if isinstance(found, np.ufunc))
    yield from ((f"math.{name}", found) for name, found in vars(math).items() if callable(found))
    yield from ((f"builtins.{name}", found) for name, found in vars(builtins).items() if _is_error(found))
    yield from ((f"numpy.{dtype.__name__}", dtype) for dtype in {np.dtype(code).type for code in "?bBhHiIlLqQefd"})
    yield "numpy.ndarray", np.ndarray
    yield "chainer.report", chainer.reporter.report
    yield "chainer.type_check.InvalidType", InvalidType
    yield "warnings.warn", warnings.warn


def _is_plain_format(text: str) -> bool:
    """Whether a template takes nothing but what it is given: no attributes of it, no items."""
    try:
        return not any(name and ("." in name or "[" in name) or spec and "{" in spec
                       for _, name, spec, _ in string.Formatter().parse(text))
    except ValueError:
        return False


def _is_error(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, Exception)


def _own() -> Iterator[Tuple[str, Any]]:
    """Functions of ours that captures put into graphs."""
    for module in (attempts, effects, expressions, label_counts, masks, number_calls, raising, texts, writes):
        short = module.__name__.rpartition(".")[2]
        yield from ((f"dy2static.{short}.{name}", found) for name, found in vars(module).items()
                    if callable(found) and getattr(found, "__module__", "") == module.__name__ and name in _OWN[short])
    yield "dy2static.make_variable", make_variable
    yield "dy2static.store_gradient", store_gradient


_OWN = {
    "attempts": (), "expressions": ("real_power", "_negative_power"), "label_counts": ("_class_counts",), "masks": ("_rows",),
    "number_calls": ("_item_of_extreme", "_sorted_by"), "texts": ("_format", "_join"),
    "raising": ("check", "check_bound", "raise_again"), "writes": ("_write", "_write_checked", "write_by_numpy", "_itself", "_one"),
    "effects": ("_store_item", "_delete_item", "_extend", "_assign", "_assign_deque", "_assign_set", "_store_cell",
                "_delete_cell", "_write_array", "flat", "_one", "_none")}


@functools.lru_cache(maxsize=None)
def _tables() -> Tuple[Dict[str, Any], Dict[int, str]]:
    functions = dict([*_public(), *_own()])
    names = {id(found): name for name, found in reversed(list(functions.items()))}
    return functions, names


def name_of(function: Any) -> Optional[Any]:
    """How a file writes a function; None for one that it may not name."""
    if isinstance(function, stand_ins.Method):
        return {"method": function.name} if function.name in _METHODS else None
    if isinstance(function, stand_ins.Attribute):
        return {"attribute": function.name} if function.name in _ATTRIBUTES else None
    if isinstance(function, attempts.Attempt):
        return {"attempt": function.__name__}
    if isinstance(function, writes.Into):
        inner = name_of(function.function)
        return None if inner is None else {"into": inner}
    owner = getattr(function, "__self__", None)
    if type(owner) is str and function.__name__ in _TEXT_METHODS:
        return {f"text {function.__name__}": owner} if _is_plain_format(owner) else None
    if isinstance(owner, np.ufunc) and function.__name__ in _UFUNC_METHODS:
        return {function.__name__: owner.__name__} if getattr(np, owner.__name__, None) is owner else None
    try:
        return _tables()[1].get(id(function))
    except TypeError:
        return None


def function_of(name: Any) -> Callable[..., Any]:
    """The function that a file names.  Raises `LoadError` where it must not, or there is none here."""
    if type(name) is str and name in _tables()[0]:
        return _tables()[0][name]
    if type(name) is dict and list(name) == ["into"]:
        return writes.Into(function_of(name["into"]))
    if type(name) is dict and len(name) == 1 and type(next(iter(name.values()))) is str:
        (kind, text), = name.items()
        if kind == "method" and text in _METHODS:
            return stand_ins.Method(text)
        if kind == "attribute" and text in _ATTRIBUTES:
            return stand_ins.Attribute(text)
        if kind == "attempt" and text in attempts.OF_MATRICES:
            return attempts.Attempt(getattr(np.linalg, text), text)
        if kind in _UFUNC_METHODS and isinstance(getattr(np, text, None), np.ufunc):
            return getattr(getattr(np, text), kind)
        if kind in ("text format", "text join") and _is_plain_format(text):
            return getattr(text, kind[5:])
    raise LoadError(f"the file names the function {str(name)[:80]}, which this version does not call for it")
