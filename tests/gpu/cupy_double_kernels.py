"""`cupy.ElementwiseKernel` and `cupy.ReductionKernel` of the stand-in for CuPy: their texts are compiled for the processor by g++."""
import ctypes
import functools
import hashlib
import importlib
import math
import subprocess

import numpy as np
from cupy_double_arrays import check_device, give, ndarray, unwrapped

_C_TYPES = {"f": "float", "d": "double", "e": "_Float16", "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short",
            "H": "unsigned short", "i": "int", "I": "unsigned", "l": "long", "L": "unsigned long", "q": "long", "Q": "unsigned long"}

#: What CUDA C has and C++ has not.
_HEADER = """
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <type_traits>
#define __device__
template <class A, class B> static inline typename std::common_type<A, B>::type max(A a, B b) { return a < b ? b : a; }
template <class A, class B> static inline typename std::common_type<A, B>::type min(A a, B b) { return b < a ? b : a; }
static inline float rsqrt(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline float __logf(float x) { return logf(x); }
static inline int __float2int_rd(float x) { return (int)floorf(x); }
static inline float __expf(float x) { return expf(x); }
static inline double normcdf(double x) { return erfc(-x * M_SQRT1_2) / 2; }
static inline double erfcx(double x) { return exp(x * x) * erfc(x); }
static inline double erfcinv(double y) {                        // by halving: all numbers are tried
    double low = -40, high = 40;
    for (int k = 0; k < 80; ++k) (erfc((low + high) / 2) > y ? low : high) = (low + high) / 2;
    return y == 0 ? INFINITY : y == 2 ? -INFINITY : y > 0 && y < 2 ? low : NAN;
}
static inline double erfinv(double y) {
    double low = -40, high = 40;
    for (int k = 0; k < 80; ++k) (erf((low + high) / 2) < y ? low : high) = (low + high) / 2;
    return y == 1 ? INFINITY : y == -1 ? -INFINITY : y > -1 && y < 1 ? low : NAN;
}
static inline double normcdfinv(double p) { return -M_SQRT2 * erfcinv(2 * p); }
#ifdef __FLT16_MAX__
#define HALF(function) static inline float function(_Float16 x) { return function((float)x); }
HALF(sin) HALF(cos) HALF(tan) HALF(erf) HALF(erfc) HALF(expm1)
HALF(exp) HALF(log) HALF(sqrt) HALF(tanh) HALF(fabs) HALF(rsqrt) HALF(log1p) HALF(floor) HALF(ceil) HALF(normcdf)
static inline float pow(_Float16 x, _Float16 y) { return powf(x, y); }
#endif
template <class A, class B> static inline A atomicAdd(A *p, B v) { A old = *p; *p = old + v; return old; }
template <class T> struct Raw {
    T *data; const ptrdiff_t *sizes;
    ptrdiff_t size() const { return sizes[0]; }
    const ptrdiff_t *shape() const { return sizes + 1; }
    T &operator[](ptrdiff_t i) const { return data[i]; }
    template <class I> T &operator[](const I *at) const {      // a template: 0 is a number, not a null pointer
        ptrdiff_t place = 0;
        for (ptrdiff_t k = 0; k < sizes[-1]; ++k) place = place * sizes[k + 1] + at[k];
        return data[place];
    }
};
struct Loop { ptrdiff_t count; ptrdiff_t size() const { return count; } };
"""


class _Parameter:
    """One of ``"raw T x, int32 n"``: its type (one letter: given by an array), its name, and whether the loop does not index it."""

    def __init__(self, text):
        *self.words, self.type, self.name = text.split()
        self.raw = "raw" in self.words


def _parameters(text):
    return [_Parameter(part) for part in text.split(",") if part.strip()]


class _Kernel:
    """What both kinds of kernels share: their arguments as contiguous arrays of the types that the text wants."""

    def __init__(self, in_params, out_params, name, preamble):
        self.ins, self.outs, self.name, self.preamble = _parameters(in_params), _parameters(out_params), name, preamble
        self.nin, self.nout = len(self.ins), len(self.outs)
        self.nargs = self.nin + self.nout

    def _types(self, args):
        """The dtype of each parameter, and of each letter.  Raises TypeError where two arrays disagree about one."""
        letters = {}
        for parameter, arg in zip((*self.ins, *self.outs), args):
            if len(parameter.type) == 1 and isinstance(arg, ndarray):
                if letters.setdefault(parameter.type, arg.dtype) != arg.dtype:
                    raise TypeError(f"Type is mismatched. {parameter.name} {arg.dtype} {letters[parameter.type]}")
        for parameter, arg in zip(self.ins, args):
            if len(parameter.type) == 1:
                letters.setdefault(parameter.type, np.asarray(unwrapped(arg)).dtype)
        return [letters[p.type] if len(p.type) == 1 else np.dtype(p.type) for p in (*self.ins, *self.outs)], letters

    def _arguments(self, args):
        for arg in args:
            if isinstance(arg, np.ndarray):
                raise TypeError(f"Unsupported type {type(arg)}")
        check_device(args)
        return self._types(args)

    def _run(self, body, letters, arrays, types, count, raw, *sizes):
        """Compile and run a function whose body sees the parameters as pointers ``p_NAME``, raw ones as `Raw`."""
        head = [f"typedef {_C_TYPES[dtype.char]} {letter};" for letter, dtype in letters.items()]
        inner = []
        for number, (parameter, dtype) in enumerate(zip((*self.ins, *self.outs), types)):
            c = _C_TYPES[dtype.char]
            pointer = f"({c} *)d_pointers[{number}]"
            inner.append(f"const Raw<{c}> {parameter.name} = {{{pointer}, d_shapes[{number}] + 1}};" if raw[number] else
                         f"{c} *p_{parameter.name} = {pointer};")
        text = "\n".join([_HEADER, *head, self.preamble, 'extern "C" void run(void **d_pointers, ptrdiff_t **d_shapes, ptrdiff_t d_count, '
                          "ptrdiff_t d_inner) {", *inner, "const Loop _ind = {d_count};", body, "}"])
        shapes = [np.array([a.ndim, a.size, *a.shape], np.intp) for a in arrays]
        pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        _library(text)(pointers, (ctypes.c_void_p * len(arrays))(*[s.ctypes.data for s in shapes]), ctypes.c_ssize_t(count),
                       *map(ctypes.c_ssize_t, sizes or (1,)))


class ElementwiseKernel(_Kernel):
    """A loop over broadcast arrays."""

    def __init__(self, in_params, out_params, operation, name="kernel", reduce_dims=True, preamble="", no_return=False,
                 return_tuple=False, loop_prep="", after_loop="", options=()):
        super().__init__(in_params, out_params, name, preamble)
        self.operation, self.around, self.return_tuple = operation, (loop_prep, after_loop), return_tuple

    def __call__(self, *args, size=None, block_size=None):
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or {self.nargs} (with outputs), "
                            f"but given {len(args)}.")
        types, letters = self._arguments(args)
        parameters = (*self.ins, *self.outs)
        shape = (size,) if size is not None else np.broadcast_shapes(
            *(np.shape(unwrapped(a)) for p, a in zip(parameters, args) if not p.raw))
        results = [*args[self.nin:]] or [give(np.empty(shape, dtype)) for dtype in types[self.nin:]]
        arrays = []
        for parameter, arg, dtype in zip(parameters, (*args[:self.nin], *results), types):
            value = np.asarray(unwrapped(arg))
            value = value.astype(dtype) if not isinstance(arg, ndarray) else value
            if value.dtype != dtype:
                value = value.astype(dtype)
            arrays.append(np.ascontiguousarray(value if parameter.raw or value.ndim == 0 and not shape else
                                               np.broadcast_to(value, shape)))
        names = [f"{_C_TYPES[t.char]} &{p.name} = p_{p.name}[i];" for p, t in zip(parameters, types) if not p.raw]
        body = (f"{self.around[0]};\nfor (ptrdiff_t i = 0; i < d_count; ++i) {{ {' '.join(names)}\n{self.operation}; }}\n{self.around[1]};")
        self._run(body, letters, arrays, types, math.prod(shape), [p.raw for p in parameters])
        _write_back(arrays[self.nin:], results)
        return tuple(results) if self.return_tuple or len(results) > 1 else results[0]


class ReductionKernel(_Kernel):
    """A reduction of broadcast arrays over some axes, one element after the other."""

    def __init__(self, in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name="reduce_kernel", reduce_type=None,
                 reduce_dims=True, preamble="", options=()):
        super().__init__(in_params, out_params, name, preamble)
        self.texts, self.identity, self.reduce_type = (map_expr, reduce_expr, post_map_expr), identity, reduce_type

    def __call__(self, *args, out=None, axis=None, keepdims=False, stream=None):
        args = args if out is None else (*args, out)
        types, letters = self._arguments(args)
        shape = np.broadcast_shapes(*(np.shape(unwrapped(a)) for p, a in zip(self.ins, args) if not p.raw))
        axes = tuple(range(len(shape))) if axis is None else tuple(a % len(shape) for a in np.atleast_1d(axis))
        kept = tuple(a for a in range(len(shape)) if a not in axes)
        result_shape = tuple(1 if a in axes else n for a, n in enumerate(shape)) if keepdims else tuple(shape[a] for a in kept)
        results = [*args[self.nin:]] or [give(np.empty(result_shape, types[-1]))]
        arrays = []
        for parameter, arg, dtype in zip(self.ins, args, types):
            value = np.asarray(unwrapped(arg)).astype(dtype, copy=False)
            arrays.append(np.ascontiguousarray(value if parameter.raw else np.broadcast_to(value, shape).transpose(*kept, *axes)))
        arrays.append(np.ascontiguousarray(unwrapped(results[0])))
        map_expr, reduce_expr, post_map_expr = self.texts
        total = _C_TYPES[types[-1].char] if self.reduce_type is None else _C_TYPES[np.dtype(self.reduce_type).char]
        names = " ".join(f"{_C_TYPES[t.char]} &{p.name} = p_{p.name}[_j];" for p, t in zip(self.ins, types) if not p.raw)
        result = self.outs[0].name
        body = f"""for (ptrdiff_t i = 0; i < d_count; ++i) {{
            {total} s = ({total})({self.identity});
            for (ptrdiff_t _j = i * d_inner; _j < (i + 1) * d_inner; ++_j) {{ {names} const {total} a = s, b = ({total})({map_expr}); s = {reduce_expr}; }}
            const {total} a = s; auto &{result} = p_{result}[i]; {post_map_expr};
        }}"""
        self._run(body, letters, arrays, types, math.prod(shape[a] for a in kept), [*(p.raw for p in self.ins), False],
                  math.prod(shape[a] for a in axes))
        _write_back(arrays[self.nin:], results)
        return results[0]


def _write_back(arrays, results):
    for array, result in zip(arrays, results):
        if array is not result._a:
            result._a[...] = array.reshape(result.shape)


@functools.lru_cache(None)
def _library(text):
    store = importlib.import_module("dy2static.native.store")     # it imports Chainer, which wants to find the stand-in

    def compiled(path):
        command = ["g++", "-std=gnu++14", "-O1", "-fPIC", "-shared", "-w", "-fpermissive", "-x", "c++", "-", "-o", path]
        done = subprocess.run(command, input=text.encode(), stderr=subprocess.PIPE)
        if done.returncode:
            raise RuntimeError(f"g++ does not compile a kernel of the stand-in for CuPy:\n{done.stderr.decode()}\n{text}")
    return ctypes.CDLL(store.fetch("double-" + hashlib.sha256(text.encode()).hexdigest(), compiled)).run
