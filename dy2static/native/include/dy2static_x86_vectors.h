/* What C has no operators for, for vectors of floats with AVX2 and AVX-512: for dy2static_blocked.h.  These are the builtins of GCC and
   of clang, since to read immintrin.h takes GCC a tenth of a second.

   Before the include: dy2static_tiles.h, with DY_T float. */
#ifndef DY2STATIC_X86_VECTORS_H
#define DY2STATIC_X86_VECTORS_H

#if DY_BYTES >= 32
typedef int32_t dy_lane_numbers __attribute__((vector_size(DY_BYTES)));
#endif

#if DY_BYTES == 32
DY_INLINE dy_vector permuted(const dy_vector value, const dy_lane_numbers lanes) { return __builtin_ia32_permvarsf256(value, lanes); }
#endif

#if DY_BYTES == 64
enum { NOT_LESS_OR_EQUAL = 0x16, AS_SET = 4 };          /* quiet: NaN raises no flag; rounding: that of the thread */

#ifdef __clang__
#define DY_LESSER(a, b) __builtin_ia32_minps512(a, b, AS_SET)
#define DY_GREATER(a, b) __builtin_ia32_maxps512(a, b, AS_SET)
#define DY_WHERE(mask, a) __builtin_ia32_selectps_512(mask, a, (dy_vector){0})
#define DY_PERMUTED(a, lanes) __builtin_ia32_permvarsf512(a, lanes)
#else
#define DY_LESSER(a, b) __builtin_ia32_minps512_mask(a, b, (dy_vector){0}, -1, AS_SET)
#define DY_GREATER(a, b) __builtin_ia32_maxps512_mask(a, b, (dy_vector){0}, -1, AS_SET)
#define DY_WHERE(mask, a) __builtin_ia32_movaps512_mask(a, (dy_vector){0}, mask)
#define DY_PERMUTED(a, lanes) __builtin_shuffle(a, lanes)
#endif

/* Of two, the second if one is NaN. */
DY_INLINE dy_vector lesser(const dy_vector a, const dy_vector b) { return DY_LESSER(a, b); }
DY_INLINE dy_vector greater(const dy_vector a, const dy_vector b) { return DY_GREATER(a, b); }

/* Zero, -0 too, stands for what is below it; a NaN stays. */
DY_INLINE dy_vector positive(const dy_vector value)
{
    const uint16_t above = __builtin_ia32_cmpps512_mask(value, (dy_vector){0}, NOT_LESS_OR_EQUAL, -1, AS_SET);
    return DY_WHERE(above, value);
}

DY_INLINE dy_vector permuted(const dy_vector value, const dy_lane_numbers lanes) { return DY_PERMUTED(value, lanes); }
#endif

#endif
