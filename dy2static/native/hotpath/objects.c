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
    X(is_plain) X(takes) X(watched) X(depends) X(copy) X(params) X(namedparams) X(_params) X(_children) X(cleargrad) X(update) \
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
