/* What runs the threads of a kernel of dy2static_emulated.h: fibers, one after another, between barriers and shuffles.
 *
 * This is a library of its own, which is loaded before those of kernels; all its names are in `emu`.
 */
#ifndef DY2STATIC_EMULATED_THREADS_H
#define DY2STATIC_EMULATED_THREADS_H
#include <csetjmp>
#include <cstdio>
#include <map>
#include <ucontext.h>
#include <utility>
#include <vector>

#include "dy2static_emulated.h"

namespace emu {

constexpr int WARP = 32, STACK = 64 * 1024;

struct Fiber { ucontext_t context; std::vector<char> stack; jmp_buf at; bool started, done; int waits, line; unsigned phase; };
struct Warp { uint64_t slots[2][WARP]; unsigned arrived, phase; int line; };

std::vector<Fiber> fibers;
std::vector<Warp> warps;
std::map<std::pair<unsigned, const void *>, std::vector<char>> shared_memory;
unsigned current, arrived, block_phase, threads;
unsigned team_arrived[16], team_phase[16];
bool votes[2];
dim3 grid_dim, block_dim, block_index, thread_index;
jmp_buf scheduler;
void (*body)(void **);
void **arguments;
char message[256];

void fail(const char *what, int line) {
    if (!message[0]) snprintf(message, sizeof message, "%s: block %u, thread %u, line %d", what, block_index.x, current, line); }

/* Give the processor to the next fiber.  setjmp and longjmp, because swapcontext asks the kernel each time. */
void leave() { if (!_setjmp(fibers[current].at)) _longjmp(scheduler, 1); }

void entry() { body(arguments); fibers[current].done = true; _longjmp(scheduler, 1); }

void resume(unsigned k) {
    Fiber &f = fibers[k];
    current = k; thread_index.x = k;
    if (_setjmp(scheduler)) return;
    if (f.started) _longjmp(f.at, 1);
    f.started = true;
    setcontext(&f.context);
}

void sync(int line) {
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
void sync_team(unsigned number, unsigned size, int line) {
    Fiber &f = fibers[current];
    if (!number || number >= 16 || size % WARP) fail("a barrier that CUDA does not have", line);
    f.line = line; f.waits = 1;
    const unsigned mine = team_phase[number];
    if (++team_arrived[number] == size) { team_arrived[number] = 0; ++team_phase[number]; }
    while (team_phase[number] == mine && !message[0]) leave();
    f.waits = 0;
}

/* The same as sync, where each thread gets whether anything was true for one of them. */
bool sync_any(bool is, int line) {
    const unsigned mine = block_phase & 1;
    if (!arrived) votes[mine] = false;
    votes[mine] |= is;
    sync(line);
    return votes[mine];
}

/* All lanes of the warp give a value, and each gets that of another lane. */
uint64_t exchange_bits(unsigned mask, uint64_t bits, unsigned from, int line) {
    Warp &w = warps[current / WARP];
    const unsigned lane = current % WARP, size = threads - current / WARP * WARP < WARP ? threads - current / WARP * WARP : WARP;
    const unsigned mine = w.phase;
    if (mask != 0xffffffffu || size != WARP) fail("a shuffle that not the whole warp takes part in", line);
    if (w.arrived == 0) w.line = line; else if (w.line != line) fail("lanes of a warp at different shuffles", line);
    w.slots[mine & 1][lane] = bits;
    fibers[current].waits = 2; fibers[current].line = line;
    if (++w.arrived == size) { w.arrived = 0; ++w.phase; }
    while (w.phase == mine && !message[0]) leave();
    fibers[current].waits = 0;
    return w.slots[mine & 1][from < WARP ? from : lane];
}

/* A bit of each lane of the warp. */
unsigned ballot(unsigned mask, bool is, int line) {
    const Warp &w = warps[current / WARP];
    const unsigned mine = w.phase;
    unsigned bits = 0;
    exchange(mask, (unsigned)is, current % WARP, line);
    for (int lane = 0; lane < WARP; ++lane) bits |= (unsigned)(w.slots[mine & 1][lane] & 1) << lane;
    return bits;
}

/* The memory of a place in the text, and of a type there. */
void *shared_bytes(unsigned number, const void *type, size_t size) {
    std::vector<char> &found = shared_memory[{number, type}];
    if (found.empty()) found.assign(size, (char)0xff);
    return found.data();
}

/* Put numbers into another order; the same one for the same state. */
void shuffle(std::vector<unsigned> &numbers, uint64_t &state) {
    for (size_t k = numbers.size(); k > 1; --k) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        std::swap(numbers[k - 1], numbers[(state >> 33) % k]);
    }
}

/* How many barriers and shuffles threads have passed in a block. */
unsigned passed() {
    unsigned count = block_phase;
    for (const Warp &w : warps) count += w.phase;
    for (unsigned phase : team_phase) count += phase;
    return count;
}

void run_block(std::vector<unsigned> &order, int how, uint64_t &random) {
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
const char *launch(void (*kernel)(void **), void **args, unsigned blocks, unsigned size, int order) {
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

}  // namespace emu
#endif
