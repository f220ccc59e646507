/* Images of convolutions in planes, and where windows find their elements there.

   The image of one group is copied once, with its padding, into planes: where windows step by s, one plane for each remainder
   by s.  In these planes, what one tap of the filters meets in neighbouring windows lies side by side.

   Before the include: DY_T. */
#ifndef DY2STATIC_PLANES_H
#define DY2STATIC_PLANES_H

#include "dy2static_tiles.h"
#include "dy2static_windows.h"

enum { SLACK = 2 * COLUMNS };               /* tiles read up to a panel behind the last place */

static inline int64_t count(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }
static inline int64_t most(const int64_t a, const int64_t b) { return a > b ? a : b; }
static inline int64_t least(const int64_t a, const int64_t b) { return a < b ? a : b; }
static inline int64_t rounded(const int64_t n) { return (n + 15) / 16 * 16; }
static inline int64_t floor_div(const int64_t a, const int64_t b) { return a / b - (a % b < 0); }
static inline int64_t step_of_x(const dy_windows *w) { return w->next_x ? w->next_x : w->groups * w->in * count(w->image); }
static inline int64_t step_of_y(const dy_windows *w) { return w->next_y ? w->next_y : w->groups * w->out * count(w->spots); }
static inline int64_t packed_rows(const int64_t depth) { return (depth + DEPTH - 1) / DEPTH * STRIDE; }

/* Whether windows of one tap step by one along an axis, or there is one window, which is the whole axis. */
static inline int is_pointwise(const dy_windows *w, const int axis)
{
    return w->kernel[axis] == 1 && w->stride[axis] == 1 && !w->pad[axis] && w->image[axis] == w->spots[axis];
}

static inline int is_whole(const dy_windows *w, const int axis)
{
    return w->kernel[axis] == w->image[axis] && w->spots[axis] == 1 && !w->pad[axis] && (w->dilate[axis] == 1 || w->image[axis] == 1);
}

/* The same windows over fewer axes: filters of one tap that step by one have one long axis, and so have several windows as wide as the
   image, whose rows follow each other in memory. */
static dy_windows flattened(const dy_windows *w)
{
    dy_windows flat = *w;
    if (is_pointwise(w, 0) && is_pointwise(w, 1) && is_pointwise(w, 2)) {
        for (int axis = 0; axis < 3; axis++)
            flat.image[axis] = flat.spots[axis] = axis < 2 ? 1 : count(w->image);
        return flat;
    }
    for (int k = 0; k < 2 && flat.spots[1] > 1 && is_whole(&flat, 2) && (flat.dilate[1] == 1 || flat.image[2] == 1); k++) {
        const int64_t row = flat.image[2];
        flat.image[2] = row * flat.image[1], flat.kernel[2] = row * flat.kernel[1];
        flat.stride[2] = row * flat.stride[1], flat.pad[2] = row * flat.pad[1];
        flat.spots[2] = flat.spots[1], flat.dilate[2] = flat.dilate[1];
        flat.image[1] = flat.image[0], flat.kernel[1] = flat.kernel[0], flat.stride[1] = flat.stride[0];
        flat.pad[1] = flat.pad[0], flat.spots[1] = flat.spots[0], flat.dilate[1] = flat.dilate[0];
        flat.image[0] = flat.kernel[0] = flat.stride[0] = flat.spots[0] = flat.dilate[0] = 1;
        flat.pad[0] = 0;
    }
    return flat;
}

/* Whether the image is its own plane: windows of one element, and whole vectors, behind which nothing is read. */
static int is_plane(const dy_windows *w)
{
    return count(w->spots) % WIDTH == 0 && is_pointwise(w, 0) && is_pointwise(w, 1) && is_pointwise(w, 2);
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

/* The same for four remainders that follow each other, whose planes are `each` apart, where no row leaves x at a side. */
static void fill_four_planes(DY_T *to, const int64_t each, const int64_t *plane, const DY_T *x, const int64_t *sizes,
                             const int64_t *step, const int64_t *first)
{
    for (int64_t q0 = 0; q0 < plane[0]; q0++)
        for (int64_t q1 = 0; q1 < plane[1]; q1++, to += plane[2]) {
            const int64_t i0 = q0 * step[0] + first[0], i1 = q1 * step[1] + first[1], apart = step[2];
            if (i0 < 0 || i0 >= sizes[0] || i1 < 0 || i1 >= sizes[1]) {
                for (int t = 0; t < 4; t++)
                    memset(to + t * each, 0, plane[2] * sizeof(DY_T));
                continue;
            }
            const DY_T *row = x + (i0 * sizes[1] + i1) * sizes[2] + first[2];
            int64_t q = 0;
            for (; q + 4 <= plane[2]; q += 4, row += 4 * apart)
                transpose_rows(row, row + apart, row + 2 * apart, row + 3 * apart, to + q, each);
            for (; q < plane[2]; q++, row += apart)
                for (int t = 0; t < 4; t++)
                    to[t * each + q] = row[t];
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
                for (int64_t r2 = 0, some; r2 < l->remainders[2]; r2 += some, to += some * l->each) {
                    const int64_t first[3] = {r0 - w->pad[0], r1 - w->pad[1], r2 - w->pad[2]};
                    const int64_t last = first[2] + (l->plane[2] - 1) * w->stride[2] + 3;
                    some = r2 + 4 <= l->remainders[2] && first[2] >= 0 && last < w->image[2] ? 4 : 1;
                    if (some == 4)
                        fill_four_planes(to, l->each, l->plane, x, w->image, w->stride, first);
                    else
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

/* What follows a convolution, for some images that have just been computed. */
static void finish(const dy_after *after, const int64_t begin, const int64_t end)
{
    for (int64_t k = 0; after && k < after->count; k++) {
        const dy_finish *const f = after->all + k;
        for (int64_t i = after->image + begin; i < after->image + end; i++)
            f->body(f->given, i * f->unit, (i + 1) * f->unit);
    }
}

#endif
