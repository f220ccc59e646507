/* Maxima of windows of arrays in blocks of channels, and the way from and to plain arrays.

   Before the include: dy2static_blocked.h. */
/* Maxima of windows -------------------------------------------------------------------------------------------------- */

typedef struct {
    const dy_blocks *w;
    const DY_T *x;
    DY_T *y;
} pooled;

/* The first of several, and the first NaN before all; the padding is minus infinity. */
static void some_maxima(const void *given, int64_t begin, int64_t end)
{
    const pooled *const p = given;
    const dy_blocks *const w = p->w;
    const int64_t size = w->image[0] * w->image[1] * BLOCK;
    DY_T *to = p->y + begin * w->spots[0] * w->spots[1] * BLOCK;
    const dy_float_state state = dy_save_float_state();
    for (int64_t k = begin; k < end; k++)
        for (int64_t i = 0; i < w->spots[0]; i++)
            for (int64_t j = 0; j < w->spots[1]; j++, to += BLOCK) {
                const int64_t top = i * w->stride[0] - w->pad[0], left = j * w->stride[1] - w->pad[1];
                dy_vector best[IN_BLOCK];
#pragma GCC unroll 4
                for (int v = 0; v < IN_BLOCK; v++)
                    best[v] = (dy_vector){0} - __builtin_inff();
                for (int64_t r = most(0, top); r < least(w->image[0], top + w->kernel[0]); r++)
                    for (int64_t c = most(0, left); c < least(w->image[1], left + w->kernel[1]); c++) {
                        const DY_T *const from = p->x + k * size + (r * w->image[1] + c) * BLOCK;
#pragma GCC unroll 4
                        for (int v = 0; v < IN_BLOCK; v++) {
                            const dy_vector item = load(from + v * WIDTH);
                            best[v] = choose((dy_bits)(best[v] == best[v]) & ~(dy_bits)(item <= best[v]), item, best[v]);
                        }
                    }
#pragma GCC unroll 4
                for (int v = 0; v < IN_BLOCK; v++)
                    store(to + v * WIDTH, best[v]);
            }
    dy_restore_float_state(state);
}

static void blocks_max(const dy_blocks *w, const DY_T *x, DY_T *y)
{
    const pooled all = {w, x, y};
    const int64_t each = w->spots[0] * w->spots[1] * w->kernel[0] * w->kernel[1] * BLOCK;
    dy_share(some_maxima, &all, w->batch * w->in / BLOCK, most(1, (1 << 15) / each));
}

/* From and to plain arrays ------------------------------------------------------------------------------------------- */

typedef struct {
    const DY_T *x;
    DY_T *y;
    int64_t places;
} turned;

static void some_blocks(const void *given, int64_t begin, int64_t end)
{
    const turned *const t = given;
    for (int64_t k = begin; k < end; k++)
        turn(t->y + k * BLOCK * t->places, BLOCK, t->x + k * BLOCK * t->places, t->places, BLOCK, t->places);
}

static void some_back(const void *given, int64_t begin, int64_t end)
{
    const turned *const t = given;
    for (int64_t k = begin; k < end; k++) {
        const DY_T *const from = t->x + k * BLOCK * t->places;
        DY_T *const to = t->y + k * BLOCK * t->places;
        int64_t p = 0;
        for (; p + BLOCK <= t->places; p += BLOCK)
            turn_square(from + p * BLOCK, BLOCK, to + p, t->places);
        for (; p < t->places; p++)
            for (int64_t c = 0; c < BLOCK; c++)
                to[c * t->places + p] = from[p * BLOCK + c];
    }
}

static void in_blocks(dy_body *body, const int64_t batch, const int64_t channels, const int64_t places, const DY_T *x, DY_T *y)
{
    const turned all = {x, y, places};
    dy_share(body, &all, batch * channels / BLOCK, most(1, (1 << 15) / (BLOCK * places)));
}

static void blocks_of(int64_t batch, int64_t channels, int64_t places, const DY_T *x, DY_T *y)
{
    in_blocks(some_blocks, batch, channels, places, x, y);
}

static void blocks_back(int64_t batch, int64_t channels, int64_t places, const DY_T *x, DY_T *y)
{
    in_blocks(some_back, batch, channels, places, x, y);
}
