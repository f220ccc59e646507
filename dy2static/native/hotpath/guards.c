/* The guards of a program as a table of rows, which `hot_check` walks: each gives a value, or tells whether a guard holds.

   A row is its number (`ROWS` in `__init__.py` lists them), and what it works on: numbers of values that earlier rows gave, of
   constants, or plain ones.  Values are borrowed: what they were read from holds them, and no Python code runs before all rows
   are done.  What a row does not know, the Python function of the same guards answers instead.

   Up to Python 3.12, a dict has a number that no other dict ever had, and that changes whenever an entry does.  A dict with the
   number that it had when all guards held last is not asked again: its entries are the values that were found then.  From 3.13
   on, an attribute may be set with no change of that number. */

extern char PyCell_Type, PySet_Type;
extern PyObject *PyCell_Get(PyObject *);
extern PyObject *PyObject_GenericGetAttr(PyObject *, PyObject *);
extern int PySet_Contains(PyObject *, PyObject *);
extern PyObject *_PyType_Lookup(void *, PyObject *);
extern PyObject *PyDict_New(void);
extern int PyDict_Next(PyObject *, intptr_t *, PyObject **, PyObject **);
extern int PyGC_Disable(void) __attribute__((weak)), PyGC_Enable(void) __attribute__((weak));       /* since Python 3.10 */

typedef struct {
    PyObject head;
    intptr_t size;
    PyObject *items[1];
} dy_tuple;

typedef struct {
    PyObject head;
    intptr_t filled, used, mask;
    struct { PyObject *key; intptr_t hash; } *entries;
} dy_set;

typedef struct {
    PyObject head;
    intptr_t used;
    uint64_t version;
} dy_dict;

/* What is kept of a table from call to call, for each value that it gives. */
typedef struct {
    uint64_t *versions;     /* of the dicts when all guards held last; NEVER; ASKED: in this call */
    PyObject **values;      /* those in dicts of such a version */
    struct { uint64_t number, version; } *asked;    /* the dicts that are ASKED, with their versions */
    intptr_t count;
} memory;

#define NEVER ((uint64_t)0)
#define ASKED (~(uint64_t)0)

enum { MISSED = 0, HOLDS = 1, UNKNOWN = 2 };

static inline int holds(int value) { return value ? HOLDS : MISSED; }

static uint64_t version_after(PyObject *dict, PyObject *value)
{
    return PyDict_SetItem(dict, s_dtype, value) ? 0 : ((const dy_dict *)dict)->version;
}

/* Whether each write of an entry gives a dict another version, which no other dict has. */
static int are_versions_known(void)
{
    PyObject *first = PyDict_New(), *second = PyDict_New();
    uint64_t seen[5] = {0};
    for (int i = 0; first && second && i < 5; i++)
        seen[i] = version_after(i % 3 ? first : second, i & 2 ? TRUE : FALSE);
    drop(first), drop(second);
    PyErr_Clear();
    int rising = seen[0] != NEVER;
    for (int i = 1; i < 5; i++)
        rising &= seen[i] > seen[i - 1];
    return rising;
}

/* Whether a dict, the value of this number, is just as it was when all guards held last. */
static inline int is_unchanged(PyObject *dict, int32_t number, memory *known)
{
    uint64_t *version = known->versions + number;
    if (!has_versions || ((const dy_dict *)dict)->version == *version)
        return has_versions;
    if (*version != ASKED) {
        *version = ASKED;
        known->asked[known->count].number = (uint64_t)number;
        known->asked[known->count++].version = ((const dy_dict *)dict)->version;
    }
    return 0;
}

/* Remember the dicts that were asked, or forget them. */
static void remember(memory *known, int told)
{
    for (intptr_t i = 0; i < known->count; i++)
        known->versions[known->asked[i].number] = told == HOLDS ? known->asked[i].version : NEVER;
}

/* Whether objects are laid out as is assumed above.  probe: a set of one text. */
static int is_layout_known(PyObject *objects, PyObject *probe)
{
    const dy_set *set = (const dy_set *)probe;
    int found = 0;
    if (((dy_tuple *)objects)->items[0] != PyTuple_GetItem(objects, 0) || set->used != 1 || set->mask != 7)
        return 0;
    for (intptr_t i = 0; i <= set->mask; i++)
        found += set->entries[i].key && is(set->entries[i].key, &PyUnicode_Type);
    return found == 1 && *(void **)((char *)k_Variable + 144) == (void *)PyObject_GenericGetAttr;
}

/* The attributes of an object whose class does nothing about them; 0 where it does. */
static PyObject *plain_dict(PyObject *object)
{
    if (*(void **)((char *)object->type + 144) != (void *)PyObject_GenericGetAttr      /* there may be `__getattr__` */
        && _PyType_Lookup(object->type, s___getattribute__) != k_object_getattribute)
        return 0;
    PyObject *found = PyObject_GenericGetDict(object, 0);
    if (found)
        Py_DecRef(found);
    else
        PyErr_Clear();
    return is(found, &PyDict_Type) ? found : 0;
}

static PyObject *attribute(PyObject *object, PyObject *name)
{
    PyObject *own = plain_dict(object);
    return own ? entry(own, name) : 0;
}

/* What a class of the metaclass `type` has under a name, unless that is a descriptor. */
static PyObject *class_attribute(PyObject *cls, PyObject *name)
{
    PyObject *found = _PyType_Lookup(cls, name);
    return found && !*(void **)((char *)found->type + 272) ? found : 0;
}

/* Whether nobody can tell two values apart, of which the second one is no float that is no number. */
static int is_same_value(PyObject *value, PyObject *expected)
{
    if (value->type != expected->type)
        return MISSED;
    if (value == expected)
        return HOLDS;
    if (value->type == (void *)&PyFloat_Type)
        return holds(!memcmp(&((dy_float *)value)->value, &((dy_float *)expected)->value, 8));
    if (value->type == (void *)&PyLong_Type || value->type == (void *)&PyUnicode_Type)
        return holds(PyObject_RichCompareBool(value, expected, 2) == 1);
    if (value->type != (void *)&PyTuple_Type)
        return MISSED;
    const dy_tuple *x = (const dy_tuple *)value, *y = (const dy_tuple *)expected;
    int same = holds(x->size == y->size);
    for (intptr_t i = 0; i < x->size && same == HOLDS; i++)
        same = is_same_value(x->items[i], y->items[i]);
    return same;
}

/* Whether a set holds just these texts. */
static int has_texts(PyObject *value, PyObject *expected)
{
    const dy_set *set = (const dy_set *)value;
    if (value->type != (void *)&PySet_Type || set->used != PySet_Size(expected))
        return MISSED;
    for (intptr_t i = 0; i <= set->mask; i++) {
        PyObject *key = set->entries[i].key;
        if (key && set->entries[i].hash != -1 && (!is(key, &PyUnicode_Type) || PySet_Contains(expected, key) != 1))
            return MISSED;
    }
    return HOLDS;
}

static int has_keys(PyObject *dict, PyObject *expected)
{
    const dy_tuple *keys = (const dy_tuple *)expected;
    PyObject *key, *value;
    intptr_t at = 0, i = 0;
    if (PyDict_Size(dict) != keys->size)
        return MISSED;
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (key == keys->items[i++])
            continue;
        if (!is(key, &PyUnicode_Type))
            return UNKNOWN;
        if (PyObject_RichCompareBool(key, keys->items[i - 1], 2) != 1)
            return MISSED;
    }
    return HOLDS;
}

/* Whether it is an array of this shape and dtype on the GPU of this number.  CuPy makes a new tuple of the lengths of its axes: the
   garbage collector, which may run Python code, has to wait. */
static int is_on_device(PyObject *object, PyObject *const *wanted)
{
    if (object->type != k_device_array)
        return MISSED;
    if (!PyGC_Disable)
        return UNKNOWN;
    const int collects = PyGC_Disable();
    PyObject *data = PyObject_GetAttr(object, s_data), *shape = PyObject_GetAttr(object, s_shape), *dtype = dtype_of(object);
    int failed = !shape || !dtype;
    const int64_t number = number_of(data, s_device_id, &failed);
    int told = failed ? UNKNOWN : holds(number == PyLong_AsLongLong(wanted[2]) && PyObject_RichCompareBool(shape, wanted[0], 2) == 1
                                        && (dtype == wanted[1] || PyObject_RichCompareBool(dtype, wanted[1], 2) == 1));
    drop(data), drop(shape);
    PyErr_Clear();
    if (collects)
        PyGC_Enable();
    return told;
}

/* Whether it is an array as `fits` wants it, or as the three parts for one on a GPU say. */
static int is_array(PyObject *object, PyObject *wanted)
{
    const dy_ndarray *array = (const dy_ndarray *)object;
    const dy_tuple *parts = (const dy_tuple *)wanted;
    if (parts->size == 3)
        return is_on_device(object, parts->items);
    if (object->type != dy_array_type || 8 * (intptr_t)array->dimensions != PyBytes_Size(parts->items[0])
        || memcmp(array->shape, PyBytes_AsString(parts->items[0]), 8 * (size_t)array->dimensions))
        return MISSED;
    return (PyObject *)array->dtype == parts->items[1] ? HOLDS :
        holds(PyObject_RichCompareBool((PyObject *)array->dtype, parts->items[1], 2) == 1);
}

/* The array of a Variable without a layout of its own; 0 for one of another kind. */
static PyObject *plain_array(PyObject *own)
{
    PyObject *data = own ? entry(own, s__data) : 0;
    PyObject *array = is(data, &PyList_Type) && PyList_Size(data) == 1 ? PyList_GetItem(data, 0) : 0;
    return array && entry(own, s__layout) == NONE ? array : 0;
}

/* Of a Variable of this class that needs a gradient or not, with such an array: the array. */
static int is_variable(PyObject *object, PyObject *cls, int required, PyObject *wanted, PyObject **array)
{
    PyObject *own = object->type == cls ? plain_dict(object) : 0;
    if (object->type != cls)
        return MISSED;
    if (!own || !(*array = plain_array(own)))
        return UNKNOWN;
    return entry(own, s__requires_grad) == (required ? TRUE : FALSE) ? is_array(*array, wanted) : MISSED;
}

/* What made a Variable: None for a leaf. */
static PyObject *creator_of(PyObject *variable)
{
    PyObject *own = plain_dict(variable), *node = own ? entry(own, s__node) : 0;
    PyObject *of_node = is(node, k_VariableNode) ? plain_dict(node) : 0, *found = of_node ? entry(of_node, s__creator_node) : 0;
    return !of_node || !own ? 0 : found ? found : NONE;
}

/* The state among the attributes of an update rule; 0 if it has none yet. */
static PyObject *state_in(PyObject *attributes)
{
    PyObject *found = entry(attributes, s__state);
    return found == NONE ? 0 : found;
}

/* Whether objects all differ.  which: their numbers; 0 for all in a row. */
static int are_distinct(PyObject *const *values, const int32_t *which, intptr_t count)
{
    size_t size = 16;
    while (size < 2 * (size_t)count)
        size *= 2;
    PyObject **seen = calloc(size, sizeof(*seen));
    int distinct = seen ? HOLDS : UNKNOWN;
    for (intptr_t i = 0; i < count && distinct == HOLDS; i++) {
        PyObject *object = values[which ? which[i] : i];
        size_t at = ((uintptr_t)object >> 4) * 0x9E3779B97F4A7C15u >> 20 & (size - 1);
        while (seen[at] && seen[at] != object)
            at = (at + 1) & (size - 1);
        distinct = holds(!seen[at]);
        seen[at] = object;
    }
    free(seen);
    return distinct;
}

/* Whether no array of the first ones shares memory with another one.  before: where they were when that was last so. */
static int are_apart(PyObject *const *values, const int32_t *which, int32_t written, int32_t count, place *before)
{
    int32_t moved[8], moves = 0;
    place *places = malloc(sizeof(place) * (size_t)(count + 1));
    int apart = places ? HOLDS : UNKNOWN;
    for (int32_t i = 0; i < count && apart == HOLDS; i++) {
        const dy_ndarray *array = (const dy_ndarray *)values[which[i]];
        if (array->head.type != dy_array_type || !item_size(array) || (i < written && !(array->flags & 3)))
            apart = UNKNOWN;
        else if (i < written && !(array->flags & 0x400))
            apart = MISSED;
        else if (!place_of(array, i < written, places + i))
            places[i].low = places[i].high = 0;
        if (apart == HOLDS && (places[i].low != before[i].low || places[i].high != before[i].high) && moves <= 8)
            moves == 8 ? moves++ : (moved[moves++] = i);
    }
    for (int32_t k = 0; k < moves && moves <= 8 && apart == HOLDS; k++) {
        const place *x = places + moved[k];
        for (int32_t i = 0; i < (moved[k] < written ? count : written) && apart == HOLDS; i++)
            apart = holds(i == moved[k] || x->low >= places[i].high || places[i].low >= x->high);
    }
    if (apart == HOLDS && moves)
        memcpy(before, places, sizeof(place) * (size_t)count);
    if (apart == HOLDS && moves > 8) {
        int32_t length = 0;
        for (int32_t i = 0; i < count; i++)
            if (places[i].low != places[i].high)
                places[length++] = places[i];
        apart = holds(!is_any_shared(places, length));
        if (apart != HOLDS)
            memset(before, 0, sizeof(place) * (size_t)count);
    }
    free(places);
    return apart;
}

/* Whether an array lies in memory as a pair (strides, flags) says. */
static int is_laid_out(PyObject *object, PyObject *strides, int32_t flags)
{
    const dy_ndarray *array = (const dy_ndarray *)object;
    if (object->type != dy_array_type)
        return UNKNOWN;
    return holds(array->flags == flags && 8 * (intptr_t)array->dimensions == PyBytes_Size(strides)
                 && !memcmp(array->strides, PyBytes_AsString(strides), 8 * (size_t)array->dimensions));
}

#define OF(k) values[row[k]]
#define CONST(k) constants[row[k]]
#define GIVE(size, value) { *next = (value); if (!*next++) return UNKNOWN; row += size; break; }
#define UNCHANGED(k) is_unchanged(OF(k), row[k], known)
#define FIND(size, value) { *next = (value); if (!*next++) return MISSED; row += size; break; }
#define TEST(size, value) { const int told = (value); if (told != HOLDS) return told; row += size; break; }
#define NEED(condition) if (!(condition)) return UNKNOWN;

static int walk(const int32_t *row, const int32_t *end, PyObject *const *constants, PyObject *args, PyObject *kwargs, memory *known)
{
    PyObject **const values = known->values, **next = values;
    while (row < end)
        switch (*row++) {
        case ROW_argument: NEED(row[0] < PyTuple_Size(args)) GIVE(1, PyTuple_GetItem(args, row[0]))
        case ROW_keyword: NEED(is(kwargs, &PyDict_Type)) FIND(1, entry(kwargs, CONST(0)))
        case ROW_constant: GIVE(1, CONST(0))
        case ROW_vars: GIVE(1, plain_dict(OF(0)))
        case ROW_attribute: GIVE(2, attribute(OF(0), CONST(1)))
        case ROW_class_attribute: GIVE(2, class_attribute(OF(0), CONST(1)))
        case ROW_thread_attribute: GIVE(2, peek(OF(0), CONST(1)))
        case ROW_cell: {
            NEED(is(OF(0), &PyCell_Type))
            PyObject *found = PyCell_Get(OF(0));
            drop(found);
            FIND(1, found)
        }
        case ROW_item: NEED(is(OF(0), &PyDict_Type)) FIND(2, UNCHANGED(0) ? *next : entry(OF(0), CONST(1)))
        case ROW_element: {
            const int list = is(OF(0), &PyList_Type);
            NEED(list || is(OF(0), &PyTuple_Type))
            if (row[1] >= (list ? PyList_Size(OF(0)) : PyTuple_Size(OF(0))))
                return MISSED;
            GIVE(2, list ? PyList_GetItem(OF(0), row[1]) : PyTuple_GetItem(OF(0), row[1]))
        }
        case ROW_creator: GIVE(1, creator_of(OF(0)))
        case ROW_device: {
            PyObject *found = attribute(OF(0), s__device);
            GIVE(1, found == NONE ? 0 : found)
        }
        case ROW_data: GIVE(1, plain_array(plain_dict(OF(0))))
        case ROW_state: NEED(is(OF(0), &PyDict_Type)) GIVE(1, UNCHANGED(0) ? *next : state_in(OF(0)))
        case ROW_variable: {
            PyObject *array = 0;
            const int told = is_variable(OF(0), CONST(1), row[2], CONST(3), &array);
            if (told != HOLDS)
                return told;
            GIVE(4, array)
        }
        case ROW_type: TEST(2, holds(OF(0)->type == CONST(1)))
        case ROW_is: TEST(2, holds(OF(0) == CONST(1)))
        case ROW_same: TEST(2, holds(OF(0) == OF(1)))
        case ROW_equals: TEST(2, is_same_value(OF(0), CONST(1)))
        case ROW_texts: TEST(2, has_texts(OF(0), CONST(1)))
        case ROW_absent: NEED(is(OF(0), &PyDict_Type)) TEST(2, UNCHANGED(0) ? HOLDS : holds(!entry(OF(0), CONST(1))))
        case ROW_keys: NEED(is(OF(0), &PyDict_Type)) TEST(2, UNCHANGED(0) ? HOLDS : has_keys(OF(0), CONST(1)))
        case ROW_length_of_dict: TEST(2, holds(PyDict_Size(OF(0)) == row[1]))
        case ROW_length_of_list: TEST(2, holds(PyList_Size(OF(0)) == row[1]))
        case ROW_length_of_tuple: TEST(2, holds(PyTuple_Size(OF(0)) == row[1]))
        case ROW_array: TEST(2, is_array(OF(0), CONST(1)))
        case ROW_layout: TEST(3, is_laid_out(OF(0), CONST(1), row[2]))
        case ROW_distinct: TEST(1 + row[0], are_distinct(values, row + 1, row[0]))
        case ROW_apart: TEST(3 + row[2], are_apart(values, row + 3, row[1], row[2], (place *)PyBytes_AsString(CONST(0))))
        default: return UNKNOWN;
        }
    return HOLDS;
}

/* check(table, args, kwargs): `GuardTable` of guard_tests.py has the fields */
PyObject *hot_check(PyObject *self, PyObject *const *args, intptr_t count)
{
    PyObject *const *table = ((dy_tuple *)args[0])->items;
    const int32_t *rows = (const int32_t *)PyBytes_AsString(table[0]), *wanted = (const int32_t *)PyBytes_AsString(table[2]);
    const intptr_t length = PyBytes_Size(table[0]) / 4, leaving = PyBytes_Size(table[2]) / 4, most = PyLong_AsLong(table[3]);
    uint64_t *busy = (uint64_t *)PyBytes_AsString(table[6]);
    memory known = {busy + 1, (PyObject **)(busy + 1 + most), (void *)(busy + 1 + 2 * most), 0};
    PyObject *found = *busy ? 0 : PyTuple_New(leaving);
    if (!found || *busy) {                                          /* somebody calls while objects are freed */
        drop(found);
        PyErr_Clear();
        return dy_bail_out(self, args, count);
    }
    *busy = 1;
    const int told = walk(rows, rows + length, ((dy_tuple *)table[1])->items, args[1], args[2], &known);
    remember(&known, told);
    for (intptr_t i = 0; i < leaving && told == HOLDS; i++)
        ((dy_tuple *)found)->items[i] = given(known.values[wanted[i]]);
    *busy = 0;
    if (told == HOLDS)
        return found;
    drop(found);
    PyErr_Clear();
    return told == MISSED ? given(table[4]) : dy_bail_out(self, args, count);
}

/* distinct(object, ...) */
PyObject *hot_distinct(PyObject *self, PyObject *const *args, intptr_t count)
{
    const int told = are_distinct(args, 0, count);
    return told == UNKNOWN ? dy_bail_out(self, args, count) : truth(told);
}
