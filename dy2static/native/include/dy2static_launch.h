/* The functions of NVIDIA's libraries that the launcher calls (launch.c), as one table of pointers.
 *
 * On a GPU, native/drivers.py fills the table from libcuda and libcublas; without one, from the emulator
 * (dy2static_emulated_driver.h).  No header of NVIDIA's is needed.  Signatures are those of CUDA 12.0 to 13.0 (cuda.h,
 * cublas_api.h, cublasLt.h); opaque handles are void *, and enumerations are int.  All give 0 if they succeed.
 *
 * To add a function, add a line: name, and parameters.  native/drivers.py looks it up in the libraries by its name.  Where there
 * is none of that name, the pointer is null.
 */
#ifndef DY2STATIC_LAUNCH_H
#define DY2STATIC_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

/* CUDA_KERNEL_NODE_PARAMS_v2, since CUDA 12.0. */
typedef struct {
    void *function;
    unsigned blocks, blocks_y, blocks_z, threads, threads_y, threads_z, shared;
    void **parameters, **extra;
    void *kernel, *context;                 /* null: the function is given, in the current context */
} dy_kernel_node;

/* CUgraphNodeParams with a conditional node, since CUDA 12.4 (loops): the driver writes where the graph of the body is. */
typedef struct {
    int type, reserved[3];
    uint64_t handle;
    int condition;
    unsigned size;
    void **bodies, *context;
    uint64_t rest[26];
} dy_conditional_node;

/* cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t. */
typedef struct { uint64_t data[8]; } dy_algorithm;
typedef struct { dy_algorithm algorithm; size_t workspace; int status; float waves; int reserved[4]; } dy_heuristic;

#define DY_FUNCTIONS(X) \
    X(cuCtxSetCurrent, (void *context)) \
    X(cuLaunchKernel, (void *function, unsigned blocks, unsigned blocks_y, unsigned blocks_z, unsigned threads, unsigned threads_y, \
                       unsigned threads_z, unsigned shared, void *stream, void **parameters, void **extra)) \
    X(cuMemsetD8Async, (uint64_t to, unsigned char byte, size_t count, void *stream)) \
    X(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t count, void *stream)) \
    X(cublasSetStream_v2, (void *handle, void *stream)) \
    X(cublasSetWorkspace_v2, (void *handle, void *memory, size_t size)) \
    X(cublasGemmEx, (void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha, const void *a, int type_a, int lda, \
                     const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc, int compute, int algorithm)) \
    X(cublasGemmStridedBatchedEx, (void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha, const void *a, \
                                   int type_a, int lda, long long step_a, const void *b, int type_b, int ldb, long long step_b, \
                                   const void *beta, void *c, int type_c, int ldc, long long step_c, int count, int compute, \
                                   int algorithm)) \
    X(cublasGemmBatchedEx, (void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha, const void *const *a, \
                            int type_a, int lda, const void *const *b, int type_b, int ldb, const void *beta, void *const *c, \
                            int type_c, int ldc, int count, int compute, int algorithm)) \
    X(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t count, void *stream)) \
    X(cuStreamSynchronize, (void *stream)) \
    X(cublasLtMatmulDescCreate, (void **product, int compute, int scale)) \
    X(cublasLtMatmulDescDestroy, (void *product)) \
    X(cublasLtMatmulDescSetAttribute, (void *product, int attribute, const void *value, size_t size)) \
    X(cublasLtMatrixLayoutCreate, (void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading)) \
    X(cublasLtMatrixLayoutDestroy, (void *layout)) \
    X(cublasLtMatrixLayoutSetAttribute, (void *layout, int attribute, const void *value, size_t size)) \
    X(cublasLtMatmulPreferenceCreate, (void **preference)) \
    X(cublasLtMatmulPreferenceDestroy, (void *preference)) \
    X(cublasLtMatmulPreferenceSetAttribute, (void *preference, int attribute, const void *value, size_t size)) \
    X(cublasLtMatmulAlgoGetHeuristic, (void *handle, void *product, void *a, void *b, void *c, void *d, void *preference, int most, \
                                       dy_heuristic *found, int *count)) \
    X(cublasLtMatmulAlgoConfigSetAttribute, (dy_algorithm *algorithm, int attribute, const void *value, size_t size)) \
    X(cublasLtMatmulAlgoCheck, (void *handle, void *product, void *a, void *b, void *c, void *d, const dy_algorithm *algorithm, \
                                dy_heuristic *found)) \
    X(cublasLtMatmul, (void *handle, void *product, const void *alpha, const void *at_a, void *a, const void *at_b, void *b, \
                       const void *beta, const void *at_c, void *c, void *at_d, void *d, const dy_algorithm *algorithm, void *memory, \
                       size_t size, void *stream)) \
    X(cuEventCreate, (void **event, unsigned flags)) \
    X(cuEventDestroy_v2, (void *event)) \
    X(cuEventRecord, (void *event, void *stream)) \
    X(cuEventSynchronize, (void *event)) \
    X(cuEventElapsedTime, (float *milliseconds, void *begin, void *end)) \
    X(cuStreamBeginCapture_v2, (void *stream, int mode)) \
    X(cuStreamEndCapture, (void *stream, void **graph)) \
    X(cuStreamIsCapturing, (void *stream, int *status)) \
    X(cuGraphCreate, (void **graph, unsigned flags)) \
    X(cuGraphDestroy, (void *graph)) \
    X(cuGraphAddKernelNode_v2, (void **node, void *graph, void *const *before, size_t count, const dy_kernel_node *kernel)) \
    X(cuGraphAddChildGraphNode, (void **node, void *graph, void *const *before, size_t count, void *child)) \
    X(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags)) \
    X(cuGraphExecKernelNodeSetParams_v2, (void *exec, void *node, const dy_kernel_node *kernel)) \
    X(cuGraphExecChildGraphNodeSetParams, (void *exec, void *node, void *child)) \
    X(cuGraphLaunch, (void *exec, void *stream)) \
    X(cuGraphExecDestroy, (void *exec)) \
    X(cuGraphConditionalHandleCreate, (uint64_t *handle, void *graph, void *context, unsigned value, unsigned flags)) \
    X(cuGraphAddNode, (void **node, void *graph, void *const *before, size_t count, dy_conditional_node *what))

typedef struct {
#define DY_FIELD(name, parameters) int (*name) parameters;
    DY_FUNCTIONS(DY_FIELD)
#undef DY_FIELD
} dy_driver;

enum {
    /* cudaDataType */
    DY_R_32F = 0, DY_R_64F = 1, DY_R_16F = 2,
    /* cublasComputeType_t */
    DY_COMPUTE_32F = 68, DY_COMPUTE_32F_PEDANTIC = 69, DY_COMPUTE_64F = 70, DY_COMPUTE_64F_PEDANTIC = 71, DY_COMPUTE_32F_FAST_TF32 = 77,
    /* cublasGemmAlgo_t */
    DY_GEMM_DEFAULT = -1,
    /* CUstreamCaptureMode: other threads may do meanwhile what cannot be recorded */
    DY_CAPTURE_THREAD_LOCAL = 1,
    /* CUgraphNodeType, CUgraphConditionalNodeType, and a flag: the value is set when the graph begins */
    DY_NODE_CONDITIONAL = 13, DY_WHILE = 1, DY_ASSIGN_DEFAULT = 1,
    /* CUresult */
    DY_OUT_OF_MEMORY = 2, DY_NOT_SUPPORTED = 801,
    /* compute types of CuPy (cupy._core.get_compute_type) */
    DY_PEDANTIC = 2, DY_TF32 = 7
};

#endif
