/* Variables, their gradients and the nodes of calls, made and used again as Chainer makes them. */

/* Variables that nobody can see any more, the oldest first: new ones are made of them.  So a step with a gradient for each of many
   parameters makes no objects that the garbage collector would look at. */
#define MOST_RETIRED 4096
static PyObject *retired[MOST_RETIRED];
static unsigned oldest, newest;     /* of all that there ever were */

static int has_weak_references(PyObject *object, long expected)
{
    PyObject *const call[] = {object};
    PyObject *number = PyObject_VectorcallDict(k_getweakrefcount, call, 1, 0);
    const int found = number && PyLong_AsLong(number) == expected;
    drop(number);
    PyErr_Clear();
    return found;
}

/* The attributes of an object that alone holds them, so many; 0 for others. */
static PyObject *sole_dict(PyObject *object, PyObject *like)
{
    PyObject *own = PyObject_GenericGetDict(object, 0);
    if (!own) {
        PyErr_Clear();
        return 0;
    }
    Py_DecRef(own);
    return own->references == 1 && PyDict_Size(own) == PyDict_Size(like) ? own : 0;
}

/* The list with the array of a Variable that only the caller can reach, and that is as `new_variable` leaves it; 0 for others. */
static PyObject *sole_data(PyObject *variable)
{
    PyObject *own = variable->references == 1 ? sole_dict(variable, k_variable_entries) : 0;
    PyObject *data = own ? entry(own, s__data) : 0, *node = own ? entry(own, s__node) : 0;
    if (!is(data, &PyList_Type) || data->references != 1 || PyList_Size(data) != 1 || !is(node, k_VariableNode)
        || node->references != 1 || !entry(own, s__requires_grad) || entry(own, s__loss_scale) != NONE
        || entry(own, s__grad_var) != NONE || entry(own, s__grad) != NONE || entry(own, s__device) != NONE
        || entry(own, s__layout) != NONE || entry(own, s__grad_valid) != TRUE)
        return 0;
    PyObject *entries = sole_dict(node, k_node_entries), *reference = entries ? entry(entries, s__variable) : 0;
    const int sole = reference && reference->references == 1 && entry(entries, s_name) == NONE
        && entry(entries, s__layout) == NONE && entry(entries, s__requires_grad) && entry(entries, s_dtype)
        && entry(entries, s_shape) && has_weak_references(variable, 1) && has_weak_references(node, 0)
        && referent(reference) == variable;
    return sole ? data : 0;
}

/* Let go of a Variable, which may be used again.  Who looks at its array while that is freed has no way to the Variable. */
static void retire(PyObject *variable)
{
    PyObject *data;
    if (newest - oldest < MOST_RETIRED && (data = sole_data(variable))) {
        PyList_SetItem(data, 0, given(NONE));
        if (newest - oldest < MOST_RETIRED && variable->references == 1 && data->references == 1) {
            retired[newest++ % MOST_RETIRED] = variable;
            return;
        }
    }
    Py_DecRef(variable);
}

/* The gradient of a Variable with these attributes, which is about to be replaced; 0 if others may have it. */
static PyObject *leaving(PyObject *own)
{
    PyObject *gradient = own ? entry(own, s__grad_var) : 0;
    return is(gradient, k_Variable) && gradient->references == 1 ? given(gradient) : 0;
}

static int has_shape(PyObject *shape, const dy_ndarray *array)
{
    if (array->head.type != dy_array_type)
        return 0;                           /* one of a GPU gives a new tuple in any case */
    int same = is(shape, &PyTuple_Type) && PyTuple_Size(shape) == array->dimensions;
    for (int32_t i = 0; same && i < array->dimensions; i++)
        same = PyLong_AsLong(PyTuple_GetItem(shape, i)) == array->shape[i];
    return same;
}

/* The parts of a retired Variable, if it alone holds them and nobody holds it: a search through all objects may have found them. */
static int is_left_alone(PyObject *variable, PyObject **own, PyObject **entries, PyObject **data)
{
    PyObject *node;
    return variable->references == 1 && (*own = sole_dict(variable, k_variable_entries)) && (node = entry(*own, s__node))
        && node->references == 1 && (*entries = sole_dict(node, k_node_entries)) && (*data = entry(*own, s__data))
        && (*data)->references == 1;
}

/* A retired Variable as a new one; 0 without an error if there is none. */
static PyObject *used_again(PyObject *array, PyObject *requires_grad)
{
    PyObject *variable, *own, *entries, *data, *shape = 0, *dtype = dtype_of(array);
    do {
        if (newest == oldest)
            return 0;
        variable = retired[oldest++ % MOST_RETIRED];
    } while (!is_left_alone(variable, &own, &entries, &data) && (Py_DecRef(variable), 1));
    int failed = !dtype || PyList_SetItem(data, 0, given(array))
        || (entry(own, s__requires_grad) != requires_grad && PyDict_SetItem(own, s__requires_grad, requires_grad))
        || (entry(entries, s__requires_grad) != requires_grad && PyDict_SetItem(entries, s__requires_grad, requires_grad))
        || (entry(entries, s_dtype) != dtype && PyDict_SetItem(entries, s_dtype, dtype));
    if (!failed && !has_shape(entry(entries, s_shape), (dy_ndarray *)array))
        failed = !(shape = PyObject_GetAttr(array, s_shape)) || PyDict_SetItem(entries, s_shape, shape);
    drop(shape);
    if (!failed)
        return variable;
    Py_DecRef(variable);
    return 0;
}

static PyObject *new_variable(PyObject *array, PyObject *requires_grad)
{
    PyObject *used = newest != oldest ? used_again(array, requires_grad) : 0;
    if (used || PyErr_Occurred())
        return used;
    PyObject *variable = PyType_GenericAlloc(k_Variable, 0), *node = PyType_GenericAlloc(k_VariableNode, 0);
    PyObject *own = PyDict_Copy(k_variable_entries), *entries = PyDict_Copy(k_node_entries);
    PyObject *reference = variable ? PyWeakref_NewRef(variable, 0) : 0, *shape = PyObject_GetAttr(array, s_shape);
    PyObject *data = PyList_New(1), *dtype = dtype_of(array);
    int failed = !dtype || !variable || !node || !own || !entries || !reference || !shape || !data;
    if (!failed) {
        PyList_SetItem(data, 0, given(array));
        failed = PyDict_SetItem(entries, s__variable, reference) || PyDict_SetItem(entries, s__requires_grad, requires_grad)
            || PyDict_SetItem(entries, s_dtype, dtype) || PyDict_SetItem(entries, s_shape, shape)
            || PyDict_SetItem(own, s__requires_grad, requires_grad) || PyDict_SetItem(own, s__data, data)
            || PyDict_SetItem(own, s__node, node)
            || PyObject_SetAttr(node, s___dict__, entries) || PyObject_SetAttr(variable, s___dict__, own);
    }
    drop(node), drop(own), drop(entries), drop(reference), drop(shape), drop(data);
    if (!failed)
        return variable;
    drop(variable);
    return 0;
}

/* make_variable(array, requires_grad) */
PyObject *hot_make_variable(PyObject *self, PyObject *const *args, intptr_t count)
{
    if (count != 2 || !is_any_array(args[0]) || (args[1] != TRUE && args[1] != FALSE))
        return dy_bail_out(self, args, count);
    return new_variable(args[0], args[1]);
}

/* make_variables(required, array, ...) */
PyObject *hot_make_variables(PyObject *self, PyObject *const *args, intptr_t count)
{
    if (!is(args[0], &PyTuple_Type) || PyTuple_Size(args[0]) != count - 1)
        return dy_bail_out(self, args, count);
    for (intptr_t i = 1; i < count; i++)
        if (!is_any_array(args[i]))
            return dy_bail_out(self, args, count);
    PyObject *made = PyTuple_New(count - 1);
    for (intptr_t i = 1; i < count && made; i++) {
        PyObject *variable = new_variable(args[i], PyTuple_GetItem(args[0], i - 1));
        if (!variable || PyTuple_SetItem(made, i - 1, variable)) {
            Py_DecRef(made);
            return 0;
        }
    }
    return made;
}

/* Set the gradient of a Variable that is as Chainer makes it, with an array: an attribute is an entry of its dict. */
static int store_plainly(PyObject *variable, PyObject *marks, PyObject *gradient)
{
    if ((variable->type != k_Parameter && variable->type != k_Variable) || !is(marks, &PyTuple_Type)
        || (gradient != NONE && gradient->type != k_Variable))
        return 0;
    PyObject *array = gradient == NONE ? NONE : any_array_of(gradient), *own = array ? PyObject_GenericGetDict(variable, 0) : 0;
    const int plain = own && peek(variable, s__has_chainerx_array) == FALSE
        && (gradient == NONE || peek(gradient, s__layout) == NONE);
    PyObject *before = plain ? leaving(own) : 0;
    const int stored = plain && !PyDict_SetItem(own, s__grad_var, gradient) && !PyDict_SetItem(own, s__grad, array)
        && (PyTuple_GetItem(marks, 0) != TRUE || !PyDict_SetItem(own, s__grad_valid, TRUE))
        && (PyTuple_GetItem(marks, 1) != TRUE || !PyDict_SetItem(own, s__loss_scale, NONE));
    drop(own);
    if (before)
        retire(before);
    return stored;
}

/* store_gradients(marks, variable, gradient, ...) */
PyObject *hot_store_gradients(PyObject *self, PyObject *const *args, intptr_t count)
{
    if (!is(args[0], &PyTuple_Type) || 2 * PyTuple_Size(args[0]) != count - 1)
        return dy_bail_out(self, args, count);
    for (intptr_t i = 1; i < count; i += 2) {
        PyObject *marks = PyTuple_GetItem(args[0], i / 2);
        if (store_plainly(args[i], marks, args[i + 1]))
            continue;
        PyObject *const call[] = {args[i], marks, args[i + 1]};
        PyObject *done = PyErr_Occurred() ? 0 : PyObject_VectorcallDict(k_store_gradient, call, 3, 0);
        if (!done)
            return 0;
        Py_DecRef(done);
    }
    return dy_none();
}

/* connect(segment, inputs, outputs, held, lease, lazy_grad_sum) */
PyObject *hot_connect(PyObject *self, PyObject *const *args, intptr_t count)
{
    if (count != 6 || !is(args[1], &PyTuple_Type) || !is(args[2], &PyTuple_Type))
        return dy_bail_out(self, args, count);
    const intptr_t entering = PyTuple_Size(args[1]), leaving = PyTuple_Size(args[2]);
    long rank = -1;
    PyObject *function = 0, *entries = 0, *inputs = PyTuple_New(entering), *outputs = PyTuple_New(leaving), *number = 0;
    int failed = !inputs || !outputs;
    for (intptr_t i = 0; i < entering && !failed; i++) {
        PyObject *node = PyObject_GetAttr(PyTuple_GetItem(args[1], i), s__node);
        PyObject *own = node ? PyObject_GetAttr(node, s__rank) : 0;
        const long value = own ? PyLong_AsLong(own) : -1;
        drop(own);
        if (node)
            PyTuple_SetItem(inputs, i, node);
        failed = !node || !own || (value == -1 && PyErr_Occurred());
        rank = value > rank ? value : rank;
    }
    failed = failed || !(function = PyType_GenericAlloc(k_CompiledFunction, 0)) || !(number = PyLong_FromLong(rank + 1));
    for (intptr_t i = 0; i < leaving && !failed; i++) {
        PyObject *node = PyObject_GetAttr(PyTuple_GetItem(args[2], i), s__node), *reference = node ? PyWeakref_NewRef(node, 0) : 0;
        failed = !reference || PyTuple_SetItem(outputs, i, reference) || PyObject_SetAttr(node, s__creator_node, function)
            || PyObject_SetAttr(node, s__rank, number);
        drop(node);
    }
    drop(number);
    PyObject *own_rank = PyLong_FromLong(rank), *length = PyLong_FromLong((long)leaving);
    failed = failed || !own_rank || !length || !(entries = PyDict_Copy(k_function_entries))
        || PyDict_SetItem(entries, s_segment, args[0]) || PyDict_SetItem(entries, s_held, args[3])
        || PyDict_SetItem(entries, s_lease, args[4]) || PyDict_SetItem(entries, s_rank, own_rank)
        || PyDict_SetItem(entries, s_inputs, inputs) || PyDict_SetItem(entries, s_outputs, outputs)
        || PyDict_SetItem(entries, s__output_count, length) || PyDict_SetItem(entries, s_lazy_grad_sum, args[5])
        || PyObject_SetAttr(function, s___dict__, entries);
    drop(function), drop(entries), drop(inputs), drop(outputs), drop(own_rank), drop(length);
    return failed ? 0 : dy_none();
}
