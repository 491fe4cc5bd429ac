/* The module posenc._core: the library for Python, over the stable ABI of CPython 3.11. */
#ifndef POSENC_PYTHON_CORE_H
#define POSENC_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <posenc.h>
#include <posenc/backend.h>
#include <posenc/relative.h>

/* ---- Errors (core.c). Each function returns NULL, or false, with a Python exception set. ---- */

/* Raises posenc.Error for an error of the library. */
PyObject *raise_error(enum posenc_status status, const struct posenc_error *error);

/* Raises posenc.Error with a text of this module. `name` is the argument that it concerns. */
PyObject *raise_text(enum posenc_status status, const char *name, const char *format, ...);

/* Returns an attribute of posenc.arrays, a new reference. */
PyObject *helper(const char *name);

/* ---- Arrays (array.c) ---- */

enum element {
    ELEMENT_F32,
    ELEMENT_F16,
    ELEMENT_BF16,
    ELEMENT_F64,
    ELEMENT_I32,
    ELEMENT_I64,
    ELEMENT_OTHER
};

/* Memory of a Python object. It lives until array_close(). */
struct array {
    Py_buffer buffer; /* buffer.obj is NULL if the memory comes by DLPack */
    PyObject *capsule;
    void *data;
    enum element element;
    int32_t rank; /* shape and stride have the first four dimensions */
    int64_t shape[4], stride[4];
};

/* Opens the memory of an array without a copy. `name` is the argument that errors name. */
bool array_open(PyObject *object, const char *name, bool writable, struct array *array);
void array_close(struct array *array);

/* Writes the tensor of an array. Raises an error if the kernels lack its element type. */
bool array_tensor(const struct array *array, const char *name, struct posenc_tensor *tensor);

/* Reads positions: None, an integer, a range, or an array, which `array` keeps open. */
bool positions_open(PyObject *object, int32_t n_axes, int64_t batch, int64_t tokens,
                    struct posenc_positions *positions, struct array *array);

/* Read arguments that are pointers in C, and check the shapes, which the library cannot know. */
bool slopes_open(PyObject *object, int64_t batch, int64_t heads, struct posenc_alibi_args *args,
                 struct array *array);
bool index_open(PyObject *object, bool window, int64_t queries, int64_t keys,
                const int32_t **index, struct array *array);
bool buckets_open(PyObject *object, struct posenc_t5_buckets *buckets, struct array *array);

/* ---- Values (core.c) ---- */

/* A choice by name: words separated by spaces, in the order of the enum. */
bool choice_of(PyObject *object, const char *name, const char *words, int *choice);
bool integer_of(PyObject *object, int64_t *value);
bool number_of(PyObject *object, double *value);

/* ---- Parts of the module ---- */

bool add_kernels(PyObject *module);
extern PyMethodDef rope_methods[];

/* Returns the frequencies of an object of posenc.Frequencies, or NULL with an exception if it is none. */
const struct posenc_freqs *freqs_of(PyObject *object);

#endif
