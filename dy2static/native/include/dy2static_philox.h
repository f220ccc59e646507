/* Random numbers in kernels: Philox4x32-10 of Salmon et al. (Parallel Random Numbers: As Easy as 1, 2, 3; 2011).
 *
 * Element k of a draw is made of the words of call k / n, where a call gives n elements: it does not depend on which thread computes it.
 * The key is the low words of two floats that were drawn; number: another one for each draw with the same key.  The same numbers as
 * `philox` of ops/fast_random.py.
 */
#ifndef DY2STATIC_PHILOX_H
#define DY2STATIC_PHILOX_H

struct dy_words4 { uint32_t word[4]; };

D2S_FUNCTION dy_words4 dy_philox(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3)
{
    for (int round = 0; round < 10; ++round) {
        const uint64_t first = (uint64_t)c0 * 0xD2511F53u, second = (uint64_t)c2 * 0xCD9E8D57u;
        c0 = (uint32_t)(second >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(first >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)second;
        c3 = (uint32_t)first;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    const dy_words4 made = {{c0, c1, c2, c3}};
    return made;
}

D2S_FUNCTION dy_words4 dy_call(const double *key, uint32_t number, uint64_t call)
{
    return dy_philox((uint32_t)d2s_bits_f64(key[0]), (uint32_t)d2s_bits_f64(key[1]), (uint32_t)call, (uint32_t)(call >> 32), number, 0);
}

/* One of the numbers of a call as an int of 24, or 53, bits; k: that of an element. */
D2S_FUNCTION float dy_bits24(const dy_words4 &made, uint32_t k) {
    return (float)((k & 2 ? k & 1 ? made.word[3] : made.word[2] : k & 1 ? made.word[1] : made.word[0]) >> 8); }
D2S_FUNCTION double dy_bits53(const dy_words4 &made, uint32_t k) {
    const uint32_t high = k & 1 ? made.word[2] : made.word[0], low = k & 1 ? made.word[3] : made.word[1];
    return (high >> 5) * 67108864.0 + (low >> 6); }

D2S_FUNCTION float dy_random_sample_f32(const double *key, uint32_t number, uint64_t k) {
    return dy_bits24(dy_call(key, number, k >> 2), (uint32_t)k) * 0x1p-24f; }
D2S_FUNCTION double dy_random_sample_f64(const double *key, uint32_t number, uint64_t k) {
    return dy_bits53(dy_call(key, number, k >> 1), (uint32_t)k) * 0x1p-53; }

/* Box and Muller (1958): a radius of the first of two neighbours, and an angle of the second. */
D2S_FUNCTION float dy_standard_normal_f32(const double *key, uint32_t number, uint64_t k)
{
    const dy_words4 made = dy_call(key, number, k >> 2);
    const uint32_t pair = (uint32_t)k & 2;
    const float radius = sqrt_f32(-2.0f * log_f32((dy_bits24(made, pair) + 1.0f) * 0x1p-24f));
    const float angle = dy_bits24(made, pair + 1) * (0x1p-24f * 6.2831853071795864769f);
    return radius * (k & 1 ? sin_f32(angle) : cos_f32(angle));
}

D2S_FUNCTION double dy_standard_normal_f64(const double *key, uint32_t number, uint64_t k)
{
    const dy_words4 made = dy_call(key, number, k >> 1);
    const double radius = sqrt_f64(-2.0 * log_f64((dy_bits53(made, 0) + 1.0) * 0x1p-53));
    const double angle = dy_bits53(made, 1) * (0x1p-53 * 6.2831853071795864769);
    return radius * (k & 1 ? sin_f64(angle) : cos_f64(angle));
}
#endif
