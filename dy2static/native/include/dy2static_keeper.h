/* Keeps what libraries make of memory that never changes: the library that frozen.py builds.  See dy2static_kept.h. */
#ifndef DY2STATIC_KEEPER_H
#define DY2STATIC_KEEPER_H
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include "dy2static_kept.h"

enum { LINES = 1 << 12, LARGE = 1 << 21 };              /* of the table; bytes from which pages are large */

typedef struct kept {
    struct kept *next;
    dy_kept_key key;
    int64_t bytes;
    void *made;
} kept;

/* Memory that never changes, from `begin` to `end`. */
typedef struct frozen {
    struct frozen *next;
    uintptr_t begin, end;
} frozen;

static kept *lines[LINES];
static frozen *all_frozen;
static int64_t kept_bytes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static kept **line_of(const void *from) { return &lines[((uintptr_t)from >> 6) * UINT64_C(0x9E3779B97F4A7C15) >> 52]; }

static int is_frozen(const dy_kept_key *key)
{
    const uintptr_t begin = (uintptr_t)key->from;
    for (const frozen *f = all_frozen; f; f = f->next)
        if (begin >= f->begin && begin + key->bytes <= f->end)
            return 1;
    return 0;
}

static kept *found(const dy_kept_key *key)
{
    kept *k = *line_of(key->from);
    while (k && memcmp(&k->key, key, sizeof *key))
        k = k->next;
    return k;
}

static void *new_memory(const int64_t bytes)
{
    void *memory;
    if (posix_memalign(&memory, bytes >= LARGE ? LARGE : 64, bytes))
        return 0;
#if defined(MADV_HUGEPAGE)
    if (bytes >= LARGE)
        madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

/* Two threads may make the same at the same time: the second one's is dropped. */
static const void *get(const dy_kept_key *key, const int64_t bytes, dy_make *make, const void *given)
{
    pthread_mutex_lock(&lock);
    kept *k = found(key);
    const int may_keep = k || is_frozen(key);
    pthread_mutex_unlock(&lock);
    if (k || !may_keep)
        return k ? k->made : 0;
    kept *const own = malloc(sizeof *own);
    void *const made = own ? new_memory(bytes) : 0;
    if (!made) {
        free(own);
        return 0;
    }
    make(given, made);
    pthread_mutex_lock(&lock);
    k = found(key);
    if (!k) {
        kept **const line = line_of(key->from);
        *own = (kept){*line, *key, bytes, made};
        *line = k = own;
        kept_bytes += bytes;
    }
    pthread_mutex_unlock(&lock);
    if (k != own) {
        free(made);
        free(own);
    }
    return k->made;
}

static const void *look(const void *from)
{
    pthread_mutex_lock(&lock);
    const kept *k = *line_of(from);
    while (k && k->key.from != from)
        k = k->next;
    pthread_mutex_unlock(&lock);
    return k ? k->made : 0;
}

const dy_keeper keeper = {get, look};

/* The memory does not change from now on.  Gives whether that could be noted. */
int freeze(uintptr_t begin, int64_t bytes)
{
    frozen *const f = malloc(sizeof *f);
    if (!f)
        return 0;
    pthread_mutex_lock(&lock);
    *f = (frozen){all_frozen, begin, begin + bytes};
    all_frozen = f;
    pthread_mutex_unlock(&lock);
    return 1;
}

/* The memory that begins there is no longer used: forget what was made of it. */
void thaw(uintptr_t begin)
{
    pthread_mutex_lock(&lock);
    frozen **f = &all_frozen;
    while (*f && (*f)->begin != begin)
        f = &(*f)->next;
    if (*f) {
        frozen *const old = *f;
        *f = old->next;
        for (int line = 0; line < LINES; line++)
            for (kept **k = &lines[line]; *k;) {
                kept *const one = *k;
                const uintptr_t from = (uintptr_t)one->key.from;
                if (from < old->begin || from >= old->end) {
                    k = &one->next;
                    continue;
                }
                *k = one->next;
                kept_bytes -= one->bytes;
                free(one->made);
                free(one);
            }
        free(old);
    }
    pthread_mutex_unlock(&lock);
}

/* How many bytes are kept. */
int64_t kept_size(void)
{
    pthread_mutex_lock(&lock);
    const int64_t bytes = kept_bytes;
    pthread_mutex_unlock(&lock);
    return bytes;
}

/* A child made by fork has the memory, and the lock in whatever state another thread left it in. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static __attribute__((constructor)) void watch_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

#endif
