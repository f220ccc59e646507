/* Convolutions and their derivatives: the functions of the library that convolutions.py builds.

   Nothing is unrolled into patches.  The image of one group is copied once, with its padding, into planes: where windows
   step by s, one plane for each remainder by s.  In these planes, what one tap of the filters meets in neighbouring windows
   lies side by side, so that the rows of the matrix of patches are the planes themselves at some offset, and a product
   reads them by a table of offsets (`tile`).  Places that are between the end of one row of windows and the start of the
   next are computed and dropped.

   Before the include: DY_T. */
#include <stdlib.h>
#include <pthread.h>
#include "dy2static_tiles.h"
#include "dy2static_windows.h"

DY_TILES(tapped_tile, 1)
DY_TILES(plain_tile, 0)

enum { SLACK = 2 * COLUMNS };               /* tiles read up to a panel behind the last place */

/* Working memory of a thread, and sums of shares that it has others do; both grow to what the largest convolution needs and go
   with the thread. */
static pthread_key_t memory_key, sums_key;
static int has_keys;

static __attribute__((constructor)) void make_keys(void)
{
    has_keys = !pthread_key_create(&memory_key, free) && !pthread_key_create(&sums_key, free);
}

static void *memory_of(const pthread_key_t key, const int64_t bytes)
{
    if (!has_keys)
        return 0;
    int64_t *held = pthread_getspecific(key);
    if (held && *held >= bytes)
        return (char *)held + 64;
    free(held);
    pthread_setspecific(key, 0);
    const int64_t size = (bytes + 64 + 4095) / 4096 * 4096;
    held = aligned_alloc(64, size);
    if (!held)
        return 0;
    *held = size - 64;
    if (pthread_setspecific(key, held)) {
        free(held);
        return 0;
    }
    return (char *)held + 64;
}

static void *memory(const int64_t bytes) { return memory_of(memory_key, bytes); }

static inline int64_t count(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }
static inline int64_t most(const int64_t a, const int64_t b) { return a > b ? a : b; }
static inline int64_t least(const int64_t a, const int64_t b) { return a < b ? a : b; }
static inline int64_t rounded(const int64_t n) { return (n + 15) / 16 * 16; }
static inline int64_t floor_div(const int64_t a, const int64_t b) { return a / b - (a % b < 0); }
static inline int64_t step_of_y(const dy_windows *w) { return w->next_y ? w->next_y : w->groups * w->out * count(w->spots); }
static inline int64_t packed_rows(const int64_t depth) { return (depth + DEPTH - 1) / DEPTH * STRIDE; }

/* Filters of one tap that step by one: their image has one long axis. */
static dy_windows flattened(const dy_windows *w)
{
    dy_windows flat = *w;
    for (int axis = 0; axis < 3; axis++)
        if (w->kernel[axis] != 1 || w->stride[axis] != 1 || w->pad[axis] || w->image[axis] != w->spots[axis])
            return flat;
    for (int axis = 0; axis < 3; axis++)
        flat.image[axis] = flat.spots[axis] = axis < 2 ? 1 : count(w->image);
    return flat;
}

/* Whether the image is its own plane: windows of one element, and whole vectors, behind which nothing is read. */
static int is_plane(const dy_windows *w)
{
    int is = count(w->spots) % WIDTH == 0;
    for (int axis = 0; axis < 3; axis++)
        is &= w->kernel[axis] == 1 && w->stride[axis] == 1 && !w->pad[axis] && w->image[axis] == w->spots[axis];
    return is;
}

/* to[q] = from[2 * q], in vectors; the element behind the last one is not read */
static void copy_every_second(DY_T *to, const DY_T *from, const int64_t length)
{
    int64_t q = 0;
    for (; q + 4 < length; q += 4) {
        const dy_quad a = *(const dy_quad_unaligned *)(from + 2 * q), b = *(const dy_quad_unaligned *)(from + 2 * q + 4);
        *(dy_quad_unaligned *)(to + q) = DY_MIX(a, b, 0, 2, 4, 6);
    }
    for (; q < length; q++)
        to[q] = from[2 * q];
}

/* planes[q] = x[step * q + first], zero outside x, for one channel and one remainder */
static void fill_plane(DY_T *to, const int64_t *plane, const DY_T *x, const int64_t *sizes, const int64_t *step, const int64_t *first)
{
    const int64_t from = least(plane[2], most(0, -floor_div(first[2], step[2])));
    const int64_t until = most(from, least(plane[2], floor_div(sizes[2] - 1 - first[2], step[2]) + 1));
    for (int64_t q0 = 0; q0 < plane[0]; q0++)
        for (int64_t q1 = 0; q1 < plane[1]; q1++, to += plane[2]) {
            const int64_t i0 = q0 * step[0] + first[0], i1 = q1 * step[1] + first[1];
            if (i0 < 0 || i0 >= sizes[0] || i1 < 0 || i1 >= sizes[1]) {
                memset(to, 0, plane[2] * sizeof(DY_T));
                continue;
            }
            const DY_T *const row = x + (i0 * sizes[1] + i1) * sizes[2] + first[2];
            for (int64_t q = 0; q < from; q++)
                to[q] = 0;
            if (step[2] == 1)
                copy(to + from, row + from, until - from);
            else if (step[2] == 2)
                copy_every_second(to + from, row + 2 * from, until - from);
            else
                for (int64_t q = from; q < until; q++)
                    to[q] = row[q * step[2]];
            for (int64_t q = until; q < plane[2]; q++)
                to[q] = 0;
        }
}

/* How the image of a group lies in planes, for `forward` and `grad_weight`. */
typedef struct {
    int64_t plane[3], remainders[3], each, channel, total;
} layout;

static layout lay_out(const dy_windows *w)
{
    layout l;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t reach = (w->kernel[axis] - 1) * w->dilate[axis];
        l.plane[axis] = w->spots[axis] + reach / w->stride[axis];
        l.remainders[axis] = least(w->stride[axis], reach + 1);
    }
    l.each = count(l.plane);
    l.channel = l.each * count(l.remainders);
    l.total = rounded(l.channel * w->in + SLACK);
    return l;
}

static void fill_planes(DY_T *to, const layout *l, const dy_windows *w, const DY_T *x)
{
    for (int64_t c = 0; c < w->in; c++, x += count(w->image))
        for (int64_t r0 = 0; r0 < l->remainders[0]; r0++)
            for (int64_t r1 = 0; r1 < l->remainders[1]; r1++)
                for (int64_t r2 = 0; r2 < l->remainders[2]; r2++, to += l->each) {
                    const int64_t first[3] = {r0 - w->pad[0], r1 - w->pad[1], r2 - w->pad[2]};
                    fill_plane(to, l->plane, x, w->image, w->stride, first);
                }
    memset(to, 0, SLACK * sizeof(DY_T));
}

/* Where each tap of the filters finds what it meets in the first window. */
static void find_taps(int64_t *where, const layout *l, const dy_windows *w)
{
    for (int64_t c = 0; c < w->in; c++)
        for (int64_t k0 = 0; k0 < w->kernel[0]; k0++)
            for (int64_t k1 = 0; k1 < w->kernel[1]; k1++)
                for (int64_t k2 = 0; k2 < w->kernel[2]; k2++) {
                    const int64_t k[3] = {k0, k1, k2};
                    int64_t remainder = 0, shift = 0;
                    for (int axis = 0; axis < 3; axis++) {
                        const int64_t at = k[axis] * w->dilate[axis];
                        remainder = remainder * l->remainders[axis] + at % w->stride[axis];
                        shift = shift * l->plane[axis] + at / w->stride[axis];
                    }
                    *where++ = c * l->channel + remainder * l->each + shift;
                }
}

/* The places that a product computes: a grid in planes whose rows may be longer.  They go side by side into the result. */
typedef struct {
    int64_t plane[3], grid[3];
} places;

static places places_of(const int64_t *plane, const int64_t *grid)
{
    return (places){{plane[0], plane[1], plane[2]}, {grid[0], grid[1], grid[2]}};
}

static int64_t span_of(const places *at)
{
    return ((at->grid[0] - 1) * at->plane[1] + at->grid[1] - 1) * at->plane[2] + at->grid[2];
}

/* Few rows of few taps: so many vectors at a time that additions need not wait for each other. */
enum { THIN_ROWS = 2, THIN_DEPTH = 128, THIN = 8 };

static int is_thin(const int64_t rows, const int64_t depth) { return rows <= THIN_ROWS && depth <= THIN_DEPTH; }

DY_INLINE void thin_tile(const int vectors, const int64_t depth, const DY_T *filter, const int64_t *where, const DY_T *planes, DY_T *to)
{
    dy_vector sum[THIN];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
        sum[v] = (dy_vector){0};
    for (int64_t l = 0; l < depth; l++) {
        const DY_T left = filter[l], *const tap = planes + where[l];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            sum[v] += left * load(tap + v * WIDTH);
    }
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++)
        store(to + v * WIDTH, sum[v]);
}

static void thin_product(const int64_t rows, const int64_t depth, const DY_T *filters, const int64_t *where, const DY_T *planes,
                         const places *at, DY_T *result, DY_T *strip)
{
    const int64_t span = span_of(at), columns = at->grid[2];
    for (int64_t r = 0; r < rows; r++, filters += STRIDE) {
        int64_t u = 0;
        for (; span - u > (THIN - 1) * WIDTH; u += THIN * WIDTH)
            thin_tile(THIN, depth, filters, where, planes + u, strip + u);
        for (; span - u > 3 * WIDTH; u += 4 * WIDTH)
            thin_tile(4, depth, filters, where, planes + u, strip + u);
        for (; span - u > 0; u += WIDTH)
            thin_tile(1, depth, filters, where, planes + u, strip + u);
        for (int64_t q0 = 0; q0 < at->grid[0]; q0++)
            for (int64_t q1 = 0; q1 < at->grid[1]; q1++, result += columns)
                copy(result, strip + (q0 * at->plane[1] + q1) * at->plane[2], columns);
    }
}

/* `rows` rows of the result, from filters packed in blocks of DEPTH, a table of taps, and planes. */
static void tapped_product(const int64_t rows, const int64_t depth, const DY_T *filters, const int64_t *where, const DY_T *planes,
                           const places *at, DY_T *result, DY_T *strip)
{
    const int64_t row = at->plane[2], slice = at->plane[1] * row, each = count(at->grid), columns = at->grid[2];
    const int64_t span = span_of(at);
    if (is_thin(rows, depth)) {
        thin_product(rows, depth, filters, where, planes, at, result, strip);
        return;
    }
    if (columns % COLUMNS == 0) {                   /* rows that fill tiles go where they belong */
        for (int64_t q = 0; q < at->grid[0] * at->grid[1]; q++)
            for (int64_t j = 0; j < columns; j += COLUMNS) {
                const DY_T *const from = planes + q / at->grid[1] * slice + q % at->grid[1] * row + j;
                DY_T *const to = result + q * columns + j;
                for (int64_t l = 0; l < depth; l += DEPTH)
                    for (int64_t r = 0, height; r < rows; r += height) {
                        height = tile_rows(rows - r);
                        tapped_tile(height, 2, least(DEPTH, depth - l), filters + (l / DEPTH * rows + r) * STRIDE, from, 0,
                                    where + l, to + r * each, each, 1, l ? 1 : 0);
                    }
            }
        return;
    }
    for (int64_t u = 0; u < span; u += COLUMNS) {
        const int vectors = span - u > WIDTH ? 2 : 1;
        const int64_t until = least(span, u + vectors * WIDTH);
        if (u % row >= columns && u % row + (until - u) <= row)
            continue;                               /* nothing that counts */
        for (int64_t l = 0; l < depth; l += DEPTH)
            for (int64_t r = 0, height; r < rows; r += height) {
                height = tile_rows(rows - r);
                tapped_tile(height, vectors, least(DEPTH, depth - l), filters + (l / DEPTH * rows + r) * STRIDE, planes + u, 0,
                            where + l, strip + r * COLUMNS, COLUMNS, 1, l ? 1 : 0);
            }
        for (int64_t v = u; v < until;) {
            const int64_t q0 = v / slice, q1 = v % slice / row, q2 = v % row;
            const int64_t end = least(until, v - q2 + row), length = least(columns, q2 + end - v) - q2;
            const DY_T *source = strip + v - u;
            DY_T *target = result + (q0 * at->grid[1] + q1) * columns + q2;
            if (q1 < at->grid[1] && length == COLUMNS)
                for (int64_t r = 0; r < rows; r++, source += COLUMNS, target += each)
                    copy(target, source, COLUMNS);
            else if (q1 < at->grid[1] && length > 0)
                for (int64_t r = 0; r < rows; r++, source += COLUMNS, target += each)
                    copy(target, source, length);
            v = end;
        }
    }
}

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

/* Places that are apart: four taps that lie side by side are read at a time, of four places; nothing else is read. */
static void gather_apart(DY_T *to, const int64_t depth, const int64_t columns, const DY_T *planes, const int64_t *where,
                         const int64_t *from)
{
    int64_t l = 0;
    for (int64_t some; l < depth; l += some, to += some * COLUMNS) {
        const DY_T *const tap = planes + where[l];
        int64_t j = 0;
        some = l + 4 <= depth && where[l + 3] == where[l] + 3 ? 4 : 1;
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

static void finish(const dy_after *after, const int64_t begin, const int64_t end)
{
    for (int64_t k = 0; after && k < after->count; k++) {
        const dy_finish *const f = after->all + k;
        for (int64_t i = after->image + begin; i < after->image + end; i++)
            f->body(f->given, i * f->unit, (i + 1) * f->unit);
    }
}

#include "dy2static_patches.h"

/* Whether places are gathered, by rules or as the windows say. */
static int gathers(const dy_windows *w, const places *at, const int64_t rows)
{
    return w->algorithm == DY_GATHERED || w->algorithm != DY_IN_PLACE && is_sparse(at, rows);
}

static int forward(const dy_windows *windows, const DY_T *x, const DY_T *filters, DY_T *y, const dy_after *after)
{
    const dy_windows flat = flattened(windows), *const w = &flat;
    const layout l = lay_out(w);
    const int64_t depth = w->in * count(w->kernel), useful = count(w->spots);
    const int64_t next_x = w->groups * w->in * count(w->image), next_y = step_of_y(w);
    const places at = places_of(l.plane, w->spots);
    const int patches = w->algorithm != DY_IN_PLACE && are_patches(w), sparse = patches || gathers(w, &at, w->out);
    const int plane = patches || !sparse && is_plane(w);
    const int64_t images = sparse ? least(w->batch, most(1, GATHERED / useful)) : 1, columns = rounded(images * useful);
    const int64_t packed = sparse ? 0 : packed_rows(depth) * w->out, strips = strip_size(sparse, w->out, columns, &at);
    const int64_t filled = plane ? 0 : l.total * images;
    int64_t *const where = memory((rounded(depth) + 2 * columns) * 8
                                  + (filled + packed + strips + panels_size(sparse)) * sizeof(DY_T));
    if (!where)
        return 1;
    int64_t *const from = where + rounded(depth), *const to = from + columns;
    DY_T *const planes = (DY_T *)(to + columns), *const rows = planes + filled, *const strip = rows + packed;
    if (patches) {
        find_patches(w, images, where, from, to, next_y);
    } else {
        find_taps(where, &l, w);
        if (sparse)
            find_places(&at, images, from, l.total, to, next_y);
    }
    for (int64_t g = 0; g < w->groups; g++, filters += w->out * depth) {
        for (int64_t i = 0; !sparse && i < w->out; i++)
            for (int64_t s = 0; s < depth; s += DEPTH)
                memcpy(rows + (s / DEPTH * w->out + i) * STRIDE, filters + i * depth + s, least(DEPTH, depth - s) * sizeof(DY_T));
        for (int64_t n = 0; n < w->batch; n += images) {
            const int64_t here = least(images, w->batch - n);
            DY_T *const result = y + n * next_y + g * w->out * useful;
            const DY_T *const image = x + n * next_x + g * w->in * count(w->image), *const read = plane ? image : planes;
            for (int64_t i = 0; i < here && !plane; i++)
                fill_planes(planes + i * l.total, &l, w, image + i * next_x);
            for (int64_t u = 0; sparse && u < here * useful; u += GATHERED)
                gathered_product(w->out, depth, filters, 1, where, read, least(GATHERED, here * useful - u), from + u, to + u,
                                 useful, result, strip, strip + strips);
            if (!sparse)
                tapped_product(w->out, depth, rows, where, read, &at, result, strip);
            if (g == w->groups - 1)
                finish(after, n, n + here);
        }
    }
    return 0;
}

enum { CHANNELS = 64 };

/* The elements of x fall into classes by their remainder by the stride: each is a product of its own with the taps that
   meet it, which step by one through y. */
typedef struct {
    int64_t found, where, rows;                     /* taps; where their offsets, and the packed filters, begin */
    int64_t begin, parts;                           /* where the places, and the results of an image, begin */
    int64_t first[3];                               /* of axis: the first element of x */
    places at;
} class;

/* Fills in a class, and the tables of its taps; lowest: the place of the planes' first element, in steps of the stride. */
static void find_class(class *c, const dy_windows *w, const int64_t *plane, const int64_t *lowest, const int64_t *reach,
                       const int64_t *r, int64_t *where, int64_t *met)
{
    int64_t shift = 0, grid[3];
    for (int axis = 0; axis < 3; axis++) {
        const int64_t from = -floor_div(r[axis] - w->pad[axis], w->stride[axis]);
        grid[axis] = most(0, floor_div(w->image[axis] - 1 + w->pad[axis] - r[axis], w->stride[axis]) - from + 1);
        c->first[axis] = from * w->stride[axis] + r[axis] - w->pad[axis];
        shift = shift * plane[axis] + from - lowest[axis] + reach[axis];
    }
    c->at = places_of(plane, grid);
    c->found = 0;
    for (int64_t k = 0; k < count(w->kernel) && count(grid); k++) {
        const int64_t at[3] = {k / (w->kernel[1] * w->kernel[2]) * w->dilate[0], k / w->kernel[2] % w->kernel[1] * w->dilate[1],
                               k % w->kernel[2] * w->dilate[2]};
        int64_t offset = 0;
        int meets = 1;
        for (int axis = 0; axis < 3; axis++) {
            meets &= at[axis] % w->stride[axis] == r[axis];
            offset = offset * plane[axis] + (at[axis] - r[axis]) / w->stride[axis];
        }
        if (meets) {
            met[c->found] = k;
            where[c->found++] = shift - offset;
        }
    }
    for (int64_t o = 1; o < w->out; o++)
        for (int64_t t = 0; t < c->found; t++)
            where[o * c->found + t] = where[t] + o * count(plane);
}

/* Filters with channels turned, packed in blocks of DEPTH; some channels at a time, so that lines are read once. */
static void pack_class(DY_T *rows, const class *c, const dy_windows *w, const DY_T *filters, const int64_t *met)
{
    const int64_t taps = count(w->kernel), whole = c->found == taps, next = w->in * taps;
    for (int64_t begin = 0, end; begin < w->in; begin = end) {
        end = least(w->in, begin + CHANNELS);
        for (int64_t o = 0; o < w->out; o++) {
            const int64_t first = o * c->found, block = first / DEPTH * w->in * STRIDE + first % DEPTH;
            const DY_T *const from = filters + o * next;
            if (taps == 1 && o % 4 == 0 && o + 4 <= w->out && (end - begin) % 4 == 0) {
                for (int64_t i = begin; i < end; i += 4)
                    transpose(from + i, next, rows + block + i * STRIDE, STRIDE);
                o += 3;
            } else if (whole && first % DEPTH + taps <= DEPTH)
                for (int64_t i = begin; i < end; i++)
                    copy(rows + block + i * STRIDE, from + i * taps, taps);
            else
                for (int64_t t = 0, s = first; t < c->found; t++, s++)
                    for (int64_t i = begin; i < end; i++)
                        rows[(s / DEPTH * w->in + i) * STRIDE + s % DEPTH] = from[i * taps + met[t]];
        }
    }
}

/* x from the results of all classes for one image: its rows, put together of those of the classes of the last axis. */
static void join_classes(DY_T *x, const class *classes, const dy_windows *w, const DY_T *parts)
{
    for (int64_t i0 = 0; i0 < w->image[0]; i0++)
        for (int64_t i1 = 0; i1 < w->image[1]; i1++) {
            const int64_t s = w->stride[2], r0 = (i0 + w->pad[0]) % w->stride[0], r1 = (i1 + w->pad[1]) % w->stride[1];
            const class *const c = classes + (r0 * w->stride[1] + r1) * s;
            DY_T *const to = x + (i0 * w->image[1] + i1) * w->image[2];
            for (int64_t r2 = 0; r2 < s; r2++) {
                if (!c[r2].found)
                    continue;
                const int64_t *const grid = c[r2].at.grid, each = count(grid);
                const int64_t q0 = (i0 - c[r2].first[0]) / w->stride[0], q1 = (i1 - c[r2].first[1]) / w->stride[1];
                const DY_T *const from = parts + c[r2].parts + (q0 * grid[1] + q1) * grid[2];
                for (int64_t i = 0; i < w->in; i++) {
                    DY_T *const row = to + i * count(w->image) + c[r2].first[2];
                    for (int64_t q = 0; q < grid[2]; q++)
                        row[s * q] = from[i * each + q];
                }
            }
        }
}

/* The planes of y, and the places of the class that has most. */
static places places_of_classes(const dy_windows *w)
{
    places at;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t reach = (w->kernel[axis] - 1) * w->dilate[axis] / w->stride[axis];
        at.grid[axis] = (w->image[axis] + w->stride[axis] - 1) / w->stride[axis];
        at.plane[axis] = floor_div(w->image[axis] - 1 + w->pad[axis], w->stride[axis]) - floor_div(w->pad[axis], w->stride[axis])
                         + 1 + reach;
    }
    return at;
}

static int transposed(const dy_windows *windows, const DY_T *y, const DY_T *filters, DY_T *x, const dy_after *after)
{
    const dy_windows flat = flattened(windows), *const w = &flat;
    const int64_t one[3] = {1, 1, 1}, taps = count(w->kernel), kinds = count(w->stride), each = count(w->image);
    const places largest = places_of_classes(w);
    const int64_t *const plane = largest.plane, *const grid = largest.grid;
    int64_t lowest[3], reach[3], first[3];
    int empty = 0;
    for (int axis = 0; axis < 3; axis++) {
        lowest[axis] = floor_div(w->pad[axis], w->stride[axis]);
        reach[axis] = (w->kernel[axis] - 1) * w->dilate[axis] / w->stride[axis];
        first[axis] = lowest[axis] - reach[axis];
        empty |= (w->kernel[axis] - 1) * w->dilate[axis] + 1 < w->stride[axis] || w->dilate[axis] > 1;
    }
    const int64_t depth = w->out * taps, packed = (depth / DEPTH + kinds) * STRIDE * w->in;
    const int64_t total = rounded(count(plane) * w->out + SLACK), next_x = w->groups * w->in * each;
    const int64_t next_y = step_of_y(w);
    const int sparse = gathers(w, &largest, w->in), is = !sparse && is_plane(w);
    const int64_t images = sparse ? least(w->batch, most(1, GATHERED / count(grid))) : 1, columns = rounded(images * each);
    const int64_t strips = strip_size(sparse, w->in, images * count(grid), &largest);
    const int64_t parts_size = kinds > 1 ? rounded(images * w->in * each) : 0;
    class *const classes = memory(kinds * sizeof(class) + 64 + (2 * rounded(depth) + 2 * columns) * 8
                                  + (total * images + packed + parts_size + strips + panels_size(sparse)) * sizeof(DY_T));
    if (!classes)
        return 1;
    int64_t *const where = (int64_t *)classes + (kinds * sizeof(class) + 63) / 64 * 8, *const met = where + rounded(depth);
    int64_t *const from = met + rounded(depth), *const to = from + columns;
    DY_T *const planes = (DY_T *)(to + columns), *const rows = planes + total * images, *const parts = rows + packed;
    DY_T *const strip = parts + parts_size;
    class end = {0};
    for (int64_t k = 0; k < kinds; k++) {
        const int64_t r[3] = {k / (w->stride[1] * w->stride[2]), k / w->stride[2] % w->stride[1], k % w->stride[2]};
        class *const c = classes + k;
        *c = end;
        find_class(c, w, plane, lowest, reach, r, where + end.where, met + end.where);
        if (sparse)
            find_places(&c->at, images, from + end.begin, total, to + end.begin, kinds > 1 ? w->in * each : next_x);
        end.where += c->found * w->out;
        end.rows += packed_rows(c->found * w->out) * w->in;
        end.begin += images * count(c->at.grid);
        end.parts += w->in * count(c->at.grid);
    }
    if (empty)                                      /* elements that no tap meets */
        memset(x, 0, w->batch * next_x * sizeof(DY_T));
    for (int64_t g = 0; g < w->groups; g++) {
        for (const class *c = classes; c < classes + kinds; c++)
            pack_class(rows + c->rows, c, w, filters + g * w->out * w->in * taps, met + c->where);
        for (int64_t n = 0; n < w->batch; n += images) {
            const int64_t here = least(images, w->batch - n);
            DY_T *const result = x + n * next_x + g * w->in * each;
            for (int64_t i = 0; i < here && !is; i++) {
                const DY_T *const image = y + (n + i) * next_y + g * w->out * count(w->spots);
                DY_T *const target = planes + i * total;
                for (int64_t o = 0; o < w->out; o++)
                    fill_plane(target + o * count(plane), plane, image + o * count(w->spots), w->spots, one, first);
                memset(target + w->out * count(plane), 0, SLACK * sizeof(DY_T));
            }
            for (const class *c = classes; c < classes + kinds; c++) {
                const int64_t useful = here * count(c->at.grid), used = c->found * w->out;
                DY_T *const target = kinds > 1 ? parts + c->parts : result;
                for (int64_t u = 0; sparse && c->found && u < useful; u += GATHERED)
                    gathered_product(w->in, used, rows + c->rows, 0, where + c->where, planes, least(GATHERED, useful - u),
                                     from + c->begin + u, to + c->begin + u, count(c->at.grid), target, strip, strip + strips);
                if (!sparse && c->found)
                    tapped_product(w->in, used, rows + c->rows, where + c->where,
                                   is ? y + n * next_y + g * w->out * each : planes, &c->at, target, strip);
            }
            for (int64_t i = 0; kinds > 1 && i < here; i++)
                join_classes(result + i * next_x, classes, w, parts + i * w->in * each);
            if (g == w->groups - 1)
                finish(after, n, n + here);
        }
    }
    return 0;
}

/* sums[j] += vectors of the products of a row of y, spread as the places of the planes, with what tap j meets */
DY_INLINE void dot_some(const int taps, const int64_t depth, const DY_T *row, const DY_T *planes, const int64_t *where, DY_T *sums)
{
    dy_vector sum[THIN];
#pragma GCC unroll 8
    for (int j = 0; j < taps; j++)
        sum[j] = load(sums + j * WIDTH);
    for (int64_t l = 0; l < depth; l += WIDTH) {
        const dy_vector left = load(row + l);
#pragma GCC unroll 8
        for (int j = 0; j < taps; j++)
            sum[j] += left * load(planes + where[j] + l);
    }
#pragma GCC unroll 8
    for (int j = 0; j < taps; j++)
        store(sums + j * WIDTH, sum[j]);
}

static void dot_taps(const int64_t depth, const int64_t taps, const DY_T *row, const DY_T *planes, const int64_t *where, DY_T *sums)
{
    int64_t j = 0;
    for (; j + THIN <= taps; j += THIN)
        dot_some(THIN, depth, row, planes, where + j, sums + j * WIDTH);
    if (j + 4 <= taps) {
        dot_some(4, depth, row, planes, where + j, sums + j * WIDTH);
        j += 4;
    }
    for (; j < taps; j++)
        dot_some(1, depth, row, planes, where + j, sums + j * WIDTH);
}

/* Rows of `block`: channels of y, spread as the places of the planes from u on, with zeros between rows of windows and behind,
   until the vector is full. */
static void spread_rows(const dy_windows *w, const layout *l, const DY_T *y, const int64_t channels, const int64_t u,
                        const int64_t depth)
{
    DY_T *const block = at_hand(own_block);
    const int64_t row = l->plane[2], slice = l->plane[1] * row, columns = w->spots[2];
    for (int64_t i = 0; i < channels; i++)
        memset(block + i * STRIDE, 0, (depth + WIDTH - 1) / WIDTH * WIDTH * sizeof(DY_T));
    for (int64_t v = u; v < u + depth;) {
        const int64_t q0 = v / slice, q1 = v % slice / row, q2 = v % row;
        const int64_t end = least(u + depth, v - q2 + row), length = least(columns - q2, end - v);
        if (q1 < w->spots[1] && length > 0)
            for (int64_t i = 0; i < channels; i++)
                copy(block + i * STRIDE + v - u, y + ((i * w->spots[0] + q0) * w->spots[1] + q1) * columns + q2, length);
        v = end;
    }
}

static int64_t turned_width(const int64_t channels) { return (channels + WIDTH - 1) / WIDTH * WIDTH; }

/* to[l][o] = y[o][u + l] for channels of several images, zero from `channels` on to `width`; `next` lies between images. */
static void turn_rows(DY_T *to, const int64_t width, const DY_T *y, const int64_t channels, const int64_t useful, const int64_t next,
                      const int64_t u, const int64_t depth)
{
    for (int64_t l = 0, length; l < depth; l += length) {
        const DY_T *const from = y + (u + l) / useful * next + (u + l) % useful;
        length = least(depth - l, useful - (u + l) % useful);
        for (int64_t begin = 0; begin < length; begin += 16) {              /* squares whose lines stay in the cache */
            const int64_t end = least(length, begin + 16);
            int64_t o = 0;
            for (; o + 4 <= channels; o += 4) {
                int64_t t = begin;
                for (; t + 4 <= end; t += 4)
                    transpose(from + o * useful + t, useful, to + (l + t) * width + o, width);
                for (; t < end; t++)
                    for (int64_t s = 0; s < 4; s++)
                        to[(l + t) * width + o + s] = from[(o + s) * useful + t];
            }
            for (; o < width; o++)
                for (int64_t t = begin; t < end; t++)
                    to[(l + t) * width + o] = o < channels ? from[o * useful + t] : 0;
        }
    }
}

/* sums[j][o] += for all channels of y, whose places from u on are turned into panels: the taps are the rows of this product,
   because copying what they meet is cheaper than turning it. */
static void add_turned(const int64_t depth, const int64_t wide, const int64_t taps, const DY_T *planes, const int64_t *where,
                       const int64_t *from, run *runs, const DY_T *panels, DY_T *sums, const DY_T beta)
{
    const int64_t found = find_runs(depth, from, DEPTH, runs);
    DY_T *const rows = at_hand(own_block);
    for (int64_t j = 0, some; j < taps; j += some) {
        some = tile_rows(taps - j);
        for (int64_t r = 0; r < some; r++) {
            const DY_T *const tap = planes + where[j + r];
            for (int64_t t = 0; t < found; t++) {
                DY_T *const to = rows + r * STRIDE + runs[t].at;
                for (int64_t s = 0; s < runs[t].length; s += WIDTH)     /* what is too much is overwritten, or not read */
                    store(to + s, load(tap + runs[t].from + s));
            }
        }
        for (int64_t o = 0, width; o < wide; o += width) {
            width = least(COLUMNS, wide - o);
            plain_tile(some, width / WIDTH, depth, rows, panels + o * DEPTH, width, 0, sums + j * wide + o, wide, 1, beta);
        }
    }
}

static int grad_weight_turned(const dy_windows *w, const DY_T *x, const DY_T *y, DY_T *filters)
{
    const layout l = lay_out(w);
    const int64_t taps = w->in * count(w->kernel), useful = count(w->spots), wide = turned_width(w->out);
    const int64_t next_x = w->groups * w->in * count(w->image), next_y = step_of_y(w);
    const places at = places_of(l.plane, w->spots);
    const int plane = is_plane(w);
    const int64_t images = images_together(w, DEPTH), columns = rounded(images * useful);
    int64_t *const where = memory((rounded(taps) + 2 * columns) * 8 + DEPTH * sizeof(run)
                                  + (l.total * images + wide * (DEPTH + taps)) * sizeof(DY_T));
    if (!where)
        return 1;
    int64_t *const from = where + rounded(taps), *const to = from + columns;
    run *const runs = (run *)(to + columns);
    DY_T *const planes = (DY_T *)(runs + DEPTH), *const panels = planes + l.total * images, *const sums = panels + wide * DEPTH;
    find_taps(where, &l, w);
    find_places(&at, images, from, plane ? next_x : l.total, to, next_y);
    for (int64_t g = 0; g < w->groups; g++, filters += w->out * taps) {
        for (int64_t n = 0; n < w->batch; n += images) {
            const int64_t here = least(images, w->batch - n);
            const DY_T *const rows = y + n * next_y + g * w->out * useful;
            for (int64_t i = 0; i < here && !plane; i++)
                fill_planes(planes + i * l.total, &l, w, x + (n + i) * next_x + g * w->in * count(w->image));
            for (int64_t u = 0; u < here * useful; u += DEPTH) {
                const int64_t depth = least(DEPTH, here * useful - u);
                for (int64_t o = 0; o < wide; o += COLUMNS)
                    turn_rows(panels + o * DEPTH, least(COLUMNS, wide - o), rows + o * useful, least(COLUMNS, w->out - o), useful,
                              next_y, u, depth);
                add_turned(depth, wide, taps, plane ? x + n * next_x + g * w->in * useful : planes, where, from + u, runs, panels, sums, n || u);
            }
        }
        turn_rows(filters, taps, sums, taps, wide, 0, 0, w->out);
    }
    return 0;
}

static int grad_weight_few(const dy_windows *w, const DY_T *x, const DY_T *y, DY_T *filters)
{
    const DY_T *const block = at_hand(own_block);
    const layout l = lay_out(w);
    const int64_t taps = w->in * count(w->kernel), useful = count(w->spots);
    const int64_t next_x = w->groups * w->in * count(w->image), next_y = step_of_y(w);
    const places at = places_of(l.plane, w->spots);
    const int64_t span = span_of(&at), summed = w->out * taps * WIDTH;
    int64_t *const where = memory(rounded(taps) * 8 + (l.total + summed) * sizeof(DY_T));
    if (!where)
        return 1;
    DY_T *const planes = (DY_T *)(where + rounded(taps)), *const sums = planes + l.total;
    find_taps(where, &l, w);
    for (int64_t g = 0; g < w->groups; g++) {
        memset(sums, 0, summed * sizeof(DY_T));
        for (int64_t n = 0; n < w->batch; n++) {
            fill_planes(planes, &l, w, x + n * next_x + g * w->in * count(w->image));
            for (int64_t u = 0; u < span; u += DEPTH) {
                const int64_t depth = least(DEPTH, span - u);
                spread_rows(w, &l, y + n * next_y + g * w->out * useful, w->out, u, depth);
                for (int64_t o = 0; o < w->out; o++)
                    dot_taps(depth, taps, block + o * STRIDE, planes + u, where, sums + o * taps * WIDTH);
            }
        }
        for (int64_t j = 0; j < w->out * taps; j++, filters++) {
            DY_T total = 0;
            for (int64_t t = 0; t < WIDTH; t++)
                total += sums[j * WIDTH + t];
            *filters = total;
        }
    }
    return 0;
}

enum { FEW_FILTERS = 8 };                   /* of a group: turning the places of their gradients takes longer than multiplying */

/* How the derivative by the filters is computed: as the windows say, if that is for them, or by rules. */
static int64_t way_of_grad_weight(const dy_windows *w)
{
    const int64_t depth = w->batch * count(w->spots);
    if (w->algorithm == DY_TURNED || (w->algorithm == DY_PANELS && depth <= DEPTH)
        || (w->algorithm == DY_FEW_FILTERS && w->out <= HEIGHT))
        return w->algorithm;
    return w->out <= FEW_FILTERS ? DY_FEW_FILTERS : depth >= 2 * COLUMNS ? DY_TURNED : DY_PANELS;
}

static int grad_weight(const dy_windows *windows, const DY_T *x, const DY_T *y, DY_T *filters)
{
    DY_T *const block = at_hand(own_block), *const panel = at_hand(own_panel);
    const dy_windows flat = flattened(windows), *const w = &flat;
    const layout l = lay_out(w);
    const int64_t taps = w->in * count(w->kernel), useful = count(w->spots);
    const int64_t next_x = w->groups * w->in * count(w->image), next_y = step_of_y(w);
    const int64_t way = way_of_grad_weight(w);
    if (way == DY_FEW_FILTERS) {
        if (grad_weight_few(w, x, y, filters))
            return 1;
        if (are_finite(filters, w->groups * w->out * taps))
            return 0;                       /* if not: places between rows may be at fault, which count as zero times what is there */
    }
    if (way == DY_TURNED || w->batch * useful >= 2 * COLUMNS && way != DY_PANELS)
        return grad_weight_turned(w, x, y, filters);
    /* So few places that the filters are most of the work: the places are the rows of panels, and the taps the columns. */
    const places at = places_of(l.plane, w->spots);
    const int64_t depth = w->batch * useful;
    int64_t *const where = memory((rounded(taps) + 2 * rounded(depth)) * 8 + l.total * w->batch * sizeof(DY_T));
    if (!where)
        return 1;
    int64_t *const from = where + rounded(taps), *const to = from + rounded(depth);
    DY_T *const planes = (DY_T *)(to + rounded(depth));
    find_taps(where, &l, w);
    find_places(&at, w->batch, from, l.total, to, next_y);
    for (int64_t g = 0; g < w->groups; g++, filters += w->out * taps) {
        for (int64_t n = 0; n < w->batch; n++)
            fill_planes(planes + n * l.total, &l, w, x + n * next_x + g * w->in * count(w->image));
        for (int64_t o = 0; o < w->out; o += HEIGHT) {
            const int64_t height = least(HEIGHT, w->out - o);
            for (int64_t r = 0; r < height; r++)
                for (int64_t n = 0; n < w->batch; n++)
                    copy(block + r * STRIDE + n * useful, y + n * next_y + (g * w->out + o + r) * useful, useful);
            for (int64_t j = 0; j < taps; j += COLUMNS) {
                const int64_t some = least(COLUMNS, taps - j);
                gather_panel(panel, depth, some, planes, from, where + j);
                for (int64_t r = 0, rows; r < height; r += rows) {
                    DY_T edge[DY_ROWS * COLUMNS] __attribute__((aligned(64)));
                    DY_T *const target = filters + (o + r) * taps + j;
                    rows = tile_rows(height - r);
                    plain_tile(rows, 2, depth, block + r * STRIDE, panel, COLUMNS, 0, some < COLUMNS ? edge : target,
                               some < COLUMNS ? COLUMNS : taps, 1, 0);
                    for (int64_t i = 0; some < COLUMNS && i < rows; i++)
                        copy(target + i * taps, edge + i * COLUMNS, some);
                }
            }
        }
    }
    return 0;
}
