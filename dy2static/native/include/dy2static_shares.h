/* Work in shares for several threads: what generated code and libraries of ours know of the team (dy2static_team.h).

   A body does the elements from `begin` to `end` of `count`.  With `dy_share` each call does one share: `step` elements, the
   last one what is left.  That holds for any number of threads, so that what is summed by shares is the same for all of them.
   With `dy_share_freely` one thread does all in one call: where it is more work to do several shares.  With `dy_share_evenly` there is
   one share for each thread, a multiple of `grain`.
   With DY_STANDALONE there is no team. */
#ifndef DY2STATIC_SHARES_H
#define DY2STATIC_SHARES_H

#include <stdint.h>
#include <string.h>

typedef void dy_body(const void *given, int64_t begin, int64_t end);

#ifdef DY_STANDALONE
static __attribute__((unused)) void dy_share(dy_body *body, const void *given, const int64_t count, const int64_t step)
{
    for (int64_t begin = 0; begin < count; begin += step)
        body(given, begin, begin + step < count ? begin + step : count);
}

static __attribute__((unused)) void dy_share_evenly(dy_body *body, const void *given, const int64_t count, const int64_t grain)
{
    (void)grain;
    body(given, 0, count);
}
#else
static const struct {
    void (*run)(dy_body *, const void *, int64_t, int64_t);
    int64_t threads;
} *dy_team;                     /* null where there is one thread only */

void dy2static_set_team(const void *team) { dy_team = team; }

static __attribute__((noinline, unused)) void dy_share(dy_body *body, const void *given, const int64_t count, const int64_t step)
{
    if (dy_team && count > step) {
        dy_team->run(body, given, count, step);
        return;
    }
    for (int64_t begin = 0; begin < count; begin += step)
        body(given, begin, begin + step < count ? begin + step : count);
}

static __attribute__((noinline, unused)) void dy_share_freely(dy_body *body, const void *given, const int64_t count, const int64_t step)
{
    if (dy_team && count > step)
        dy_team->run(body, given, count, -step);
    else
        body(given, 0, count);
}

static __attribute__((noinline, unused)) void dy_share_evenly(dy_body *body, const void *given, const int64_t count, const int64_t grain)
{
    const int64_t grains = grain * (dy_team ? dy_team->threads : 1);
    dy_share_freely(body, given, count, (count + grains - 1) / grains * grain);
}
#endif

/* The sums of `count` shares, `size` elements each, in their order. */
#define DY_DEFINE_JOIN(T, NAME)                                                                                         \
    static __attribute__((noinline, unused)) void dy_join_##NAME(T *to, const T *sums, int64_t count, int64_t size)    \
    {                                                                                                                  \
        memcpy(to, sums, size * sizeof(T));                                                                            \
        for (int64_t share = 1; share < count; share++)                                                                \
            _Pragma("omp simd")                                                                                        \
            for (int64_t k = 0; k < size; k++)                                                                         \
                to[k] += sums[share * size + k];                                                                       \
    }

DY_DEFINE_JOIN(float, f32)
DY_DEFINE_JOIN(double, f64)

#endif
