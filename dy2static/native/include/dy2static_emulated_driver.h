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
    void *stream, *memory;
    char message[256];
};

typedef std::function<int()> Work;
struct Node { Work work; size_t count; };                               /* count: nodes of a child graph */
struct Graph { std::vector<std::shared_ptr<Node>> nodes; };
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
    std::vector<void *> values;
    for (unsigned k = 0; k < what->parameters; ++k) values.push_back(*(void **)parameters[k]);
    return [=]() mutable {
        if (device->launch_status) return (int)device->launch_status;
        std::lock_guard<std::mutex> held(one_launch);
        std::vector<void *> pointers;
        for (void *&value : values) pointers.push_back(&value);
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
    emulated::set_workspace, emulated::product, emulated::products, emulated::begin_recording, emulated::end_recording,
    emulated::is_recording, emulated::new_graph, emulated::delete_graph, emulated::add_kernel, emulated::add_child,
    emulated::instantiate, emulated::set_kernel, emulated::set_child, emulated::launch_graph, emulated::delete_exec};
}
#endif
