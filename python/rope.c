/* Frequencies and rotations, as capsules that the objects of posenc/rope.py own. */
#include "core.h"

#include <stddef.h>

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
    FIELD(rope_theta, NUMBER),
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

/* A spec, and the lists that it points to. */
struct spec {
    struct posenc_freqs_spec spec;
    struct array lists[N_LISTS];
    int n_lists;
};

static bool read_section(PyObject *object, const char *name, int64_t section[4])
{
    const Py_ssize_t n = PySequence_Size(object);
    if (n > 4)
        return raise_text(POSENC_ERR_SHAPE, name, "%s has %zd numbers, expected at most 4",
                          name, n);
    bool read = n >= 0;
    for (Py_ssize_t i = 0; i < n && read; i++) {
        PyObject *item = PySequence_GetItem(object, i);
        read = item && integer_of(item, &section[i]);
        Py_XDECREF(item);
    }
    return read;
}

/* Opens a list of float64, which has a number for each pair. */
static bool read_list(struct spec *spec, PyObject *value, const char *name, const void **list)
{
    struct array *array = &spec->lists[spec->n_lists++];
    const int64_t pairs = (spec->spec.dim + 1) / 2;
    if (!array_open(value, name, false, array))
        return false;
    *list = array->data;
    return spec->spec.dim <= 0 || array->shape[0] == pairs ||
           raise_text(POSENC_ERR_SHAPE, name,
                      "%s has %lld numbers, expected one for each of %lld pairs", name,
                      (long long)array->shape[0], (long long)pairs);
}

static bool read_field(struct spec *spec, const struct field *field, PyObject *value)
{
    void *member = (char *)&spec->spec + field->offset;
    int truth;
    switch (field->kind) {
    case CHOICE:
        return choice_of(value, field->name, field->words, member);
    case INTEGER:
        return integer_of(value, member);
    case NUMBER:
        return number_of(value, member);
    case SECTION:
        return read_section(value, field->name, member);
    case VALUES:
        return read_list(spec, value, field->name, member);
    case TRUTH:
        break;
    }
    truth = PyObject_IsTrue(value);
    *(bool *)member = truth == 1;
    return truth >= 0;
}

/* Reads a spec. The caller ends it in any case. */
static bool read_spec(struct spec *spec, PyObject *dim, PyObject *parameters)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    *spec = (struct spec){ .spec = posenc_freqs_spec_init() };
    if (!integer_of(dim, &spec->spec.dim))
        return false;
    while (PyDict_Next(parameters, &at, &key, &value)) {
        int i = 0;
        while (i < N_FIELDS && PyUnicode_CompareWithASCIIString(key, fields[i].name) != 0)
            i++;
        if (i == N_FIELDS)
            return PyErr_Format(PyExc_TypeError, "unexpected keyword argument '%U'", key);
        if (value != Py_None && !read_field(spec, &fields[i], value))
            return false;
    }
    return true;
}

static void end_spec(struct spec *spec)
{
    for (int i = 0; i < spec->n_lists; i++)
        array_close(&spec->lists[i]);
}

/* ---- Frequencies ---- */

static const char FREQS[] = "posenc_freqs", ROPE[] = "posenc_rope"; /* names of capsules */

static void free_freqs(PyObject *capsule)
{
    posenc_freqs_destroy(PyCapsule_GetPointer(capsule, FREQS));
}

static PyObject *freqs_create(PyObject *module, PyObject *args)
{
    PyObject *dim, *parameters, *capsule = NULL;
    struct posenc_freqs *freqs;
    struct posenc_error error;
    struct spec spec;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO!", &dim, &PyDict_Type, &parameters))
        return NULL;
    if (read_spec(&spec, dim, parameters)) {
        const enum posenc_status status = posenc_freqs_create(&spec.spec, &freqs, &error);
        capsule =
            status ? raise_error(status, &error) : PyCapsule_New(freqs, FREQS, free_freqs);
    }
    end_spec(&spec);
    return capsule;
}

/* Returns dim, n_axes, attention_factor, a byte for the axis of each pair (None: one axis), NumPy's name of the type of
 * inv_freq, and its bytes. */
static PyObject *freqs_view(PyObject *module, PyObject *capsule)
{
    const struct posenc_freqs *freqs = PyCapsule_GetPointer(capsule, FREQS);
    (void)module;
    if (!freqs)
        return NULL;
    const struct posenc_freqs_view view = posenc_freqs_view_of(freqs);
    const bool exact = view.numerics == POSENC_NUMERICS_EXACT;
    const Py_ssize_t n = (Py_ssize_t)view.n_pairs;
    return Py_BuildValue("Lidy#sy#", (long long)view.dim, (int)view.n_axes,
                         view.attention_factor, (const char *)view.axis, n, exact ? "f8" : "f4",
                         exact ? (const char *)view.omega : (const char *)view.omega_f32,
                         n * (Py_ssize_t)(exact ? sizeof(double) : sizeof(float)));
}

const struct posenc_freqs *freqs_of(PyObject *object)
{
    PyObject *capsule = PyObject_GetAttrString(object, "_handle");
    const bool has = capsule && PyCapsule_IsValid(capsule, FREQS);
    const struct posenc_freqs *freqs = has ? PyCapsule_GetPointer(capsule, FREQS) : NULL;
    PyErr_Clear();
    if (!freqs)
        PyErr_Format(PyExc_TypeError, "freqs: expected posenc.Frequencies, got %R",
                     Py_TYPE(object));
    Py_XDECREF(capsule); /* the object keeps it */
    return freqs;
}

/* ---- Rotations ---- */

static void free_rope(PyObject *capsule)
{
    posenc_rope_destroy(PyCapsule_GetPointer(capsule, ROPE));
}

static PyObject *rope_create(PyObject *module, PyObject *args)
{
    PyObject *dim, *pairing, *parameters, *capsule = NULL;
    struct posenc_rope *rope;
    struct posenc_error error;
    struct spec spec;
    int choice;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!", &dim, &pairing, &PyDict_Type, &parameters) ||
        !choice_of(pairing, "pairing", "half interleaved", &choice))
        return NULL;
    if (read_spec(&spec, dim, parameters)) {
        const enum posenc_status status =
            posenc_rope_create(&spec.spec, (enum posenc_pairing)choice, &rope, &error);
        capsule = status ? raise_error(status, &error) : PyCapsule_New(rope, ROPE, free_rope);
    }
    end_spec(&spec);
    return capsule;
}

static bool apply(struct posenc_rope *rope, PyObject *const objects[3], struct array arrays[3])
{
    static const char *const names[] = { "q", "k" };
    struct posenc_tensor tensors[2] = { 0 };
    const struct posenc_tensor *given[2] = { NULL, NULL };
    struct posenc_positions positions = posenc_positions_from(0);
    struct posenc_error error;
    for (int i = 0; i < 2; i++) {
        if (objects[i] == Py_None)
            continue;
        if (!array_open(objects[i], names[i], true, &arrays[i]) ||
            !array_tensor(&arrays[i], names[i], &tensors[i]))
            return false;
        given[i] = &tensors[i];
    }
    const struct posenc_tensor *first = given[0] ? given[0] : given[1];
    const int token = first ? first->rank - 3 : -1;
    if ((token == 0 || token == 1) &&
        !positions_open(objects[2], posenc_freqs_view_of(posenc_rope_freqs(rope)).n_axes,
                        token == 1 ? first->shape[0] : 1, first->shape[token], &positions,
                        &arrays[2]))
        return false;
    enum posenc_status status;
    Py_BEGIN_ALLOW_THREADS status =
        posenc_rope_apply(rope, &positions, given[0], given[1], &error);
    Py_END_ALLOW_THREADS return status ? (bool)raise_error(status, &error) : true;
}

static PyObject *rope_apply(PyObject *module, PyObject *args)
{
    PyObject *capsule, *objects[3];
    struct array arrays[3] = { 0 };
    struct posenc_rope *rope;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO", &capsule, &objects[0], &objects[1], &objects[2]) ||
        !(rope = PyCapsule_GetPointer(capsule, ROPE)))
        return NULL;
    const bool applied = apply(rope, objects, arrays);
    for (int i = 0; i < 3; i++)
        array_close(&arrays[i]);
    if (!applied)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *rope_reserve(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    long long rows;
    struct posenc_error error;
    (void)module;
    if (!PyArg_ParseTuple(args, "OL", &capsule, &rows))
        return NULL;
    struct posenc_rope *rope = PyCapsule_GetPointer(capsule, ROPE);
    const enum posenc_status status =
        rope ? posenc_rope_reserve(rope, rows, &error) : POSENC_OK;
    if (!rope || status)
        return rope ? raise_error(status, &error) : NULL;
    Py_RETURN_NONE;
}

#define METHOD(name, form)                                                                     \
    {                                                                                          \
#name, name, form, "See posenc/rope.py."                                               \
    }
PyMethodDef rope_methods[] = {
    METHOD(freqs_create, METH_VARARGS), METHOD(freqs_view, METH_O),
    METHOD(rope_create, METH_VARARGS),  METHOD(rope_apply, METH_VARARGS),
    METHOD(rope_reserve, METH_VARARGS), { NULL, NULL, 0, NULL }
};
