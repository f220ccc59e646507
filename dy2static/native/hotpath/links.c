/* The parameters of links, and their gradients cleared. */

#define DEEPEST 64

/* Whether a link gives its parameters as Link, Chain (1) or ChainList (2) do; less than 0 if not. */
static int kind_of(PyObject *link, PyObject *own)
{
    PyObject *params = peek((PyObject *)link->type, s_params), *named = peek((PyObject *)link->type, s_namedparams);
    if (entry(own, s_params) || entry(own, s_namedparams))
        return -1;
    if (params == k_chain_params && named == k_chain_namedparams)
        return 1;
    if (params == k_list_params && named == k_list_namedparams)
        return 2;
    return params == k_link_params && named == k_link_namedparams ? 0 : -1;
}

static int collect(PyObject *link, PyObject *found, int depth);

/* Append what the entries of these names, in their order, are or hold. */
static int collect_named(PyObject *own, PyObject *names, PyObject *found, int depth)
{
    PyObject *sorted = names ? PySequence_List(names) : 0;
    int good = sorted && !PyList_Sort(sorted);
    for (intptr_t i = 0; good && i < PyList_Size(sorted); i++) {
        PyObject *item = PyDict_GetItemWithError(own, PyList_GetItem(sorted, i));
        good = item && (depth < 0 ? !PyList_Append(found, item) : collect(item, found, depth));
    }
    drop(sorted);
    return good;
}

/* Append the parameters of a link in the order of its `params()`; 0 where something is not as usual. */
static int collect(PyObject *link, PyObject *found, int depth)
{
    PyObject *own = PyObject_GenericGetDict(link, 0);
    const int kind = own && depth < DEEPEST ? kind_of(link, own) : -1;
    int good = kind >= 0 && collect_named(own, entry(own, s__params), found, -1);
    if (good && kind == 1)
        good = collect_named(own, entry(own, s__children), found, depth + 1);
    if (good && kind == 2) {
        PyObject *children = entry(own, s__children), *list = children ? PySequence_List(children) : 0;
        good = list != 0;
        for (intptr_t i = 0; good && i < PyList_Size(list); i++)
            good = collect(PyList_GetItem(list, i), found, depth + 1);
        drop(list);
    }
    drop(own);
    return good;
}

/* The parameters of a link as a list; 0 without an error where something is not as usual. */
static PyObject *parameters(PyObject *link)
{
    PyObject *found = PyList_New(0);
    if (found && collect(link, found, 0))
        return found;
    drop(found);
    PyErr_Clear();
    return 0;
}

/* cleared(link) */
PyObject *hot_cleared(PyObject *self, PyObject *const *args, intptr_t count)
{
    PyObject *found = count == 1 ? parameters(args[0]) : 0;
    if (!found)
        return dy_bail_out(self, args, count);
    int failed = 0;
    for (intptr_t i = 0; i < PyList_Size(found) && !failed; i++) {
        PyObject *x = PyList_GetItem(found, i);
        if (x->type == k_Parameter && array_of(x) && is_false(peek(x, s__has_chainerx_array))) {
            PyObject *own = PyObject_GenericGetDict(x, 0), *before = leaving(own);
            drop(own);
            failed = PyObject_SetAttr(x, s__grad_var, NONE) || PyObject_SetAttr(x, s__grad, NONE)
                || PyObject_SetAttr(x, s__grad_valid, TRUE);
            if (before)
                retire(before);
        } else {
            PyObject *const call[] = {x};
            PyObject *done = PyObject_VectorcallMethod(s_cleargrad, call, 1, 0);
            failed = !done;
            drop(done);
        }
    }
    Py_DecRef(found);
    return failed ? 0 : truth(1);
}
