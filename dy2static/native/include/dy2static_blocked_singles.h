/* Convolutions of images of one place in blocks of channels (squeeze and excitation): products of vectors with filters as they are in
   memory.  To turn filters that are used once for each image would take several times as long as the sums. */
#ifndef DY2STATIC_BLOCKED_SINGLES_H
#define DY2STATIC_BLOCKED_SINGLES_H

#include "dy2static_blocked.h"

/* next: from one image to the next. */
typedef struct {
    const dy_blocks *w;
    const DY_T *x, *filters, *scale, *shift, *residual;
    DY_T *y;
    int64_t next;
} single_places;

static int is_single(const dy_blocks *w)
{
    int single = w->groups == 1 && w->in % WIDTH == 0;
    for (int axis = 0; axis < 2; axis++)
        single &= w->image[axis] == 1 && w->kernel[axis] == 1 && w->spots[axis] == 1 && w->pad[axis] == 0;
    return single;
}

/* Sums of `count` numbers of each of some images times each of some filters. */
DY_INLINE void single_tile(const int images, const int filters, const int64_t count, const DY_T *x, const int64_t next,
                           const DY_T *f, DY_T sums[2][BLOCK])
{
    dy_vector sum[8];
#pragma GCC unroll 8
    for (int s = 0; s < images * filters; s++)
        sum[s] = (dy_vector){0};
    for (int64_t k = 0; k < count; k += WIDTH)
#pragma GCC unroll 8
        for (int o = 0; o < filters; o++) {
            const dy_vector right = load(f + o * count + k);
#pragma GCC unroll 2
            for (int n = 0; n < images; n++)
                sum[n * filters + o] += load(x + n * next + k) * right;
        }
    for (int s = 0; s < images * filters; s++) {
        DY_T total = 0;
        for (int t = 0; t < WIDTH; t++)
            total += sum[s][t];
        sums[s / filters][s % filters] = total;
    }
}

/* The sums of a block of channels for one image or two. */
static void single_sums(const single_places *s, const int64_t image, const int64_t images, const int64_t o, DY_T sums[2][BLOCK])
{
    const int64_t in = s->w->in, there = least(BLOCK, s->w->out - o);
    const DY_T *const x = s->x + image * s->next, *const f = s->filters + o * in;
    int64_t k = 0;
    memset(sums, 0, 2 * BLOCK * sizeof(DY_T));
    for (; images == 1 && k + 8 <= there; k += 8)
        single_tile(1, 8, in, x, 0, f + k * in, (DY_T (*)[BLOCK])(sums[0] + k));
    for (; images == 2 && k + 4 <= there; k += 4)
        single_tile(2, 4, in, x, s->next, f + k * in, (DY_T (*)[BLOCK])(sums[0] + k));
    for (; k < there; k++)
        for (int64_t n = 0; n < images; n++)
            single_tile(1, 1, in, x + n * s->next, 0, f + k * in, (DY_T (*)[BLOCK])(sums[n] + k));
}

/* What follows the sums. */
static void finish_single(const single_places *s, const int64_t image, const int64_t o, const DY_T *sums)
{
    const dy_blocks *const w = s->w;
    const int64_t there = least(BLOCK, w->out - o), at = image * in_whole(w->out) + o;
    DY_T scale[BLOCK], shift[BLOCK];
    for (int64_t c = 0; c < BLOCK; c++) {
        scale[c] = s->scale && c < there ? s->scale[o + c] : 1;
        shift[c] = s->shift && c < there ? s->shift[o + c] : 0;
    }
    for (int v = 0; v < BLOCK; v += WIDTH) {
        dy_vector sum = load(sums + v) * load(scale + v) + load(shift + v);
        if (s->residual)
            sum += load(s->residual + at + v);
        store(s->y + at + v, w->relu ? limited(sum, (dy_vector){0} + w->cap) : sum);
    }
}

static void some_singles(const void *given, int64_t begin, int64_t end)
{
    const single_places *const s = given;
    DY_T sums[2][BLOCK] __attribute__((aligned(64)));
    for (int64_t o = begin * BLOCK; o < end * BLOCK; o += BLOCK)
        for (int64_t n = 0, images; n < s->w->batch; n += images) {
            images = least(2, s->w->batch - n);
            single_sums(s, n, images, o, sums);
            for (int64_t k = 0; k < images; k++)
                finish_single(s, n + k, o, sums[k]);
        }
}

static int single_conv(const dy_blocks *w, const DY_T *x, const DY_T *filters, const DY_T *scale, const DY_T *shift, const DY_T *residual,
                       DY_T *y)
{
    const single_places all = {w, x, filters, scale, shift, residual, y, w->plain ? w->in : in_whole(w->in)};
    take_expected();
    dy_share(some_singles, &all, in_whole(w->out) / BLOCK, most(1, SHARED_WORK / 8 / (w->batch * w->in * BLOCK)));
    return 0;
}

#endif
