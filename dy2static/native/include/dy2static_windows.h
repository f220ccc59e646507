/* Convolutions over up to three axes for generated code, forward and both derivatives, of arrays (batch, channels, *sizes).

   dy_conv_*: y from x and the filters; dy_conv_transpose_*: x from y and the filters, the derivative by the image;
   dy_conv_grad_weight_*: the filters from x and y, the derivative by them.  All three are given the windows of the first.
   What comes after a convolution (null: nothing) may be done with each image as soon as it is there.
   They return 0, or nonzero where there is not enough memory.  DY_WINDOWS_F32 and DY_WINDOWS_F64 are defined before the
   include, as wanted, and DY_WINDOWS_DEPTHWISE_F32 and DY_WINDOWS_DEPTHWISE_F64 for libraries that take depthwise filters only;
   convolutions.py sets the tables when the library is loaded. */
#ifndef DY2STATIC_WINDOWS_H
#define DY2STATIC_WINDOWS_H

#include <stdint.h>

typedef struct {
    int64_t batch, groups, in, out;             /* channels of one group */
    int64_t image[3], kernel[3], spots[3];      /* sizes of x, of the filters, of y; where there are fewer axes, 1 first */
    int64_t stride[3], pad[3], dilate[3];
    int64_t next_x, next_y;                     /* from one image of x, of y to the next, where that is more than it has; else 0 */
    int64_t algorithm;                          /* one of these, if it is for these windows */
} dy_windows;

/* How a convolution is computed, as `algorithms` of dy2static_shared_windows.h says which of them there are; the first: by rules. */
enum { DY_BY_RULES, DY_IN_PLACE, DY_GATHERED, DY_ADDED, DY_DEPTHWISE, DY_FEW_FILTERS, DY_TURNED, DY_PANELS, DY_WINOGRAD };

/* What is done with the result, image by image, while it is in the cache: `unit` turns of a body for each one; all `count` of
   them in pieces of `step`, which are whole images. */
typedef void dy_body(const void *given, int64_t begin, int64_t end);

typedef struct {
    dy_body *body;
    const void *given;
    int64_t unit, count, step;
} dy_finish;

typedef struct {
    const dy_finish *all;
    int64_t count, image;                       /* how many, and the number of the first image of the batch */
} dy_after;

/* Forward, or the derivative by the image. */
typedef int dy_convolution_f32(const dy_windows *, const float *, const float *, float *, const dy_after *);

/* The derivative by the filters. */
typedef int dy_filters_f32(const dy_windows *, const float *, const float *, float *);

#ifdef DY_STANDALONE
#include "dy2static_plain_windows.h"
#define DY_DEFINE_WINDOWS DY_DEFINE_PLAIN_WINDOWS
#else
#define DY_DEFINE_WINDOWS(T, NAME)                                                                                     \
    typedef struct {                                                                                                   \
        int (*forward)(const dy_windows *, const T *x, const T *filters, T *y, const dy_after *);                      \
        int (*transpose)(const dy_windows *, const T *y, const T *filters, T *x, const dy_after *);                    \
        int (*grad_weight)(const dy_windows *, const T *x, const T *y, T *filters);                                    \
    } dy_convolutions_##NAME;                                                                                          \
                                                                                                                       \
    static const dy_convolutions_##NAME *dy_any_convolutions_##NAME;                                                   \
    void dy2static_set_convolutions_##NAME(const void *table) { dy_any_convolutions_##NAME = table; }                  \
                                                                                                                       \
    static inline int dy_conv_##NAME(const dy_windows *w, const T *x, const T *filters, T *y, const dy_after *after)   \
    {                                                                                                                  \
        return dy_any_convolutions_##NAME->forward(w, x, filters, y, after);                                           \
    }                                                                                                                  \
    static inline int dy_conv_transpose_##NAME(const dy_windows *w, const T *y, const T *filters, T *x,                \
                                               const dy_after *after)                                                  \
    {                                                                                                                  \
        return dy_any_convolutions_##NAME->transpose(w, y, filters, x, after);                                         \
    }                                                                                                                  \
    static inline int dy_conv_grad_weight_##NAME(const dy_windows *w, const T *x, const T *y, T *filters)              \
    {                                                                                                                  \
        return dy_any_convolutions_##NAME->grad_weight(w, x, y, filters);                                              \
    }

#endif

#if defined(DY_WINDOWS_F32)
DY_DEFINE_WINDOWS(float, f32)
#endif
#if defined(DY_WINDOWS_F64)
DY_DEFINE_WINDOWS(double, f64)
#endif
#if defined(DY_WINDOWS_DEPTHWISE_F32)
DY_DEFINE_WINDOWS(float, depthwise_f32)
#endif
#if defined(DY_WINDOWS_DEPTHWISE_F64)
DY_DEFINE_WINDOWS(double, depthwise_f64)
#endif

#endif
