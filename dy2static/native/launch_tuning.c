/* Algorithms of products that are measured (chainer.config.autotune).

   Once for each sort of products in a process, when it is computed for the first time: what cuBLAS chooses itself, what cublasLt expects to
   be fast, and the best of these with other numbers of parts into which the sums are cut.  Each writes the same result, which the step is
   about to write, so no other memory is needed.  Runs are recorded as a graph and replayed between two events: so the time is that of the
   device, and not that of the calls, which take as long as a small product.  The device runs nothing else on this stream meanwhile.

   An algorithm is taken if it needs less than MARGIN of the time of the usual one.  Partial sums are in the workspace and are added
   up by a further kernel, in their order: so the results have the same bits in each run.

   What was measured is a record, which measured.py keeps on disk for later processes with the same device and libraries.  They take
   the algorithm of a record if cublasLt takes it still, and if it does compute. */

enum { MOST_EXPECTED = 16, SPLIT_EXPECTED = 4, MOST_CANDIDATES = 48, FEW_CANDIDATES = 8, ROUNDS = 3, FEWEST_INNER = 64 };

enum { DY_SPLIT = 2, DY_REDUCTION = 3 };                                         /* cublasLtMatmulAlgoConfigAttributes_t */

static const float MARGIN = 0.97f;

/* Milliseconds: up to SHORT, MANY runs are measured at a time, up to LONG SOME, then one, and fewer algorithms. */
static const float SHORT = 0.1f, LONG = 1, FOREVER = 1e30f;
enum { MANY = 16, SOME = 4 };

/* Algorithms to be measured; null: without cublasLt.  The first is the usual one. */
typedef struct {
    const dy_algorithm *algorithms[MOST_CANDIDATES];
    dy_algorithm split[MOST_CANDIDATES];
    int count;
} dy_candidates;

typedef struct { void *begin, *end; } dy_watch;

/* What is kept on disk of a sort of products. */
typedef struct dy_record {
    dy_sort sort;
    int64_t is_usable;
    dy_algorithm algorithm;
} dy_record;

static int is_measuring(const dy_run *run)
{
    const dy_driver *const driver = run->device->driver;
    return (run->modes & DY_MEASURED) && run->device->recorder && driver->cublasLtMatmul && driver->cublasLtMatrixLayoutSetAttribute
        && driver->cublasLtMatmulAlgoCheck && driver->cublasLtMatmulAlgoConfigSetAttribute && driver->cuEventElapsedTime;
}

static dy_choice **measured_choices(const dy_run *run, const dy_sort *sort)
{
    const unsigned char *const bytes = (const unsigned char *)sort;
    uint64_t hash = 14695981039346656037u;                  /* FNV-1a */
    for (size_t k = 0; k < sizeof *sort; ++k)
        hash = (hash ^ bytes[k]) * 1099511628211u;
    return run->device->choices + (hash >> 32) % (sizeof run->device->choices / sizeof *run->device->choices);
}

static int attempt(const dy_task *task, const dy_choice *choice, const dy_algorithm *algorithm)
{
    return algorithm ? multiply(task, choice, algorithm) : task->without(task->run, task->step, task->words);
}

/* So many runs as a graph that can be launched. */
static int record_attempts(const dy_task *task, const dy_choice *choice, const dy_algorithm *algorithm, int runs, void **exec)
{
    const dy_driver *const driver = task->run->device->driver;
    dy_run inner = *task->run;
    dy_task recorded = *task;
    void *graph = 0;
    inner.stream = inner.device->recorder;
    recorded.run = &inner;
    int status = driver->cuStreamBeginCapture_v2(inner.stream, DY_CAPTURE_THREAD_LOCAL);
    if (status)
        return status;
    for (int k = 0; !status && k < runs; ++k)
        status = attempt(&recorded, choice, algorithm);
    const int ended = driver->cuStreamEndCapture(inner.stream, &graph);
    status = status ? status : ended;
    status = status ? status : driver->cuGraphInstantiateWithFlags(exec, graph, 0);
    if (graph)
        driver->cuGraphDestroy(graph);
    return status;
}

/* The milliseconds from one event to the other; negative where something has failed. */
static float elapsed(const dy_run *run, const dy_watch *watch, int status)
{
    const dy_driver *const driver = run->device->driver;
    float found = -1;
    status = status ? status : driver->cuEventRecord(watch->end, run->stream);
    status = status ? status : driver->cuEventSynchronize(watch->end);
    status = status ? status : driver->cuEventElapsedTime(&found, watch->begin, watch->end);
    return status ? -1 : found;
}

/* The milliseconds of one run that is launched alone, after one that prepares it. */
static float time_alone(const dy_task *task, const dy_choice *choice, const dy_algorithm *algorithm, const dy_watch *watch)
{
    int status = attempt(task, choice, algorithm);
    status = status ? status : task->run->device->driver->cuEventRecord(watch->begin, task->run->stream);
    return elapsed(task->run, watch, status ? status : attempt(task, choice, algorithm));
}

/* The milliseconds of one run, the least of several that were replayed; negative where that is not possible.  bound: where one needs
   more, there is no further one. */
static float time_of(const dy_task *task, const dy_choice *choice, const dy_algorithm *algorithm, int runs, float bound,
                     const dy_watch *watch)
{
    const dy_driver *const driver = task->run->device->driver;
    void *exec = 0;
    float least = -1;
    int status = record_attempts(task, choice, algorithm, runs, &exec);
    for (int round = 0; !status && round < ROUNDS; ++round) {
        status = driver->cuEventRecord(watch->begin, task->run->stream);
        const float found = elapsed(task->run, watch, status ? status : driver->cuGraphLaunch(exec, task->run->stream)) / (float)runs;
        if (found < 0)
            status = DY_NOT_SUPPORTED;
        else if (least < 0 || found < least)
            least = found;
        if (found > bound)
            break;
    }
    if (exec)
        driver->cuGraphExecDestroy(exec);
    return status ? -1 : least;
}

static void add_candidate(dy_candidates *all, const dy_algorithm *algorithm)
{
    for (int k = 0; k < all->count; ++k)
        if (all->algorithms[k] == algorithm
            || (algorithm && all->algorithms[k] && !memcmp(algorithm, all->algorithms[k], sizeof *algorithm)))
            return;
    if (all->count < MOST_CANDIDATES)
        all->algorithms[all->count++] = algorithm;
}

/* The algorithm with sums that are cut into other numbers of parts, which fill the device where the result is small. */
static void add_split(const dy_task *task, const dy_choice *choice, const dy_heuristic *found, dy_candidates *all)
{
    static const int32_t numbers[] = {2, 3, 4, 6, 8, 12, 16};
    const dy_driver *const driver = task->run->device->driver;
    const uint32_t reduction = DY_REDUCTIONS_IN_TYPE_OF_SUMS;
    const unsigned count = sizeof numbers / sizeof *numbers;
    for (unsigned k = 0; k < count && task->words[5] >= FEWEST_INNER * numbers[k] && all->count < MOST_CANDIDATES; ++k) {
        dy_algorithm *const algorithm = all->split + all->count;
        dy_heuristic checked;
        *algorithm = found->algorithm;
        memset(&checked, 0, sizeof checked);
        if (!driver->cublasLtMatmulAlgoConfigSetAttribute(algorithm, DY_SPLIT, numbers + k, sizeof numbers[k])
            && !driver->cublasLtMatmulAlgoConfigSetAttribute(algorithm, DY_REDUCTION, &reduction, sizeof reduction)
            && !driver->cublasLtMatmulAlgoCheck(task->run->device->products, choice->product, choice->a, choice->b, choice->c, choice->c,
                                                algorithm, &checked)
            && !checked.status && checked.workspace <= workspace_of(task))
            add_candidate(all, algorithm);
    }
}

/* The number of the fastest of some candidates; negative where the usual one cannot be timed. */
static int fastest(const dy_task *task, const dy_choice *choice, const dy_candidates *all, const dy_watch *watch)
{
    const float alone = time_alone(task, choice, all->algorithms[0], watch);
    const int runs = alone <= SHORT ? MANY : alone <= LONG ? SOME : 1;
    const int count = alone > LONG && all->count > FEW_CANDIDATES ? FEW_CANDIDATES : all->count;
    float usual = alone < 0 ? -1 : time_of(task, choice, all->algorithms[0], runs, FOREVER, watch), least = usual;
    int best = 0;
    for (int k = 1; usual >= 0 && k < count; ++k) {
        const dy_algorithm *const algorithm = all->algorithms[k];
        if (task->epilogue == DY_EPILOGUE_RELU_BIAS && algorithm && !keeps_nan(task, choice, algorithm))
            continue;
        const float once = time_alone(task, choice, algorithm, watch);
        if (once < 0 || once > 2 * alone + SHORT)
            continue;
        const float found = time_of(task, choice, algorithm, runs, 2 * least, watch);
        if (found >= 0 && found < least) {
            least = found;
            best = k;
        }
    }
    const float again = best ? time_of(task, choice, all->algorithms[0], runs, FOREVER, watch) : -1;        /* clocks may have changed */
    if (again >= 0 && again < usual)
        usual = again;
    return usual < 0 ? -1 : best && least < MARGIN * usual ? best : 0;
}

/* Measure algorithms, and choose.  The usual one is that of the choice if it is usable. */
static void measure(const dy_task *task, dy_choice *choice)
{
    const dy_driver *const driver = task->run->device->driver;
    const uint32_t reductions = DY_REDUCTIONS_IN_TYPE_OF_SUMS | (task->words[0] == DY_R_16F ? 0 : DY_REDUCTIONS_IN_TYPE_OF_RESULT);
    dy_heuristic found[MOST_EXPECTED];
    dy_candidates all = {.count = 0};
    dy_watch watch = {0, 0};
    memset(found, 0, sizeof found);
    if (driver->cublasLtMatmulPreferenceSetAttribute(choice->preference, DY_REDUCTIONS, &reductions, sizeof reductions))
        return;
    add_candidate(&all, choice->is_usable ? &choice->chosen.algorithm : 0);
    const int count = expected(task, choice, MOST_EXPECTED, found);
    for (int k = 0; k < count; ++k)
        if (!found[k].status && found[k].workspace <= workspace_of(task))
            add_candidate(&all, &found[k].algorithm);
    add_candidate(&all, 0);
    for (int k = 0; k < count && k < SPLIT_EXPECTED; ++k)
        if (!found[k].status)
            add_split(task, choice, found + k, &all);
    if (!driver->cuEventCreate(&watch.begin, 0) && !driver->cuEventCreate(&watch.end, 0)) {
        const int number = fastest(task, choice, &all, &watch);
        const dy_algorithm *const best = all.algorithms[number < 0 ? 0 : number];
        choice->is_usable = best != 0;
        if (best)
            choice->chosen.algorithm = *best;
        choice->is_fresh = number >= 0;
        task->run->device->fresh += choice->is_fresh;
    }
    if (watch.begin)
        driver->cuEventDestroy_v2(watch.begin);
    if (watch.end)
        driver->cuEventDestroy_v2(watch.end);
    task->run->library = OF_DRIVER;
}

/* Whether an algorithm of an earlier process computes a product here, too. */
static int computes(const dy_task *task, const dy_choice *choice, const dy_algorithm *algorithm)
{
    const dy_driver *const driver = task->run->device->driver;
    dy_heuristic checked;
    memset(&checked, 0, sizeof checked);
    return !driver->cublasLtMatmulAlgoCheck(task->run->device->products, choice->product, choice->a, choice->b, choice->c, choice->c,
                                            algorithm, &checked)
        && !checked.status && checked.workspace <= workspace_of(task)
        && (task->epilogue == DY_EPILOGUE_RELU_BIAS ? keeps_nan(task, choice, algorithm) : !attempt(task, choice, algorithm));
}

/* Take what an earlier process has measured; gives whether that was possible. */
static int recall(const dy_task *task, dy_choice *choice)
{
    const dy_device *const device = task->run->device;
    const dy_record *record = device->known, *const end = record + device->known_count;
    while (record < end && memcmp(&record->sort, &choice->sort, sizeof record->sort))
        ++record;
    const int is_possible = record < end && (!record->is_usable || computes(task, choice, &record->algorithm));
    if (is_possible) {
        choice->is_usable = record->is_usable != 0;
        choice->chosen.algorithm = record->algorithm;
    }
    task->run->library = OF_DRIVER;
    return is_possible;
}

/* What is known of a product; null where it is computed without cublasLt. */
static const dy_choice *measured(const dy_task *task)
{
    const dy_sort sort = sort_of(task);
    dy_choice **const list = measured_choices(task->run, &sort), *choice = known_choice(*list, &sort);
    if (!choice && !is_recorded(task->run) && (choice = new_choice(list, &sort)) && !describe(task, choice)
        && !recall(task, choice))
        measure(task, choice);
    return choice && choice->is_usable ? choice : 0;
}

/* a · b · c; type · turn a · turn b · m · n · k · of a: bytes from there, leading dimension, step · the same of b · of c · how many */
static int launch_product(dy_run *run, const dy_step *step, const int64_t *words)
{
    if (is_measuring(run)) {
        const dy_task task = task_of(run, step, words, launch_unmeasured);
        const dy_choice *const choice = measured(&task);
        if (choice)
            return multiply(&task, choice, &choice->chosen.algorithm);
    }
    return launch_unmeasured(run, step, words);
}
