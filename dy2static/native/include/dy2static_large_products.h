/* Products of many rows: all panels of a part of B are packed once, for all rows, and threads share both (after dy2static_gemm.h).
   If B never changes, they are packed once for all calls. */
#include "dy2static_shares.h"
#include "dy2static_kept.h"

typedef struct {
    int trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc;
    DY_T alpha, beta;
    const DY_T *a, *b;
    DY_T *c;
    finishing after;            /* no body: nothing */
    DY_T *packed;               /* the panels of B */
} factors;

/* What is done with the rows from `row` and the columns from `column` on. */
static inline finishing from(const factors *f, const int64_t row, const int64_t column)
{
    return (finishing){f->after.body, f->after.given, f->after.row + row, f->after.column + column};
}

enum {
    SLAB = 16,                  /* panels: 1.5 MiB with the longest vectors */
    KEPT_SLAB = DY_BYTES == 64 ? 32 : SLAB      /* panels that are kept: for more at a time, rows of A are packed less often */
};

/* One for the process.  Who finds it taken packs panels as they are needed, which gives the same numbers. */
static DY_T slab[SLAB * DEPTH * COLUMNS] __attribute__((aligned(64)));
static int slab_taken;

static void some_panels(const void *given, int64_t begin, int64_t end)
{
    const factors *const f = given;
    for (int64_t p = begin; p < end; p++) {
        const panel_place at = place_of(p * COLUMNS, f->n, f->beta);
        pack_panel(f->trans_b, f->k, at.columns, at.vectors * WIDTH, f->b + (f->trans_b ? at.j * f->ldb : at.j), f->ldb,
                   f->packed + p * f->k * COLUMNS);
    }
}

static void some_packed_rows(const void *given, int64_t begin, int64_t end)
{
    const factors *const f = given;
    const finishing after = from(f, begin, 0);
    rows_product(f->trans_a, f->trans_b, end - begin, f->n, f->k, f->alpha, f->a + begin * (f->trans_a ? 1 : f->lda), f->lda, f->b,
                 f->ldb, f->packed, f->beta, f->c + begin * f->ldc, f->ldc, after.body ? &after : 0);
}

/* The part of a product with up to `columns` columns from `j` on, and the steps from `l` on. */
static factors part_at(const factors *all, const int64_t j, const int64_t columns, const int64_t l, const int64_t whole, DY_T *packed)
{
    factors part = *all;
    part.n = all->n - j < columns ? all->n - j : columns;
    part.k = all->k - l < whole ? all->k - l : whole;
    part.a += l * (all->trans_a ? all->lda : 1);
    part.b += all->trans_b ? j * all->ldb + l : l * all->ldb + j;
    part.c += j;
    part.beta = l ? 1 : all->beta;
    part.after = l + part.k < all->k ? (finishing){0} : from(all, 0, j);
    part.packed = packed;
    return part;
}

/* Where the panels of a part are among those of all steps and columns. */
static int64_t kept_at(const factors *all, const int64_t j, const int64_t l, const int64_t whole)
{
    return l * panels_of(all->n) * COLUMNS + j * (all->k - l < whole ? all->k - l : whole);
}

static void pack_all(const void *given, void *to)
{
    const factors *const all = given;
    const int64_t whole = part_of_depth(all->k), columns = KEPT_SLAB * COLUMNS;
    for (int64_t j = 0; j < all->n; j += columns)
        for (int64_t l = 0; l < all->k; l += whole) {
            const factors part = part_at(all, j, columns, l, whole, (DY_T *)to + kept_at(all, j, l, whole));
            some_panels(&part, 0, panels_of(part.n));
        }
}

/* All panels of a B that never changes; else null. */
static DY_T *kept_panels(const factors *f)
{
    const int64_t elements = ((f->trans_b ? f->n : f->k) - 1) * f->ldb + (f->trans_b ? f->k : f->n);
    const dy_kept_key key = {f->b, elements * (int64_t)sizeof(DY_T), sizeof(DY_T), {f->n, f->k, f->ldb, 2 * f->trans_b + (f->beta != 0)}};
    return (DY_T *)dy_kept(&key, f->k * panels_of(f->n) * COLUMNS * sizeof(DY_T), pack_all, f);
}

/* Whether panels that are kept take less time than a turned product: with the longest vectors, and with AVX2 where one stays in the
   first cache. */
static inline int repays_kept(const int64_t k)
{
    return DY_BYTES == 64 || (DY_BYTES == 32 && part_of_depth(k) * COLUMNS * (int64_t)sizeof(DY_T) <= NEAREST_BYTES);
}

/* How many panels are in the slab.  With AVX2, as many as fit: where they are short, blocks of A are packed for fewer slabs. */
static int64_t panels_of_slab(const int64_t depth)
{
    return DY_BYTES == 32 ? SLAB * DEPTH / (depth > DEPTH / 4 ? depth : DEPTH / 4) : SLAB;
}

/* Whether it was done: the panels are kept, or the slab was free.  rows: about how many a thread does at a time. */
static int large_product(const factors *all, const int64_t rows)
{
    const int64_t whole = part_of_depth(all->k);
    DY_T *const kept = kept_panels(all);
    if (!kept && __atomic_exchange_n(&slab_taken, 1, __ATOMIC_ACQUIRE))
        return 0;
    const int64_t columns = (kept ? KEPT_SLAB : panels_of_slab(whole < all->k ? whole : all->k)) * COLUMNS;
    for (int64_t j = 0; j < all->n; j += columns)
        for (int64_t l = 0; l < all->k; l += whole) {
            const factors part = part_at(all, j, columns, l, whole, kept ? kept + kept_at(all, j, l, whole) : slab);
            const int64_t panels = panels_of(part.n);
            if (!kept)
                dy_share_freely(some_panels, &part, panels, panels < 8 ? panels : 4);
            dy_share_freely(some_packed_rows, &part, part.m, rows);
        }
    if (!kept)
        __atomic_store_n(&slab_taken, 0, __ATOMIC_RELEASE);
    return 1;
}
