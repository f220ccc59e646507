/* Uniform numbers from the state of NumPy's MT19937: those that NumPy would draw, and the state as NumPy would leave it.
   The generator is that of Matsumoto and Nishimura (1998); a double takes two words: 27 bits and 26. */
#ifndef DY2STATIC_DRAWS_H
#define DY2STATIC_DRAWS_H

#include <stdint.h>

#define DY_WORDS 624
#define DY_SHIFT 397

typedef struct {
    uint32_t key[DY_WORDS];
    int32_t position;
#ifdef DY_STANDALONE
    int32_t has_normal;             /* whether the last pair of normal numbers has one left */
    double normal;
#endif
} dy_generator;

static inline uint32_t dy_twist(uint32_t one, uint32_t two, uint32_t far)
{
    const uint32_t y = (one & 0x80000000u) | (two & 0x7fffffffu);
    return far ^ (y >> 1) ^ (-(y & 1u) & 0x9908b0dfu);
}

static __attribute__((noinline)) void dy_next_words(dy_generator *generator)
{
    uint32_t *const key = generator->key;
    #pragma omp simd
    for (int k = 0; k < DY_WORDS - DY_SHIFT; ++k)
        key[k] = dy_twist(key[k], key[k + 1], key[k + DY_SHIFT]);
    #pragma omp simd safelen(128)
    for (int k = DY_WORDS - DY_SHIFT; k < DY_WORDS - 1; ++k)
        key[k] = dy_twist(key[k], key[k + 1], key[k + DY_SHIFT - DY_WORDS]);
    key[DY_WORDS - 1] = dy_twist(key[DY_WORDS - 1], key[0], key[DY_SHIFT - 1]);
    generator->position = 0;
}

static inline uint32_t dy_tempered(uint32_t y)
{
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static inline double dy_of_words(uint32_t one, uint32_t two)
{
    const int32_t high = dy_tempered(one) >> 5, low = dy_tempered(two) >> 6;
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

static inline uint32_t dy_next_word(dy_generator *generator)
{
    if (generator->position == DY_WORDS)
        dy_next_words(generator);
    return generator->key[generator->position++];
}

static inline double dy_uniform_one(dy_generator *generator)
{
    const uint32_t one = dy_next_word(generator);
    return dy_of_words(one, dy_next_word(generator));
}

static __attribute__((noinline)) void dy_uniform(dy_generator *generator, double *restrict out, int64_t count)
{
    while (count > 0) {
        if (generator->position == DY_WORDS)
            dy_next_words(generator);
        const uint32_t *const words = generator->key + generator->position;
        const int64_t there = (DY_WORDS - generator->position) / 2, now = there < count ? there : count;
        #pragma omp simd
        for (int64_t k = 0; k < now; ++k)
            out[k] = dy_of_words(words[2 * k], words[2 * k + 1]);
        generator->position += 2 * now;
        out += now;
        count -= now;
        if (count > 0 && generator->position == DY_WORDS - 1) {
            *out++ = dy_uniform_one(generator);
            --count;
        }
    }
}

#ifdef DY_STANDALONE
#include <math.h>

static inline void dy_between(dy_generator *generator, double *out, int64_t count, double low, double high)
{
    dy_uniform(generator, out, count);
    for (int64_t k = 0; k < count; ++k)
        out[k] = low + (high - low) * out[k];
}

/* Numbers of the standard normal distribution in pairs, by the polar method of Marsaglia (1964), in NumPy's order. */
static inline void dy_normal(dy_generator *generator, double *out, int64_t count)
{
    for (int64_t k = 0; k < count; ++k) {
        generator->has_normal = !generator->has_normal;
        if (!generator->has_normal) {
            out[k] = generator->normal;
            continue;
        }
        double x, y, square;
        do {
            x = 2 * dy_uniform_one(generator) - 1;
            y = 2 * dy_uniform_one(generator) - 1;
            square = x * x + y * y;
        } while (square >= 1 || square == 0);
        const double factor = sqrt(-2 * log(square) / square);
        generator->normal = factor * x;
        out[k] = factor * y;
    }
}
#endif

#endif
