/* Memory of stacks: blocks that are given back wait for the next stack.  Python's lock is held wherever this is called. */
#ifndef DY2STATIC_BLOCKS_H
#define DY2STATIC_BLOCKS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Stands before the data, which begins at a cache line of its own. */
typedef struct {
    int64_t capacity;
    int64_t unused[7];
} dy_block;

#define DY_SPARE_BLOCKS 16
#define DY_SURPLUS 8                    /* a block that is kept may be larger than it needs to be by this part of it */

static dy_block *dy_spare[DY_SPARE_BLOCKS];

static inline int64_t dy_block_capacity(const char *data) { return ((const dy_block *)data)[-1].capacity; }

static inline void dy_block_give(char *data)
{
    if (!data)
        return;
    dy_block *block = (dy_block *)data - 1, **least = dy_spare;
    for (int k = 0; k < DY_SPARE_BLOCKS; ++k) {
        if (!dy_spare[k]) {
            dy_spare[k] = block;
            return;
        }
        if (dy_spare[k]->capacity < (*least)->capacity)
            least = dy_spare + k;
    }
    if ((*least)->capacity < block->capacity) {
        dy_block *smaller = *least;
        *least = block;
        block = smaller;
    }
    free(block);
}

/* A block of about so many bytes, which somebody may keep: one that waits, if it is not much larger; null where memory is gone. */
static inline char *dy_block_new(int64_t capacity)
{
    for (int k = 0; k < DY_SPARE_BLOCKS; ++k)
        if (dy_spare[k] && dy_spare[k]->capacity >= capacity && dy_spare[k]->capacity - capacity <= capacity / DY_SURPLUS) {
            dy_block *const block = dy_spare[k];
            dy_spare[k] = 0;
            return (char *)(block + 1);
        }
    dy_block *block = aligned_alloc(64, (sizeof(dy_block) + capacity + 63) / 64 * 64);
    if (!block)
        return 0;
    block->capacity = capacity;
    return (char *)(block + 1);
}

/* The largest block that waits, if it has so many bytes, else a new one; null where memory is gone. */
static inline char *dy_block_take(int64_t capacity)
{
    dy_block **most = 0;
    for (int k = 0; k < DY_SPARE_BLOCKS; ++k)
        if (dy_spare[k] && (!most || dy_spare[k]->capacity > (*most)->capacity))
            most = dy_spare + k;
    if (!most || (*most)->capacity < capacity)
        return dy_block_new(capacity);
    dy_block *block = *most;
    *most = 0;
    return (char *)(block + 1);
}

#endif
