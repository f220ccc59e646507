/* Memory of models without Python: an arena of the caller's, in pieces.  dy2static_values.h takes it where DY_STANDALONE is defined.

   Pieces that are free are in a list, in the order of their addresses, and two that touch become one.  The first that is large
   enough is taken: programs take few, and give back in reverse order, mostly. */
#ifndef DY2STATIC_ARENA_H
#define DY2STATIC_ARENA_H

#include <stdint.h>
#include <string.h>

enum { DY_ARENA_LINE = 64 };          /* sizes and addresses of pieces are multiples of it; a head takes one */

typedef struct dy_piece {
    int64_t size;               /* with the head */
    struct dy_piece *next;
} dy_piece;

typedef struct {
    dy_piece *first;            /* that is free */
    int exhausted;              /* whether something has been asked for that was not there */
} dy_heap;

#define DY_HEAP dy_heap *heap;
#define DY_TAKE(owner, bytes) dy_heap_take((owner)->heap, bytes)
#define DY_GIVE(owner, data) dy_heap_give((owner)->heap, data)
#define DY_TAKE_BLOCK(owner, bytes) dy_heap_take((owner)->heap, bytes)
#define DY_GIVE_BLOCK(owner, data) dy_heap_give((owner)->heap, data)
#define DY_BLOCK_CAPACITY(data, bytes) (bytes)

/* The bytes from `begin` on, which is a multiple of DY_ARENA_LINE. */
static inline dy_heap dy_heap_of(char *begin, int64_t bytes)
{
    dy_heap heap = {0, 0};
    if (bytes >= 2 * DY_ARENA_LINE) {
        heap.first = (dy_piece *)(void *)begin;
        heap.first->size = bytes / DY_ARENA_LINE * DY_ARENA_LINE;
        heap.first->next = 0;
    }
    return heap;
}

static inline void *dy_heap_take(dy_heap *heap, int64_t bytes)
{
    if (bytes >= 0 && bytes <= INT64_MAX - 2 * DY_ARENA_LINE) {
        const int64_t size = DY_ARENA_LINE + (bytes + DY_ARENA_LINE - 1) / DY_ARENA_LINE * DY_ARENA_LINE;
        for (dy_piece **link = &heap->first; *link; link = &(*link)->next) {
            dy_piece *const piece = *link;
            if (piece->size < size)
                continue;
            if (piece->size - size >= 2 * DY_ARENA_LINE) {
                dy_piece *const rest = (dy_piece *)(void *)((char *)piece + size);
                rest->size = piece->size - size;
                rest->next = piece->next;
                piece->size = size;
                *link = rest;
            } else
                *link = piece->next;
            return (char *)piece + DY_ARENA_LINE;
        }
    }
    heap->exhausted = 1;
    return 0;
}

static inline int dy_touch(const dy_piece *one, const dy_piece *next)
{
    return (const char *)one + one->size == (const char *)next;
}

static inline void dy_heap_give(dy_heap *heap, void *data)
{
    if (!data)
        return;
    dy_piece *const piece = (dy_piece *)(void *)((char *)data - DY_ARENA_LINE);
    dy_piece *before = 0, **link = &heap->first;
    for (; *link && *link < piece; link = &(*link)->next)
        before = *link;
    piece->next = *link;
    *link = piece;
    if (piece->next && dy_touch(piece, piece->next)) {
        piece->size += piece->next->size;
        piece->next = piece->next->next;
    }
    if (before && dy_touch(before, piece)) {
        before->size += piece->size;
        before->next = piece->next;
    }
}

#endif
