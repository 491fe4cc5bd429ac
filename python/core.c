/* The module posenc._core: errors, values, functions about backends, and its start. */
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
        PyModule_AddFunctions(module, builder_methods) == 0 && add_types(module) &&
        add_kernels(module) &&
        PyModule_AddStringConstant(module, "__version__", posenc_version()) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
