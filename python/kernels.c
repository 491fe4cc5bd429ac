/* The kernels as functions of the module. generate.py writes their parameters and docstrings. */
#include "core.h"

#include <string.h>

enum signature {
#define POSENC_SIGNATURE(name) SIGNATURE_##name,
#include <posenc_signatures.def>
};

enum kind { /* in the order of parameters; from BOOL on they are keywords */
            X,
            TENSOR,
            TERM,
            FREQS,
            BUCKETS,
            SLOPES,
            INDEX,
            POSITIONS,
            SIZE,
            BOOL,
            I64,
            F32,
            F64,
            LAYOUT,
            X_SCALE,
            OUT,
            BACKEND
};

struct parameter {
    enum posenc_kernel kernel;
    enum kind kind;
    const char *name;
    size_t offset; /* in the struct of arguments */
};
#include "functions.h"

enum {
    N_PARAMETERS = sizeof parameters / sizeof *parameters,
    MAX_PARAMETERS = 12,
    MAX_ARRAYS = 8
};

/* Arguments of any kernel. */
union any_args {
    size_t size;
#define POSENC_SIGNATURE(name) struct posenc_##name##_args name;
#include <posenc_signatures.def>
};

/* A function of the module. The first n_positional parameters may be positional. */
struct function {
    enum posenc_kernel kernel;
    enum signature signature;
    size_t args_size;
    enum posenc_status (*run)(const struct posenc_backend *backend, const void *args,
                              struct posenc_error *error);
    int n, n_positional;
    const struct parameter *parameters[MAX_PARAMETERS];
    PyObject *names[MAX_PARAMETERS]; /* interned */
};

/* clang-format off */
#define POSENC_KERNEL(ID, name, ...) \
    static enum posenc_status run_##name(const struct posenc_backend *backend, const void *args, \
                                         struct posenc_error *error) \
    { return posenc_##name(backend, args, error); }
#include <posenc_kernels.def>

#define POSENC_KERNEL(ID, name, args_of, ...) \
    { .kernel = POSENC_KERNEL_##ID, .signature = SIGNATURE_##args_of, \
      .args_size = sizeof(struct posenc_##args_of##_args), .run = run_##name },
static struct function functions[] = {
#include <posenc_kernels.def>
};
/* clang-format on */

/* ---- One call ---- */

struct call {
    const struct function *function;
    PyObject *values[MAX_PARAMETERS]; /* borrowed; NULL: not given, or None */
    union any_args args;
    const struct posenc_backend *backend;
    struct array arrays[MAX_ARRAYS];
    int n_arrays;
    PyObject *
        made; /* outputs that were allocated, and a function for the result: see posenc.arrays.allocate() */
};

static int find_keyword(const struct function *function, PyObject *name)
{
    for (int i = 0; i < function->n; i++)
        if (function->names[i] == name)
            return i;
    for (int i = 0; i < function->n; i++)
        if (PyUnicode_Compare(function->names[i], name) == 0)
            return i;
    return -1;
}

/* Assigns the arguments of a call to parameters. */
static bool bind(struct call *call, PyObject *const *given, Py_ssize_t n, PyObject *keywords)
{
    const struct function *function = call->function;
    const char *name = posenc_kernel_name(function->kernel);
    if (n > function->n_positional)
        return PyErr_Format(PyExc_TypeError,
                            "%s() takes at most %d positional arguments (%zd given)", name,
                            function->n_positional, n);
    for (Py_ssize_t i = 0; i < n; i++)
        call->values[i] = given[i];
    const Py_ssize_t n_keywords = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < n_keywords; i++) {
        PyObject *keyword = PyTuple_GetItem(keywords, i);
        const int at = find_keyword(function, keyword);
        if (at < 0)
            return PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                                name, keyword);
        if (call->values[at])
            return PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
                                name, keyword);
        call->values[at] = given[n + i];
    }
    for (int i = 0; i < function->n; i++) {
        if (call->values[i] == Py_None)
            call->values[i] = NULL;
        if (!call->values[i] && function->parameters[i]->kind <= INDEX &&
            function->parameters[i]->kind != TERM)
            return PyErr_Format(PyExc_TypeError, "%s() lacks the argument '%s'", name,
                                function->parameters[i]->name);
    }
    return true;
}

static void *member_of(struct call *call, const struct parameter *parameter)
{
    return (char *)&call->args + parameter->offset;
}

/* Returns the first member of this kind; NULL if it was not given. */
static struct posenc_tensor *tensor_of(struct call *call, enum kind kind)
{
    for (int i = 0; i < call->function->n; i++)
        if (call->function->parameters[i]->kind == kind)
            return call->values[i] || kind == OUT
                       ? member_of(call, call->function->parameters[i])
                       : NULL;
    return NULL;
}

static struct array *next_array(struct call *call)
{
    struct array *array = &call->arrays[call->n_arrays++];
    array->buffer.obj = NULL;
    array->capsule = NULL;
    return array;
}

/* Allocates the outputs, of which none was given: posenc.arrays.allocate(kernel, arguments). */
static bool allocate(struct call *call)
{
    PyObject *function = helper("allocate"), *arguments = PyDict_New();
    for (int i = 0; arguments && i < call->function->n; i++)
        if (call->values[i] &&
            PyDict_SetItem(arguments, call->function->names[i], call->values[i]) < 0)
            Py_CLEAR(arguments);
    if (function && arguments)
        call->made = PyObject_CallFunction(
            function, "sO", posenc_kernel_name(call->function->kernel), arguments);
    Py_XDECREF(function);
    Py_XDECREF(arguments);
    if (!call->made)
        return false;
    PyObject *outputs = PyTuple_GetItem(call->made, 0);
    for (int i = 0, out = 0; outputs && i < call->function->n; i++)
        if (call->function->parameters[i]->kind == OUT)
            call->values[i] = PyTuple_GetItem(outputs, out++);
    return outputs != NULL;
}

/* Allocates the outputs if none is given. */
static bool complete_outputs(struct call *call)
{
    const char *missing = NULL, *given = NULL;
    for (int i = 0; i < call->function->n; i++)
        if (call->function->parameters[i]->kind == OUT)
            *(call->values[i] ? &given : &missing) = call->function->parameters[i]->name;
    if (!missing)
        return true;
    if (given)
        return PyErr_Format(PyExc_TypeError, "%s() lacks the argument '%s' beside '%s'",
                            posenc_kernel_name(call->function->kernel), missing, given);
    return allocate(call);
}

static bool read_tensor(struct call *call, const struct parameter *parameter, PyObject *value)
{
    struct array *array = next_array(call);
    return array_open(value, parameter->name, parameter->kind == OUT, array) &&
           array_tensor(array, parameter->name, member_of(call, parameter));
}

static bool read_backend(struct call *call, PyObject *value)
{
    const char *name = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    if (!name)
        return PyErr_Format(PyExc_TypeError, "backend: expected a name, got %R", value);
    call->backend = posenc_backend_find(name);
    return call->backend ||
           raise_text(POSENC_ERR_UNKNOWN, "backend",
                      "backend %R is unknown: posenc.backends() lists those of this CPU",
                      value);
}

/* Reads an argument that does not depend on the shapes of others. */
static bool read_value(struct call *call, const struct parameter *parameter, PyObject *value)
{
    void *member = member_of(call, parameter);
    const struct posenc_freqs *freqs;
    double number;
    int truth;
    switch (parameter->kind) {
    case X:
    case TENSOR:
    case TERM:
    case OUT:
        return read_tensor(call, parameter, value);
    case FREQS:
        freqs = freqs_of(value);
        memcpy(member, &freqs, sizeof freqs);
        return freqs;
    case BOOL:
        truth = PyObject_IsTrue(value);
        *(bool *)member = truth == 1;
        return truth >= 0;
    case I64:
        return integer_of(value, member);
    case F64:
        return number_of(value, member);
    case F32:
    case X_SCALE:
        if (!number_of(value, &number))
            return false;
        *(float *)member = (float)number;
        return true;
    case LAYOUT:
        return choice_of(value, "layout", "interleaved sin_cos cos_sin", member);
    case BACKEND:
        return read_backend(call, value);
    default:
        return true; /* see read_array() */
    }
}

/* ---- Arrays whose shape follows from that of a tensor ---- */

/* Reads positions of the tokens of `tensor`. */
static bool read_positions(struct call *call, const struct posenc_tensor *tensor,
                           PyObject *value, struct posenc_positions *positions)
{
    const enum signature signature = call->function->signature;
    const bool heads = signature == SIGNATURE_rope || signature == SIGNATURE_rope_qk_norm;
    const int token = tensor->rank - 2 - heads;
    const struct posenc_freqs *freqs =
        signature == SIGNATURE_rope_table   ? call->args.rope_table.freqs
        : signature == SIGNATURE_sinusoidal ? call->args.sinusoidal.freqs
                                            : NULL;
    if (token < 0 || token > 1) /* the library rejects this rank before it reads positions */
        return true;
    return positions_open(value, freqs ? posenc_freqs_view_of(freqs).n_axes : 1,
                          token == 1 ? tensor->shape[0] : 1, tensor->shape[token], positions,
                          next_array(call));
}

/* Reads an array whose shape is checked here, as its argument in C is a pointer. */
static bool read_array(struct call *call, const struct parameter *parameter, PyObject *value)
{
    const enum signature signature = call->function->signature;
    /* In these two, x has the tokens or the scores, and out has a row for each position or column. */
    const bool of_x =
        signature == SIGNATURE_learned_grad || signature == SIGNATURE_relative_sum;
    const struct posenc_tensor *tensor = tensor_of(call, of_x ? X : OUT);
    if (parameter->kind == BUCKETS)
        return buckets_open(value, member_of(call, parameter), next_array(call));
    if (parameter->kind == POSITIONS)
        return read_positions(call, tensor, value, member_of(call, parameter));
    if (tensor->rank < 3 ||
        tensor->rank > 4) /* the library rejects this rank before it reads the array */
        return true;
    const int64_t batch = tensor->rank == 4 ? tensor->shape[0] : 1,
                  *sizes = tensor->shape + tensor->rank - 3;
    if (parameter->kind == SLOPES)
        return slopes_open(value, batch, sizes[0], &call->args.alibi, next_array(call));
    return index_open(value, signature == SIGNATURE_window, sizes[1], sizes[2],
                      member_of(call, parameter), next_array(call));
}

/* Reads the outputs, or everything else that does not depend on their shape. */
static bool read_values(struct call *call, bool outputs)
{
    const struct function *function = call->function;
    for (int i = 0; i < function->n; i++)
        if (call->values[i] && (function->parameters[i]->kind == OUT) == outputs &&
            !read_value(call, function->parameters[i], call->values[i]))
            return false;
    return true;
}

static bool read_arrays(struct call *call)
{
    const struct function *function = call->function;
    for (int i = 0; i < function->n; i++) {
        const enum kind kind = function->parameters[i]->kind;
        if (kind >= BUCKETS && kind <= POSITIONS && call->values[i] &&
            !read_array(call, function->parameters[i], call->values[i]))
            return false;
    }
    return true;
}

/* ---- Running ---- */

enum { FEW_BYTES = 16384 }; /* a call that writes fewer is shorter than a switch of threads */

static enum posenc_status run(struct call *call, struct posenc_error *error)
{
    const struct posenc_tensor *out = tensor_of(call, OUT);
    int64_t bytes = out->dtype == POSENC_DTYPE_F32 ? 4 : 2;
    for (int d = 0; d < out->rank && d < 4 && bytes < FEW_BYTES; d++)
        bytes *= out->shape[d];
    if (bytes < FEW_BYTES)
        return call->function->run(call->backend, &call->args, error);
    enum posenc_status status;
    Py_BEGIN_ALLOW_THREADS status = call->function->run(call->backend, &call->args, error);
    Py_END_ALLOW_THREADS return status;
}

/* Returns the outputs: one, or a tuple; those that were allocated pass a function of their framework. */
static PyObject *result_of(struct call *call)
{
    PyObject *outputs[2] = { NULL, NULL };
    int n = 0;
    for (int i = 0; i < call->function->n; i++)
        if (call->function->parameters[i]->kind == OUT)
            outputs[n++] = call->values[i];
    PyObject *finish = call->made ? PyTuple_GetItem(call->made, 1) : Py_None;
    if (finish != Py_None)
        return PyObject_CallFunctionObjArgs(finish, outputs[0], outputs[1], NULL);
    if (n == 1)
        return Py_NewRef(outputs[0]);
    return PyTuple_Pack(2, outputs[0], outputs[1]);
}

static PyObject *call_function(const struct function *function, PyObject *const *given,
                               Py_ssize_t n, PyObject *keywords)
{
    struct call call = { .function = function };
    struct posenc_error error;
    PyObject *result = NULL;
    posenc_args_defaults(function->kernel, &call.args, function->args_size);
    if (bind(&call, given, n, keywords) && read_values(&call, false) &&
        complete_outputs(&call) && read_values(&call, true) && read_arrays(&call)) {
        const enum posenc_status status = run(&call, &error);
        result = status ? raise_error(status, &error) : result_of(&call);
    }
    for (int i = 0; i < call.n_arrays; i++)
        array_close(&call.arrays[i]);
    Py_XDECREF(call.made);
    return result;
}

/* clang-format off */
#define POSENC_KERNEL(ID, name, ...) \
    static PyObject *call_##name(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *keywords) \
    { \
        (void)module; \
        return call_function(&functions[POSENC_KERNEL_##ID], args, n, keywords); \
    }
#include <posenc_kernels.def>

#define POSENC_KERNEL(ID, name, ...) \
    { #name, (PyCFunction)(void (*)(void))call_##name, METH_FASTCALL | METH_KEYWORDS, DOC_##name },
static PyMethodDef methods[] = {
#include <posenc_kernels.def>
    { NULL, NULL, 0, NULL }
};
/* clang-format on */

bool add_kernels(PyObject *module)
{
    for (int i = 0; i < N_PARAMETERS; i++) {
        struct function *function = &functions[parameters[i].kernel];
        function->n_positional += parameters[i].kind <= POSITIONS;
        function->parameters[function->n] = &parameters[i];
        function->names[function->n] = PyUnicode_InternFromString(parameters[i].name);
        if (!function->names[function->n++])
            return false;
    }
    return PyModule_AddFunctions(module, methods) == 0;
}
