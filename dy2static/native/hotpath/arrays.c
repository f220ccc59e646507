/* Arrays of programs: whether they fit, share memory or are as they were, and writes into them. */

static PyObject *or_none(PyObject *object) { return object ? object : NONE; }

/* Whether an object is an array of the shape and dtype of a tuple (bytes, dtype); less than 0 on an error. */
static int fits(PyObject *wanted, PyObject *object)
{
    const char *shape = wanted ? PyBytes_AsString(PyTuple_GetItem(wanted, 0)) : 0;
    const dy_ndarray *array = (const dy_ndarray *)object;
    if (!shape)
        return -1;
    if (object->type != dy_array_type || 8 * (intptr_t)array->dimensions != PyBytes_Size(PyTuple_GetItem(wanted, 0))
        || memcmp(array->shape, shape, 8 * (size_t)array->dimensions))
        return 0;
    PyObject *dtype = PyTuple_GetItem(wanted, 1);
    return (PyObject *)array->dtype == dtype ? 1 : PyObject_RichCompareBool((PyObject *)array->dtype, dtype, 2);
}

/* fits(expected, array, ...) */
PyObject *hot_fits(PyObject *self, PyObject *const *args, intptr_t count)
{
    int all = 1;
    for (intptr_t i = 1; i < count && all == 1; i++)
        all = fits(PyTuple_GetItem(args[0], i - 1), args[i]);
    return all < 0 ? 0 : truth(all);
}

/* unchanged(known): `Known` of definitions.py has the fields */
PyObject *hot_unchanged(PyObject *self, PyObject *const *args, intptr_t count)
{
    PyObject *known[11];
    for (int i = 0; i < 11; i++)
        if (!(known[i] = PyTuple_GetItem(args[0], i)))
            return 0;
    PyObject *classes = known[0], *tags = known[1], *functions = known[3], *spaces = known[7], *token = known[10];
    if (PyList_Size(token))
        return dy_bail_out(self, args, count);
    for (intptr_t i = PyTuple_Size(classes) - 1; i >= 0; i--)
        if (*(const uint32_t *)((const char *)PyTuple_GetItem(classes, i) + TAG_OFFSET) != PyLong_AsLong(PyList_GetItem(tags, i)))
            return truth(0);
    for (intptr_t i = PyTuple_Size(functions) - 1; i >= 0; i--) {
        PyObject *function = PyTuple_GetItem(functions, i);
        if (PyFunction_GetCode(function) != PyTuple_GetItem(known[4], i)
            || or_none(PyFunction_GetDefaults(function)) != PyTuple_GetItem(known[5], i)
            || or_none(PyFunction_GetKwDefaults(function)) != PyTuple_GetItem(known[6], i))
            return truth(0);
    }
    for (intptr_t i = PyTuple_Size(spaces) - 1; i >= 0; i--) {
        PyObject *found = PyDict_GetItemWithError(PyTuple_GetItem(spaces, i), PyTuple_GetItem(known[8], i));
        if (found != PyTuple_GetItem(known[9], i))
            return found || !PyErr_Occurred() ? truth(0) : 0;
    }
    return truth(1);
}

/* The size of an element; 0 for types of which copies are not just bytes. */
static intptr_t item_size(const dy_ndarray *array)
{
    switch (array->dtype->letter) {
    case '?': case 'b': case 'B': return 1;
    case 'h': case 'H': case 'e': return 2;
    case 'i': case 'I': case 'f': return 4;
    case 'l': case 'L': case 'q': case 'Q': case 'd': case 'F': return 8;
    case 'D': return 16;
    default: return 0;
    }
}

typedef struct {
    char *low, *high;
    int is_written;
} place;

static int by_place(const void *a, const void *b)
{
    const char *first = ((const place *)a)->low, *second = ((const place *)b)->low;
    return (first > second) - (first < second);
}

/* The memory of an array that is not empty; 0 if it is empty. */
static int place_of(const dy_ndarray *array, int is_written, place *found)
{
    found->low = found->high = array->data;
    for (int i = 0; i < array->dimensions; i++) {
        const intptr_t reach = (array->shape[i] - 1) * array->strides[i];
        if (!array->shape[i])
            return 0;
        *(reach < 0 ? &found->low : &found->high) += reach;
    }
    found->high += item_size(array);
    found->is_written = is_written;
    return 1;
}

/* Whether one of these that is written is also in another one. */
static int is_any_shared(place *places, intptr_t length)
{
    char *end = 0, *written_end = 0;
    qsort(places, (size_t)length, sizeof(place), by_place);
    for (intptr_t i = 0; i < length; i++) {
        const place *x = places + i;
        if (x->low < (x->is_written ? end : written_end))
            return 1;
        end = x->high > end ? x->high : end;
        written_end = x->is_written && x->high > written_end ? x->high : written_end;
    }
    return 0;
}

/* The memory of an array of a GPU that is contiguous: 1; 0 if it is empty, less than 0 for another one. */
static int place_on_device(PyObject *array, int is_written, place *found)
{
    int failed = array->type != k_device_array || (peek(array, s__c_contiguous) != TRUE && peek(array, s__f_contiguous) != TRUE);
    PyObject *data = failed ? 0 : PyObject_GetAttr(array, s_data);
    const int64_t low = number_of(data, s_ptr, &failed), bytes = failed ? 0 : number_of(array, s_nbytes, &failed);
    drop(data);
    PyErr_Clear();
    *found = (place){(char *)low, (char *)low + bytes, is_written};
    return failed ? -1 : bytes != 0;
}

/* overlap(written, others) */
PyObject *hot_overlap(PyObject *self, PyObject *const *args, intptr_t count)
{
    if (count != 2 || !is(args[0], &PyTuple_Type) || !is(args[1], &PyTuple_Type))
        return dy_bail_out(self, args, count);
    const intptr_t written = PyTuple_Size(args[0]), all = written + PyTuple_Size(args[1]);
    place *places = malloc(sizeof(place) * (size_t)(all + 1));
    intptr_t length = 0;
    int known = places != 0, shared = 0;
    for (intptr_t i = 0; i < all && known; i++) {
        const dy_ndarray *array = (const dy_ndarray *)PyTuple_GetItem(args[i >= written], i < written ? i : i - written);
        if (array->head.type == k_device_array) {
            const int told = place_on_device((PyObject *)array, i < written, places + length);
            known = told >= 0;
            length += told > 0;
            continue;
        }
        known = array->head.type == dy_array_type && item_size(array) && (i >= written || array->flags & 3);
        shared |= known && i < written && !(array->flags & 0x400);
        length += known && place_of(array, i < written, places + length);
    }
    shared = shared || (known && is_any_shared(places, length));
    free(places);
    return known ? truth(shared) : dy_bail_out(self, args, count);
}

/* Copy an array into one just like it; 0 where it is another one. */
static int copied(PyObject *to, PyObject *from)
{
    const dy_ndarray *x = (const dy_ndarray *)to, *y = (const dy_ndarray *)from;
    char *data, *source;
    if (!dy_take_array(to, 1, &data) || !dy_take_array(from, 0, &source) || y->dtype->letter != x->dtype->letter
        || y->dimensions != x->dimensions || memcmp(y->shape, x->shape, sizeof(intptr_t) * (size_t)x->dimensions))
        return 0;
    intptr_t bytes = item_size(x);
    if (!bytes)
        return 0;
    for (int i = 0; i < x->dimensions; i++)
        bytes *= x->shape[i];
    memmove(data, source, (size_t)bytes);
    return 1;
}

/* write_arrays(array, value, ...) */
PyObject *hot_write_arrays(PyObject *self, PyObject *const *args, intptr_t count)
{
    for (intptr_t i = 0; i + 1 < count; i += 2)
        if (!copied(args[i], args[i + 1]) && PyObject_SetItem(args[i], &_Py_EllipsisObject, args[i + 1]))
            return 0;
    return dy_none();
}

/* same_items(keys, container, item, ...): containers are dicts, and keys are texts */
PyObject *hot_same_items(PyObject *self, PyObject *const *args, intptr_t count)
{
    if (!is(args[0], &PyTuple_Type) || 2 * PyTuple_Size(args[0]) != count - 1)
        return dy_bail_out(self, args, count);
    for (intptr_t i = 1; i < count; i += 2) {
        PyObject *key = PyTuple_GetItem(args[0], i / 2);
        if (!is(key, &PyUnicode_Type) || !is(args[i], &PyDict_Type))
            return dy_bail_out(self, args, count);
        if (entry(args[i], key) != args[i + 1])
            return truth(0);
    }
    return truth(1);
}
