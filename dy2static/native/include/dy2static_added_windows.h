/* Transposed convolutions whose windows step by more than one, or are few: one product of all taps, and sums of what falls on one place.

   A row of the product is a channel of x with one tap, its columns are the places of y.  So y is laid into panels once for all taps,
   and tiles are full although x has few channels.  What the taps give is added while it is in the second cache: first along the
   columns of the image, as rows with zeros between them (`add_down`), then along its rows (`add_across`).  Filters that never change
   are turned once for all calls. */
#include "dy2static_kept.h"

enum {
    ADDED_DEPTH = 16, DEEP = 96,                /* channels of y that repay the sums, if windows step by more than one: for few channels of x; any */
    ADDED_PLACES = 2 * GATHERED,                /* of larger images with channels for whole tiles, each class is a product as good */
#if defined(__AVX512F__)
    ADDING = 12,                                /* multiplications in the time in which one product is added */
#else
    ADDING = 4,
#endif
    EACH = 4000, LEAST_DEPTH = 8,               /* multiplications in the time that a channel of an image takes besides; channels of y */
    BESIDE = 64,                                /* places of a row that are added at a time */
    ADDED_ROWS = HEIGHT,                        /* of the product at a time */
    ADDED_BYTES = NEAR_BYTES / 2                /* of the product at a time, which stays in the second cache */
};

/* What a product of some images, and then some channels of x at a time, works on. */
typedef struct {
    const dy_windows *w;
    int64_t columns, width;                     /* places of the images; from one row of the product to the next */
    int64_t gap, row;                           /* zeros between rows of sums; from one of these rows to the next */
    DY_T *panels, *product, *sums;
} added_parts;

typedef struct {
    const dy_windows *w;
    const DY_T *filters;
} added_filters;

/* Whether this can be done. */
static int may_add_windows(const dy_windows *windows)
{
    const dy_windows flat = flattened(windows), *const w = &flat;
    for (int axis = 0; axis < 3; axis++)
        if (w->dilate[axis] > 1 || w->kernel[axis] < w->stride[axis])
            return 0;
    return w->batch && count(w->kernel) > 1 && w->image[0] == 1 && w->spots[0] == 1 && w->kernel[0] == 1 && !w->pad[0];
}

/* Whether this is done, and not a product for each class of places (`transposed`): if windows step by more than one, or if there are
   so few that classes, which multiply all places of x by taps, mostly multiply zeros around y. */
static int adds_windows(const dy_windows *windows)
{
    const dy_windows flat = flattened(windows), *const w = &flat;
    if (!may_add_windows(w) || w->algorithm)
        return w->algorithm == DY_ADDED && may_add_windows(w);
    const int64_t spots = count(w->spots), step = count(w->stride), taps = count(w->kernel), classes = count(w->image) / step * w->out;
    const int few = w->in < DY_ROWS, meet_few = taps <= 4 * step;       /* rows of tiles; taps that one place of x meets */
    if (taps * spots * (int64_t)sizeof(DY_T) > (int64_t)ADDED_BYTES * (few ? 32 : meet_few ? 4 : 1))
        return 0;
    if (step > 1 && w->out >= (few ? ADDED_DEPTH : DEEP) && (spots <= ADDED_PLACES || few || meet_few))
        return 1;
    const int64_t eighths = most(w->in > 8 ? 8 : 9, 32 / w->in);        /* of the time of full tiles, for a class: of few rows more */
    const int64_t added = taps * spots * (w->out + ADDING) + (few ? 0 : EACH);
    return (w->out >= LEAST_DEPTH || classes >= 2 * spots * w->out) && classes * taps * eighths > 8 * added;
}

/* to[q] = the sum of from[q + t * next] for t < found, which is 1 at least, and a constant where it is small. */
DY_INLINE void add_some(const int64_t found, DY_T *to, const DY_T *from, const int64_t next, const int64_t length)
{
    int64_t q = 0;
    for (; q + WIDTH <= length; q += WIDTH) {
        dy_vector sum = load(from + q);
        for (int64_t t = 1; t < found; t++)
            sum += load(from + q + t * next);
        store(to + q, sum);
    }
    for (; q + 4 <= length; q += 4) {
        dy_quad sum = *(const dy_quad_unaligned *)(from + q);
        for (int64_t t = 1; t < found; t++)
            sum += *(const dy_quad_unaligned *)(from + q + t * next);
        *(dy_quad_unaligned *)(to + q) = sum;
    }
    for (; q < length; q++) {
        DY_T sum = from[q];
        for (int64_t t = 1; t < found; t++)
            sum += from[q + t * next];
        to[q] = sum;
    }
}

/* sums[tap of a row][row of x][place in a row of y]; product: the rows of one channel, at one image. */
static void add_down(const added_parts *p, const DY_T *product)
{
    const dy_windows *const w = p->w;
    const int64_t step = w->stride[1], across = w->kernel[2], columns = w->spots[2], next = step * across * p->width - columns;
    const int64_t taps = w->kernel[1] / step, more = w->kernel[1] % step;
    for (int64_t h = 0, last = w->pad[1] / step, first = w->pad[1] % step; h < w->image[1]; h++, first++) {
        if (first == step) {
            first = 0;
            last++;
        }
        const int64_t begin = most(0, last - w->spots[1] + 1), found = least(taps + (first < more), last + 1) - begin;
        const DY_T *from = product + first * across * p->width + last * columns + begin * next;
        DY_T *to = p->sums + p->gap + h * p->row;
        for (int64_t k2 = 0; k2 < across; k2++, from += p->width, to += w->image[1] * p->row)
            switch (found) {
            case 1: add_some(1, to, from, next, columns); break;
            case 2: add_some(2, to, from, next, columns); break;
            default:
                if (found > 0)
                    add_some(found, to, from, next, columns);
                else
                    memset(to, 0, columns * sizeof(DY_T));
            }
    }
}

DY_INLINE dy_quad quad_across(const int64_t taps, const DY_T *from, const int64_t next)
{
    dy_quad sum = *(const dy_quad_unaligned *)from;
    for (int64_t t = 1; t < taps; t++)
        sum += *(const dy_quad_unaligned *)(from + t * next);
    return sum;
}

/* Every second place of a row from `a`, the others from `b`, where so many taps meet them; gives how many of each. */
DY_INLINE int64_t mix_across(DY_T *x, const int64_t length, const int64_t taps_a, const DY_T *a, const int64_t taps_b, const DY_T *b,
                             const int64_t next)
{
    int64_t j = 0;
    for (; 2 * j + 8 <= length; j += 4) {
        const dy_quad left = quad_across(taps_a, a + j, next), right = quad_across(taps_b, b + j, next);
        *(dy_quad_unaligned *)(x + 2 * j) = DY_MIX(left, right, 0, 4, 1, 5);
        *(dy_quad_unaligned *)(x + 2 * j + 4) = DY_MIX(left, right, 2, 6, 3, 7);
    }
    return j;
}

/* Every `step`-th place of a row, from `rest` on, and so many others beside it, which are a constant; from the j-th one on. */
DY_INLINE void add_beside(const added_parts *p, const int64_t some, const int64_t rest, const int64_t j, const int64_t h, DY_T *row)
{
    const dy_windows *const w = p->w;
    const int64_t step = w->stride[2], length = w->image[2], plane = w->image[1] * p->row, next = step * plane - 1;
    const int64_t places = (length - rest - some) / step + 1;
    DY_T sums[4 * BESIDE];
    for (int64_t begin = j, here; begin < places; begin += here) {
        here = least(BESIDE, places - begin);
        for (int64_t k = 0; k < some; k++) {
            const int64_t first = (rest + k + w->pad[2]) % step, taps = (w->kernel[2] - first + step - 1) / step;
            const DY_T *const from = p->sums + p->gap + first * plane + (rest + k + w->pad[2]) / step + h * p->row + begin;
            add_some(taps, sums + k * BESIDE, from, next, here);
        }
        int64_t q = 0;
        for (; some == 4 && q + 4 <= here; q += 4)
            transpose(sums + q, BESIDE, row + (begin + q) * step + rest, step);
        for (; q < here; q++)
            for (int64_t k = 0; k < some; k++)
                row[(begin + q) * step + rest + k] = sums[k * BESIDE + q];
    }
}

/* The rows of one channel of an image. */
static void add_across(const added_parts *p, DY_T *x)
{
    const dy_windows *const w = p->w;
    const int64_t step = w->stride[2], length = w->image[2], plane = w->image[1] * p->row, next = step * plane - 1;
    int64_t done = 0;
    if (step == 1) {
        const DY_T *from = p->sums + p->gap + w->pad[2];
        for (int64_t h = 0; h < w->image[1]; h++, from += p->row)
            add_some(w->kernel[2], x + h * length, from, next, length);
        return;
    }
    if (step == 2) {
        const int64_t first = w->pad[2] % 2, taps_a = (w->kernel[2] - first + 1) / 2, taps_b = (w->kernel[2] + first) / 2;
        const DY_T *a = p->sums + p->gap + first * plane + w->pad[2] / 2;
        const DY_T *b = p->sums + p->gap + (1 - first) * plane + (w->pad[2] + 1) / 2;
        for (int64_t h = 0; h < w->image[1]; h++, a += p->row, b += p->row)
            if (taps_a == 2 && taps_b == 2)
                done = mix_across(x + h * length, length, 2, a, 2, b, next);
            else
                done = mix_across(x + h * length, length, taps_a, a, taps_b, b, next);
    }
    for (int64_t h = 0; h < w->image[1]; h++) {
        int64_t rest = 0;
        for (; rest + 4 <= least(step, length); rest += 4) {
            add_beside(p, 4, rest, 0, h, x + h * length);
            for (int64_t k = 0; k < 4; k++)             /* the last place of these may be beyond the row */
                add_beside(p, 1, rest + k, (length - rest - 4) / step + 1, h, x + h * length);
        }
        for (; rest < least(step, length); rest++)
            add_beside(p, 1, rest, done, h, x + h * length);
    }
}

/* Rows at `to`: columns of `filters`, whose rows are `next` apart; sixteen at a time, so that lines are read once, and the next
   lines of all rows, which are too far apart for the processor to see a pattern, are on their way. */
static void turn_filters(DY_T *to, const int64_t rows, const int64_t depth, const DY_T *filters, const int64_t next)
{
    for (int64_t begin = 0, end; begin < rows; begin = end) {
        end = least(rows, begin + 16);
        int64_t l = 0;
        for (; l + 4 <= depth; l += 4) {
            int64_t r = begin;
            if (end < rows)
                for (int64_t s = 0; s < 4; s++)
                    __builtin_prefetch(filters + (l + s) * next + end, 0, 3);
            for (; r + 4 <= end; r += 4)
                transpose(filters + l * next + r, next, to + r * STRIDE + l, STRIDE);
            for (; r < end; r++)
                for (int64_t s = 0; s < 4; s++)
                    to[r * STRIDE + l + s] = filters[(l + s) * next + r];
        }
        for (; l < depth; l++)
            for (int64_t r = begin; r < end; r++)
                to[r * STRIDE + l] = filters[l * next + r];
    }
}

/* All filters, turned: [group][DEPTH channels of y][channel of x, tap][STRIDE]. */
static void turn_all_filters(const void *given, void *to)
{
    const added_filters *const f = given;
    const dy_windows *const w = f->w;
    const int64_t next = w->in * count(w->kernel);
    DY_T *rows = to;
    for (int64_t g = 0; g < w->groups; g++)
        for (int64_t l = 0; l < w->out; l += DEPTH, rows += next * STRIDE)
            turn_filters(rows, next, least(DEPTH, w->out - l), f->filters + (g * w->out + l) * next, next);
}

/* These if the filters never change, else null. */
static const DY_T *kept_turned(const dy_windows *w, const DY_T *filters)
{
    const int64_t taps = count(w->kernel), elements = w->groups * w->out * w->in * taps;
    const added_filters all = {w, filters};
    const dy_kept_key key = {filters, elements * (int64_t)sizeof(DY_T), DY_ADDED, {w->in, w->out, w->groups, taps}};
    return dy_kept(&key, w->groups * packed_rows(w->out) * w->in * taps * (int64_t)sizeof(DY_T), turn_all_filters, &all);
}

/* The product for `rows` taps of channels, whose filters begin at `filters`, or at `turned` if they are kept; some rows at a time. */
static void added_product(const added_parts *p, const int64_t rows, const DY_T *filters, const int64_t next, const DY_T *turned)
{
    const int64_t depth = p->w->out;
    DY_T *const own = at_hand(own_block);
    for (int64_t begin = 0; begin < rows; begin += ADDED_ROWS)
        for (int64_t l = 0; l < depth; l += DEPTH) {
            const int64_t some = least(DEPTH, depth - l), end = least(rows, begin + ADDED_ROWS);
            const DY_T *const left = turned ? turned + l / DEPTH * next * STRIDE + begin * STRIDE : own;
            if (!turned)
                turn_filters(own, end - begin, some, filters + l * next + begin, next);
            for (int64_t u = 0; u < p->columns; u += COLUMNS)
                for (int64_t r = begin, height; r < end; r += height) {
                    height = tile_rows(end - r);
                    plain_tile(height, p->columns - u > WIDTH ? 2 : 1, some, left + (r - begin) * STRIDE,
                               p->panels + l * GATHERED + u * some, COLUMNS, 0, p->product + r * p->width + u, p->width, 1, l ? 1 : 0);
                }
        }
}

/* Channels of a group from `begin` to `end` of x, for all images. */
static int added_channels(const dy_windows *windows, const DY_T *y, const DY_T *filters, DY_T *x, const int64_t begin, const int64_t end,
                          const dy_after *after)
{
    const dy_windows flat = flattened(windows), *const w = &flat;
    const int64_t taps = count(w->kernel), useful = count(w->spots), each = count(w->image), next = w->in * taps;
    const int64_t most_taps = (w->kernel[2] + w->stride[2] - 1) / w->stride[2];       /* that one place meets in a row */
    const int64_t next_x = step_of_x(w), next_y = step_of_y(w);
    const int64_t images = images_together(w, GATHERED), most_columns = rounded(images * useful) + COLUMNS;
    const int64_t last = floor_div(w->image[2] - 1 + w->pad[2], w->stride[2]);
    added_parts p = {w, 0, most_columns, most(most_taps, last + 1 - w->spots[2]), 0, 0, 0, 0};
    p.row = w->spots[2] + p.gap;
    const int64_t sums = rounded(p.gap + w->kernel[2] * w->image[1] * p.row), most_rows = ADDED_BYTES / (int64_t)sizeof(DY_T) / most_columns;
    const int64_t channels = most(1, least(ADDED_ROWS, most_rows) / taps);
    const int64_t parts = (useful * images + GATHERED - 1) / GATHERED, panels = (w->out + 1) * GATHERED * parts;
    const int direct = useful % WIDTH == 0;
    const int64_t copied = direct ? 0 : rounded(images * w->out * useful + SLACK);
    int64_t *const where = memory((rounded(w->out) + 2 * most_columns) * 8
                                  + (rounded(panels) + sums + copied + channels * taps * p.width) * sizeof(DY_T));
    if (!where)
        return 1;
    int64_t *const from = where + rounded(w->out), *const to = from + most_columns;
    p.panels = (DY_T *)(to + most_columns);
    p.sums = p.panels + rounded(panels);
    p.product = p.sums + sums;
    DY_T *const planes = p.product + channels * taps * p.width;
    memset(p.sums, 0, sums * sizeof(DY_T));
    for (int64_t o = 0; o < w->out; o++)
        where[o] = o * useful;
    const places at = places_of(w->spots, w->spots);
    find_places(&at, images, from, direct ? next_y : w->out * useful, to, 0);
    DY_T *const all_panels = p.panels, *const product = p.product;
    const DY_T *const all_turned = kept_turned(w, filters);
    for (int64_t g = 0; g < w->groups; g++, filters += w->out * next)
        for (int64_t n = 0; n < w->batch; n += images) {
            const int64_t here = least(images, w->batch - n);
            const DY_T *const some = y + n * next_y + g * w->out * useful;
            const DY_T *const turned = all_turned ? all_turned + g * packed_rows(w->out) * next : 0;
            for (int64_t i = 0; i < here && !direct; i++)
                memcpy(planes + i * w->out * useful, some + i * next_y, w->out * useful * sizeof(DY_T));
            if (!direct)
                memset(planes + here * w->out * useful, 0, SLACK * sizeof(DY_T));
            for (int64_t u = 0; u < here * useful; u += GATHERED)
                for (int64_t l = 0; l < w->out; l += DEPTH) {
                    const int64_t depth = least(DEPTH, w->out - l), columns = least(GATHERED, here * useful - u);
                    for (int64_t v = 0; v < columns; v += COLUMNS)
                        gather_panel(all_panels + u * w->out + l * GATHERED + v * depth, depth, least(COLUMNS, columns - v),
                                     direct ? some : planes, where + l, from + u + v);
                }
            for (int64_t i = begin, some_channels; i < end; i += some_channels) {
                some_channels = least(channels, end - i);
                for (int64_t u = 0; u < here * useful; u += GATHERED) {
                    p.columns = least(GATHERED, here * useful - u);
                    p.panels = all_panels + u * w->out;
                    p.product = product + u;
                    added_product(&p, some_channels * taps, filters + i * taps, next, turned ? turned + i * taps * STRIDE : 0);
                }
                for (int64_t s = 0; s < some_channels; s++)
                    for (int64_t m = 0; m < here; m++) {
                        add_down(&p, product + s * taps * p.width + m * useful);
                        add_across(&p, x + (n + m) * next_x + (g * w->in + i + s) * each);
                    }
            }
            if (g == w->groups - 1)
                finish(after, n, n + here);
        }
    return 0;
}

static int added_windows(const dy_windows *w, const DY_T *y, const DY_T *filters, DY_T *x, const dy_after *after)
{
    return added_channels(w, y, filters, x, 0, w->in, after);
}
