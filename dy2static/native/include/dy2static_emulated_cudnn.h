/* cuDNN's convolutions on the processor, for tests: the functions that native/cudnn.py calls, with plain loops.
 *
 * It checks what cuDNN does not: descriptors that live and fit together, aligned memory, and strides.  An algorithm fills
 * its workspace, so that results which lie in it by mistake are lost.  `dy_cudnn_living` says how many descriptors there are.
 */
#include <stddef.h>
#include <string.h>

#include <atomic>
#include <vector>

#include "dy2static_emulated_driver.h"

namespace {

enum { SUCCESS = 0, BAD_PARAM = 2000, NOT_SUPPORTED = 3000, EXECUTION_FAILED = 5000 };
enum Kind { FORWARD, IMAGE, FILTERS };

/* What an algorithm is called, and what is true of it: 5 and 7 must not be chosen, 0 only where bits may differ. */
struct Algorithm { int number, status, is_deterministic; size_t memory; };
const Algorithm ALGORITHMS[] = {{5, NOT_SUPPORTED, 1, 0}, {0, SUCCESS, 0, 0}, {7, SUCCESS, 1, (size_t)1 << 40}, {1, SUCCESS, 1, 4096},
                                {4, SUCCESS, 1, 4096}};

std::atomic<long long> living, computed, rounded;
std::atomic<int> latest;                                     /* the algorithm of the latest run */

/* A descriptor of any kind; ``alive`` is 0 once it is destroyed, and its memory is never used again. */
struct Descriptor {
    char kind;
    int alive, type, groups, math, mode, sums;
    std::vector<int> sizes, strides, pad, stride, dilate;
};

int make(void **made, char kind)
{
    *made = new Descriptor{kind, 1, -1, 1, 0, -1, -1, {}, {}, {}, {}, {}};
    ++living;
    return SUCCESS;
}

Descriptor *of(void *given, char kind)
{
    Descriptor *const found = (Descriptor *)given;
    return found && found->alive && found->kind == kind ? found : nullptr;
}

int destroy(void *given, char kind)
{
    Descriptor *const found = of(given, kind);
    if (!found) return BAD_PARAM;
    found->alive = 0;
    --living;
    return SUCCESS;
}

/* The operands of a function of a kind, found among its descriptors. */
struct Problem { Descriptor *image, *filters, *result, *convolution; };

bool take(Kind kind, void *first, void *second, void *convolution, void *out, Problem *problem)
{
    void *const image = kind == IMAGE ? out : first, *const filters = kind == FORWARD ? second : kind == IMAGE ? first : out;
    void *const result = kind == FORWARD ? out : second;
    *problem = {of(image, 't'), of(filters, 'f'), of(result, 't'), of(convolution, 'c')};
    if (!problem->image || !problem->filters || !problem->result || !problem->convolution) return false;
    const Descriptor &x = *problem->image, &w = *problem->filters, &y = *problem->result, &c = *problem->convolution;
    const size_t count = x.sizes.size();
    bool fits = count >= 4 && w.sizes.size() == count && y.sizes.size() == count && c.pad.size() == count - 2;
    fits = fits && x.type == w.type && x.type == y.type && c.mode == 1 && c.sums == (x.type == 2 ? 0 : x.type);
    fits = fits && x.sizes[0] == y.sizes[0] && w.sizes[0] == y.sizes[1] && x.sizes[1] == w.sizes[1] * c.groups && y.sizes[1] % c.groups == 0;
    for (size_t a = 2; fits && a < count; ++a)
        fits = y.sizes[a] == 1 + (x.sizes[a] + 2 * c.pad[a - 2] - (w.sizes[a] - 1) * c.dilate[a - 2] - 1) / c.stride[a - 2];
    for (const Descriptor *tensor : {&x, &y}) {
        int wanted = 1;
        for (size_t a = count; fits && a-- > 0; wanted *= tensor->sizes[a]) fits = tensor->strides[a] == wanted;
    }
    return fits;
}

struct Found { int algorithm, status; float time; size_t memory; int determinism, math, reserved[3]; };

int algorithms(Kind kind, void *handle, void *first, void *second, void *convolution, void *out, int most, int *count, Found *found)
{
    Problem problem;
    if (!handle || !take(kind, first, second, convolution, out, &problem)) return BAD_PARAM;
    *count = 0;
    for (const Algorithm &one : ALGORITHMS)
        for (int math : {problem.convolution->math == 3 && problem.image->type == 0 ? 0 : problem.convolution->math, problem.convolution->math})
            if (*count < most)
                found[(*count)++] = {one.number, one.status, 1.0f, one.memory, one.is_deterministic, math, {0, 0, 0}};
    return SUCCESS;
}

int workspace(Kind kind, void *handle, void *first, void *second, void *convolution, void *out, int algorithm, size_t *size)
{
    Problem problem;
    if (!handle || !take(kind, first, second, convolution, out, &problem)) return BAD_PARAM;
    for (const Algorithm &one : ALGORITHMS)
        if (one.number == algorithm) *size = one.memory;
    return SUCCESS;
}

size_t product(const std::vector<int> &sizes, size_t from)
{
    size_t all = 1;
    for (size_t a = from; a < sizes.size(); ++a) all *= (size_t)sizes[a];
    return all;
}

/* Add to what is asked for, for each pair of an element of the image and one of the filters that meet in a result.  In double. */
template <class T> void compute(Kind kind, const Problem &problem, T *image, T *filters, T *result)
{
    const Descriptor &x = *problem.image, &w = *problem.filters, &y = *problem.result, &c = *problem.convolution;
    const size_t axes = x.sizes.size() - 2, spots = product(y.sizes, 2), places = product(w.sizes, 2), pixels = product(x.sizes, 2);
    T *const out = kind == FORWARD ? result : kind == IMAGE ? image : filters;
    std::vector<double> all(product((kind == FORWARD ? y : kind == IMAGE ? x : w).sizes, 0));
    const int inner = w.sizes[1], each = y.sizes[1] / c.groups;
    for (size_t spot = 0; spot < spots; ++spot)
        for (size_t place = 0; place < places; ++place) {
            size_t rest_o = spot, rest_k = place, pixel = 0, step = 1;
            bool inside = true;
            for (size_t a = axes; a-- > 0;) {
                const int o = (int)(rest_o % (size_t)y.sizes[a + 2]), k = (int)(rest_k % (size_t)w.sizes[a + 2]);
                const int i = o * c.stride[a] - c.pad[a] + k * c.dilate[a];
                rest_o /= (size_t)y.sizes[a + 2], rest_k /= (size_t)w.sizes[a + 2];
                inside = inside && i >= 0 && i < x.sizes[a + 2];
                pixel += step * (size_t)i, step *= (size_t)x.sizes[a + 2];
            }
            for (int n = 0; inside && n < x.sizes[0]; ++n)
                for (int k = 0; k < y.sizes[1]; ++k)
                    for (int j = 0; j < inner; ++j) {
                        const size_t at_x = ((size_t)n * x.sizes[1] + k / each * inner + j) * pixels + pixel;
                        const size_t at_w = ((size_t)k * inner + j) * places + place, at_y = ((size_t)n * y.sizes[1] + k) * spots + spot;
                        if (kind == FORWARD) all[at_y] += (double)image[at_x] * (double)filters[at_w];
                        else if (kind == IMAGE) all[at_x] += (double)filters[at_w] * (double)result[at_y];
                        else all[at_w] += (double)image[at_x] * (double)result[at_y];
                    }
        }
    for (size_t k = 0; k < all.size(); ++k) out[k] = (T)all[k];
}

int run(Kind kind, void *handle, const void *alpha, void *first, void *at_first, void *second, void *at_second, void *convolution,
        int algorithm, void *memory, size_t size, const void *beta, void *out, void *at_out)
{
    Problem problem;
    if (!handle || !take(kind, first, second, convolution, out, &problem)) return BAD_PARAM;
    const int type = problem.image->type;
    const double scale = type == 1 ? *(const double *)alpha : *(const float *)alpha, kept = type == 1 ? *(const double *)beta : *(const float *)beta;
    if (algorithm != 0 && algorithm != 1 && algorithm != 4) return EXECUTION_FAILED;
    if (algorithm != 0 && (size < 4096 || !memory) || scale != 1 || kept != 0) return EXECUTION_FAILED;
    latest = algorithm;
    for (const void *address : {(const void *)at_first, (const void *)at_second, (const void *)at_out, (const void *)memory})
        if ((uintptr_t)address % 16) return EXECUTION_FAILED;
    void *const image = kind == IMAGE ? at_out : at_first, *const filters = kind == FORWARD ? at_second : kind == IMAGE ? at_first : at_out;
    void *const result = kind == FORWARD ? at_out : at_second;
    return emulated::put(*(void **)handle, [=] {
        memset(memory, 255, size);
        ++computed;
        if (type == 0 && problem.convolution->math != 3) ++rounded;
        if (type == 0) compute(kind, problem, (float *)image, (float *)filters, (float *)result);
        else if (type == 1) compute(kind, problem, (double *)image, (double *)filters, (double *)result);
        else compute(kind, problem, (dy_half *)image, (dy_half *)filters, (dy_half *)result);
        return (int)SUCCESS;
    });
}

}  // namespace

extern "C" {

long long dy_cudnn_living(void) { return living; }
long long dy_cudnn_computed(void) { return computed; }
long long dy_cudnn_rounded(void) { return rounded; }
int dy_cudnn_latest(void) { return latest; }

const char *cudnnGetErrorString(int status) { return status == BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_EXECUTION_FAILED"; }
size_t cudnnGetVersion(void) { return 92801; }
int cudnnCreate(void **handle) { *handle = new void *[1](); return SUCCESS; }
int cudnnSetStream(void *handle, void *stream) { *(void **)handle = stream; return SUCCESS; }

int cudnnCreateTensorDescriptor(void **made) { return make(made, 't'); }
int cudnnDestroyTensorDescriptor(void *given) { return destroy(given, 't'); }
int cudnnSetTensorNdDescriptor(void *given, int type, int count, const int *sizes, const int *strides)
{
    Descriptor *const to = of(given, 't');
    if (!to || count < 4) return BAD_PARAM;
    to->type = type, to->sizes.assign(sizes, sizes + count), to->strides.assign(strides, strides + count);
    return SUCCESS;
}

int cudnnCreateFilterDescriptor(void **made) { return make(made, 'f'); }
int cudnnDestroyFilterDescriptor(void *given) { return destroy(given, 'f'); }
int cudnnSetFilterNdDescriptor(void *given, int type, int format, int count, const int *sizes)
{
    Descriptor *const to = of(given, 'f');
    if (!to || format != 0 || count < 4) return BAD_PARAM;
    to->type = type, to->sizes.assign(sizes, sizes + count);
    return SUCCESS;
}

int cudnnCreateConvolutionDescriptor(void **made) { return make(made, 'c'); }
int cudnnDestroyConvolutionDescriptor(void *given) { return destroy(given, 'c'); }
int cudnnSetConvolutionNdDescriptor(void *given, int count, const int *pad, const int *stride, const int *dilate, int mode, int sums)
{
    Descriptor *const to = of(given, 'c');
    if (!to) return BAD_PARAM;
    to->mode = mode, to->sums = sums;
    to->pad.assign(pad, pad + count), to->stride.assign(stride, stride + count), to->dilate.assign(dilate, dilate + count);
    return SUCCESS;
}
int cudnnSetConvolutionGroupCount(void *given, int groups)
{
    if (!of(given, 'c')) return BAD_PARAM;
    of(given, 'c')->groups = groups;
    return SUCCESS;
}
int cudnnSetConvolutionMathType(void *given, int math)
{
    if (!of(given, 'c')) return BAD_PARAM;
    of(given, 'c')->math = math;
    return SUCCESS;
}

#define DY_CONVOLUTION(name, kind) \
    int cudnnGetConvolution##name##Algorithm_v7(void *handle, void *first, void *second, void *convolution, void *out, const int most, \
                                                int *count, Found *found) \
    { return algorithms(kind, handle, first, second, convolution, out, most, count, found); } \
    int cudnnGetConvolution##name##WorkspaceSize(void *handle, void *first, void *second, void *convolution, void *out, int algorithm, \
                                                 size_t *size) \
    { return workspace(kind, handle, first, second, convolution, out, algorithm, size); } \
    int cudnnConvolution##name(void *handle, const void *alpha, void *first, void *at_first, void *second, void *at_second, \
                               void *convolution, int algorithm, void *memory, size_t size, const void *beta, void *out, void *at_out) \
    { return run(kind, handle, alpha, first, at_first, second, at_second, convolution, algorithm, memory, size, beta, out, at_out); }

DY_CONVOLUTION(Forward, FORWARD)
DY_CONVOLUTION(BackwardData, IMAGE)
DY_CONVOLUTION(BackwardFilter, FILTERS)

}
