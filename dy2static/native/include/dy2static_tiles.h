/* What products and convolutions share: how their blocks are cut, tiles of C in registers, packing.

   Before the include: DY_T, the type (float or double).  To be compiled with contraction (-ffp-contract=fast): without it
   the compiler may not fuse a multiplication and an addition. */
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define DY_BYTES 64
#define DY_ROWS 12              /* 24 of 32 registers hold the tile */
#elif defined(__AVX__)
#define DY_BYTES 32
#define DY_ROWS 6               /* 12 of 16 */
#elif defined(__aarch64__)
#define DY_BYTES 16
#define DY_ROWS 12
#else
#define DY_BYTES 16
#define DY_ROWS 6
#endif

typedef DY_T dy_vector __attribute__((vector_size(DY_BYTES)));
typedef DY_T dy_unaligned __attribute__((vector_size(DY_BYTES), aligned(sizeof(DY_T)), may_alias));

#ifndef DY_DEPTH
#define DY_DEPTH 1536           /* bytes of a row of A: a panel of B is 48 KiB with the longest vectors */
#define DY_HEIGHT 16            /* tiles: a block of A is 300 KiB there, else 150 */
#endif

enum {
    WIDTH = DY_BYTES / sizeof(DY_T),
    COLUMNS = 2 * WIDTH,
    DEPTH = DY_DEPTH / sizeof(DY_T),
    HEIGHT = DY_HEIGHT * DY_ROWS,
    STRIP = 4,                                  /* panels */
    NEAREST_BYTES = 1 << 15,                    /* of the first cache */
#if defined(__AVX512VBMI2__) && (!defined(__CLZERO__) || defined(__AVXVNNI__))
    NEAREST_WAYS = 12,                          /* lines of a set of it: Intel's since Ice Lake, AMD's since Zen 5 */
#else
    NEAREST_WAYS = 8,
#endif
    NEAR_BYTES = 3 << 18,                       /* bytes of B that are taken to be in the second cache */
    STRIDE = DEPTH + WIDTH                      /* rows of A must not all fall into one set of the cache */
};

static __thread DY_T own_block[HEIGHT * STRIDE] __attribute__((aligned(64)));
static __thread DY_T own_panel[STRIP * DEPTH * COLUMNS + WIDTH] __attribute__((aligned(64)));

#define DY_INLINE static inline __attribute__((always_inline))

DY_INLINE dy_vector load(const DY_T *from) { return *(const dy_unaligned *)from; }
DY_INLINE void store(DY_T *to, dy_vector value) { *(dy_unaligned *)to = value; }

/* Whether so many numbers are finite: any other times zero is NaN. */
static inline int are_finite(const DY_T *numbers, const int64_t size)
{
    dy_vector trace[2] = {{0}};
    DY_T sum = 0;
    int64_t k = 0;
    for (; k + COLUMNS <= size; k += COLUMNS)
        for (int half = 0; half < 2; half++)
            trace[half] += load(numbers + k + half * WIDTH) * 0;
    for (; k < size; k++)
        sum += numbers[k] * 0;
    for (int at = 0; at < COLUMNS; at++)
        sum += trace[at / WIDTH][at % WIDTH];
    return sum == sum;
}

/* The address of memory of the thread, which the compiler asks for once: by itself it would do so in the innermost loops. */
DY_INLINE DY_T *at_hand(DY_T *address)
{
    __asm__("" : "+r"(address));
    return address;
}

/* memcpy without the call, for short runs. */
DY_INLINE void copy(DY_T *to, const DY_T *from, int64_t length)
{
    for (; length >= WIDTH; length -= WIDTH, to += WIDTH, from += WIDTH)
        store(to, load(from));
#pragma GCC unroll 4
    for (int part = WIDTH / 2; part; part /= 2)
        if (length & part) {
            memcpy(to, from, part * sizeof(DY_T));
            to += part;
            from += part;
        }
}

/* Without this gcc reads what is used several times from memory each time, and rounds products before it adds them to a single sum,
   for which it takes that to be faster. */
#if defined(__AVX512F__)
#define IN_REGISTER(value) __asm__("" : "+v"(value))
#elif defined(__x86_64__)
#define IN_REGISTER(value) __asm__("" : "+x"(value))
#elif defined(__aarch64__)
#define IN_REGISTER(value) __asm__("" : "+w"(value))
#else
#define IN_REGISTER(value) (void)0
#endif

/* `vectors` sums of a row: the element at `left` times each of `right` is added.  Instructions are written out for the longest vectors: gcc
   copies sums from register to register, and keeps some of them in memory. */
#if defined(__AVX512F__)
DY_INLINE void add_products(const int vectors, const DY_T *left, const dy_vector *right, dy_vector *sum)
{
    if (vectors == 1) {
        if (sizeof(DY_T) == 4)
            __asm__("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(sum[0]) : "m"(*left), "v"(right[0]));
        else
            __asm__("vfmadd231pd %1%{1to8%}, %2, %0" : "+v"(sum[0]) : "m"(*left), "v"(right[0]));
        return;
    }
    dy_vector all;
    if (sizeof(DY_T) == 4)
        __asm__("vbroadcastss %1, %0" : "=v"(all) : "m"(*left));
    else
        __asm__("vbroadcastsd %1, %0" : "=v"(all) : "m"(*left));
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        if (sizeof(DY_T) == 4)
            __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum[v]) : "v"(all), "v"(right[v]));
        else
            __asm__("vfmadd231pd %2, %1, %0" : "+v"(sum[v]) : "v"(all), "v"(right[v]));
}
#else
DY_INLINE void add_products(const int vectors, const DY_T *left, const dy_vector *right, dy_vector *sum)
{
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
        sum[v] += *left * right[v];
}
#endif

/* Steps of which B is fetched early, and of which a packed B is.  With short vectors that comes by itself, in a loop without fetches; with
   the longest ones it does on Intel's CPUs, which have no CLZERO. */
enum {
    AHEAD = 12,
#if defined(__AVX512F__) && defined(__CLZERO__)
    PACKED_AHEAD = 48
#else
    PACKED_AHEAD = 0
#endif
};

/* One step of all sums: a row of B times the elements of A, which are `lda` apart.  panel: null, or where that row goes as well. */
DY_INLINE void add_step(const int rows, const int vectors, const DY_T *a, const int64_t lda, const DY_T *row, DY_T *panel, dy_vector *sum)
{
    dy_vector right[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        right[v] = load(row + v * WIDTH);
        if (rows > 1)
            IN_REGISTER(right[v]);
    }
    if (panel)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            store(panel + v * WIDTH, right[v]);
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
        add_products(vectors, a + i * lda, right, sum + i * vectors);
    if (rows * vectors == 1)
        IN_REGISTER(sum[0]);
}

/* One tile of C, rows x (vectors * WIDTH), both constants wherever this is used and with a product of 2 * DY_ROWS at most; a: rows
   `lda` apart.  Row l of B is at b + where[l], or at b + l * ldb where there is no such table (which is a constant, too).  panel: null,
   or where the rows of B are packed. */
DY_INLINE void tile(const int rows, const int vectors, const int64_t depth, const DY_T *a, const int64_t lda, const DY_T *b,
                    const int64_t ldb, const int64_t *where, DY_T *panel, DY_T *c, const int64_t ldc, const DY_T alpha, const DY_T beta)
{
    dy_vector sum[2 * DY_ROWS];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[i * vectors + v] = (dy_vector){0};
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            __builtin_prefetch(c + i * ldc + v * WIDTH, 1);
    int64_t l = 0;
    if (!PACKED_AHEAD && vectors <= 2 && !where && !panel && ldb == vectors * WIDTH)
        for (; l + 2 <= depth; l += 2)
#pragma GCC unroll 2
            for (int64_t half = l; half < l + 2; half++)
                add_step(rows, vectors, a + half, lda, b + half * vectors * WIDTH, 0, sum);
    const int64_t ahead = (PACKED_AHEAD && ldb == vectors * WIDTH ? PACKED_AHEAD : AHEAD) * ldb;
    for (; l < depth; l++) {
        const DY_T *const row = where ? b + where[l] : b + l * ldb;
        if (!where)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                __builtin_prefetch(row + ahead + v * WIDTH);
        add_step(rows, vectors, a + l, lda, row, panel ? panel + l * vectors * WIDTH : 0, sum);
    }
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            DY_T *const to = c + i * ldc + v * WIDTH;
            /* what C held must not be read where it does not count: it may be NaN */
            store(to, beta == 0 ? alpha * sum[i * vectors + v] : alpha * sum[i * vectors + v] + beta * load(to));
        }
}

/* Tiles by their number of rows: DY_TILE(tile_12, 12, 0) ... and one function that takes the number. */
#define DY_TILES(NAME, TABLE)                                                                                       \
    DY_LONG_TILES(NAME, TABLE)                                                                                      \
    DY_TILE(NAME##_6, 6, TABLE)                                                                                     \
    DY_TILE(NAME##_4, 4, TABLE)                                                                                     \
    DY_TILE(NAME##_3, 3, TABLE)                                                                                     \
    DY_TILE(NAME##_2, 2, TABLE)                                                                                     \
    DY_TILE(NAME##_1, 1, TABLE)                                                                                     \
    static void NAME(const int rows, const int vectors, const int64_t depth, const DY_T *a, const DY_T *b,          \
                     const int64_t ldb, const int64_t *where, DY_T *c, const int64_t ldc, const DY_T alpha,         \
                     const DY_T beta)                                                                               \
    {                                                                                                               \
        switch (rows) {                                                                                             \
            DY_LONG_CASES(NAME)                                                                                     \
        case 6: NAME##_6(vectors, depth, a, b, ldb, where, c, ldc, alpha, beta); break;                             \
        case 4: NAME##_4(vectors, depth, a, b, ldb, where, c, ldc, alpha, beta); break;                             \
        case 3: NAME##_3(vectors, depth, a, b, ldb, where, c, ldc, alpha, beta); break;                             \
        case 2: NAME##_2(vectors, depth, a, b, ldb, where, c, ldc, alpha, beta); break;                             \
        default: NAME##_1(vectors, depth, a, b, ldb, where, c, ldc, alpha, beta); break;                            \
        }                                                                                                           \
    }

#define DY_TILE(NAME, ROWS, TABLE)                                                                                  \
    static __attribute__((noinline)) void NAME(const int vectors, const int64_t depth, const DY_T *a,               \
                                               const DY_T *b, const int64_t ldb, const int64_t *where, DY_T *c,     \
                                               const int64_t ldc, const DY_T alpha, const DY_T beta)                \
    {                                                                                                               \
        if (vectors == 2)                                                                                           \
            tile(ROWS, 2, depth, a, STRIDE, b, ldb, TABLE ? where : 0, 0, c, ldc, alpha, beta);                         \
        else                                                                                                        \
            tile(ROWS, 1, depth, a, STRIDE, b, ldb, TABLE ? where : 0, 0, c, ldc, alpha, beta);                         \
    }

#if DY_ROWS == 12
#define DY_LONG_TILES(NAME, TABLE) DY_TILE(NAME##_12, 12, TABLE) DY_TILE(NAME##_8, 8, TABLE)
#define DY_LONG_CASES(NAME)                                                                                         \
    case 12: NAME##_12(vectors, depth, a, b, ldb, where, c, ldc, alpha, beta); break;                               \
    case 8: NAME##_8(vectors, depth, a, b, ldb, where, c, ldc, alpha, beta); break;
#else
#define DY_LONG_TILES(NAME, TABLE)
#define DY_LONG_CASES(NAME)
#endif

static inline int tile_rows(const int64_t left)
{
    static const int fitting[13] = {0, 1, 2, 3, 4, 4, 6, 6, 8, 8, 8, 8, 12};
    const int rows = left < DY_ROWS ? fitting[left] : DY_ROWS;
    return rows;
}

typedef DY_T dy_quad __attribute__((vector_size(4 * sizeof(DY_T))));
typedef DY_T dy_quad_unaligned __attribute__((vector_size(4 * sizeof(DY_T)), aligned(sizeof(DY_T)), may_alias));

#if defined(__clang__) || __GNUC__ >= 12
#define DY_MIX(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
typedef __typeof__((dy_quad){0} < (dy_quad){0}) dy_places;
#define DY_MIX(x, y, ...) __builtin_shuffle(x, y, (dy_places){__VA_ARGS__})
#endif

/* Four rows of four elements to four columns. */
DY_INLINE void transpose_rows(const DY_T *row_a, const DY_T *row_b, const DY_T *row_c, const DY_T *row_d, DY_T *to,
                              const int64_t width)
{
    const dy_quad a = *(const dy_quad_unaligned *)row_a, b = *(const dy_quad_unaligned *)row_b;
    const dy_quad c = *(const dy_quad_unaligned *)row_c, d = *(const dy_quad_unaligned *)row_d;
    const dy_quad ab = DY_MIX(a, b, 0, 4, 1, 5), cd = DY_MIX(c, d, 0, 4, 1, 5);
    const dy_quad AB = DY_MIX(a, b, 2, 6, 3, 7), CD = DY_MIX(c, d, 2, 6, 3, 7);
    *(dy_quad_unaligned *)to = DY_MIX(ab, cd, 0, 1, 4, 5);
    *(dy_quad_unaligned *)(to + width) = DY_MIX(ab, cd, 2, 3, 6, 7);
    *(dy_quad_unaligned *)(to + 2 * width) = DY_MIX(AB, CD, 0, 1, 4, 5);
    *(dy_quad_unaligned *)(to + 3 * width) = DY_MIX(AB, CD, 2, 3, 6, 7);
}

DY_INLINE void transpose(const DY_T *from, const int64_t ld, DY_T *to, const int64_t width)
{
    transpose_rows(from, from + ld, from + 2 * ld, from + 3 * ld, to, width);
}

/* Four floats each of eight rows to four columns.  Halves of vectors are loaded, so that nothing crosses them afterwards. */
#if DY_BYTES == 32 && (defined(__clang__) || __GNUC__ >= 12)
#define DY_EIGHTS
#define MIX __builtin_shufflevector
typedef float dy_eight __attribute__((vector_size(32)));
typedef float dy_eight_unaligned __attribute__((vector_size(32), aligned(4), may_alias));
typedef float dy_four_unaligned __attribute__((vector_size(16), aligned(4), may_alias));

DY_INLINE void turn_eights(const float *from, const int64_t ld, dy_eight *to)
{
    dy_eight row[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const dy_four_unaligned low = *(const dy_four_unaligned *)(from + i * ld);
        row[i] = MIX(low, *(const dy_four_unaligned *)(from + (i + 4) * ld), 0, 1, 2, 3, 4, 5, 6, 7);
    }
    const dy_eight ab = MIX(row[0], row[1], 0, 8, 1, 9, 4, 12, 5, 13), cd = MIX(row[2], row[3], 0, 8, 1, 9, 4, 12, 5, 13);
    const dy_eight AB = MIX(row[0], row[1], 2, 10, 3, 11, 6, 14, 7, 15), CD = MIX(row[2], row[3], 2, 10, 3, 11, 6, 14, 7, 15);
    to[0] = MIX(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13);
    to[1] = MIX(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
    to[2] = MIX(AB, CD, 0, 1, 8, 9, 4, 5, 12, 13);
    to[3] = MIX(AB, CD, 2, 3, 10, 11, 6, 7, 14, 15);
}
#undef MIX
#endif

/* Sixteen rows of sixteen floats to columns. */
#if DY_BYTES == 64 && (defined(__clang__) || __GNUC__ >= 12)
#define DY_SQUARES
typedef float dy_sixteen __attribute__((vector_size(64)));
typedef float dy_sixteen_unaligned __attribute__((vector_size(64), aligned(4), may_alias));

#define MIX __builtin_shufflevector
DY_INLINE void turn_square(const float *from, const int64_t ld, float *to, const int64_t width)
{
    dy_sixteen a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        a[i] = *(const dy_sixteen_unaligned *)(from + i * ld);
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {                   /* pairs of rows */
        b[i] = MIX(a[i], a[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
        b[i + 1] = MIX(a[i], a[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {                   /* four rows: a[i + j] has the columns j, 4 + j, 8 + j, 12 + j of them */
        a[i] = MIX(b[i], b[i + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        a[i + 1] = MIX(b[i], b[i + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
        a[i + 2] = MIX(b[i + 1], b[i + 3], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
        a[i + 3] = MIX(b[i + 1], b[i + 3], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 16; i += 8)
#pragma GCC unroll 4
        for (int j = i; j < i + 4; j++) {               /* eight rows: b[j] has the columns j and 8 + j, b[4 + j] the others */
            b[j] = MIX(a[j], a[4 + j], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
            b[4 + j] = MIX(a[j], a[4 + j], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        *(dy_sixteen_unaligned *)(to + j * width) = MIX(b[j], b[8 + j], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        *(dy_sixteen_unaligned *)(to + (8 + j) * width) = MIX(b[j], b[8 + j], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
        *(dy_sixteen_unaligned *)(to + (4 + j) * width) = MIX(b[4 + j], b[12 + j], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
        *(dy_sixteen_unaligned *)(to + (12 + j) * width) = MIX(b[4 + j], b[12 + j], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
}
#undef MIX
#endif
