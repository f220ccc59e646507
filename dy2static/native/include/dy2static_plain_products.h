/* Products of row-major matrices in plain C, those of dy2static_products.h with DY_STANDALONE.

   Four rows of the result are summed up side by side along rows of B, so that compilers vectorise without reordering a sum; a
   transposed B is read by dot products, four at a time. */
#ifndef DY2STATIC_PLAIN_PRODUCTS_H
#define DY2STATIC_PLAIN_PRODUCTS_H

#include <stdint.h>

#define DY_DEFINE_PLAIN_PRODUCTS(T, NAME)                                                                              \
    static inline void dy_scaled_row_##NAME(const int64_t n, const T beta, T *c)                                       \
    {                                                                                                                  \
        for (int64_t j = 0; j < n; j++)                                                                                \
            c[j] = beta == 0 ? 0 : beta * c[j];                                                                        \
    }                                                                                                                  \
                                                                                                                       \
    static void dy_gemm_##NAME(const int trans_a, const int trans_b, const int64_t m, const int64_t n,                 \
                               const int64_t k, const T alpha, const T *a, const int64_t lda, const T *b,              \
                               const int64_t ldb, const T beta, T *c, const int64_t ldc)                               \
    {                                                                                                                  \
        const int64_t next_row = trans_a ? 1 : lda, next_term = trans_a ? lda : 1, fours = k / 4 * 4,                  \
                      rows = m / 4 * 4;                                                                                \
        if (trans_b) {                                                                                                 \
            for (int64_t i = 0; i < m; i++)                                                                            \
                for (int64_t j = 0; j < n; j++) {                                                                      \
                    const T *const row = a + i * next_row, *const other = b + j * ldb;                                 \
                    T sums[4] = {0, 0, 0, 0};                                                                          \
                    for (int64_t l = 0; l < fours; l += 4)                                                             \
                        for (int s = 0; s < 4; s++)                                                                    \
                            sums[s] += row[(l + s) * next_term] * other[l + s];                                        \
                    for (int64_t l = fours; l < k; l++)                                                                \
                        sums[0] += row[l * next_term] * other[l];                                                      \
                    const T sum = alpha * (sums[0] + sums[1] + (sums[2] + sums[3]));                                   \
                    c[i * ldc + j] = sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);                                    \
                }                                                                                                      \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t r = 0; r < m; r++)                                                                                \
            dy_scaled_row_##NAME(n, beta, c + r * ldc);                                                                \
        for (int64_t i = 0; i < rows; i += 4) {                                                                        \
            T *const c0 = c + i * ldc, *const c1 = c0 + ldc, *const c2 = c1 + ldc, *const c3 = c2 + ldc;               \
            for (int64_t l = 0; l < k; l++) {                                                                          \
                const T *const first = a + i * next_row + l * next_term, *const row = b + l * ldb;                     \
                const T x0 = alpha * first[0], x1 = alpha * first[next_row], x2 = alpha * first[2 * next_row],         \
                        x3 = alpha * first[3 * next_row];                                                              \
                for (int64_t j = 0; j < n; j++) {                                                                      \
                    c0[j] += x0 * row[j];                                                                              \
                    c1[j] += x1 * row[j];                                                                              \
                    c2[j] += x2 * row[j];                                                                              \
                    c3[j] += x3 * row[j];                                                                              \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t i = rows; i < m; i++)                                                                             \
            for (int64_t l = 0; l < k; l++) {                                                                          \
                const T x = alpha * a[i * next_row + l * next_term], *const row = b + l * ldb;                         \
                for (int64_t j = 0; j < n; j++)                                                                        \
                    c[i * ldc + j] += x * row[j];                                                                      \
            }                                                                                                          \
    }                                                                                                                  \
                                                                                                                       \
    static inline void dy_finished_gemm_##NAME(                                                                        \
        const int trans_a, const int trans_b, const int64_t m, const int64_t n, const int64_t k, const T *a,           \
        const int64_t lda, const T *b, const int64_t ldb, T *c, const int64_t ldc, dy_part_body *body,                 \
        const void *given)                                                                                             \
    {                                                                                                                  \
        dy_gemm_##NAME(trans_a, trans_b, m, n, k, 1, a, lda, b, ldb, 0, c, ldc);                                       \
        body(given, 0, m, 0, n);                                                                                       \
    }

#endif
