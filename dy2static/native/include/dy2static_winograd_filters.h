/* The derivatives of convolutions of plain arrays by their filters, by Winograd's algorithm: it is the one of dy2static_winograd.h,
   transposed, F(3 x 3, 2 x 2).  Squares of four by four neighbours of x are transformed as there, and those of two by two of y.
   For each of 16 forms, the products of the channels of both are summed over all squares, and the sums are transformed to nine
   taps.  What is not finite spreads among the taps of a filter: then the result does not count. */
#ifndef DY2STATIC_WINOGRAD_FILTERS_H
#define DY2STATIC_WINOGRAD_FILTERS_H

#include "dy2static_winograd_windows.h"

enum {
    FILTER_BLOCKS = 64 / BLOCK,                         /* of x, whose sums with `TOGETHER` panels of y stay near */
    FILTER_PLACES = DY_BYTES == 64 ? 8 : PLACES,        /* channels of x of a tile: a block is two or three of them, or more */
    MANY_REGIONS = 8,
    NEAR_SQUARES = 1 << 17,                             /* transformed elements that stay in the second cache with sums */
    AT_ONCE = 1 << 21,                                  /* those up to which all squares are summed at once */
    SHARE_SQUARES = 512,                                /* of a share that has sums of its own, at least */
    MOST_SHARES = 8, SHARED_REGIONS = 16,               /* with more sums, a share would take too much memory */
    ADDED_AT_ONCE = 1 << 14                             /* elements of sums that a share adds */
};

/* Squares of some images.  in: channels of one slice.  x, y: in blocks of channels; v, u: the transformed squares from `begin` on, u in panels; m: the sums of
   all regions, which are `FILTER_BLOCKS` of x by `TOGETHER` panels of y; null if each region has all its squares at once. */
typedef struct {
    squares of_x;
    int64_t in;
    const DY_T *y;
    DY_T *v, *u, *m, *filters;
    int64_t begin, count, across;
    int first, last;
} filter_squares;

static int64_t panels_apart(const squares *s) { return s->panels * PANEL * s->each + LINE; }
static int64_t sums_apart(void) { return FILTER_BLOCKS * BLOCK * TOGETHER * PANEL + LINE; }

DY_INLINE void transform_pair(const dy_vector a, const dy_vector b, dy_vector to[4])
{
    to[0] = a;
    to[1] = a + b;
    to[2] = a - b;
    to[3] = b;
}

/* Two by two places of a block of y, `row` and `column` from each other, to 16 forms that are `next` from each other; below, beside:
   whether there are the second row and column. */
DY_INLINE void transform_places(const DY_T *y, const int64_t row, const int64_t column, const int below, const int beside, DY_T *to,
                                const int64_t next)
{
    const dy_vector zero = {0}, b = beside ? load(y + column) : zero, c = below ? load(y + row) : zero;
    dy_vector half[2][4], whole[4];
    transform_pair(load(y), c, half[0]);
    transform_pair(b, below && beside ? load(y + row + column) : zero, half[1]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        transform_pair(half[0][i], half[1][i], whole);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            store(to + (4 * i + j) * next, whole[j]);
    }
}

DY_INLINE void transform_sums(const dy_vector m[4], dy_vector to[3])
{
    const dy_vector both = (m[1] + m[2]) * (DY_T)0.5;
    to[0] = m[0] + both;
    to[1] = (m[1] - m[2]) * (DY_T)0.5;
    to[2] = both - m[3];
}

/* From 16 forms, `apart`, to nine taps, `next`; what is not finite leaves a NaN in `trace`. */
DY_INLINE void transform_to_taps(const DY_T *m, const int64_t apart, DY_T *to, const int64_t next, dy_vector *trace)
{
    dy_vector half[3][4], line[4], taps[3];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            line[i] = load(m + (4 * i + j) * apart);
        transform_sums(line, taps);
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++)
            half[i][j] = taps[i];
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        transform_sums(half[i], taps);
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
            *trace += taps[j] * 0;
            store(to + (3 * i + j) * next, taps[j]);
        }
    }
}

/* The squares of y from `begin` to `end`. */
static void transform_results(const filter_squares *f, const int64_t begin, const int64_t end)
{
    const squares *const s = &f->of_x;
    const int64_t *const spots = s->w->spots, row = spots[1] * BLOCK, plane = spots[0] * row, blocks = in_whole(s->w->out) / BLOCK;
    const int64_t depth = s->deep->spots, down = s->w->dilate[0], right = s->w->dilate[1];
    const square_place first = place_of_square(s, begin);
    for (int64_t c = 0; c < blocks; c++) {
        square_place p = first;
        for (int64_t t = begin; t < end; t++, p = next_square(s, p)) {
            const int64_t i = first_of_pair(s, 0, p.i), j = first_of_pair(s, 1, p.j), block = p.image / depth * blocks + c;
            const DY_T *const from = f->y + (block * depth + p.image % depth) * plane + i * row + j * BLOCK;
            DY_T *const to = f->u + c * BLOCK / PANEL * PANEL * s->each + (t - f->begin) * PANEL + c * BLOCK % PANEL;
#pragma GCC unroll 4
            for (int k = 0; k < BLOCK; k += WIDTH)
                transform_places(from + k, down * row, right * BLOCK, i + down < spots[0], j + right < spots[1], to + k, panels_apart(s));
        }
    }
}

static void transform_both(const void *given, int64_t begin, int64_t end)
{
    const filter_squares *const f = given;
    transform_squares(&f->of_x, f->begin + begin, f->begin + end, f->v + begin * BLOCK);
    transform_results(f, f->begin + begin, f->begin + end);
}

/* sums[channel of x][channel of y] of the products of `count` squares, which are added up by themselves first: errors grow less. */
DY_INLINE void sum_squares(const int places, const int vectors, const int64_t count, const DY_T *x, const DY_T *y, DY_T *sums,
                           const int first)
{
    dy_vector sum[MOST_PLACES][VECTORS];
#pragma GCC unroll 14
    for (int p = 0; p < places; p++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[p][v] = (dy_vector){0};
    for (int64_t t = 0; t < count; t++, x += BLOCK, y += PANEL)
        add_tap(places, vectors, 1, x, 0, 0, y, sum);
#pragma GCC unroll 14
    for (int p = 0; p < places; p++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            DY_T *const to = sums + p * PANEL + v * WIDTH;
            store(to, first ? sum[p][v] : load(to) + sum[p][v]);
        }
}

/* The same for a block of x and `channels` of a panel of y. */
static void sum_block(const int64_t channels, const int64_t count, const DY_T *x, const DY_T *y, DY_T *sums, const int first)
{
    enum { SOME = BLOCK / ((BLOCK + FILTER_PLACES - 1) / FILTER_PLACES), LONGER = BLOCK % SOME };
    for (int64_t c = 0; c < BLOCK; c += SOME + (c < LONGER * (SOME + 1)))
        if (VECTORS > IN_BLOCK && channels == BLOCK)
            sum_squares(SOME, IN_BLOCK, count, x + c, y, sums + c * PANEL, first);
        else if (c < LONGER * (SOME + 1))
            sum_squares(SOME + 1, VECTORS, count, x + c, y, sums + c * PANEL, first);
        else
            sum_squares(SOME, VECTORS, count, x + c, y, sums + c * PANEL, first);
}

/* Filters of two blocks of channels, from their sums; in: among the channels of all taps along the third axis. */
static void write_filters(const filter_squares *f, const int64_t out, const int64_t in, const DY_T *m, dy_vector *trace)
{
    const int64_t whole = in_whole(f->in), slices = f->of_x.deep->taps, first = in % whole, next = 9 * slices;
    DY_T taps[9 * BLOCK * BLOCK] __attribute__((aligned(64)));
    for (int64_t c = 0; c < BLOCK; c++)
        for (int k = 0; k < BLOCK; k += WIDTH)
            transform_to_taps(m + c * PANEL + k, sums_apart(), taps + c * 9 * BLOCK + k, BLOCK, trace);
    DY_T *const to = f->filters + (out * f->in + first) * next + in / whole * 9;
    const int64_t outs = least(BLOCK, f->of_x.w->out - out), ins = least(BLOCK, f->in - first);
    if (slices == 1 && outs == BLOCK && ins == BLOCK) {
        for (int64_t k = 0; k < 9 * BLOCK; k += BLOCK)
            turn_square(taps + k * BLOCK, BLOCK, to + k, f->in * 9);
        return;
    }
    DY_T turned[9 * BLOCK * BLOCK] __attribute__((aligned(64)));
    for (int64_t k = 0; k < 9 * BLOCK; k += BLOCK)
        turn_square(taps + k * BLOCK, BLOCK, turned + k, 9 * BLOCK);
    for (int64_t o = 0; o < outs; o++)
        for (int64_t l = 0; l < ins; l++)
            memcpy(to + (o * f->in + l) * next, turned + (o * BLOCK + l) * 9, 9 * sizeof(DY_T));
}

static void some_regions(const void *given, int64_t begin, int64_t end)
{
    const filter_squares *const f = given;
    const squares *const s = &f->of_x;
    const int64_t blocks = in_whole(s->w->in) / BLOCK, apart = sums_apart();
    DY_T *const own = f->m ? f->m : room(room_key, FORMS * apart * sizeof(DY_T));
    dy_vector trace = {0};
    if (!own) {
        __atomic_store_n(s->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t r = begin; r < end; r++) {
        const int64_t panel = r / f->across * TOGETHER, panels = panels_together(panel, s->panels);
        const int64_t block = r % f->across * FILTER_BLOCKS, some = least(FILTER_BLOCKS, blocks - block);
        DY_T *const m = f->m ? f->m + r * FORMS * apart : own;
        for (int64_t form = 0; form < FORMS; form++)
            for (int64_t p = 0; p < panels; p++)
                for (int64_t k = 0; k < some; k++)
                    sum_block(place_of_panel(&s->groups, panel + p).channels, f->count,
                              f->v + form * squares_apart(s->w, s->each) + (block + k) * BLOCK * s->each,
                              f->u + form * panels_apart(s) + (panel + p) * PANEL * s->each,
                              m + form * apart + (p * FILTER_BLOCKS + k) * BLOCK * PANEL, f->first);
        for (int64_t p = 0; f->last && p < panels; p++)
            for (int64_t o = 0; o < place_of_panel(&s->groups, panel + p).channels; o += BLOCK)
                for (int64_t k = 0; k < some; k++)
                    write_filters(f, (panel + p) * PANEL + o, (block + k) * BLOCK, m + (p * FILTER_BLOCKS + k) * BLOCK * PANEL + o,
                                  &trace);
    }
    note_failure(s, trace);
}

/* How many squares of `count` are transformed at a time: if sums do not stay in the second cache, all of them, or so many that it
   pays to read the sums again. */
static int64_t squares_at_once(const dy_blocks *w, const int64_t count, const int64_t regions)
{
    const int64_t each = FORMS * (in_whole(w->in) + in_whole(w->out));
    if (regions < MANY_REGIONS)
        return least(count, most(MANY_SQUARES, NEAR_SQUARES / each));
    return count * each <= AT_ONCE ? count : 2 * MANY_SQUARES;
}

/* The sums of the images of `windows`.  Nonzero if there is not enough memory, or the result does not count. */
static int filters_of_images(const dy_windows *windows, const DY_T *x, const DY_T *y, DY_T *filters)
{
    const dy_blocks w = blocks_of_windows(windows, 0);
    const channel_groups groups = groups_of(&w);
    const slices deep = slices_of_windows(windows, 0);
    const int64_t read = places_of_image(&w, &deep), made = places_of_result(&w, &deep);
    const int64_t in = in_whole(w.in), out = in_whole(w.out), of_slice = in_whole(windows->in);
    const int64_t down = pairs_of(&w, 0), right = pairs_of(&w, 1), of_image = deep.spots * down * right;
    const int64_t all = windows->batch * of_image;
    const int64_t panels = panels_of(&w, &groups), across = (in / BLOCK + FILTER_BLOCKS - 1) / FILTER_BLOCKS;
    const int64_t regions = (panels + TOGETHER - 1) / TOGETHER * across;
    const int64_t each = squares_at_once(&w, all, regions), together = least(windows->batch, most(1, each / of_image));
    int failed = 0;
    filter_squares f = {
        .of_x = {.w = &w, .deep = &deep, .groups = groups, .side = 4, .pairs = {down, right}, .count = all, .each = each, .panels = panels,
                 .failed = &failed},
        .in = windows->in, .filters = filters, .across = across, .first = 1};
    const int64_t size = FORMS * squares_apart(&w, each), of_y = FORMS * panels_apart(&f.of_x);
    const int64_t images = together * (of_slice * read + out * made);
    DY_T *const own = room(images_key, (images + down + right) * sizeof(DY_T));
    f.v = room(share_key, (size + of_y + (each < all ? regions * FORMS * sums_apart() : 0)) * sizeof(DY_T));
    if (!own || !f.v)
        return 1;
    f.u = f.v + size;
    f.m = each < all ? f.u + of_y : 0;
    f.of_x.x = own;
    note_pairs(&f.of_x, (int32_t *)(own + images));
    f.y = own + together * of_slice * read;
    for (int64_t n = 0; n < windows->batch; n += together) {
        const int64_t here = least(together, windows->batch - n), count = here * of_image, cuts = (count + each - 1) / each;
        blocks_of(here, f.in, read, x + n * f.in * read, own);
        blocks_of(here, w.out, made, y + n * w.out * made, (DY_T *)f.y);
        for (int64_t k = 0; k < cuts; k++) {
            f.begin = count * k / cuts;
            f.count = count * (k + 1) / cuts - f.begin;
            f.last = n + here == windows->batch && k + 1 == cuts;
            dy_share(transform_both, &f, f.count, BLOCK);
            dy_share(some_regions, &f, regions, 1);
            f.first = 0;
        }
    }
    return failed;
}

/* Shares of images, each with its sums: the first one writes to the result, the others to `sums`. */
typedef struct {
    const dy_windows *w;
    const DY_T *x, *y;
    DY_T *filters, *sums;
    int64_t each;
    int *failed;
} filter_shares;

static int64_t elements_of_filters(const dy_windows *w) { return w->in * w->out * w->kernel[0] * 9; }

static void some_sums(const void *given, int64_t begin, int64_t end)
{
    const filter_shares *const s = given;
    dy_windows part = *s->w;
    part.batch = end - begin;
    const int64_t size = elements_of_filters(&part), *const image = part.image, *const spots = part.spots;
    if (filters_of_images(&part, s->x + begin * part.in * image[0] * image[1] * image[2],
                          s->y + begin * part.out * spots[0] * spots[1] * spots[2],
                          begin ? s->sums + (begin / s->each - 1) * size : s->filters))
        __atomic_store_n(s->failed, 1, __ATOMIC_RELAXED);
}

/* Adds the sums of all shares but the first one to the result. */
static void add_sums(const void *given, int64_t begin, int64_t end)
{
    const filter_shares *const s = given;
    const int64_t others = (s->w->batch + s->each - 1) / s->each - 1, size = elements_of_filters(s->w);
    for (int64_t k = 0; k < others; k++)
        for (int64_t i = begin; i < end; i++)
            s->filters[i] += s->sums[k * size + i];
}

/* The filters from x and y; `direct` computes the same, and what this does not take. */
static int winograd_filters(const dy_windows *w, dy_filters_f32 *direct, const DY_T *x, const DY_T *y, DY_T *filters)
{
    const int64_t places = w->batch * w->spots[0] * ((w->spots[1] + 1) / 2) * ((w->spots[2] + 1) / 2), size = elements_of_filters(w);
    const int64_t regions = ((channels_of_taps(w->in, w->kernel[0]) + 63) / 64) * ((w->out + 63) / 64);
    if (!places)
        return direct(w, x, y, filters);
    const int64_t shares = regions > SHARED_REGIONS ? 1 : most(1, least(least(MOST_SHARES, w->batch), places / SHARE_SQUARES));
    const int64_t each = (w->batch + shares - 1) / shares, others = (w->batch + each - 1) / each - 1;
    DY_T *const sums = others ? room(filters_key, others * size * sizeof(DY_T)) : 0;
    int failed = others && !sums;
    const filter_shares all = {w, x, y, filters, sums, each, &failed};
    if (!failed)
        dy_share(some_sums, &all, w->batch, each);
    if (failed)
        return direct(w, x, y, filters);
    if (others)
        dy_share(add_sums, &all, size, ADDED_AT_ONCE);
    return 0;
}

#endif
