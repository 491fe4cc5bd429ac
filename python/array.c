/*
 * Memory of Python objects, without copies: by the buffer protocol (NumPy), else by DLPack (PyTorch, JAX). array_open()
 * tries these in turn. The second half reads positions and the arrays that are pointers in C.
 */
#include "core.h"

#include <string.h>

/* ---- DLPack: structs and constants of its specification, dlpack.h ---- */

enum { DLPACK_CPU = 1 };                                      /* devices */
enum { DLPACK_INT = 0, DLPACK_FLOAT = 2, DLPACK_BFLOAT = 4 }; /* codes of types */
enum { DLPACK_READ_ONLY = 1 };                                /* flags */

struct dlpack_tensor {
    void *data;
    int32_t device, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    const int64_t *shape, *strides; /* strides in elements; NULL: dense */
    uint64_t byte_offset;
};

struct dlpack_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dlpack_versioned *);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

/* Functions that a type offers since DLPack 1.3. Unlike __dlpack__(), they allocate nothing. */
struct dlpack_exchange {
    uint32_t major, minor;
    const struct dlpack_exchange *older; /* the table of an older version, or NULL */
    void (*unused[3])(void);
    /* Describes the memory of an object, as long as the object lives. Returns 0, or another number with an exception. */
    int (*tensor_of)(void *object, struct dlpack_tensor *tensor);
};

static enum element dlpack_element(const struct dlpack_tensor *t)
{
    static const struct {
        uint8_t code, bits;
        enum element element;
    } types[] = { { DLPACK_FLOAT, 32, ELEMENT_F32 },   { DLPACK_FLOAT, 16, ELEMENT_F16 },
                  { DLPACK_BFLOAT, 16, ELEMENT_BF16 }, { DLPACK_FLOAT, 64, ELEMENT_F64 },
                  { DLPACK_INT, 32, ELEMENT_I32 },     { DLPACK_INT, 64, ELEMENT_I64 } };
    for (size_t i = 0; i < sizeof types / sizeof *types && t->lanes == 1; i++)
        if (t->code == types[i].code && t->bits == types[i].bits)
            return types[i].element;
    return ELEMENT_OTHER;
}

static bool open_tensor(const struct dlpack_tensor *t, const char *name, struct array *array)
{
    if (t->device != DLPACK_CPU)
        return raise_text(POSENC_ERR_ARGUMENT, name,
                          "%s is on a device of DLPack type %d, expected memory of the CPU",
                          name, t->device);
    array->data = t->data ? (char *)t->data + t->byte_offset : NULL;
    array->element = dlpack_element(t);
    array->rank = t->rank;
    int64_t dense_stride = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        if (d < 4) {
            array->shape[d] = t->shape[d];
            array->stride[d] = t->strides ? t->strides[d] : dense_stride;
        }
        dense_stride *= t->shape[d];
    }
    return true;
}

/* Calls __dlpack__() for version 1, which states whether memory is read-only, or an older one. Returns the capsule. */
static PyObject *call_dlpack(PyObject *method)
{
    static PyObject *version;
    if (!version && !(version = Py_BuildValue("{s(ii)}", "max_version", 1, 0)))
        return NULL;
    PyObject *no_arguments = PyTuple_New(0);
    PyObject *capsule = no_arguments ? PyObject_Call(method, no_arguments, version) : NULL;
    if (no_arguments && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(no_arguments);
    return capsule;
}

/* Opens the tensor in a capsule. array_close() deletes the capsule, whose destructor then frees the tensor. */
static bool open_capsule(PyObject *capsule, const char *name, bool writable,
                         struct array *array)
{
    const struct dlpack_tensor *tensor;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const struct dlpack_versioned *managed =
            PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (managed->major != 1)
            return raise_text(POSENC_ERR_ARGUMENT, name, "%s comes by DLPack %u, expected 1",
                              name, managed->major);
        tensor = &managed->tensor;
        if (writable && managed->flags & DLPACK_READ_ONLY)
            return raise_text(POSENC_ERR_ARGUMENT, name, "%s is read-only", name);
    } else {
        tensor = PyCapsule_GetPointer(capsule, "dltensor");
        if (!tensor)
            return false;
    }
    return open_tensor(tensor, name, array);
}

static bool open_dlpack(PyObject *method, const char *name, bool writable, struct array *array)
{
    array->capsule = call_dlpack(method);
    if (array->capsule && open_capsule(array->capsule, name, writable, array))
        return true;
    Py_CLEAR(array->capsule);
    return false;
}

/* Returns the functions of a type, or NULL. Remembers those of the last type that has some. */
static const struct dlpack_exchange *exchange_of(PyTypeObject *type)
{
    static PyTypeObject *last_type;
    static const struct dlpack_exchange *last_exchange;
    if (type == last_type)
        return last_exchange;
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const struct dlpack_exchange *exchange =
        capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    while (exchange && exchange->major > 1)
        exchange = exchange->older;
    PyErr_Clear();
    Py_XDECREF(capsule); /* the table lives as long as the type */
    if (exchange) {
        Py_XDECREF((PyObject *)last_type);
        last_type = (PyTypeObject *)Py_NewRef((PyObject *)type);
        last_exchange = exchange;
    }
    return exchange;
}

/* Opens a tensor of PyTorch, and rejects one that requires gradients, as __dlpack__() would. */
static bool open_exchanged(const struct dlpack_exchange *exchange, PyObject *object,
                           const char *name, struct array *array)
{
    static PyObject *attribute;
    struct dlpack_tensor tensor;
    if (!attribute && !(attribute = PyUnicode_InternFromString("requires_grad")))
        return false;
    PyObject *value = PyObject_GetAttr(object, attribute);
    if (!value)
        PyErr_Clear();
    const bool requires_grad = value && PyObject_IsTrue(value) == 1;
    Py_XDECREF(value);
    if (requires_grad)
        return raise_text(POSENC_ERR_ARGUMENT, name,
                          "%s requires gradients, expected %s.detach()", name, name);
    return exchange->tensor_of(object, &tensor) == 0 && open_tensor(&tensor, name, array);
}

/* ---- Buffers ---- */

/* Returns the type of a format of the module struct, such as "<f", whose elements have this size. */
static enum element format_element(const char *format, Py_ssize_t size)
{
    if (!format)
        return ELEMENT_OTHER;
    const char *native_orders = PY_BIG_ENDIAN ? "@=>!" : "@=<";
    if (format[0] != '\0' && strchr(native_orders, format[0]))
        format++;
    if (format[0] == '\0' || format[1] != '\0')
        return ELEMENT_OTHER;
    switch (format[0]) {
    case 'f':
        return ELEMENT_F32;
    case 'e':
        return ELEMENT_F16;
    case 'd':
        return ELEMENT_F64;
    case 'i':
    case 'l':
    case 'q':
    case 'n':
        return size == 4 ? ELEMENT_I32 : size == 8 ? ELEMENT_I64 : ELEMENT_OTHER;
    default:
        return ELEMENT_OTHER;
    }
}

/* Opens the buffer of an object whose dtype has no format: bfloat16 of ml_dtypes, as integers of 16 bits. Restores the
 * exception of the first attempt for other objects. */
static bool open_bfloat16(PyObject *object, int flags, struct array *array)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *function = import_from_arrays("bits_of_bfloat16");
    PyObject *bits = function ? PyObject_CallFunctionObjArgs(function, object, NULL) : NULL;
    const bool is_bfloat16 = bits && bits != Py_None;
    const bool opened = is_bfloat16 && PyObject_GetBuffer(bits, &array->buffer, flags) == 0;
    Py_XDECREF(function);
    Py_XDECREF(bits);
    if (is_bfloat16) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    } else {
        PyErr_Restore(type, value, trace); /* replaces one of the function */
    }
    return opened;
}

/* Sets the members of an array from its buffer, whose strides are in bytes. */
static bool describe_buffer(const char *name, struct array *array)
{
    const Py_buffer *buffer = &array->buffer;
    const int64_t size = buffer->itemsize;
    array->data = buffer->buf;
    array->rank = buffer->ndim;
    for (int d = 0; d < buffer->ndim && d < 4; d++) {
        array->shape[d] = buffer->shape[d];
        array->stride[d] = buffer->strides[d] / size;
        if (buffer->strides[d] % size != 0 && buffer->shape[d] > 1)
            return raise_text(
                POSENC_ERR_STRIDE, name,
                "stride of %s is %zd bytes, no multiple of its elements of %zd bytes", name,
                buffer->strides[d], buffer->itemsize);
    }
    return true;
}

static bool open_buffer(PyObject *object, const char *name, bool writable, struct array *array)
{
    int flags = writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO;
    bool opened = PyObject_GetBuffer(object, &array->buffer, flags) == 0;
    if (opened)
        array->element = format_element(array->buffer.format, array->buffer.itemsize);
    else if ((opened = open_bfloat16(object, flags, array)))
        array->element = ELEMENT_BF16;
    if (opened)
        return describe_buffer(name, array);
    array->buffer.obj = NULL;
    if (!writable)
        return false;
    PyErr_Clear();
    return raise_text(POSENC_ERR_ARGUMENT, name,
                      "%s is read-only, or its elements are no numbers", name);
}

/* ---- Any array ---- */

bool array_open(PyObject *object, const char *name, bool writable, struct array *array)
{
    array->buffer.obj = NULL;
    array->capsule = NULL;
    if (PyObject_CheckBuffer(object)) {
        if (open_buffer(object, name, writable, array))
            return true;
        /* A buffer of JAX has no format for bfloat16. */
        if (!PyErr_ExceptionMatches(PyExc_BufferError))
            return false;
        PyErr_Clear();
    }
    const struct dlpack_exchange *exchange = exchange_of(Py_TYPE(object));
    if (exchange)
        return open_exchanged(exchange, object, name, array);
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    const bool opened = method && open_dlpack(method, name, writable, array);
    if (!method) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "%s: expected an array with the buffer protocol or DLPack, got %R", name,
                     Py_TYPE(object));
    }
    Py_XDECREF(method);
    return opened;
}

void array_close(struct array *array)
{
    if (array->buffer.obj)
        PyBuffer_Release(&array->buffer);
    Py_CLEAR(array->capsule);
}

static const char *const element_names[] = { "float32", "float16", "bfloat16",    "float64",
                                             "int32",   "int64",   "another type" };

bool array_tensor(const struct array *array, const char *name, struct posenc_tensor *tensor)
{
    if (array->element > ELEMENT_BF16)
        return raise_text(
            POSENC_ERR_DTYPE, name,
            "dtype of %s is %s, expected float32, float16 or bfloat16 in the byte order of "
            "this machine",
            name, element_names[array->element]);
    tensor->data = array->data;
    tensor->dtype = (enum posenc_dtype)array->element;
    tensor->rank = array->rank;
    memcpy(tensor->shape, array->shape, sizeof tensor->shape);
    memcpy(tensor->stride, array->stride, sizeof tensor->stride);
    return true;
}

/* ---- Positions ---- */

/* Reads range(offset, offset + tokens). */
static bool read_range(PyObject *object, int64_t tokens, int64_t *offset)
{
    PyObject *start = PyObject_GetAttrString(object, "start");
    PyObject *step = PyObject_GetAttrString(object, "step");
    int64_t difference = 0;
    const bool read =
        start && step && integer_read(start, offset) && integer_read(step, &difference);
    const Py_ssize_t length = PyObject_Size(object);
    Py_XDECREF(start);
    Py_XDECREF(step);
    if (!read || length < 0)
        return false;
    if (difference != 1 || length != tokens)
        return raise_text(POSENC_ERR_SHAPE, "positions",
                          "positions are %R, expected a range of %lld with step 1", object,
                          (long long)tokens);
    return true;
}

/* Checks that the shape is [axes, batch or 1, tokens], where axes and batch may be missing, and sets the strides. */
static bool set_strides(const struct array *array, int32_t n_axes, int64_t batch,
                        int64_t tokens, struct posenc_positions *positions)
{
    const int last = array->rank - 1;
    const bool has_axes = n_axes > 1 && array->rank > 1;
    const bool has_batch = array->rank > 1 + has_axes;
    const int64_t batch_size = has_batch ? array->shape[last - 1] : 1;
    if (array->rank != has_axes + has_batch + 1 || array->shape[last] != tokens ||
        (has_axes && array->shape[0] != n_axes) || (batch_size != batch && batch_size != 1))
        return raise_text(
            POSENC_ERR_SHAPE, "positions",
            "shape of positions does not fit: expected [%s%lld] or [%s%lld, %lld]",
            n_axes > 1 ? "axes, " : "", (long long)tokens, n_axes > 1 ? "axes, " : "",
            (long long)batch, (long long)tokens);
    if (tokens > 1 && array->stride[last] == 0) /* which means dense in C */
        return raise_text(POSENC_ERR_STRIDE, "positions",
                          "stride of positions is 0 along tokens");
    positions->stride_token = tokens > 1 ? array->stride[last] : 1;
    if (has_axes)
        positions->stride_axis = array->stride[0];
    if (batch_size > 1)
        positions->stride_batch = array->stride[last - 1];
    return true;
}

bool positions_open(PyObject *object, int32_t n_axes, int64_t batch, int64_t tokens,
                    struct posenc_positions *positions, struct array *array)
{
    if (!object || object == Py_None)
        return true;
    if (PyLong_Check(object))
        return integer_read(object, &positions->offset);
    if (PyObject_TypeCheck(object, &PyRange_Type))
        return read_range(object, tokens, &positions->offset);
    if (!array_open(object, "positions", false, array))
        return false;
    if (array->rank == 0)
        return integer_read(object, &positions->offset);
    if (array->element != ELEMENT_I32 && array->element != ELEMENT_I64 &&
        array->element != ELEMENT_F32)
        return raise_text(POSENC_ERR_DTYPE, "positions",
                          "dtype of positions is %s, expected int32, int64 or float32",
                          element_names[array->element]);
    if (array->rank > 3)
        return raise_text(POSENC_ERR_SHAPE, "positions",
                          "rank of positions is %d, expected 1 to 3", array->rank);
    positions->kind = array->element == ELEMENT_I32   ? POSENC_POSITIONS_I32
                      : array->element == ELEMENT_I64 ? POSENC_POSITIONS_I64
                                                      : POSENC_POSITIONS_F32;
    positions->data = array->data;
    return set_strides(array, n_axes, batch, tokens, positions);
}

/* ---- Arrays that are pointers in C ---- */

static void print_shape(char text[64], int32_t rank, const int64_t *shape)
{
    if (rank == 1)
        PyOS_snprintf(text, 64, "[%lld]", (long long)shape[0]);
    else
        PyOS_snprintf(text, 64, "[%lld, %lld]", (long long)shape[0], (long long)shape[1]);
}

/* Rejects a shape of rank 1 or 2. Expected is [rows, columns], or [columns] if rows is 0. */
static bool reject_shape(const char *name, const struct array *array, int64_t rows,
                         int64_t columns)
{
    char got[64], expected[64];
    const int64_t sizes[2] = { rows, columns };
    print_shape(got, array->rank, array->shape);
    print_shape(expected, rows == 0 ? 1 : 2, rows == 0 ? &columns : sizes);
    return raise_text(POSENC_ERR_SHAPE, name, "shape of %s is %s, expected %s", name, got,
                      expected);
}

/* Opens an array of these elements with one or two dimensions, the last one contiguous. */
static bool open_rows(PyObject *object, const char *name, enum element element,
                      struct array *array)
{
    if (!array_open(object, name, false, array))
        return false;
    if (array->element != element)
        return raise_text(POSENC_ERR_DTYPE, name, "dtype of %s is %s, expected %s", name,
                          element_names[array->element], element_names[element]);
    if (array->rank != 1 && array->rank != 2)
        return raise_text(POSENC_ERR_SHAPE, name, "rank of %s is %d, expected 1 or 2", name,
                          array->rank);
    if (array->shape[array->rank - 1] > 1 && array->stride[array->rank - 1] != 1)
        return raise_text(POSENC_ERR_STRIDE, name, "last dimension of %s is not contiguous",
                          name);
    return true;
}

bool slopes_open(PyObject *object, int64_t batch, int64_t heads, struct posenc_alibi_args *args,
                 struct array *array)
{
    if (!open_rows(object, "slopes", ELEMENT_F32, array))
        return false;
    const bool has_batch = array->rank == 2;
    if (array->shape[array->rank - 1] != heads ||
        (has_batch && array->shape[0] != batch && array->shape[0] != 1))
        return reject_shape("slopes", array, has_batch ? batch : 0, heads);
    args->slopes = array->data;
    if (has_batch && array->shape[0] > 1)
        args->slopes_stride_batch = array->stride[0];
    return true;
}

bool index_open(PyObject *object, bool is_window, int64_t queries, int64_t keys,
                const int32_t **index, struct array *array)
{
    if (!open_rows(object, "index", ELEMENT_I32, array))
        return false;
    *index = array->data;
    if (queries == 0 || keys == 0) /* nothing is read */
        return true;
    const int64_t rows = is_window ? queries : 0;
    const int64_t columns = is_window ? keys : queries + keys - 1;
    if (array->rank != 1 + is_window || array->shape[array->rank - 1] != columns ||
        (is_window && array->shape[0] != rows))
        return reject_shape("index", array, rows, columns);
    if (is_window && rows > 1 && array->stride[0] != columns)
        return raise_text(POSENC_ERR_STRIDE, "index", "index is not contiguous");
    return true;
}

bool buckets_open(PyObject *object, struct posenc_t5_buckets *buckets, struct array *array)
{
    PyObject *thresholds;
    long long num_buckets;
    int bidirectional;
    if (!PyTuple_Check(object) || PyTuple_Size(object) != 3)
        return PyErr_Format(PyExc_TypeError, "buckets: expected posenc.T5Buckets, got %R",
                            Py_TYPE(object));
    if (!PyArg_ParseTuple(object, "LpO", &num_buckets, &bidirectional, &thresholds) ||
        !open_rows(thresholds, "thresholds", ELEMENT_I32, array))
        return false;
    const int64_t expected = num_buckets / (1 + bidirectional);
    if (array->rank != 1 || array->shape[0] != expected)
        return reject_shape("thresholds", array, 0, expected);
    buckets->num_buckets = num_buckets;
    buckets->bidirectional = bidirectional;
    buckets->thresholds = array->data;
    return true;
}
