/* What surrounds the native programs of a training step, for objects that are just as Chainer leaves them: Variables and
   nodes made by hand, the operands of a backward program and where its gradients go, gradients cleared, parameters updated.

   Every function looks first at everything that it is about to rely on, and does nothing before it has; whatever it does
   not know, the Python function in its self answers instead.  No reference is kept of what is read with `peek`: the object
   that it was read from holds it, and no Python code runs in between. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "dy2static_python.h"

extern char PyTuple_Type, PyDict_Type, PyList_Type, PyUnicode_Type;
extern PyObject _Py_EllipsisObject;
extern int PyObject_SetItem(PyObject *, PyObject *, PyObject *);
extern PyObject *PyObject_GetAttr(PyObject *, PyObject *);
extern int PyObject_SetAttr(PyObject *, PyObject *, PyObject *);
extern PyObject *PyObject_GenericGetDict(PyObject *, void *);
extern PyObject *PyObject_VectorcallMethod(PyObject *, PyObject *const *, uintptr_t, PyObject *);
extern int PyObject_IsTrue(PyObject *);
extern PyObject *PyType_GenericAlloc(PyObject *, intptr_t);
extern PyObject *PyUnicode_InternFromString(const char *);
extern PyObject *PyWeakref_NewRef(PyObject *, PyObject *);
extern PyObject *PyFunction_GetCode(PyObject *);
extern PyObject *PyFunction_GetDefaults(PyObject *);
extern PyObject *PyFunction_GetKwDefaults(PyObject *);
extern PyObject *PyDict_Copy(PyObject *);
extern PyObject *PyDict_GetItemWithError(PyObject *, PyObject *);
extern int PyDict_SetItem(PyObject *, PyObject *, PyObject *);
extern intptr_t PyDict_Size(PyObject *);
extern intptr_t PyTuple_Size(PyObject *);
extern PyObject *PyList_New(intptr_t);
extern int PyList_Append(PyObject *, PyObject *);
extern int PyList_SetItem(PyObject *, intptr_t, PyObject *);
extern int PyList_Sort(PyObject *);
extern intptr_t PyList_Size(PyObject *);
extern PyObject *PyList_GetItem(PyObject *, intptr_t);
extern PyObject *PySequence_List(PyObject *);
extern PyObject *PySet_New(PyObject *);
extern intptr_t PySet_Size(PyObject *);
extern PyObject *PyLong_FromLong(long);
extern char *PyBytes_AsString(PyObject *);
extern intptr_t PyBytes_Size(PyObject *);
extern int PyObject_RichCompareBool(PyObject *, PyObject *, int);
extern long PyLong_AsLong(PyObject *);
extern double PyLong_AsDouble(PyObject *);

#define TAG_OFFSET 384  /* of a class, as in definitions.py */
#define NONE (&_Py_NoneStruct)
#define TRUE (&_Py_TrueStruct)
#define FALSE (&_Py_FalseStruct)

/* ---- what Python tells when the library is started */

#define OBJECTS(X) X(Variable) X(VariableNode) X(Parameter) X(CompiledFunction) X(Hyperparameter) X(variable_entries) \
    X(node_entries) X(function_entries) X(ones) X(link_params) X(link_namedparams) X(chain_params) X(chain_namedparams) \
    X(list_params) X(list_namedparams) X(SGDRule) X(MomentumSGDRule) X(AdamRule) X(store_gradient) X(object_getattribute) \
    X(getweakrefcount) X(device_array)
#define NAMES(X) X(_variable) X(_requires_grad) X(dtype) X(shape) X(_data) X(_node) X(_creator_node) X(_rank) X(segment) \
    X(held) X(lease) X(rank) X(inputs) X(outputs) X(_output_count) X(lazy_grad_sum) X(_n_local_function_hooks) X(_layout) \
    X(_grad_var) X(_grad) X(_grad_valid) X(_loss_scale) X(_has_chainerx_array) X(_old_style_grad_generator) X(backward) \
    X(is_plain) X(takes) X(depends) X(copy) X(params) X(namedparams) X(_params) X(_children) X(cleargrad) X(update) \
    X(update_rule) X(enabled) X(hyperparam) X(t) X(_state) X(_use_fp32_update) X(_fp32_param) X(_hookable) X(_parent) \
    X(_pre_update_hooks) X(_post_update_hooks) X(lr) X(momentum) X(alpha) X(beta1) X(beta2) X(eps) X(eta) \
    X(weight_decay_rate) X(amsgrad) X(adabound) X(m) X(v) X(__dict__) X(_device) X(__getattribute__) X(name) X(data) X(ptr) \
    X(device_id) X(nbytes) X(_c_contiguous) X(_f_contiguous)

#define DECLARE(name) static PyObject *k_##name;
OBJECTS(DECLARE)
#undef DECLARE
#define DECLARE(name) static PyObject *s_##name;
NAMES(DECLARE)

static int is_layout_known(PyObject *, PyObject *), are_versions_known(void);
static int has_versions;            /* whether the version of a dict tells of every change */

/* start(tuple of OBJECTS in their order, set of a text, whether each write of a dict changes its version): whether these are
   laid out as is expected */
PyObject *hot_start(PyObject *self, PyObject *const *args, intptr_t count)
{
    intptr_t next = 0;
#define TAKE(name) k_##name = PyTuple_GetItem(args[0], next++); if (!k_##name) return 0; Py_IncRef(k_##name);
    OBJECTS(TAKE)
#define INTERN(name) s_##name = PyUnicode_InternFromString(#name); if (!s_##name) return 0;
    NAMES(INTERN)
    has_versions = args[2] == TRUE && are_versions_known();
    PyObject *known = is_layout_known(args[0], args[1]) ? TRUE : FALSE;
    Py_IncRef(known);
    return known;
}

/* ---- reading */

static inline int is(PyObject *object, void *type) { return object && object->type == type; }

/* An attribute that something else holds on to as well; 0 where there is none, without an error. */
static PyObject *peek(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(object, name);
    if (found)
        Py_DecRef(found);
    else
        PyErr_Clear();
    return found;
}

static int is_false(PyObject *object) { return object && PyObject_IsTrue(object) == 0; }

static PyObject *entry(PyObject *dict, PyObject *name)
{
    PyObject *found = PyDict_GetItemWithError(dict, name);
    if (!found)
        PyErr_Clear();
    return found;
}

/* What a weak reference refers to, which somebody must hold; None; or 0 without an error. */
static PyObject *referent(PyObject *reference)
{
    PyObject *found = reference ? PyObject_VectorcallDict(reference, 0, 0, 0) : 0;
    if (found)
        Py_DecRef(found);
    else
        PyErr_Clear();
    return found;
}

static inline void drop(PyObject *object)
{
    if (object)
        Py_DecRef(object);
}

static PyObject *given(PyObject *object)
{
    Py_IncRef(object);
    return object;
}

static PyObject *truth(int value) { return given(value ? TRUE : FALSE); }

/* Whether it is an array of NumPy's, or of a GPU. */
static int is_any_array(PyObject *object) { return object->type == dy_array_type || object->type == k_device_array; }

/* The array of an initialised Variable or Parameter, of NumPy's or of a GPU; 0 for anything else. */
static PyObject *any_array_of(PyObject *variable)
{
    PyObject *data = peek(variable, s__data);
    PyObject *array = data && PyList_Size(data) == 1 ? PyList_GetItem(data, 0) : 0;
    if (!array)
        PyErr_Clear();
    return array && is_any_array(array) ? array : 0;
}

/* The same; 0 if it is anything but an exact ndarray of NumPy's. */
static PyObject *array_of(PyObject *variable)
{
    PyObject *array = any_array_of(variable);
    return array && array->type == dy_array_type ? array : 0;
}

/* The dtype of an array, which holds it; 0 without an error. */
static PyObject *dtype_of(PyObject *array)
{
    return array->type == dy_array_type ? (PyObject *)((dy_ndarray *)array)->dtype : peek(array, s_dtype);
}

/* An attribute of an array of a GPU as a number; `failed` is set where there is none. */
static int64_t number_of(PyObject *object, PyObject *name, int *failed)
{
    PyObject *found = object ? PyObject_GetAttr(object, name) : 0;
    const int64_t number = found ? PyLong_AsLongLong(found) : -1;
    if (!found || (number == -1 && PyErr_Occurred())) {
        PyErr_Clear();
        *failed = 1;
    }
    drop(found);
    return number;
}

/* ---- arrays */

static PyObject *or_none(PyObject *object) { return object ? object : NONE; }

/* fits(expected, array, ...) */
PyObject *hot_fits(PyObject *self, PyObject *const *args, intptr_t count)
{
    for (intptr_t i = 1; i < count; i++) {
        PyObject *wanted = PyTuple_GetItem(args[0], i - 1);
        const char *shape = wanted ? PyBytes_AsString(PyTuple_GetItem(wanted, 0)) : 0;
        const dy_ndarray *array = (const dy_ndarray *)args[i];
        if (!shape)
            return 0;
        if (array->head.type != dy_array_type || 8 * (intptr_t)array->dimensions != PyBytes_Size(PyTuple_GetItem(wanted, 0))
            || memcmp(array->shape, shape, 8 * (size_t)array->dimensions))
            return truth(0);
        if ((PyObject *)array->dtype != PyTuple_GetItem(wanted, 1)) {
            const int same = PyObject_RichCompareBool((PyObject *)array->dtype, PyTuple_GetItem(wanted, 1), 2);
            if (same != 1)
                return same < 0 ? 0 : truth(0);
        }
    }
    return truth(1);
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

/* ---- Variables */

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

/* ---- backward */

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

static PyObject *operands_of(PyObject *function, PyObject *program, PyObject *array)
{
    PyObject *takes = peek(program, s_takes), *held = peek(function, s_held), *operands = 0;
    if (!is(takes, &PyTuple_Type) || !is(held, &PyTuple_Type))
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

/* ---- the parameters of links */

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

/* ---- updates */

#define MANY 65536          /* from so many numbers on, other threads may run meanwhile */

typedef struct {
    char *data, *grad, *m, *v;
    int64_t count;
    double c[5];
    int is_double;
} update;                   /* m, v: the moments of the gradient */

typedef struct {
    PyObject **type, **state[2];
    int (*constants)(PyObject *, long, double *);
    int (*run_float)(const update *, int);
    int (*run_double)(const update *, int);
} rule;

/* A number among hyperparameters, or among those of a parent. */
static int hyper(PyObject *hyperparameters, PyObject *name, double *number)
{
    for (int depth = 0; depth < 8 && is(hyperparameters, k_Hyperparameter); depth++) {
        PyObject *own = PyObject_GenericGetDict(hyperparameters, 0), *found = own ? entry(own, name) : 0;
        hyperparameters = own ? entry(own, s__parent) : 0;
        drop(own);
        if (is(found, &PyFloat_Type))
            *number = ((dy_float *)found)->value;
        else if (is(found, &PyLong_Type)) {
            *number = PyLong_AsDouble(found);
            if (*number == -1)
                PyErr_Clear();
        } else if (found)
            return 0;
        if (found)
            return fabs(*number) < 1e30;
    }
    return 0;
}

static int is_off(PyObject *hyperparameters, PyObject *name)
{
    for (int depth = 0; depth < 8 && is(hyperparameters, k_Hyperparameter); depth++) {
        PyObject *own = PyObject_GenericGetDict(hyperparameters, 0), *found = own ? entry(own, name) : 0;
        hyperparameters = own ? entry(own, s__parent) : 0;
        drop(own);
        if (found)
            return found == FALSE;
    }
    return 0;
}

static int constants_of_sgd(PyObject *h, long t, double *c) { return hyper(h, s_lr, c); }

static int constants_of_momentum(PyObject *h, long t, double *c) { return hyper(h, s_lr, c) && hyper(h, s_momentum, c + 1); }

static int constants_of_adam(PyObject *h, long t, double *c)
{
    double alpha, beta1, beta2, eta, decay;
    if (!hyper(h, s_alpha, &alpha) || !hyper(h, s_beta1, &beta1) || !hyper(h, s_beta2, &beta2) || !hyper(h, s_eps, c + 3)
        || !hyper(h, s_eta, &eta) || !hyper(h, s_weight_decay_rate, &decay) || !is_off(h, s_amsgrad) || !is_off(h, s_adabound)
        || !(0 <= beta1 && beta1 < 1 && 0 <= beta2 && beta2 < 1) || decay != 0 || eta == 0 || !(c[3] > FLT_MIN))
        return 0;
    c[0] = 1.0 - beta1;
    c[1] = 1.0 - beta2;
    c[2] = alpha * sqrt(1. - pow(beta2, (double)t)) / (1. - pow(beta1, (double)t));
    c[4] = -eta;
    return fabs(c[2]) < 1e30;
}

/* Each rule for one type of numbers, and what it does with arrays that do not overlap.  write 0: nothing, but it tells
   whether all results are finite, else NumPy would have something to say. */
#define RULE(NAME, T, MAX, BEFORE, RESULTS, FINITE, STORE)                                                              \
static inline __attribute__((always_inline)) int NAME##_##T##_of(const update *u, const int write)                      \
{                                                                                                                       \
    T *restrict p = (T *)u->data, *restrict m = (T *)u->m, *restrict v = (T *)u->v;                                     \
    const T *restrict g = (const T *)u->grad;                                                                           \
    const int64_t count = u->count;                                                                                     \
    int bad = 0;                                                                                                        \
    BEFORE                                                                                                              \
    for (int64_t i = 0; i < count; i++) {                                                                               \
        RESULTS                                                                                                         \
        if (write) {                                                                                                    \
            STORE                                                                                                       \
        } else                                                                                                          \
            bad |= FINITE ? 0 : 1;                                                                                      \
    }                                                                                                                   \
    return !bad;                                                                                                        \
}                                                                                                                       \
static int NAME##_##T(const update *u, int write) { return write ? NAME##_##T##_of(u, 1) : NAME##_##T##_of(u, 0); }

#define RULES_OF(T, MAX, ABS, SQRT)                                                                                     \
RULE(sgd, T, MAX,                                                                                                       \
     const T lr = (T)u->c[0];,                                                                                          \
     const T to = p[i] - lr * g[i];,                                                                                    \
     (ABS(to) <= MAX),                                                                                                  \
     p[i] = to;)                                                                                                        \
RULE(momentum, T, MAX,                                                                                                  \
     const T lr = (T)u->c[0]; const T share = (T)u->c[1];,                                                              \
     const T moved = v[i] * share - lr * g[i]; const T to = p[i] + moved;,                                              \
     (ABS(to) <= MAX),                                                                                                  \
     v[i] = moved; p[i] = to;)                                                                                          \
RULE(adam, T, MAX,                                                                                                      \
     const T c1 = (T)u->c[0]; const T c2 = (T)u->c[1]; const T alpha = (T)u->c[2]; const T eps = (T)u->c[3];            \
     const T eta = (T)u->c[4];,                                                                                         \
     const T first = m[i] + c1 * (g[i] - m[i]); const T second = v[i] + c2 * (g[i] * g[i] - v[i]);                      \
     const T to = p[i] + eta * (alpha / (SQRT(second) + eps) * first);,                                                 \
     ((ABS(to) <= MAX) & (second >= 0) & (second <= MAX)),                                                              \
     m[i] = first; v[i] = second; p[i] = to;)

RULES_OF(float, FLT_MAX, __builtin_fabsf, __builtin_sqrtf)
RULES_OF(double, DBL_MAX, __builtin_fabs, __builtin_sqrt)

static int apart(const char *a, const char *b, int64_t bytes) { return a + bytes <= b || b + bytes <= a; }

/* The data of an array like the first; it must not share memory with it. */
static int like(PyObject *first, PyObject *array, int writeable, int64_t bytes, char **data)
{
    const dy_ndarray *x = (const dy_ndarray *)first, *y = (const dy_ndarray *)array;
    if (!array || !dy_take_array(array, writeable, data) || y->dtype->letter != x->dtype->letter
        || y->dimensions != x->dimensions || memcmp(y->shape, x->shape, sizeof(intptr_t) * (size_t)x->dimensions))
        return 0;
    return apart(*data, x->data, bytes);
}

/* Everything about the update of one parameter; 0 where it is not as usual.  kept: what must live until it is done. */
static int prepare(PyObject *x, const rule *how, update *u, PyObject *rules, PyObject *kept)
{
    PyObject *own, *update_rule, *entries, *array, *grad, *hooks, *state, *t;
    if (x->type != k_Parameter || !(array = array_of(x)) || !dy_take_array(array, 1, &u->data)
        || !is_false(peek(x, s__has_chainerx_array)) || peek(x, s__layout) != NONE || peek(x, s__loss_scale) != NONE
        || peek(x, s__grad_valid) != TRUE || !is(update_rule = peek(x, s_update_rule), *how->type))
        return 0;
    grad = peek(x, s__grad_var);
    grad = !grad || grad == NONE ? peek(x, s__grad) : grad->type == k_Variable ? array_of(grad) : 0;
    const char letter = ((dy_ndarray *)array)->dtype->letter;
    if (letter != 'f' && letter != 'd')
        return 0;
    u->is_double = letter == 'd';
    u->count = 1;
    for (int i = 0; i < ((dy_ndarray *)array)->dimensions; i++)
        u->count *= ((dy_ndarray *)array)->shape[i];
    const int64_t bytes = u->count * (letter == 'd' ? 8 : 4);
    if (!like(array, grad, 0, bytes, &u->grad) || !(own = PyObject_GenericGetDict(x, 0)))
        return 0;
    const int replaced = entry(own, s_update) != 0;
    drop(own);
    if (replaced || !(entries = PyObject_GenericGetDict(update_rule, 0)))
        return 0;
    drop(entries);
    const int states = (how->state[0] != 0) + (how->state[1] != 0);
    /* what else there were would have been put there by somebody */
    if (PyDict_Size(entries) != 7 || entry(entries, s_enabled) != TRUE || entry(entries, s__use_fp32_update) != FALSE
        || !(hooks = entry(entries, s__hookable)) || !is_false(peek(hooks, s__pre_update_hooks))
        || !is_false(peek(hooks, s__post_update_hooks)) || !is(state = entry(entries, s__state), &PyDict_Type)
        || PyDict_Size(state) != states || !is(t = entry(entries, s_t), &PyLong_Type)
        || PyList_Append(rules, update_rule) || PyList_Append(kept, array) || PyList_Append(kept, grad))
        return 0;
    char **const places[] = {&u->v, &u->m};
    for (int i = 0; i < states; i++) {
        PyObject *moment = entry(state, *how->state[i]);
        if (!like(array, moment, 1, bytes, places[i]) || !apart(u->grad, *places[i], bytes) || PyList_Append(kept, moment))
            return 0;
    }
    if (states == 2 && !apart(u->m, u->v, bytes))
        return 0;
    const long done = PyLong_AsLong(t);
    return 0 <= done && done < 1000000000 && how->constants(entry(entries, s_hyperparam), done + 1, u->c);
}

static int is_shared(PyObject *list)
{
    PyObject *set = PySet_New(list);
    const int shared = !set || PySet_Size(set) != PyList_Size(list);
    drop(set);
    return shared;
}

static int run(const rule *how, const update *updates, intptr_t length, int write)
{
    for (intptr_t i = 0; i < length; i++)
        if (!(updates[i].is_double ? how->run_double : how->run_float)(updates + i, write))
            return 0;
    return 1;
}

/* Another one in the count of updates of a parameter. */
static int count_up(PyObject *update_rule)
{
    PyObject *t = peek(update_rule, s_t), *next = t ? PyLong_FromLong(PyLong_AsLong(t) + 1) : 0;
    const int failed = !next || PyObject_SetAttr(update_rule, s_t, next);
    drop(next);
    return !failed;
}

/* Update the parameters of a link: all of them, or none. */
static PyObject *updated(PyObject *self, PyObject *const *args, intptr_t count, const rule *how)
{
    PyObject *found = count == 1 ? parameters(args[0]) : 0, *rules = PyList_New(0), *kept = PyList_New(0);
    const intptr_t length = found && rules && kept ? PyList_Size(found) : 0;
    update *updates = length ? malloc(sizeof(update) * (size_t)length) : 0;
    int64_t numbers = 0;
    int good = updates != 0, failed = 0;
    for (intptr_t i = 0; i < length && good; i++) {
        good = prepare(PyList_GetItem(found, i), how, updates + i, rules, kept);
        numbers += updates[i].count;
    }
    good = good && !is_shared(rules);                   /* by parameters, or a parameter is updated twice */
    if (good) {
        void *thread = numbers >= MANY ? PyEval_SaveThread() : 0;
        good = run(how, updates, length, 0) && run(how, updates, length, 1);
        if (thread)
            PyEval_RestoreThread(thread);
    } else
        PyErr_Clear();
    for (intptr_t i = 0; i < length && good && !failed; i++)
        failed = !count_up(PyList_GetItem(rules, i));
    free(updates);
    drop(found), drop(rules), drop(kept);
    return failed ? 0 : good ? truth(1) : dy_bail_out(self, args, count);
}

static const rule sgd = {&k_SGDRule, {0, 0}, constants_of_sgd, sgd_float, sgd_double};
static const rule momentum = {&k_MomentumSGDRule, {&s_v, 0}, constants_of_momentum, momentum_float, momentum_double};
static const rule adam = {&k_AdamRule, {&s_v, &s_m}, constants_of_adam, adam_float, adam_double};

PyObject *hot_updated_by_sgd(PyObject *self, PyObject *const *args, intptr_t count) { return updated(self, args, count, &sgd); }

PyObject *hot_updated_by_momentum_sgd(PyObject *self, PyObject *const *args, intptr_t count)
{
    return updated(self, args, count, &momentum);
}

PyObject *hot_updated_by_adam(PyObject *self, PyObject *const *args, intptr_t count) { return updated(self, args, count, &adam); }
