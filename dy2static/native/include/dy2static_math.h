/* Functions of one element that generated code calls: NumPy's, for C's types.
 *
 * A name ends with the type: f32 f64 i8 i16 i32 i64 u8 u16 u32 u64.  Floating-point flags are part of the meaning: a function
 * raises divide, overflow or invalid where NumPy would warn, and nowhere else.  For gcc and clang; needs -fwrapv (ints wrap)
 * and -fno-math-errno.
 */
#ifndef DY2STATIC_MATH_H
#define DY2STATIC_MATH_H

#ifdef __CUDACC__                       /* a GPU, which has no flags to raise */
#include "dy2static_device.h"
#else
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define D2S_FUNCTION static inline __attribute__((always_inline, unused))
#define D2S_RARE static __attribute__((noinline, cold, unused))
#endif

/* Exponentials, logarithms, sine, cosine, tanh: straight code that compilers turn into vector instructions. ----------
 *
 * Reductions are Cody and Waite's (Software Manual for the Elementary Functions, 1980): the multiple of ln 2, or of pi/2, is
 * taken away in parts, the first of which leaves an exact difference.  Polynomials are Chebyshev interpolations on the
 * interval that the comment names, computed in 300 bits (mpmath.chebyfit) and rounded.  Rounding to an int is the addition
 * of 1.5 * 2^23 (1.5 * 2^52), after which the low bits of the sum are the int: no conversion, which could raise invalid.
 * Comparisons with constants are done on the bits: vector comparisons of floats raise invalid for NaN.  Errors as measured stand in docs/numerics.md.
 */

#ifdef __FP_FAST_FMAF
#define D2S_FMAF(a, b, c) __builtin_fmaf(a, b, c)
#else
#define D2S_FMAF(a, b, c) ((a) * (b) + (c))
#endif
#ifdef __FP_FAST_FMA
#define D2S_FMA(a, b, c) __builtin_fma(a, b, c)
#else
#define D2S_FMA(a, b, c) ((a) * (b) + (c))
#endif

typedef union { float f; uint32_t u; int32_t i; } d2s_bits32;
typedef union { double f; uint64_t u; int64_t i; } d2s_bits64;

#ifdef __CUDACC__
D2S_FUNCTION uint32_t d2s_bits_f32(float x) { return (uint32_t)__float_as_uint(x); }
D2S_FUNCTION float d2s_of_bits_f32(uint32_t u) { return __uint_as_float(u); }
D2S_FUNCTION uint64_t d2s_bits_f64(double x) { return (uint64_t)__double_as_longlong(x); }
D2S_FUNCTION double d2s_of_bits_f64(uint64_t u) { return __longlong_as_double((long long)u); }
#else
D2S_FUNCTION uint32_t d2s_bits_f32(float x) { return ((d2s_bits32){.f = x}).u; }
D2S_FUNCTION float d2s_of_bits_f32(uint32_t u) { return ((d2s_bits32){.u = u}).f; }
D2S_FUNCTION uint64_t d2s_bits_f64(double x) { return ((d2s_bits64){.f = x}).u; }
D2S_FUNCTION double d2s_of_bits_f64(uint64_t u) { return ((d2s_bits64){.u = u}).f; }
#endif

/* yes or no, by masks: a compiler makes branches of ?: between computed numbers, and loops with branches stay scalar. */
D2S_FUNCTION uint32_t d2s_pick_u32(bool test, uint32_t yes, uint32_t no) {
    uint32_t mask = -(uint32_t)test; return (yes & mask) | (no & ~mask); }
D2S_FUNCTION uint64_t d2s_pick_u64(bool test, uint64_t yes, uint64_t no) {
    uint64_t mask = -(uint64_t)test; return (yes & mask) | (no & ~mask); }
D2S_FUNCTION float d2s_pick_f32(bool test, float yes, float no) {
    return d2s_of_bits_f32(d2s_pick_u32(test, d2s_bits_f32(yes), d2s_bits_f32(no))); }
D2S_FUNCTION double d2s_pick_f64(bool test, double yes, double no) {
    return d2s_of_bits_f64(d2s_pick_u64(test, d2s_bits_f64(yes), d2s_bits_f64(no))); }

/* 2^k for a k that gives a normal number */
D2S_FUNCTION float d2s_two_to_f32(uint32_t k) { return d2s_of_bits_f32((k + 127) << 23); }
D2S_FUNCTION double d2s_two_to_f64(uint64_t k) { return d2s_of_bits_f64((k + 1023) << 52); }

D2S_FUNCTION float d2s_with_sign_f32(float x, float sign) {
    return d2s_of_bits_f32((d2s_bits_f32(x) & 0x7fffffffu) | (d2s_bits_f32(sign) & 0x80000000u)); }
D2S_FUNCTION double d2s_with_sign_f64(double x, double sign) {
    return d2s_of_bits_f64((d2s_bits_f64(x) & 0x7fffffffffffffffu) | (d2s_bits_f64(sign) & 0x8000000000000000u)); }

/* x between two bounds, low < 0 < high, that bits of floats order like ints; NaN becomes one of them. */
D2S_FUNCTION float d2s_bounded_f32(float x, float low, float high) {
    uint32_t u = d2s_bits_f32(x), least = d2s_bits_f32(low), most = d2s_bits_f32(high);
    u = (int32_t)u > (int32_t)most ? most : u;
    return d2s_of_bits_f32(u > least ? least : u); }
D2S_FUNCTION double d2s_bounded_f64(double x, double low, double high) {
    uint64_t u = d2s_bits_f64(x), least = d2s_bits_f64(low), most = d2s_bits_f64(high);
    u = (int64_t)u > (int64_t)most ? most : u;
    return d2s_of_bits_f64(u > least ? least : u); }

/* ints in the order of floats: zeros are equal, NaN is what is given */
D2S_FUNCTION int32_t d2s_order_f32(float x, int32_t nan) {
    int32_t i = (int32_t)d2s_bits_f32(x + 0.0f);
    i ^= (i >> 31) & INT32_MAX;
    return (int32_t)d2s_pick_u32(x != x, (uint32_t)nan, (uint32_t)i); }
D2S_FUNCTION int64_t d2s_order_f64(double x, int64_t nan) {
    int64_t i = (int64_t)d2s_bits_f64(x + 0.0);
    i ^= (i >> 63) & INT64_MAX;
    return (int64_t)d2s_pick_u64(x != x, (uint64_t)nan, (uint64_t)i); }

/* whether x is infinity or NaN, as opposed to finite or -infinity */
#define D2S_STAYS(x) (((x) == INFINITY) | ((x) != (x)))

/* expm1(r) for |r| <= ln 2 / 2 */
D2S_FUNCTION float d2s_expm1_near_f32(float r) {
    /* (exp(r) - 1 - r) / r^2 on [-0.3473, 0.3473], error 6.6e-8 */
    float s = r * r, p = D2S_FMAF(D2S_FMAF(0x1.6d11fep-10f, r, 0x1.120c62p-7f), s, D2S_FMAF(0x1.555518p-5f, r, 0x1.5554dcp-3f));
    p = D2S_FMAF(p, r, 0.5f);
    return D2S_FMAF(s, p, r);
}

D2S_FUNCTION double d2s_expm1_near_f64(double r) {
    /* (exp(r) - 1 - r) / r^2 on [-0.3473, 0.3473], error 1.5e-18 */
    double p = D2S_FMA(0x1.1f7385560be05p-29, r, 0x1.af4ecd2129492p-26);
    p = D2S_FMA(p, r, 0x1.27e4db25ce3adp-22);
    p = D2S_FMA(p, r, 0x1.71de01c3fc936p-19);
    p = D2S_FMA(p, r, 0x1.a01a01a6ec522p-16);
    p = D2S_FMA(p, r, 0x1.a01a01ac0a9eep-13);
    p = D2S_FMA(p, r, 0x1.6c16c16c162b0p-10);
    p = D2S_FMA(p, r, 0x1.111111111009cp-7);
    p = D2S_FMA(p, r, 0x1.5555555555556p-5);
    p = D2S_FMA(p, r, 0x1.5555555555557p-3);
    p = D2S_FMA(p, r, 0.5);
    return D2S_FMA(r * r, p, r);
}

/* x = k ln 2 + r with |r| <= ln 2 / 2; expm1(r) is the result.  |x| < 1000. */
D2S_FUNCTION float d2s_expm1_part_f32(float x, uint32_t *k) {
    float shifted = D2S_FMAF(x, 0x1.715476p+0f, 0x1.8p+23f), n = shifted - 0x1.8p+23f;
    float r = D2S_FMAF(n, -0x1.62e4p-1f, x);
    *k = d2s_bits_f32(shifted) - 0x4b400000u;
    return d2s_expm1_near_f32(D2S_FMAF(n, -0x1.7f7d1cp-20f, r));
}

D2S_FUNCTION double d2s_expm1_part_f64(double x, uint64_t *k) {
    double shifted = D2S_FMA(x, 0x1.71547652b82fep+0, 0x1.8p+52), n = shifted - 0x1.8p+52;
    double r = D2S_FMA(n, -0x1.62e42fefap-1, x);
    *k = d2s_bits_f64(shifted) - 0x4338000000000000u;
    return d2s_expm1_near_f64(D2S_FMA(n, -0x1.cf79abc9e3b3ap-40, r));
}

/* y 2^k, an exponential of x, multiplied in two steps, so that denormal results are rounded once.  The second factor is
 * infinite for infinity alone: finite numbers that are too large overflow.  For NaN it is NaN, and 0 where the result rounds to 0
 * whatever y is: a product that underflows takes a hundred times as long, and those of masked scores all would. */
D2S_FUNCTION float d2s_scaled_f32(float y, uint32_t k, float x) {
    uint32_t half = (uint32_t)((int32_t)k >> 1);
    float scale = d2s_two_to_f32(k - half);
    scale = d2s_pick_f32(D2S_STAYS(x), x, d2s_pick_f32((int32_t)k < -150, 0.0f, scale));
    return y * d2s_two_to_f32(half) * scale;
}

D2S_FUNCTION double d2s_scaled_f64(double y, uint64_t k, double x) {
    uint64_t half = (uint64_t)((int64_t)k >> 1);
    double scale = d2s_two_to_f64(k - half);
    scale = d2s_pick_f64(D2S_STAYS(x), x, d2s_pick_f64((int64_t)k < -1075, 0.0, scale));
    return y * d2s_two_to_f64(half) * scale;
}

D2S_FUNCTION float exp_f32(float x) {
    uint32_t k;
    float y = d2s_expm1_part_f32(d2s_bounded_f32(x, -105.0f, 89.0f), &k) + 1.0f;
    return d2s_scaled_f32(y, k, x);
}

D2S_FUNCTION double exp_f64(double x) {
    uint64_t k;
    double y = d2s_expm1_part_f64(d2s_bounded_f64(x, -746.0, 710.0), &k) + 1.0;
    return d2s_scaled_f64(y, k, x);
}

/* 2^x: x = k + r */
D2S_FUNCTION float exp2_f32(float x) {
    float bounded = d2s_bounded_f32(x, -152.0f, 129.0f), shifted = bounded + 0x1.8p+23f;
    float y = d2s_expm1_near_f32((bounded - (shifted - 0x1.8p+23f)) * 0x1.62e43p-1f) + 1.0f;
    return d2s_scaled_f32(y, d2s_bits_f32(shifted) - 0x4b400000u, x);
}

D2S_FUNCTION double exp2_f64(double x) {
    double bounded = d2s_bounded_f64(x, -1077.0, 1025.0), shifted = bounded + 0x1.8p+52;
    double y = d2s_expm1_near_f64((bounded - (shifted - 0x1.8p+52)) * 0x1.62e42fefa39efp-1) + 1.0;
    return d2s_scaled_f64(y, d2s_bits_f64(shifted) - 0x4338000000000000u, x);
}

/* expm1(x) = 2^k expm1(r) + (2^k - 1); the last power of two is a factor of the sum. */
D2S_FUNCTION float expm1_f32(float x) {
    uint32_t k;
    float y = d2s_expm1_part_f32(d2s_bounded_f32(x, -20.0f, 89.0f), &k);
    uint32_t last = (int32_t)k > 127;
    float power = d2s_two_to_f32(k - last), scale = d2s_two_to_f32(last);
    scale = d2s_pick_f32(D2S_STAYS(x), x, scale);
    return d2s_with_sign_f32(D2S_FMAF(power, y, power - 1.0f) * scale, x);
}

D2S_FUNCTION double expm1_f64(double x) {
    uint64_t k;
    double y = d2s_expm1_part_f64(d2s_bounded_f64(x, -40.0, 710.0), &k);
    uint64_t last = (int64_t)k > 1023;
    double power = d2s_two_to_f64(k - last), scale = d2s_two_to_f64(last);
    scale = d2s_pick_f64(D2S_STAYS(x), x, scale);
    return d2s_with_sign_f64(D2S_FMA(power, y, power - 1.0) * scale, x);
}

/* tanh(x) = x + x^3 P(x^2) near 0, else 1 - 2 / (exp(2 |x|) + 1) with the sign of x.  The second form, at least 0, for 0 <= 2 a <= 40:
 * sums wait for each other for as short as possible. */
D2S_FUNCTION float d2s_tanh_part_f32(float twice) {
    float shifted = D2S_FMAF(twice, 0x1.715476p+0f, 0x1.8p+23f), n = shifted - 0x1.8p+23f;
    float r = D2S_FMAF(n, -0x1.7f7d1cp-20f, D2S_FMAF(n, -0x1.62e4p-1f, twice));
    float power = d2s_two_to_f32(d2s_bits_f32(shifted) - 0x4b400000u), s = r * r;
    /* as in d2s_expm1_near_f32 */
    float p = D2S_FMAF(D2S_FMAF(0x1.6d11fep-10f, r, 0x1.120c62p-7f), s, D2S_FMAF(0x1.555518p-5f, r, 0x1.5554dcp-3f));
    float y = D2S_FMAF(s * r, p, D2S_FMAF(s, 0.5f, r));
    return 1.0f - 2.0f / D2S_FMAF(power, y, power + 1.0f); }
D2S_FUNCTION double d2s_tanh_part_f64(double a) {
    uint64_t k;
    double y = d2s_expm1_part_f64(a + a, &k) + 1.0;
    return 1.0 - 2.0 / D2S_FMA(y, d2s_two_to_f64(k), 1.0); }

/* an odd function of x, from its result for |x|, which is at least 0; NaN for NaN */
D2S_FUNCTION float d2s_odd_f32(float x, float y) {
    return d2s_pick_f32(x != x, x, d2s_of_bits_f32(d2s_bits_f32(y) | (d2s_bits_f32(x) & 0x80000000u))); }
D2S_FUNCTION double d2s_odd_f64(double x, double y) {
    return d2s_pick_f64(x != x, x, d2s_of_bits_f64(d2s_bits_f64(y) | (d2s_bits_f64(x) & 0x8000000000000000u))); }

D2S_FUNCTION float tanh_f32(float x) {
    uint32_t u = d2s_bits_f32(x) & 0x7fffffffu, most = d2s_bits_f32(10.0f);
    float a = d2s_of_bits_f32(u > most ? most : u), z = a * a;
    bool near = (int32_t)u < (int32_t)d2s_bits_f32(0.6f);
    /* (tanh(x) - x) / x^3 in z = x^2 on [0, 0.36], error 3e-8 */
    float p = D2S_FMAF(-0x1.9ada60p-8f, z, 0x1.59e1c8p-6f);
    p = D2S_FMAF(p, z, -0x1.b955dcp-5f);
    p = D2S_FMAF(p, z, 0x1.110ee0p-3f);
    p = D2S_FMAF(p, z, -0x1.555554p-2f);
    p = D2S_FMAF(a * z, p, a);
    return d2s_odd_f32(x, d2s_pick_f32(near, p, d2s_tanh_part_f32(a + a)));
}

D2S_FUNCTION double tanh_f64(double x) {
    uint64_t u = d2s_bits_f64(x) & 0x7fffffffffffffffu, most = d2s_bits_f64(20.0);
    double a = d2s_of_bits_f64(u > most ? most : u), z = a * a;
    bool near = (int64_t)u < (int64_t)d2s_bits_f64(0.6);
    /* (tanh(x) - x) / x^3 in z = x^2 on [0, 0.36], error 4.7e-17 */
    double p = D2S_FMA(-0x1.33a05b8be40c9p-16, z, 0x1.5608d4996ede8p-14);
    p = D2S_FMA(p, z, -0x1.e710d3f9482d6p-13);
    p = D2S_FMA(p, z, 0x1.344f4ae815c3fp-11);
    p = D2S_FMA(p, z, -0x1.7d8a96e9fe13bp-10);
    p = D2S_FMA(p, z, 0x1.d6d24f72aa874p-9);
    p = D2S_FMA(p, z, -0x1.226e2e08421ccp-7);
    p = D2S_FMA(p, z, 0x1.664f4858deaccp-6);
    p = D2S_FMA(p, z, -0x1.ba1ba1b9a09d7p-5);
    p = D2S_FMA(p, z, 0x1.1111111110ca7p-3);
    p = D2S_FMA(p, z, -0x1.5555555555554p-2);
    p = D2S_FMA(a * z, p, a);
    return d2s_odd_f64(x, d2s_pick_f64(near, p, d2s_tanh_part_f64(a)));
}

/* erf(x) = 27/32 x + x N(x^2) / D(x^2) near 0, else 1 - 1 / P(a)^8 with a = |x| and the sign of x; beyond the bound of a it is 1.
 * Both have one quotient.  The coefficients are moved from the fit by some last places, to where rounding makes the least errors. */
D2S_FUNCTION float erf_f32(float x) {
    uint32_t u = d2s_bits_f32(x) & 0x7fffffffu, most = d2s_bits_f32(4.0f);
    float a = d2s_of_bits_f32(u > most ? most : u), z = a * a;
    bool near = (int32_t)u < (int32_t)d2s_bits_f32(0x1.6421e4p+0f);
    /* erf(x) / x - 27/32 in z = x^2 on [0, 1.94], error 2.0e-9 */
    float n = D2S_FMAF(D2S_FMAF(-0x1.4062c2p-8f, z, -0x1.065d80p-5f), z, -0x1.fe9b8cp-3f);
    n = D2S_FMAF(n, z, 0x1.2375d4p-2f);
    float d = D2S_FMAF(D2S_FMAF(0x1.8a6e92p-8f, z, 0x1.46b816p-4f), z, 0x1.c83500p-2f);
    d = D2S_FMAF(d, z, 1.0f);
    /* erfc(a)^(-1/8) on [1.39, 4], error of the result 2.1e-9 */
    float p = D2S_FMAF(D2S_FMAF(0x1.de9166p-11f, a, -0x1.235924p-7f), z, D2S_FMAF(0x1.71fd74p-5f, a, -0x1.e10e62p-4f));
    p = D2S_FMAF(p, z, D2S_FMAF(0x1.d2f41ap-3f, a, -0x1.e367c6p-4f));
    p = D2S_FMAF(p, z, D2S_FMAF(0x1.096e00p-2f, a, 0x1.f1369ap-1f));
    p *= p;
    p *= p;
    p *= p;
    float y = d2s_pick_f32(near, a * n, -1.0f) / d2s_pick_f32(near, d, p);
    return d2s_odd_f32(x, D2S_FMAF(d2s_pick_f32(near, a, 1.0f), d2s_pick_f32(near, 0.84375f, 1.0f), y));
}

/* erf(x) = x + x P(x^2) near 0, else 1 - exp(a Q(a)) with a = |x| and the sign of x; beyond the bound of a it is 1.  Q is fitted by
 * weighted least squares, so that the largest error of the result is least. */
D2S_FUNCTION double erf_f64(double x) {
    uint64_t k, u = d2s_bits_f64(x) & 0x7fffffffffffffffu, most = d2s_bits_f64(6.0);
    double a = d2s_of_bits_f64(u > most ? most : u), z = a * a;
    bool near = (int64_t)u < (int64_t)d2s_bits_f64(1.0);
    /* log(erfc(a)) / a on [1, 6], error of the result 3.5e-18 */
    double q = D2S_FMA(0x1.a858cb0e7d5dbp-40, a, -0x1.26aaa8138e7fep-34);
    q = D2S_FMA(q, a, 0x1.7f38e4c2b346ep-30);
    q = D2S_FMA(q, a, -0x1.35deac2464286p-26);
    q = D2S_FMA(q, a, 0x1.5c827d60187eap-23);
    q = D2S_FMA(q, a, -0x1.2045fd093df51p-20);
    q = D2S_FMA(q, a, 0x1.6829f8de32b67p-18);
    q = D2S_FMA(q, a, -0x1.5466a498beccdp-16);
    q = D2S_FMA(q, a, 0x1.d4b748042f275p-15);
    q = D2S_FMA(q, a, -0x1.8f13ab6c55744p-14);
    q = D2S_FMA(q, a, 0x1.c25da1dc4a0c5p-22);
    q = D2S_FMA(q, a, 0x1.2da90235072bbp-11);
    q = D2S_FMA(q, a, -0x1.bbe4768fa7115p-10);
    q = D2S_FMA(q, a, 0x1.bdc9ed6ad7f34p-13);
    q = D2S_FMA(q, a, 0x1.3956afadaf95ap-6);
    q = D2S_FMA(q, a, -0x1.a4f2e7ece12c1p-4);
    q = D2S_FMA(q, a, -0x1.45f317da82306p-1);
    q = D2S_FMA(q, a, -0x1.20dd740674a90p+0);
    double y = d2s_expm1_part_f64(a * q, &k) + 1.0;
    y = D2S_FMA(-y, d2s_two_to_f64(k), 1.0);
    /* erf(x) / x - 1 in z = x^2 on [0, 1], error 7.4e-18 */
    double p = D2S_FMA(-0x1.ac9585a44fe29p-31, z, 0x1.d76af6ca49787p-27);
    p = D2S_FMA(p, z, -0x1.5c131500d3f88p-23);
    p = D2S_FMA(p, z, 0x1.b981d78881a5dp-20);
    p = D2S_FMA(p, z, -0x1.f4ca838adb73bp-17);
    p = D2S_FMA(p, z, 0x1.f9a2be4f731a1p-14);
    p = D2S_FMA(p, z, -0x1.c02db0665e53dp-11);
    p = D2S_FMA(p, z, 0x1.565bccfa44156p-8);
    p = D2S_FMA(p, z, -0x1.b82ce31203772p-6);
    p = D2S_FMA(p, z, 0x1.ce2f21a040f66p-4);
    p = D2S_FMA(p, z, -0x1.812746b0379c1p-2);
    p = D2S_FMA(p, z, 0x1.06eba8214db68p-3);
    p = D2S_FMA(a, p, a);
    return d2s_odd_f64(x, d2s_pick_f64(near, p, y));
}

/* What a logarithm of x adds to its sum, itself a sum: x + x if it is infinite or NaN; for ``lowest``, where the logarithm
 * is that of 0, two numbers that overflow to -infinity; below, infinity - infinity, which raises invalid; else nothing. */
D2S_FUNCTION float d2s_log_special_f32(float x, float lowest) {
    uint32_t u = d2s_bits_f32(x), special = d2s_pick_u32(u > (d2s_bits_f32(lowest) | 0x80000000u), 0x7f800000u, 0);
    special = d2s_pick_u32(x == lowest, 0xff7fffffu, special);
    special = d2s_pick_u32(D2S_STAYS(x), u, special);
    return d2s_of_bits_f32(special) + d2s_of_bits_f32(special | (u & 0x80000000u));
}

D2S_FUNCTION double d2s_log_special_f64(double x, double lowest) {
    uint64_t u = d2s_bits_f64(x), special = d2s_pick_u64(u > (d2s_bits_f64(lowest) | 0x8000000000000000u), 0x7ff0000000000000u, 0);
    special = d2s_pick_u64(x == lowest, 0xffefffffffffffffu, special);
    special = d2s_pick_u64(D2S_STAYS(x), u, special);
    return d2s_of_bits_f64(special) + d2s_of_bits_f64(special | (u & 0x8000000000000000u));
}

/* log(1 + f) - f for 2/3 <= 1 + f < 4/3 */
D2S_FUNCTION float d2s_log_part_f32(float f) {
    /* (log(1 + f) - f + f^2 / 2) / f^3 on [-1/3, 1/3], error 2.9e-8 */
    float p = D2S_FMAF(0x1.d01a22p-4f, f, -0x1.fcd036p-4f);
    p = D2S_FMAF(p, f, 0x1.bf1af0p-4f);
    p = D2S_FMAF(p, f, -0x1.f75896p-4f);
    p = D2S_FMAF(p, f, 0x1.24b28cp-3f);
    p = D2S_FMAF(p, f, -0x1.557832p-3f);
    p = D2S_FMAF(p, f, 0x1.999954p-3f);
    p = D2S_FMAF(p, f, -0x1.ffffb6p-3f);
    p = D2S_FMAF(p, f, 0x1.555556p-2f);
    p = D2S_FMAF(p, f, -0.5f);
    return f * f * p;
}

/* With s = f / (2 + f), log(1 + f) = 2 atanh(s) = f - s (f - R) where R = s^2 ((2 atanh(s) - 2 s) / s^3) */
D2S_FUNCTION double d2s_log_part_f64(double f) {
    double s = f / (f + 2.0), z = s * s, h = 0.5 * f * f;
    /* (2 atanh(s) - 2 s) / s^3 in z = s^2 on [0, 0.0401], error 2.6e-17 */
    double p = D2S_FMA(0x1.16b68338bd78bp-3, z, 0x1.0e88ea4725d3dp-3);
    p = D2S_FMA(p, z, 0x1.3b29fcbbce66dp-3);
    p = D2S_FMA(p, z, 0x1.745cab2727663p-3);
    p = D2S_FMA(p, z, 0x1.c71c72e2f78d5p-3);
    p = D2S_FMA(p, z, 0x1.24924923dba6ap-2);
    p = D2S_FMA(p, z, 0x1.9999999999f30p-2);
    p = D2S_FMA(p, z, 0x1.5555555555555p-1);
    return s * D2S_FMA(z, p, h) - h;
}

/* x = 2^e m with 2/3 <= m < 4/3; gives m - 1 */
D2S_FUNCTION float d2s_split_f32(float x, float *e) {
    uint32_t up = d2s_pick_u32((int32_t)d2s_bits_f32(x) < 0x00800000, 23, 0);          /* denormal */
    uint32_t bits = d2s_bits_f32(x * d2s_two_to_f32(up));
    int32_t exponent = (int32_t)(bits - 0x3f2aaaabu) >> 23;
    *e = (float)(exponent - (int32_t)up);
    return d2s_of_bits_f32(bits - ((uint32_t)exponent << 23)) - 1.0f;
}

/* A number below 2^51 in size is the low bits of a double next to 1.5 * 2^52: older processors convert no 64-bit ints. */
D2S_FUNCTION double d2s_small_int_f64(int64_t n) {
    return d2s_of_bits_f64((uint64_t)n + 0x4338000000000000u) - 0x1.8p+52; }

D2S_FUNCTION double d2s_split_f64(double x, double *e) {
    uint64_t up = d2s_pick_u64((int64_t)d2s_bits_f64(x) < 0x0010000000000000, 52, 0);
    uint64_t bits = d2s_bits_f64(x * d2s_two_to_f64(up));
    int64_t exponent = (int64_t)(bits - 0x3fe5555555555555u) >> 52;
    *e = d2s_small_int_f64(exponent - (int64_t)up);
    return d2s_of_bits_f64(bits - ((uint64_t)exponent << 52)) - 1.0;
}

D2S_FUNCTION float log_f32(float x) {
    float e, f = d2s_split_f32(x, &e), special = d2s_log_special_f32(x, 0);
    float y = D2S_FMAF(e, 0x1.7f7d1cp-20f, d2s_log_part_f32(f)) + f;
    return D2S_FMAF(e, 0x1.62e4p-1f, y) + special;
}

D2S_FUNCTION double log_f64(double x) {
    double e, f = d2s_split_f64(x, &e), special = d2s_log_special_f64(x, 0);
    double y = D2S_FMA(e, 0x1.cf79abc9e3b3ap-40, d2s_log_part_f64(f)) + f;
    return D2S_FMA(e, 0x1.62e42fefap-1, y) + special;
}

D2S_FUNCTION float log2_f32(float x) {
    float e, f = d2s_split_f32(x, &e), special = d2s_log_special_f32(x, 0), y = d2s_log_part_f32(f);
    y = D2S_FMAF(f, 0x1.4ae0cp-26f, y * 0x1.715476p+0f);
    return D2S_FMAF(f, 0x1.715476p+0f, y) + e + special;
}

D2S_FUNCTION double log2_f64(double x) {
    double e, f = d2s_split_f64(x, &e), special = d2s_log_special_f64(x, 0), y = d2s_log_part_f64(f);
    y = D2S_FMA(f, 0x1.777d0ffda0d24p-56, y * 0x1.71547652b82fep+0);
    return D2S_FMA(f, 0x1.71547652b82fep+0, y) + e + special;
}

/* 1 + x = 2^e m; m - 1 = 2^-e x + (2^-e - 1) needs no rounded 1 + x.  Where x is so large that 1 does not matter it is that
 * of x. */
D2S_FUNCTION float log1p_f32(float x) {
    uint32_t bits = d2s_bits_f32(1.0f + x);
    int32_t exponent = (int32_t)(bits - 0x3f2aaaabu) >> 23;
    float e = (float)exponent, special = d2s_log_special_f32(x, -1.0f);
    float down = d2s_two_to_f32(-(uint32_t)(exponent > 60 ? 60 : exponent));
    bool large = (int32_t)d2s_bits_f32(x) > (int32_t)d2s_bits_f32(0x1p+60f);
    float near = d2s_pick_f32(large, 0.0f, x);
    float far = d2s_of_bits_f32(bits - ((uint32_t)exponent << 23)) - 1.0f;
    float f = D2S_FMAF(near, down, down - 1.0f);
    f = d2s_pick_f32(large, far, f);
    float y = D2S_FMAF(e, 0x1.7f7d1cp-20f, d2s_log_part_f32(f)) + f;
    return d2s_with_sign_f32(D2S_FMAF(e, 0x1.62e4p-1f, y) + special, x);
}

D2S_FUNCTION double log1p_f64(double x) {
    uint64_t bits = d2s_bits_f64(1.0 + x);
    int64_t exponent = (int64_t)(bits - 0x3fe5555555555555u) >> 52;
    double e = d2s_small_int_f64(exponent), special = d2s_log_special_f64(x, -1.0);
    double down = d2s_two_to_f64(-(uint64_t)(exponent > 500 ? 500 : exponent));
    bool large = (int64_t)d2s_bits_f64(x) > (int64_t)d2s_bits_f64(0x1p+500);
    double near = d2s_pick_f64(large, 0.0, x);
    double far = d2s_of_bits_f64(bits - ((uint64_t)exponent << 52)) - 1.0;
    double f = D2S_FMA(near, down, down - 1.0);
    f = d2s_pick_f64(large, far, f);
    double y = D2S_FMA(e, 0x1.cf79abc9e3b3ap-40, d2s_log_part_f64(f)) + f;
    return d2s_with_sign_f64(D2S_FMA(e, 0x1.62e42fefap-1, y) + special, x);
}

/* x = k pi/2 + r: pi/2 in three parts; fused products leave exact differences.  Of numbers beyond 2^20 (2^30) too many digits
 * of pi would be needed: they raise overflow, so that NumPy gets the call. */
#ifdef __FP_FAST_FMAF
D2S_FUNCTION float d2s_quadrant_f32(float x, uint32_t *k) {
    float a = d2s_of_bits_f32(d2s_bits_f32(x) & 0x7fffffffu), beyond = d2s_pick_f32(d2s_bits_f32(a) > d2s_bits_f32(0x1p+20f), a, 0.0f);
    float shifted = D2S_FMAF(x, 0x1.45f306p-1f, 0x1.8p+23f), n = shifted - 0x1.8p+23f;
    float r = D2S_FMAF(n, -0x1.921fb6p+0f, x);
    r = D2S_FMAF(n, 0x1.777a5cp-25f, r);
    r = D2S_FMAF(n, 0x1.ee59dap-50f, r);
    *k = d2s_bits_f32(shifted);
    return D2S_FMAF(-beyond, FLT_MAX, r);
}

/* sin(r), or cos(r) where k is odd, negated where the second bit of k is set, for |r| < 0.85 */
D2S_FUNCTION float d2s_sin_cos_f32(float r, uint32_t k) {
    float z = r * r;
    /* (sin(r) - r) / r^3 in z = r^2 on [0, 0.7225], error 3.2e-8 */
    float s = D2S_FMAF(-0x1.99e26cp-13f, z, 0x1.110a58p-7f);
    s = D2S_FMAF(s, z, -0x1.555552p-3f);
    s = D2S_FMAF(r * z, s, r);
    /* (cos(r) - 1 + r^2 / 2) / r^4 in z = r^2 on [0, 0.7225], error 3.2e-9 */
    float c = D2S_FMAF(0x1.9b1f2cp-16f, z, -0x1.6c115ep-10f);
    c = D2S_FMAF(c, z, 0x1.555554p-5f);
    c = D2S_FMAF(c, z, -0.5f);
    c = D2S_FMAF(c, z, 1.0f);
    uint32_t y = d2s_pick_u32(k & 1, d2s_bits_f32(c), d2s_bits_f32(s));
    return d2s_of_bits_f32(y ^ ((k & 2) << 30));
}

D2S_FUNCTION float sin_f32(float x) {
    uint32_t k;
    float r = d2s_quadrant_f32(x, &k);
    r = d2s_sin_cos_f32(r, k);
    return d2s_pick_f32(x == 0, x, r);
}

D2S_FUNCTION float cos_f32(float x) {
    uint32_t k;
    float r = d2s_quadrant_f32(x, &k);
    return d2s_sin_cos_f32(r, k + 1);
}
#else
D2S_FUNCTION float sin_f32(float x) { return sinf(x); }
D2S_FUNCTION float cos_f32(float x) { return cosf(x); }
#endif

#ifdef __FP_FAST_FMA
D2S_FUNCTION double d2s_quadrant_f64(double x, uint64_t *k) {
    double a = d2s_of_bits_f64(d2s_bits_f64(x) & 0x7fffffffffffffffu), beyond = d2s_pick_f64(d2s_bits_f64(a) > d2s_bits_f64(0x1p+30), a, 0.0);
    double shifted = D2S_FMA(x, 0x1.45f306dc9c883p-1, 0x1.8p+52), n = shifted - 0x1.8p+52;
    double r = D2S_FMA(n, -0x1.921fb54442d18p+0, x);
    r = D2S_FMA(n, -0x1.1a62633145c07p-54, r);
    r = D2S_FMA(n, 0x1.f1976b7ed8fbcp-110, r);
    *k = d2s_bits_f64(shifted);
    return D2S_FMA(-beyond, DBL_MAX, r);
}

D2S_FUNCTION double d2s_sin_cos_f64(double r, uint64_t k) {
    double z = r * r;
    /* (sin(r) - r) / r^3 in z = r^2 on [0, 0.6241], error 2.2e-17 */
    double s = D2S_FMA(0x1.5e01d1798c2b3p-33, z, -0x1.ae5ff116c8d06p-26);
    s = D2S_FMA(s, z, 0x1.71de377d84985p-19);
    s = D2S_FMA(s, z, -0x1.a01a019e70424p-13);
    s = D2S_FMA(s, z, 0x1.1111111110b60p-7);
    s = D2S_FMA(s, z, -0x1.5555555555555p-3);
    s = D2S_FMA(r * z, s, r);
    /* (cos(r) - 1 + r^2 / 2) / r^4 in z = r^2 on [0, 0.6241], error 1.4e-18 */
    double c = D2S_FMA(-0x1.907458a591af7p-37, z, 0x1.1eeb5bf022724p-29);
    c = D2S_FMA(c, z, -0x1.27e4fa0b544edp-22);
    c = D2S_FMA(c, z, 0x1.a01a019f44f97p-16);
    c = D2S_FMA(c, z, -0x1.6c16c16c1693ep-10);
    c = D2S_FMA(c, z, 0x1.5555555555555p-5);
    c = D2S_FMA(c, z, -0.5);
    c = D2S_FMA(c, z, 1.0);
    uint64_t y = d2s_pick_u64(k & 1, d2s_bits_f64(c), d2s_bits_f64(s));
    return d2s_of_bits_f64(y ^ ((k & 2) << 62));
}

D2S_FUNCTION double sin_f64(double x) {
    uint64_t k;
    double r = d2s_quadrant_f64(x, &k);
    r = d2s_sin_cos_f64(r, k);
    return d2s_pick_f64(x == 0, x, r);
}

D2S_FUNCTION double cos_f64(double x) {
    uint64_t k;
    double r = d2s_quadrant_f64(x, &k);
    return d2s_sin_cos_f64(r, k + 1);
}
#else
D2S_FUNCTION double sin_f64(double x) { return sin(x); }
D2S_FUNCTION double cos_f64(double x) { return cos(x); }
#endif

/* log10(x) = e log10(2) + log(1 + f) / ln 10; e times the first part of log10(2) is exact. */
D2S_FUNCTION float log10_f32(float x) {
    float e, f = d2s_split_f32(x, &e), special = d2s_log_special_f32(x, 0), y = d2s_log_part_f32(f) * 0x1.bcb7b2p-2f;
    y = D2S_FMAF(e, 0x1.3509f8p-18f, D2S_FMAF(f, -0x1.5b235ep-27f, y));
    return D2S_FMAF(e, 0x1.3440p-2f, D2S_FMAF(f, 0x1.bcb7b2p-2f, y)) + special;
}

D2S_FUNCTION double log10_f64(double x) {
    double e, f = d2s_split_f64(x, &e), special = d2s_log_special_f64(x, 0), y = d2s_log_part_f64(f) * 0x1.bcb7b1526e50ep-2;
    y = D2S_FMA(e, 0x1.3fde623e2566bp-43, D2S_FMA(f, 0x1.95355baaafad3p-57, y));
    return D2S_FMA(e, 0x1.34413509f7000p-2, D2S_FMA(f, 0x1.bcb7b1526e50ep-2, y)) + special;
}

/* exp(a) / 2 for a >= 0, which overflows where sinh(a) does; k: the power of two in it */
D2S_FUNCTION float d2s_half_exp_f32(float a, uint32_t *k) {
    float y = d2s_expm1_part_f32(d2s_bounded_f32(a, -1.0f, 91.0f), k) + 1.0f;
    uint32_t half = (uint32_t)((int32_t)(*k -= 1) >> 1);
    return y * d2s_two_to_f32(half) * d2s_pick_f32(D2S_STAYS(a), a, d2s_two_to_f32(*k - half));
}

D2S_FUNCTION double d2s_half_exp_f64(double a, uint64_t *k) {
    double y = d2s_expm1_part_f64(d2s_bounded_f64(a, -1.0, 712.0), k) + 1.0;
    uint64_t half = (uint64_t)((int64_t)(*k -= 1) >> 1);
    return y * d2s_two_to_f64(half) * d2s_pick_f64(D2S_STAYS(a), a, d2s_two_to_f64(*k - half));
}

/* (sinh(a) - a) / a^3 in z = a^2 on [0, 1], errors 2e-10 and 3e-19 */
D2S_FUNCTION float d2s_sinh_part_f32(float z) {
    return D2S_FMAF(D2S_FMAF(D2S_FMAF(0x1.78a70ep-19f, z, 0x1.a009p-13f), z, 0x1.11111ep-7f), z, 0x1.555556p-3f);
}

D2S_FUNCTION double d2s_sinh_part_f64(double z) {
    double p = D2S_FMA(0x1.b41232cf9950fp-41, z, 0x1.611cb330c1fe8p-33);
    p = D2S_FMA(p, z, 0x1.ae6460fae3728p-26);
    p = D2S_FMA(p, z, 0x1.71de3a4e14f40p-19);
    p = D2S_FMA(p, z, 0x1.a01a01a01ee70p-13);
    p = D2S_FMA(p, z, 0x1.11111111110fdp-7);
    return D2S_FMA(p, z, 0x1.5555555555555p-3);
}

/* (arctan(q) - q) / q^3 in z = q^2 on [0, 1], errors 1.6e-8 and 5e-18 */
D2S_FUNCTION float d2s_arctan_part_f32(float z) {
    float p = D2S_FMAF(-0x1.38de56p-9f, z, 0x1.ba9f66p-7f);
    p = D2S_FMAF(p, z, -0x1.25dc12p-5f);
    p = D2S_FMAF(p, z, 0x1.0001c6p-4f);
    p = D2S_FMAF(p, z, -0x1.6295f8p-4f);
    p = D2S_FMAF(p, z, 0x1.c3f168p-4f);
    p = D2S_FMAF(p, z, -0x1.246cd2p-3f);
    p = D2S_FMAF(p, z, 0x1.99983cp-3f);
    return D2S_FMAF(p, z, -0x1.555554p-2f);
}

D2S_FUNCTION double d2s_arctan_part_f64(double z) {
    double p = D2S_FMA(-0x1.8d087295ab9f4p-17, z, 0x1.1f0adb240a1fbp-13);
    p = D2S_FMA(p, z, -0x1.8a2f3ae537bb0p-11);
    p = D2S_FMA(p, z, 0x1.57cc888719a9fp-9);
    p = D2S_FMA(p, z, -0x1.aef1a8e977bf7p-8);
    p = D2S_FMA(p, z, 0x1.a1fe88baf72d3p-7);
    p = D2S_FMA(p, z, -0x1.4b974a27ac39fp-6);
    p = D2S_FMA(p, z, 0x1.c3ac54a572734p-6);
    p = D2S_FMA(p, z, -0x1.147b2825d82f6p-5);
    p = D2S_FMA(p, z, 0x1.3d3f26d5ea7ffp-5);
    p = D2S_FMA(p, z, -0x1.60ebd1489b946p-5);
    p = D2S_FMA(p, z, 0x1.854a7b99af61dp-5);
    p = D2S_FMA(p, z, -0x1.af00bd568a3d2p-5);
    p = D2S_FMA(p, z, 0x1.e1dc0d7679adcp-5);
    p = D2S_FMA(p, z, -0x1.1110bfea8ed5ep-4);
    p = D2S_FMA(p, z, 0x1.3b13aaf4aba4ap-4);
    p = D2S_FMA(p, z, -0x1.745d16f26d0a3p-4);
    p = D2S_FMA(p, z, 0x1.c71c71c472843p-4);
    p = D2S_FMA(p, z, -0x1.249249248c7dap-3);
    p = D2S_FMA(p, z, 0x1.99999999998f9p-3);
    return D2S_FMA(p, z, -0x1.5555555555555p-2);
}

/* (arcsin(a) - a) / a^3 in z = a^2 on [0, 1/4], errors 7e-8 and 1.5e-17 */
D2S_FUNCTION float d2s_arcsin_part_f32(float z) {
    float p = D2S_FMAF(0x1.37fe16p-5f, z, 0x1.b311d2p-6f);
    p = D2S_FMAF(p, z, 0x1.70a6bcp-5f);
    p = D2S_FMAF(p, z, 0x1.332732p-4f);
    return D2S_FMAF(p, z, 0x1.55555ep-3f);
}

D2S_FUNCTION double d2s_arcsin_part_f64(double z) {
    double p = D2S_FMA(0x1.d72b2bc8155f8p-6, z, -0x1.e6aaa8a0a04cep-7);
    p = D2S_FMA(p, z, 0x1.1d189408314efp-6);
    p = D2S_FMA(p, z, 0x1.65a9c4dfcf8b1p-8);
    p = D2S_FMA(p, z, 0x1.52420b04b37bep-7);
    p = D2S_FMA(p, z, 0x1.782651caa6547p-7);
    p = D2S_FMA(p, z, 0x1.c9cf07674736ap-7);
    p = D2S_FMA(p, z, 0x1.1c4d35cf95421p-6);
    p = D2S_FMA(p, z, 0x1.6e8bb1c8209a2p-6);
    p = D2S_FMA(p, z, 0x1.f1c71c1db0623p-6);
    p = D2S_FMA(p, z, 0x1.6db6db6e31f13p-5);
    p = D2S_FMA(p, z, 0x1.3333333332ecap-4);
    return D2S_FMA(p, z, 0x1.5555555555556p-3);
}

D2S_FUNCTION float d2s_root_f32(float x) { return __builtin_sqrtf(x); }
D2S_FUNCTION double d2s_root_f64(double x) { return __builtin_sqrt(x); }

/* With a = |x|, and pi and pi/2 in two parts:
 *
 * sinh(a), cosh(a) = exp(a) / 2 -+ 1 / (2 exp(a)); sinh(a) = a + a^3 P(a^2) below 1.
 * arctanh(a) = log1p(2 a / (1 - a)) / 2, where below 1/2 the quotient is 2 a + 2 a^2 / (1 - a).
 * arctan(a) = pi/2 - arctan(1 / a) above 1; arcsin(a) = pi/2 - 2 arcsin(sqrt((1 - a) / 2)) above 1/2, and arccos is what is left to pi/2.
 * The angle of a point is that of the quotient of its coordinates, the lesser by the greater one. */
#define D2S_ANGLES(T, s, U, I, FMA, HALF_PI, HALF_PI_LOW) \
    D2S_FUNCTION T d2s_size_##s(T x) { return d2s_with_sign_##s(x, 0); } \
    D2S_FUNCTION T sinh_##s(T x) { \
        U k; \
        T a = d2s_size_##s(x), e = d2s_half_exp_##s(a, &k); \
        bool near = (I)d2s_bits_##s(a) < (I)d2s_bits_##s(1); \
        T b = d2s_pick_##s(near, a, 0), y = FMA(b * (b * b), d2s_sinh_part_##s(b * b), b); \
        e -= (T)0.25 / d2s_pick_##s((I)k > 30, (T)0x1p30, e); \
        return d2s_with_sign_##s(d2s_pick_##s(near, y, e), x); } \
    D2S_FUNCTION T cosh_##s(T x) { \
        U k; \
        T e = d2s_half_exp_##s(d2s_size_##s(x), &k); \
        return e + (T)0.25 / d2s_pick_##s((I)k > 30, (T)0x1p30, e); } \
    D2S_FUNCTION T arctanh_##s(T x) { \
        T a = d2s_size_##s(x), t = a + a; \
        bool near = (I)d2s_bits_##s(a) < (I)d2s_bits_##s((T)0.5); \
        T q = d2s_pick_##s(near, t * a, t) / (1 - a); \
        return d2s_with_sign_##s((T)0.5 * log1p_##s(d2s_pick_##s(near, t + q, q)), x); } \
    D2S_FUNCTION T arctan_##s(T x) { \
        T a = d2s_size_##s(x); \
        bool far = d2s_bits_##s(a) > d2s_bits_##s(1); \
        T q = d2s_pick_##s(far, 1 / d2s_pick_##s(far, a, 1), a), z = q * q, y = FMA(q * z, d2s_arctan_part_##s(z), q); \
        return d2s_with_sign_##s(d2s_pick_##s(far, HALF_PI - (y - HALF_PI_LOW), y), x); } \
    D2S_FUNCTION T arctan2_##s(T a, T b) { \
        T y = d2s_size_##s(a), x = d2s_size_##s(b); \
        bool steep = d2s_bits_##s(y) > d2s_bits_##s(x), back = (I)d2s_bits_##s(b) < 0; \
        T most = d2s_pick_##s(steep, y, x), least = d2s_pick_##s(steep, x, y); \
        bool same = (d2s_bits_##s(least) == d2s_bits_##s(INFINITY)) & (d2s_bits_##s(most) == d2s_bits_##s(INFINITY)), none = most == 0; \
        T q = d2s_pick_##s(same, 1, least) / d2s_pick_##s(same | none, 1, most), z = q * q; \
        q = FMA(q * z, d2s_arctan_part_##s(z), q); \
        T turns = d2s_pick_##s(steep, 1, d2s_pick_##s(back, 2, 0)); \
        q = FMA(turns, HALF_PI_LOW, d2s_pick_##s(steep != back, -q, q)); \
        return d2s_with_sign_##s(FMA(turns, HALF_PI, q), a); } \
    /* arcsin(a), or where a is ``far`` from 0 half of what is left to pi/2: the sum of y and its rest */ \
    D2S_FUNCTION T d2s_arcsin_##s(T a, bool far, T *rest) { \
        T z = d2s_pick_##s(far, (T)0.5 - (T)0.5 * a, a * a), y = d2s_pick_##s(far, d2s_root_##s(z), a); \
        *rest = y * z * d2s_arcsin_part_##s(z); \
        return y; } \
    D2S_FUNCTION T arcsin_##s(T x) { \
        T rest, a = d2s_size_##s(x); \
        bool far = d2s_bits_##s(a) > d2s_bits_##s((T)0.5); \
        T y = d2s_arcsin_##s(a, far, &rest); \
        return d2s_with_sign_##s(d2s_pick_##s(far, (HALF_PI - 2 * y) - (2 * rest - HALF_PI_LOW), y + rest), x); } \
    D2S_FUNCTION T arccos_##s(T x) { \
        T rest, a = d2s_size_##s(x); \
        bool far = d2s_bits_##s(a) > d2s_bits_##s((T)0.5), back = (I)d2s_bits_##s(x) < 0; \
        T y = d2s_arcsin_##s(a, far, &rest), times = d2s_pick_##s(far, d2s_pick_##s(back, 2, -2), d2s_pick_##s(back, -1, 1)); \
        T turns = d2s_pick_##s(far, d2s_pick_##s(back, 2, 0), 1); \
        return FMA(-times, y, turns * HALF_PI) - FMA(times, rest, -turns * HALF_PI_LOW); }

D2S_ANGLES(float, f32, uint32_t, int32_t, D2S_FMAF, 0x1.921fb6p+0f, -0x1.777a5cp-25f)
D2S_ANGLES(double, f64, uint64_t, int64_t, D2S_FMA, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54)

#ifdef __FP_FAST_FMA
D2S_FUNCTION double tan_f64(double x) {
    uint64_t k;
    double r = d2s_quadrant_f64(x, &k);
    r = d2s_sin_cos_f64(r, k) / d2s_sin_cos_f64(r, k + 1);
    return d2s_pick_f64(x == 0, x, r);
}

/* the tangent of the rest, or -1 by it where k is odd: one quotient for both */
D2S_FUNCTION float tan_f32(float x) {
    uint32_t k;
    float r = d2s_quadrant_f32(x, &k), z = r * r;
    /* (tan(r) - r) / r^3 in z = r^2 on [0, 0.623], error 9.4e-9 */
    float p = D2S_FMAF(0x1.fd3824p-9f, z, 0x1.241fdap-10f);
    p = D2S_FMAF(p, z, 0x1.47e6fcp-7f);
    p = D2S_FMAF(p, z, 0x1.6207eep-6f);
    p = D2S_FMAF(p, z, 0x1.ba5606p-5f);
    p = D2S_FMAF(p, z, 0x1.11107ep-3f);
    p = D2S_FMAF(p, z, 0x1.555556p-2f);
    p = D2S_FMAF(r * z, p, r);
    p = d2s_pick_f32(k & 1, -1.0f / d2s_pick_f32(k & 1, p, 1.0f), p);
    return d2s_pick_f32(x == 0, x, p);
}
#else
D2S_FUNCTION float tan_f32(float x) { return tanf(x); }
D2S_FUNCTION double tan_f64(double x) { return tan(x); }
#endif

/* |x|^(1/3) = (2^r m)^(1/3) 2^q with |x| = 2^(3q + r) m and -1 <= r <= 1.  Steps of Halley's kind improve a polynomial for
 * (2^r m)^(-1/3); the root itself is corrected by what its cube leaves, without rounding. */
#define D2S_CUBE_ROOT(T, s, U, point, bits_of_point, FMA, STEPS) \
    D2S_FUNCTION T cbrt_##s(T x) { \
        T e, a = d2s_with_sign_##s(x, 0), m = d2s_split_##s(a, &e) + 1; \
        T shifted = FMA(e, (T)(1.0 / 3), point), r = FMA(shifted - point, -3, e); \
        bool up = r > 0, down = r < 0; \
        /* m^(-1/3) on [2/3, 4/3], error 3.1e-4 */ \
        T y = FMA(FMA(FMA((T)-0.187889452, m, (T)0.803196021), m, (T)-1.37584562), m, (T)1.76029608); \
        y *= d2s_pick_##s(up, (T)0.7937005259840998, d2s_pick_##s(down, (T)1.2599210498948732, 1)); \
        m *= d2s_pick_##s(up, 2, d2s_pick_##s(down, (T)0.5, 1)); \
        for (int step = 0; step < STEPS; step++) { \
            T h = FMA(-m * y, y * y, 1); \
            y = FMA(y * h, FMA((T)(2.0 / 9), h, (T)(1.0 / 3)), y); } \
        T root = m * (y * y), square = root * root; \
        T rest = FMA(-FMA(root, root, -square), root, FMA(-square, root, m)); \
        root = FMA(rest, y * y * (T)(1.0 / 3), root) * d2s_two_to_##s(d2s_bits_##s(shifted) - bits_of_point); \
        bool is_plain = d2s_bits_##s(a) - 1 < d2s_bits_##s((T)INFINITY) - 1; \
        return d2s_pick_##s(is_plain, d2s_with_sign_##s(root, x), x); }

#ifdef __FP_FAST_FMA
D2S_CUBE_ROOT(float, f32, uint32_t, 0x1.8p+23f, 0x4b400000u, D2S_FMAF, 1)
D2S_CUBE_ROOT(double, f64, uint64_t, 0x1.8p+52, 0x4338000000000000u, D2S_FMA, 2)
#else
D2S_FUNCTION float cbrt_f32(float x) { return cbrtf(x); }
D2S_FUNCTION double cbrt_f64(double x) { return cbrt(x); }
#endif

/* a to the b: 2^(b log2 |a|) for numbers that have a logarithm, which are the ``plain`` ones, and what C says of others.
 *
 * d2s_power_base, d2s_power_times: the size of a and b, or 1 and 0 in place of those that are not plain.
 * d2s_power: the result, from that of these two.  What it adds raises what is to be raised: an overflow for poles,
 * infinity - infinity for fractional powers of negative numbers.  ``point``: from there on all numbers are whole. */
#define D2S_POWER(T, s, U, u, I, point, MOST) \
    D2S_FUNCTION T d2s_power_base_##s(T a) { \
        T size = d2s_with_sign_##s(a, 0); \
        return d2s_pick_##s(d2s_bits_##s(size) - 1 < d2s_bits_##s((T)INFINITY) - 1, size, 1); } \
    D2S_FUNCTION T d2s_power_times_##s(T b) { \
        return d2s_pick_##s(d2s_bits_##s(d2s_with_sign_##s(b, 0)) < d2s_bits_##s((T)INFINITY), b, 0); } \
    D2S_FUNCTION T d2s_power_##s(T a, T b, T y) { \
        T limit = INFINITY, steps = d2s_with_sign_##s(b, 0), rounded = steps + point; \
        U size = d2s_bits_##s(d2s_with_sign_##s(a, 0)), bsize = d2s_bits_##s(steps); \
        bool negative = (I)d2s_bits_##s(a) < 0, down = (I)d2s_bits_##s(b) < 0, zero = size == 0; \
        bool plain = size - 1 < d2s_bits_##s(limit) - 1, large = bsize >= d2s_bits_##s(point); \
        bool whole = large | (rounded - point == steps); \
        U odd = d2s_pick_##u(large, bsize, d2s_bits_##s(rounded)) << (sizeof(T) * 8 - 1); \
        y = d2s_pick_##s(plain, y, d2s_pick_##s(zero == down, limit, 0)); \
        y = d2s_pick_##s(bsize < d2s_bits_##s(limit), y, d2s_pick_##s((size > d2s_bits_##s(1)) == !down, limit, 0)); \
        bool none = negative & plain & !whole, pole = zero & down & (bsize - 1 < d2s_bits_##s(limit) - 1); \
        y += d2s_pick_##s(none, limit, d2s_pick_##s(pole, MOST, 0)) + d2s_pick_##s(none, -limit, d2s_pick_##s(pole, MOST, 0)); \
        bool turns = negative & whole & (bsize < d2s_bits_##s(2 * point)); \
        y = d2s_of_bits_##s(d2s_bits_##s(y) | d2s_pick_##u(turns, odd, 0)); \
        y = d2s_pick_##s((a != a) | (b != b), NAN, y); \
        return d2s_pick_##s((bsize == 0) | (a == 1) | ((a == -1) & (bsize == d2s_bits_##s(limit))), 1, y); }

D2S_POWER(float, f32, uint32_t, u32, int32_t, 0x1p+23f, FLT_MAX)
D2S_POWER(double, f64, uint64_t, u64, int64_t, 0x1p+52, DBL_MAX)

/* In double precision: almost all of the error is the rounding of the result. */
D2S_FUNCTION float power_f32(float a, float b) {
    float e, m = d2s_split_f32(d2s_power_base_f32(a), &e);
    double f = m;
    /* log2(1 + f) / f on [-1/3, 1/3], error 3.2e-11 */
    double p = D2S_FMA(0x1.3aec6c383b296p-3, f, -0x1.53f4d0370cb84p-3);
    p = D2S_FMA(p, f, 0x1.ff3fbb8145258p-4);
    p = D2S_FMA(p, f, -0x1.1996f1ba7fcdcp-3);
    p = D2S_FMA(p, f, 0x1.492f68c660209p-3);
    p = D2S_FMA(p, f, -0x1.72487c1288cb8p-3);
    p = D2S_FMA(p, f, 0x1.a60fdcf3cceb1p-3);
    p = D2S_FMA(p, f, -0x1.ec6893fe7db88p-3);
    p = D2S_FMA(p, f, 0x1.2776d28cc6acfp-2);
    p = D2S_FMA(p, f, -0x1.715484bd21d5fp-2);
    p = D2S_FMA(p, f, 0x1.ec709db5df3dap-2);
    p = D2S_FMA(p, f, -0x1.7154764b5f205p-1);
    p = D2S_FMA(p, f, 0x1.71547652b82fep+0);
    double r = d2s_bounded_f64(D2S_FMA(p, f, (double)e) * (double)d2s_power_times_f32(b), -200.0, 200.0), shifted = r + 0x1.8p+52;
    r -= shifted - 0x1.8p+52;
    /* 2^r on [-1/2, 1/2], error 2e-9 */
    p = D2S_FMA(0x1.443fffc90db59p-13, r, 0x1.5f48c04f62e50p-10);
    p = D2S_FMA(p, r, 0x1.3b2a1b7152befp-7);
    p = D2S_FMA(p, r, 0x1.c6aecc669b6ddp-5);
    p = D2S_FMA(p, r, 0x1.ebfbe045f4d3cp-3);
    p = D2S_FMA(p, r, 0x1.62e430d034702p-1);
    p = D2S_FMA(p, r, 1.0);
    return d2s_power_f32(a, b, (float)(p * d2s_two_to_f64(d2s_bits_f64(shifted) - 0x4338000000000000u)));
}

/* The logarithm is the sum of two numbers: with s = f / (2 + f), log2(1 + f) = 2 / ln 2 (s + s (s^2 / 3 + s^4 / 5 + ...)).  Vectors of four
 * are no faster than the C library. */
#ifdef __AVX512F__
D2S_FUNCTION double power_f64(double a, double b) {
    double e, f = d2s_split_f64(d2s_power_base_f64(a), &e), m = f + 1.0, d = m + 1.0, by_d = 1.0 / d;
    double s = f * by_d, s_low = D2S_FMA(-s, m - (d - 1.0), D2S_FMA(-s, d, f)) * by_d;
    double z = s * s, z_low = D2S_FMA(s + s, s_low, D2S_FMA(s, s, -z));
    /* (atanh(s) / s - 1 - z / 3) / z^2 in z = s^2 on [0, 0.04], error 1.2e-17 */
    double p = D2S_FMA(0x1.f3606dbd5cc8dp-5, z, 0x1.dd51f9a3ae513p-5);
    p = D2S_FMA(p, z, 0x1.11251ae1e50bap-4);
    p = D2S_FMA(p, z, 0x1.3b13504ab7d6dp-4);
    p = D2S_FMA(p, z, 0x1.745d1843b1670p-4);
    p = D2S_FMA(p, z, 0x1.c71c71c5d6904p-4);
    p = D2S_FMA(p, z, 0x1.249249249298bp-3);
    p = D2S_FMA(p, z, 0x1.9999999999999p-3);
    double t = z * p, t_low = D2S_FMA(z_low, p, D2S_FMA(z, p, -t));
    double third = 0x1.5555555555555p-2, c = third + t, c_low = third - c + t + (t_low + 0x1.5555555555555p-56);
    double w = z * c, w_low = D2S_FMA(z, c_low, D2S_FMA(z_low, c, D2S_FMA(z, c, -w)));
    double y = s * w, y_low = D2S_FMA(s, w_low, D2S_FMA(s_low, w, D2S_FMA(s, w, -y))), l = s + y, l_low = s - l + y + (y_low + s_low);
    double q = l * 0x1.71547652b82fep+1, q_low = D2S_FMA(l_low, 0x1.71547652b82fep+1, D2S_FMA(l, 0x1.777d0ffda0d24p-55, D2S_FMA(l, 0x1.71547652b82fep+1, -q)));
    double log = e + q, log_low = e - log + q + q_low;
    /* of larger ones, all powers are 0, 1 or infinite */
    double times = d2s_bounded_f64(d2s_power_times_f64(b), -0x1p+70, 0x1p+70);
    double product = times * log, low = D2S_FMA(times, log_low, D2S_FMA(times, log, -product));
    double bounded = d2s_bounded_f64(product, -1080.0, 1030.0), shifted = bounded + 0x1.8p+52, r = bounded - (shifted - 0x1.8p+52);
    r = D2S_FMA(r, 0x1.62e42fefa39efp-1, d2s_bounded_f64(low, -0x1p-30, 0x1p-30) * 0x1.62e42fefa39efp-1);
    uint64_t k = d2s_bits_f64(shifted) - 0x4338000000000000u;
    return d2s_power_f64(a, b, d2s_scaled_f64(d2s_expm1_near_f64(r) + 1.0, k, 1.0));
}
#else
D2S_FUNCTION double power_f64(double a, double b) { return pow(a, b); }
#endif

/* Functions of libm ------------------------------------------------------------------------------------------------- */

#define D2S_LIBM(name, libm) \
    D2S_FUNCTION float name##_f32(float x) { return libm##f(x); } \
    D2S_FUNCTION double name##_f64(double x) { return libm(x); }
#define D2S_LIBM_2(name, libm) \
    D2S_FUNCTION float name##_f32(float a, float b) { return libm##f(a, b); } \
    D2S_FUNCTION double name##_f64(double a, double b) { return libm(a, b); }

D2S_LIBM(sqrt, __builtin_sqrt)
D2S_LIBM(fabs, __builtin_fabs)
D2S_LIBM_2(fmod, fmod)

/* SciPy computes these in double precision. */
D2S_FUNCTION double erfc_f64(double x) { return erfc(x); }
D2S_FUNCTION float erfc_f32(float x) { return (float)erfc((double)x); }
D2S_FUNCTION double ndtr_f64(double x) { return 0.5 * erfc(x * -0.70710678118654752440); }
D2S_FUNCTION float ndtr_f32(float x) { return (float)ndtr_f64((double)x); }

/* Selection: NaN wins, as in NumPy; comparisons raise nothing for NaN. ------------------------------------------------ */

#define D2S_SELECTIONS(T, s, F) \
    D2S_FUNCTION T maximum_##s(T a, T b) { \
        return __builtin_constant_p(b) && b == b ? d2s_pick_##s(isless(a, b), b, a) \
                                                 : d2s_pick_##s(isgreaterequal(a, b) | (a != a), a, b); } \
    D2S_FUNCTION T minimum_##s(T a, T b) { \
        return __builtin_constant_p(b) && b == b ? d2s_pick_##s(isgreater(a, b), b, a) \
                                                 : d2s_pick_##s(islessequal(a, b) | (a != a), a, b); } \
    D2S_FUNCTION bool positive_##s(T x) { return d2s_bits_##s(x) - 1 < d2s_bits_##s((T)INFINITY); } \
    D2S_FUNCTION T below_zero_##s(T x) { return d2s_bits_##s(x) > d2s_bits_##s(-(T)0) ? x : 0; } \
    D2S_FUNCTION T relu_##s(T x) { return d2s_bits_##s(x) - d2s_bits_##s(-(T)0) <= d2s_bits_##s((T)INFINITY) ? 0 : x; } \
    D2S_FUNCTION T sign_##s(T x) { return x != x ? x : x == 0 ? 0 : d2s_with_sign_##s(1, x); } \
    D2S_FUNCTION bool isfinite_##s(T x) { return d2s_bits_##s(F(x)) < d2s_bits_##s((T)INFINITY); } \
    D2S_FUNCTION T huber_##s(T x, T delta) { \
        T line = F(x) * (delta * 2) - delta * delta; \
        return minimum_##s(x * x, maximum_##s(line, delta * delta)) * (T)0.5; }

/* Whole numbers.  Processors round vectors to the nearest one; without that, adding ``point``, the least float with no room for a
 * fraction, rounds.  Compilers make no vectors of other ways to round, because that could raise inexact. */
#if defined(__SSE4_1__) || defined(__aarch64__)
#define D2S_NEAREST(T, s, F, NEAREST, point) \
    D2S_FUNCTION T rint_##s(T x) { return NEAREST(x); }
#else
#define D2S_NEAREST(T, s, F, NEAREST, point) \
    D2S_FUNCTION T rint_##s(T x) { \
        bool small = d2s_bits_##s(F(x)) < d2s_bits_##s(point); \
        T whole = (F(d2s_pick_##s(small, x, 0)) + point) - point; \
        return d2s_pick_##s(small, d2s_with_sign_##s(whole, x), x); }
#endif
/* d2s_above: whether a whole number that is next to x is greater; of one sign, bits are ordered like sizes. */
#define D2S_ROUNDING(T, s, U, I, F, NEAREST, point) \
    D2S_NEAREST(T, s, F, NEAREST, point) \
    D2S_FUNCTION bool d2s_above_##s(T whole, T x) { \
        U up = d2s_bits_##s(whole) - d2s_bits_##s(x), turned = (U)((I)d2s_bits_##s(x) >> (sizeof(T) * 8 - 1)); \
        return (I)((up ^ turned) - turned) > 0; } \
    D2S_FUNCTION T floor_##s(T x) { T whole = rint_##s(x); return whole - d2s_pick_##s(d2s_above_##s(whole, x), 1, 0); } \
    D2S_FUNCTION T ceil_##s(T x) { \
        T whole = rint_##s(x); \
        return d2s_with_sign_##s(whole + d2s_pick_##s(d2s_above_##s(x, whole), 1, 0), x); } \
    D2S_FUNCTION T trunc_##s(T x) { return d2s_with_sign_##s(floor_##s(F(x)), x); }

D2S_SELECTIONS(float, f32, __builtin_fabsf)
D2S_SELECTIONS(double, f64, __builtin_fabs)
D2S_ROUNDING(float, f32, uint32_t, int32_t, __builtin_fabsf, rintf, 0x1p+23f)
D2S_ROUNDING(double, f64, uint64_t, int64_t, __builtin_fabs, rint, 0x1p+52)

/* Division of floats that rounds down, and its remainder: Python's rules. --------------------------------------------- */

#define D2S_FLOAT_DIVISION(T, s, F) \
    D2S_FUNCTION T remainder_##s(T a, T b) { \
        T rest = fmod##F(a, b); \
        if (b == 0) return rest; \
        if (rest != 0) return (isless(b, 0) != isless(rest, 0)) ? rest + b : rest; \
        return copysign##F((T)0, b); } \
    D2S_FUNCTION T floor_divide_##s(T a, T b) { \
        if (b == 0) return a / b; \
        T rest = fmod##F(a, b), quotient = (a - rest) / b, whole; \
        if (rest != 0 && isless(b, 0) != isless(rest, 0)) quotient -= 1; \
        if (quotient == 0) return copysign##F((T)0, a / b); \
        whole = floor##F(quotient); \
        return isgreater(quotient - whole, (T)0.5) ? whole + 1 : whole; }

D2S_FLOAT_DIVISION(float, f32, f)
D2S_FLOAT_DIVISION(double, f64, )

/* Ints: where NumPy warns or raises, a flag is raised and the value does not matter. ---------------------------------- */

#ifdef __CUDACC__
D2S_RARE void d2s_raise_divide(void) {}
D2S_RARE void d2s_raise_overflow(void) {}
D2S_RARE void d2s_raise_invalid(void) {}
#else
D2S_RARE void d2s_raise_divide(void) { volatile double zero = 0, y = 1 / zero; (void)y; }
D2S_RARE void d2s_raise_overflow(void) { volatile double big = DBL_MAX, y = big * big; (void)y; }
D2S_RARE void d2s_raise_invalid(void) { volatile double zero = 0, y = zero / zero; (void)y; }
#endif

/* A sum.  Whether NumPy warns of infinities of both signs in one that is NaN depends on the order in which it adds: it decides. */
D2S_FUNCTION float summed_f32(float y) { if (__builtin_expect(y != y, 0)) d2s_raise_invalid(); return y; }
D2S_FUNCTION double summed_f64(double y) { if (__builtin_expect(y != y, 0)) d2s_raise_invalid(); return y; }

#define D2S_INT_POWER(T, s, NEGATIVE) \
    D2S_FUNCTION T power_##s(T a, T b) { \
        T y = 1; \
        if (NEGATIVE) { d2s_raise_invalid(); return 0; } \
        for (; b; b >>= 1, a = (T)(a * a)) if (b & 1) y = (T)(y * a); \
        return y; }

#define D2S_SIGNED(T, s, LEAST) \
    D2S_INT_POWER(T, s, b < 0) \
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
    D2S_INT_POWER(T, s, false) \
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

/* The logistic function as Chainer computes it, tanh(x / 2) / 2 + 1 / 2: below about -17 (float) it is 0.  Next to 1 / 2, more digits
 * of a small tanh would be lost. */
D2S_FUNCTION float sigmoid_f32(float x) {
    uint32_t u = d2s_bits_f32(x) & 0x7fffffffu, most = d2s_bits_f32(20.0f);
    return D2S_FMAF(d2s_odd_f32(x, d2s_tanh_part_f32(d2s_of_bits_f32(u > most ? most : u))), 0.5f, 0.5f); }
D2S_FUNCTION double sigmoid_f64(double x) {
    double half = x * 0.5;
    uint64_t u = d2s_bits_f64(half) & 0x7fffffffffffffffu, most = d2s_bits_f64(20.0);
    return d2s_odd_f64(half, d2s_tanh_part_f64(d2s_of_bits_f64(u > most ? most : u))) * 0.5 + 0.5; }

/* log(1 + u) for 0 <= u <= 1 */
D2S_FUNCTION float d2s_log1p_unit_f32(float u) {
    bool halve = d2s_bits_f32(u) > d2s_bits_f32(1.0f / 3);
    float half = u * 0.5f - 0.5f, f = d2s_pick_f32(halve, half, u), e = d2s_pick_f32(halve, 0x1.62e4p-1f, 0.0f), low = d2s_pick_f32(halve, 0x1.7f7d1cp-20f, 0.0f);
    return e + ((d2s_log_part_f32(f) + low) + f);
}
D2S_FUNCTION double d2s_log1p_unit_f64(double u) {
    bool halve = d2s_bits_f64(u) > d2s_bits_f64(1.0 / 3);
    double half = u * 0.5 - 0.5, f = d2s_pick_f64(halve, half, u), e = d2s_pick_f64(halve, 0x1.62e42fefap-1, 0.0), low = d2s_pick_f64(halve, 0x1.cf79abc9e3b3ap-40, 0.0);
    return e + ((d2s_log_part_f64(f) + low) + f);
}

/* log(exp(a) + exp(b)), by way of the larger of both; equal ones may be infinite */
D2S_FUNCTION float logaddexp_f32(float a, float b) {
    bool same = a == b;
    return maximum_f32(a, b) + d2s_log1p_unit_f32(exp_f32(-fabs_f32(d2s_pick_f32(same, 0, a) - d2s_pick_f32(same, 0, b)))); }
D2S_FUNCTION double logaddexp_f64(double a, double b) {
    bool same = a == b;
    return maximum_f64(a, b) + d2s_log1p_unit_f64(exp_f64(-fabs_f64(d2s_pick_f64(same, 0, a) - d2s_pick_f64(same, 0, b)))); }

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)); quiet for NaN, as Chainer's `fmax` is. */
D2S_FUNCTION float softplus_f32(float x) { return relu_f32(x) + d2s_log1p_unit_f32(exp_f32(-fabs_f32(x))); }
D2S_FUNCTION double softplus_f64(double x) { return relu_f64(x) + d2s_log1p_unit_f64(exp_f64(-fabs_f64(x))); }

#endif
