/* Functions of one element that generated code calls: NumPy's, for C's types.
 *
 * A name ends with the type: f32 f64 i8 i16 i32 i64 u8 u16 u32 u64.  Floating-point flags are part of the meaning: a function
 * raises divide, overflow or invalid where NumPy would warn, and nowhere else.  For gcc and clang; needs -fwrapv (ints wrap)
 * and -fno-math-errno.
 */
#ifndef DY2STATIC_MATH_H
#define DY2STATIC_MATH_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define D2S_FUNCTION static inline __attribute__((always_inline, unused))
#define D2S_RARE static __attribute__((noinline, cold, unused))

/* Functions of libm ------------------------------------------------------------------------------------------------- */

#define D2S_LIBM(name, libm) \
    D2S_FUNCTION float name##_f32(float x) { return libm##f(x); } \
    D2S_FUNCTION double name##_f64(double x) { return libm(x); }
#define D2S_LIBM_2(name, libm) \
    D2S_FUNCTION float name##_f32(float a, float b) { return libm##f(a, b); } \
    D2S_FUNCTION double name##_f64(double a, double b) { return libm(a, b); }

D2S_LIBM(sqrt, __builtin_sqrt)
D2S_LIBM(fabs, __builtin_fabs)
D2S_LIBM(floor, __builtin_floor)
D2S_LIBM(ceil, __builtin_ceil)
D2S_LIBM(trunc, __builtin_trunc)
D2S_LIBM(exp, exp)
D2S_LIBM(expm1, expm1)
D2S_LIBM(log, log)
D2S_LIBM(log1p, log1p)
D2S_LIBM(log2, log2)
D2S_LIBM(log10, log10)
D2S_LIBM(sin, sin)
D2S_LIBM(cos, cos)
D2S_LIBM(tan, tan)
D2S_LIBM(tanh, tanh)
D2S_LIBM(sinh, sinh)
D2S_LIBM(cosh, cosh)
D2S_LIBM(arcsin, asin)
D2S_LIBM(arccos, acos)
D2S_LIBM(arctan, atan)
D2S_LIBM(arctanh, atanh)
D2S_LIBM(gammaln, lgamma)
D2S_LIBM_2(arctan2, atan2)
D2S_LIBM_2(power, pow)
D2S_LIBM_2(fmod, fmod)

/* SciPy computes these in double precision. */
D2S_FUNCTION double erf_f64(double x) { return erf(x); }
D2S_FUNCTION float erf_f32(float x) { return (float)erf((double)x); }
D2S_FUNCTION double erfc_f64(double x) { return erfc(x); }
D2S_FUNCTION float erfc_f32(float x) { return (float)erfc((double)x); }
D2S_FUNCTION double ndtr_f64(double x) { return 0.5 * erfc(x * -0.70710678118654752440); }
D2S_FUNCTION float ndtr_f32(float x) { return (float)ndtr_f64((double)x); }

/* Selection: NaN wins, as in NumPy; comparisons raise nothing for NaN. ------------------------------------------------ */

#define D2S_SELECTIONS(T, s, F, MAX) \
    D2S_FUNCTION T maximum_##s(T a, T b) { return (isgreaterequal(a, b) | (a != a)) ? a : b; } \
    D2S_FUNCTION T minimum_##s(T a, T b) { return (islessequal(a, b) | (a != a)) ? a : b; } \
    D2S_FUNCTION T relu_##s(T x) { return islessequal(x, 0) ? 0 : x; } \
    D2S_FUNCTION T sign_##s(T x) { return x != x ? x : (T)(isgreater(x, 0) - isless(x, 0)); } \
    D2S_FUNCTION bool isfinite_##s(T x) { return islessequal(F(x), MAX); } \
    D2S_FUNCTION T huber_##s(T x, T delta) { \
        T line = F(x) * (delta * 2) - delta * delta; \
        return minimum_##s(x * x, maximum_##s(line, delta * delta)) * (T)0.5; }

D2S_SELECTIONS(float, f32, __builtin_fabsf, FLT_MAX)
D2S_SELECTIONS(double, f64, __builtin_fabs, DBL_MAX)

/* Division of floats that rounds down, and its remainder: Python's rules. --------------------------------------------- */

#define D2S_FLOAT_DIVISION(T, s, F) \
    D2S_FUNCTION T remainder_##s(T a, T b) { \
        T rest = fmod##F(a, b); \
        if (b == 0) return rest; \
        if (rest != 0) return (isless(b, 0) != isless(rest, 0)) ? rest + b : rest; \
        return copysign##F(0, b); } \
    D2S_FUNCTION T floor_divide_##s(T a, T b) { \
        if (b == 0) return a / b; \
        T rest = fmod##F(a, b), quotient = (a - rest) / b, whole; \
        if (rest != 0 && isless(b, 0) != isless(rest, 0)) quotient -= 1; \
        if (quotient == 0) return copysign##F(0, a / b); \
        whole = floor##F(quotient); \
        return isgreater(quotient - whole, (T)0.5) ? whole + 1 : whole; }

D2S_FLOAT_DIVISION(float, f32, f)
D2S_FLOAT_DIVISION(double, f64, )

/* Ints: where NumPy warns or raises, a flag is raised and the value does not matter. ---------------------------------- */

D2S_RARE void d2s_raise_divide(void) { volatile double zero = 0, y = 1 / zero; (void)y; }
D2S_RARE void d2s_raise_overflow(void) { volatile double big = DBL_MAX, y = big * big; (void)y; }
D2S_RARE void d2s_raise_invalid(void) { volatile double zero = 0, y = zero / zero; (void)y; }

#define D2S_INT_POWER(T, s, LEAST) \
    D2S_FUNCTION T power_##s(T a, T b) { \
        T y = 1; \
        if (b < 0) { d2s_raise_invalid(); return 0; } \
        for (; b; b >>= 1, a = (T)(a * a)) if (b & 1) y = (T)(y * a); \
        return y; }

#define D2S_SIGNED(T, s, LEAST) \
    D2S_INT_POWER(T, s, LEAST) \
    D2S_FUNCTION T floor_divide_##s(T a, T b) { \
        if (b == 0) { d2s_raise_divide(); return 0; } \
        if (b == -1) { if (a == LEAST) d2s_raise_overflow(); return (T)-a; } \
        T y = a / b; \
        return (T)(y - ((a % b != 0) & ((a < 0) != (b < 0)))); } \
    D2S_FUNCTION T fmod_##s(T a, T b) { \
        if (b == 0) { d2s_raise_divide(); return 0; } \
        return b == -1 ? 0 : (T)(a % b); } \
    D2S_FUNCTION T remainder_##s(T a, T b) { \
        T rest = fmod_##s(a, b); \
        return (T)((rest != 0) & ((a < 0) != (b < 0)) ? rest + b : rest); }

#define D2S_UNSIGNED(T, s) \
    D2S_INT_POWER(T, s, 0) \
    D2S_FUNCTION T floor_divide_##s(T a, T b) { \
        if (b == 0) { d2s_raise_divide(); return 0; } \
        return a / b; } \
    D2S_FUNCTION T fmod_##s(T a, T b) { \
        if (b == 0) { d2s_raise_divide(); return 0; } \
        return a % b; } \
    D2S_FUNCTION T remainder_##s(T a, T b) { return fmod_##s(a, b); }

D2S_SIGNED(int8_t, i8, INT8_MIN)
D2S_SIGNED(int16_t, i16, INT16_MIN)
D2S_SIGNED(int32_t, i32, INT32_MIN)
D2S_SIGNED(int64_t, i64, INT64_MIN)
D2S_UNSIGNED(uint8_t, u8)
D2S_UNSIGNED(uint16_t, u16)
D2S_UNSIGNED(uint32_t, u32)
D2S_UNSIGNED(uint64_t, u64)

/* Compositions ------------------------------------------------------------------------------------------------------ */

/* The logistic function as Chainer computes it: below about -17 (float) it is 0. */
D2S_FUNCTION float sigmoid_f32(float x) { return tanh_f32(x * 0.5f) * 0.5f + 0.5f; }
D2S_FUNCTION double sigmoid_f64(double x) { return tanh_f64(x * 0.5) * 0.5 + 0.5; }

/* log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)) */
D2S_FUNCTION float softplus_f32(float x) { return maximum_f32(x, 0) + log1p_f32(exp_f32(-fabs_f32(x))); }
D2S_FUNCTION double softplus_f64(double x) { return maximum_f64(x, 0) + log1p_f64(exp_f64(-fabs_f64(x))); }

#endif
