/* Products of many rows: all panels of a part of B are packed once, for all rows, and threads share both (after dy2static_gemm.h). */
#include "dy2static_shares.h"

typedef struct {
    int trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc;
    DY_T alpha, beta;
    const DY_T *a, *b;
    DY_T *c;
    finishing after;            /* no body: nothing */
} factors;

/* What is done with the rows from `row` and the columns from `column` on. */
static inline finishing from(const factors *f, const int64_t row, const int64_t column)
{
    return (finishing){f->after.body, f->after.given, f->after.row + row, f->after.column + column};
}

enum { SLAB = 16 };             /* panels: 1.5 MiB with the longest vectors */

/* One for the process.  Who finds it taken packs panels as they are needed, which gives the same numbers. */
static DY_T slab[SLAB * DEPTH * COLUMNS] __attribute__((aligned(64)));
static int slab_taken;

static void some_panels(const void *given, int64_t begin, int64_t end)
{
    const factors *const f = given;
    for (int64_t p = begin; p < end; p++) {
        const panel_place at = place_of(p * COLUMNS, f->n, f->beta);
        pack_panel(f->trans_b, f->k, at.columns, at.vectors * WIDTH, f->b + (f->trans_b ? at.j * f->ldb : at.j), f->ldb,
                   slab + p * DEPTH * COLUMNS);
    }
}

static void some_packed_rows(const void *given, int64_t begin, int64_t end)
{
    const factors *const f = given;
    const finishing after = from(f, begin, 0);
    rows_product(f->trans_a, f->trans_b, end - begin, f->n, f->k, f->alpha, f->a + begin * (f->trans_a ? 1 : f->lda), f->lda, f->b,
                 f->ldb, slab, f->beta, f->c + begin * f->ldc, f->ldc, after.body ? &after : 0);
}

/* Whether it was done: the slab was free.  rows: about how many a thread does at a time. */
static int large_product(const factors *all, const int64_t rows)
{
    const int64_t whole = part_of_depth(all->k);
    if (__atomic_exchange_n(&slab_taken, 1, __ATOMIC_ACQUIRE))
        return 0;
    for (int64_t j = 0; j < all->n; j += SLAB * COLUMNS)
        for (int64_t l = 0; l < all->k; l += whole) {
            factors part = *all;
            part.n = all->n - j < SLAB * COLUMNS ? all->n - j : SLAB * COLUMNS;
            part.k = all->k - l < whole ? all->k - l : whole;
            part.a += l * (all->trans_a ? all->lda : 1);
            part.b += all->trans_b ? j * all->ldb + l : l * all->ldb + j;
            part.c += j;
            part.beta = l ? 1 : all->beta;
            part.after = l + part.k < all->k ? (finishing){0} : from(all, 0, j);
            const int64_t panels = (part.n + COLUMNS - 1) / COLUMNS;
            dy_share_freely(some_panels, &part, panels, panels < 8 ? panels : 4);
            dy_share_freely(some_packed_rows, &part, part.m, rows);
        }
    __atomic_store_n(&slab_taken, 0, __ATOMIC_RELEASE);
    return 1;
}
