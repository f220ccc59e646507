/* Planes without padding at the sides: what of an image lies where in them, and what the taps of a filter meet there.

   An image of one channel is copied into planes: one for each remainder by the stride, its rows end to end, with rows of
   zeros above and below.  A tap of a filter then meets for neighbouring places, also across the end of a row, what lies side by
   side: at one offset.  Whatever the width, vectors are full.  Where a tap reaches beyond the side of the image, it meets an
   element of another row, in place of which a mask puts zero: the taps of one column of a filter have one mask.

   Before the include: dy2static_convolutions.h. */

typedef __typeof__((dy_vector){0} < (dy_vector){0}) dy_bits;
typedef dy_bits dy_bits_unaligned __attribute__((aligned(sizeof(DY_T)), may_alias));

enum {
    ROWS = DY_ROWS / 3,                         /* neighbouring rows at a time: registers hold the sums of three columns */
    FLAT = 4,                                   /* vectors at a time, which hides the time that an addition takes */
    MOST_TAPS = 128, MOST_ALONG = 64,           /* in all filters of a channel; along an axis */
    MOST_KINDS = 16                             /* remainders by the strides */
};

static inline int64_t floor_mod(const int64_t a, const int64_t b) { return a - floor_div(a, b) * b; }

/* How many of `size` numbers have this remainder. */
static inline int64_t alike(const int64_t size, const int64_t remainder, const int64_t step)
{
    return (size - remainder + step - 1) / step;
}

/* What is met along an axis: tap k, of those that count, at place + shift in the plane of a remainder. */
typedef struct {
    int64_t found, tap[MOST_ALONG], shift[MOST_ALONG], remainder[MOST_ALONG];
} line;

static void add_tap(line *l, const int64_t tap, const int64_t shift, const int64_t remainder)
{
    const int64_t k = l->found++;
    l->tap[k] = tap, l->shift[k] = shift, l->remainder[k] = remainder;
}

/* The taps of a window, which meet elements of x. */
static line line_of_window(const dy_windows *w, const int axis)
{
    line l = {0};
    for (int64_t k = 0; k < w->kernel[axis]; k++) {
        const int64_t at = k * w->dilate[axis] - w->pad[axis];
        add_tap(&l, k, floor_div(at, w->stride[axis]), floor_mod(at, w->stride[axis]));
    }
    return l;
}

/* The taps that meet elements of x with this remainder, and the windows, elements of y, in which they do; by their shifts, too. */
static line line_of_element(const dy_windows *w, const int axis, const int64_t remainder)
{
    line l = {0};
    for (int64_t k = w->kernel[axis] - 1; k >= 0; k--) {
        const int64_t at = remainder + w->pad[axis] - k * w->dilate[axis];
        if (!floor_mod(at, w->stride[axis]))
            add_tap(&l, k, floor_div(at, w->stride[axis]), 0);
    }
    return l;
}

/* Planes of one size: the width of their rows, elements in front of the first, elements in all. */
typedef struct {
    int64_t pitch, front, each;
} flat_planes;

/* Planes that hold `held` rows, and in which `rows` rows of places meet what these lines say. */
static flat_planes lay_flat(const int64_t pitch, const int64_t held, const int64_t rows, const line *down, const line *across,
                            const int64_t lines)
{
    int64_t lowest = 0, highest = 0, left = 0, right = 0;
    for (int64_t k = 0; k < lines; k++) {
        for (int64_t i = 0; i < down[k].found; i++)
            lowest = least(lowest, down[k].shift[i]), highest = most(highest, down[k].shift[i]);
        for (int64_t i = 0; i < across[k].found; i++)
            left = least(left, across[k].shift[i]), right = most(right, across[k].shift[i]);
    }
    const int64_t front = rounded(-lowest * pitch - left);
    return (flat_planes){pitch, front, front + rounded((most(held, rows + highest) + ROWS) * pitch + right + FLAT * WIDTH)};
}

/* A filter by columns.  Tap i of column j finds what it meets at down[i] + across[j], and is number met[j][i] of the filter;
   shift: how far columns reach to the side, and what of them counts. */
typedef struct {
    int64_t columns, depth, down[MOST_TAPS], across[MOST_ALONG], shift[MOST_ALONG], met[MOST_TAPS];
    int is_dense;                                   /* the taps of a column meet elements of neighbouring rows */
    DY_T *masks;
} flat_filter;

/* kinds: remainders of axis 2.  Taps of `channels` filters are summed, whose planes follow each other. */
static void find_flat(flat_filter *f, const dy_windows *w, const flat_planes *planes, const line *down, const line *across,
                      const int64_t kinds, const int64_t channels)
{
    int64_t first = 0;
    f->columns = across->found;
    f->depth = down->found * channels;
    f->is_dense = 1;
    for (int64_t i = 0; i < f->depth; i++) {
        const int64_t c = i / down->found, k = i % down->found;
        f->down[i] = (c + down->remainder[k] * kinds) * planes->each + planes->front + down->shift[k] * planes->pitch;
        f->is_dense &= !i || f->down[i] == f->down[i - 1] + planes->pitch;
    }
    for (int64_t j = 0; j < across->found; j++)
        first = across->shift[j] ? first : j;
    for (int64_t j = 0; j < across->found; j++) {
        const int64_t k = j == 0 ? first : j == first ? 0 : j;          /* one that is not shifted first: it needs no mask */
        f->shift[j] = across->shift[k];
        f->across[j] = across->remainder[k] * planes->each + across->shift[k];
        for (int64_t i = 0; i < f->depth; i++) {
            const int64_t row = i / down->found * w->kernel[1] + down->tap[i % down->found];
            f->met[j * f->depth + i] = row * w->kernel[2] + across->tap[k];
        }
    }
}

/* Whether rows of this length hold few vectors that are not full. */
static inline int fills_rows(const int64_t pitch) { return (pitch + WIDTH - 1) / WIDTH * WIDTH * 2 <= pitch * 3; }

static inline int64_t strip_rows(const int64_t pitch) { return rounded(ROWS * pitch + WIDTH); }
static inline int64_t mask_length(const int64_t pitch) { return rounded(pitch + (FLAT + 1) * WIDTH); }

/* masks[j][p]: all bits where p is one of the first `counted` places of a row and meets, shifted as column j is, a place of the
   same row.  The last vector is for the last places of `rows` rows. */
static DY_T *fill_masks(flat_filter *f, const int64_t pitch, const int64_t rows, const int64_t counted, DY_T *masks)
{
    const int64_t length = mask_length(pitch), last = rows * pitch / WIDTH * WIDTH;
    f->masks = masks;
    for (int64_t j = 0; j < f->columns; j++, masks += length)
        for (int64_t p = 0; p < length; p++) {
            const int64_t place = p < length - WIDTH ? p : last + p - (length - WIDTH), met = place % pitch + f->shift[j];
            const int counts = place % pitch < counted && met >= 0 && met < pitch && (p < length - WIDTH || place < rows * pitch);
            memset(masks + p, counts ? 255 : 0, sizeof(DY_T));
        }
    return masks;
}

static void take_taps(DY_T *taps, const flat_filter *f, const DY_T *filter)
{
    for (int64_t k = 0; k < f->columns * f->depth; k++)
        taps[k] = filter[f->met[k]];
}

/* Rows of `columns` elements, which may be further apart. */
static void copy_rows(DY_T *to, const int64_t to_pitch, const DY_T *from, const int64_t from_pitch, const int64_t rows,
                      const int64_t columns)
{
    if (to_pitch == columns && from_pitch == columns)
        copy(to, from, rows * columns);
    else
        for (int64_t r = 0; r < rows; r++)
            copy(to + r * to_pitch, from + r * from_pitch, columns);
}

/* The image of a channel into planes, one for each remainder by the strides.  What is around it there is zero already. */
static void fill_flat(DY_T *planes, const flat_planes *p, const dy_windows *w, const DY_T *x)
{
    const int64_t rows = w->image[1], columns = w->image[2], down = w->stride[1], across = w->stride[2];
    planes += p->front;
    for (int64_t r = 0; r < down; r++)
        if (across == 1)
            copy_rows(planes + r * p->each, p->pitch, x + r * columns, down * columns, alike(rows, r, down), columns);
        else
            for (int64_t q = 0; q < alike(rows, r, down); q++) {
                const DY_T *const row = x + (q * down + r) * columns;
                DY_T *const to = planes + r * across * p->each + q * p->pitch;
                if (across == 2) {
                    const int64_t pairs = columns / 2;
                    DY_T *const odd = to + p->each;
#pragma omp simd
                    for (int64_t k = 0; k < pairs; k++)
                        to[k] = row[2 * k], odd[k] = row[2 * k + 1];
                    if (columns % 2)
                        to[pairs] = row[2 * pairs];
                } else
                    for (int64_t k = 0; k < columns; k++)
                        to[k % across * p->each + k / across] = row[k];
            }
}

/* x of one channel, put together of what was computed for elements of each remainder, rows of `pitch` one after the other. */
static void join_flat(DY_T *x, const dy_windows *w, const DY_T *parts, const int64_t pitch, const int64_t apart)
{
    const int64_t columns = w->image[2], down = w->stride[1], across = w->stride[2];
    for (int64_t i = 0; i < w->image[1]; i++, x += columns) {
        const DY_T *const from = parts + i % down * across * apart + i / down * pitch, *const odd = from + apart;
        if (across == 1)
            copy(x, from, columns);
        else if (across == 2) {
            const int64_t pairs = columns / 2;
#pragma omp simd
            for (int64_t k = 0; k < pairs; k++)
                x[2 * k] = from[k], x[2 * k + 1] = odd[k];
            if (columns % 2)
                x[2 * pairs] = from[pairs];
        } else
            for (int64_t k = 0; k < columns; k++)
                x[k] = from[k % across * apart + k / across];
    }
}
