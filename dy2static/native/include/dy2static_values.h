/* What generated code needs besides arithmetic: stacks that loops push on, Python's quotients.

   Memory comes from the C library, and that of stacks from blocks; with DY_STANDALONE all comes from an arena, which everything
   that grows knows by its member DY_HEAP. */
#ifndef DY2STATIC_VALUES_H
#define DY2STATIC_VALUES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef DY_STANDALONE
#include "dy2static_arena.h"
#else
#include "dy2static_blocks.h"
#define DY_HEAP
#define DY_TAKE(owner, bytes) malloc(bytes)
#define DY_GIVE(owner, data) free(data)
#define DY_TAKE_BLOCK(owner, bytes) dy_block_take(bytes)
#define DY_GIVE_BLOCK(owner, data) dy_block_give(data)
#define DY_BLOCK_CAPACITY(data, bytes) dy_block_capacity(data)
#endif

typedef struct {
    char *data;
    int64_t count, capacity;
    DY_HEAP
} dy_stack;

/* Room for one more item of so many bytes; null where memory is gone. */
static inline void *dy_stack_grow(dy_stack *stack, int64_t item)
{
    const int64_t used = stack->count * item;
    if (used + item > stack->capacity) {
        const int64_t wanted = stack->capacity ? 2 * stack->capacity : 32 * item;
        char *data = DY_TAKE_BLOCK(stack, wanted);
        if (!data)
            return 0;
        if (used)
            memcpy(data, stack->data, used);
        DY_GIVE_BLOCK(stack, stack->data);
        stack->data = data;
        stack->capacity = DY_BLOCK_CAPACITY(data, wanted);
    }
    ++stack->count;
    return stack->data + used;
}

static inline void dy_stack_free(dy_stack *stack)
{
    DY_GIVE_BLOCK(stack, stack->data);
}

/* Working memory of a size that the run tells. */
typedef struct {
    char *data;
    int64_t size;
    DY_HEAP
} dy_room;

/* At least so many bytes, from a multiple of 64 on, with nothing known in them; null where memory is gone. */
static inline void *dy_room_of(dy_room *room, int64_t size)
{
    if (size > room->size) {
        if (size < 2 * room->size)                      /* what grows in a loop will grow again */
            size = 2 * room->size;
        DY_GIVE(room, room->data);
        room->data = DY_TAKE(room, size + 64);
        room->size = room->data ? size : 0;
        if (!room->data)
            return 0;
    }
    return (void *)(((uintptr_t)room->data + 63) & ~(uintptr_t)63);
}

static inline void dy_room_free(dy_room *room)
{
    DY_GIVE(room, room->data);
}

static inline int64_t dy_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A matrix turned: block by block, so that both sides stay in the first cache, and four by four.  Bands of rows are so high that
   whole lines of the cache are written.  Elements are copied as bytes, because they may be of any type.  Rows are so many elements
   apart. */
#define DY_DEFINE_TURN(SIZE, SQUARE)                                                                                   \
    static inline void dy_turn_block_##SIZE(const char *from, const int64_t apart, const int64_t rows,                 \
                                            const int64_t columns, char *to, const int64_t next)                       \
    {                                                                                                                  \
        const int64_t fours = rows / 4 * 4, squares = columns / 4 * 4;                                                 \
        for (int64_t i = 0; i < fours; i += 4) {                                                                       \
            for (int64_t j = 0; j < squares; j += 4)                                                                   \
                SQUARE(from + (i * apart + j) * SIZE, apart * SIZE, to + (j * next + i) * SIZE, next * SIZE);          \
            for (int64_t j = squares; j < columns; j++)                                                                \
                for (int64_t k = i; k < i + 4; k++)                                                                    \
                    memcpy(to + (j * next + k) * SIZE, from + (k * apart + j) * SIZE, SIZE);                           \
        }                                                                                                              \
        for (int64_t i = fours; i < rows; i++)                                                                         \
            for (int64_t j = 0; j < columns; j++)                                                                      \
                memcpy(to + (j * next + i) * SIZE, from + (i * apart + j) * SIZE, SIZE);                               \
    }                                                                                                                  \
    static inline void dy_turn_##SIZE(const void *from, const int64_t apart, const int64_t rows, const int64_t columns,\
                                      void *to, const int64_t next)                                                    \
    {                                                                                                                  \
        for (int64_t band = 0; band < rows; band += 64) {                                                              \
            const int64_t end = rows - band < 64 ? rows : band + 64;                                                   \
            for (int64_t j = 0; j < columns; j += 16)                                                                  \
                for (int64_t i = band; i < end; i += 16)                                                               \
                    dy_turn_block_##SIZE((const char *)from + (i * apart + j) * SIZE, apart, end - i < 16 ? end - i : 16,\
                                         columns - j < 16 ? columns - j : 16, (char *)to + (j * next + i) * SIZE, next);\
        }                                                                                                              \
    }

#define DY_TURN_ELEMENTS(SIZE)                                                                                         \
    static inline void dy_square_##SIZE(const char *from, const int64_t apart, char *to, const int64_t next)           \
    {                                                                                                                  \
        for (int i = 0; i < 4; i++)                                                                                    \
            for (int j = 0; j < 4; j++)                                                                                \
                memcpy(to + j * next + i * SIZE, from + i * apart + j * SIZE, SIZE);                                   \
    }                                                                                                                  \
    DY_DEFINE_TURN(SIZE, dy_square_##SIZE)

#if defined(__clang__)
#define DY_PICK(WORDS, x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#elif defined(__GNUC__)
#define DY_PICK(WORDS, x, y, ...) __builtin_shuffle(x, y, (WORDS){__VA_ARGS__})
#endif

#ifdef DY_PICK
#define DY_TURN_VECTORS(SIZE, WORD)                                                                                    \
    typedef WORD dy_words_##SIZE __attribute__((vector_size(4 * SIZE)));                                               \
    typedef WORD dy_words_at_##SIZE __attribute__((vector_size(4 * SIZE), aligned(1), may_alias));                     \
    static inline void dy_square_##SIZE(const char *from, const int64_t apart, char *to, const int64_t next)           \
    {                                                                                                                  \
        const dy_words_##SIZE a = *(const dy_words_at_##SIZE *)from, b = *(const dy_words_at_##SIZE *)(from + apart),  \
                              c = *(const dy_words_at_##SIZE *)(from + 2 * apart),                                     \
                              d = *(const dy_words_at_##SIZE *)(from + 3 * apart);                                     \
        const dy_words_##SIZE low = DY_PICK(dy_words_##SIZE, a, b, 0, 4, 1, 5),                                        \
                              high = DY_PICK(dy_words_##SIZE, a, b, 2, 6, 3, 7),                                       \
                              low_ = DY_PICK(dy_words_##SIZE, c, d, 0, 4, 1, 5),                                       \
                              high_ = DY_PICK(dy_words_##SIZE, c, d, 2, 6, 3, 7);                                      \
        *(dy_words_at_##SIZE *)to = DY_PICK(dy_words_##SIZE, low, low_, 0, 1, 4, 5);                                   \
        *(dy_words_at_##SIZE *)(to + next) = DY_PICK(dy_words_##SIZE, low, low_, 2, 3, 6, 7);                          \
        *(dy_words_at_##SIZE *)(to + 2 * next) = DY_PICK(dy_words_##SIZE, high, high_, 0, 1, 4, 5);                    \
        *(dy_words_at_##SIZE *)(to + 3 * next) = DY_PICK(dy_words_##SIZE, high, high_, 2, 3, 6, 7);                    \
    }                                                                                                                  \
    DY_DEFINE_TURN(SIZE, dy_square_##SIZE)
#else
#define DY_TURN_VECTORS(SIZE, WORD) DY_TURN_ELEMENTS(SIZE)
#endif

DY_TURN_ELEMENTS(1)
DY_TURN_ELEMENTS(2)
DY_TURN_VECTORS(4, int32_t)
DY_TURN_VECTORS(8, int64_t)

static inline int64_t dy_floor_divide(int64_t a, int64_t b)
{
    return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

/* What Python's float power is made of.  No exponent is known here: the compiler would make products of powers. */
#ifdef __clang__
#define DY_OPAQUE __attribute__((noinline, optnone, unused))
#else
#define DY_OPAQUE __attribute__((noipa, unused))
#endif
static DY_OPAQUE double dy_power(double a, double b)
{
    return pow(a, b);
}

/* A power of ints; true where it is none, or none of 64 bits. */
static inline bool dy_int_power(int64_t a, int64_t b, int64_t *y)
{
    bool fails = b < 0;
    for (*y = 1; b > 0 && !fails; b >>= 1) {
        fails = (b & 1) && __builtin_mul_overflow(*y, a, y);
        fails |= b > 1 && __builtin_mul_overflow(a, a, &a);
    }
    return fails;
}

static inline int64_t dy_modulo(int64_t a, int64_t b)
{
    const int64_t rest = a % b;
    return rest + ((rest != 0 && ((rest < 0) != (b < 0))) ? b : 0);
}

#endif
