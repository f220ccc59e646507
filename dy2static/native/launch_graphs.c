/* Regions as CUDA graphs: the steps of a region are recorded once, and then replayed by one call of the driver.

   A graph is built node by node.  A kernel, also one that stores a table, is a kernel node, whose arguments can be set exactly.  Every other step is recorded from a
   stream into a child graph, by the code that launches it: only cuBLAS knows which kernels a product consists of.  Nodes form a chain,
   which is the order of a stream.

   A graph has the addresses of one call.  It is replayed as it is if all addresses are the same again.  If those of a few steps have
   moved, these steps are set anew: the arguments of a kernel, or another child graph of addresses that are aligned alike.  Otherwise the
   steps are launched one by one, and a graph is made as soon as most of the same addresses come again: then the libraries have prepared
   what they need, too.  Gradients of a training step lie in two places in turns: those of the step before are freed behind it.  So a
   region gets one more graph, instead of setting much anew in each call, where an earlier run was much more like this one than any
   graph is (by the factor AGAIN).  A region has at most MOST_REPLAYS graphs, and remembers as many calls that were no replays.  A graph
   gives way to another one only if it has not been used for UNUSED runs, so that no run of a cycle takes the graph of another one.

   A loop whose condition is a value of the device is a conditional node.  Its kernels are not set anew: a region with a loop has a graph
   for each set of addresses, from the first run on.

   What is few and most is decided by weights, which were not measured: a step that is no kernel takes longer to be set anew.

   Outputs are never overwritten by a later call: a call writes to the addresses that it is given.  The device's lock is held. */

static dy_kind *const kinds[] = {KIND_FUNCTIONS};

static int launch_step(dy_run *run, const dy_step *step) { return kinds[step->kind](run, step, step->words + step->count); }

enum { MOST_REPLAYS = 4, UNUSED = 16, FEWEST_STEPS = 3, MOST_FAILURES = 2, KERNEL_WEIGHT = 1, OTHER_WEIGHT = 2, AGAIN = 4 };

/* What a run with graphs has done; `launch_counts` gives them. */
typedef struct { int64_t plain, replayed, built, patched, failures; } dy_counts;

/* One graph, and the run that it is for: its memory for products, their modes, and all addresses. */
typedef struct {
    void *graph, *exec, **nodes;
    uint64_t *key;
    int64_t used;
} dy_replay;

typedef struct {
    dy_device *device;
    int64_t arrays, pieces, count, steps, weight, clock, modes;       /* modes: those that count */
    int graphs, loops;
    dy_counts counts;
    dy_replay replays[MOST_REPLAYS];
    uint64_t *seen;                         /* the keys of the latest runs that were no replays, and how many have been noted */
    int64_t noted;
    const int64_t *begins, *first, *end;
    int64_t words[];
} dy_region;

static const dy_step *next_step(const dy_step *step) { return (const dy_step *)(step->words + step->length); }

static int is_table(const dy_step *step) { return kinds[step->kind] == launch_table; }

static int is_loop(const dy_step *step) { return kinds[step->kind] == launch_while; }

static int is_kernel(const dy_step *step) { return kinds[step->kind] == launch_kernel || is_table(step); }

static int64_t key_length(const dy_region *region) { return region->count + 2; }

static void key_of(const dy_region *region, const dy_run *run, uint64_t *key)
{
    key[0] = (uint64_t)run->memory;
    key[1] = (uint64_t)run->modes;
    memcpy(key + 2, run->addresses, sizeof *key * (size_t)region->count);
}

/* Whether what a step works with differs between two runs. */
static int has_moved(const dy_step *step, const uint64_t *old, const uint64_t *new)
{
    if (!is_kernel(step) && (old[0] != new[0] || old[1] != new[1]))
        return 1;
    for (int64_t k = 0; k < step->count; ++k)
        if (old[2 + step->words[k]] != new[2 + step->words[k]])
            return 1;
    return 0;
}

/* Whether a step that has moved can be set anew: libraries may take other kernels, and another number of them, where modes or alignments
   differ, and no graph can be given other nodes. */
static int is_alike(const dy_step *step, const uint64_t *old, const uint64_t *new)
{
    int alike = is_kernel(step) || old[1] == new[1];
    for (int64_t k = 0; alike && !is_kernel(step) && k < step->count; ++k)
        alike = alignment_of(old[2 + step->words[k]]) == alignment_of(new[2 + step->words[k]]);
    return alike;
}

static int64_t weight_of(const dy_step *step) { return is_kernel(step) ? KERNEL_WEIGHT : OTHER_WEIGHT; }

static void drop(const dy_device *device, dy_replay *replay)
{
    if (replay->exec)
        device->driver->cuGraphExecDestroy(replay->exec);       /* one that still runs is freed when it is over */
    if (replay->graph)
        device->driver->cuGraphDestroy(replay->graph);
    free(replay->nodes);
    free(replay->key);
    memset(replay, 0, sizeof *replay);
}

/* A step that is no kernel as a graph of its own, which is recorded on the device's own stream. */
static int record(dy_run *run, const dy_step *step, void **graph)
{
    const dy_driver *const driver = run->device->driver;
    dy_run inner = *run;
    inner.stream = run->device->recorder;
    *graph = 0;
    int status = driver->cuStreamBeginCapture_v2(inner.stream, DY_CAPTURE_THREAD_LOCAL);
    if (status)
        return status;
    status = launch_step(&inner, step);
    const int ended = driver->cuStreamEndCapture(inner.stream, graph);
    if ((status || ended) && *graph) {
        driver->cuGraphDestroy(*graph);
        *graph = 0;
    }
    return status ? status : ended;
}

static void kernel_of(const dy_run *run, const dy_step *step, void **arguments, dy_table *table, dy_kernel_node *node)
{
    const int64_t *const words = step->words + step->count;
    if (is_table(step)) {
        fill_table(run, step, words, table);
        arguments[0] = (void *)(run->addresses + step->words[0]);
        arguments[1] = table;
        *node = (dy_kernel_node){(void *)words[0], 1, 1, 1, TABLE_THREADS, 1, 1, 0, arguments, 0, 0, 0};
        return;
    }
    arguments_of(run, step, words, arguments);
    *node = (dy_kernel_node){(void *)words[0], (unsigned)words[1], 1, 1, (unsigned)words[2], 1, 1, 0, arguments, 0, 0, 0};
}

/* Add a step to a graph, or set it anew in one that can be launched. */
static int put(dy_run *run, const dy_step *step, void *graph, void *exec, void **node, void *before)
{
    const dy_driver *const driver = run->device->driver;
    int status;
    if (is_kernel(step)) {
        void *arguments[step->length];
        dy_table table;
        dy_kernel_node kernel;
        kernel_of(run, step, arguments, &table, &kernel);
        return exec ? driver->cuGraphExecKernelNodeSetParams_v2(exec, *node, &kernel)
                    : driver->cuGraphAddKernelNode_v2(node, graph, &before, before != 0, &kernel);
    }
    void *recorded;
    status = record(run, step, &recorded);
    if (status)
        return status;
    status = exec ? driver->cuGraphExecChildGraphNodeSetParams(exec, *node, recorded)
                  : driver->cuGraphAddChildGraphNode(node, graph, &before, before != 0, recorded);
    driver->cuGraphDestroy(recorded);       /* it has been copied */
    return status;
}

/* Add the kernel that sets the condition of a loop. */
static int put_condition(dy_run *run, const dy_step *step, uint64_t handle, void *graph, void **node, void *before)
{
    void *arguments[] = {(void *)(run->addresses + step->words[0]), &handle};
    const dy_kernel_node kernel = {(void *)step->words[step->count], 1, 1, 1, 1, 1, 1, 0, arguments, 0, 0, 0};
    return run->device->driver->cuGraphAddKernelNode_v2(node, graph, &before, before != 0, &kernel);
}

/* Add a loop: its condition is set before it, and at the end of each turn. */
static int put_loop(dy_run *run, const dy_step *step, void *graph, void **node, void *before)
{
    const dy_driver *const driver = run->device->driver;
    dy_conditional_node loop = {.type = DY_NODE_CONDITIONAL, .condition = DY_WHILE, .size = 1, .context = run->device->context};
    void *last = 0;
    int status = driver->cuGraphConditionalHandleCreate(&loop.handle, graph, run->device->context, 0, DY_ASSIGN_DEFAULT);
    status = status ? status : put_condition(run, step, loop.handle, graph, &last, before);
    status = status ? status : driver->cuGraphAddNode(node, graph, &last, 1, &loop);
    last = 0;
    const dy_step *inner = (const dy_step *)(step->words + step->count + 1);
    for (; !status && inner < next_step(step); inner = next_step(inner)) {
        void *made = 0;
        status = put(run, inner, loop.bodies[0], 0, &made, last);
        last = made;
    }
    return status ? status : put_condition(run, step, loop.handle, loop.bodies[0], &last, last);
}

static int build(const dy_region *region, dy_run *run, const uint64_t *key, dy_replay *replay)
{
    const dy_driver *const driver = run->device->driver;
    const size_t size = sizeof *key * (size_t)key_length(region);
    replay->nodes = calloc((size_t)region->steps, sizeof *replay->nodes);
    replay->key = malloc(size);
    if (!replay->nodes || !replay->key)
        return DY_OUT_OF_MEMORY;
    memcpy(replay->key, key, size);
    int status = driver->cuGraphCreate(&replay->graph, 0);
    const dy_step *step = (const dy_step *)region->first;
    for (int64_t k = 0; !status && k < region->steps; ++k, step = next_step(step))
        status = is_loop(step) ? put_loop(run, step, replay->graph, replay->nodes + k, k ? replay->nodes[k - 1] : 0)
                               : put(run, step, replay->graph, 0, replay->nodes + k, k ? replay->nodes[k - 1] : 0);
    return status ? status : driver->cuGraphInstantiateWithFlags(&replay->exec, replay->graph, 0);
}

static int patch(const dy_region *region, dy_run *run, const uint64_t *key, dy_replay *replay)
{
    int status = 0;
    const dy_step *step = (const dy_step *)region->first;
    for (int64_t k = 0; !status && k < region->steps; ++k, step = next_step(step))
        if (has_moved(step, replay->key, key))
            status = put(run, step, 0, replay->exec, replay->nodes + k, 0);
    memcpy(replay->key, key, sizeof *key * (size_t)key_length(region));
    return status;
}

/* How much has to be set anew between two runs, or anything above `most`: the weight of the region or more if a graph for one cannot be
   set to the other. */
static int64_t moved_between(const dy_region *region, const uint64_t *old, const uint64_t *new, int64_t most)
{
    int64_t weight = 0;
    if (!memcmp(old, new, sizeof *old * (size_t)key_length(region)))
        return 0;
    if (most < KERNEL_WEIGHT)
        return KERNEL_WEIGHT;
    const dy_step *step = (const dy_step *)region->first;
    for (; (const int64_t *)step < region->end && weight <= most; step = next_step(step))
        if (has_moved(step, old, new))
            weight += is_alike(step, old, new) ? weight_of(step) : region->weight;
    return weight;
}

/* The graph in which the least would have to be set anew, and how much that is; null without one. */
static dy_replay *nearest(dy_region *region, const uint64_t *key, int64_t *least)
{
    dy_replay *found = 0;
    for (dy_replay *replay = region->replays; replay < region->replays + MOST_REPLAYS; ++replay) {
        const int64_t weight = replay->exec ? moved_between(region, replay->key, key, found ? *least : INT64_MAX) : 0;
        if (replay->exec && (!found || weight < *least)) {
            found = replay;
            *least = weight;
        }
    }
    return found;
}

/* Whether no more than this would have to be set anew in a graph for one of the latest runs that were no replays. */
static int was_seen(const dy_region *region, const uint64_t *key, int64_t most)
{
    const int64_t length = key_length(region), known = region->noted < MOST_REPLAYS ? region->noted : MOST_REPLAYS;
    for (int64_t k = 0; k < known; ++k)
        if (moved_between(region, region->seen + k * length, key, most) <= most)
            return 1;
    return 0;
}

static void note(dy_region *region, const uint64_t *key)
{
    const int64_t length = key_length(region);
    memcpy(region->seen + region->noted++ % MOST_REPLAYS * length, key, sizeof *key * (size_t)length);
}

/* A place for one more graph: an empty one, or that of a graph which has not been used for long; null without one.  Loops need one. */
static dy_replay *vacant(dy_region *region)
{
    dy_replay *found = region->replays;
    for (dy_replay *replay = region->replays; replay < region->replays + MOST_REPLAYS; ++replay)
        if (replay->used < found->used)
            found = replay;
    if (found->exec && !region->loops && found->used > region->clock - UNUSED)
        return 0;
    drop(region->device, found);
    return found;
}

/* A graph for a run, made or set anew if that pays; null without one.  status: why it cannot be made. */
static dy_replay *replay_for(dy_region *region, dy_run *run, int *status)
{
    uint64_t key[key_length(region)];
    int64_t moved = 0;
    key_of(region, run, key);
    dy_replay *replay = nearest(region, key, &moved), *made = 0;
    *status = 0;
    ++region->clock;
    if (replay && !moved)
        return replay;
    const int is_near = replay && !region->loops && 2 * moved <= region->weight;
    const int comes_again = region->loops || was_seen(region, key, is_near ? moved / AGAIN : region->weight / 2);
    note(region, key);
    if (comes_again && (made = vacant(region))) {
        ++region->counts.built;
        *status = build(region, run, key, replay = made);
    } else if (is_near) {
        ++region->counts.patched;
        *status = patch(region, run, key, replay);
    } else
        return 0;
    if (!*status)
        return replay;
    drop(region->device, replay);
    return 0;
}

/* Replay a run; gives whether that was done.  status: what stood in the way, if anything did. */
static int replayed(dy_region *region, dy_run *run, int *status)
{
    const dy_driver *const driver = run->device->driver;
    int recording = 0;
    *status = 0;
    if (!region->graphs || driver->cuStreamIsCapturing(run->stream, &recording) || recording)
        return 0;                           /* what the caller records is recorded step by step */
    dy_replay *const replay = replay_for(region, run, status);
    if (replay) {
        *status = driver->cuGraphLaunch(replay->exec, run->stream);
        if (!*status) {
            replay->used = region->clock;
            ++region->counts.replayed;
            return 1;
        }
        drop(region->device, replay);
    }
    if (*status && ++region->counts.failures == MOST_FAILURES)
        region->graphs = 0;
    run->library = OF_DRIVER;
    return 0;
}
