/* The clock of native code that is profiled: what each part took in nanoseconds, and how often it ran. */
#ifndef DY2STATIC_CLOCK_H
#define DY2STATIC_CLOCK_H

#include <stdint.h>

struct dy_time {
    int64_t seconds, nanoseconds;
};

extern int clock_gettime(int, struct dy_time *);

#if defined(__APPLE__)
#define DY_MONOTONIC 6
#else
#define DY_MONOTONIC 1
#endif

static inline int64_t dy_now(void)
{
    struct dy_time now;
    clock_gettime(DY_MONOTONIC, &now);
    return now.seconds * 1000000000 + now.nanoseconds;
}

#define DY_CLOCK(count)                                                                     \
    static int64_t dy_times[2 * (count)];                                                   \
    static __thread int64_t dy_last;                                                        \
    int64_t *dy2static_clock(void) { return dy_times; }                                     \
    static void dy_start(void) { dy_last = dy_now(); }                                      \
    static void dy_tick(int part)                                                           \
    {                                                                                       \
        dy_times[2 * part] += dy_now() - dy_last;                                           \
        ++dy_times[2 * part + 1];                                                           \
        dy_last = dy_now();                                                                 \
    }

#endif
