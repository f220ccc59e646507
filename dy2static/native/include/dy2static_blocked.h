/* Kernels for arrays in blocks of channels (dy2static_channel_blocks.h): the functions of the library that channel_blocks.py builds.

   A vector holds neighbouring channels of the result, a tile some neighbouring places of a row.  For each tap of the filters a
   tile reads one number of x for each place, at an offset from a table, and the numbers of the filters for its channels.  These
   are turned in memory right before they are used, for a panel of channels and a piece of the taps at a time, which then lie
   in the second cache: memory is read once.  Only filters that never change are turned once for all calls (dy2static_kept.h).

   Before the include: DY_T, which is float, and DY_PIECE.  The result may stand where the residual stands if there is one piece. */
#ifndef DY2STATIC_BLOCKED_H
#define DY2STATIC_BLOCKED_H

#include "dy2static_blocked_tiles.h"
#include "dy2static_shares.h"
#include "dy2static_channel_blocks.h"
#include "dy2static_kept.h"
#include "dy2static_pools.h"

/* Filters that are needed after those at hand: while products are computed, memory is idle. */
typedef struct {
    const DY_T *filters;
    int64_t count;
} expected;

static __thread expected coming;

static void blocks_expect(const DY_T *filters, int64_t count) { coming = (expected){dy_kept_or(filters), count}; }

static expected take_expected(void)
{
    const expected found = coming;
    coming = (expected){0, 0};
    return found;
}

/* A part of them, between two shares of `count`. */
static expected some_expected(const expected all, const int64_t begin, const int64_t end, const int64_t count)
{
    const int64_t from = all.count * begin / count, until = all.count * end / count;
    return (expected){all.filters + from, until - from};
}

/* How many lines each tile fetches for each block of its taps, so that tiles of so many taps in all fetch so many elements. */
static int64_t fetched_lines(const int64_t elements, const int64_t taps) { return most(1, least(BLOCK, (elements + taps - 1) / taps)); }

/* Let a tile of `taps` fetch the next of them. */
static void fetch_expected(around *a, expected *left, const int64_t taps, const int64_t lines)
{
    a->ahead = left->filters;
    a->apart = taps;
    a->lines = left->count > 0 ? lines : 0;
    left->filters += a->lines * taps;
    left->count -= a->lines * taps;
}

/* Groups of channels, as panels take them.  Small groups are one: filters are zero where they take nothing of a channel. */
typedef struct {
    int64_t in, out, filled, panels, merged;            /* of one group; filled: `out` in whole blocks; merged: groups in one */
} channel_groups;

/* A panel of channels of the result: the first one of them, and how many, in whole blocks; and the first one of its group in x. */
typedef struct {
    int64_t out, channels, in;
} panel_place;

static int64_t in_whole(const int64_t channels) { return (channels + BLOCK - 1) / BLOCK * BLOCK; }

static channel_groups groups_of(const dy_blocks *w)
{
    const int64_t in = w->in / w->groups, merged = w->groups > 1 && in < BLOCK ? BLOCK / in : 1;
    const int64_t out = w->out / w->groups * merged, filled = in_whole(out);
    return (channel_groups){in * merged, out, filled, (filled + PANEL - 1) / PANEL, merged};
}

static int64_t panels_of(const dy_blocks *w, const channel_groups *g) { return w->groups / g->merged * g->panels; }

static panel_place place_of_panel(const channel_groups *g, const int64_t panel)
{
    const int64_t group = panel / g->panels, first = panel % g->panels * PANEL;
    return (panel_place){group * g->out + first, least(PANEL, g->filled - first), group * g->in};
}

/* Filters of a panel: to[k][o] for `some` taps from `first` on; `each` is how many a channel has. */
static void turn_filters(const channel_groups *g, DY_T *to, const DY_T *filters, const panel_place *p, const int64_t each,
                         const int64_t first, const int64_t some)
{
    const int64_t own = g->in / g->merged, taps = own * each, there = least(p->channels, g->out - p->out % g->out);
    const DY_T *const from = filters + p->out * taps;
    const int64_t whole = g->merged > 1 ? 0 : there / BLOCK * BLOCK;
    turn(to, PANEL, from + first, taps, whole, some);
    if (whole == p->channels)
        return;
    for (int64_t k = 0; k < some; k++)
        for (int64_t o = whole; o < p->channels; o++)
            to[k * PANEL + o] = 0;
    for (int64_t o = whole; o < there; o++) {
        const int64_t before = o / (g->out / g->merged) * taps - first;         /* taps of other groups */
        for (int64_t k = most(0, before); k < least(some, before + taps); k++)
            to[k * PANEL + o] = from[o * taps + k - before];
    }
}

/* All panels of filters, one behind the other. */
typedef struct {
    const channel_groups *groups;
    const DY_T *filters;
    int64_t panels, each;
} all_filters;

static void turn_all(const void *given, void *to)
{
    const all_filters *const a = given;
    const int64_t taps = a->groups->in * a->each;
    for (int64_t panel = 0; panel < a->panels; panel++) {
        const panel_place here = place_of_panel(a->groups, panel);
        turn_filters(a->groups, (DY_T *)to + panel * taps * PANEL, a->filters, &here, a->each, 0, taps);
    }
}

/* What `make` makes of filters, so many elements; null if it is not kept. */
static const DY_T *kept_filters(const dy_blocks *w, const DY_T *filters, const int64_t form, const int64_t elements, dy_make *make,
                                const void *given)
{
    const int64_t each = w->kernel[0] * w->kernel[1];
    const dy_kept_key key = {filters, w->out * (w->in / w->groups) * each * (int64_t)sizeof(DY_T), form, {w->in, w->out, w->groups, each}};
    return dy_kept(&key, elements * sizeof(DY_T), make, given);
}

/* Numbers of the channels of a panel: copies where memory ends before the last block does. */
static const DY_T *of_panel(const DY_T *numbers, const channel_groups *g, const panel_place *p, DY_T *own)
{
    const int64_t there = g->out - p->out % g->out;
    if (!numbers || there >= p->channels)
        return numbers ? numbers + p->out : 0;
    for (int64_t o = 0; o < p->channels; o++)
        own[o] = o < there ? numbers[p->out + o] : 0;
    return own;
}

/* plane, row: elements of a block (or channel) of x, of a row of it; deep: numbers of one place that lie together; rows, columns: of
   the result; flat: where windows are single elements, rows are pieces of the image, the last one what is left; places: of an image.
   image: elements of one of x.  parts: of the rows; panels: of the
   channels.  turned: all panels of filters, if they are kept. */
typedef struct {
    const dy_blocks *w;
    channel_groups groups;
    const DY_T *x, *filters, *turned, *scale, *shift, *residual;
    DY_T *y;
    int32_t *where;
    int64_t plane, row, deep, image, taps, rows, columns, places, flat, parts, panels;
    expected coming;
} blocked_windows;

/* The last tap behind the first one, and what windows reach from the first to the last, along an axis. */
static int64_t reach(const dy_blocks *w, const int axis) { return (w->kernel[axis] - 1) * w->dilate[axis]; }
static int64_t extent(const dy_blocks *w, const int axis) { return (w->spots[axis] - 1) * w->stride[axis] + reach(w, axis) + 1; }

static int is_padded(const dy_blocks *w)
{
    int padded = 0;
    for (int axis = 0; axis < 2; axis++)
        padded |= w->pad[axis] || extent(w, axis) > w->image[axis];
    return padded;
}

/* Copies of the planes of x: with their padding, or of windows of one element only what these read. */
typedef struct {
    const dy_blocks *w;
    const DY_T *x;
    DY_T *to;
    int64_t deep, rows, columns, down, right;           /* steps */
} copies;

/* Numbers from `begin` to `end` are what a row of the image has, the others are zeros. */
static void copy_row(const copies *c, const DY_T *from, DY_T *to)
{
    const int64_t left = c->w->pad[1], deep = c->deep;
    const int64_t begin = least(c->columns, (left + c->right - 1) / c->right);
    const int64_t end = most(begin, least(c->columns, (c->w->image[1] - 1 + left) / c->right + 1));
    memset(to, 0, begin * deep * sizeof(DY_T));
    from += (begin * c->right - left) * deep;
    if (c->right == 1)
        memcpy(to + begin * deep, from, (end - begin) * deep * sizeof(DY_T));
    else
        for (int64_t j = begin; j < end; j++, from += c->right * deep)
            for (int64_t t = 0; t < deep; t++)
                to[j * deep + t] = from[t];
    memset(to + end * deep, 0, (c->columns - end) * deep * sizeof(DY_T));
}

static void copy_planes(const void *given, int64_t begin, int64_t end)
{
    const copies *const c = given;
    const dy_blocks *const w = c->w;
    const int64_t row = c->columns * c->deep;
    for (int64_t k = begin; k < end; k++)
        for (int64_t i = 0; i < c->rows; i++) {
            const int64_t from = i * c->down - w->pad[0];
            DY_T *const to = c->to + (k * c->rows + i) * row;
            if (from < 0 || from >= w->image[0])
                memset(to, 0, row * sizeof(DY_T));
            else
                copy_row(c, c->x + (k * w->image[0] + from) * w->image[1] * c->deep, to);
        }
}

static void find_places(const blocked_windows *b)
{
    const dy_blocks *const w = b->w;
    int32_t *where = b->where;
    for (int64_t c = 0; c < b->groups.in; c++)
        for (int64_t i = 0; i < w->kernel[0]; i++)
            for (int64_t j = 0; j < w->kernel[1]; j++)
                *where++ = (int32_t)(c / b->deep * b->plane + i * w->dilate[0] * b->row + j * w->dilate[1] * b->deep + c % b->deep);
}

/* The first element that the windows of one row of all images read. */
static const DY_T *row_of(const blocked_windows *b, const int64_t r)
{
    return b->x + r / b->rows * b->image + r % b->rows * b->w->stride[0] * b->row;
}

/* The first place of a row of the result, also of the one behind the last. */
static int64_t place_of_row(const blocked_windows *b, const int64_t i) { return least(b->places, i * b->columns); }

/* One panel of channels of some rows of some images. */
static void panel_of(const blocked_windows *b, const int64_t panel, const int64_t begin, const int64_t end, expected coming)
{
    const dy_blocks *const w = b->w;
    DY_T *const own = at_hand(own_filters), scales[PANEL], shifts[PANEL];
    const panel_place here = place_of_panel(&b->groups, panel);
    const int64_t o = here.out, channels = here.channels, step = w->stride[1] * b->deep, each = w->kernel[0] * w->kernel[1];
    const int together = each == 1 && b->deep == BLOCK, half = HALF_PLACES && b->groups.out - o % b->groups.out <= WIDTH;
    const int64_t places = half ? HALF_PLACES : PLACES, next = w->spots[0] * w->spots[1] * BLOCK, out = in_whole(w->out);
    const int64_t off = here.in / b->deep * b->plane;
    const even_tiles of_row = cut_evenly(b->columns, places);
    block_tiles *const *const scattered = half || b->flat || b->rows == 1 ? 0 : scattered_tiles_of(b->columns);
    block_tiles *const *const of = scattered ? scattered : half ? half_tiles_of(step, together) : tiles_of(channels, step, together);
    around a = {of_panel(b->scale, &b->groups, &here, scales), of_panel(b->shift, &b->groups, &here, shifts), next, b->residual != 0,
                b->residual ? b->residual - b->y : 0, 0, 0, w->relu, w->cap, 0, 0, 0, 0, {0}};
    for (int64_t l = 0; l < b->taps; l += PIECE) {
        const int64_t some = least(PIECE, b->taps - l), behind = l + some < b->taps ? l + some : 0, panels = behind ? o : o + PANEL;
        int64_t ahead = b->turned || panels + channels > w->out || some < 256 ? 0 : channels;       /* rows to be turned soon */
        const DY_T *const filters = b->turned ? b->turned + (panel * b->taps + l) * PANEL : own;
        expected following = {filters + some * PANEL, b->turned && panel + 1 < b->panels ? some * PANEL : 0};
        if (!b->turned)
            turn_filters(&b->groups, own, b->filters, &here, each, l, some);
        const int64_t lines = fetched_lines(coming.count + following.count + ahead * some, (end - begin) * of_row.count * some);
        a.first = l == 0;
        a.last = l + some == b->taps;
        const DY_T *from = row_of(b, begin) + off;
        for (int64_t r = begin, taken; r < end; r += taken) {
            const int64_t n = r / b->rows, i = r % b->rows;
            taken = scattered || b->flat ? least(end - r, b->rows - i) : 1;
            const int64_t first = place_of_row(b, i);
            const even_tiles tiles = taken == 1 && !b->flat ? of_row : cut_evenly(place_of_row(b, i + taken) - first, places);
            const DY_T *const below = row_of(b, r + taken < end ? r + taken : begin) + off;
            DY_T *const to = b->y + (n * out + o) * w->spots[0] * w->spots[1] + first * BLOCK;
            for (int64_t t = 0, p = 0, q; t < tiles.count; t++, p = q) {
                q = p + places_of_tile(&tiles, t);
                for (int64_t s = p; scattered && s < q; s++)
                    a.at[s - p] = s / b->columns * w->stride[0] * b->row + s % b->columns * step;
                if (ahead > 0) {
                    a.ahead = b->filters + (panels + channels - ahead) * b->taps + behind;
                    a.apart = b->taps;
                    a.lines = least(lines, ahead);
                    ahead -= a.lines;
                } else
                    fetch_expected(&a, following.count > 0 ? &following : &coming, some, lines);
                for (int64_t c = 0; a.last && b->residual && c < channels; c += BLOCK)
                    for (int64_t s = p; s < q; s++)
                        __builtin_prefetch(to + a.residual + c / BLOCK * next + s * BLOCK, 0, 2);
                a.soon = t + 1 < tiles.count ? from + q * step : below;
                of[q - p](step, some, scattered ? from : from + p * step, b->where + l, filters, to + p * BLOCK, &a);
            }
            from = below;
        }
    }
}

static void some_panels(const void *given, int64_t begin, int64_t end)
{
    const blocked_windows *const b = given;
    const int64_t rows = b->rows * b->w->batch;
    for (int64_t k = begin; k < end; k++) {
        const int64_t part = k / b->panels;
        panel_of(b, k % b->panels, rows * part / b->parts, rows * (part + 1) / b->parts,
                 some_expected(b->coming, k, k + 1, b->panels * b->parts));
    }
}

/* Rows in parts whose part of x stays near, and so many that every thread has something to do. */
static int64_t parts_of(const blocked_windows *b)
{
    const dy_blocks *const w = b->w;
    const int64_t rows = b->rows * w->batch, threads = dy_team ? dy_team->threads : 1;
    const int64_t read = w->batch * b->image / w->groups * b->groups.merged, work = rows * b->columns * b->taps * w->out;
    const int64_t near = b->panels > 1 ? least((read + NEAR - 1) / NEAR, rows * b->columns / REPAYING) : 1;
    const int64_t wanted = least((4 * threads + b->panels - 1) / b->panels, work / SHARED_WORK / b->panels);
    return most(1, least(rows, most(near, threads > 1 ? wanted : 1)));
}

/* turned: all panels of filters; null: they are turned here, or kept. */
static int turned_conv(const dy_blocks *windows, const DY_T *x, const DY_T *filters, const DY_T *turned, const DY_T *scale,
                       const DY_T *shift, const DY_T *residual, DY_T *y)
{
    dy_blocks own = *windows, *const w = &own;
    const channel_groups groups = groups_of(w);
    const int64_t deep = w->plain ? 1 : BLOCK, taps = groups.in * w->kernel[0] * w->kernel[1];
    const int64_t planes = w->batch * (w->plain ? w->in : in_whole(w->in) / BLOCK);
    const int single = w->kernel[0] == 1 && w->kernel[1] == 1;
    /* windows apart from each other are put side by side where rows fill no tile, or where many panels read them */
    const int sparse = single && (w->stride[0] > 1 || w->stride[1] > 1) && (w->spots[1] < PLACES || w->out >= REREAD);
    const int copied = sparse || is_padded(w);
    const int64_t table = (taps * 4 + 63) / 64 * 64, down = sparse ? w->stride[0] : 1, right = sparse ? w->stride[1] : 1;
    for (int axis = 0; axis < 2; axis++) {
        own.stride[axis] = sparse ? 1 : w->stride[axis];
        own.image[axis] = copied ? extent(w, axis) : w->image[axis];
    }
    const int64_t row = w->image[1] * deep, plane = w->image[0] * row;
    char *const memory = room(room_key, table + (copied ? planes * plane * sizeof(DY_T) : 0));
    if (!memory)
        return 1;
    /* what is not finite in one of several groups would come to the results of the others */
    if (groups.merged > 1 && !are_finite(x, planes * windows->image[0] * windows->image[1] * deep))
        return 1;
    if (copied) {
        const copies all = {windows, x, (DY_T *)(memory + table), deep, w->image[0], w->image[1], down, right};
        dy_share(copy_planes, &all, planes, most(1, (1 << 15) / plane));
        x = all.to;
    }
    const int flat = single && w->image[1] == w->spots[1] && w->stride[0] == 1 && w->stride[1] == 1;
    const int64_t places = w->spots[0] * w->spots[1];
    blocked_windows b = {w, groups, x, filters, 0, scale, shift, residual, y, (int32_t *)memory, plane, flat ? MOST_PLACES * deep : row,
                         deep, planes / w->batch * plane, taps, flat ? (places + MOST_PLACES - 1) / MOST_PLACES : w->spots[0],
                         flat ? MOST_PLACES : w->spots[1], places, flat, 0, panels_of(w, &groups), {0, 0}};
    const all_filters all = {&groups, filters, b.panels, w->kernel[0] * w->kernel[1]};
    b.turned = turned ? turned : kept_filters(w, filters, DY_BLOCKS_DIRECT, b.panels * taps * PANEL, turn_all, &all);
    b.parts = parts_of(&b);
    b.coming = take_expected();
    find_places(&b);
    dy_share(some_panels, &b, b.panels * b.parts, 1);
    return 0;
}

static int blocks_conv(const dy_blocks *w, const DY_T *x, const DY_T *filters, const DY_T *scale, const DY_T *shift,
                       const DY_T *residual, DY_T *y)
{
    return turned_conv(w, x, filters, 0, scale, shift, residual, y);
}

#endif
