/* Whether the filters of a convolution are finite; threads share them.

   Before the include: dy2static_planes.h and dy2static_shares.h. */
enum { CHECKED = 1 << 17 };                     /* filters that a share looks at */

static int64_t filters_of(const dy_windows *w) { return w->out * w->in * count(w->kernel); }

typedef struct {
    const DY_T *filters;
    int *failed;
} checked_filters;

static void check_filters(const void *given, int64_t begin, int64_t end)
{
    const checked_filters *const c = given;
    if (!are_finite(c->filters + begin, end - begin))
        __atomic_store_n(c->failed, 1, __ATOMIC_RELAXED);
}

static int are_filters_finite(const dy_windows *w, const DY_T *filters)
{
    int failed = 0;
    const checked_filters all = {filters, &failed};
    dy_share_freely(check_filters, &all, w->groups * filters_of(w), CHECKED);
    return !failed;
}
