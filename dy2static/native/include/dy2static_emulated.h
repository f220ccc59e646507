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
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <ucontext.h>
#include <utility>
#include <vector>

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

constexpr int WARP = 32, STACK = 64 * 1024;

struct Fiber { ucontext_t context; std::vector<char> stack; jmp_buf at; bool started, done; int waits, line; unsigned phase; };
struct Warp { uint64_t slots[2][WARP]; unsigned arrived, phase; int line; };

inline std::vector<Fiber> fibers;
inline std::vector<Warp> warps;
inline std::map<std::pair<unsigned, const void *>, std::vector<char>> shared_memory;
inline unsigned current, arrived, block_phase, threads;
inline unsigned team_arrived[16], team_phase[16];
inline bool votes[2];
inline dim3 grid_dim, block_dim, block_index, thread_index;
inline jmp_buf scheduler;
inline void (*body)(void **);
inline void **arguments;
inline char message[256];

inline void fail(const char *what, int line) {
    if (!message[0]) snprintf(message, sizeof message, "%s: block %u, thread %u, line %d", what, block_index.x, current, line); }

/* Give the processor to the next fiber.  setjmp and longjmp, because swapcontext asks the kernel each time. */
inline void leave() { if (!_setjmp(fibers[current].at)) _longjmp(scheduler, 1); }

inline void entry() { body(arguments); fibers[current].done = true; _longjmp(scheduler, 1); }

inline void resume(unsigned k) {
    Fiber &f = fibers[k];
    current = k; thread_index.x = k;
    if (_setjmp(scheduler)) return;
    if (f.started) _longjmp(f.at, 1);
    f.started = true;
    setcontext(&f.context);
}

inline void sync(int line) {
    Fiber &f = fibers[current];
    f.line = line; f.waits = 1;
    const unsigned mine = block_phase;
    if (++arrived == threads) {
        for (Fiber &other : fibers) if (other.line != line) fail("threads of a block at different barriers", line);
        arrived = 0; ++block_phase;
    }
    while (block_phase == mine && !message[0]) leave();
    f.waits = 0;
}

/* A barrier of some warps of a block, as many as these threads are. */
inline void sync_team(unsigned number, unsigned size, int line) {
    Fiber &f = fibers[current];
    if (!number || number >= 16 || size % WARP) fail("a barrier that CUDA does not have", line);
    f.line = line; f.waits = 1;
    const unsigned mine = team_phase[number];
    if (++team_arrived[number] == size) { team_arrived[number] = 0; ++team_phase[number]; }
    while (team_phase[number] == mine && !message[0]) leave();
    f.waits = 0;
}

/* The same as sync, where each thread gets whether anything was true for one of them. */
inline bool sync_any(bool is, int line) {
    const unsigned mine = block_phase & 1;
    if (!arrived) votes[mine] = false;
    votes[mine] |= is;
    sync(line);
    return votes[mine];
}

/* All lanes of the warp give a value, and each gets that of another lane. */
template <class T> T exchange(unsigned mask, T value, unsigned from, int line) {
    static_assert(sizeof(T) <= 8, "a register or two");
    Warp &w = warps[current / WARP];
    const unsigned lane = current % WARP, size = threads - current / WARP * WARP < WARP ? threads - current / WARP * WARP : WARP;
    const unsigned mine = w.phase;
    if (mask != 0xffffffffu || size != WARP) fail("a shuffle that not the whole warp takes part in", line);
    if (w.arrived == 0) w.line = line; else if (w.line != line) fail("lanes of a warp at different shuffles", line);
    uint64_t bits = 0; memcpy(&bits, &value, sizeof value); w.slots[mine & 1][lane] = bits;
    fibers[current].waits = 2; fibers[current].line = line;
    if (++w.arrived == size) { w.arrived = 0; ++w.phase; }
    while (w.phase == mine && !message[0]) leave();
    fibers[current].waits = 0;
    T result; memcpy(&result, &w.slots[mine & 1][from < WARP ? from : lane], sizeof result);
    return result;
}

/* A bit of each lane of the warp. */
inline unsigned ballot(unsigned mask, bool is, int line) {
    const Warp &w = warps[current / WARP];
    const unsigned mine = w.phase;
    unsigned bits = 0;
    exchange(mask, (unsigned)is, current % WARP, line);
    for (int lane = 0; lane < WARP; ++lane) bits |= (unsigned)(w.slots[mine & 1][lane] & 1) << lane;
    return bits;
}

/* The memory of a place in the text, which is another one for each type where that is in a template. */
template <class T> T *shared(unsigned number, size_t count) {
    static const char type = 0;
    std::vector<char> &found = shared_memory[{number, &type}];
    if (found.empty()) found.assign(count * sizeof(T), (char)0xff);
    return (T *)found.data();
}

/* Put numbers into another order; the same one for the same state. */
inline void shuffle(std::vector<unsigned> &numbers, uint64_t &state) {
    for (size_t k = numbers.size(); k > 1; --k) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        std::swap(numbers[k - 1], numbers[(state >> 33) % k]);
    }
}

/* How many barriers and shuffles threads have passed in a block. */
inline unsigned passed() {
    unsigned count = block_phase;
    for (const Warp &w : warps) count += w.phase;
    for (unsigned phase : team_phase) count += phase;
    return count;
}

inline void run_block(std::vector<unsigned> &order, int how, uint64_t &random) {
    shared_memory.clear(); arrived = 0; block_phase = 0;
    for (int k = 0; k < 16; ++k) team_arrived[k] = team_phase[k] = 0;
    warps.assign((threads + WARP - 1) / WARP, Warp{});
    for (Fiber &f : fibers) {
        f.stack.resize(STACK); f.started = f.done = false; f.waits = f.line = 0;
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data(); f.context.uc_stack.ss_size = STACK; f.context.uc_link = nullptr;
        makecontext(&f.context, entry, 0);
    }
    for (unsigned left = threads; left && !message[0];) {
        if (how >= 2) shuffle(order, random);
        const unsigned before = left, phases = passed();
        for (unsigned k : order) if (!fibers[k].done) { resume(k); left -= fibers[k].done; }
        if (left && left == before && phases == passed())                        /* all have run until they wait */
            for (unsigned k : order) if (!fibers[k].done) {
                current = k; fail(fibers[k].waits == 2 ? "a shuffle that not all lanes reach" : "a barrier that not all threads reach", fibers[k].line); }
    }
}

/* order: 0 first to last, 1 last to first, others at random with that seed. */
inline const char *launch(void (*kernel)(void **), void **args, unsigned blocks, unsigned size, int order) {
    message[0] = 0; body = kernel; arguments = args; threads = size;
    grid_dim = {blocks, 1, 1}; block_dim = {size, 1, 1};
    fibers.resize(size);
    std::vector<unsigned> turns(size), rounds(blocks);
    for (unsigned k = 0; k < size; ++k) turns[k] = order == 1 ? size - 1 - k : k;
    for (unsigned k = 0; k < blocks; ++k) rounds[k] = order == 1 ? blocks - 1 - k : k;
    uint64_t random = (uint64_t)order;
    if (order >= 2) shuffle(rounds, random);
    for (unsigned b : rounds) { block_index.x = b; run_block(turns, order, random); if (message[0]) break; }
    return message;
}

/* The kernel with arguments that are pointed to. */
template <class... T, size_t... I> void call(void (*kernel)(T...), void **a, std::index_sequence<I...>) { kernel(*(T *)a[I]...); }
template <class... T> void call(void (*kernel)(T...), void **a) { call(kernel, a, std::index_sequence_for<T...>()); }

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
