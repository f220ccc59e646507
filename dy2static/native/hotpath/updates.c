/* Updates of parameters by the rules of Chainer's optimizers: of all parameters of a link, or of none. */
#include "dy2static_shares.h"

#define MANY 65536          /* so many numbers are shared by threads, and other threads may run meanwhile */
#define MOST_SHARES 16

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

/* Some updates, and whether there is a result that is not finite. */
typedef struct {
    const rule *how;
    const update *updates;
    intptr_t length;
    int write, *bad;
} some_updates;

/* The numbers from `begin` to `end` of all parameters, one after the other. */
static void run_part(const void *given, int64_t begin, int64_t end)
{
    const some_updates *const all = given;
    for (intptr_t i = 0; i < all->length && end > 0; i++) {
        update part = all->updates[i];
        const int64_t count = part.count, left = begin > 0 ? begin : 0, right = end < count ? end : count;
        const int64_t bytes = left * (part.is_double ? 8 : 4);
        begin -= count;
        end -= count;
        if (left >= right)
            continue;
        part.count = right - left;
        part.data += bytes;
        part.grad += bytes;
        part.m += part.m ? bytes : 0;
        part.v += part.v ? bytes : 0;
        if (!(part.is_double ? all->how->run_double : all->how->run_float)(&part, all->write))
            __atomic_store_n(all->bad, 1, __ATOMIC_RELAXED);
    }
}

static int run(const rule *how, const update *updates, intptr_t length, int64_t numbers, int write)
{
    int bad = 0;
    const some_updates all = {how, updates, length, write, &bad};
    if (numbers < MANY)
        run_part(&all, 0, numbers);
    else
        dy_share(run_part, &all, numbers, (numbers + MOST_SHARES - 1) / MOST_SHARES);
    return !bad;
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
    update *updates = length ? calloc((size_t)length, sizeof(update)) : 0;
    int64_t numbers = 0;
    int good = updates != 0, failed = 0;
    for (intptr_t i = 0; i < length && good; i++) {
        good = prepare(PyList_GetItem(found, i), how, updates + i, rules, kept);
        numbers += updates[i].count;
    }
    good = good && !is_shared(rules);                   /* by parameters, or a parameter is updated twice */
    if (good) {
        void *thread = numbers >= MANY ? PyEval_SaveThread() : 0;
        good = run(how, updates, length, numbers, 0) && run(how, updates, length, numbers, 1);
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
