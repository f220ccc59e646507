"""Matrix products for generated code: a kernel of ours, and for large ones oneDNN or the BLAS that NumPy brought along.

Measured on one core of a Zen 5 (GFLOP/s of float32, row-major A B; NumPy's OpenBLAS 0.3.23, oneDNN 3.2, ours):

    (1024, 1024) (1024, 1024)   107  204  174
    (20, 200) (200, 800)         57  197  222
    (32, 256) (256, 256)         65  209  224
    (32, 64) (64, 64)            63  150  185
    (256, 32) (32, 32)           84  184  169
    (1, 200) (200, 800)           4   71   47
    (16, 16) (16, 16)            39   16   87

Ours needs no threads and no library, and is ahead where models are small.  From `_LARGE` multiplications on, oneDNN is
asked, or the BLAS if it has several threads.
"""
from __future__ import annotations

import ctypes
import functools
from typing import NamedTuple, Optional, Tuple

import numpy as np

from . import compiler, library, onednn

HEADER = "dy2static_products.h"
_LARGE = 1 << 26
_FLAGS = ("-ffp-contract=fast", "-O2")      # -O3 takes four times as long to compile and is not faster here
_TYPES = {"f32": "float", "f64": "double"}
_BLAS_NAMES = {
    "f32": ("scipy_cblas_sgemm64_", "cblas_sgemm64_"),
    "f64": ("scipy_cblas_dgemm64_", "cblas_dgemm64_"),
}
_THREADS = ("scipy_openblas_get_num_threads64_", "openblas_get_num_threads64_")

_TEXT = """
#define DY_T {type}
#define DY_GEMM own_product
#include "dy2static_gemm.h"

typedef int onednn_product(char, char, int64_t, int64_t, int64_t, DY_T, const DY_T *, int64_t, const DY_T *, int64_t, DY_T,
                           DY_T *, int64_t);
typedef void blas_product(int, int, int, int64_t, int64_t, int64_t, DY_T, const DY_T *, int64_t, const DY_T *, int64_t, DY_T,
                          DY_T *, int64_t);
static onednn_product *onednn;
static blas_product *blas;

void set_others(void *first, void *second) {{ onednn = first; blas = second; }}

void product(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, DY_T alpha, const DY_T *a, int64_t lda, const DY_T *b,
             int64_t ldb, DY_T beta, DY_T *c, int64_t ldc)
{{
    if (m * n * k >= {large} && m > 1 && n > 1) {{
        if (onednn && !onednn(trans_a ? 'T' : 'N', trans_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))
            return;
        if (blas) {{
            blas(101, trans_a ? 112 : 111, trans_b ? 112 : 111, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
            return;
        }}
    }}
    own_product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}}
"""


class Products(NamedTuple):
    """Where the C functions for products are, as `dy2static_products.h` calls them."""

    f32: int
    f64: int


def addresses() -> Products:
    """The products of both types, compiled if need be.  Raises `compiler.NoCompiler` and `compiler.BuildFailed`."""
    return Products(address("f32"), address("f64"))


@functools.lru_cache(maxsize=None)
def address(name: str) -> int:
    """Where the product of one type, "f32" or "f64", is."""
    built = compiler.build(_TEXT.format(type=_TYPES[name], large=_LARGE), _FLAGS)
    dnnl = onednn.load() if name == "f32" else None         # it has none of doubles
    built.handle.set_others(_pointer(dnnl, ("dnnl_sgemm",)), _pointer(_threaded_blas(), _BLAS_NAMES[name]))
    return built.address("product")


def _pointer(where: Optional[ctypes.CDLL], names: Tuple[str, ...]) -> ctypes.c_void_p:
    for name in names if where is not None else ():
        found = getattr(where, name, None)
        if found is not None:
            return ctypes.cast(found, ctypes.c_void_p)
    return ctypes.c_void_p(None)


@functools.lru_cache(maxsize=None)
def _threaded_blas() -> Optional[ctypes.CDLL]:
    """The OpenBLAS that came with NumPy, if it runs on several threads: on one, our kernel is as fast."""
    np.linalg.norm([1.0])           # by now it is loaded
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            paths = {line.split(maxsplit=5)[-1].strip() for line in file if "numpy.libs" in line and "openblas" in line}
        blas = ctypes.CDLL(min(paths)) if paths else None
    except OSError:
        return None
    threads = [getattr(blas, name) for name in _THREADS if blas is not None and hasattr(blas, name)]
    return blas if threads and threads[0]() > 1 else None


for _name in _TYPES:
    library.ADDRESSES[f"dy2static_set_product_{_name}"] = functools.partial(address, _name)
