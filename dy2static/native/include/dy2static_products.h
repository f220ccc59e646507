/* Products of row-major matrices for generated code: dy_gemm_f32 where DY_PRODUCTS_F32 is defined before the include,
   dy_gemm_f64 where DY_PRODUCTS_F64 is.  products.py sets the pointers when the library is loaded.

   dy_gemm_*: C (m, n) = alpha * op(A) op(B) + beta * C; lda, ldb, ldc are the distances of rows as they are stored;
   where beta is 0, C is not read.
   dy_finished_gemm_*: the same with alpha 1 and beta 0; `body` is called for each part of C when it is there, by the thread that has
   made it, with the numbers of rows and columns from which and to which the part goes.
   dy_gemm_batch_*: the same for `count` matrices, with the distances from one to the next (0: the same one each time). */
#ifndef DY2STATIC_PRODUCTS_H
#define DY2STATIC_PRODUCTS_H

#include <stdint.h>

typedef void dy_part_body(const void *given, int64_t begin, int64_t end, int64_t left, int64_t right);

#ifdef DY_STANDALONE
#include "dy2static_plain_products.h"
#include "dy2static_tiled_products.h"
#define DY_DEFINE_PRODUCTS DY_DEFINE_PLAIN_PRODUCTS
#else

/* Products of constant sizes up to these are written out: the compiler keeps them in registers. */
enum { DY_INLINE_PRODUCT = 1024, DY_INLINE_DEPTH = 16 };

#define DY_DEFINE_PRODUCTS(T, NAME)                                                                                    \
    typedef void dy_product_##NAME(int, int, int64_t, int64_t, int64_t, T, const T *, int64_t, const T *, int64_t, T,  \
                                   T *, int64_t, dy_part_body *, const void *);                                        \
    static dy_product_##NAME *dy_any_product_##NAME;                                                                   \
    void dy2static_set_product_##NAME(void *product) { dy_any_product_##NAME = product; }                              \
                                                                                                                       \
    static inline __attribute__((always_inline)) void dy_gemm_##NAME(                                                  \
        const int trans_a, const int trans_b, const int64_t m, const int64_t n, const int64_t k, const T alpha,        \
        const T *a, const int64_t lda, const T *b, const int64_t ldb, const T beta, T *c, const int64_t ldc)           \
    {                                                                                                                  \
        if (!(__builtin_constant_p(m * n * k) && m * n * k <= DY_INLINE_PRODUCT && k <= DY_INLINE_DEPTH)) {            \
            dy_any_product_##NAME(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 0, 0);               \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < m; i++)                                                                                \
            for (int64_t j = 0; j < n; j++) {                                                                          \
                T sum = 0;                                                                                             \
                for (int64_t l = 0; l < k; l++)                                                                        \
                    sum += (trans_a ? a[l * lda + i] : a[i * lda + l]) * (trans_b ? b[j * ldb + l] : b[l * ldb + j]);  \
                c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);                                \
            }                                                                                                          \
    }                                                                                                                  \
                                                                                                                       \
    static inline __attribute__((always_inline)) void dy_finished_gemm_##NAME(                                         \
        const int trans_a, const int trans_b, const int64_t m, const int64_t n, const int64_t k, const T *a,           \
        const int64_t lda, const T *b, const int64_t ldb, T *c, const int64_t ldc, dy_part_body *body,                 \
        const void *given)                                                                                             \
    {                                                                                                                  \
        dy_any_product_##NAME(trans_a, trans_b, m, n, k, 1, a, lda, b, ldb, 0, c, ldc, body, given);                   \
    }                                                                                                                  \
                                                                                                                       \
    static inline __attribute__((always_inline)) void dy_gemm_batch_##NAME(                                            \
        const int64_t count, const int trans_a, const int trans_b, const int64_t m, const int64_t n, const int64_t k,  \
        const T alpha, const T *a, const int64_t lda, const int64_t next_a, const T *b, const int64_t ldb,             \
        const int64_t next_b, const T beta, T *c, const int64_t ldc, const int64_t next_c)                             \
    {                                                                                                                  \
        for (int64_t s = 0; s < count; s++)                                                                            \
            dy_gemm_##NAME(trans_a, trans_b, m, n, k, alpha, a + s * next_a, lda, b + s * next_b, ldb, beta,           \
                           c + s * next_c, ldc);                                                                       \
    }

#endif

#if defined(DY_PRODUCTS_F32) && !defined(DY_TILED_F32)
DY_DEFINE_PRODUCTS(float, f32)
#endif
#if defined(DY_PRODUCTS_F64) && !defined(DY_TILED_F64)
DY_DEFINE_PRODUCTS(double, f64)
#endif

#endif
