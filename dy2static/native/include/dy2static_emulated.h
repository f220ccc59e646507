/* CUDA's words for g++: a block runs as one fiber for each thread, on the processor.
 *
 * What it finds: wrong numbers, barriers that not all threads reach or reach at different lines, shuffles whose lanes are missing,
 * shared memory that is read before it is written (it is filled with NaN), and, run in several orders, results that depend on the order
 * of threads or blocks.  What it cannot find: speed, coalescing, registers, alignment of vector loads, errors of CUDA's own functions,
 * what goes wrong when blocks really run at the same time.
 */
#ifndef DY2STATIC_EMULATED_H
#define DY2STATIC_EMULATED_H
#define __CUDACC__ 1
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__

using std::isgreater;
using std::isgreaterequal;
using std::isless;
using std::islessequal;

struct dim3 { unsigned x = 1, y = 1, z = 1; };

namespace emu {

/* What runs the threads: dy2static_emulated_threads.h, a library that those of kernels find when they are loaded.  With each kernel,
 * it would take more of the compiler's time than the kernel. */
extern unsigned current;
extern dim3 grid_dim, block_dim, block_index, thread_index;
void sync(int line);
void sync_team(unsigned number, unsigned size, int line);
bool sync_any(bool is, int line);
uint64_t exchange_bits(unsigned mask, uint64_t bits, unsigned from, int line);
unsigned ballot(unsigned mask, bool is, int line);
void *shared_bytes(unsigned number, const void *type, size_t size);
const char *launch(void (*kernel)(void **), void **args, unsigned blocks, unsigned size, int order);

/* All lanes of the warp give a value, and each gets that of another lane. */
template <class T> T exchange(unsigned mask, T value, unsigned from, int line) {
    static_assert(sizeof(T) <= 8, "a register or two");
    uint64_t bits = 0; memcpy(&bits, &value, sizeof value);
    bits = exchange_bits(mask, bits, from, line);
    T result; memcpy(&result, &bits, sizeof result);
    return result;
}

/* The memory of a place in the text, which is another one for each type where that is in a template. */
template <class T> T *shared(unsigned number, size_t count) {
    static const char type = 0;
    return (T *)shared_bytes(number, &type, count * sizeof(T));
}

/* The kernel with arguments that are pointed to. */
template <size_t... I> struct Places {};
template <class... T, size_t... I> void call(void (*kernel)(T...), void **a, Places<I...>) { kernel(*(T *)a[I]...); }
template <class... T> void call(void (*kernel)(T...), void **a) { call(kernel, a, Places<__integer_pack(sizeof...(T))...>()); }

/* A kernel: what runs all its blocks and gives what went wrong, or ""; and the bytes of its parameters, with 0 behind them. */
struct Kernel { const char *(*launch)(void **arguments, unsigned blocks, unsigned threads, int order); const unsigned *parameters; };
template <class... T> const unsigned *parameters(void (*)(T...)) { static const unsigned found[] = {sizeof(T)..., 0}; return found; }

}  // namespace emu

/* The condition of a loop in a graph: the emulated driver looks at the number that the handle points to. */
extern "C" inline void cudaGraphSetConditional(unsigned long long handle, unsigned value) { *(unsigned *)handle = value; }

/* The kernel for those who look it up by its name. */
#define DY_EMULATED(name) \
    static void dy_call_##name(void **a) { emu::call(name, a); } \
    static const char *dy_launch_##name(void **a, unsigned blocks, unsigned threads, int order) { \
        return emu::launch(dy_call_##name, a, blocks, threads, order); } \
    extern "C" { extern const emu::Kernel kernel_of_##name; const emu::Kernel kernel_of_##name = { \
        dy_launch_##name, emu::parameters(name)}; }

#define gridDim emu::grid_dim
#define blockDim emu::block_dim
#define blockIdx emu::block_index
#define threadIdx emu::thread_index
#define __syncthreads() emu::sync(__LINE__)
#define dy_team_barrier(team, count) emu::sync_team((team) + 1, count, __LINE__)
#define __syncthreads_or(is) emu::sync_any(is, __LINE__)
#define __ballot_sync(mask, is) emu::ballot(mask, is, __LINE__)
#define __ffs(bits) __builtin_ffs((int)(bits))
#define __shfl_down_sync(mask, x, by) emu::exchange(mask, x, emu::current % 32 + (by), __LINE__)
#define __shfl_up_sync(mask, x, by) emu::exchange(mask, x, emu::current % 32 - (by), __LINE__)
#define __shfl_xor_sync(mask, x, by) emu::exchange(mask, x, (emu::current % 32) ^ (by), __LINE__)
#define __shfl_sync(mask, x, lane) emu::exchange(mask, x, lane, __LINE__)
/* A constant number per place in the text; helpers that are called twice share it, as in CUDA. */
#define DY_SHARED(T, name, count) T *const name = emu::shared<T>(__COUNTER__, count)

/* What cvt.rn.f16 and cvt.f32.f16 do; nearbyint rounds to the nearest, ties to even. */
inline uint16_t dy_half_bits(double x) {
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const double a = std::fabs(x);
    int exponent;
    if (x != x) return 0x7fff;
    if (a >= 65520) return sign | 0x7c00;
    if (a < 0x1p-14) return sign | (uint16_t)std::nearbyint(a * 0x1p24);
    std::frexp(a, &exponent);
    return sign | (uint16_t)(((exponent + 13) << 10) + (int)std::nearbyint(std::ldexp(a, 11 - exponent)));
}
inline uint16_t dy_half_bits(float x) { return dy_half_bits((double)x); }
inline float dy_of_half_bits(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float a = exponent == 31 ? fraction ? NAN : INFINITY : exponent ? std::ldexp(1024.0f + fraction, exponent - 25)
                                                                          : std::ldexp((float)fraction, -24);
    return bits & 0x8000 ? -a : a;
}

inline uint32_t __float_as_uint(float x) { uint32_t u; memcpy(&u, &x, 4); return u; }
inline float __uint_as_float(uint32_t u) { float x; memcpy(&x, &u, 4); return x; }
inline uint64_t __double_as_longlong(double x) { uint64_t u; memcpy(&u, &x, 8); return u; }
inline double __longlong_as_double(uint64_t u) { double x; memcpy(&x, &u, 8); return x; }
#endif
