/* The module posenc._core: errors, values, backends, builders, and its start. core.h lists the other parts. */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Errors ----
 *
 * Functions that raise return NULL, which is false as a bool. */

PyObject *import_from_arrays(const char *name)
{
    static PyObject *module; /* kept until the process ends */
    if (!module && !(module = PyImport_ImportModule("posenc.arrays")))
        return NULL;
    return PyObject_GetAttrString(module, name);
}

/* Values of `status` in posenc.Error, in the order of enum posenc_status. */
static const char *const status_words[] = {
    "ok",         "argument",    "shape",        "stride",   "dtype",   "odd",
    "rotary_dim", "theta",       "parameter",    "position", "overlap", "overflow",
    "unknown",    "unsupported", "not_provided", "memory"
};

/* Raises posenc.Error(text, status, what, value), or MemoryError. */
static PyObject *raise_with(enum posenc_status status, const char *text, const char *what,
                            double value)
{
    if (status == POSENC_ERR_MEMORY)
        return PyErr_NoMemory();
    PyObject *class = import_from_arrays("Error"), *error = NULL;
    const bool is_known = (size_t)status < sizeof status_words / sizeof *status_words;
    const char *word = is_known ? status_words[status] : "other";
    if (class)
        error = PyObject_CallFunction(class, "sssd", text, word, what, value);
    if (error)
        PyErr_SetObject(class, error);
    Py_XDECREF(error);
    Py_XDECREF(class);
    return NULL;
}

PyObject *raise_error(enum posenc_status status, const struct posenc_error *error)
{
    char text[1024];
    posenc_error_text(error, text, sizeof text);
    return raise_with(status, text, error->what, error->value);
}

PyObject *raise_text(enum posenc_status status, const char *name, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    PyObject *text = PyUnicode_FromFormatV(format, list);
    va_end(list);
    const char *bytes = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (bytes)
        raise_with(status, bytes, name, Py_NAN);
    Py_XDECREF(text);
    return NULL;
}

/* ---- Values ---- */

bool choice_read(PyObject *object, const char *name, const char *words, int *choice)
{
    Py_ssize_t length;
    const char *word =
        PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &length) : NULL;
    if (!word)
        return PyErr_Format(PyExc_TypeError, "%s: expected one of %s, got %R", name, words,
                            object);
    int number = 0;
    for (const char *next = words; *next; number++) {
        const size_t n = strcspn(next, " ");
        if (n == (size_t)length && memcmp(next, word, n) == 0) {
            *choice = number;
            return true;
        }
        next += n + strspn(next + n, " ");
    }
    return raise_text(POSENC_ERR_ARGUMENT, name, "%s is %R, expected one of %s", name, object,
                      words);
}

bool integer_read(PyObject *object, int64_t *value)
{
    PyObject *integer = PyNumber_Index(object); /* rejects 2.5 */
    *value = integer ? PyLong_AsLongLong(integer) : -1;
    Py_XDECREF(integer);
    return *value != -1 || !PyErr_Occurred();
}

bool number_read(PyObject *object, double *value)
{
    *value = PyFloat_AsDouble(object);
    return *value != -1.0 || !PyErr_Occurred();
}

/* ---- Backends ---- */

PyDoc_STRVAR(backends_doc,
             "backends()\n--\n\nReturns the names of the backends that run on this CPU.");
static PyObject *backends(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *names = PyList_New(0);
    const struct posenc_backend *backend;
    for (size_t i = 0; names && (backend = posenc_backend_at(i)); i++) {
        if (posenc_backend_unavailable_reason(backend))
            continue;
        PyObject *name = PyUnicode_FromString(backend->name);
        if (!name || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

PyDoc_STRVAR(select_doc,
             "select(text=None, /)\n--\n\n"
             "Chooses the backends of calls without `backend`.\n\n"
             "text: the name of a backend, the content of a tuning file, or lines of KERNEL "
             "BACKEND [DTYPE [BYTES]].\n"
             "None goes back to the environment (POSENC_BACKEND, POSENC_MAX_ISA, "
             "POSENC_TUNING) and to the CPU.\n"
             "Raises posenc.Error: status argument, unknown, unsupported, not_provided.");
static PyObject *select_backend(PyObject *module, PyObject *args)
{
    (void)module;
    const char *text = NULL;
    struct posenc_error error;
    if (!PyArg_ParseTuple(args, "|z", &text))
        return NULL;
    const enum posenc_status status = posenc_select(text, &error);
    if (status)
        return raise_error(status, &error);
    Py_RETURN_NONE;
}

/* ---- Builders ---- */

/* Functions that fill arrays of slopes, buckets, indices and values. posenc/builders.py allocates the arrays, dense and
 * with the right elements, and documents the functions. */

enum { MAX_INTEGERS = 5, MAX_INPUTS = 2 };

/* Arguments of any builder: its integers and its inputs in their order. */
struct build_args {
    int64_t n[MAX_INTEGERS];
    double number;
    const void *in[MAX_INPUTS];
    void *out;
};

/* clang-format off */
/* Defines call_NAME(), which calls posenc_NAME(). */
#define BUILDER(name, ...) \
    static enum posenc_status call_##name(const struct build_args *a, struct posenc_error *error) \
    { return posenc_##name(__VA_ARGS__, error); }
#define ENTRY(name) { #name, call_##name }
/* clang-format on */

BUILDER(alibi_slopes, a->n[0], a->number, a->out)
BUILDER(kerple_log, a->n[0], a->in[0], a->in[1], a->n[1], a->n[2], a->out)
BUILDER(kerple_power, a->n[0], a->in[0], a->in[1], a->n[1], a->n[2], a->out)
BUILDER(sandwich, a->n[0], a->n[1], a->in[0], a->n[2], a->n[3], a->out)
BUILDER(swin_index, a->n[0], a->n[1], a->out)
BUILDER(beit_index, a->n[0], a->n[1], a->out)
BUILDER(shaw_index, a->n[0], a->n[1], a->n[2], a->n[3], a->out)
BUILDER(transformer_xl_index, a->n[0], a->n[1], a->out)
BUILDER(deberta_index, a->n[0], a->n[1], a->n[2], a->n[3], a->n[4], a->out)
/* T5Buckets of Python has the other members of the struct. */
BUILDER(t5_buckets_compute, a->n[0], a->n[1], a->n[2] != 0, a->out,
        &(struct posenc_t5_buckets){ 0 })
BUILDER(padding_positions, a->n[0], a->n[1], a->in[0], a->n[2], a->out)
BUILDER(learned_fill_normal, (uint64_t)a->n[0], a->n[1], a->n[2], a->n[3], a->number, a->out)

static const struct builder {
    const char *name;
    enum posenc_status (*call)(const struct build_args *args, struct posenc_error *error);
} builders[] = { ENTRY(alibi_slopes),      ENTRY(kerple_log),
                 ENTRY(kerple_power),      ENTRY(sandwich),
                 ENTRY(swin_index),        ENTRY(beit_index),
                 ENTRY(shaw_index),        ENTRY(transformer_xl_index),
                 ENTRY(deberta_index),     ENTRY(t5_buckets_compute),
                 ENTRY(padding_positions), ENTRY(learned_fill_normal) };
enum { N_BUILDERS = sizeof builders / sizeof *builders };

/* Reads the integers, then opens the output and the inputs, in this order in `arrays`. Their numbers are not checked, as
 * posenc/builders.py passes those of the C function; missing ones are 0 or NULL. */
static bool read_build_args(PyObject *integers, PyObject *inputs, PyObject *output,
                            struct build_args *args, struct array arrays[1 + MAX_INPUTS])
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(integers) && i < MAX_INTEGERS; i++)
        if (!integer_read(PyTuple_GetItem(integers, i), &args->n[i]))
            return false;
    if (!array_open(output, "array", true, &arrays[0]))
        return false;
    args->out = arrays[0].data;
    for (Py_ssize_t i = 0; i < PyTuple_Size(inputs) && i < MAX_INPUTS; i++) {
        if (!array_open(PyTuple_GetItem(inputs, i), "array", false, &arrays[1 + i]))
            return false;
        args->in[i] = arrays[1 + i].data;
    }
    return true;
}

/* Implements build(name, integers, number, inputs, output). */
static PyObject *build(PyObject *module, PyObject *values)
{
    const char *name;
    PyObject *integers, *inputs, *output, *result = NULL;
    struct build_args args = { .number = 0.0 };
    struct array arrays[1 + MAX_INPUTS] = { 0 };
    struct posenc_error error;
    (void)module;
    if (!PyArg_ParseTuple(values, "sO!dO!O", &name, &PyTuple_Type, &integers, &args.number,
                          &PyTuple_Type, &inputs, &output))
        return NULL;
    int i = 0;
    while (i < N_BUILDERS && strcmp(builders[i].name, name) != 0)
        i++;
    if (i == N_BUILDERS)
        return PyErr_Format(PyExc_ValueError, "no builder is called %s", name);
    if (read_build_args(integers, inputs, output, &args, arrays)) {
        const enum posenc_status status = builders[i].call(&args, &error);
        result = status ? raise_error(status, &error) : Py_NewRef(Py_None);
    }
    for (int k = 0; k < 1 + MAX_INPUTS; k++)
        array_close(&arrays[k]);
    return result;
}

/* ---- The module ---- */

static PyMethodDef methods[] = { { "backends", backends, METH_NOARGS, backends_doc },
                                 { "select", select_backend, METH_VARARGS, select_doc },
                                 { "build", build, METH_VARARGS, "See posenc/builders.py." },
                                 { NULL, NULL, 0, NULL } };

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "posenc._core", .m_size = -1, .m_methods = methods,
    .m_doc = "The library posenc, called without copies of arrays."
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddFunctions(module, rope_methods) == 0 && add_kernels(module) &&
        PyModule_AddStringConstant(module, "__version__", posenc_version()) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
