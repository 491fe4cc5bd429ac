/*
 * Functions for posenc/rope.py, whose objects own capsules of the library's frequencies and rotations:
 *
 *     handle = _core.rope_create(128, "half", {"rope_theta": 500000.0})
 *     _core.rope_apply(handle, q, k, positions)    rotates q and k in place
 */
#include "core.h"

#include <stddef.h>

/* ---- Specs ---- */

/* Type of a member: a constant by name, int64_t, double, bool, int64_t[4], or a pointer to a double for each pair. */
enum member_type { CHOICE, INTEGER, NUMBER, BOOL, SECTION, LIST };

/* A member of struct posenc_freqs_spec, which is a parameter in Python. `words` are the names of a choice. */
struct member {
    const char *name;
    enum member_type type;
    size_t offset;
    const char *words;
};

/* clang-format off */
#define MEMBER(type, name) { #name, type, offsetof(struct posenc_freqs_spec, name), NULL }
#define CHOICE_OF(words, name) { #name, CHOICE, offsetof(struct posenc_freqs_spec, name), words }
static const struct member members[] = {
    MEMBER(NUMBER, rope_theta),
    CHOICE_OF("none linear llama3 yarn dynamic ntk longrope proportional resonance resonance_yarn", scaling),
    MEMBER(NUMBER, factor), MEMBER(NUMBER, original_max_position_embeddings),
    MEMBER(NUMBER, low_freq_factor), MEMBER(NUMBER, high_freq_factor),
    MEMBER(NUMBER, beta_fast), MEMBER(NUMBER, beta_slow), MEMBER(BOOL, truncate),
    MEMBER(NUMBER, attention_factor), MEMBER(NUMBER, mscale), MEMBER(NUMBER, mscale_all_dim),
    MEMBER(NUMBER, max_position_embeddings), MEMBER(INTEGER, seq_len), MEMBER(NUMBER, partial_rotary_factor),
    MEMBER(LIST, short_factor), MEMBER(LIST, long_factor), MEMBER(SECTION, mrope_section),
    CHOICE_OF("qwen2_vl qwen3_vl qwen2_vl_vision pixtral kimi", mrope_layout),
    MEMBER(NUMBER, xpos_scale_base), MEMBER(NUMBER, xpos_centre), MEMBER(BOOL, xpos_inverse), MEMBER(LIST, values),
    CHOICE_OF("exact hf_f32 ggml_f32 torch_exp_f32", numerics), CHOICE_OF("exponent endpoint", spacing),
};
enum { N_MEMBERS = sizeof members / sizeof *members, MAX_LISTS = 3 };
/* clang-format on */

/* A spec, and the open arrays of its lists. */
struct spec {
    struct posenc_freqs_spec spec;
    struct array lists[MAX_LISTS];
    int n_lists;
};

/* Reads a sequence of at most four integers. */
static bool read_section(PyObject *object, const char *name, int64_t section[4])
{
    const Py_ssize_t n = PySequence_Size(object);
    if (n > 4)
        return raise_text(POSENC_ERR_SHAPE, name, "%s has %zd numbers, expected at most 4",
                          name, n);
    bool read = n >= 0;
    for (Py_ssize_t i = 0; i < n && read; i++) {
        PyObject *item = PySequence_GetItem(object, i);
        read = item && integer_read(item, &section[i]);
        Py_XDECREF(item);
    }
    return read;
}

/* Opens an array of float64 with a number for each pair, which the spec keeps open. */
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

static bool read_member(struct spec *spec, const struct member *member, PyObject *value)
{
    void *target = (char *)&spec->spec + member->offset;
    int is_true;
    switch (member->type) {
    case CHOICE:
        return choice_read(value, member->name, member->words, target);
    case INTEGER:
        return integer_read(value, target);
    case NUMBER:
        return number_read(value, target);
    case SECTION:
        return read_section(value, member->name, target);
    case LIST:
        return read_list(spec, value, member->name, target);
    case BOOL:
        break;
    }
    is_true = PyObject_IsTrue(value); /* -1: an exception */
    *(bool *)target = is_true == 1;
    return is_true >= 0;
}

/* Reads a spec from a dict of parameters. The caller calls end_spec() in any case. */
static bool read_spec(struct spec *spec, PyObject *dim, PyObject *parameters)
{
    PyObject *key, *value;
    Py_ssize_t place = 0; /* of PyDict_Next() */
    *spec = (struct spec){ .spec = posenc_freqs_spec_init() };
    if (!integer_read(dim, &spec->spec.dim))
        return false;
    while (PyDict_Next(parameters, &place, &key, &value)) {
        int i = 0;
        while (i < N_MEMBERS && PyUnicode_CompareWithASCIIString(key, members[i].name) != 0)
            i++;
        if (i == N_MEMBERS)
            return PyErr_Format(PyExc_TypeError, "unexpected keyword argument '%U'", key);
        if (value != Py_None && !read_member(spec, &members[i], value))
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

/* Names of capsules. */
static const char FREQS[] = "posenc_freqs", ROPE[] = "posenc_rope";

static void free_freqs(PyObject *capsule)
{
    posenc_freqs_destroy(PyCapsule_GetPointer(capsule, FREQS));
}

/* Implements freqs_create(dim, parameters), which returns a capsule. */
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

/* Implements freqs_view(capsule), which returns a tuple: dim, n_axes, attention_factor, a byte for the axis of each pair
 * (None: one axis), NumPy's name of the type of inv_freq, and its bytes. */
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
    const bool is_valid = capsule && PyCapsule_IsValid(capsule, FREQS);
    const struct posenc_freqs *freqs = is_valid ? PyCapsule_GetPointer(capsule, FREQS) : NULL;
    PyErr_Clear(); /* of an object without the attribute */
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

/* Implements rope_create(dim, pairing, parameters), which returns a capsule. */
static PyObject *rope_create(PyObject *module, PyObject *args)
{
    PyObject *dim, *pairing, *parameters, *capsule = NULL;
    struct posenc_rope *rope;
    struct posenc_error error;
    struct spec spec;
    int choice;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!", &dim, &pairing, &PyDict_Type, &parameters) ||
        !choice_read(pairing, "pairing", "half interleaved", &choice))
        return NULL;
    if (read_spec(&spec, dim, parameters)) {
        const enum posenc_status status =
            posenc_rope_create(&spec.spec, (enum posenc_pairing)choice, &rope, &error);
        capsule = status ? raise_error(status, &error) : PyCapsule_New(rope, ROPE, free_rope);
    }
    end_spec(&spec);
    return capsule;
}

enum { Q, K, POSITIONS, N_ARRAYS };

/* Rotates q and k in place; each may be None. The caller closes the arrays. */
static bool rotate(struct posenc_rope *rope, PyObject *const objects[N_ARRAYS],
                   struct array arrays[N_ARRAYS])
{
    struct posenc_tensor tensors[2] = { 0 };
    const struct posenc_tensor *given[2] = { NULL, NULL };
    struct posenc_positions positions = posenc_positions_from(0);
    struct posenc_error error;
    enum posenc_status status;
    for (int i = Q; i <= K; i++) {
        const char *name = i == Q ? "q" : "k";
        if (objects[i] == Py_None)
            continue;
        if (!array_open(objects[i], name, true, &arrays[i]) ||
            !array_tensor(&arrays[i], name, &tensors[i]))
            return false;
        given[i] = &tensors[i];
    }
    const struct posenc_tensor *first = given[Q] ? given[Q] : given[K];
    const int token_axis = first ? first->rank - 3 : -1; /* 1 beside a batch */
    if ((token_axis == 0 || token_axis == 1) && /* the library rejects other ranks itself */
        !positions_open(objects[POSITIONS],
                        posenc_freqs_view_of(posenc_rope_freqs(rope)).n_axes,
                        token_axis == 1 ? first->shape[0] : 1, first->shape[token_axis],
                        &positions, &arrays[POSITIONS]))
        return false;
    Py_BEGIN_ALLOW_THREADS;
    status = posenc_rope_apply(rope, &positions, given[Q], given[K], &error);
    Py_END_ALLOW_THREADS;
    return status ? (bool)raise_error(status, &error) : true;
}

/* Implements rope_apply(capsule, q, k, positions). */
static PyObject *rope_apply(PyObject *module, PyObject *args)
{
    PyObject *capsule, *objects[N_ARRAYS];
    struct array arrays[N_ARRAYS] = { 0 };
    struct posenc_rope *rope;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO", &capsule, &objects[Q], &objects[K],
                          &objects[POSITIONS]) ||
        !(rope = PyCapsule_GetPointer(capsule, ROPE)))
        return NULL;
    const bool rotated = rotate(rope, objects, arrays);
    for (int i = 0; i < N_ARRAYS; i++)
        array_close(&arrays[i]);
    if (!rotated)
        return NULL;
    Py_RETURN_NONE;
}

/* Implements rope_reserve(capsule, rows). */
static PyObject *rope_reserve(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    long long rows;
    struct posenc_rope *rope;
    struct posenc_error error;
    (void)module;
    if (!PyArg_ParseTuple(args, "OL", &capsule, &rows) ||
        !(rope = PyCapsule_GetPointer(capsule, ROPE)))
        return NULL;
    const enum posenc_status status = posenc_rope_reserve(rope, rows, &error);
    if (status)
        return raise_error(status, &error);
    Py_RETURN_NONE;
}

static const char doc[] = "See posenc/rope.py.";
PyMethodDef rope_methods[] = { { "freqs_create", freqs_create, METH_VARARGS, doc },
                               { "freqs_view", freqs_view, METH_O, doc },
                               { "rope_create", rope_create, METH_VARARGS, doc },
                               { "rope_apply", rope_apply, METH_VARARGS, doc },
                               { "rope_reserve", rope_reserve, METH_VARARGS, doc },
                               { NULL, NULL, 0, NULL } };
