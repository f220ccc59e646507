/* The table of dy2static_launch.h without a GPU: memory is the process's, kernels are those of dy2static_emulated.h, and products
 * are plain loops.  All is done when a call returns, whatever its stream.
 */
#ifndef DY2STATIC_EMULATED_DRIVER_H
#define DY2STATIC_EMULATED_DRIVER_H

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "dy2static_emulated.h"
#include "dy2static_device.h"
#include "dy2static_launch.h"

namespace emulated {

enum { INVALID = 1, NOT_SUPPORTED = 15, LAUNCH_FAILED = 719, UPDATE_FAILED = 910 };

/* What a device has been asked to do, and what went wrong in its last kernel.  native/emulated.py reads it.
 * launch_status, graph_status: what launches of kernels, and calls that make or launch graphs, give instead of doing something. */
struct Device {
    int64_t launched, products, order, compute, graphs, patches, replays, launch_status, graph_status;
    int64_t finished, finish_status, loses_nan;        /* products with a bias; what the heuristics give; what ReLU makes of NaN */
    int64_t turns;                                     /* of loops in graphs */
    /* Algorithms of cublasLt: how many the heuristics give; the time of cuBLAS's own one, and of each of these, in microseconds; the
       last one that has computed (0: cuBLAS's own); in how many parts its sums were; a time that has passed. */
    int64_t offered, times[8], algorithm, parts, clock;
    void *stream, *memory;
    char message[256];
};

typedef std::function<int()> Work;
struct Node { Work work; size_t count; };                               /* count: nodes of a child graph */
struct Graph { std::vector<std::shared_ptr<Node>> nodes; std::vector<std::shared_ptr<unsigned>> conditions; };
struct Exec { std::vector<std::pair<Node *, Node>> nodes; };            /* the node that each was made of, and what it does now */

inline std::mutex one_launch;           /* the state of the emulator belongs to the process */
inline thread_local Device *device;     /* the current context */
inline thread_local std::map<void *, Graph *> recorded;                 /* streams that this thread records from */

inline int set_context(void *context) { device = (Device *)context; return 0; }

/* Do some work, or note it where its stream is recorded. */
inline int put(void *stream, Work work)
{
    auto found = recorded.find(stream);
    if (found == recorded.end()) return work();
    found->second->nodes.push_back(std::make_shared<Node>(Node{work, 0}));
    return 0;
}

/* A launch, with the arguments that it is given now. */
inline Work launching(void *kernel, unsigned blocks, unsigned threads, void **parameters)
{
    const emu::Kernel *const what = (const emu::Kernel *)kernel;
    std::vector<std::vector<char>> values;
    for (unsigned k = 0; what->parameters[k]; ++k)
        values.emplace_back((const char *)parameters[k], (const char *)parameters[k] + what->parameters[k]);
    return [=]() mutable {
        if (device->launch_status) return (int)device->launch_status;
        std::lock_guard<std::mutex> held(one_launch);
        std::vector<void *> pointers;
        for (std::vector<char> &value : values) pointers.push_back(value.data());
        ++device->launched;
        const char *const message = what->launch(pointers.data(), blocks, threads, (int)device->order);
        if (!*message) return 0;
        strncpy(device->message, message, sizeof device->message - 1);
        return (int)LAUNCH_FAILED;
    };
}

inline int launch_kernel(void *kernel, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, void *stream,
                         void **parameters, void **)
{
    return put(stream, launching(kernel, blocks, threads, parameters));
}

inline int set_bytes(uint64_t to, unsigned char byte, size_t count, void *stream)
{
    return put(stream, [=] { memset((void *)to, byte, count); return 0; });
}

inline int copy_bytes(uint64_t to, uint64_t from, size_t count, void *stream)
{
    return put(stream, [=] { memcpy((void *)to, (const void *)from, count); return 0; });
}

inline int set_stream(void *handle, void *stream) {
    ((Device *)handle)->stream = stream; ((Device *)handle)->memory = nullptr; return 0; }

inline int set_workspace(void *handle, void *memory, size_t) { ((Device *)handle)->memory = memory; return 0; }

/* Matrices stand in the order of columns.  Sums are in double precision. */
template <class T> void multiply(int turn_a, int turn_b, int m, int n, int k, const T *a, int lda, const T *b, int ldb, T *c, int ldc)
{
    std::vector<double> factors((size_t)k), column((size_t)m);
    for (int j = 0; j < n; ++j) {
        for (int l = 0; l < k; ++l) factors[l] = (double)(turn_b ? b[(size_t)l * ldb + j] : b[(size_t)j * ldb + l]);
        for (double &x : column) x = 0;
        if (turn_a) for (int i = 0; i < m; ++i) for (int l = 0; l < k; ++l) column[i] += (double)a[(size_t)i * lda + l] * factors[l];
        else for (int l = 0; l < k; ++l) for (int i = 0; i < m; ++i) column[i] += (double)a[(size_t)l * lda + i] * factors[l];
        for (int i = 0; i < m; ++i) c[(size_t)j * ldc + i] = (T)column[i];
    }
}

inline int multiply_all(Device *handle, int turn_a, int turn_b, int m, int n, int k, const void *a, int type_a, int lda, long long step_a,
                        const void *b, int ldb, long long step_b, void *c, int ldc, long long step_c, int count, int compute)
{
    ++handle->products;
    handle->compute = compute;
    handle->clock += handle->times[0];
    handle->algorithm = 0;
    for (int number = 0; number < count; ++number) {
        if (type_a == DY_R_32F)
            multiply(turn_a, turn_b, m, n, k, (const float *)a + step_a * number, lda, (const float *)b + step_b * number, ldb,
                     (float *)c + step_c * number, ldc);
        else if (type_a == DY_R_64F)
            multiply(turn_a, turn_b, m, n, k, (const double *)a + step_a * number, lda, (const double *)b + step_b * number, ldb,
                     (double *)c + step_c * number, ldc);
        else if (type_a == DY_R_16F)
            multiply(turn_a, turn_b, m, n, k, (const dy_half *)a + step_a * number, lda, (const dy_half *)b + step_b * number, ldb,
                     (dy_half *)c + step_c * number, ldc);
        else return NOT_SUPPORTED;
    }
    return 0;
}

inline int products(void *handle, int turn_a, int turn_b, int m, int n, int k, const void *, const void *a, int type_a, int lda,
                    long long step_a, const void *b, int, int ldb, long long step_b, const void *, void *c, int, int ldc,
                    long long step_c, int count, int compute, int)
{
    Device *const found = (Device *)handle;
    if (!found->memory) return NOT_SUPPORTED;                           /* the launcher gives a workspace each time */
    if (lda < (turn_a ? k : m) || ldb < (turn_b ? n : k) || ldc < m) return NOT_SUPPORTED;
    return put(found->stream, [=] {
        return multiply_all(found, turn_a, turn_b, m, n, k, a, type_a, lda, step_a, b, ldb, step_b, c, ldc, step_c, count, compute); });
}

inline int product(void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda,
                   const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc, int compute, int algorithm)
{
    return products(handle, turn_a, turn_b, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c, type_c, ldc, 0, 1, compute,
                    algorithm);
}

/* Stacks through a table: the addresses are read when the products are computed.  Kernels of cuBLAS may load 16 bytes at a time. */
inline int scattered(void *handle, int turn_a, int turn_b, int m, int n, int k, const void *, const void *const *a, int type_a, int lda,
                     const void *const *b, int, int ldb, const void *, void *const *c, int, int ldc, int count, int compute, int)
{
    Device *const found = (Device *)handle;
    if (!found->memory || lda < (turn_a ? k : m) || ldb < (turn_b ? n : k) || ldc < m) return NOT_SUPPORTED;
    return put(found->stream, [=] {
        for (int number = 0; number < count; ++number) {
            if (((uint64_t)a[number] | (uint64_t)b[number] | (uint64_t)c[number]) % 16) return (int)LAUNCH_FAILED;
            const int status = multiply_all(found, turn_a, turn_b, m, n, k, a[number], type_a, lda, 0, b[number], ldb, 0, c[number], ldc, 0,
                                            1, compute);
            if (status) return status;
        }
        found->products -= count - 1;                                   /* it is one call */
        return 0; });
}

/* Products by cublasLt, also with bias and ReLU */

struct Finish { int compute, scale, turns[2]; uint32_t epilogue; const float *bias; };
struct Layout { int type; uint64_t rows, columns; int64_t leading, step; int count; };
struct Preference { uint64_t workspace; uint32_t reductions, alignments[4]; };

inline int new_finish(void **made, int compute, int scale) { *made = new Finish{compute, scale, {0, 0}, 1, nullptr}; return 0; }

inline int delete_finish(void *made) { delete (Finish *)made; return 0; }

inline int set_finish(void *made, int attribute, const void *value, size_t size)
{
    Finish &finish = *(Finish *)made;
    switch (attribute) {
    case 3: case 4: memcpy(finish.turns + attribute - 3, value, 4); return size != 4;
    case 7: memcpy(&finish.epilogue, value, 4); return size != 4;
    case 8: memcpy(&finish.bias, value, 8); return size != 8;
    default: return INVALID;
    }
}

inline int new_layout(void **made, int type, uint64_t rows, uint64_t columns, int64_t leading) {
    *made = new Layout{type, rows, columns, leading, 0, 1}; return leading < (int64_t)rows; }

inline int set_layout(void *made, int attribute, const void *value, size_t size)
{
    Layout &layout = *(Layout *)made;
    switch (attribute) {
    case 5: memcpy(&layout.count, value, 4); return size != 4;
    case 6: memcpy(&layout.step, value, 8); return size != 8;
    default: return INVALID;
    }
}

inline int delete_layout(void *made) { delete (Layout *)made; return 0; }

inline int new_preference(void **made) { *made = new Preference{0, 7, {256, 256, 256, 256}}; return 0; }

inline int delete_preference(void *made) { delete (Preference *)made; return 0; }

inline int set_preference(void *made, int attribute, const void *value, size_t size)
{
    if (attribute == 1) { memcpy(&((Preference *)made)->workspace, value, 8); return size != 8; }
    if (attribute == 3) { memcpy(&((Preference *)made)->reductions, value, 4); return size != 4; }
    if (attribute < 5 || attribute > 8) return INVALID;
    memcpy(((Preference *)made)->alignments + attribute - 5, value, 4);
    return size != 4;
}

/* Algorithms that need what they were told of alignments and of the workspace: alignments, number, parts, how these are added up.  No
   more than one is given without saying that sums must not be added up where the result is. */
inline int choose(void *handle, void *, void *, void *, void *, void *, void *preference, int most, dy_heuristic *found, int *count)
{
    const Preference &wanted = *(Preference *)preference;
    if (most > 1 && wanted.reductions & 1) return INVALID;
    *count = (int)(((Device *)handle)->offered < most ? ((Device *)handle)->offered : most);
    for (int number = 0; number < *count; ++number, ++found) {
        memset(found, 0, sizeof *found);
        found->status = (int)((Device *)handle)->finish_status;
        found->workspace = wanted.workspace;
        for (int k = 0; k < 4; ++k) found->algorithm.data[k] = wanted.alignments[k];
        found->algorithm.data[4] = (uint64_t)number;
        found->algorithm.data[5] = 1;
    }
    return 0;
}

inline int set_algorithm(dy_algorithm *algorithm, int attribute, const void *value, size_t size)
{
    if (attribute < 2 || attribute > 3 || size != 4) return INVALID;
    algorithm->data[attribute + 3] = 0;
    memcpy(algorithm->data + attribute + 3, value, 4);
    return 0;
}

/* Sums in at most four parts, which are added up in the workspace. */
inline int check(void *, void *, void *, void *, void *, void *, const dy_algorithm *algorithm, dy_heuristic *found)
{
    found->workspace = 64;
    return algorithm->data[5] > 4 || (algorithm->data[5] > 1 && algorithm->data[6] != 2) ? NOT_SUPPORTED : 0;
}

inline int finish(void *handle, void *product, const void *, const void *at_a, void *a, const void *at_b, void *b, const void *,
                  const void *at_c, void *, void *at_d, void *d, const dy_algorithm *algorithm, void *memory, size_t size, void *stream)
{
    Device *const found = (Device *)handle;
    const Finish how = *(Finish *)product;
    const Layout left = *(Layout *)a, right = *(Layout *)b, out = *(Layout *)d;
    const dy_algorithm given = *algorithm;
    const uint64_t *const assumed = given.data;
    const int m = (int)out.rows, n = (int)out.columns, k = (int)(how.turns[0] ? left.rows : left.columns), number = (int)given.data[4];
    if ((uint64_t)at_a % assumed[0] || (uint64_t)at_b % assumed[1] || (uint64_t)at_d % assumed[3] || at_c != at_d || !memory || !size)
        return INVALID;
    if ((int)(how.turns[0] ? left.columns : left.rows) != m || (int)(how.turns[1] ? right.columns : right.rows) != k) return INVALID;
    if (left.count != out.count || right.count != out.count || how.scale != (out.type == DY_R_64F ? DY_R_64F : DY_R_32F)) return INVALID;
    if (found->times[1 + number] < 0) return NOT_SUPPORTED;
    return put(stream, [=] {
        memset(memory, 0xff, size);                                     /* it may be written to */
        const int64_t products = found->products;
        const int status = multiply_all(found, how.turns[0], how.turns[1], m, n, k, at_a, left.type, (int)left.leading, left.step, at_b,
                                        (int)right.leading, right.step, at_d, (int)out.leading, out.step, out.count, how.compute);
        found->clock += found->times[1 + number] / (int64_t)given.data[5] - found->times[0];
        found->algorithm = number + 1;
        found->parts = (int64_t)given.data[5];
        if (status || how.epilogue == 1) return status;
        found->products = products;
        found->finished += how.bias[0] == how.bias[0];                  /* a trial with NaN is no product of the region */
        for (int j = 0; j < n; ++j) for (int i = 0; i < m; ++i) {
            float &x = ((float *)at_d)[(size_t)j * out.leading + i];
            x += how.bias[i];
            if (how.epilogue == 6) x = x > 0 || (x != x && !found->loses_nan) ? x : 0;
        }
        return 0; });
}

/* Events note the time of algorithms, in microseconds. */

inline int new_event(void **event, unsigned) { *event = new int64_t(0); return (int)device->graph_status; }

inline int delete_event(void *event) { delete (int64_t *)event; return 0; }

inline int record_event(void *event, void *stream) { return put(stream, [=] { *(int64_t *)event = device->clock; return 0; }); }

inline int wait_for_event(void *) { return recorded.empty() ? 0 : (int)INVALID; }

inline int time_between(float *milliseconds, void *begin, void *end) {
    *milliseconds = (float)(*(int64_t *)end - *(int64_t *)begin) / 1000; return 0; }

inline int copy_to_host(void *to, uint64_t from, size_t count, void *) { memcpy(to, (const void *)from, count); return 0; }

inline int wait(void *stream) { return recorded.count(stream) ? INVALID : 0; }

/* Graphs */

inline int begin_recording(void *stream, int) { return recorded.emplace(stream, new Graph).second ? 0 : INVALID; }

inline int end_recording(void *stream, void **graph)
{
    auto found = recorded.find(stream);
    if (found == recorded.end()) return INVALID;
    *graph = found->second;
    recorded.erase(found);
    return 0;
}

inline int is_recording(void *stream, int *status) { *status = recorded.count(stream) != 0; return 0; }

inline int new_graph(void **graph, unsigned) { *graph = new Graph; return (int)device->graph_status; }

inline int delete_graph(void *graph) { delete (Graph *)graph; return 0; }

/* A chain: each node comes behind the last one. */
inline int add(void **node, void *graph, void *const *before, size_t count, Node what)
{
    auto &nodes = ((Graph *)graph)->nodes;
    if (nodes.empty() ? count != 0 : count != 1 || *before != nodes.back().get()) return INVALID;
    nodes.push_back(std::make_shared<Node>(what));
    *node = nodes.back().get();
    return 0;
}

inline Node node_of(const dy_kernel_node *kernel) { return {launching(kernel->function, kernel->blocks, kernel->threads, kernel->parameters), 0}; }

inline Node node_of(void *child)
{
    const Graph copy = *(Graph *)child;
    return {[=] { int status = 0; for (auto &node : copy.nodes) if (!status) status = node->work(); return status; }, copy.nodes.size()};
}

inline int add_kernel(void **node, void *graph, void *const *before, size_t count, const dy_kernel_node *kernel) {
    return add(node, graph, before, count, node_of(kernel)); }

inline int add_child(void **node, void *graph, void *const *before, size_t count, void *child) {
    return add(node, graph, before, count, node_of(child)); }

/* A condition is 0 when a graph begins.  Each kernel that sets it is given where it is. */
inline int new_condition(uint64_t *handle, void *graph, void *, unsigned value, unsigned flags)
{
    if (device->graph_status) return (int)device->graph_status;
    ((Graph *)graph)->conditions.push_back(std::make_shared<unsigned>(value));
    *handle = (uint64_t)((Graph *)graph)->conditions.back().get();
    return flags == DY_ASSIGN_DEFAULT && !value ? 0 : INVALID;
}

/* A loop: its body is a graph, to which nodes are added afterwards. */
inline int add_loop(void **node, void *graph, void *const *before, size_t count, dy_conditional_node *what)
{
    if (what->type != DY_NODE_CONDITIONAL || what->condition != DY_WHILE || what->size != 1 || what->context != device) return INVALID;
    struct Body { Graph graph; void *given[1]; };
    std::shared_ptr<Body> body = std::make_shared<Body>();
    std::shared_ptr<unsigned> condition;
    for (auto &known : ((Graph *)graph)->conditions) if ((uint64_t)known.get() == what->handle) condition = known;
    if (!condition) return INVALID;
    body->given[0] = &body->graph;
    what->bodies = body->given;
    return add(node, graph, before, count, {[=] {
        for (; *condition; ++device->turns)
            for (auto &inner : body->graph.nodes) { const int status = inner->work(); if (status) return status; }
        return 0; }, 0});
}

inline int instantiate(void **exec, void *graph, unsigned long long)
{
    if (device->graph_status) return (int)device->graph_status;
    Exec *const made = new Exec;
    for (auto &node : ((Graph *)graph)->nodes) made->nodes.emplace_back(node.get(), *node);
    ++device->graphs;
    *exec = made;
    return 0;
}

/* A node is set to something of the same kind only. */
inline int set(void *exec, void *node, Node what)
{
    ++device->patches;
    for (auto &pair : ((Exec *)exec)->nodes)
        if (pair.first == node) {
            if (pair.second.count != what.count) return UPDATE_FAILED;
            pair.second = what;
            return 0;
        }
    return INVALID;
}

inline int set_kernel(void *exec, void *node, const dy_kernel_node *kernel) { return set(exec, node, node_of(kernel)); }

inline int set_child(void *exec, void *node, void *child) { return set(exec, node, node_of(child)); }

inline int launch_graph(void *exec, void *)
{
    if (device->graph_status) return (int)device->graph_status;
    ++device->replays;
    for (auto &pair : ((Exec *)exec)->nodes) {
        const int status = pair.second.work();
        if (status) return status;
    }
    return 0;
}

inline int delete_exec(void *exec) { delete (Exec *)exec; return 0; }

}  // namespace emulated

extern "C" {
dy_driver dy_emulated = {
    emulated::set_context, emulated::launch_kernel, emulated::set_bytes, emulated::copy_bytes, emulated::set_stream,
    emulated::set_workspace, emulated::product, emulated::products, emulated::scattered,
    emulated::copy_to_host, emulated::wait, emulated::new_finish, emulated::delete_finish, emulated::set_finish, emulated::new_layout,
    emulated::delete_layout, emulated::set_layout, emulated::new_preference, emulated::delete_preference, emulated::set_preference, emulated::choose,
    emulated::set_algorithm, emulated::check, emulated::finish, emulated::new_event, emulated::delete_event, emulated::record_event,
    emulated::wait_for_event, emulated::time_between, emulated::begin_recording, emulated::end_recording,
    emulated::is_recording, emulated::new_graph, emulated::delete_graph, emulated::add_kernel, emulated::add_child,
    emulated::instantiate, emulated::set_kernel, emulated::set_child, emulated::launch_graph, emulated::delete_exec,
    emulated::new_condition, emulated::add_loop};
}
#endif
