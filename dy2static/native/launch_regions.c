/* Devices and regions of the launcher, and the function that Python calls for each run. */

/* A device; the memory is the caller's, of so many bytes. */
int64_t launch_device_size(void) { return sizeof(dy_device); }

/* recorder: a stream on which nothing is launched, for recording graphs; null: there are no graphs. */
void launch_device(dy_device *device, const dy_driver *driver, void *context, void *products, int64_t workspace, void *recorder)
{
    memset(device, 0, sizeof *device);
    device->driver = driver;
    device->context = context;
    device->products = products;
    device->workspace = workspace;
    device->recorder = recorder;
    pthread_mutex_init(&device->lock, 0);
}

/* A region of so many words, which are copied; null without memory.  `launch_forget` frees it.  measured: whether algorithms of its
   products are measured in runs whose modes say so. */
dy_region *launch_region(dy_device *device, const int64_t *words, int64_t count, int graphs, int measured)
{
    dy_region *const region = calloc(1, sizeof(dy_region) + sizeof(int64_t) * (size_t)count);
    if (!region)
        return 0;
    memcpy(region->words, words, sizeof(int64_t) * (size_t)count);
    region->device = device;
    region->modes = measured ? -1 : ~(int64_t)DY_MEASURED;
    region->arrays = words[0];
    region->pieces = words[1];
    region->count = region->arrays + region->pieces;
    region->begins = region->words + 2;
    region->first = region->begins + region->pieces;
    region->end = region->words + count;
    for (const dy_step *step = (const dy_step *)region->first; (const int64_t *)step < region->end; step = next_step(step)) {
        ++region->steps;
        region->loops |= is_loop(step);
        region->weight += weight_of(step);
    }
    region->seen = malloc(sizeof(uint64_t) * (size_t)key_length(region) * MOST_REPLAYS);
    region->graphs = graphs && device->recorder && (region->steps >= FEWEST_STEPS || region->loops) && region->seen;
    if (region->loops && !(device->driver->cuGraphConditionalHandleCreate && device->driver->cuGraphAddNode))
        region->graphs = 0;
    return region;
}

void launch_forget(dy_region *region)
{
    pthread_mutex_lock(&region->device->lock);
    region->device->driver->cuCtxSetCurrent(region->device->context);
    for (int k = 0; k < MOST_REPLAYS; ++k)
        drop(region->device, region->replays + k);
    for (const dy_step *step = (const dy_step *)region->first; (const int64_t *)step < region->end; step = next_step(step))
        if (kinds[step->kind] == launch_finished)
            forget_choices(region->device->driver, (dy_choice *)step->words[step->count + FINISH_STATE]);
    pthread_mutex_unlock(&region->device->lock);
    free(region->seen);
    free(region);
}

const dy_counts *launch_counts(const dy_region *region) { return &region->counts; }

/* All steps, one after the other; the number of the step that fails is in `failed`. */
static int launch_steps(dy_region *region, dy_run *run, int64_t *failed)
{
    const dy_step *step = (const dy_step *)region->first;
    ++region->counts.plain;
    for (*failed = 0; *failed < region->steps; ++*failed, step = next_step(step)) {
        const int status = launch_step(run, step);
        if (status)
            return status;
    }
    return 0;
}

/* trouble: why there is no graph for this run, if that was not to be expected. */
static int run_region(dy_region *region, dy_run *run, int64_t *failed, int *trouble)
{
    const int status = run->device->driver->cuCtxSetCurrent(run->device->context);
    if (status)
        return status;
    return replayed(region, run, trouble) ? 0 : launch_steps(region, run, failed);
}

/* launch(region, stream, memory, modes, addresses of arrays..., address of scratch memory if there are pieces)

   Gives 0, or status + 2^16 * whose error it is + 2^24 * the number of the step; -status where all is well, but a graph could not be
   made or launched. */
PyObject *launch(PyObject *self, PyObject *const *args, intptr_t count)
{
    enum { FIRST = 4 };
    int64_t given[FIRST];
    for (int k = 0; k < FIRST; ++k)
        if (count < FIRST || !dy_take_int(args[k], given + k))
            return dy_bail_out(self, args, count);
    dy_region *const region = (dy_region *)given[0];
    if (count != FIRST + region->arrays + (region->pieces > 0))
        return dy_bail_out(self, args, count);
    uint64_t addresses[region->count + 1];
    for (int64_t k = 0; k < count - FIRST; ++k)
        if (!dy_take_int(args[FIRST + k], (int64_t *)addresses + k))
            return dy_bail_out(self, args, count);
    const uint64_t scratch = region->pieces ? addresses[region->arrays] : 0;
    for (int64_t k = 0; k < region->pieces; ++k)
        addresses[region->arrays + k] = scratch + (uint64_t)region->begins[k];
    dy_run run = {region->device, (void *)given[1], (void *)given[2], given[3] & region->modes, addresses, OF_DRIVER};
    int64_t failed = 0;
    int trouble = 0;
    void *const thread = PyEval_SaveThread();               /* launches wait where the queue of the device is full */
    pthread_mutex_lock(&run.device->lock);
    const int status = run_region(region, &run, &failed, &trouble);
    pthread_mutex_unlock(&run.device->lock);
    PyEval_RestoreThread(thread);
    return PyLong_FromLongLong(status ? status + ((int64_t)run.library << 16) + (failed << 24) : -(int64_t)trouble);
}
