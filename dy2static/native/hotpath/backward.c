/* The operands of a backward program, and where its gradients go. */

/* Whether a leaf can be given a gradient without a look at others. */
static int is_without_gradient(PyObject *leaf)
{
    return (leaf->type == k_Parameter || leaf->type == k_Variable) && is_false(peek(leaf, s__has_chainerx_array))
        && peek(leaf, s__grad_var) == NONE && peek(leaf, s__grad) == NONE;
}

static PyObject *new_one(PyObject *array)
{
    PyObject *known = entry(k_ones, (PyObject *)((dy_ndarray *)array)->dtype);
    PyObject *const call[] = {known};
    PyObject *made = known ? PyObject_VectorcallMethod(s_copy, call, 1, 0) : 0;
    if (!made)
        PyErr_Clear();
    return made;
}

/* Which of the outputs is this node, as a tuple of truths; 0 where another one may have a gradient. */
static PyObject *given_of(PyObject *outputs, PyObject *node)
{
    const intptr_t count = PyTuple_Size(outputs);
    PyObject *truths = PyTuple_New(count);
    for (intptr_t i = 0; i < count && truths; i++) {
        PyObject *y = referent(PyTuple_GetItem(outputs, i)), *other = !y || y == NONE || y == node ? NONE : 0;
        if (!other)
            other = referent(peek(y, s__variable));
        if (!other || (other != NONE && (peek(other, s__grad_var) != NONE || peek(other, s__grad) != NONE))) {
            Py_DecRef(truths);
            return 0;
        }
        PyTuple_SetItem(truths, i, truth(y == node));
    }
    return truths;
}

/* The program for these targets and given gradients; 0 where it is not plain or has not been made. */
static PyObject *program_of(PyObject *function, PyObject *targets, PyObject *truths)
{
    PyObject *segment = peek(function, s_segment), *programs = segment ? peek(segment, s_backward) : 0;
    PyObject *key = is(programs, &PyDict_Type) ? PyTuple_New(3) : 0, *program = 0;
    if (key) {
        PyTuple_SetItem(key, 0, given(targets));
        PyTuple_SetItem(key, 1, given(truths));
        PyTuple_SetItem(key, 2, given(FALSE));
        program = entry(programs, key);
        Py_DecRef(key);
    }
    return program && peek(program, s_is_plain) == TRUE ? program : 0;
}

/* What a node holds for a row of `watched` of a program (`Watched` of segment.py has the fields), with the array for a VariableNode. */
static PyObject *held_by(PyObject *held, PyObject *row)
{
    PyObject *found = row ? PyTuple_GetItem(held, PyLong_AsLong(PyTuple_GetItem(row, 0))) : 0;
    return is(found, k_VariableNode) ? peek(found, s__data) : found;
}

/* Whether an array is as a row expects, where sizes that only the run knows are those of the rows before it. */
static int fits_among(PyObject *held, PyObject *watched, PyObject *row, PyObject *object)
{
    PyObject *sizes = PyTuple_GetItem(row, 3), *dtype = PyTuple_GetItem(row, 4);
    const int64_t *lengths = (const int64_t *)PyBytes_AsString(sizes);
    const dy_ndarray *array = (const dy_ndarray *)object;
    if (!lengths || object->type != dy_array_type || 8 * (intptr_t)array->dimensions != PyBytes_Size(sizes))
        return 0;
    for (int axis = 0; axis < array->dimensions; axis++) {
        int64_t length = lengths[axis];
        if (length < 0) {
            const dy_ndarray *first = (const dy_ndarray *)held_by(held, PyTuple_GetItem(watched, (-1 - length) / 64));
            length = first->shape[(-1 - length) % 64];
        }
        if (array->shape[axis] != length)
            return 0;
    }
    return (PyObject *)array->dtype == dtype || PyObject_RichCompareBool((PyObject *)array->dtype, dtype, 2) == 1;
}

/* Whether all that a node holds is as a program expects; 0 also where that cannot be told here. */
static int is_intact(PyObject *held, PyObject *watched)
{
    if (!is(held, &PyTuple_Type) || !is(watched, &PyTuple_Type))
        return 0;
    const intptr_t count = PyTuple_Size(watched);
    int intact = 1;
    for (intptr_t i = 0; i < count && intact; i++) {
        PyObject *row = PyTuple_GetItem(watched, i), *found = PyTuple_GetItem(held, PyLong_AsLong(PyTuple_GetItem(row, 0)));
        const int is_free = PyTuple_GetItem(row, 2) == TRUE;
        if (is_free || is(found, k_VariableNode)) {
            found = held_by(held, row);
            intact = found && ((found == NONE && !is_free) || fits_among(held, watched, row, found));
        }
    }
    PyErr_Clear();
    return intact;
}

/* is_replaced(held, program) */
PyObject *hot_is_replaced(PyObject *self, PyObject *const *args, intptr_t count)
{
    return count == 2 && is_intact(args[0], peek(args[1], s_watched)) ? truth(0) : dy_bail_out(self, args, count);
}

static PyObject *operands_of(PyObject *function, PyObject *program, PyObject *array)
{
    PyObject *takes = peek(program, s_takes), *held = peek(function, s_held), *operands = 0;
    if (!is(takes, &PyTuple_Type) || !is_intact(held, peek(program, s_watched)))
        return 0;
    const intptr_t count = PyTuple_Size(takes);
    operands = PyTuple_New(count);
    PyObject *seed = operands ? new_one(array) : 0;
    int failed = !seed;
    for (intptr_t i = 0; i < count && !failed; i++) {
        const long k = PyLong_AsLong(PyTuple_GetItem(takes, i));
        PyObject *found = k < 0 ? seed : PyTuple_GetItem(held, k);
        if (is(found, k_VariableNode))
            found = peek(found, s__data);
        failed = !found || PyTuple_SetItem(operands, i, given(found));
    }
    drop(seed);
    if (!failed)
        return operands;
    PyErr_Clear();
    drop(operands);
    return 0;
}

/* prepared(variable) */
PyObject *hot_prepared(PyObject *self, PyObject *const *args, intptr_t count)
{
    PyObject *variable = count == 1 ? args[0] : NONE, *node, *function, *array, *inputs, *outputs;
    if (variable->type != k_Variable || !is(node = peek(variable, s__node), k_VariableNode)
        || !is(function = peek(node, s__creator_node), k_CompiledFunction)
        || !is_false(peek(function, s__n_local_function_hooks)) || !(array = array_of(variable))
        || ((dy_ndarray *)array)->dimensions || peek(variable, s__layout) != NONE || peek(variable, s__grad_var) != NONE
        || peek(variable, s__grad) != NONE || !is(outputs = peek(function, s_outputs), &PyTuple_Type)
        || !is(inputs = peek(function, s_inputs), &PyTuple_Type))
        return dy_none();
    const intptr_t entering = PyTuple_Size(inputs);
    PyObject *nodes[64];
    intptr_t wanted = 0;
    if (entering > 64)
        return dy_bail_out(self, args, count);
    PyObject *leaves = 0, *targets = 0, *truths = 0, *operands = 0, *program = 0, *result = 0;
    long numbers[64];
    for (intptr_t i = 0; i < entering; i++) {
        PyObject *x = PyTuple_GetItem(inputs, i);
        if (!is(x, k_VariableNode) || peek(x, s__creator_node) != NONE || peek(x, s__old_style_grad_generator) != NONE)
            return dy_none();
        PyObject *required = peek(x, s__requires_grad);
        if (required == FALSE)
            continue;
        if (required != TRUE)
            return dy_bail_out(self, args, count);
        for (intptr_t j = 0; j < wanted; j++)
            if (nodes[j] == x)
                return dy_none();
        numbers[wanted] = (long)i;
        nodes[wanted++] = x;
    }
    if (!(leaves = PyTuple_New(wanted)) || !(targets = PyTuple_New(wanted)))
        goto end;
    for (intptr_t i = 0; i < wanted; i++) {
        PyObject *leaf = referent(peek(nodes[i], s__variable)), *number;
        if (!leaf || (leaf != NONE && !is_without_gradient(leaf)) || !(number = PyLong_FromLong(numbers[i])))
            goto end;
        PyTuple_SetItem(leaves, i, given(leaf));
        PyTuple_SetItem(targets, i, number);
    }
    if (!(truths = given_of(outputs, node)) || !(program = program_of(function, targets, truths)) || !(operands = operands_of(function, program, array))
        || !(result = PyTuple_New(4)))
        goto end;
    PyTuple_SetItem(result, 0, given(function));
    PyTuple_SetItem(result, 1, given(program));
    PyTuple_SetItem(result, 2, given(operands));
    PyTuple_SetItem(result, 3, given(leaves));
end:
    drop(leaves), drop(targets), drop(truths), drop(operands);
    return result ? result : PyErr_Occurred() ? 0 : dy_none();
}

/* Whether a gradient that is computed from these inputs and given gradients requires one; less than 0 on an error. */
static int requires_gradient(PyObject *inputs, PyObject *from)
{
    PyObject *entering = PyTuple_GetItem(from, 0), *arriving = PyTuple_GetItem(from, 1);
    if (!entering || !arriving)
        return -1;
    if (PyTuple_Size(arriving) > 0)
        return 1;
    for (intptr_t i = 0; i < PyTuple_Size(entering); i++) {
        PyObject *x = PyTuple_GetItem(inputs, PyLong_AsLong(PyTuple_GetItem(entering, i)));
        if (!x)
            return -1;
        if (peek(x, s__requires_grad) == TRUE)
            return 1;
    }
    return 0;
}

/* finished(function, program, leaves, results) */
PyObject *hot_finished(PyObject *self, PyObject *const *args, intptr_t count)
{
    PyObject *inputs, *depends;
    if (count != 4 || !is(args[2], &PyTuple_Type) || !is(args[3], &PyTuple_Type)
        || !is(inputs = peek(args[0], s_inputs), &PyTuple_Type) || !is(depends = peek(args[1], s_depends), &PyTuple_Type)
        || PyTuple_Size(args[2]) > PyTuple_Size(args[3]) || PyTuple_Size(args[2]) > PyTuple_Size(depends))
        return dy_bail_out(self, args, count);
    const intptr_t wanted = PyTuple_Size(args[2]);
    for (intptr_t i = 0; i < wanted; i++)
        if (!is_any_array(PyTuple_GetItem(args[3], i)))
            return dy_bail_out(self, args, count);
    for (intptr_t i = 0; i < wanted; i++) {
        PyObject *leaf = PyTuple_GetItem(args[2], i), *array = PyTuple_GetItem(args[3], i);
        if (leaf == NONE)
            continue;
        const int required = requires_gradient(inputs, PyTuple_GetItem(depends, i));
        PyObject *gradient = required < 0 ? 0 : new_variable(array, required ? TRUE : FALSE);
        const int failed = !gradient || PyObject_SetAttr(leaf, s__grad_var, gradient) || PyObject_SetAttr(leaf, s__grad, array)
            || PyObject_SetAttr(leaf, s__loss_scale, NONE);
        drop(gradient);
        if (failed)
            return 0;
    }
    return dy_none();
}
