/* Convolutions and their derivatives in plain C, those of dy2static_windows.h with DY_STANDALONE.

   Some rows of windows at a time are unrolled into patches, which a product reads or makes (dy2static_products.h); where windows are
   the elements of the image in their order, the image is its own patches.  Of filters for few channels, what one tap adds to a row
   of the result, or takes from it, is a loop over places that stand side by side where windows step by one.  All functions are
   given memory for the patches of `dy_patch_lines` rows of windows. */
#ifndef DY2STATIC_PLAIN_WINDOWS_H
#define DY2STATIC_PLAIN_WINDOWS_H

#include <stdint.h>
#include <string.h>

enum {
    DY_PATCH_SIZE = 1 << 16,                    /* elements of patches at a time; more where that is less than so many windows, */
    DY_PATCH_COLUMNS = 256,                     /* for which it pays to read the filters once more */
    DY_FEW = 4                                  /* pairs of channels that are not worth a product */
};

static inline int64_t dy_product_of(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/* How many rows of windows are patches at a time: about the same number each time. */
static inline int64_t dy_patch_lines(const dy_windows *w)
{
    const int64_t lines = w->spots[0] * w->spots[1], row = w->spots[2], depth = w->in * dy_product_of(w->kernel);
    const int64_t by_size = DY_PATCH_SIZE / (depth * row), by_columns = (DY_PATCH_COLUMNS + row - 1) / row;
    const int64_t most = by_size > by_columns ? by_size : by_columns, parts = (lines + most - 1) / most;
    return (lines + parts - 1) / parts;
}

/* Whether windows are the elements of the image in their order. */
static inline int dy_is_image(const dy_windows *w)
{
    int is = 1;
    for (int axis = 0; axis < 3; axis++)
        is &= w->kernel[axis] == 1 && w->stride[axis] == 1 && w->pad[axis] == 0 && w->image[axis] == w->spots[axis];
    return is;
}

/* The windows from `begin` to `end` along an axis whose element at tap t lies in the image. */
static inline void dy_inside(const dy_windows *w, const int axis, const int64_t tap, int64_t *begin, int64_t *end)
{
    const int64_t first = tap * w->dilate[axis] - w->pad[axis], step = w->stride[axis];
    int64_t from = first < 0 ? (-first + step - 1) / step : 0;
    int64_t to = w->image[axis] - first <= 0 ? 0 : (w->image[axis] - first + step - 1) / step;
    to = to < w->spots[axis] ? to : w->spots[axis];
    *begin = from;
    *end = to;
}

/* The taps of one filter over one plane: FORWARD adds tap * x to y, TRANSPOSE tap * y to x, WEIGHT sums x * y into the tap. */
#define DY_DEFINE_PLAIN_WINDOWS(T, NAME)                                                                               \
    enum { DY_FORWARD_##NAME, DY_TRANSPOSE_##NAME, DY_WEIGHT_##NAME };                                                 \
                                                                                                                       \
    static inline void dy_taps_##NAME(const dy_windows *w, const int what, T *x, T *filter, T *y)                      \
    {                                                                                                                  \
        int64_t begin[3], end[3];                                                                                      \
        for (int64_t t0 = 0; t0 < w->kernel[0]; t0++) {                                                                \
            dy_inside(w, 0, t0, begin, end);                                                                           \
            for (int64_t t1 = 0; t1 < w->kernel[1]; t1++) {                                                            \
                dy_inside(w, 1, t1, begin + 1, end + 1);                                                               \
                for (int64_t t2 = 0; t2 < w->kernel[2]; t2++) {                                                        \
                    dy_inside(w, 2, t2, begin + 2, end + 2);                                                           \
                    T *const tap = filter + (t0 * w->kernel[1] + t1) * w->kernel[2] + t2;                              \
                    const int64_t step = w->stride[2];                                                                 \
                    for (int64_t s0 = begin[0]; s0 < end[0]; s0++)                                                     \
                        for (int64_t s1 = begin[1]; s1 < end[1]; s1++) {                                               \
                            const int64_t i0 = s0 * w->stride[0] + t0 * w->dilate[0] - w->pad[0];                      \
                            const int64_t i1 = s1 * w->stride[1] + t1 * w->dilate[1] - w->pad[1];                      \
                            const int64_t i2 = t2 * w->dilate[2] - w->pad[2];                                          \
                            const int64_t at = (i0 * w->image[1] + i1) * w->image[2] + i2;                             \
                            T *const row = y + (s0 * w->spots[1] + s1) * w->spots[2];                                  \
                            if (what == DY_FORWARD_##NAME) {                                                           \
                                for (int64_t s = begin[2]; s < end[2]; s++)                                            \
                                    row[s] += *tap * x[at + s * step];                                                 \
                            } else if (what == DY_TRANSPOSE_##NAME) {                                                  \
                                for (int64_t s = begin[2]; s < end[2]; s++)                                            \
                                    x[at + s * step] += *tap * row[s];                                                 \
                            } else {                                                                                   \
                                T sum = 0;                                                                             \
                                for (int64_t s = begin[2]; s < end[2]; s++)                                            \
                                    sum += x[at + s * step] * row[s];                                                  \
                                *tap += sum;                                                                           \
                            }                                                                                          \
                        }                                                                                              \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    /* Eight at a time, which compilers turn into vectors. */                                                          \
    static inline void dy_copy_##NAME(T *to, const T *from, const int64_t length)                                      \
    {                                                                                                                  \
        int64_t k = 0;                                                                                                 \
        for (; k + 8 <= length; k += 8)                                                                                \
            memcpy(to + k, from + k, 8 * sizeof(T));                                                                   \
        for (; k < length; k++)                                                                                        \
            to[k] = from[k];                                                                                           \
    }                                                                                                                  \
                                                                                                                       \
    /* What one tap meets in `rows` rows of windows of one channel: those of an image of two axes one after the other. */\
    static void dy_patch_rows_##NAME(const dy_windows *w, const int what, const int64_t tap, const int64_t first,      \
                                     const int64_t rows, T *x, T *patch)                                               \
    {                                                                                                                  \
        const int64_t width = w->spots[2], step = w->stride[2], lines = w->spots[1], next = w->stride[1] * w->image[2];\
        const int64_t t0 = tap / (w->kernel[1] * w->kernel[2]), t1 = tap / w->kernel[2] % w->kernel[1], t2 = tap % w->kernel[2];\
        int64_t begin[3], end[3];                                                                                      \
        for (int axis = 0; axis < 3; axis++) {                                                                         \
            dy_inside(w, axis, axis == 0 ? t0 : axis == 1 ? t1 : t2, begin + axis, end + axis);                        \
            end[axis] = end[axis] > begin[axis] ? end[axis] : begin[axis];                                             \
        }                                                                                                              \
        const int64_t left = begin[2] < width ? begin[2] : width, right = end[2] < width ? end[2] : width;             \
        for (int64_t row = first, until; row < first + rows; row = until) {                                            \
            const int64_t s0 = row / lines, from = row % lines;                                                        \
            const int64_t to = first + rows - s0 * lines < lines ? first + rows - s0 * lines : lines;                  \
            const int is_inside = s0 >= begin[0] && s0 < end[0];                                                       \
            const int64_t i0 = s0 * w->stride[0] + t0 * w->dilate[0] - w->pad[0];                                      \
            const int64_t i1 = from * w->stride[1] + t1 * w->dilate[1] - w->pad[1];                                    \
            int64_t at = (i0 * w->image[1] + i1) * w->image[2] + t2 * w->dilate[2] - w->pad[2];                        \
            until = row + to - from;                                                                                   \
            for (int64_t s1 = from; s1 < to; s1++, at += next, patch += width) {                                       \
                const int is_there = is_inside && s1 >= begin[1] && s1 < end[1];                                       \
                if (what == DY_TRANSPOSE_##NAME) {                                                                     \
                    for (int64_t s = left; is_there && s < right; s++)                                                 \
                        x[at + s * step] += patch[s];                                                                  \
                } else if (!is_there) {                                                                                \
                    memset(patch, 0, (size_t)width * sizeof(T));                                                       \
                } else {                                                                                               \
                    for (int64_t s = 0; s < left; s++)                                                                 \
                        patch[s] = 0;                                                                                  \
                    if (step == 1)                                                                                     \
                        dy_copy_##NAME(patch + left, x + at + left, right - left);                                     \
                    else                                                                                               \
                        for (int64_t s = left; s < right; s++)                                                         \
                            patch[s] = x[at + s * step];                                                               \
                    for (int64_t s = right; s < width; s++)                                                            \
                        patch[s] = 0;                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void dy_patches_##NAME(const dy_windows *w, const int what, const int64_t first, const int64_t rows, T *x, T *patches)\
    {                                                                                                                  \
        const int64_t taps = dy_product_of(w->kernel), plane = dy_product_of(w->image), width = rows * w->spots[2];    \
        for (int64_t i = 0; i < w->in; i++)                                                                            \
            for (int64_t tap = 0; tap < taps; tap++)                                                                   \
                dy_patch_rows_##NAME(w, what, tap, first, rows, x + i * plane, patches + (i * taps + tap) * width);    \
    }                                                                                                                  \
                                                                                                                       \
    static void dy_group_##NAME(const dy_windows *w, const int what, T *x, T *filters, T *y, T *memory)                \
    {                                                                                                                  \
        const int64_t depth = w->in * dy_product_of(w->kernel), plane = dy_product_of(w->spots), lines = w->spots[0] * w->spots[1];\
        const int is_image = dy_is_image(w);                                                                           \
        const int64_t step = is_image ? lines : dy_patch_lines(w);                                                     \
        T *const patches = is_image ? x : memory;                                                                      \
        for (int64_t line = 0; line < lines; line += step) {                                                           \
            const int64_t rows = line + step < lines ? step : lines - line, width = rows * w->spots[2];                \
            T *const part = y + line * w->spots[2];                                                                    \
            if (what != DY_TRANSPOSE_##NAME && !is_image)                                                              \
                dy_patches_##NAME(w, what, line, rows, x, patches);                                                    \
            if (what == DY_FORWARD_##NAME) {                                                                           \
                dy_gemm_##NAME(0, 0, w->out, width, depth, 1, filters, depth, patches, width, 0, part, plane);         \
            } else if (what == DY_WEIGHT_##NAME) {                                                                     \
                dy_gemm_##NAME(0, 1, w->out, depth, width, 1, part, plane, patches, width, 1, filters, depth);         \
            } else {                                                                                                   \
                dy_gemm_##NAME(1, 0, depth, width, w->out, 1, filters, depth, part, plane, 0, patches, width);         \
                if (!is_image)                                                                                         \
                    dy_patches_##NAME(w, what, line, rows, x, patches);                                                \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static inline void dy_channels_##NAME(const dy_windows *w, const int what, const int64_t image, T *x, T *filters,  \
                                          T *y, T *patches)                                                            \
    {                                                                                                                  \
        const int64_t in_plane = dy_product_of(w->image), out_plane = dy_product_of(w->spots);                         \
        const int64_t taps = dy_product_of(w->kernel), next = w->groups * w->out * out_plane;                          \
        T *const images = x + image * w->groups * w->in * in_plane;                                                    \
        T *const results = y + image * (w->next_y ? w->next_y : next);                                                 \
        for (int64_t g = 0; g < w->groups && w->in * w->out > DY_FEW; g++)                                             \
            dy_group_##NAME(w, what, images + g * w->in * in_plane, filters + g * w->out * w->in * taps,               \
                            results + g * w->out * out_plane, patches);                                                \
        for (int64_t g = 0; g < w->groups && w->in * w->out <= DY_FEW; g++)                                            \
            for (int64_t o = g * w->out; o < (g + 1) * w->out; o++)                                                    \
                for (int64_t i = 0; i < w->in; i++)                                                                    \
                    dy_taps_##NAME(w, what, images + (g * w->in + i) * in_plane, filters + (o * w->in + i) * taps,     \
                                   results + o * out_plane);                                                           \
    }                                                                                                                  \
                                                                                                                       \
    static inline void dy_finish_##NAME(const dy_after *after, const int64_t image)                                    \
    {                                                                                                                  \
        for (int64_t k = 0; after && k < after->count; k++) {                                                          \
            const dy_finish *const one = after->all + k;                                                               \
            const int64_t begin = (after->image + image) * one->unit, end = begin + one->unit;                         \
            one->body(one->given, begin, end < one->count ? end : one->count);                                         \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static int dy_conv_##NAME(const dy_windows *w, const T *x, const T *filters, T *y, const dy_after *after, T *patches)\
    {                                                                                                                  \
        const int64_t size = w->groups * w->out * dy_product_of(w->spots);                                             \
        for (int64_t image = 0; image < w->batch; image++) {                                                           \
            if (w->in * w->out <= DY_FEW)                                                                              \
                memset(y + image * (w->next_y ? w->next_y : size), 0, (size_t)size * sizeof(T));                       \
            dy_channels_##NAME(w, DY_FORWARD_##NAME, image, (T *)(uintptr_t)x, (T *)(uintptr_t)filters, y, patches);   \
            dy_finish_##NAME(after, image);                                                                            \
        }                                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    static int dy_conv_transpose_##NAME(const dy_windows *w, const T *y, const T *filters, T *x,                       \
                                        const dy_after *after, T *patches)                                             \
    {                                                                                                                  \
        const int64_t size = w->groups * w->in * dy_product_of(w->image);                                              \
        for (int64_t image = 0; image < w->batch; image++) {                                                           \
            memset(x + image * size, 0, (size_t)size * sizeof(T));                                                     \
            dy_channels_##NAME(w, DY_TRANSPOSE_##NAME, image, x, (T *)(uintptr_t)filters, (T *)(uintptr_t)y, patches); \
            dy_finish_##NAME(after, image);                                                                            \
        }                                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
                                                                                                                       \
    static int dy_conv_grad_weight_##NAME(const dy_windows *w, const T *x, const T *y, T *filters, T *patches)         \
    {                                                                                                                  \
        const int64_t size = w->groups * w->out * w->in * dy_product_of(w->kernel);                                    \
        memset(filters, 0, (size_t)size * sizeof(T));                                                                  \
        for (int64_t image = 0; image < w->batch; image++)                                                             \
            dy_channels_##NAME(w, DY_WEIGHT_##NAME, image, (T *)(uintptr_t)x, filters, (T *)(uintptr_t)y, patches);    \
        return 0;                                                                                                      \
    }

#endif
