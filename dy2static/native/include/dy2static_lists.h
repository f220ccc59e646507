/* Lists that grow: items of one size side by side.  A list is a value; what it points to is never changed, only added to
   behind the items that any list has, so that lists made of one another share their memory.  Gradients have
   items that are not there, which are zeros. */
#ifndef DY2STATIC_LISTS_H
#define DY2STATIC_LISTS_H

#include <stdint.h>
#include <string.h>

#include "dy2static_values.h"

/* used: the bytes that lists have; what is behind is free.  is_block: whether it is in a block. */
typedef struct dy_storage {
    struct dy_storage *next;
    int64_t used, capacity;
    int wanted, is_block;
    char data[] __attribute__((aligned(64)));
} dy_storage;

enum { DY_LARGE_LIST = 1 << 16 };       /* bytes from which a storage is a block, which waits for the next list afterwards */

typedef struct {
    dy_storage *first;
    int64_t count, limit;
    DY_HEAP
} dy_storages;

/* count: negative where memory was gone.  storage: null for memory of somebody else's.  there: a byte for each item: whether
   it is there; null where each is.  In a storage these bytes are behind what all items that fit in may take. */
typedef struct {
    char *data;
    int64_t count;
    dy_storage *storage;
    char *there;
} dy_list;

static inline dy_list dy_list_of(dy_storages *all, int64_t count, int64_t size)
{
    const int64_t wanted = count * size;
    int64_t capacity = wanted < 16 * size ? 16 * size : 2 * wanted;
    const int is_block = capacity >= DY_LARGE_LIST;
    const int64_t bytes = sizeof(dy_storage) + capacity + capacity / size;
    dy_storage *const storage = count < 0 ? 0 : is_block ? (void *)DY_TAKE_BLOCK(all, bytes) : DY_TAKE(all, bytes);
    if (!storage)
        return (dy_list){0, -1, 0, 0};
    if (is_block)
        capacity = (DY_BLOCK_CAPACITY((char *)storage, bytes) - sizeof(dy_storage)) / (size + 1) * size;
    *storage = (dy_storage){all->first, wanted, capacity, 0, is_block};
    all->first = storage;
    all->count++;
    memset(storage->data + capacity, 1, count);
    return (dy_list){storage->data, count, storage, storage->data + capacity};
}

static inline void dy_storage_give(dy_storages *all, dy_storage *storage)
{
    if (storage->is_block)
        DY_GIVE_BLOCK(all, (char *)storage);
    else
        DY_GIVE(all, storage);
}

static inline int dy_list_has(dy_list list, int64_t at)
{
    return list.count && (!list.there || list.there[at]);
}

static inline int dy_list_has_any(dy_list list)
{
    return list.count && (!list.there || memchr(list.there, 1, list.count));
}

/* Copy the bytes that say which items are there. */
static inline void dy_list_marks(char *to, dy_list list)
{
    if (list.count && list.there)
        memcpy(to, list.there, list.count);
    else
        memset(to, 1, list.count);
}

/* item: null for zeros */
static inline void dy_item(void *to, const void *item, int64_t size)
{
    if (!item)
        memset(to, 0, size);
    else if (item != to)
        memmove(to, item, size);
}

/* The list where there is room for one more item behind it. */
static inline dy_list dy_list_with_room(dy_storages *all, dy_list list, int64_t size)
{
    const int64_t used = list.count * size;
    if (list.storage && list.storage->used == used && used + size <= list.storage->capacity)
        return list;
    const dy_list copy = dy_list_of(all, list.count, size);
    if (copy.count > 0)
        memcpy(copy.data, list.data, used);
    if (copy.count >= 0)
        dy_list_marks(copy.there, list);
    return copy;
}

/* item: it may be in the room behind the list already. */
static inline dy_list dy_list_append(dy_storages *all, dy_list list, const void *item, int64_t size)
{
    list = dy_list_with_room(all, list, size);
    if (list.count < 0)
        return list;
    dy_item(list.data + list.count * size, item, size);
    list.there[list.count] = item != 0;
    list.storage->used += size;
    list.count++;
    return list;
}

/* `count` items of which one at most is there. */
static inline dy_list dy_list_single(dy_storages *all, int64_t count, int64_t at, const void *item, int64_t size)
{
    const dy_list list = dy_list_of(all, count, size);
    if (list.count > 0) {
        memset(list.data, 0, count * size);
        memset(list.there, 0, count);
        dy_item(list.data + at * size, item, size);
        list.there[at] = item != 0;
    }
    return list;
}

/* Room for the sum of two gradients of a list. */
static inline dy_list dy_list_either(dy_storages *all, dy_list a, dy_list b, int64_t size)
{
    const dy_list list = a.count != b.count ? (dy_list){0, -1, 0, 0} : dy_list_of(all, a.count, size);
    for (int64_t k = 0; k < list.count; k++)
        list.there[k] = dy_list_has(a, k) || dy_list_has(b, k);
    return list;
}

/* An end of a slice, counted from the front. */
static inline int64_t dy_list_end(int64_t end, int64_t count, int64_t low, int64_t high)
{
    end += end < 0 ? count : 0;
    return end < low ? low : end > high ? high : end;
}

/* Some of the items: list[start:stop:step]. */
static inline dy_list dy_list_slice(dy_storages *all, dy_list list, int64_t start, int64_t stop, int64_t step, int64_t size)
{
    const int64_t low = step < 0 ? -1 : 0, high = list.count + low;
    start = dy_list_end(start, list.count, low, high);
    stop = dy_list_end(stop, list.count, low, high);
    const int64_t span = step < 0 ? start - stop : stop - start, each = step < 0 ? -step : step;
    const dy_list found = dy_list_of(all, span > 0 ? (span + each - 1) / each : 0, size);
    for (int64_t k = 0; k < found.count; k++) {
        memcpy(found.data + k * size, list.data + (start + k * step) * size, size);
        found.there[k] = dy_list_has(list, start + k * step);
    }
    return found;
}

/* The items of two lists. */
static inline dy_list dy_list_extend(dy_storages *all, dy_list a, dy_list b, int64_t size)
{
    const dy_list found = dy_list_of(all, a.count + b.count, size);
    if (found.count > 0) {
        if (a.count)
            memcpy(found.data, a.data, a.count * size);
        if (b.count)
            memcpy(found.data + a.count * size, b.data, b.count * size);
        dy_list_marks(found.there, a);
        dy_list_marks(found.there + a.count, b);
    }
    return found;
}

/* Free what none of the lists has: done when as much has come up as was left the last time. */
static inline void dy_lists_sweep(dy_storages *all, dy_list *const *lists, int64_t count)
{
    if (all->count < all->limit + 16)
        return;
    for (int64_t k = 0; k < count; k++)
        if (lists[k]->storage)
            lists[k]->storage->wanted = 1;
    dy_storage **link = &all->first;
    while (*link) {
        dy_storage *const storage = *link;
        if (storage->wanted) {
            storage->wanted = 0;
            link = &storage->next;
        } else {
            *link = storage->next;
            all->count--;
            dy_storage_give(all, storage);
        }
    }
    all->limit = 2 * all->count;
}

static inline void dy_lists_free(dy_storages *all)
{
    while (all->first) {
        dy_storage *const next = all->first->next;
        dy_storage_give(all, all->first);
        all->first = next;
    }
}

#endif
