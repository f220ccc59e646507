/* What generated code needs to know of Python and NumPy objects; in place of Python.h, which users need not have
   installed and which takes longer to compile than our code.  library.py compares the offsets with real objects. */
#ifndef DY2STATIC_PYTHON_H
#define DY2STATIC_PYTHON_H

#include <stdint.h>
#include <stdlib.h>

#include "dy2static_blocks.h"

typedef struct {
    intptr_t references;
    void *type;
} PyObject;

typedef struct {
    PyObject head;
    char *data;
    int32_t dimensions;
    intptr_t *shape, *strides;
    PyObject *base;
    struct {
        PyObject head;
        void *scalar_type;
        char kind, letter, order;
    } *dtype;
    int32_t flags;
} dy_ndarray;

typedef struct {
    PyObject head;
    double value;
} dy_float;

extern char PyLong_Type, PyFloat_Type;
extern PyObject _Py_NoneStruct, _Py_TrueStruct, _Py_FalseStruct;
extern long long PyLong_AsLongLong(PyObject *);
extern PyObject *PyLong_FromLongLong(long long);
extern PyObject *PyFloat_FromDouble(double);
extern PyObject *PyBool_FromLong(long);
extern PyObject *PyTuple_New(intptr_t);
extern int PyTuple_SetItem(PyObject *, intptr_t, PyObject *);
extern PyObject *PyTuple_GetItem(PyObject *, intptr_t);
extern PyObject *PyErr_Occurred(void);
extern void PyErr_Clear(void);
extern PyObject *PyType_FromSpec(void *);
extern PyObject *PyType_GenericAlloc(PyObject *, intptr_t);
extern int PyBuffer_FillInfo(void *, PyObject *, void *, intptr_t, int, int);
extern void PyObject_Free(void *);
extern void Py_IncRef(PyObject *);
extern void Py_DecRef(PyObject *);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *);
extern PyObject *PyObject_VectorcallDict(PyObject *, PyObject *const *, uintptr_t, PyObject *);

static void *dy_array_type;

void dy2static_set_array_type(void *type) { dy_array_type = type; }

/* The data of an exact, C-contiguous, aligned ndarray of this machine's byte order, which may have to be writeable. */
static inline int dy_take_array(PyObject *object, int writeable, char **data)
{
    const dy_ndarray *array = (const dy_ndarray *)object;
    const int32_t needed = writeable ? 0x501 : 0x101;
    if (object->type != dy_array_type || (array->flags & needed) != needed)
        return 0;
    const char order = array->dtype->order;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (order == '>')
#else
    if (order == '<')
#endif
        return 0;
    *data = array->data;
    return 1;
}

/* The same for many of them. */
static __attribute__((noinline)) int dy_take_arrays(PyObject *const *objects, intptr_t count, int writeable, char **data)
{
    for (intptr_t k = 0; k < count; k++)
        if (!dy_take_array(objects[k], writeable, data + k))
            return 0;
    return 1;
}

/* An array, and how long it is. */
static inline int dy_take_stack(PyObject *object, char **data, int64_t *count)
{
    if (!dy_take_array(object, 0, data))
        return 0;
    *count = ((const dy_ndarray *)object)->shape[0];
    return 1;
}

/* The letter of a dtype, one for those that are alike. */
static inline char dy_letter(const dy_ndarray *array)
{
    const char letter = array->dtype->letter;
    return letter == 'q' ? 'l' : letter == 'Q' ? 'L' : letter;
}

/* Whether arrays are of the types that a function is written for, which reads memory by them.  types: for each, its place among the
   arguments, the letter of its dtype, and how many axes there are, with their lengths; -1 for any. */
static __attribute__((noinline)) int dy_are_of(PyObject *const *args, const int64_t *types, const int64_t *end)
{
    while (types < end) {
        const dy_ndarray *const array = (const dy_ndarray *)args[types[0]];
        const int64_t axes = types[2];
        if (dy_letter(array) != types[1] || array->dimensions != axes)
            return 0;
        types += 3;
        for (int64_t axis = 0; axis < axes; axis++)
            if (types[axis] >= 0 && array->shape[axis] != types[axis])
                return 0;
        types += axes;
    }
    return 1;
}

/* What a loop has pushed, as an object with Python's buffer protocol; with it goes the block. */
typedef struct {
    PyObject head;
    char *data;
    intptr_t size;
} dy_memory;

static void dy_memory_gone(PyObject *self)
{
    PyObject *type = self->type;
    dy_block_give(((dy_memory *)self)->data);
    PyObject_Free(self);
    Py_DecRef(type);
}

static int dy_memory_view(PyObject *self, void *view, int flags)
{
    static char nothing[64];
    const dy_memory *memory = (const dy_memory *)self;
    return PyBuffer_FillInfo(view, self, memory->data ? memory->data : nothing, memory->size, 0, flags);
}

static PyObject *dy_memory_type(void)
{
    static PyObject *type;
    if (!type) {
        static struct { int slot; void *function; } slots[] = {{1, dy_memory_view}, {52, dy_memory_gone}, {0, 0}};
        static struct { const char *name; int size, item; unsigned flags; void *slots; } spec = {
            "dy2static.Memory", sizeof(dy_memory), 0, 1u << 18, slots};
        type = PyType_FromSpec(&spec);
    }
    return type;
}

static inline PyObject *dy_give_stack(char *data, int64_t size)
{
    PyObject *type = dy_memory_type(), *object = type ? PyType_GenericAlloc(type, 0) : 0;
    if (!object) {
        dy_block_give(data);
        return 0;
    }
    ((dy_memory *)object)->data = data;
    ((dy_memory *)object)->size = size;
    return object;
}

static inline int dy_take_int(PyObject *object, int64_t *number)
{
    if (object->type != &PyLong_Type)
        return 0;
    *number = PyLong_AsLongLong(object);
    if (__builtin_expect(*number == -1, 0) && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

static inline int dy_take_bool(PyObject *object, int64_t *number)
{
    *number = object == &_Py_TrueStruct;
    return *number || object == &_Py_FalseStruct;
}

static inline int dy_take_float(PyObject *object, double *number)
{
    if (object->type != &PyFloat_Type)
        return 0;
    *number = ((const dy_float *)object)->value;
    return 1;
}

static inline PyObject *dy_none(void)
{
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

/* What the Python function of the wrapper answers to the same arguments. */
static __attribute__((noinline, cold)) PyObject *dy_bail_out(PyObject *self, PyObject *const *args, intptr_t count)
{
    PyObject *fallback = PyTuple_GetItem(self, 0);
    return fallback ? PyObject_VectorcallDict(fallback, args, (uintptr_t)count, 0) : 0;
}

/* The number of elements of an array. */
static inline int64_t dy_size(PyObject *object)
{
    const dy_ndarray *const array = (const dy_ndarray *)object;
    int64_t size = 1;
    for (int32_t axis = 0; axis < array->dimensions; axis++)
        size *= array->shape[axis];
    return size;
}

/* Whether an array has so many elements of a dtype. */
static inline int dy_holds(PyObject *array, char letter, int64_t size)
{
    return dy_letter((const dy_ndarray *)array) == letter && dy_size(array) == size;
}

/* Let the Python function of the wrapper do the same for some spans of elements: their number, then the first element of each and the one
   behind it. */
static __attribute__((noinline, cold)) int dy_leave_rest(PyObject *self, PyObject *const *given, intptr_t count, const int64_t *spans)
{
    PyObject *fallback = PyTuple_GetItem(self, 0), *place = PyLong_FromLongLong((intptr_t)spans), *done = 0;
    PyObject **const all = malloc(sizeof(PyObject *) * (size_t)(count + 1));
    if (fallback && place && all) {
        all[0] = place;
        for (intptr_t k = 0; k < count; k++)
            all[k + 1] = given[k];
        done = PyObject_VectorcallDict(fallback, all, (uintptr_t)(count + 1), 0);
    }
    free(all);
    if (place)
        Py_DecRef(place);
    if (done)
        Py_DecRef(done);
    return done != 0;
}

/* Division by zero, overflow and invalid operations are what NumPy warns of by default. */
#if defined(__x86_64__)
static inline void dy_clear_float_flags(void)
{
    const unsigned state = __builtin_ia32_stmxcsr();
    if (state & 0x0d)
        __builtin_ia32_ldmxcsr(state & ~0x0du);
}
static inline int dy_float_flags(void) { return __builtin_ia32_stmxcsr() & 0x0d; }
#else
#include <fenv.h>
static inline void dy_clear_float_flags(void) { feclearexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID); }
static inline int dy_float_flags(void) { return fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID); }
#endif

#endif
