/* Products that cublasLt finishes: it adds a bias to each row of the result, and applies ReLU, before it stores the result.

   cublasLt's heuristics choose an algorithm for the sizes and alignments at hand.  What it does with NaN is not documented for ReLU,
   and eager mode keeps NaN.  So an algorithm with ReLU is tried once: a bias of NaN has to make results of NaN.  This waits for the device
   once for each set of alignments, in the first run with them.  Where an algorithm cannot be had, or does not keep NaN, or cannot be
   tried because the stream is recorded, the step is a product and a kernel. */

enum { DY_TRANSPOSED_A = 3, DY_TRANSPOSED_B = 4, DY_EPILOGUE = 7, DY_BIAS_POINTER = 8,       /* cublasLtMatmulDescAttributes_t */
       DY_EPILOGUE_BIAS = 4, DY_EPILOGUE_RELU_BIAS = 6,                                      /* cublasLtEpilogue_t */
       DY_MAX_WORKSPACE = 1, DY_ALIGNMENT_A = 5 };                                           /* cublasLtMatmulPreferenceAttributes_t */

enum { MOST_ALIGNMENT = 16 };           /* bytes; kernels load no more at once, and rows of a batch are seldom aligned better */

/* What is known of a step: the addresses' alignments and the compute type for which it was made, descriptors, and an algorithm.
   A step has one for each of them that has come: graphs for several are made in turns. */
typedef struct dy_finish {
    struct dy_finish *next;
    uint32_t alignments[4];
    int compute, is_usable;
    void *product, *a, *b, *c, *preference;
    dy_heuristic chosen;
} dy_finish;

/* The words of a step behind those of its product. */
enum { WITH_RELU = 16, BIAS_BEGIN = 17, FINISH_STATE = 18, KERNEL = 19 };

static uint32_t alignment_of(uint64_t address)
{
    uint32_t found = MOST_ALIGNMENT;
    while (address % found)
        found /= 2;
    return found;
}

static void forget_finish(const dy_driver *driver, dy_finish *finish)
{
    if (!finish)
        return;
    forget_finish(driver, finish->next);
    if (finish->product)
        driver->cublasLtMatmulDescDestroy(finish->product);
    void *const layouts[] = {finish->a, finish->b, finish->c};
    for (int k = 0; k < 3; ++k)
        if (layouts[k])
            driver->cublasLtMatrixLayoutDestroy(layouts[k]);
    if (finish->preference)
        driver->cublasLtMatmulPreferenceDestroy(finish->preference);
    free(finish);
}

/* Bytes at the end of the workspace that are left for a bias of NaN. */
static size_t reserved(const int64_t *words) { return ((size_t)words[3] * sizeof(float) + 255) / 256 * 256; }

static int multiply_and_finish(dy_run *run, dy_finish *finish, const int64_t *words, const uint64_t *at, uint64_t bias)
{
    const dy_driver *const driver = run->device->driver;
    const void *const given = (const void *)bias;
    const int status = driver->cublasLtMatmulDescSetAttribute(finish->product, DY_BIAS_POINTER, &given, sizeof given);
    return status ? status : driver->cublasLtMatmul(
        run->device->products, finish->product, one_of(0), (void *)at[0], finish->a, (void *)at[1], finish->b, zero_of(0), (void *)at[2],
        finish->c, (void *)at[2], finish->c, &finish->chosen.algorithm, run->memory, (size_t)run->device->workspace - reserved(words),
        run->stream);
}

/* Whether results are NaN where the bias is.  The result of the step is overwritten, which is not there yet. */
static int keeps_nan(dy_run *run, dy_finish *finish, const int64_t *words, const uint64_t *at)
{
    const dy_driver *const driver = run->device->driver;
    const uint64_t nan = (uint64_t)run->memory + (uint64_t)run->device->workspace - reserved(words);
    float found = 0;
    return !driver->cuMemsetD8Async(nan, 0xff, (size_t)words[3] * sizeof(float), run->stream)
        && !multiply_and_finish(run, finish, words, at, nan)
        && !driver->cuMemcpyDtoHAsync_v2(&found, at[2], sizeof found, run->stream)
        && !driver->cuStreamSynchronize(run->stream) && found != found;
}

static int make_finish(dy_run *run, dy_finish *finish, const int64_t *words, uint64_t bias)
{
    const dy_driver *const driver = run->device->driver;
    const int64_t m = words[3], n = words[4], k = words[5];
    const int32_t turns[] = {(int32_t)words[1], (int32_t)words[2]};
    const uint32_t epilogue = words[WITH_RELU] ? DY_EPILOGUE_RELU_BIAS : DY_EPILOGUE_BIAS;
    const uint64_t size = (uint64_t)run->device->workspace - reserved(words);
    const void *const given = (const void *)bias;
    int status = driver->cublasLtMatmulDescCreate(&finish->product, finish->compute, DY_R_32F), count = 0;
    status = status ? status : driver->cublasLtMatmulDescSetAttribute(finish->product, DY_TRANSPOSED_A, turns, sizeof turns[0]);
    status = status ? status : driver->cublasLtMatmulDescSetAttribute(finish->product, DY_TRANSPOSED_B, turns + 1, sizeof turns[1]);
    status = status ? status : driver->cublasLtMatmulDescSetAttribute(finish->product, DY_EPILOGUE, &epilogue, sizeof epilogue);
    status = status ? status : driver->cublasLtMatmulDescSetAttribute(finish->product, DY_BIAS_POINTER, &given, sizeof given);
    status = status ? status : driver->cublasLtMatrixLayoutCreate(&finish->a, DY_R_32F, (uint64_t)(turns[0] ? k : m),
                                                                  (uint64_t)(turns[0] ? m : k), words[7]);
    status = status ? status : driver->cublasLtMatrixLayoutCreate(&finish->b, DY_R_32F, (uint64_t)(turns[1] ? n : k),
                                                                  (uint64_t)(turns[1] ? k : n), words[10]);
    status = status ? status : driver->cublasLtMatrixLayoutCreate(&finish->c, DY_R_32F, (uint64_t)m, (uint64_t)n, words[13]);
    status = status ? status : driver->cublasLtMatmulPreferenceCreate(&finish->preference);
    status = status ? status : driver->cublasLtMatmulPreferenceSetAttribute(finish->preference, DY_MAX_WORKSPACE, &size, sizeof size);
    for (int operand = 0; operand < 4; ++operand)           /* a, b, c and d, which is c */
        status = status ? status : driver->cublasLtMatmulPreferenceSetAttribute(
            finish->preference, DY_ALIGNMENT_A + operand, finish->alignments + (operand < 2 ? operand : 2), sizeof(uint32_t));
    status = status ? status : driver->cublasLtMatmulAlgoGetHeuristic(
        run->device->products, finish->product, finish->a, finish->b, finish->c, finish->c, finish->preference, 1, &finish->chosen, &count);
    return !status && count == 1 && !finish->chosen.status;
}

/* What is known of a step for this run; null where cublasLt does not compute it. */
static dy_finish *finish_of(dy_run *run, const dy_step *step, const int64_t *words, const uint64_t *at, uint64_t bias)
{
    const dy_driver *const driver = run->device->driver;
    const uint32_t alignments[] = {alignment_of(at[0]), alignment_of(at[1]), alignment_of(at[2]), alignment_of(bias)};
    const int compute = compute_of(run, DY_R_32F);
    dy_finish *finish = (dy_finish *)words[FINISH_STATE];
    while (finish && (finish->compute != compute || memcmp(finish->alignments, alignments, sizeof alignments)))
        finish = finish->next;
    if (finish)
        return finish->is_usable ? finish : 0;
    int recording = 0;
    if (!driver->cublasLtMatmul || (size_t)run->device->workspace <= reserved(words)
        || driver->cuStreamIsCapturing(run->stream, &recording) || recording)
        return 0;
    if (!(finish = calloc(1, sizeof *finish)))
        return 0;
    finish->next = (dy_finish *)words[FINISH_STATE];
    ((int64_t *)words)[FINISH_STATE] = (int64_t)finish;     /* the region's own memory */
    memcpy(finish->alignments, alignments, sizeof alignments);
    finish->compute = compute;
    finish->is_usable = make_finish(run, finish, words, bias) && (!words[WITH_RELU] || keeps_nan(run, finish, words, at));
    (void)step;
    return finish->is_usable ? finish : 0;
}

/* a · b · c · bias · arguments of a kernel that does the rest; the words of a product · with ReLU · bytes from the bias · a place for
   what is known of the step · the words of the kernel */
static int launch_finished(dy_run *run, const dy_step *step, const int64_t *words)
{
    const uint64_t at[] = {address_of(run, step, 0, words[6]), address_of(run, step, 1, words[9]), address_of(run, step, 2, words[12])};
    const uint64_t bias = address_of(run, step, 3, words[BIAS_BEGIN]);
    dy_finish *const finish = finish_of(run, step, words, at, bias);
    if (finish) {
        run->library = OF_PRODUCTS;
        const int status = multiply_and_finish(run, finish, words, at, bias);
        if (!status)
            run->library = OF_DRIVER;
        return status;
    }
    const int status = launch_product(run, step, words);
    if (status)
        return status;
    const int64_t *const kernel = words + KERNEL;
    void *arguments[step->length];
    arguments_of(run, step, kernel, arguments);
    return run->device->driver->cuLaunchKernel((void *)kernel[0], (unsigned)kernel[1], 1, 1, (unsigned)kernel[2], 1, 1, 0, run->stream,
                                               arguments + 4, 0);
}
