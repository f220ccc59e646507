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

/* How many bytes a record of a measured product has, and how many of these say which sort of product it is. */
int64_t launch_record_size(void) { return sizeof(dy_record); }
int64_t launch_sort_size(void) { return sizeof(dy_sort); }

/* Let a device use what earlier processes have measured: records, which stay where they are. */
void launch_recall(dy_device *device, const dy_record *records, int64_t count)
{
    device->known = records;
    device->known_count = count;
}

/* Write records of what was measured since the last call, at most `room`; gives how many. */
int64_t launch_fresh(dy_device *device, dy_record *records, int64_t room)
{
    int64_t count = 0;
    pthread_mutex_lock(&device->lock);
    for (size_t k = 0; k < sizeof device->choices / sizeof *device->choices; ++k)
        for (dy_choice *choice = device->choices[k]; choice && count < room; choice = choice->next)
            if (choice->is_fresh) {
                records[count++] = (dy_record){choice->sort, choice->is_usable, choice->chosen.algorithm};
                choice->is_fresh = 0;
            }
    device->fresh -= count;
    pthread_mutex_unlock(&device->lock);
    return count;
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

extern PyObject *PyUnicode_InternFromString(const char *), *PyObject_GetAttr(PyObject *, PyObject *);
extern PyObject *PyBytes_FromStringAndSize(const char *, intptr_t);
extern char *PyBytes_AsString(PyObject *);
extern intptr_t PyBytes_Size(PyObject *);
extern char PyBytes_Type;

/* The address of a contiguous array of NumPy's or CuPy's; 0 for any other object. */
static int take_address(PyObject *object, uint64_t *address)
{
    static PyObject *names[3];
    char *data;
    if (object->type == dy_array_type) {
        const int taken = dy_take_array(object, 0, &data);
        *address = taken ? (uint64_t)data : 0;
        return taken;
    }
    if (!names[2]) {
        names[0] = PyUnicode_InternFromString("_c_contiguous");
        names[1] = PyUnicode_InternFromString("data");
        names[2] = PyUnicode_InternFromString("ptr");
    }
    PyObject *const contiguous = PyObject_GetAttr(object, names[0]);
    PyObject *const memory = contiguous == &_Py_TrueStruct ? PyObject_GetAttr(object, names[1]) : 0;
    PyObject *const pointer = memory ? PyObject_GetAttr(memory, names[2]) : 0;
    const int taken = pointer && dy_take_int(pointer, (int64_t *)address);
    if (contiguous)
        Py_DecRef(contiguous);
    if (memory)
        Py_DecRef(memory);
    if (pointer)
        Py_DecRef(pointer);
    PyErr_Clear();
    return taken;
}

/* Put the words that an operand of `launch` stands for in the place of `words`, and give how many there are; less than 0 where that is
   an array which is not contiguous, or no operand.  room: how many there may be. */
static int64_t take_words(PyObject *operand, uint64_t *words, int64_t room)
{
    double number;
    if (operand->type == &PyBytes_Type) {
        const int64_t length = PyBytes_Size(operand) / (int64_t)sizeof *words;
        memcpy(words, PyBytes_AsString(operand), sizeof *words * (size_t)(length < room ? length : room));
        return length;
    }
    if (room < 1)
        return 1;
    if (dy_take_float(operand, &number)) {
        memcpy(words, &number, sizeof number);
        return 1;
    }
    return dy_take_int(operand, (int64_t *)words) || take_address(operand, words) ? 1 : -1;
}

/* launch_pack(array, ...): the addresses of contiguous arrays, as bytes; None where one is not contiguous */
PyObject *launch_pack(PyObject *self, PyObject *const *args, intptr_t count)
{
    uint64_t addresses[count + 1];
    (void)self;
    for (intptr_t k = 0; k < count; ++k)
        if (!take_address(args[k], addresses + k))
            return dy_none();
    return PyBytes_FromStringAndSize((const char *)addresses, count * (intptr_t)sizeof *addresses);
}

/* launch(region, stream, memory, modes, operands: addresses of arrays..., address of scratch memory if there are pieces)

   An operand is an address, an array, a float that is a word, or what `launch_pack` gives.

   Gives 0, or status + 2^16 * whose error it is + 2^24 * the number of the step; -status where all is well, but a graph could not be
   made or launched, less 2^16 where there is something for `launch_fresh`.  None where an array is not contiguous: nothing has been
   launched. */
PyObject *launch(PyObject *self, PyObject *const *args, intptr_t count)
{
    enum { FIRST = 4 };
    int64_t given[FIRST], taken = 0;
    for (int k = 0; k < FIRST; ++k)
        if (count < FIRST || !dy_take_int(args[k], given + k))
            return dy_bail_out(self, args, count);
    dy_region *const region = (dy_region *)given[0];
    const int64_t wanted = region->arrays + (region->pieces > 0);
    uint64_t addresses[region->count + 1];
    for (intptr_t k = FIRST; k < count; ++k) {
        const int64_t words = take_words(args[k], addresses + taken, wanted - taken);
        if (words < 0)
            return dy_none();
        taken += words;
        if (taken > wanted)
            break;
    }
    if (taken != wanted)
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
    const int64_t news = trouble + ((int64_t)(run.device->fresh > 0) << 16);
    pthread_mutex_unlock(&run.device->lock);
    PyEval_RestoreThread(thread);
    return PyLong_FromLongLong(status ? status + ((int64_t)run.library << 16) + (failed << 24) : -news);
}
