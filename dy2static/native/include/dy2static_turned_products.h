/* C = alpha * A trans(B) + beta * C for few rows of A, computed as the transposed product (part of dy2static_gemm.h).

   B is the larger matrix, and to pack its panels would mean to transpose all of it.  So the roles change: panels are packed of A,
   transposed, once, and the rows of B are read where they are, once.  Tiles hold a part of the transposed C. */

enum {
    TURNED_ROWS = DY_BYTES == 64 ? 255 : 512,       /* of A: more repay that B is packed; */
    FEWER_TURNED_ROWS = DY_BYTES == 64 ? 192 : 96,  /* so do more than these, where rows of B are a multiple of SETS apart: */
    LEAST_PACKED_ROWS = 32,                         /* for which B is packed where it has fewer rows than A */
    SETS = 4096,                                    /* bytes, after which lines fall into one set of the first cache again */
    BESIDE_PANELS = 8,                              /* for so many at most, rows of A are not packed */
    CHUNK = 3,                                      /* rows of B that are addressed from one register */
    SOON = 4,                                       /* lines of the next panel that are fetched with each line of the rows of a tile */
    LONG = 12,                                      /* rows of a tile of one vector: fewer sums would wait for each other */
    MOST_TURNED = (DY_BYTES == 32 ? 16 : 8) * DY_ROWS,     /* rows of A for which B is read once */
    TURNED_COLUMNS = DY_BYTES == 16 ? DY_ROWS : 48          /* of C that are turned at a time: whole lines, and whole tiles */
};

#ifdef DY_SQUARES
enum { HAS_SQUARES = sizeof(DY_T) == sizeof(float) };
#else
enum { HAS_SQUARES = 0 };
#endif

/* Whether lines of all rows of C fall into one set of the cache. */
static int falls_together(const int64_t ldc)
{
    return ldc * sizeof(DY_T) % SETS == 0;
}

/* Columns of C that are turned at a time.  With the longest vectors it pays for squares, and where lines fall into one set. */
static int64_t turned_columns(const int64_t ldc)
{
    return DY_BYTES == 64 && !HAS_SQUARES && !falls_together(ldc) ? DY_ROWS : TURNED_COLUMNS;
}

/* One step of all sums: elements of rows of B, `next` behind those of `at`, times a row of a panel. */
DY_INLINE void add_turned(const int rows, const int vectors, const DY_T *const *at, const int next, const int64_t ldb, const DY_T *panel,
                          dy_vector sum[LONG][2])
{
    dy_vector right[2];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) {
        right[v] = load(panel + v * WIDTH);
        if (rows > 1)
            IN_REGISTER(right[v]);
    }
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
        add_products(vectors, at[i / CHUNK] + i % CHUNK * ldb + next, right, sum[i]);
    if (rows * vectors == 1)
        IN_REGISTER(sum[0][0]);
}

/* `rows` rows of B, `ldb` apart, times a panel: up to COLUMNS elements for each row, at `to`, `next` apart, to which `keep` times what is
   there is added.  coming: rows, `apart`, that are fetched meanwhile, or null.  soon: SOON * depth elements that come to the second cache
   meanwhile, or null.  ahead: steps of which the panel is fetched early. */
DY_INLINE void turned_tile(const int rows, const int vectors, const int ahead, const int64_t depth, const DY_T *b, const int64_t ldb,
                           const DY_T *coming, const int64_t apart, const DY_T *soon, const DY_T *panel, const DY_T alpha,
                           const DY_T keep, DY_T *to, const int64_t next)
{
    dy_vector sum[LONG][2];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++)
            sum[i][v] = (dy_vector){0};
    if (next != COLUMNS)                                /* a part of C, which may be far away */
#pragma GCC unroll 12
        for (int i = 0; i < rows; i++)
            __builtin_prefetch(to + i * next, 1);
    const DY_T *at[LONG / CHUNK];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i += CHUNK)
        at[i / CHUNK] = b + i * ldb;
    for (int64_t l = 0; l < depth;) {
        const int64_t end = depth - l < LINE ? depth : l + LINE;
        if (coming)
#pragma GCC unroll 12
            for (int i = 0; i < rows; i++)
                __builtin_prefetch(coming + i * apart + l, 0, 2);
        if (soon)
#pragma GCC unroll 4
            for (int line = 0; line < SOON; line++)
                __builtin_prefetch(soon + SOON * l + line * LINE, 0, 2);
        for (; l + 2 <= end; l += 2) {
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++, panel += vectors * WIDTH) {
#pragma GCC unroll 2
                for (int v = 0; ahead && v < vectors; v++)
                    __builtin_prefetch(panel + (ahead * vectors + v) * WIDTH);
                add_turned(rows, vectors, at, half, ldb, panel, sum);
            }
#pragma GCC unroll 4
            for (int i = 0; i < rows; i += CHUNK)
                at[i / CHUNK] += 2;
        }
        for (; l < end; l++, panel += vectors * WIDTH) {
            add_turned(rows, vectors, at, 0, ldb, panel, sum);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i += CHUNK)
                at[i / CHUNK]++;
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            DY_T *const place = to + i * next + v * WIDTH;
            store(place, keep == 0 ? alpha * sum[i][v] : alpha * sum[i][v] + keep * load(place));
        }
}

#define DY_TURNED_TILE(NAME, ROWS)                                                                                  \
    static __attribute__((noinline)) int NAME(const int vectors, const int64_t depth, const DY_T *b,                \
                                              const int64_t ldb, const DY_T *coming, const DY_T *panel,             \
                                              const DY_T alpha, const DY_T keep, DY_T *to, const int64_t next)      \
    {                                                                                                               \
        if (vectors == 2)                                                                                           \
            turned_tile(ROWS, 2, 0, depth, b, ldb, coming, ldb, 0, panel, alpha, keep, to, next);                        \
        else                                                                                                        \
            turned_tile(ROWS, 1, 0, depth, b, ldb, coming, ldb, 0, panel, alpha, keep, to, next);                        \
        return ROWS;                                                                                                \
    }

#if DY_ROWS == 12
DY_TURNED_TILE(turned_12, 12)

/* A tile of a panel that is not near. */
static __attribute__((noinline)) int beside_12(const int vectors, const int64_t depth, const DY_T *b, const int64_t ldb,
                                               const DY_T *coming, const int64_t apart, const DY_T *soon, const DY_T *panel,
                                               const DY_T alpha, const DY_T keep, DY_T *to, const int64_t next)
{
    if (vectors == 2)
        turned_tile(12, 2, PACKED_AHEAD, depth, b, ldb, coming, apart, soon, panel, alpha, keep, to, next);
    else
        turned_tile(12, 1, PACKED_AHEAD, depth, b, ldb, coming, apart, soon, panel, alpha, keep, to, next);
    return 12;
}
#else
static __attribute__((noinline)) int turned_long(const int64_t depth, const DY_T *b, const int64_t ldb, const DY_T *coming,
                                                 const DY_T *panel, const DY_T alpha, DY_T *to, const int64_t next)
{
    turned_tile(LONG, 1, 0, depth, b, ldb, coming, ldb, 0, panel, alpha, 0, to, next);
    return LONG;
}
#endif
DY_TURNED_TILE(turned_6, 6)
DY_TURNED_TILE(turned_5, 5)
DY_TURNED_TILE(turned_4, 4)
DY_TURNED_TILE(turned_3, 3)
DY_TURNED_TILE(turned_2, 2)
DY_TURNED_TILE(turned_1, 1)

/* A tile of as many of the rows that are left as it takes; gives their number. */
static int turned_rows(const int64_t left, const int vectors, const int64_t depth, const DY_T *b, const int64_t ldb,
                       const DY_T *coming, const DY_T *panel, const DY_T alpha, const DY_T keep, DY_T *to, const int64_t next)
{
#if DY_ROWS == 12
    if (left >= 12)
        return turned_12(vectors, depth, b, ldb, coming, panel, alpha, keep, to, next);
#endif
    switch (left < 12 && left > 6 ? (left + 1) / 2 : left) {     /* a tile of one row would wait for its sums */
    case 5: return turned_5(vectors, depth, b, ldb, coming, panel, alpha, keep, to, next);
    case 4: return turned_4(vectors, depth, b, ldb, coming, panel, alpha, keep, to, next);
    case 3: return turned_3(vectors, depth, b, ldb, coming, panel, alpha, keep, to, next);
    case 2: return turned_2(vectors, depth, b, ldb, coming, panel, alpha, keep, to, next);
    case 1: return turned_1(vectors, depth, b, ldb, coming, panel, alpha, keep, to, next);
    default: return turned_6(vectors, depth, b, ldb, coming, panel, alpha, keep, to, next);
    }
}

/* The same where the panel is not near. */
static int beside_rows(const int64_t left, const int vectors, const int64_t depth, const DY_T *b, const int64_t ldb,
                       const DY_T *coming, const int64_t apart, const DY_T *soon, const DY_T *panel, const DY_T alpha,
                       const DY_T keep, DY_T *to, const int64_t next)
{
#if DY_ROWS == 12
    if (left >= 12)
        return beside_12(vectors, depth, b, ldb, coming, apart, soon, panel, alpha, keep, to, next);
#endif
    (void)soon;                                 /* AVX-512 only */
    return turned_rows(left, vectors, depth, b, ldb, apart == ldb ? coming : 0, panel, alpha, keep, to, next);
}

/* LONG rows of B times a panel.  coming: as many rows that are fetched meanwhile, or null. */
static int turned_longs(const int vectors, const int64_t depth, const DY_T *b, const int64_t ldb, const DY_T *coming, const DY_T *panel,
                        const DY_T alpha, DY_T *to)
{
#if DY_ROWS == 12
    return turned_12(vectors, depth, b, ldb, coming, panel, alpha, 0, to, COLUMNS);
#else
    if (vectors == 1)
        return turned_long(depth, b, ldb, coming, panel, alpha, to, COLUMNS);
    for (int r = 0; r < LONG; r += 6)
        turned_6(2, depth, b + r * ldb, ldb, coming ? coming + r * ldb : 0, panel, alpha, 0, to + r * COLUMNS, COLUMNS);
    return LONG;
#endif
}

/* Of four columns of a tile, the rows that come in eights, to four rows of C; gives how many rows that are. */
DY_INLINE int put_eights(const DY_T *tile, const int height, const DY_T beta, DY_T *c, const int64_t ldc)
{
    int next = 0;
#ifdef DY_EIGHTS
    for (; sizeof(DY_T) == sizeof(float) && next + 8 <= height; next += 8) {
        dy_eight turned[4];
        turn_eights((const float *)tile + next * COLUMNS, COLUMNS, turned);
#pragma GCC unroll 4
        for (int t = 0; t < 4; t++) {
            dy_eight_unaligned *const at = (dy_eight_unaligned *)((float *)c + t * ldc + next);
            *at = beta == 0 ? turned[t] : turned[t] + (float)beta * *at;
        }
    }
#else
    (void)tile, (void)height, (void)beta, (void)c, (void)ldc;
#endif
    return next;
}

/* Of sixteen columns of a tile, the rows that come in sixteens, to sixteen rows of C: whole lines; gives how many rows that are. */
DY_INLINE int put_squares(const DY_T *tile, const int height, const DY_T beta, DY_T *c, const int64_t ldc)
{
    int next = 0;
#ifdef DY_SQUARES
    for (; sizeof(DY_T) == sizeof(float) && next + 16 <= height; next += 16) {
        float *const to = (float *)c + next, turned[256] __attribute__((aligned(64)));
        if (beta == 0) {
            turn_square((const float *)tile + next * COLUMNS, COLUMNS, to, ldc);
            continue;
        }
        turn_square((const float *)tile + next * COLUMNS, COLUMNS, turned, 16);
        for (int t = 0; t < 16; t++) {
            dy_sixteen_unaligned *const at = (dy_sixteen_unaligned *)(to + t * ldc);
            *at = *(const dy_sixteen *)(turned + 16 * t) + (float)beta * *at;
        }
    }
#else
    (void)tile, (void)height, (void)beta, (void)c, (void)ldc;
#endif
    return next;
}

/* C = tile + beta * C, where the tile is transposed: `height` rows, COLUMNS apart, for as many columns of C; `columns` for its rows. */
static void put_turned(const DY_T *tile, const int height, const int64_t columns, const DY_T beta, DY_T *c, const int64_t ldc)
{
    const int64_t sixteens = HAS_SQUARES && !falls_together(ldc) ? columns / 16 * 16 : 0;
    int squares = 0;                                    /* rows of the tile that are done of these columns */
    for (int64_t s = 0; s < sixteens; s += 16)
        squares = put_squares(tile + s, height, beta, c + s * ldc, ldc);
    int64_t s = 0;
    for (; s + 4 <= columns && height >= 4; s += 4) {
        int next = s < sixteens ? squares : put_eights(tile + s, height, beta, c + s * ldc, ldc);
        for (; next < height; next += 4) {
            const int r = next + 4 > height ? height - 4 : next;        /* the last ones overlap: they are not added twice */
            DY_T *const to = c + s * ldc + r;
            if (beta == 0) {
                transpose(tile + r * COLUMNS + s, COLUMNS, to, ldc);
                continue;
            }
            DY_T part[16] __attribute__((aligned(64)));
            transpose(tile + r * COLUMNS + s, COLUMNS, part, 4);
            for (int t = 0; t < 4; t++) {
                dy_quad_unaligned *const at = (dy_quad_unaligned *)(to + t * ldc);
                const dy_quad before = *at, sum = *(const dy_quad *)(part + 4 * t) + beta * before;
                *at = sum;
                for (int u = 0; u < next - r; u++)
                    to[t * ldc + u] = before[u];
            }
        }
    }
    for (; s < columns; s++)
        for (int r = s < sixteens ? squares : 0; r < height; r++)
            c[s * ldc + r] = tile[r * COLUMNS + s] + (beta == 0 ? 0 : beta * c[s * ldc + r]);
}

/* Whether A has few enough rows: fewer than B has, which is the matrix that is not packed, unless those of B would leave much of their
   panels empty.  That B may have fewer was measured with AVX2 and AVX-512. */
static int is_turned(const int64_t m, const int64_t n, const int64_t ldb)
{
    const int64_t panels = (n + COLUMNS - 1) / COLUMNS * COLUMNS;
    const int has_fewer = DY_BYTES == 64 ? n <= m : DY_BYTES == 32 && 3 * n < 4 * m;        /* whether B has */
    if (has_fewer && m >= LEAST_PACKED_ROWS && (n <= COLUMNS || 5 * panels <= 6 * n))
        return 0;
    return m <= (ldb * sizeof(DY_T) % SETS ? TURNED_ROWS : FEWER_TURNED_ROWS);
}

/* Whether rows of A leave little of their vectors empty; else packing a B that is near costs less. */
static int fills_vectors(const int64_t m)
{
    return (m + WIDTH - 1) / WIDTH * WIDTH * 5 <= m * 7;
}

/* Rows of A that are panels at a time, about as many each time: as the memory for them allows. */
static int64_t turned_height(const int64_t m, const int64_t k)
{
    const int64_t fit = 8 * DY_ROWS * STRIDE / part_of_depth(k) / COLUMNS * COLUMNS, most = fit < MOST_TURNED ? fit : MOST_TURNED;
    const int64_t times = (m + most - 1) / most;
    return ((m + times - 1) / times + COLUMNS - 1) / COLUMNS * COLUMNS;
}

/* At most `turned_height` rows of A. */
static void turned_product(const int64_t m, const int64_t n, const int64_t k, const DY_T alpha, const DY_T *a, const int64_t lda,
                           const DY_T *b, const int64_t ldb, const DY_T beta, DY_T *c, const int64_t ldc)
{
    enum { PART = TURNED_COLUMNS * COLUMNS };
    DY_T *const panels = at_hand(own_block);
    DY_T tiles[(MOST_TURNED + COLUMNS - 1) / COLUMNS * PART] __attribute__((aligned(64)));
    const int64_t whole = part_of_depth(k), together = turned_columns(ldc);
    const int is_half = (m - 1) % COLUMNS < WIDTH;      /* the last panel */
    for (int64_t l = 0; l < k; l += whole) {
        const int64_t depth = k - l < whole ? k - l : whole;
        for (int64_t i = 0; i < m; i += COLUMNS) {
            const int64_t columns = m - i < COLUMNS ? m - i : COLUMNS;
            pack_panel(1, depth, columns, columns > WIDTH ? COLUMNS : WIDTH, a + i * lda + l, lda, panels + i * whole);
        }
        for (int64_t first = 0; first < n; first += together) {
            const int64_t end = n - first < together ? n : first + together;
            for (int64_t j = first, height = 0; j < end; j += height) {
                const int64_t step = is_half && end - j >= LONG ? LONG : DY_ROWS;
                const DY_T *const right = b + j * ldb + l, *const coming = j + 2 * step <= n ? right + step * ldb : 0;
                for (int64_t i = 0; i < m; i += COLUMNS) {
                    const DY_T *const panel = panels + i * whole, *const soon = i ? 0 : coming;
                    DY_T *const to = tiles + i / COLUMNS * PART + (j - first) * COLUMNS;
                    const int vectors = m - i > WIDTH ? 2 : 1;
                    height = step == DY_ROWS ? turned_rows(end - j, vectors, depth, right, ldb, soon, panel, alpha, 0, to, COLUMNS)
                                             : turned_longs(vectors, depth, right, ldb, soon, panel, alpha, to);
                }
            }
            for (int64_t i = 0; i < m; i += COLUMNS)
                put_turned(tiles + i / COLUMNS * PART, end - first, m - i < COLUMNS ? m - i : COLUMNS, l ? 1 : beta,
                           c + i * ldc + first, ldc);
        }
    }
}
