/* Dot products of rows, where both matrices have the elements that are multiplied side by side (part of dy2static_gemm.h). */

typedef __typeof__((dy_vector){0} < (dy_vector){0}) dy_mask;

DY_INLINE DY_T total_of(const dy_vector sum)
{
    DY_T parts[WIDTH];
    store(parts, sum);
#pragma GCC unroll 4
    for (int half = WIDTH / 2; half; half /= 2)
#pragma GCC unroll 8
        for (int t = 0; t < half; t++)
            parts[t] += parts[t + half];
    return parts[0];
}

DY_INLINE dy_quad quarters(const dy_vector sum)
{
    DY_T parts[WIDTH];
    store(parts, sum);
    dy_quad total = *(const dy_quad_unaligned *)parts;
#pragma GCC unroll 4
    for (int t = 4; t < WIDTH; t += 4)
        total += *(const dy_quad_unaligned *)(parts + t);
    return total;
}

/* The sums of four vectors each. */
DY_INLINE dy_quad totals_of(const dy_vector a, const dy_vector b, const dy_vector c, const dy_vector d)
{
    const dy_quad p = quarters(a), q = quarters(b), r = quarters(c), s = quarters(d);
    const dy_quad pq = DY_MIX(p, q, 0, 4, 1, 5) + DY_MIX(p, q, 2, 6, 3, 7);
    const dy_quad rs = DY_MIX(r, s, 0, 4, 1, 5) + DY_MIX(r, s, 2, 6, 3, 7);
    return DY_MIX(pq, rs, 0, 1, 4, 5) + DY_MIX(pq, rs, 2, 3, 6, 7);
}

/* `rest`: the lanes of the last vector that do not belong to the one before it. */
DY_INLINE void dots(const int rows, const int64_t k, const DY_T alpha, const DY_T *matrix, const int64_t ld, const DY_T *x,
                    const dy_mask rest, const DY_T beta, DY_T *y, const int64_t stride)
{
    dy_vector sum[4] = {{0}};
    int64_t l = 0;
    for (; l + WIDTH <= k; l += WIDTH) {
        const dy_vector right = load(x + l);
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            sum[i] += load(matrix + i * ld + l) * right;
        if (rows == 1)
            IN_REGISTER(sum[0]);
    }
    if (l < k && k >= WIDTH)
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            sum[i] += (dy_vector)((dy_mask)load(matrix + i * ld + k - WIDTH) & rest)
                      * (dy_vector)((dy_mask)load(x + k - WIDTH) & rest);
    if (rows == 1)
        IN_REGISTER(sum[0]);
    if (rows == 4 && WIDTH >= 4 && k >= WIDTH && stride == 1) {
        const dy_quad total = alpha * totals_of(sum[0], sum[1], sum[2], sum[3]);
        *(dy_quad_unaligned *)y = beta == 0 ? total : total + beta * *(dy_quad_unaligned *)y;
        return;
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        DY_T total = total_of(sum[i]);
        if (k < WIDTH)
            for (l = 0; l < k; l++)
                total += matrix[i * ld + l] * x[l];
        y[i * stride] = alpha * total + (beta == 0 ? 0 : beta * y[i * stride]);
    }
}

/* y = alpha * M x + beta * y, M: m rows of k */
static void dot_rows(const int64_t m, const int64_t k, const DY_T alpha, const DY_T *matrix, const int64_t ld, const DY_T *x,
                     const DY_T beta, DY_T *y, const int64_t stride)
{
    dy_mask rest;
    for (int t = 0; t < WIDTH; t++)
        rest[t] = -(t >= WIDTH - k % WIDTH);
    int64_t i = 0;
    for (; i + 4 <= m; i += 4)
        dots(4, k, alpha, matrix + i * ld, ld, x, rest, beta, y + i * stride, stride);
    for (; i < m; i++)
        dots(1, k, alpha, matrix + i * ld, ld, x, rest, beta, y + i * stride, stride);
}

#define FEW_ROWS 8              /* of A, for which B is read in rows instead of being packed in columns */

/* `rows` by four dot products of rows; `rest` as in `dots`. */
DY_INLINE void dot_tile(const int rows, const int64_t k, const DY_T alpha, const DY_T *a, const int64_t lda, const DY_T *b,
                        const int64_t ldb, const dy_mask rest, const DY_T beta, DY_T *c, const int64_t ldc)
{
    dy_vector sum[4][4];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            sum[i][j] = (dy_vector){0};
    for (int64_t l = 0; l + WIDTH <= k; l += WIDTH) {
        dy_vector right[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
        {
            right[j] = load(b + j * ldb + l);
            IN_REGISTER(right[j]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) {
            dy_vector left = load(a + i * lda + l);
            IN_REGISTER(left);
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++)
                sum[i][j] += left * right[j];
        }
    }
    if (k % WIDTH)
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) {
            const dy_vector left = (dy_vector)((dy_mask)load(a + i * lda + k - WIDTH) & rest);
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++)
                sum[i][j] += left * (dy_vector)((dy_mask)load(b + j * ldb + k - WIDTH) & rest);
        }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        const dy_quad total = alpha * totals_of(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
        dy_quad_unaligned *const to = (dy_quad_unaligned *)(c + i * ldc);
        *to = beta == 0 ? total : total + beta * *to;
    }
}

/* A few rows times a transposed matrix: k is at least WIDTH. */
static void few_rows(const int64_t m, const int64_t n, const int64_t k, const DY_T alpha, const DY_T *a, const int64_t lda,
                     const DY_T *b, const int64_t ldb, const DY_T beta, DY_T *c, const int64_t ldc)
{
    dy_mask rest;
    for (int t = 0; t < WIDTH; t++)
        rest[t] = -(t >= WIDTH - k % WIDTH);
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const DY_T *const right = b + j * ldb;
        int64_t i = 0;
        for (; i + 4 <= m; i += 4)
            dot_tile(4, k, alpha, a + i * lda, lda, right, ldb, rest, beta, c + i * ldc + j, ldc);
        if (i + 2 <= m) {
            dot_tile(2, k, alpha, a + i * lda, lda, right, ldb, rest, beta, c + i * ldc + j, ldc);
            i += 2;
        }
        if (i < m)
            dot_tile(1, k, alpha, a + i * lda, lda, right, ldb, rest, beta, c + i * ldc + j, ldc);
    }
    for (; j < n; j++)
        dot_rows(m, k, alpha, a, lda, b + j * ldb, beta, c + j, ldc);
}
