/* Products whose result has few columns (part of dy2static_gemm.h): A is used once for all of them, so that to pack it would cost as
   much as the product.  It is read where it is, and B, or B transposed, is packed once. */

enum {
    NARROW_ROWS = 4 * DY_ROWS,  /* fewer do not fill tiles */
    DOT_COLUMNS = 3             /* so few columns are dot products: they would leave most of a vector empty */
};

/* C = alpha * A op(B) + beta * C, where C has at most COLUMNS columns. */
static void narrow_product(const int trans_b, const int64_t m, const int64_t n, const int64_t depth, const DY_T alpha, const DY_T *a,
                           const int64_t lda, const DY_T *b, const int64_t ldb, const DY_T beta, DY_T *c, const int64_t ldc)
{
    DY_T *const panel = at_hand(own_panel);
    DY_T tile[DY_ROWS * COLUMNS] __attribute__((aligned(64)));
    const int vectors = n > WIDTH ? 2 : 1;
    pack_panel(trans_b, depth, n, vectors * WIDTH, b, ldb, panel);
    for (int64_t i = 0, height; i < m; i += height) {
        const DY_T *const coming = i + 2 * DY_ROWS <= m ? a + (i + DY_ROWS) * lda : 0;
        height = turned_rows(m - i, vectors, depth, a + i * lda, lda, coming, panel, alpha, 0, tile, COLUMNS);
        for (int64_t s = 0; s < height; s++) {
            DY_T *const to = c + (i + s) * ldc;
            if (beta == 0)
                copy(to, tile + s * COLUMNS, n);
            else
                for (int64_t j = 0; j < n; j++)
                    to[j] = tile[s * COLUMNS + j] + beta * to[j];
        }
    }
}

/* C = alpha * trans(A) op(B) + beta * C, where C has at most COLUMNS columns: tiles hold a part of the transposed C, for which the
   rows of A as they are stored are panels. */
static void narrow_turned_product(const int trans_b, const int64_t m, const int64_t n, const int64_t depth, const DY_T alpha,
                                  const DY_T *a, const int64_t lda, const DY_T *b, const int64_t ldb, const DY_T beta, DY_T *c,
                                  const int64_t ldc)
{
    const DY_T *const block = at_hand(own_block);
    DY_T *const panel = at_hand(own_panel);
    DY_T tile[DY_ROWS * COLUMNS] __attribute__((aligned(64)));
    pack_block(!trans_b, n, depth, b, ldb);
    for (int64_t next = 0; next < m; next += COLUMNS) {
        const panel_place at = place_of(next, m, beta);
        const DY_T *right = a + at.j;
        int64_t stride = lda;
        if (at.columns != at.vectors * WIDTH) {
            pack_panel(0, depth, at.columns, at.vectors * WIDTH, right, lda, panel);
            right = panel;
            stride = at.vectors * WIDTH;
        }
        for (int64_t first = 0; first < n; first += DY_ROWS) {
            const int64_t rows = n - first < DY_ROWS ? n - first : DY_ROWS;
            for (int64_t r = 0, height; r < rows; r += height) {
                height = tile_rows(rows - r);
                any_tile(height, at.vectors, depth, block + (first + r) * STRIDE, right, stride, 0, tile + r * COLUMNS, COLUMNS,
                         alpha, 0);
            }
            put_turned(tile, rows, at.columns, beta, c + at.j * ldc + first, ldc);
        }
    }
}
