/*
 * The kernels as functions of the module: _core.alibi_add(scores, slopes, causal=True).
 *
 * generate.py writes their parameters and docstrings (functions.h) from the structs of arguments. All of them run
 * call_kernel(), which binds the arguments, reads them into the struct, and calls the library. posenc_kernels.def and
 * posenc_signatures.def expand a macro for each kernel, or struct of arguments, and undefine it.
 */
#include "core.h"

#include <string.h>

enum signature {
#define POSENC_SIGNATURE(name) SIGNATURE_##name,
#include <posenc_signatures.def>
};

/* Kinds of parameters: first those that may be positional, then keywords. */
enum kind {
    KIND_X,
    KIND_TENSOR,  /* any dtype of the kernels */
    KIND_TERM,    /* a tensor that may be left out */
    KIND_FREQS,   /* posenc.Frequencies */
    KIND_BUCKETS, /* posenc.T5Buckets */
    KIND_SLOPES,  /* float32, a pointer in C */
    KIND_INDEX,   /* int32, a pointer in C */
    KIND_POSITIONS,
    KIND_SIZE, /* of an allocated result; the first keyword */
    KIND_BOOL,
    KIND_I64,
    KIND_F32,
    KIND_F64,
    KIND_LAYOUT,
    KIND_X_SCALE,
    KIND_BACKEND,
    KIND_OUT /* allocated if it is not given */
};

/* A parameter of a function in Python. functions.h defines the array `parameters`, sorted by kernel. */
struct parameter {
    enum posenc_kernel kernel;
    enum kind kind;
    const char *name;
    size_t offset; /* of its member in the struct of arguments; unused for sizes and backends */
};
#include "functions.h"

enum {
    N_PARAMETERS = sizeof parameters / sizeof *parameters,
    MAX_PARAMETERS = 12,
    MAX_ARRAYS = 8
};

/* Arguments of any kernel. Each struct begins with its size. */
union any_args {
    size_t size;
#define POSENC_SIGNATURE(name) struct posenc_##name##_args name;
#include <posenc_signatures.def>
};

/* A function of the module. add_kernels() sets the parameters. */
struct function {
    enum posenc_kernel kernel;
    enum signature signature;
    size_t args_size;
    enum posenc_status (*run)(const struct posenc_backend *backend, const void *args,
                              struct posenc_error *error);
    int n_parameters;
    int n_positional; /* the first parameters, which may be positional */
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

/* ---- One call, and its arguments in Python ---- */

struct call {
    const struct function *function;
    PyObject *values[MAX_PARAMETERS]; /* borrowed; NULL: not given, or None */
    union any_args args;
    const struct posenc_backend *backend;
    struct array arrays[MAX_ARRAYS];
    int n_arrays;
    /* Result of posenc.arrays.allocate(): a tuple of outputs, and the function that converts them, or None. NULL if the
     * caller passed the outputs. */
    PyObject *allocated;
};

/* Returns the number of a parameter, or -1. Names in source code are interned, so that pointers suffice for most. */
static int find_keyword(const struct function *function, PyObject *name)
{
    for (int i = 0; i < function->n_parameters; i++)
        if (function->names[i] == name)
            return i;
    for (int i = 0; i < function->n_parameters; i++)
        if (PyUnicode_Compare(function->names[i], name) == 0)
            return i;
    return -1;
}

/* Sets the values of the parameters from the arguments of a vector call: n by position, then one for each keyword. */
static bool bind_arguments(struct call *call, PyObject *const *arguments, Py_ssize_t n,
                           PyObject *keywords)
{
    const struct function *function = call->function;
    const char *name = posenc_kernel_name(function->kernel);
    if (n > function->n_positional)
        return PyErr_Format(PyExc_TypeError,
                            "%s() takes at most %d positional arguments (%zd given)", name,
                            function->n_positional, n);
    for (Py_ssize_t i = 0; i < n; i++)
        call->values[i] = arguments[i];
    const Py_ssize_t n_keywords = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < n_keywords; i++) {
        PyObject *keyword = PyTuple_GetItem(keywords, i);
        const int number = find_keyword(function, keyword);
        if (number < 0)
            return PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                                name, keyword);
        if (call->values[number])
            return PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
                                name, keyword);
        call->values[number] = arguments[n + i];
    }
    return true;
}

/* Treats None as an argument that was not given, and rejects a call without a required one. */
static bool require_arguments(struct call *call)
{
    for (int i = 0; i < call->function->n_parameters; i++) {
        const struct parameter *parameter = call->function->parameters[i];
        const bool is_required = parameter->kind <= KIND_INDEX && parameter->kind != KIND_TERM;
        if (call->values[i] == Py_None)
            call->values[i] = NULL;
        if (is_required && !call->values[i])
            return PyErr_Format(PyExc_TypeError, "%s() lacks the argument '%s'",
                                posenc_kernel_name(parameter->kernel), parameter->name);
    }
    return true;
}

static void *member_of(struct call *call, const struct parameter *parameter)
{
    return (char *)&call->args + parameter->offset;
}

/* Returns the first tensor of this kind, KIND_X or KIND_OUT, which the kernel has. */
static const struct posenc_tensor *tensor_of(struct call *call, enum kind kind)
{
    int i = 0;
    while (call->function->parameters[i]->kind != kind)
        i++;
    return member_of(call, call->function->parameters[i]);
}

static struct array *next_array(struct call *call) { return &call->arrays[call->n_arrays++]; }

/* ---- Outputs ---- */

/* Allocates the outputs by posenc.arrays.allocate(kernel, {parameter: argument}). */
static bool allocate_outputs(struct call *call)
{
    PyObject *function = import_from_arrays("allocate"), *arguments = PyDict_New();
    for (int i = 0; arguments && i < call->function->n_parameters; i++)
        if (call->values[i] &&
            PyDict_SetItem(arguments, call->function->names[i], call->values[i]) < 0)
            Py_CLEAR(arguments);
    if (function && arguments)
        call->allocated = PyObject_CallFunction(
            function, "sO", posenc_kernel_name(call->function->kernel), arguments);
    Py_XDECREF(function);
    Py_XDECREF(arguments);
    PyObject *outputs = call->allocated ? PyTuple_GetItem(call->allocated, 0) : NULL;
    for (int i = 0, out = 0; outputs && i < call->function->n_parameters; i++)
        if (call->function->parameters[i]->kind == KIND_OUT)
            call->values[i] = PyTuple_GetItem(outputs, out++);
    return outputs != NULL;
}

/* Allocates the outputs if none is given, and rejects some without the others. */
static bool complete_outputs(struct call *call)
{
    const char *missing = NULL, *given = NULL;
    for (int i = 0; i < call->function->n_parameters; i++) {
        if (call->function->parameters[i]->kind != KIND_OUT)
            continue;
        if (call->values[i])
            given = call->function->parameters[i]->name;
        else
            missing = call->function->parameters[i]->name;
    }
    if (!missing)
        return true;
    if (given)
        return PyErr_Format(PyExc_TypeError, "%s() lacks the argument '%s' beside '%s'",
                            posenc_kernel_name(call->function->kernel), missing, given);
    return allocate_outputs(call);
}

/* ---- Reading ---- */

static bool read_tensor(struct call *call, const struct parameter *parameter, PyObject *value)
{
    struct array *array = next_array(call);
    return array_open(value, parameter->name, parameter->kind == KIND_OUT, array) &&
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

/* Reads positions of the tokens of `tensor`. */
static bool read_positions(struct call *call, const struct posenc_tensor *tensor,
                           PyObject *value, struct posenc_positions *positions)
{
    const enum signature signature = call->function->signature;
    const bool has_heads = signature == SIGNATURE_rope || signature == SIGNATURE_rope_qk_norm;
    const int token_axis = tensor->rank - 2 - has_heads; /* 1 beside a batch */
    int32_t n_axes = 1;
    if (signature == SIGNATURE_rope_table)
        n_axes = posenc_freqs_view_of(call->args.rope_table.freqs).n_axes;
    if (signature == SIGNATURE_sinusoidal)
        n_axes = posenc_freqs_view_of(call->args.sinusoidal.freqs).n_axes;
    if (token_axis < 0 || token_axis > 1) /* the library rejects this rank itself */
        return true;
    return positions_open(value, n_axes, token_axis == 1 ? tensor->shape[0] : 1,
                          tensor->shape[token_axis], positions, next_array(call));
}

/* Reads an array whose shape follows from that of x or of the output. */
static bool read_dependent_array(struct call *call, const struct parameter *parameter,
                                 PyObject *value)
{
    const enum signature signature = call->function->signature;
    /* Outputs of these two have a row for each position, or a column for each index. */
    const bool follows_x =
        signature == SIGNATURE_learned_grad || signature == SIGNATURE_relative_sum;
    const struct posenc_tensor *tensor = tensor_of(call, follows_x ? KIND_X : KIND_OUT);
    if (parameter->kind == KIND_BUCKETS)
        return buckets_open(value, member_of(call, parameter), next_array(call));
    if (parameter->kind == KIND_POSITIONS)
        return read_positions(call, tensor, value, member_of(call, parameter));
    if (tensor->rank < 3 || tensor->rank > 4) /* the library rejects this rank itself */
        return true;
    const int64_t batch = tensor->rank == 4 ? tensor->shape[0] : 1;
    const int64_t *scores = tensor->shape + tensor->rank - 3; /* heads, queries, keys */
    if (parameter->kind == KIND_SLOPES)
        return slopes_open(value, batch, scores[0], &call->args.alibi, next_array(call));
    return index_open(value, signature == SIGNATURE_window, scores[1], scores[2],
                      member_of(call, parameter), next_array(call));
}

/* Reads the argument of a parameter. */
static bool read_argument(struct call *call, const struct parameter *parameter, PyObject *value)
{
    void *member = member_of(call, parameter);
    const struct posenc_freqs *freqs;
    double number;
    int is_true;
    switch (parameter->kind) {
    case KIND_X:
    case KIND_TENSOR:
    case KIND_TERM:
    case KIND_OUT:
        return read_tensor(call, parameter, value);
    case KIND_FREQS:
        freqs = freqs_of(value);
        memcpy(member, &freqs, sizeof freqs);
        return freqs;
    case KIND_BOOL:
        is_true = PyObject_IsTrue(value); /* -1: an exception */
        *(bool *)member = is_true == 1;
        return is_true >= 0;
    case KIND_I64:
        return integer_read(value, member);
    case KIND_F64:
        return number_read(value, member);
    case KIND_F32:
    case KIND_X_SCALE:
        if (!number_read(value, &number))
            return false;
        *(float *)member = (float)number;
        return true;
    case KIND_LAYOUT:
        return choice_read(value, "layout", "interleaved sin_cos cos_sin", member);
    case KIND_BACKEND:
        return read_backend(call, value);
    case KIND_BUCKETS:
    case KIND_SLOPES:
    case KIND_INDEX:
    case KIND_POSITIONS:
        return read_dependent_array(call, parameter, value);
    case KIND_SIZE:
        break; /* allocate_outputs() passes it on */
    }
    return true;
}

/* Outputs that are allocated depend on the other arguments, and some arrays depend on the outputs. */
enum stage { STAGE_INPUTS, STAGE_OUTPUTS, STAGE_DEPENDENT_ARRAYS };

static enum stage stage_of(enum kind kind)
{
    if (kind == KIND_OUT)
        return STAGE_OUTPUTS;
    return kind >= KIND_BUCKETS && kind <= KIND_POSITIONS ? STAGE_DEPENDENT_ARRAYS
                                                          : STAGE_INPUTS;
}

static bool read_stage(struct call *call, enum stage stage)
{
    const struct function *function = call->function;
    for (int i = 0; i < function->n_parameters; i++)
        if (call->values[i] && stage_of(function->parameters[i]->kind) == stage &&
            !read_argument(call, function->parameters[i], call->values[i]))
            return false;
    return true;
}

static bool read_arguments(struct call *call)
{
    return read_stage(call, STAGE_INPUTS) && complete_outputs(call) &&
           read_stage(call, STAGE_OUTPUTS) && read_stage(call, STAGE_DEPENDENT_ARRAYS);
}

/* ---- Running ---- */

/* A call that writes fewer bytes keeps the interpreter's lock, because a switch of threads would take longer. */
enum { FEW_BYTES = 16384 };

static enum posenc_status run(struct call *call, struct posenc_error *error)
{
    const struct posenc_tensor *out = tensor_of(call, KIND_OUT);
    int64_t bytes = out->dtype == POSENC_DTYPE_F32 ? 4 : 2;
    for (int d = 0; d < out->rank && d < 4 && bytes < FEW_BYTES; d++)
        bytes *= out->shape[d];
    if (bytes < FEW_BYTES)
        return call->function->run(call->backend, &call->args, error);
    enum posenc_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = call->function->run(call->backend, &call->args, error);
    Py_END_ALLOW_THREADS;
    return status;
}

/* Returns the output, or a tuple of two. Allocated ones are converted to arrays of their framework. */
static PyObject *result_of(struct call *call)
{
    PyObject *outputs[2] = { NULL, NULL };
    int n = 0;
    for (int i = 0; i < call->function->n_parameters; i++)
        if (call->function->parameters[i]->kind == KIND_OUT)
            outputs[n++] = call->values[i];
    PyObject *convert = call->allocated ? PyTuple_GetItem(call->allocated, 1) : Py_None;
    if (convert != Py_None) /* a NULL for the second output ends its arguments */
        return PyObject_CallFunctionObjArgs(convert, outputs[0], outputs[1], NULL);
    if (n == 1)
        return Py_NewRef(outputs[0]);
    return PyTuple_Pack(2, outputs[0], outputs[1]);
}

static PyObject *call_kernel(const struct function *function, PyObject *const *arguments,
                             Py_ssize_t n, PyObject *keywords)
{
    struct call call = { .function = function };
    struct posenc_error error;
    PyObject *result = NULL;
    posenc_args_defaults(function->kernel, &call.args, function->args_size);
    if (bind_arguments(&call, arguments, n, keywords) && require_arguments(&call) &&
        read_arguments(&call)) {
        const enum posenc_status status = run(&call, &error);
        result = status ? raise_error(status, &error) : result_of(&call);
    }
    for (int i = 0; i < call.n_arrays; i++)
        array_close(&call.arrays[i]);
    Py_XDECREF(call.allocated);
    return result;
}

/* clang-format off */
#define POSENC_KERNEL(ID, name, ...) \
    static PyObject *call_##name(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *keywords) \
    { \
        (void)module; \
        return call_kernel(&functions[POSENC_KERNEL_##ID], args, n, keywords); \
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
        function->n_positional += parameters[i].kind <= KIND_POSITIONS;
        function->parameters[function->n_parameters] = &parameters[i];
        PyObject *name = PyUnicode_InternFromString(parameters[i].name);
        if (!name)
            return false;
        function->names[function->n_parameters++] = name;
    }
    return PyModule_AddFunctions(module, methods) == 0;
}
