/* C = alpha * op(A) op(B) + beta * C for row-major matrices: the product of the library that products.py builds.

   The scheme is that of Goto and van de Geijn (Anatomy of high-performance matrix multiplication, ACM TOMS 34(3), 2008):
   a block of A is packed so that it stays in the second cache, a panel of B so that it stays in the first, and a
   kernel keeps a tile of C in registers.  A panel of B that is used by few rows is read where it is, and so
   are up to WIDE_ROWS rows; few rows times a transposed matrix are dot products, sixteen at a time; where C has few columns,
   A is read where it is.

   Before the include: DY_T, the type (float or double), and DY_GEMM, the name of the function. */
#include <stdint.h>

/* What is done with a part of C when it is there, and near: rows from `row` on, columns from `column` on of what the body knows.
   The body is given the numbers of rows and columns from which and to which it goes. */
typedef struct {
    void (*body)(const void *given, int64_t begin, int64_t end, int64_t left, int64_t right);
    const void *given;
    int64_t row, column;
} finishing;

static inline void finish(const finishing *after, const int64_t i, const int64_t rows, const int64_t n)
{
    if (after)
        after->body(after->given, after->row + i, after->row + i + rows, after->column, after->column + n);
}

#ifdef DY_STANDALONE
#define DY_GEMM_LINKAGE static
#else
#define DY_GEMM_LINKAGE
#endif

#define DY_DEPTH 3072           /* twice that of convolutions: C, which may be far away, is read and written less often */
#if defined(__AVX__) && !defined(__AVX512F__)
#define DY_HEIGHT 17            /* tiles, where rows are short: 100 rows are one block */
#else
#define DY_HEIGHT 8
#endif
#include "dy2static_tiles.h"
#include "dy2static_packing.h"

enum {
    FEWER_ROWS = 8 * DY_ROWS,                   /* up to which a B is not packed ahead of the tiles */
    BLOCK_BYTES = 13 << 14                      /* of a block of A with AVX2 */
};

DY_TILES(any_tile, 0)

/* The first tile of a panel that is read where it is, and packed for the tiles below it. */
static __attribute__((noinline)) void packing_tile(const int vectors, const int64_t depth, const DY_T *a, const DY_T *b,
                                                   const int64_t ldb, DY_T *panel, DY_T *c, const int64_t ldc, const DY_T alpha,
                                                   const DY_T beta)
{
    if (vectors == 2)
        tile(DY_ROWS, 2, depth, a, STRIDE, b, ldb, 0, panel, c, ldc, alpha, beta);
    else
        tile(DY_ROWS, 1, depth, a, STRIDE, b, ldb, 0, panel, c, ldc, alpha, beta);
}

enum { WIDE_ROWS = DY_ROWS == 12 ? 6 : 2 };       /* up to which tiles of 4 vectors fit into the registers */

/* A tile of few rows, 4 vectors wide: with two there would be too few sums at a time. */
static __attribute__((noinline)) void wide_tile(const int rows, const int64_t depth, const DY_T *a, const int64_t lda, const DY_T *b,
                                                const int64_t ldb, DY_T *c, const int64_t ldc, const DY_T alpha, const DY_T beta)
{
    switch (rows) {
#if DY_ROWS == 12
    case 6: tile(6, 4, depth, a, lda, b, ldb, 0, 0, c, ldc, alpha, beta); break;
    case 5: tile(5, 4, depth, a, lda, b, ldb, 0, 0, c, ldc, alpha, beta); break;
    case 4: tile(4, 4, depth, a, lda, b, ldb, 0, 0, c, ldc, alpha, beta); break;
    case 3: tile(3, 4, depth, a, lda, b, ldb, 0, 0, c, ldc, alpha, beta); break;
#endif
    case 2: tile(2, 4, depth, a, lda, b, ldb, 0, 0, c, ldc, alpha, beta); break;
    default: tile(1, 4, depth, a, lda, b, ldb, 0, 0, c, ldc, alpha, beta); break;
    }
}

/* y = alpha * x + beta * y for `count` elements, those of y `stride` apart; out of line: it is compiled once. */
static __attribute__((noinline)) void put(const DY_T *x, const int64_t count, const DY_T alpha, const DY_T beta, DY_T *y,
                                          const int64_t stride)
{
    if (stride == 1)
#pragma omp simd
        for (int64_t t = 0; t < count; t++)
            y[t] = alpha * x[t] + (beta == 0 ? 0 : beta * y[t]);
    else
        for (int64_t t = 0; t < count; t++)
            y[t * stride] = alpha * x[t] + (beta == 0 ? 0 : beta * y[t * stride]);
}

/* y = alpha * x M + beta * y, M: k rows of n */
static void combine_rows(const int64_t n, const int64_t k, const DY_T alpha, const DY_T *x, const DY_T *matrix, const int64_t ld,
                         const DY_T beta, DY_T *y, const int64_t stride)
{
    enum { VECTORS = DY_ROWS == 12 ? 16 : 8 };          /* as registers allow */
    int64_t j = 0;
    for (; j + VECTORS * WIDTH <= n; j += VECTORS * WIDTH) {
        dy_vector sum[VECTORS] = {{0}};
        const DY_T *row = matrix + j;
        for (int64_t l = 0; l < k; l++, row += ld) {
            const DY_T left = x[l];
#pragma GCC unroll 16
            for (int v = 0; v < VECTORS; v++)
                sum[v] += left * load(row + v * WIDTH);
        }
        DY_T parts[VECTORS * WIDTH] __attribute__((aligned(64)));
#pragma GCC unroll 16
        for (int v = 0; v < VECTORS; v++)
            store(parts + v * WIDTH, sum[v]);
        put(parts, VECTORS * WIDTH, alpha, beta, y + j * stride, stride);
    }
    for (; j + WIDTH <= n; j += WIDTH) {
        dy_vector even = {0}, odd = {0};
        const DY_T *row = matrix + j;
        int64_t l = 0;
        for (; l + 2 <= k; l += 2, row += 2 * ld) {
            even += x[l] * load(row);
            odd += x[l + 1] * load(row + ld);
        }
        if (l < k)
            even += x[l] * load(row);
        DY_T parts[WIDTH];
        store(parts, even + odd);
        put(parts, WIDTH, alpha, beta, y + j * stride, stride);
    }
    if (j < n) {
        const int64_t rest = n - j;
        DY_T sum[WIDTH] = {0};
        for (int64_t l = 0; l < k; l++)
            for (int64_t t = 0; t < rest; t++)
                sum[t] += x[l] * matrix[l * ld + j + t];
        put(sum, rest, alpha, beta, y + j * stride, stride);
    }
}

#include "dy2static_dots.h"
#include "dy2static_turned_products.h"

/* Products with a single row or column on one side, where packing would cost as much as the product. */
static void vector_product(const int by_rows, const int64_t n, const int64_t k, const DY_T alpha, const DY_T *x, const int64_t step,
                           const DY_T *matrix, const int64_t ld, const DY_T beta, DY_T *y, const int64_t stride)
{
    for (int64_t l = 0; l < k; l += HEIGHT * STRIDE) {
        const int64_t depth = k - l < HEIGHT * STRIDE ? k - l : HEIGHT * STRIDE;
        const DY_T keep = l ? 1 : beta;
        const DY_T *from = x + l;
        if (step != 1) {
            DY_T *const block = at_hand(own_block);
            for (int64_t s = 0; s < depth; s++)
                block[s] = x[(l + s) * step];
            from = block;
        }
        if (by_rows)
            combine_rows(n, depth, alpha, from, matrix + l * ld, ld, keep, y, stride);
        else
            dot_rows(n, depth, alpha, matrix + l, ld, from, keep, y, stride);
    }
}

#include "dy2static_narrow_products.h"

/* Whether rows of A are read where they are: few columns do not repay a copy.  With the longest vectors nothing repays it but rows whose
   lines fall into one set of the first cache; few columns do not repay that either, if a set holds the lines of all rows of a tile. */
static int repays_beside(const int64_t n, const int64_t lda)
{
    const int few = n <= BESIDE_PANELS * COLUMNS, apart = lda * sizeof(DY_T) % SETS != 0;
    return DY_BYTES == 64 ? apart || (few && NEAREST_WAYS >= DY_ROWS) : DY_BYTES == 32 && few && apart;
}

/* Whether a panel of a transposed B is packed when the first block of rows needs it: one that is longer than the first cache, where rows
   of A are not packed for each STRIP panels.  Meanwhile the rows of the next one come to the second cache. */
static int packs_late(const int trans_a, const int trans_b, const int64_t m, const int64_t depth, const int64_t lda)
{
    return HAS_SQUARES && trans_b && !trans_a && m > FEWER_ROWS && depth * COLUMNS * (int64_t)sizeof(DY_T) > NEAREST_BYTES
        && repays_beside(STRIP * COLUMNS, lda);
}

/* How many columns are made at a time where panels are packed late: about equal parts whose panels fit into memory of the thread. */
static int64_t columns_together(const int64_t n, const int64_t k)
{
    const int64_t panels = panels_of(n), fit = STRIP * DEPTH / part_of_depth(k), parts = (panels + fit - 1) / fit;
    return (panels + parts - 1) / parts * COLUMNS;
}

/* All panels of a small B, in memory of the thread; null if it is large, or has too few rows of A to be packed ahead of them. */
static const DY_T *pack_small(const int trans_b, const int64_t m, const int64_t n, const int64_t depth, const DY_T *b, const int64_t ldb,
                              const DY_T keep)
{
    DY_T *const panels = at_hand(own_panel);
    if ((m <= FEWER_ROWS && !(trans_b && DY_BYTES == 64)) || panels_of(n) * depth > STRIP * DEPTH)
        return 0;
    for (int64_t next = 0; next < n; next += COLUMNS) {
        const panel_place at = place_of(next, n, keep);
        pack_panel(trans_b, depth, at.columns, at.vectors * WIDTH, b + at.j * (trans_b ? ldb : 1), ldb, panels + next * depth);
    }
    return panels;
}

/* How many rows of A are packed together.  With AVX2 up to HEIGHT rows are about equal parts that stay in the second cache: for each of
   them B is read again. */
static int64_t rows_together(const int64_t m, const int64_t depth)
{
    if (DY_BYTES != 32 || m > HEIGHT)
        return FEWER_ROWS;
    const int64_t fit = BLOCK_BYTES / (depth * (int64_t)sizeof(DY_T)), most = fit < FEWER_ROWS ? FEWER_ROWS : fit;
    const int64_t parts = (m + most - 1) / most;
    return ((m + parts - 1) / parts + DY_ROWS - 1) / DY_ROWS * DY_ROWS;
}

/* A product of at most DEPTH steps.  ready_panels: the panels of B one after the other, or null, where they are packed here.  after: what
   is done with each block of rows that is made, or null. */
static void rows_product(const int trans_a, const int trans_b, const int64_t m, const int64_t n, const int64_t depth, const DY_T alpha,
                         const DY_T *a, const int64_t lda, const DY_T *b, const int64_t ldb, const DY_T *ready_panels, const DY_T keep,
                         DY_T *c, const int64_t ldc, const finishing *after)
{
    const DY_T *const block = at_hand(own_block);
    DY_T *const panel = at_hand(own_panel);
    const int late = !ready_panels && packs_late(trans_a, trans_b, m, depth, lda) && panels_of(n) * depth <= STRIP * DEPTH;
    const DY_T *const packed = late ? panel : ready_panels ? ready_panels : pack_small(trans_b, m, n, depth, b, ldb, keep);
    const int wide = m <= WIDE_ROWS && !trans_b && !packed, in_place = wide && !trans_a && n % (4 * WIDTH) == 0;
    const int beside = packed && !trans_a && repays_beside(n, lda);
    const int fetched = DY_BYTES == 64 && ready_panels;         /* whether a part of the next panel comes with each tile */
    const int far = !packed && !trans_b && m > WIDE_ROWS && n * depth * sizeof(DY_T) > NEAR_BYTES;
    const int64_t together = rows_together(m, depth);
    for (int64_t i = 0; i < m; i += together) {
        const int64_t rows = m - i < together ? m - i : together;
        int64_t next = 0;
        if (!in_place && !beside)
            pack_block(trans_a, rows, depth, trans_a ? a + i : a + i * lda, lda);
        if (wide)
            for (; next + 4 * WIDTH <= n; next += 4 * WIDTH)
                wide_tile(m, depth, in_place ? a : block, in_place ? lda : STRIDE, b + next, ldb, c + next, ldc, alpha, keep);
        for (int64_t strip = 0, ready = 0; next < n; next += COLUMNS) {
            const panel_place at = place_of(next, n, keep);
            const int whole = at.columns == at.vectors * WIDTH;
            const DY_T *right = trans_b ? b + at.j * ldb : b + at.j;
            int64_t stride = ldb;
            if (far && next >= ready && n - next >= COLUMNS) {
                const int64_t panels = (n - next) / COLUMNS < STRIP ? (n - next) / COLUMNS : STRIP;
                pack_strip(depth, panels, right, ldb, panel);
                strip = next;
                ready = next + panels * COLUMNS;
            }
            if (late && !i)
                pack_panel(trans_b, depth, at.columns, at.vectors * WIDTH, right, ldb, panel + next * depth);
            if (packed || next < ready) {
                right = packed ? packed + next * depth : panel + (next - strip) * DEPTH;
                stride = at.vectors * WIDTH;
            } else if (trans_b || !whole) {
                pack_panel(trans_b, depth, at.columns, at.vectors * WIDTH, right, ldb, panel);
                right = panel;
                stride = at.vectors * WIDTH;
            }
            const DY_T *const soon = !fetched ? 0 : next + COLUMNS < n ? right + depth * COLUMNS : i + together < m ? ready_panels : 0;
            int64_t r = 0;
            if (right == b + at.j && rows > (ldb * sizeof(DY_T) % 1024 ? 2 * DY_ROWS : DY_ROWS)) {
                packing_tile(at.vectors, depth, block, right, ldb, panel, c + i * ldc + at.j, ldc, alpha, keep);
                right = panel;
                stride = at.vectors * WIDTH;
                r = DY_ROWS;
            }
            for (int64_t height; r < rows; r += height) {
                DY_T *to = c + (i + r) * ldc + at.j, edge[DY_ROWS * COLUMNS] __attribute__((aligned(64)));
                const DY_T *const row = beside ? a + (i + r) * lda : block + r * STRIDE;
                /* the next rows come with the first panel where they are read where they are, else with the last one */
                const int64_t place = i + r + (beside ? DY_ROWS : together);
                const DY_T *coming = !trans_a && (beside ? !next : next + COLUMNS >= n) && place + DY_ROWS <= m ? a + place * lda : 0;
                const int64_t ahead = next ? r : r - (HEIGHT - 3 * DY_ROWS);        /* rows of the next panel come with three tiles */
                if (late && !i && lda == ldb && next + COLUMNS < n && ahead >= 0 && ahead < COLUMNS)
                    coming = b + (next + COLUMNS + ahead) * ldb;
                height = tile_rows(rows - r);
                if (!whole && keep != 0)
                    for (int64_t s = 0; s < (rows - r < DY_ROWS ? rows - r : DY_ROWS); s++) {
                        store(edge + s * COLUMNS, (dy_vector){0});      /* what is not initialised may raise flags */
                        store(edge + s * COLUMNS + WIDTH, (dy_vector){0});
                        copy(edge + s * COLUMNS, to + s * ldc, at.columns);
                    }
                DY_T *const made = whole ? to : edge;
                const int64_t distance = whole ? ldc : COLUMNS;
                const int64_t columns_soon = r / DY_ROWS * SOON;
                if (beside || fetched)
                    height = beside_rows(rows - r, at.vectors, depth, row, beside ? lda : STRIDE, coming, lda,
                                         soon && columns_soon < COLUMNS ? soon + columns_soon * depth : 0, right, alpha, keep, made,
                                         distance);
                else
                    any_tile(height, at.vectors, depth, row, right, stride, 0, made, distance, alpha, keep);
                if (whole)
                    continue;
                for (int64_t s = 0; s < height; s++)
                    copy(to + s * ldc, edge + s * COLUMNS, at.columns);
            }
        }
        finish(after, i, rows, n);
    }
}

/* The same for any number of steps. */
static void parts_product(const int trans_a, const int trans_b, const int64_t m, const int64_t n, const int64_t k, const DY_T alpha,
                          const DY_T *a, const int64_t lda, const DY_T *b, const int64_t ldb, const DY_T beta, DY_T *c,
                          const int64_t ldc, const finishing *after)
{
    const int64_t whole = part_of_depth(k);
    for (int64_t l = 0; l < k; l += whole)
        rows_product(trans_a, trans_b, m, n, k - l < whole ? k - l : whole, alpha, trans_a ? a + l * lda : a + l, lda,
                     trans_b ? b + l : b + l * ldb, ldb, 0, l ? 1 : beta, c, ldc, l + whole < k ? 0 : after);
}

DY_GEMM_LINKAGE void DY_GEMM(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, DY_T alpha, const DY_T *a, int64_t lda, const DY_T *b,
             int64_t ldb, DY_T beta, DY_T *c, int64_t ldc, const finishing *after)
{
    if (k <= 0 || alpha == 0) {
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                c[i * ldc + j] = beta == 0 ? 0 : beta * c[i * ldc + j];
    } else if (m == 1) {
        vector_product(!trans_b, n, k, alpha, a, trans_a ? lda : 1, b, ldb, beta, c, 1);
    } else if (n == 1 || (n <= DOT_COLUMNS && !trans_a)) {
        for (int64_t j = 0; j < n; j++)
            vector_product(trans_a, m, k, alpha, trans_b ? b + j * ldb : b + j, trans_b ? 1 : ldb, a, lda, beta, c + j, ldc);
    } else if (trans_b && !trans_a && m <= FEW_ROWS && k >= 2 * WIDTH && WIDTH >= 4) {
        few_rows(m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    } else if (trans_b && !trans_a && is_turned(m, n, ldb) && (fills_vectors(m) || n * k * sizeof(DY_T) > NEAR_BYTES)) {
        const int64_t height = turned_height(m, k);
        for (int64_t i = 0; i < m; i += height) {
            const int64_t rows = m - i < height ? m - i : height;
            turned_product(rows, n, k, alpha, a + i * lda, lda, b, ldb, beta, c + i * ldc, ldc);
            finish(after, i, rows, n);
        }
        return;
    } else if (n > COLUMNS && packs_late(trans_a, trans_b, m, part_of_depth(k), lda)) {
        const int64_t columns = columns_together(n, k);
        for (int64_t j = 0; j < n; j += columns) {
            const finishing part = after ? (finishing){after->body, after->given, after->row, after->column + j} : (finishing){0};
            parts_product(trans_a, trans_b, m, n - j < columns ? n - j : columns, k, alpha, a, lda, b + j * ldb, ldb, beta, c + j, ldc,
                          after ? &part : 0);
        }
        return;
    } else if (n > COLUMNS || m < (trans_a ? WIDTH : NARROW_ROWS)) {
        parts_product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, after);
        return;
    } else {
        const int64_t whole = part_of_depth(k);
        for (int64_t l = 0; l < k; l += whole) {
            const int64_t depth = k - l < whole ? k - l : whole;
            const DY_T *const left = trans_a ? a + l * lda : a + l, *const right = trans_b ? b + l : b + l * ldb, keep = l ? 1 : beta;
            if (trans_a)
                narrow_turned_product(trans_b, m, n, depth, alpha, left, lda, right, ldb, keep, c, ldc);
            else
                narrow_product(trans_b, m, n, depth, alpha, left, lda, right, ldb, keep, c, ldc);
        }
    }
    finish(after, 0, m, n);
}
