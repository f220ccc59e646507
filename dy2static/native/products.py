"""Matrix products for generated code: a kernel of ours, which threads share.

Measured on one core of an AMD EPYC with AVX-512 that other programs kept busy, 2026-11-23: GFLOP/s of float32, row-major A B,
arrays 16 bytes after a line of the cache as NumPy's often are; NumPy's OpenBLAS 0.3.23 for Cooperlake, ours:

    (1024, 1024) (1024, 1024)    89   94
    (20, 200) (200, 800)         50  103
    (32, 256) (256, 256)         71  109
    (32, 64) (64, 64)           106   94
    (4, 64) (64, 64)             98   93
    (256, 32) (32, 32)          109   89
    (1, 200) (200, 800)          31   38
    (16, 16) (16, 16)            79   57

`benchmarks/products.py` measures again.  It needs no library, and is behind OpenBLAS where both matrices are tiny.  From `SHARED`
multiplications on, a product is cut into rows or columns for the thread pool of all native code.  (Libraries with threads of
their own would hold the cores that the pool is to run on: their threads look for work for some milliseconds after each call.)
Each element is computed in the same way wherever a product is cut.
"""
from __future__ import annotations

import functools

from . import compiler, library
from .kernels import FLAGS, PASSES

HEADER = "dy2static_products.h"
SHARED = 1 << 21
_TYPES = {"f32": "float", "f64": "double"}

_TEXT = """
#define DY_T {type}
#define DY_GEMM own_product
#include "dy2static_gemm.h"
#include "dy2static_large_products.h"

/* Pieces are multiples of so many rows or columns: with whole tiles of rows one thread would have more than another. */
enum {{ EVEN_ROWS = 4, EVEN_COLUMNS = 8, LONG_ROWS = 32 }};

static void some_rows(const void *given, int64_t begin, int64_t end)
{{
    const factors *const f = given;
    const finishing after = from(f, begin, 0);
    own_product(f->trans_a, f->trans_b, end - begin, f->n, f->k, f->alpha, f->a + begin * (f->trans_a ? 1 : f->lda), f->lda, f->b,
                f->ldb, f->beta, f->c + begin * f->ldc, f->ldc, after.body ? &after : 0);
}}

static void some_columns(const void *given, int64_t begin, int64_t end)
{{
    const factors *const f = given;
    const finishing after = from(f, 0, begin);
    own_product(f->trans_a, f->trans_b, f->m, end - begin, f->k, f->alpha, f->a, f->lda, f->b + begin * (f->trans_b ? f->ldb : 1),
                f->ldb, f->beta, f->c + begin, f->ldc, after.body ? &after : 0);
}}

/* The size of about so many pieces: whole grains, and the last one is not so small that it would be computed otherwise.  Of sizes
   up to twice the least one, or else of larger ones, that with which the thread that has most has least to do. */
static int64_t piece(const int64_t count, const int64_t pieces, const int64_t grain, const int64_t least)
{{
    const int64_t threads = dy_team ? dy_team->threads : 1, first = (count + pieces * grain - 1) / (pieces * grain) * grain;
    int64_t best = count, fewest = count;
    for (int64_t step = first; step < count && (step <= 2 * first || best == count); step += grain) {{
        const int64_t shares = (count + step - 1) / step, rest = count - (shares - 1) * step, beside = shares % threads;
        const int64_t most = shares / threads * step + (beside > 1 ? step : beside ? rest : 0);
        if (most < fewest && (rest == step || rest >= least)) {{
            best = step;
            fewest = most;
        }}
    }}
    return best;
}}

/* So many pieces, or fewer that are long: all panels are read for each of them. */
static int64_t long_pieces(const int64_t m, const int64_t pieces)
{{
    const int64_t threads = dy_team ? dy_team->threads : 1, fit = m / LONG_ROWS < threads ? threads : m / LONG_ROWS;
    return fit < pieces ? fit : pieces;
}}

/* Columns of a piece where threads share them, and each packs panels of its own: where they are packed late and are enough for all
   threads.  Else 0. */
static int64_t columns_of_piece(const factors *f)
{{
    const int64_t threads = dy_team ? dy_team->threads : 1, parts = 1 + (f->n - 1) / columns_together(f->n, f->k);
    if (!packs_late(f->trans_a, f->trans_b, f->m, part_of_depth(f->k), f->lda) || panels_of(f->n) < STRIP * threads)
        return 0;
    return piece(f->n, parts < threads ? threads : parts, COLUMNS, COLUMNS + 1);
}}

/* Rows of a piece where threads share them, and each has so few that it packs no transposed B: a turned product, whose rows of B do
   not share a set of the cache.  Else 0. */
static int64_t rows_of_piece(const factors *f)
{{
    const int64_t threads = dy_team ? dy_team->threads : 1, rows = (f->m + threads * WIDTH - 1) / (threads * WIDTH) * WIDTH;
    const int few = threads > 1 && f->trans_b && !f->trans_a && rows <= FEWER_TURNED_ROWS;
    return few && !falls_together(f->ldb) && is_turned(rows, f->n, f->ldb) ? rows : 0;
}}

enum {{ SYMMETRIC = 64, SYMMETRIC_DEPTH = 64 }};    /* rows that are computed as a whole; fewer terms do not repay the mirror */

void finished_product(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, DY_T alpha, const DY_T *a, int64_t lda,
                      const DY_T *b, int64_t ldb, DY_T beta, DY_T *c, int64_t ldc,
                      void (*body)(const void *, int64_t, int64_t, int64_t, int64_t), const void *given);

/* Below the diagonal: of a matrix and its own transpose, which give a symmetric C. */
static void lower_half(int trans_a, int64_t n, int64_t k, DY_T alpha, const DY_T *a, int64_t lda, DY_T *c, int64_t ldc)
{{
    if (n <= SYMMETRIC) {{
        finished_product(trans_a, !trans_a, n, n, k, alpha, a, lda, a, lda, 0, c, ldc, 0, 0);
        return;
    }}
    const int64_t half = (n / 2 + COLUMNS - 1) / COLUMNS * COLUMNS;
    const DY_T *const rest = a + half * (trans_a ? 1 : lda);
    lower_half(trans_a, half, k, alpha, a, lda, c, ldc);
    finished_product(trans_a, !trans_a, n - half, half, k, alpha, rest, lda, a, lda, 0, c + half * ldc, ldc, 0, 0);
    lower_half(trans_a, n - half, k, alpha, rest, lda, c + half * ldc + half, ldc);
}}

/* Rows of C above the diagonal, from the columns below it. */
static void mirrored_rows(const void *given, int64_t begin, int64_t end)
{{
    const factors *const f = given;
    int64_t i = begin;
    for (; i + 4 <= end; i += 4) {{
        DY_T *const below = f->c + i, *const above = f->c + i * f->ldc;
        int64_t j = i + 4;
        for (; j + 4 <= f->n; j += 4)
            transpose(below + j * f->ldc, f->ldc, above + j, f->ldc);
        for (int64_t r = 0; r < 4; r++) {{
            for (int64_t q = r + 1; q < 4; q++)
                above[r * f->ldc + i + q] = below[(i + q) * f->ldc + r];
            for (int64_t q = j; q < f->n; q++)
                above[r * f->ldc + q] = below[q * f->ldc + r];
        }}
    }}
    for (; i < end; i++)
        for (int64_t q = i + 1; q < f->n; q++)
            f->c[i * f->ldc + q] = f->c[q * f->ldc + i];
}}

/* body: what is done with each part of C when it is there, or null. */
void finished_product(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, DY_T alpha, const DY_T *a, int64_t lda,
                      const DY_T *b, int64_t ldb, DY_T beta, DY_T *c, int64_t ldc,
                      void (*body)(const void *, int64_t, int64_t, int64_t, int64_t), const void *given)
{{
    const int64_t work = m * n * k;
    if (a == b && trans_a != trans_b && m == n && lda == ldb && beta == 0 && !body && n >= 2 * SYMMETRIC && k >= SYMMETRIC_DEPTH) {{
        const factors all = {{.n = n, .ldc = ldc, .c = c}};
        lower_half(trans_a, n, k, alpha, a, lda, c, ldc);
        dy_share_freely(mirrored_rows, &all, n, COLUMNS);
        return;
    }}
    const int turned = trans_b && !trans_a && is_turned(m, n, ldb);
    const factors all = {{trans_a, trans_b, m, n, k, lda, ldb, ldc, alpha, beta, a, b, c, {{body, given, 0, 0}}}};
    const int64_t most = dy_team ? 4 * dy_team->threads : 1, pieces = work / ({shared} / 2) < most ? work / ({shared} / 2) : most;
    const int large = m > HEIGHT && n > COLUMNS && alpha != 0 && work >= {shared};
    const int apart = dy_team && m <= HEIGHT + HEIGHT / 2;      /* panels that another thread packs come late for so few rows */
    const int64_t late = large && !turned ? columns_of_piece(&all) : 0, rows = large && !turned && !late ? rows_of_piece(&all) : 0;
    if (large && ((!turned && !late && !rows && !apart) || (repays_kept(k) && kept_panels(&all)))
        && large_product(&all, piece(m, long_pieces(m, pieces), EVEN_ROWS, 1)))
        return;
    if (late)
        dy_share_freely(some_columns, &all, n, late);
    else if (rows)
        dy_share_freely(some_rows, &all, m, rows);
    else if (dy_team && work >= {shared}) {{
        if (m > n || (m >= 2 * HEIGHT && !turned))
            dy_share_freely(some_rows, &all, m, piece(m, pieces, n == 1 ? 256 : turned || trans_a ? WIDTH : EVEN_ROWS, 16));
        else {{                              /* of a turned product each piece packs all of A for itself: one for each thread */
            const int64_t few = (turned ? 1 : 3) * dy_team->threads, wanted = few < pieces ? few : pieces;
            dy_share_freely(some_columns, &all, n, piece(n, wanted, m == 1 ? 256 : m > WIDE_ROWS ? EVEN_COLUMNS : 4 * WIDTH, 2));
        }}
    }} else
        own_product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, body ? &all.after : 0);
}}

void product(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, DY_T alpha, const DY_T *a, int64_t lda, const DY_T *b,
             int64_t ldb, DY_T beta, DY_T *c, int64_t ldc)
{{
    finished_product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 0, 0);
}}
"""


def start(name: str) -> compiler.Build:
    """The library of one type, "f32" or "f64", which may be on its way.  Raises `failures.NoCompiler`."""
    return compiler.start(text(name), FLAGS)


@functools.lru_cache(maxsize=None)
def address(name: str, function: str = "product") -> int:
    """Where the product of one type, "f32" or "f64", is; "finished_product": that with something to do with each part of C."""
    return start(name).library().address(function)


def text(name: str, shared: int = SHARED) -> str:
    """The C text for one type.  shared: from how many multiplications on threads share a product."""
    return PASSES + _TEXT.format(type=_TYPES[name], shared=shared)


for _name in _TYPES:
    library.ADDRESSES[f"dy2static_set_product_{_name}"] = functools.partial(address, _name, "finished_product")
    library.CALLED[f"#define DY_PRODUCTS_{_name.upper()}"] = functools.partial(start, _name)
