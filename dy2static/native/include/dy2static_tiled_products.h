/* Products of texts without Python where there are vectors: the kernel of native programs for one type, float where both are there.

   It keeps blocks of both matrices in memory of the thread, less than a megabyte.  With DY_PLAIN, or another compiler, there is none
   of this. */
#ifndef DY2STATIC_TILED_PRODUCTS_H
#define DY2STATIC_TILED_PRODUCTS_H

#if defined(__GNUC__) && (defined(__AVX__) || defined(__aarch64__)) && !defined(DY_PLAIN)

#if defined(DY_PRODUCTS_F32)
#define DY_TILED_F32
#define DY_T float
#define DY_TILED_GEMM dy_gemm_f32
#define DY_TILED_FINISHED_GEMM dy_finished_gemm_f32
#else
#define DY_TILED_F64
#define DY_T double
#define DY_TILED_GEMM dy_gemm_f64
#define DY_TILED_FINISHED_GEMM dy_finished_gemm_f64
#endif
#define DY_GEMM dy_tiled_product

#if defined(__clang__)
#pragma STDC FP_CONTRACT ON
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Waggressive-loop-optimizations"
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif
#include "dy2static_gemm.h"
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC pop_options
#pragma GCC diagnostic pop
#endif

/* Products of few rows and columns that the compiler knows are written out. */
static inline __attribute__((always_inline, unused)) void DY_TILED_GEMM(
    const int trans_a, const int trans_b, const int64_t m, const int64_t n, const int64_t k, const DY_T alpha, const DY_T *a,
    const int64_t lda, const DY_T *b, const int64_t ldb, const DY_T beta, DY_T *c, const int64_t ldc)
{
    if (!(__builtin_constant_p(m * n * k) && m * n * k <= 1024 && k <= 16)) {
        dy_tiled_product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 0);
        return;
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            DY_T sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (trans_a ? a[l * lda + i] : a[i * lda + l]) * (trans_b ? b[j * ldb + l] : b[l * ldb + j]);
            c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
        }
}

static inline __attribute__((unused)) void DY_TILED_FINISHED_GEMM(
    const int trans_a, const int trans_b, const int64_t m, const int64_t n, const int64_t k, const DY_T *a, const int64_t lda,
    const DY_T *b, const int64_t ldb, DY_T *c, const int64_t ldc, dy_part_body *body, const void *given)
{
    dy_tiled_product(trans_a, trans_b, m, n, k, 1, a, lda, b, ldb, 0, c, ldc, &(finishing){body, given, 0, 0});
}

#endif

#endif
