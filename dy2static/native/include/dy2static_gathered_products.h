/* Products of filters and panels of gathered places, for narrow images and few windows.

   Before the include: DY_T. */
#ifndef DY2STATIC_GATHERED_PRODUCTS_H
#define DY2STATIC_GATHERED_PRODUCTS_H

#include "dy2static_tapped_products.h"

DY_TILES(plain_tile, 0)

/* Where much is dropped between the places that count, these are put side by side, those of several images if they are few. */
enum { GATHERED = 256, GATHERING = 5 };         /* putting one row of a panel there takes as long as so many rows of a tile */

static int is_sparse(const places *at, const int64_t rows)
{
    const int64_t span = span_of(at), useful = count(at->grid);
    return ((span + WIDTH - 1) / WIDTH * WIDTH - useful) * rows > GATHERING * (1 + WIDTH / 2 / most(1, at->grid[2])) * useful;
}

static int64_t images_together(const dy_windows *w, const int64_t wanted)
{
    return least(w->batch, most(1, wanted / count(w->spots)));
}

/* The place of each column of the grid in the planes, and in one channel of the result, for several images whose planes and
   results lie `apart` and `next` elements apart. */
static void find_places(const places *at, const int64_t images, int64_t *from, const int64_t apart, int64_t *to, const int64_t next)
{
    int64_t useful = 0;
    for (int64_t q0 = 0; q0 < at->grid[0]; q0++)
        for (int64_t q1 = 0; q1 < at->grid[1]; q1++)
            for (int64_t q2 = 0; q2 < at->grid[2]; q2++, useful++) {
                from[useful] = (q0 * at->plane[1] + q1) * at->plane[2] + q2;
                to[useful] = useful;
            }
    for (int64_t u = useful; u < useful * images; u++) {
        from[u] = from[u - useful] + apart;
        to[u] = to[u - useful] + next;
    }
}

/* Neighbouring places that are neighbours elsewhere, too: `length` of them, from column `at` on. */
typedef struct {
    int64_t at, from, length;
} run;

static int64_t find_runs(const int64_t columns, const int64_t *from, const int64_t longest, run *runs)
{
    int64_t found = 0;
    for (int64_t j = 0; j < columns; j++)
        if (j && from[j] == from[j - 1] + 1 && runs[found - 1].length < longest)
            runs[found - 1].length++;
        else
            runs[found++] = (run){j, from[j], 1};
    return found;
}

/* Whole vectors, `found` of them, which is a constant: what is too much is overwritten by the next one, or not read. */
DY_INLINE void gather_rows(const int64_t found, const int64_t depth, DY_T *to, const DY_T *planes, const int64_t *where, const run *runs)
{
    for (int64_t l = 0; l < depth; l++) {
        const DY_T *const tap = planes + where[l];
#pragma GCC unroll 8
        for (int64_t r = 0; r < found; r++)
            store(to + l * COLUMNS + runs[r].at, load(tap + runs[r].from));
    }
}

/* Whether four taps lie side by side; in transposed convolutions the offsets of a channel fall, and then rise to the next channel. */
static int are_neighbours(const int64_t *where)
{
    return where[1] == where[0] + 1 && where[2] == where[0] + 2 && where[3] == where[0] + 3;
}

/* Places that are apart: four taps that lie side by side are read at a time, of four places; nothing else is read. */
static void gather_apart(DY_T *to, const int64_t depth, const int64_t columns, const DY_T *planes, const int64_t *where,
                         const int64_t *from)
{
    int64_t l = 0;
    for (int64_t some; l < depth; l += some, to += some * COLUMNS) {
        const DY_T *const tap = planes + where[l];
        int64_t j = 0;
        some = l + 4 <= depth && are_neighbours(where + l) ? 4 : 1;
        for (; some == 4 && j + 4 <= columns; j += 4)
            transpose_rows(tap + from[j], tap + from[j + 1], tap + from[j + 2], tap + from[j + 3], to + j, COLUMNS);
        for (; j < columns; j++)
            for (int64_t t = 0; t < some; t++)
                to[t * COLUMNS + j] = tap[from[j] + t];
    }
}

/* Columns of a panel: for each of `depth` taps, what it meets at each place. */
static void gather_panel(DY_T *to, const int64_t depth, const int64_t columns, const DY_T *planes, const int64_t *where,
                         const int64_t *from)
{
    run runs[COLUMNS];
    const int64_t found = find_runs(columns, from, WIDTH, runs);
    if (columns < COLUMNS)                      /* what was left there must not raise flags */
        memset(to, 0, depth * COLUMNS * sizeof(DY_T));
    if (found == columns) {
        gather_apart(to, depth, columns, planes, where, from);
        return;
    }
    switch (found) {
    case 1: gather_rows(1, depth, to, planes, where, runs); break;
    case 2: gather_rows(2, depth, to, planes, where, runs); break;
    case 3: gather_rows(3, depth, to, planes, where, runs); break;
    case 4: gather_rows(4, depth, to, planes, where, runs); break;
    case 5: gather_rows(5, depth, to, planes, where, runs); break;
    default:
        if (found <= COLUMNS / 2)
            gather_rows(found, depth, to, planes, where, runs);
        else
            gather_apart(to, depth, columns, planes, where, from);
    }
}

/* What `tapped_product` does, for the places of several images; from, to: the places of all of them in planes and results.
   raw: the filters are as they are, rows of `depth`. */
static void gathered_product(const int64_t rows, const int64_t depth, const DY_T *filters, const int raw, const int64_t *where,
                             const DY_T *planes, const int64_t columns, const int64_t *from, const int64_t *to, const int64_t each,
                             DY_T *result, DY_T *strip, DY_T *panels)
{
    const int64_t width = (columns + COLUMNS - 1) / COLUMNS * COLUMNS;
    DY_T *const block = at_hand(own_block);
    int straight[GATHERED / COLUMNS];
    run runs[COLUMNS];
    for (int64_t u = 0; u < columns; u += COLUMNS) {
        const int64_t some = least(COLUMNS, columns - u);
        straight[u / COLUMNS] = some % WIDTH == 0 && find_runs(some, to + u, COLUMNS, runs) == 1;
    }
    for (int64_t l = 0; l < depth; l += DEPTH) {
        const int64_t some = least(DEPTH, depth - l);
        for (int64_t u = 0; u < columns; u += COLUMNS)
            gather_panel(panels + u * (DEPTH + 1), some, least(COLUMNS, columns - u), planes, where + l, from + u);
        for (int64_t r = 0, height; r < rows; r += height) {
            const DY_T *const left = raw ? block : filters + (l / DEPTH * rows + r) * STRIDE;
            height = tile_rows(rows - r);
            for (int64_t i = 0; raw && i < height; i++)
                copy(block + i * STRIDE, filters + (r + i) * depth + l, some);
            for (int64_t u = 0; u < columns; u += COLUMNS) {
                DY_T *const target = straight[u / COLUMNS] ? result + r * each + to[u] : strip + r * width + u;
                plain_tile(height, columns - u > WIDTH ? 2 : 1, some, left, panels + u * (DEPTH + 1), COLUMNS, 0, target,
                           straight[u / COLUMNS] ? each : width, 1, l ? 1 : 0);
            }
        }
    }
    for (int64_t u = 0; u < columns; u += COLUMNS) {
        const int64_t some = least(COLUMNS, columns - u), found = find_runs(some, to + u, COLUMNS, runs);
        if (straight[u / COLUMNS])
            continue;
        for (int64_t t = 0; t < found; t++)
            for (int64_t r = 0; r < rows; r++)
                copy(result + r * each + runs[t].from, strip + r * width + u + runs[t].at, runs[t].length);
    }
}

/* What the products want: a strip of results, and panels. */
static int64_t strip_size(const int sparse, const int64_t rows, const int64_t columns, const places *at)
{
    const int64_t tiles = rows * (sparse ? least(GATHERED, (columns + COLUMNS - 1) / COLUMNS * COLUMNS) : COLUMNS);
    return rounded(rows > THIN_ROWS ? tiles : most(tiles, span_of(at) + THIN * WIDTH));
}

static int64_t panels_size(const int sparse) { return sparse ? GATHERED * (DEPTH + 1) + WIDTH : 0; }

/* Whether places are gathered, by rules or as the windows say. */
static int gathers(const dy_windows *w, const places *at, const int64_t rows)
{
    return w->algorithm == DY_GATHERED || w->algorithm != DY_IN_PLACE && is_sparse(at, rows);
}

#endif
