/* Products by cublasLt: what describes one, and the algorithm that computes it. */

enum { DY_REDUCTIONS_IN_TYPE_OF_SUMS = 2, DY_REDUCTIONS_IN_TYPE_OF_RESULT = 4 };            /* cublasLtReductionScheme_t */

enum { DY_TRANSPOSED_A = 3, DY_TRANSPOSED_B = 4, DY_EPILOGUE = 7, DY_BIAS_POINTER = 8,       /* cublasLtMatmulDescAttributes_t */
       DY_EPILOGUE_BIAS = 4, DY_EPILOGUE_RELU_BIAS = 6,                                      /* cublasLtEpilogue_t */
       DY_BATCH_COUNT = 5, DY_BATCH_STEP = 6,                                                /* cublasLtMatrixLayoutAttribute_t */
       DY_MAX_WORKSPACE = 1, DY_REDUCTIONS = 3, DY_ALIGNMENT_A = 5 };                        /* cublasLtMatmulPreferenceAttributes_t */

enum { MOST_ALIGNMENT = 16 };           /* bytes; kernels load no more at once, and rows of a batch are seldom aligned better */

/* A product that is to be computed in a run: the words of `launch_product`, where a, b, c and a bias are, and a cublasLtEpilogue_t,
   or 0.  without: computes it without cublasLt. */
typedef struct {
    dy_run *run;
    const dy_step *step;
    const int64_t *words;
    uint64_t at[4];
    uint32_t epilogue;
    dy_kind *without;
} dy_task;

/* What algorithms depend on: the words of a product but for where matrices begin, how they and the bias are aligned, and so on. */
typedef struct {
    int64_t words[16];
    int32_t compute;
    uint32_t epilogue, alignments[4];
} dy_sort;

/* What is known of a sort of products: descriptors, and the algorithm.  is_usable: cublasLt computes it.  is_fresh: it was measured, and
   `launch_fresh` has not given it yet. */
typedef struct dy_choice {
    struct dy_choice *next;
    dy_sort sort;
    int is_usable, is_fresh;
    void *product, *a, *b, *c, *preference;
    dy_heuristic chosen;
} dy_choice;

static uint32_t alignment_of(uint64_t address)
{
    uint32_t found = MOST_ALIGNMENT;
    while (address % found)
        found /= 2;
    return found;
}

static dy_task task_of(dy_run *run, const dy_step *step, const int64_t *words, dy_kind *without)
{
    return (dy_task){run, step, words, {address_of(run, step, 0, words[6]), address_of(run, step, 1, words[9]),
                                        address_of(run, step, 2, words[12]), 0}, 0, without};
}

static dy_sort sort_of(const dy_task *task)
{
    const uint64_t bytes = task->words[0] == DY_R_64F ? 8 : task->words[0] == DY_R_32F ? 4 : 2;
    dy_sort sort;
    memset(&sort, 0, sizeof sort);
    memcpy(sort.words, task->words, sizeof sort.words);
    for (int k = 0; k < 3; ++k) {
        sort.words[6 + 3 * k] = 0;
        sort.alignments[k] = alignment_of(task->at[k] | (sort.words[15] > 1 ? bytes * (uint64_t)sort.words[8 + 3 * k] : 0));
    }
    sort.alignments[3] = alignment_of(task->at[3]);
    sort.compute = compute_of(task->run, (int)task->words[0]);
    sort.epilogue = task->epilogue;
    return sort;
}

static dy_choice *known_choice(dy_choice *choice, const dy_sort *sort)
{
    while (choice && memcmp(&choice->sort, sort, sizeof *sort))
        choice = choice->next;
    return choice;
}

static dy_choice *new_choice(dy_choice **list, const dy_sort *sort)
{
    dy_choice *const choice = calloc(1, sizeof *choice);
    if (!choice)
        return 0;
    choice->sort = *sort;
    choice->next = *list;
    return *list = choice;
}

static void forget_choices(const dy_driver *driver, dy_choice *choice)
{
    if (!choice)
        return;
    forget_choices(driver, choice->next);
    if (choice->product)
        driver->cublasLtMatmulDescDestroy(choice->product);
    void *const layouts[] = {choice->a, choice->b, choice->c};
    for (int k = 0; k < 3; ++k)
        if (layouts[k])
            driver->cublasLtMatrixLayoutDestroy(layouts[k]);
    if (choice->preference)
        driver->cublasLtMatmulPreferenceDestroy(choice->preference);
    free(choice);
}

/* Bytes at the end of the workspace that are left for a bias of NaN. */
static size_t reserved(const dy_task *task)
{
    return task->epilogue ? ((size_t)task->words[3] * sizeof(float) + 255) / 256 * 256 : 0;
}

static uint64_t workspace_of(const dy_task *task) { return (uint64_t)task->run->device->workspace - reserved(task); }

/* matrix: leading dimension · step, among the words of the product. */
static int describe_layout(const dy_task *task, void **layout, int64_t rows, int64_t columns, const int64_t *matrix)
{
    const dy_driver *const driver = task->run->device->driver;
    const int32_t count = (int32_t)task->words[15];
    int status = driver->cublasLtMatrixLayoutCreate(layout, (int)task->words[0], (uint64_t)rows, (uint64_t)columns, matrix[0]);
    if (!status && count > 1)
        status = driver->cublasLtMatrixLayoutSetAttribute(*layout, DY_BATCH_COUNT, &count, sizeof count);
    if (!status && count > 1)
        status = driver->cublasLtMatrixLayoutSetAttribute(*layout, DY_BATCH_STEP, matrix + 1, sizeof matrix[1]);
    return status;
}

/* Make the descriptors of a choice. */
static int describe(const dy_task *task, dy_choice *choice)
{
    const dy_driver *const driver = task->run->device->driver;
    const int64_t *const words = task->words, m = words[3], n = words[4], k = words[5];
    const int32_t turns[] = {(int32_t)words[1], (int32_t)words[2]};
    const uint64_t size = workspace_of(task);
    const void *const given = (const void *)task->at[3];
    int status = driver->cublasLtMatmulDescCreate(&choice->product, choice->sort.compute, words[0] == DY_R_64F ? DY_R_64F : DY_R_32F);
    status = status ? status : driver->cublasLtMatmulDescSetAttribute(choice->product, DY_TRANSPOSED_A, turns, sizeof turns[0]);
    status = status ? status : driver->cublasLtMatmulDescSetAttribute(choice->product, DY_TRANSPOSED_B, turns + 1, sizeof turns[1]);
    if (!status && task->epilogue) {
        status = driver->cublasLtMatmulDescSetAttribute(choice->product, DY_EPILOGUE, &task->epilogue, sizeof task->epilogue);
        status = status ? status : driver->cublasLtMatmulDescSetAttribute(choice->product, DY_BIAS_POINTER, &given, sizeof given);
    }
    status = status ? status : describe_layout(task, &choice->a, turns[0] ? k : m, turns[0] ? m : k, words + 7);
    status = status ? status : describe_layout(task, &choice->b, turns[1] ? n : k, turns[1] ? k : n, words + 10);
    status = status ? status : describe_layout(task, &choice->c, m, n, words + 13);
    status = status ? status : driver->cublasLtMatmulPreferenceCreate(&choice->preference);
    status = status ? status : driver->cublasLtMatmulPreferenceSetAttribute(choice->preference, DY_MAX_WORKSPACE, &size, sizeof size);
    for (int operand = 0; operand < 4; ++operand)           /* a, b, c and d, which is c */
        status = status ? status : driver->cublasLtMatmulPreferenceSetAttribute(
            choice->preference, DY_ALIGNMENT_A + operand, choice->sort.alignments + (operand < 2 ? operand : 2), sizeof(uint32_t));
    return status;
}

/* Algorithms that cublasLt expects to be fast, the best one first; gives how many. */
static int expected(const dy_task *task, const dy_choice *choice, int most, dy_heuristic *found)
{
    const dy_device *const device = task->run->device;
    int count = 0;
    const int status = device->driver->cublasLtMatmulAlgoGetHeuristic(
        device->products, choice->product, choice->a, choice->b, choice->c, choice->c, choice->preference, most, found, &count);
    return status ? 0 : count;
}

static int multiply(const dy_task *task, const dy_choice *choice, const dy_algorithm *algorithm)
{
    const dy_device *const device = task->run->device;
    const int is_wide = task->words[0] == DY_R_64F;
    const void *const given = (const void *)task->at[3];
    int status = 0;
    task->run->library = OF_PRODUCTS;
    if (task->epilogue)
        status = device->driver->cublasLtMatmulDescSetAttribute(choice->product, DY_BIAS_POINTER, &given, sizeof given);
    if (!status)
        status = device->driver->cublasLtMatmul(
            device->products, choice->product, one_of(is_wide), (void *)task->at[0], choice->a, (void *)task->at[1], choice->b,
            zero_of(is_wide), (void *)task->at[2], choice->c, (void *)task->at[2], choice->c, algorithm, task->run->memory,
            (size_t)workspace_of(task), task->run->stream);
    if (!status)
        task->run->library = OF_DRIVER;
    return status;
}

/* Whether results are NaN where the bias is.  The result of the step is overwritten, which is not there yet. */
static int keeps_nan(const dy_task *task, const dy_choice *choice, const dy_algorithm *algorithm)
{
    const dy_driver *const driver = task->run->device->driver;
    dy_task trial = *task;
    float found = 0;
    trial.at[3] = (uint64_t)task->run->memory + workspace_of(task);
    return !driver->cuMemsetD8Async(trial.at[3], 0xff, (size_t)task->words[3] * sizeof(float), task->run->stream)
        && !multiply(&trial, choice, algorithm)
        && !driver->cuMemcpyDtoHAsync_v2(&found, trial.at[2], sizeof found, task->run->stream)
        && !driver->cuStreamSynchronize(task->run->stream) && found != found;
}

/* Whether nothing may be tried in a run: its stream is recorded. */
static int is_recorded(const dy_run *run)
{
    int recording = 0;
    return run->device->driver->cuStreamIsCapturing(run->stream, &recording) || recording;
}
