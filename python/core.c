/* The module posenc._core: errors, values, functions about backends, builders, and its start. */
#include "core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Errors ---- */

PyObject *helper(const char *name)
{
    static PyObject *module;
    if (!module && !(module = PyImport_ImportModule("posenc.arrays")))
        return NULL;
    return PyObject_GetAttrString(module, name);
}

/* Words of a status, which posenc.Error has as `status`. */
static const char *const status_words[] = {
    "ok",         "argument",    "shape",        "stride",   "dtype",   "odd",
    "rotary_dim", "theta",       "parameter",    "position", "overlap", "overflow",
    "unknown",    "unsupported", "not_provided", "memory"
};

static PyObject *raise_words(enum posenc_status status, const char *text, const char *what,
                             double value)
{
    if (status == POSENC_ERR_MEMORY)
        return PyErr_NoMemory();
    const size_t n = sizeof status_words / sizeof *status_words;
    PyObject *class = helper("Error");
    PyObject *error =
        class ? PyObject_CallFunction(class, "sssd", text,
                                      (size_t)status < n ? status_words[status] : "other", what,
                                      value)
              : NULL;
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
    return raise_words(status, text, error->what, error->value);
}

PyObject *raise_text(enum posenc_status status, const char *name, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    PyObject *text = PyUnicode_FromFormatV(format, list);
    va_end(list);
    const char *bytes = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (bytes)
        raise_words(status, bytes, name, Py_NAN);
    Py_XDECREF(text);
    return NULL;
}

/* ---- Values ---- */

bool choice_of(PyObject *object, const char *name, const char *words, int *choice)
{
    Py_ssize_t length;
    const char *word =
        PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &length) : NULL;
    if (!word)
        return PyErr_Format(PyExc_TypeError, "%s: expected one of %s, got %R", name, words,
                            object);
    int number = 0;
    for (const char *at = words; *at; number++) {
        const size_t n = strcspn(at, " ");
        if (n == (size_t)length && memcmp(at, word, n) == 0) {
            *choice = number;
            return true;
        }
        at += n + strspn(at + n, " ");
    }
    return raise_text(POSENC_ERR_ARGUMENT, name, "%s is %R, expected one of %s", name, object,
                      words);
}

bool integer_of(PyObject *object, int64_t *value)
{
    PyObject *whole = PyNumber_Index(object);
    *value = whole ? PyLong_AsLongLong(whole) : -1;
    Py_XDECREF(whole);
    return *value != -1 || !PyErr_Occurred();
}

bool number_of(PyObject *object, double *value)
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

static PyMethodDef methods[] = { { "backends", backends, METH_NOARGS, backends_doc },
                                 { "select", select_backend, METH_VARARGS, select_doc },
                                 { NULL, NULL, 0, NULL } };

/* ---- Builders ---- */

/* Functions that fill arrays of slopes, buckets, indices and values. posenc/builders.py allocates the arrays, dense and
 * with the right elements, and documents the functions. */

/* Arguments of a builder. Unused ones stay zero. */
struct build {
    long long n[5];
    double number;
    int truth;
    PyObject *objects[3]; /* the output, then inputs */
    struct array arrays[3];
};

static bool open_arrays(struct build *b)
{
    for (int i = 0; i < 3; i++)
        if (b->objects[i] && !array_open(b->objects[i], "array", i == 0, &b->arrays[i]))
            return false;
    return true;
}

static PyObject *finish(struct build *b, enum posenc_status status,
                        const struct posenc_error *error)
{
    for (int i = 0; i < 3; i++)
        array_close(&b->arrays[i]);
    if (status)
        return raise_error(status, error);
    Py_RETURN_NONE;
}

static PyObject *give_up(struct build *b)
{
    finish(b, POSENC_OK, NULL);
    return NULL;
}

/* Targets of PyArg_ParseTuple() and arguments of calls. */
#define N(i)    &b.n[i]
#define IN(i)   &b.objects[i]
#define OUT     &b.objects[0]
#define DATA(i) b.arrays[i].data

/* clang-format off */
#define BUILDER(name, format, targets, ...) \
    static PyObject *name(PyObject *module, PyObject *args) \
    { \
        (void)module; \
        struct build b = { .truth = 0 }; \
        struct posenc_error error; \
        if (!PyArg_ParseTuple(args, format, TARGETS targets) || !open_arrays(&b)) \
            return give_up(&b); \
        return finish(&b, posenc_##name(__VA_ARGS__, &error), &error); \
    }
#define TARGETS(...) __VA_ARGS__
/* clang-format on */

BUILDER(alibi_slopes, "LdO", (N(0), &b.number, OUT), b.n[0], b.number, DATA(0))
BUILDER(kerple_log, "LOOLLO", (N(0), IN(1), IN(2), N(1), N(2), OUT), b.n[0], DATA(1), DATA(2),
        b.n[1], b.n[2], DATA(0))
BUILDER(kerple_power, "LOOLLO", (N(0), IN(1), IN(2), N(1), N(2), OUT), b.n[0], DATA(1), DATA(2),
        b.n[1], b.n[2], DATA(0))
BUILDER(sandwich, "LLOLLO", (N(0), N(1), IN(1), N(2), N(3), OUT), b.n[0], b.n[1], DATA(1),
        b.n[2], b.n[3], DATA(0))
BUILDER(swin_index, "LLO", (N(0), N(1), OUT), b.n[0], b.n[1], DATA(0))
BUILDER(beit_index, "LLO", (N(0), N(1), OUT), b.n[0], b.n[1], DATA(0))
BUILDER(shaw_index, "LLLLO", (N(0), N(1), N(2), N(3), OUT), b.n[0], b.n[1], b.n[2], b.n[3],
        DATA(0))
BUILDER(transformer_xl_index, "LLO", (N(0), N(1), OUT), b.n[0], b.n[1], DATA(0))
BUILDER(deberta_index, "LLLLLO", (N(0), N(1), N(2), N(3), N(4), OUT), b.n[0], b.n[1], b.n[2],
        b.n[3], b.n[4], DATA(0))
BUILDER(t5_buckets_compute, "LLpO", (N(0), N(1), &b.truth, OUT), b.n[0], b.n[1], b.truth,
        DATA(0), &(struct posenc_t5_buckets){ 0 })
BUILDER(padding_positions, "LLOLO", (N(0), N(1), IN(1), N(2), OUT), b.n[0], b.n[1], DATA(1),
        b.n[2], DATA(0))
BUILDER(learned_fill_normal, "LLLLdO", (N(0), N(1), N(2), N(3), &b.number, OUT),
        (uint64_t)b.n[0], b.n[1], b.n[2], b.n[3], b.number, DATA(0))

#define METHOD(name)                                                                           \
    {                                                                                          \
#name, name, METH_VARARGS, "See posenc/builders.py."                                   \
    }
static PyMethodDef builder_methods[] = {
    METHOD(alibi_slopes),       METHOD(kerple_log),           METHOD(kerple_power),
    METHOD(sandwich),           METHOD(swin_index),           METHOD(beit_index),
    METHOD(shaw_index),         METHOD(transformer_xl_index), METHOD(deberta_index),
    METHOD(t5_buckets_compute), METHOD(padding_positions),    METHOD(learned_fill_normal),
    { NULL, NULL, 0, NULL }
};

/* ---- The module ---- */

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "posenc._core", .m_size = -1,
    .m_doc = "The library posenc, called without copies of arrays."
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddFunctions(module, methods) == 0 &&
        PyModule_AddFunctions(module, builder_methods) == 0 &&
        PyModule_AddFunctions(module, rope_methods) == 0 && add_kernels(module) &&
        PyModule_AddStringConstant(module, "__version__", posenc_version()) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
