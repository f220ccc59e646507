/* Convolutions with filters of three by three in blocks of channels, by the minimal algorithm F(2 x 2, 3 x 3) of Winograd (Lavin and
   Gray, Fast algorithms for convolutional neural networks, 2016): 16 multiplications for four sums of nine products.  With a stride
   of two, even and odd numbers meet even and odd taps, which takes F(2, 2) and F(2, 1), and 25 multiplications.

   Four by four neighbours of x (five by five with that stride) and the filters are transformed, which takes sums of them only (and
   halves, which are exact); products of matrices follow, with the tiles of dy2static_blocked.h; their results are transformed back,
   which gives two by two places.  Dilated filters see every second (third, ...) row and column: those are images of their own, whose
   places are so far from each other.  What is not finite spreads to its neighbours, and sums may overflow that a plain convolution does
   not make: where a result is not finite, or there is not enough memory, all of it does not count. */
#ifndef DY2STATIC_WINOGRAD_H
#define DY2STATIC_WINOGRAD_H

#include "dy2static_winograd_panels.h"

enum {
    KEPT_STRIDED = 16,                                  /* the form of such filters: no algorithm has this number */
    FEW_SQUARES = 16,                                   /* for which it pays to transform the filters, at least */
    FEW_STRIDED = 20,                                   /* the same with a stride of two, which saves less */
    REPLACED = DY_BYTES == 64 ? 32 : 29,                /* and so many multiplications of the direct kernel for each square of 25 */
    REPLACED_DILATED = 24,                              /* and of the direct kernel for each square of 16, where rows are short */
    FEW_CHANNELS = 16,
    SQUARES = 4 * PLACES,                               /* of a share, at most, if filters stay in the second cache */
    MANY_SQUARES = 64,                                  /* the same if they do not: they are read again for each share */
    MANY_CHANNELS = 256,                                /* of x from which they do not stay there */
    FAR_FILTERS = 1 << 17                               /* elements, transformed, from which they are fetched early */
};

/* Slices along a third axis: one of the result reads `taps` of x, the first one `pad` slices before it.  The windows of its slices are
   those of images with `taps` times as many channels, in whole blocks: the channels of the first tap, then those of the next. */
typedef struct {
    int64_t taps, image, spots, pad;                    /* image, spots: slices of an image of x, and of the result */
} slices;

static const slices one_slice = {1, 1, 1, 0};

/* side: of the squares of x that two by two places read; pairs: how many there are down and right in an image, which is a slice if there
   are several; first: the first row and column of the places of each; null if filters are not dilated; count: in all images; each: how many a share has.  turned: the transformed filters, `TOGETHER` panels behind each other, of these [form][panel]; null if every share
   of panels transforms its own.  common: the transformed squares; null if every share of squares transforms its own. */
typedef struct {
    const dy_blocks *w;
    const slices *deep;
    channel_groups groups;
    const DY_T *x, *filters, *scale, *shift, *residual;
    DY_T *y, *common;
    const DY_T *turned;
    const int32_t *where, *first[2];
    int64_t side, pairs[2], count, each, panels;
    expected coming;
    int *failed;
} squares;

/* Plain images have a stride of one. */
static int64_t side_of(const squares *s) { return ONLY_SUMS ? 4 : s->side; }

/* Whether it can be computed in this way. */
static int may_winograd(const dy_blocks *w)
{
    for (int axis = 0; axis < 2; axis++)
        if (w->kernel[axis] != 3 || w->stride[axis] > 2 || w->stride[axis] != w->stride[0] || (w->stride[axis] > 1 && w->dilate[axis] > 1))
            return 0;
    return !w->plain;
}

/* Two places that see the same rows (or columns) of x are `dilate` apart.  How many such pairs there are along an axis, the last ones of
   which may be single places. */
static int64_t pairs_of(const dy_blocks *w, const int axis)
{
    const int64_t d = w->dilate[axis];
    return w->spots[axis] / (2 * d) * d + least(d, w->spots[axis] % (2 * d));
}

static int is_winograd(const dy_blocks *w)
{
    if (!may_winograd(w) || w->algorithm == DY_BLOCKS_DIRECT || w->algorithm == DY_BLOCKS_WINOGRAD)
        return w->algorithm == DY_BLOCKS_WINOGRAD && may_winograd(w);
    const int64_t count = w->batch * pairs_of(w, 0) * pairs_of(w, 1), replaced = 9 * w->batch * w->spots[0] * w->spots[1];
    const channel_groups g = groups_of(w);
    const int dilated = w->dilate[0] > 1 || w->dilate[1] > 1;
    const int strided = count >= FEW_STRIDED && replaced >= REPLACED * count;
    return (w->stride[0] == 1 ? count >= FEW_SQUARES && (!dilated || replaced >= REPLACED_DILATED * count) : strided)
        && g.in >= FEW_CHANNELS && g.out >= FEW_CHANNELS;
}

/* The algorithms for these windows here, the one that rules choose first; returns how many. */
int64_t algorithms(const dy_blocks *windows, int64_t *found)
{
    dy_blocks w = *windows;
    w.algorithm = DY_BLOCKS_BY_RULES;
    int64_t count = 0;
    found[count++] = is_winograd(&w) ? DY_BLOCKS_WINOGRAD : DY_BLOCKS_DIRECT;
    if (may_winograd(&w))
        found[count++] = is_winograd(&w) ? DY_BLOCKS_DIRECT : DY_BLOCKS_WINOGRAD;
    return count;
}

/* Elements of one form of a panel of filters, of one spot of the squares of a share, and of one of their results. */
static int64_t filters_apart(const channel_groups *g) { return g->in * PANEL + LINE; }
static int64_t squares_apart(const dy_blocks *w, const int64_t each) { return in_whole(w->in) * each + LINE; }
static int64_t results_apart(const int64_t each) { return TOGETHER * PANEL * each + LINE; }

/* A square of a block of an image, from `top` and `left` on: zeros beside it. */
static void copy_neighbours(const dy_blocks *w, const DY_T *image, const int64_t side, const int64_t top, const int64_t left, DY_T *to)
{
    const int64_t down = w->dilate[0], right = w->dilate[1];
    for (int64_t i = top; i < top + side * down; i += down)
        for (int64_t j = left; j < left + side * right; j += right, to += BLOCK) {
            const int there = i >= 0 && i < w->image[0] && j >= 0 && j < w->image[1];
            for (int k = 0; k < BLOCK; k += WIDTH)
                store(to + k, there ? load(image + (i * w->image[1] + j) * BLOCK + k) : (dy_vector){0});
        }
}

/* Where a square is: the number of its image, or slice, and its row and column among the squares of that. */
typedef struct {
    int64_t image, i, j;
} square_place;

static square_place place_of_square(const squares *s, const int64_t t)
{
    return (square_place){t / (s->pairs[0] * s->pairs[1]), t / s->pairs[1] % s->pairs[0], t % s->pairs[1]};
}

static int64_t first_of_pair(const squares *s, const int axis, const int64_t k) { return s->first[axis] ? s->first[axis][k] : 2 * k; }

/* The table of first places; memory for as many numbers as there are pairs along both axes. */
static void note_pairs(squares *s, int32_t *memory)
{
    for (int axis = 0; axis < 2; memory += s->pairs[axis++])
        if (s->w->dilate[axis] > 1) {
            const int64_t d = s->w->dilate[axis];
            for (int64_t k = 0; k < s->pairs[axis]; k++)
                memory[k] = (int32_t)(k + k / d * d);
            s->first[axis] = memory;
        }
}

static square_place next_square(const squares *s, square_place p)
{
    if (++p.j < s->pairs[1])
        return p;
    p.j = 0;
    if (++p.i < s->pairs[0])
        return p;
    return (square_place){p.image + 1, 0, 0};
}

/* A block of the channels of x, `c` of all its taps, for an image, or slice, of the result; null: zeros, beside all slices. */
static const DY_T *block_of_image(const squares *s, const int64_t image, const int64_t c, const int64_t blocks, const int64_t plane)
{
    const slices *const d = s->deep;
    const int64_t slice = image % d->spots - d->pad + c / blocks;
    if (slice < 0 || slice >= d->image)
        return 0;
    return s->x + ((image / d->spots * blocks + c % blocks) * d->image + slice) * plane;
}

/* Transforms the squares from `begin` to `end`, of all images. */
static void transform_squares(const squares *s, const int64_t begin, const int64_t end, DY_T *to)
{
    const dy_blocks *const w = s->w;
    const int64_t all = in_whole(w->in) / BLOCK, blocks = all / s->deep->taps, apart = squares_apart(w, s->each);
    const int64_t plane = w->image[0] * w->image[1] * BLOCK, following = plane * s->deep->image;
    const int64_t side = side_of(s), stride = w->stride[0], step = 2 * stride, down = w->dilate[0], right = w->dilate[1];
    const square_place first = place_of_square(s, begin);
    DY_T own[MOST_SIDE * MOST_SIDE * BLOCK];
    for (int64_t c = 0; c < all; c++) {
        square_place p = first;
        const DY_T *image = block_of_image(s, p.image, c, blocks, plane);
        for (int64_t t = begin; t < end; t++) {
            const int64_t top = first_of_pair(s, 0, p.i) * stride - w->pad[0], left = first_of_pair(s, 1, p.j) * stride - w->pad[1];
            const int inside = top >= 0 && left >= 0 && top + (side - 1) * down < w->image[0] && left + (side - 1) * right < w->image[1];
            if (!image)
                memset(own, 0, sizeof own);
            else if (!inside)
                copy_neighbours(w, image, side, top, left, own);
            const int whole = image && inside;
            const DY_T *const from = whole ? image + (top * w->image[1] + left) * BLOCK : own;
            const int64_t row = (whole ? down * w->image[1] : side) * BLOCK, column = (whole ? right : 1) * BLOCK;
            DY_T *const here = to + (c * s->each + t - begin) * BLOCK;
            for (int64_t k = 0; whole && (c + 1) % blocks && k < side * step; k++)   /* what is new to the same square of the next block */
                __builtin_prefetch(from + following + k / step * row + (k % step + side - step) * column);
#pragma GCC unroll 4
            for (int k = 0; k < BLOCK; k += WIDTH)
                if (side == 5)
                    transform_square(5, from + k, row, BLOCK, here + k, apart);
                else if (column == BLOCK)
                    transform_square(4, from + k, row, BLOCK, here + k, apart);
                else
                    transform_square(4, from + k, row, column, here + k, apart);
            const int64_t before = p.image;
            p = next_square(s, p);
            if (p.image != before && t + 1 < end)
                image = block_of_image(s, p.image, c, blocks, plane);
        }
    }
}

/* Products of squares, in these tiles, with one form of a panel of filters. */
static void multiply_form(const squares *s, block_tiles *const *of, const even_tiles *tiles, const DY_T *x, const DY_T *u, DY_T *to, around *a,
                          expected *following, expected *coming, const int64_t lines)
{
    const int64_t in = s->groups.in;
    for (int64_t t = 0, p = 0, q; t < tiles->count; t++, p = q) {
        q = p + places_of_tile(tiles, t);
        fetch_expected(a, following->count > 0 ? following : coming, in, lines);
        a->soon = x + (t + 1 < tiles->count ? q * BLOCK : 0);
        of[q - p](BLOCK, in, x + p * BLOCK, s->where, u, to + p * BLOCK, a);
    }
}

/* Products of `size` squares with all forms of `together` panels from `first` on. */
static void multiply_squares(const squares *s, const int64_t first, const int64_t together, const int64_t size, const DY_T *v,
                             const DY_T *u, DY_T *m, expected *coming)
{
    const int64_t in = s->groups.in, apart = filters_apart(&s->groups), side = side_of(s);
    const even_tiles tiles = cut_evenly(size, PLACES);
    const int64_t far = FORMS * in * s->w->out > FAR_FILTERS ? in * PANEL : 0;      /* filters to be fetched for the next panel */
    const int64_t lines = fetched_lines(far + coming->count / (FORMS * together), tiles.count * in);
    around a = {0, 0, s->each * BLOCK, 0, 0, 1, 0, 0, 0, u, v, 0, 0, {0}};
    for (int64_t form = 0; form < FORMS; form++)
        for (int64_t panel = 0; panel < together; panel++, u += apart) {
            const panel_place here = place_of_panel(&s->groups, first + panel);
            expected following = {u + apart, far};
            for (int64_t i = form / 4; i < (form / 4 < 3 ? form / 4 + 1 : side); i++)
                for (int64_t j = form % 4; j < (form % 4 < 3 ? form % 4 + 1 : side); j++)
                    multiply_form(s, tiles_of_product(here.channels), &tiles,
                                  v + (i * side + j) * squares_apart(s->w, s->each) + here.in * s->each, u,
                                  m + (i * side + j) * results_apart(s->each) + panel * PANEL * s->each, &a, &following, coming, lines);
        }
}

/* Results of these panels for the squares from `begin` to `end`; what is not finite leaves a NaN in `trace`. */
static void finish_squares(const squares *s, const int64_t first, const int64_t together, const int64_t begin, const int64_t end,
                           const DY_T *m, dy_vector *trace)
{
    const dy_blocks *const w = s->w;
    const int64_t plane = w->spots[0] * w->spots[1] * BLOCK, row = w->spots[1] * BLOCK, out = in_whole(w->out) / BLOCK;
    const int64_t down = w->dilate[0], right = w->dilate[1];
    const int64_t apart = results_apart(s->each), depth = s->deep->spots, next = depth * plane;
    const square_place place = place_of_square(s, begin);
    DY_T scales[PANEL], shifts[PANEL];
    for (int64_t panel = 0; panel < together; panel++, m += PANEL * s->each) {
        const panel_place here = place_of_panel(&s->groups, first + panel);
        const DY_T *const scale = ONLY_SUMS ? 0 : s->scale, *const shift = ONLY_SUMS ? 0 : s->shift;
        const DY_T *const residual = ONLY_SUMS ? 0 : s->residual;
        const around a = {of_panel(scale, &s->groups, &here, scales), of_panel(shift, &s->groups, &here, shifts), next,
                          residual != 0, residual ? residual - s->y : 0, 1, 1, !ONLY_SUMS && w->relu, w->cap, 0, 0, 0, 0, {0}};
        square_place p = place;
        for (int64_t t = begin; t < end; t++, p = next_square(s, p)) {
            const int64_t i = first_of_pair(s, 0, p.i), j = first_of_pair(s, 1, p.j), block = p.image / depth * out + here.out / BLOCK;
            const int64_t rows = 1 + (i + down < w->spots[0]), columns = 1 + (j + right < w->spots[1]);
            DY_T *const to = s->y + (block * depth + p.image % depth) * plane + i * row + j * BLOCK;
            for (int k = 0; k < here.channels / WIDTH; k++) {
                const DY_T *const from = m + (k / IN_BLOCK * s->each + t - begin) * BLOCK + k % IN_BLOCK * WIDTH;
                DY_T *const places = to + k / IN_BLOCK * next + k % IN_BLOCK * WIDTH;
                if (side_of(s) == 4)
                    transform_back(4, from, apart, &a, k, rows, columns, down * row, right * BLOCK, places, trace);
                else
                    transform_back(5, from, apart, &a, k, rows, columns, row, BLOCK, places, trace);
            }
        }
    }
}

static void note_failure(const squares *s, const dy_vector trace)
{
    for (int k = 0; k < WIDTH; k++)
        if (trace[k] != trace[k])
            __atomic_store_n(s->failed, 1, __ATOMIC_RELAXED);
}

/* The squares from `begin` to `end`, of all images, for all panels. */
static void some_squares(const void *given, int64_t begin, int64_t end)
{
    const squares *const s = given;
    const int64_t spots = side_of(s) * side_of(s), size = spots * squares_apart(s->w, s->each);
    DY_T *const v = room(share_key, (size + spots * results_apart(s->each)) * sizeof(DY_T));
    if (!v) {
        __atomic_store_n(s->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    dy_vector trace = {0};
    expected coming = some_expected(s->coming, begin, end, s->count);
    transform_squares(s, begin, end, v);
    for (int64_t first = 0; first < s->panels; first += TOGETHER) {
        const int64_t together = panels_together(first, s->panels);
        multiply_squares(s, first, together, end - begin, v, s->turned + first * FORMS * filters_apart(&s->groups), v + size, &coming);
        finish_squares(s, first, together, begin, end, v + size, &trace);
    }
    note_failure(s, trace);
}

/* The same if there are few squares: first they are transformed, then shares are panels, and filters are read once. */
static void some_common(const void *given, int64_t begin, int64_t end)
{
    const squares *const s = given;
    transform_squares(s, begin, end, s->common + begin * BLOCK);
}

static void some_together(const void *given, int64_t begin, int64_t end)
{
    const squares *const s = given;
    const int64_t size = FORMS * filters_apart(&s->groups), results = side_of(s) * side_of(s) * results_apart(s->each);
    const transformed own = {&s->groups, s->filters, s->panels, s->side, 1, 0, 0};
    DY_T *const m = room(share_key, (results + (s->turned ? 0 : TOGETHER * size)) * sizeof(DY_T));
    if (!m) {
        __atomic_store_n(s->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    dy_vector trace = {0};
    for (int64_t k = begin; k < end; k++) {
        const int64_t first = k * TOGETHER, together = panels_together(first, s->panels);
        expected coming = some_expected(s->coming, k, k + 1, (s->panels + TOGETHER - 1) / TOGETHER);
        if (!s->turned)
            transform_together(&own, first, m + results);
        multiply_squares(s, first, together, s->count, s->common, s->turned ? s->turned + first * size : m + results, m, &coming);
        finish_squares(s, first, together, 0, s->count, m, &trace);
    }
    note_failure(s, trace);
}

/* For every thread the same number of shares. */
static int64_t squares_of_share(const dy_blocks *w, const int64_t count, const int64_t threads)
{
    const int64_t most_squares = w->in >= MANY_CHANNELS ? MANY_SQUARES : SQUARES;
    const int64_t shares = ((count + most_squares - 1) / most_squares + threads - 1) / threads * threads;
    return (count + shares - 1) / shares;
}

/* given: the transformed filters; null, and then transformed here, only if there is one slice. */
static int winograd(const dy_blocks *w, const slices *deep, const DY_T *x, const DY_T *filters, const DY_T *given, const DY_T *scale,
                    const DY_T *shift, const DY_T *residual, DY_T *y)
{
    const int64_t down = pairs_of(w, 0), right = pairs_of(w, 1), count = w->batch * down * right;
    const int64_t side = w->stride[0] == 1 ? 4 : 5, kept_as = side == 4 ? DY_BLOCKS_WINOGRAD : KEPT_STRIDED;
    const channel_groups groups = groups_of(w);
    const int64_t panels = panels_of(w, &groups), shares = (panels + TOGETHER - 1) / TOGETHER, threads = dy_team ? dy_team->threads : 1;
    const int common = count <= MANY_SQUARES && shares >= threads;
    const int64_t each = common ? count : squares_of_share(w, count, threads);
    const int64_t table = ((groups.in + down + right) * 4 + 63) / 64 * 64, elements = panels * FORMS * filters_apart(&groups);
    const transformed turned = {&groups, filters, panels, side, 1, 0, 0};
    const DY_T *const kept = given ? given : kept_filters(w, filters, kept_as, elements, transform_all, &turned);
    const int64_t more = common ? side * side * squares_apart(w, each) : kept ? 0 : elements;
    char *const memory = room(room_key, table + more * sizeof(DY_T));
    if (!memory)
        return 1;
    int failed = 0;
    DY_T *const own = (DY_T *)(memory + table);
    int32_t *const where = (int32_t *)memory;
    squares s = {w, deep, groups, x, filters, scale, shift, residual, y, common ? own : 0, kept || common ? kept : own, where, {0},
                       side, {down, right}, count, each, panels, take_expected(), &failed};
    for (int64_t c = 0; c < groups.in; c++)
        where[c] = (int32_t)(c / BLOCK * each * BLOCK + c % BLOCK);
    note_pairs(&s, where + groups.in);
    if (common) {
        dy_share(some_common, &s, count, PLACES);
        dy_share(some_together, &s, shares, 1);
        return failed;
    }
    if (!kept)
        transform_all(&turned, own);
    dy_share(some_squares, &s, count, each);
    return failed;
}

/* Where x is copied, some images at a time: the copies are read while they are in the cache, and take little memory. */
static int any_conv(const dy_blocks *w, const DY_T *x, const DY_T *filters, const DY_T *scale, const DY_T *shift, const DY_T *residual,
                    DY_T *y)
{
    if (is_winograd(w))
        return winograd(w, &one_slice, x, filters, 0, scale, shift, residual, y);
    dy_blocks some = *w;
    const int64_t channels = w->plain ? w->in : in_whole(w->in), copied = channels * extent(w, 0) * extent(w, 1);
    const int64_t image = channels * w->image[0] * w->image[1], result = in_whole(w->out) * w->spots[0] * w->spots[1];
    const int64_t images = is_padded(w) ? most(1, COPIED / copied) : w->batch;
    int failed = 0;
    for (int64_t n = 0; n < w->batch && !failed; n += images) {
        some.batch = least(images, w->batch - n);
        failed = blocks_conv(&some, x + n * image, filters, scale, shift, residual ? residual + n * result : 0, y + n * result);
    }
    return failed;
}

#endif
