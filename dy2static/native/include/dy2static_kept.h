/* What is made of arrays that never change is kept between calls: packed and transformed weights.

   frozen.py tells which memory never changes, and builds the library (dy2static_keeper.h) whose table this header reads. */
#ifndef DY2STATIC_KEPT_H
#define DY2STATIC_KEPT_H

#include <stdint.h>

/* What is made: of so many bytes from an address on, in which form, for which sizes. */
typedef struct {
    const void *from;
    int64_t bytes, form, sizes[4];
} dy_kept_key;

typedef void dy_make(const void *given, void *to);

typedef struct {
    const void *(*get)(const dy_kept_key *key, int64_t bytes, dy_make *make, const void *given);
    const void *(*look)(const void *from);
} dy_keeper;

#ifndef DY2STATIC_KEEPER_H
static const dy_keeper *dy_keeper_functions __attribute__((unused));
void dy2static_set_keeper(const void *table) { dy_keeper_functions = table; }

/* So many bytes that `make` fills, in this call or in an earlier one; null if the memory of `key` may change, or if there is none. */
static inline __attribute__((unused)) const void *dy_kept(const dy_kept_key *key, const int64_t bytes, dy_make *make, const void *given)
{
    return dy_keeper_functions ? dy_keeper_functions->get(key, bytes, make, given) : 0;
}

/* Something that is kept and was made of an address; else that address. */
static inline __attribute__((unused)) const void *dy_kept_or(const void *from)
{
    const void *const found = dy_keeper_functions ? dy_keeper_functions->look(from) : 0;
    return found ? found : from;
}
#endif
#endif
