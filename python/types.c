/* The types of the module: Frequencies, and Rotation, on which posenc.Rope is built. */
#include "core.h"

#include <stddef.h>
#include <string.h>

/* ---- Specs ---- */

enum field_kind { CHOICE, INTEGER, NUMBER, TRUTH, SECTION, VALUES };

/* A member of struct posenc_freqs_spec. */
struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
    const char *words; /* of a choice */
};

/* clang-format off */
#define FIELD(name, kind) { #name, kind, offsetof(struct posenc_freqs_spec, name), NULL }
#define CHOICE_FIELD(name, words) { #name, CHOICE, offsetof(struct posenc_freqs_spec, name), words }
static const struct field fields[] = {
    FIELD(dim, INTEGER), FIELD(rope_theta, NUMBER),
    CHOICE_FIELD(scaling, "none linear llama3 yarn dynamic ntk longrope proportional resonance resonance_yarn"),
    FIELD(factor, NUMBER), FIELD(original_max_position_embeddings, NUMBER),
    FIELD(low_freq_factor, NUMBER), FIELD(high_freq_factor, NUMBER), FIELD(beta_fast, NUMBER), FIELD(beta_slow, NUMBER),
    FIELD(truncate, TRUTH), FIELD(attention_factor, NUMBER), FIELD(mscale, NUMBER), FIELD(mscale_all_dim, NUMBER),
    FIELD(max_position_embeddings, NUMBER), FIELD(seq_len, INTEGER), FIELD(partial_rotary_factor, NUMBER),
    FIELD(short_factor, VALUES), FIELD(long_factor, VALUES), FIELD(mrope_section, SECTION),
    CHOICE_FIELD(mrope_layout, "qwen2_vl qwen3_vl qwen2_vl_vision pixtral kimi"),
    FIELD(xpos_scale_base, NUMBER), FIELD(xpos_centre, NUMBER), FIELD(xpos_inverse, TRUTH), FIELD(values, VALUES),
    CHOICE_FIELD(numerics, "exact hf_f32 ggml_f32 torch_exp_f32"), CHOICE_FIELD(spacing, "exponent endpoint"),
};
enum { N_FIELDS = sizeof fields / sizeof *fields, N_LISTS = 3 };
/* clang-format on */

/* A spec, and the numbers that it points to. */
struct spec {
    struct posenc_freqs_spec spec;
    double *lists[N_LISTS];
    int64_t lengths[N_LISTS];
    const char *list_names[N_LISTS];
    int n_lists;
};

/* Reads a sequence of at most `most` integers or numbers. Returns their number, or -1. */
static Py_ssize_t read_items(PyObject *object, const char *name, enum field_kind kind,
                             void *items, Py_ssize_t most)
{
    const Py_ssize_t n = PySequence_Size(object);
    if (n > most)
        raise_text(POSENC_ERR_SHAPE, name, "%s has %zd numbers, expected at most %zd", name, n,
                   most);
    for (Py_ssize_t i = 0; i < n && n <= most; i++) {
        PyObject *item = PySequence_GetItem(object, i);
        const bool read = item && (kind == INTEGER ? integer_of(item, (int64_t *)items + i)
                                                   : number_of(item, (double *)items + i));
        Py_XDECREF(item);
        if (!read)
            return -1;
    }
    return n > most ? -1 : n;
}

static bool read_list(struct spec *spec, const struct field *field, PyObject *value)
{
    enum { MOST = 32768 };
    double *numbers = PyMem_Malloc(MOST * sizeof *numbers);
    if (!numbers)
        return PyErr_NoMemory();
    const int at = spec->n_lists++;
    spec->lists[at] = numbers;
    spec->list_names[at] = field->name;
    spec->lengths[at] = read_items(value, field->name, NUMBER, numbers, MOST);
    *(const double **)(void *)((char *)&spec->spec + field->offset) = numbers;
    return spec->lengths[at] >= 0;
}

static bool read_field(struct spec *spec, const struct field *field, PyObject *value)
{
    void *member = (char *)&spec->spec + field->offset;
    switch (field->kind) {
    case CHOICE:
        return choice_of(value, field->name, field->words, member);
    case INTEGER:
        return integer_of(value, member);
    case NUMBER:
        return number_of(value, member);
    case SECTION:
        return read_items(value, field->name, INTEGER, member, 4) >= 0;
    case VALUES:
        return read_list(spec, field, value);
    default: {
        const int truth = PyObject_IsTrue(value);
        *(bool *)member = truth == 1;
        return truth >= 0;
    }
    }
}

/* Checks that each list has a number for each pair. */
static bool check_lists(const struct spec *spec)
{
    const int64_t pairs = (spec->spec.dim + 1) / 2;
    for (int i = 0; i < spec->n_lists; i++)
        if (spec->spec.dim > 0 && spec->lengths[i] != pairs)
            return raise_text(POSENC_ERR_SHAPE, spec->list_names[i],
                              "%s has %lld numbers, expected one for each of %lld pairs",
                              spec->list_names[i], (long long)spec->lengths[i],
                              (long long)pairs);
    return true;
}

/* Reads a spec from the arguments of a constructor. `pairing` is NULL where the type has none. */
static bool read_spec(PyObject *args, PyObject *keywords, struct spec *spec, int *pairing)
{
    *spec = (struct spec){ .spec = posenc_freqs_spec_init() };
    PyObject *dim = NULL, *key, *value;
    Py_ssize_t at = 0;
    if (!PyArg_ParseTuple(args, "|O", &dim) || (dim && !integer_of(dim, &spec->spec.dim)))
        return false;
    while (keywords && PyDict_Next(keywords, &at, &key, &value)) {
        int i = 0;
        while (i < N_FIELDS && PyUnicode_CompareWithASCIIString(key, fields[i].name) != 0)
            i++;
        const bool is_pairing =
            pairing && PyUnicode_CompareWithASCIIString(key, "pairing") == 0;
        if (i == N_FIELDS && !is_pairing)
            return PyErr_Format(PyExc_TypeError, "unexpected keyword argument '%U'", key);
        if (value == Py_None)
            continue;
        if (is_pairing ? !choice_of(value, "pairing", "half interleaved", pairing)
                       : !read_field(spec, &fields[i], value))
            return false;
    }
    return check_lists(spec);
}

static void free_lists(struct spec *spec)
{
    for (int i = 0; i < spec->n_lists; i++)
        PyMem_Free(spec->lists[i]);
}

/* ---- Objects ---- */

/* An object of either type. A rotation has the frequencies of its rope. */
struct object {
    PyObject_HEAD struct posenc_rope *rope; /* NULL: Frequencies */
    const struct posenc_freqs *freqs;
    PyObject *owner; /* the rotation that has the frequencies; NULL: this object */
    Py_ssize_t n_pairs, item;
};

static PyTypeObject *frequencies_type, *rotation_type;

const struct posenc_freqs *freqs_of(PyObject *object)
{
    if (PyObject_TypeCheck(object, frequencies_type))
        return ((struct object *)object)->freqs;
    PyErr_Format(PyExc_TypeError, "freqs: expected posenc.Frequencies, got %R",
                 Py_TYPE(object));
    return NULL;
}

int32_t freqs_axes(const struct posenc_freqs *freqs)
{
    return posenc_freqs_view_of(freqs).n_axes;
}

static PyObject *new_object(PyTypeObject *type)
{
    const allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return allocate(type, 0);
}

/* Makes what the library calls a rope or frequencies. */
static enum posenc_status create(struct object *self, const struct spec *spec, int pairing,
                                 bool is_rotation, struct posenc_error *error)
{
    enum posenc_status status;
    if (is_rotation) {
        status =
            posenc_rope_create(&spec->spec, (enum posenc_pairing)pairing, &self->rope, error);
        self->freqs = status ? NULL : posenc_rope_freqs(self->rope);
    } else {
        struct posenc_freqs *freqs = NULL;
        status = posenc_freqs_create(&spec->spec, &freqs, error);
        self->freqs = freqs;
    }
    return status;
}

static PyObject *object_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    const bool is_rotation = type == rotation_type;
    struct spec spec;
    struct posenc_error error;
    struct object *self = NULL;
    int pairing = POSENC_PAIRING_HALF;
    if (read_spec(args, keywords, &spec, is_rotation ? &pairing : NULL) &&
        (self = (struct object *)new_object(type))) {
        const enum posenc_status status = create(self, &spec, pairing, is_rotation, &error);
        if (status) {
            raise_error(status, &error);
            Py_CLEAR(self);
        }
    }
    free_lists(&spec);
    return (PyObject *)self;
}

static void object_dealloc(PyObject *object)
{
    struct object *self = (struct object *)object;
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    if (!self->rope && !self->owner)
        posenc_freqs_destroy((struct posenc_freqs *)(uintptr_t)self->freqs);
    posenc_rope_destroy(self->rope);
    Py_XDECREF(self->owner);
    release(object);
    Py_DECREF(type);
}

/* ---- Frequencies ---- */

static struct posenc_freqs_view view_of(PyObject *object)
{
    return posenc_freqs_view_of(((struct object *)object)->freqs);
}

/* Exports the frequencies as a buffer: f64 in mode exact, else f32. */
static int frequencies_buffer(PyObject *object, Py_buffer *buffer, int flags)
{
    struct object *self = (struct object *)object;
    const struct posenc_freqs_view view = view_of(object);
    const bool exact = view.numerics == POSENC_NUMERICS_EXACT;
    const void *values = exact ? (const void *)view.omega : view.omega_f32;
    self->n_pairs = (Py_ssize_t)view.n_pairs;
    self->item = exact ? sizeof(double) : sizeof(float);
    if (PyBuffer_FillInfo(buffer, object, (void *)(uintptr_t)values, self->n_pairs * self->item,
                          1, flags) < 0)
        return -1;
    buffer->itemsize = self->item;
    buffer->format = flags & PyBUF_FORMAT ? exact ? "d" : "f" : NULL;
    buffer->shape = flags & PyBUF_ND ? &self->n_pairs : NULL;
    buffer->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &self->item : NULL;
    return 0;
}

static PyObject *call_helper(const char *name, PyObject *argument)
{
    PyObject *function = helper(name);
    PyObject *result = function ? PyObject_CallFunctionObjArgs(function, argument, NULL) : NULL;
    Py_XDECREF(function);
    return result;
}

static PyObject *get_inv_freq(PyObject *self, void *unused)
{
    (void)unused;
    return call_helper("as_numpy", self);
}

static PyObject *get_dim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(view_of(self).dim);
}

static PyObject *get_attention_factor(PyObject *self, void *unused)
{
    (void)unused;
    return PyFloat_FromDouble(view_of(self).attention_factor);
}

/* Returns the axis of each pair, or None if there is one axis. */
static PyObject *get_axis(PyObject *self, void *unused)
{
    (void)unused;
    const struct posenc_freqs_view view = view_of(self);
    if (!view.axis)
        Py_RETURN_NONE;
    PyObject *axis = PyTuple_New((Py_ssize_t)view.n_pairs);
    for (Py_ssize_t i = 0; axis && i < view.n_pairs; i++)
        if (PyTuple_SetItem(axis, i, PyLong_FromLong(view.axis[i])) < 0)
            Py_CLEAR(axis);
    return axis;
}

static PyObject *get_n_axes(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(view_of(self).n_axes);
}

static PyGetSetDef frequencies_members[] = {
    { "inv_freq", get_inv_freq, NULL,
      "Radians per position of each pair: NumPy [n_pairs], float64 in numerics exact, "
      "otherwise float32. Read-only.",
      NULL },
    { "dim", get_dim, NULL, "Channels: two for each pair.", NULL },
    { "attention_factor", get_attention_factor, NULL,
      "Factor of the cosines and sines of rope_table().", NULL },
    { "n_axes", get_n_axes, NULL, "Axes of the positions; 1 without mrope_section.", NULL },
    { "axis", get_axis, NULL, "Axis of each pair, a tuple; None if there is one axis.", NULL },
    { NULL, NULL, NULL, NULL, NULL }
};

PyDoc_STRVAR(frequencies_doc,
             "Frequencies(dim, **parameters)\n--\n\n"
             "Frequencies of a rotation or of a sinusoidal encoding, immutable.\n\n"
             "Parameters are those of struct posenc_freqs_spec, named as in config.json: "
             "rope_theta=10000.0, scaling='none',\n"
             "factor, original_max_position_embeddings, low_freq_factor, high_freq_factor, "
             "beta_fast, beta_slow, truncate,\n"
             "attention_factor, mscale, mscale_all_dim, max_position_embeddings, seq_len, "
             "partial_rotary_factor, short_factor,\n"
             "long_factor, mrope_section, mrope_layout, xpos_scale_base, xpos_centre, "
             "xpos_inverse, values,\n"
             "numerics='exact', spacing='exponent'.\n\n"
             "Raises posenc.Error: status argument, shape, theta, parameter.");

static PyType_Slot frequencies_slots[] = { { Py_tp_doc, (void *)(uintptr_t)frequencies_doc },
                                           { Py_tp_new, object_new },
                                           { Py_tp_dealloc, object_dealloc },
                                           { Py_tp_getset, frequencies_members },
                                           { Py_bf_getbuffer, frequencies_buffer },
                                           { 0, NULL } };
static PyType_Spec frequencies_spec = { .name = "posenc.Frequencies",
                                        .basicsize = sizeof(struct object),
                                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                                        .slots = frequencies_slots };

/* ---- Rotations ---- */

static PyObject *get_freqs(PyObject *object, void *unused)
{
    (void)unused;
    struct object *freqs = (struct object *)new_object(frequencies_type);
    if (freqs) {
        freqs->owner = Py_NewRef(object);
        freqs->freqs = ((struct object *)object)->freqs;
    }
    return (PyObject *)freqs;
}

/* Opens queries or keys; `present` becomes false if they are None. */
static bool open_heads(PyObject *object, const char *name, struct array *array,
                       struct posenc_tensor *tensor, bool *present)
{
    *present = object != Py_None;
    return !*present ||
           (array_open(object, name, true, array) && array_tensor(array, name, tensor));
}

static bool apply(struct object *self, PyObject *const objects[3], struct array arrays[3])
{
    struct posenc_tensor q = { 0 }, k = { 0 };
    struct posenc_positions positions = posenc_positions_from(0);
    struct posenc_error error;
    bool has_q, has_k;
    if (!open_heads(objects[0], "q", &arrays[0], &q, &has_q) ||
        !open_heads(objects[1], "k", &arrays[1], &k, &has_k))
        return false;
    const struct posenc_tensor *tensor = has_q ? &q : &k;
    const int token = tensor->rank - 3;
    if ((has_q || has_k) && (token == 0 || token == 1) &&
        !positions_open(objects[2], freqs_axes(self->freqs), token == 1 ? tensor->shape[0] : 1,
                        tensor->shape[token], &positions, &arrays[2]))
        return false;
    enum posenc_status status;
    Py_BEGIN_ALLOW_THREADS status =
        posenc_rope_apply(self->rope, &positions, has_q ? &q : NULL, has_k ? &k : NULL, &error);
    Py_END_ALLOW_THREADS return status ? (bool)raise_error(status, &error) : true;
}

PyDoc_STRVAR(apply_doc, "apply(q, k, positions=None, /)\n--\n\n"
                        "Rotates q and k in place: posenc_rope_apply(). Either may be None.");
static PyObject *rotation_apply(PyObject *self, PyObject *args)
{
    PyObject *objects[3] = { NULL, NULL, Py_None };
    struct array arrays[3] = { 0 };
    if (!PyArg_ParseTuple(args, "OO|O", &objects[0], &objects[1], &objects[2]))
        return NULL;
    const bool applied = apply((struct object *)self, objects, arrays);
    for (int i = 0; i < 3; i++)
        array_close(&arrays[i]);
    if (!applied)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(reserve_doc,
             "reserve(n, /)\n--\n\n"
             "Computes the rows of positions 0 to n - 1 now: posenc_rope_reserve().");
static PyObject *rotation_reserve(PyObject *self, PyObject *n)
{
    int64_t rows;
    struct posenc_error error;
    if (!integer_of(n, &rows))
        return NULL;
    const enum posenc_status status =
        posenc_rope_reserve(((struct object *)self)->rope, rows, &error);
    if (status)
        return raise_error(status, &error);
    Py_RETURN_NONE;
}

static PyMethodDef rotation_methods[] = { { "apply", rotation_apply, METH_VARARGS, apply_doc },
                                          { "reserve", rotation_reserve, METH_O, reserve_doc },
                                          { NULL, NULL, 0, NULL } };
static PyGetSetDef rotation_members[] = { { "freqs", get_freqs, NULL,
                                            "Frequencies of the rotation.", NULL },
                                          { NULL, NULL, NULL, NULL, NULL } };
static PyType_Slot rotation_slots[] = { { Py_tp_new, object_new },
                                        { Py_tp_dealloc, object_dealloc },
                                        { Py_tp_methods, rotation_methods },
                                        { Py_tp_getset, rotation_members },
                                        { 0, NULL } };
static PyType_Spec rotation_spec = { .name = "posenc._core.Rotation",
                                     .basicsize = sizeof(struct object),
                                     .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                                     .slots = rotation_slots };

bool add_types(PyObject *module)
{
    frequencies_type = (PyTypeObject *)PyType_FromSpec(&frequencies_spec);
    rotation_type = (PyTypeObject *)PyType_FromSpec(&rotation_spec);
    return frequencies_type && rotation_type &&
           PyModule_AddType(module, frequencies_type) == 0 &&
           PyModule_AddType(module, rotation_type) == 0;
}
