/* Blocks of A and panels of B, which products pack side by side in memory (part of dy2static_gemm.h).

   Before the include: dy2static_tiles.h. */
#ifndef DY2STATIC_PACKING_H
#define DY2STATIC_PACKING_H

enum { LINE = 64 / sizeof(DY_T), FETCHED = 4 };   /* elements of a line of the cache; lines of a row that are fetched early */

/* Of how many steps the sums are made at a time, at most DEPTH: parts of about one size, the same for whatever computes them. */
static inline int64_t part_of_depth(const int64_t k)
{
    const int64_t parts = (k + DEPTH - 1) / DEPTH;
    return ((k + parts - 1) / parts + LINE - 1) / LINE * LINE;
}

static int64_t panels_of(const int64_t columns) { return (columns + COLUMNS - 1) / COLUMNS; }

/* The columns of a panel: `next` is how many come before it. */
typedef struct {
    int64_t j, columns;
    int vectors;
} panel_place;

static inline panel_place place_of(const int64_t next, const int64_t n, const DY_T keep)
{
    const int vectors = n - next > WIDTH ? 2 : 1;
    /* the last columns are done with some of those before them, where doing these twice does no harm */
    const int64_t last = n - vectors * WIDTH, j = keep == 0 && next > last && last >= 0 ? last : next;
    return (panel_place){j, n - j < COLUMNS ? n - j : COLUMNS, vectors};
}

/* Rows of a transposed A, up to a multiple of four, of as many steps as there is a way for; gives how many.  All rows of a few steps come
   before the next steps: lines of A whose distance is a power of two fall into one set of the cache, where they stay until they have been
   read. */
DY_INLINE int64_t pack_turned_block(const int64_t rows, const int64_t depth, const DY_T *a, const int64_t lda, DY_T *block)
{
    int64_t l = 0;
#if defined(DY_SQUARES)
    for (; sizeof(DY_T) == sizeof(float) && l + 16 <= depth; l += 16) {
        int64_t i = 0;
        for (; i + 16 <= rows; i += 16) {
#pragma GCC unroll 16
            for (int64_t step = 16; step < 32; step++)
                __builtin_prefetch(a + (l + step) * lda + i);
            turn_square((const float *)(a + l * lda + i), lda, (float *)(block + i * STRIDE + l), STRIDE);
        }
        for (; i + 4 <= rows; i += 4)
            for (int64_t step = l; step < l + 16; step += 4)
                transpose(a + step * lda + i, lda, block + i * STRIDE + step, STRIDE);
    }
#elif defined(DY_EIGHTS)
    for (; sizeof(DY_T) == sizeof(float) && l + 8 <= depth; l += 8) {
        for (int64_t i = 0; i < rows; i += LINE)
#pragma GCC unroll 8
            for (int64_t step = 8; step < 16; step++)
                __builtin_prefetch(a + (l + step) * lda + i);
        for (int64_t i = 0; i + 4 <= rows; i += 4) {
            dy_eight turned[4];
            turn_eights((const float *)(a + l * lda + i), lda, turned);
#pragma GCC unroll 4
            for (int t = 0; t < 4; t++)
                *(dy_eight_unaligned *)(block + (i + t) * STRIDE + l) = turned[t];
        }
    }
#else
    (void)rows, (void)depth, (void)a, (void)lda, (void)block;
#endif
    return l;
}

/* Rows of op(A) one after the other. */
static __attribute__((noinline)) void pack_block(const int transposed, const int64_t rows, const int64_t depth, const DY_T *a,
                                                 const int64_t lda)
{
    DY_T *const block = at_hand(own_block);
    int64_t i = 0;
    if (transposed) {
        const int64_t done = pack_turned_block(rows, depth, a, lda, block);
        for (; i + 4 <= rows; i += 4) {
            int64_t l = done;
            for (; l + 4 <= depth; l += 4)
                transpose(a + l * lda + i, lda, block + i * STRIDE + l, STRIDE);
            for (; l < depth; l++)
                for (int64_t s = 0; s < 4; s++)
                    block[(i + s) * STRIDE + l] = a[l * lda + i + s];
        }
    }
    for (; i < rows; i++)
        if (transposed)
            for (int64_t l = 0; l < depth; l++)
                block[i * STRIDE + l] = a[l * lda + i];
        else
            memcpy(block + i * STRIDE, a + i * lda, depth * sizeof(DY_T));
}

/* Sixteen columns of a transposed B at a time, where there is a way for them; gives how many. */
DY_INLINE int64_t pack_squares(const int64_t depth, const int64_t columns, const int64_t width, const DY_T *b, const int64_t ldb, DY_T *panel)
{
    int64_t j = 0;
#ifdef DY_SQUARES
    for (; sizeof(DY_T) == sizeof(float) && j + 16 <= columns; j += 16) {
        int64_t l = 0;
        for (; l + 16 <= depth; l += 16) {
            const int64_t soon = l + FETCHED * LINE;
#pragma GCC unroll 16
            for (int64_t row = j; row < j + 16; row++)      /* of these rows, or of the next ones */
                __builtin_prefetch(b + row * ldb + (soon < depth ? soon : 16 * ldb + soon - depth), 0, 2);
            turn_square((const float *)(b + j * ldb + l), ldb, (float *)(panel + l * width + j), width);
        }
        for (; l < depth; l++)
            for (int64_t s = 0; s < 16; s++)
                panel[l * width + j + s] = b[(j + s) * ldb + l];
    }
#else
    (void)depth, (void)columns, (void)width, (void)b, (void)ldb, (void)panel;
#endif
    return j;
}

/* Eight columns of a transposed B at a time, of the steps from `first` to `end`, where there is a way for them; gives how many. */
DY_INLINE int64_t pack_eights(const int64_t first, const int64_t end, const int64_t columns, const int64_t width, const DY_T *b,
                              const int64_t ldb, DY_T *panel)
{
    int64_t j = 0;
#ifdef DY_EIGHTS
    for (; sizeof(DY_T) == sizeof(float) && j + 8 <= columns; j += 8) {
        int64_t l = first;
        for (; l + 4 <= end; l += 4) {
            dy_eight turned[4];
            turn_eights((const float *)(b + j * ldb + l), ldb, turned);
#pragma GCC unroll 4
            for (int t = 0; t < 4; t++)
                *(dy_eight_unaligned *)(panel + (l + t) * width + j) = turned[t];
        }
        for (; l < end; l++)
            for (int64_t s = 0; s < 8; s++)
                panel[l * width + j + s] = b[(j + s) * ldb + l];
    }
#else
    (void)first, (void)end, (void)columns, (void)width, (void)b, (void)ldb, (void)panel;
#endif
    return j;
}

/* `depth` rows of `width` columns of B, those from `columns` on are zero. */
static __attribute__((noinline)) void pack_panel(const int transposed, const int64_t depth, const int64_t columns,
                                                 const int64_t width, const DY_T *b, const int64_t ldb, DY_T *panel)
{
    if (!transposed) {
        if (columns == COLUMNS)
            for (int64_t l = 0; l < depth; l++)
                memcpy(panel + l * COLUMNS, b + l * ldb, COLUMNS * sizeof(DY_T));
        else
            for (int64_t l = 0; l < depth; l++) {
                for (int64_t j = 0; j < width; j += WIDTH)
                    store(panel + l * width + j, (dy_vector){0});
                copy(panel + l * width, b + l * ldb, columns);
            }
        return;
    }
    if (columns != width)
        memset(panel, 0, depth * width * sizeof(DY_T));
    const int64_t squares = pack_squares(depth, columns, width, b, ldb, panel);
    b += squares * ldb;
    panel += squares;
    /* four rows of B at a time, by lines of the cache: rows whose distance is a power of two fall into one set of it */
    for (int64_t first = 0; first < depth; first += LINE) {
        const int64_t end = depth - first < LINE ? depth : first + LINE, soon = first + FETCHED * LINE;
        for (int64_t row = 0; row < columns - squares; row++)         /* of these rows, or of those of the next panel */
            __builtin_prefetch(b + row * ldb + (soon < depth ? soon : columns * ldb + soon - depth));
        int64_t j = pack_eights(first, end, columns - squares, width, b, ldb, panel);
        for (; j + 4 <= columns - squares; j += 4) {
            int64_t l = first;
            for (; l + 4 <= end; l += 4)
                transpose(b + j * ldb + l, ldb, panel + l * width + j, width);
            for (; l < end; l++)
                for (int64_t s = 0; s < 4; s++)
                    panel[l * width + j + s] = b[(j + s) * ldb + l];
        }
        for (; j < columns - squares; j++)
            for (int64_t l = first; l < end; l++)
                panel[l * width + j] = b[j * ldb + l];
    }
}

/* `panels` panels of B one after the other: long runs of its rows, since what is far away comes in runs. */
static __attribute__((noinline)) void pack_strip(const int64_t depth, const int64_t panels, const DY_T *b, const int64_t ldb, DY_T *to)
{
    for (int64_t l = 0; l < depth; l++, b += ldb, to += COLUMNS)
        for (int64_t p = 0; p < panels; p++) {
            __builtin_prefetch(b + 4 * ldb + p * COLUMNS);
            __builtin_prefetch(b + 4 * ldb + p * COLUMNS + WIDTH);
            copy(to + p * DEPTH * COLUMNS, b + p * COLUMNS, COLUMNS);
        }
}

#endif
