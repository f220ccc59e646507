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

/* A matrix turned: block by block, so that both sides stay in the first cache.  Elements are copied as bytes, because they may be
   of any type. */
#define DY_DEFINE_TURN(SIZE)                                                                                            \
    static inline void dy_turn_##SIZE(const void *from, const int64_t rows, const int64_t columns, void *to)            \
    {                                                                                                                  \
        for (int64_t i = 0; i < rows; i += 16)                                                                         \
            for (int64_t j = 0; j < columns; j += 16)                                                                  \
                for (int64_t l = j; l < columns && l < j + 16; l++)                                                    \
                    for (int64_t k = i; k < rows && k < i + 16; k++)                                                   \
                        memcpy((char *)to + (l * rows + k) * SIZE, (const char *)from + (k * columns + l) * SIZE, SIZE); \
    }
DY_DEFINE_TURN(1)
DY_DEFINE_TURN(2)
DY_DEFINE_TURN(4)
DY_DEFINE_TURN(8)

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
