/* Working memory of the threads that compute convolutions. */
#ifndef DY2STATIC_THREAD_MEMORY_H
#define DY2STATIC_THREAD_MEMORY_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* Working memory of a thread, and sums of shares that it has others do; both grow to what the largest convolution needs and go
   with the thread. */
static pthread_key_t memory_key, sums_key;
static int has_keys;

static __attribute__((constructor)) void make_keys(void)
{
    has_keys = !pthread_key_create(&memory_key, free) && !pthread_key_create(&sums_key, free);
}

static void *memory_of(const pthread_key_t key, const int64_t bytes)
{
    if (!has_keys)
        return 0;
    int64_t *held = pthread_getspecific(key);
    if (held && *held >= bytes)
        return (char *)held + 64;
    free(held);
    pthread_setspecific(key, 0);
    const int64_t size = (bytes + 64 + 4095) / 4096 * 4096;
    held = aligned_alloc(64, size);
    if (!held)
        return 0;
    *held = size - 64;
    if (pthread_setspecific(key, held)) {
        free(held);
        return 0;
    }
    return (char *)held + 64;
}

static void *memory(const int64_t bytes) { return memory_of(memory_key, bytes); }

#endif
