/* Working memory that all functions share: it waits for the next one.  Python's lock is held wherever this is called. */
#ifndef DY2STATIC_WORKING_H
#define DY2STATIC_WORKING_H

#include <stdint.h>
#include <stdlib.h>

/* data: what waits; null while a function has it.  little: how many functions on end have needed less than half of it. */
typedef struct {
    char *data;
    int64_t size, little;
} dy_working;

enum { DY_MOST_LITTLE = 64 };

static dy_working *dy_waiting;

void dy2static_set_working(void *working) { dy_waiting = working; }

/* Nothing waits any more: no function is left that may come. */
void dy2static_free_working(void)
{
    free(dy_waiting->data);
    *dy_waiting = (dy_working){0};
}

/* At least so many bytes, from a cache line on; null where memory is gone.  What is too large for many functions on end is given up. */
static inline char *dy_working_take(dy_working *own, int64_t size)
{
    *own = *dy_waiting;
    dy_waiting->data = 0;
    own->little = own->data && 2 * size < own->size ? own->little + 1 : 0;
    if (own->data && own->size >= size && own->little < DY_MOST_LITTLE)
        return own->data;
    free(own->data);
    own->size = (size + 63) / 64 * 64;
    own->little = 0;
    return own->data = aligned_alloc(64, own->size);
}

static inline void dy_working_give(dy_working *own)
{
    free(dy_waiting->data);                             /* of a function that ran inside this one */
    *dy_waiting = *own;
}

#endif
