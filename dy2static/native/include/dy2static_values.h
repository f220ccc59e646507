/* What generated code needs besides arithmetic: stacks that loops push on, Python's quotients. */
#ifndef DY2STATIC_VALUES_H
#define DY2STATIC_VALUES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *data;
    int64_t count, capacity;
} dy_stack;

/* Room for one more item of so many bytes; null where memory is gone. */
static inline void *dy_stack_grow(dy_stack *stack, int64_t item)
{
    const int64_t used = stack->count * item;
    if (used + item > stack->capacity) {
        const int64_t capacity = stack->capacity ? 2 * stack->capacity : 32 * item;
        char *data = realloc(stack->data, capacity);
        if (!data)
            return 0;
        stack->data = data;
        stack->capacity = capacity;
    }
    ++stack->count;
    return stack->data + used;
}

static inline int64_t dy_floor_divide(int64_t a, int64_t b)
{
    return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

static inline int64_t dy_modulo(int64_t a, int64_t b)
{
    const int64_t rest = a % b;
    return rest + ((rest != 0 && ((rest < 0) != (b < 0))) ? b : 0);
}

#endif
