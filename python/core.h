/*
 * Parts of the module posenc._core, which calls the library on arrays of Python. It uses the stable ABI of CPython 3.11.
 *
 *     kernels.c   a function for each kernel: _core.rope_half(x, cos, sin) returns a new array like x
 *     rope.c      functions for posenc/rope.py, on capsules of frequencies and rotations
 *     array.c     memory of arrays, and arguments that are arrays
 *     core.c      errors, values, backends, functions for posenc/builders.py, and the start of the module
 *
 * Functions of type bool and those that return a pointer return false or NULL with a Python exception set.
 */
#ifndef POSENC_PYTHON_CORE_H
#define POSENC_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <posenc.h>
#include <posenc/backend.h>
#include <posenc/relative.h>

/* ---- Errors (core.c): these functions always return NULL. ---- */

/* Raises posenc.Error for an error of the library. */
PyObject *raise_error(enum posenc_status status, const struct posenc_error *error);

/* Raises posenc.Error with a text of this module. `name` is the argument that it concerns. */
PyObject *raise_text(enum posenc_status status, const char *name, const char *format, ...);

/* Returns a function or class of posenc/arrays.py, a new reference. */
PyObject *import_from_arrays(const char *name);

/* ---- Arrays (array.c) ---- */

/* Type of an element. The first three have the numbers of enum posenc_dtype. */
enum element {
    ELEMENT_F32,
    ELEMENT_F16,
    ELEMENT_BF16,
    ELEMENT_F64,
    ELEMENT_I32,
    ELEMENT_I64,
    ELEMENT_OTHER
};

/* Memory of a Python object, which lives until array_close(). Zeros are an array that was not opened. */
struct array {
    Py_buffer buffer;  /* obj is NULL if the memory comes by DLPack */
    PyObject *capsule; /* owned; NULL unless __dlpack__() returned it */
    void *data;
    enum element element;
    int32_t rank;                /* any; shape and stride have the first four dimensions */
    int64_t shape[4], stride[4]; /* strides in elements */
};

/* Opens the memory of an array without a copy. `name` is the argument that errors name. */
bool array_open(PyObject *object, const char *name, bool writable, struct array *array);
void array_close(struct array *array);

/* Writes the tensor of an array. Raises an error if the kernels lack its element type. */
bool array_tensor(const struct array *array, const char *name, struct posenc_tensor *tensor);

/* Reads positions: None, an integer, a range, or an array, which `array` keeps open. */
bool positions_open(PyObject *object, int32_t n_axes, int64_t batch, int64_t tokens,
                    struct posenc_positions *positions, struct array *array);

/* Read arguments that are pointers in C, and check their shapes, which the library cannot see. */

/* Reads [heads] or [batch or 1, heads]. */
bool slopes_open(PyObject *object, int64_t batch, int64_t heads, struct posenc_alibi_args *args,
                 struct array *array);
/* Reads the index of a window, [queries, keys], or of relative positions, [queries + keys - 1]. */
bool index_open(PyObject *object, bool is_window, int64_t queries, int64_t keys,
                const int32_t **index, struct array *array);
/* Reads a posenc.T5Buckets. */
bool buckets_open(PyObject *object, struct posenc_t5_buckets *buckets, struct array *array);

/* ---- Values (core.c) ---- */

/* Reads the name of a constant. `words` are the names in the order of the enum, separated by spaces. */
bool choice_read(PyObject *object, const char *name, const char *words, int *choice);
bool integer_read(PyObject *object, int64_t *value);
bool number_read(PyObject *object, double *value);

/* ---- Parts of the module ---- */

bool add_kernels(PyObject *module);
extern PyMethodDef rope_methods[];

/* Returns the frequencies of a posenc.Frequencies, which owns them. */
const struct posenc_freqs *freqs_of(PyObject *object);

#endif
