/*
 * Builders: functions that fill arrays of slopes, buckets, indices and values. posenc/builders.py allocates the arrays,
 * dense and with the right elements, and documents the functions.
 */
#include "core.h"

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
PyMethodDef builder_methods[] = { METHOD(alibi_slopes),      METHOD(kerple_log),
                                  METHOD(kerple_power),      METHOD(sandwich),
                                  METHOD(swin_index),        METHOD(beit_index),
                                  METHOD(shaw_index),        METHOD(transformer_xl_index),
                                  METHOD(deberta_index),     METHOD(t5_buckets_compute),
                                  METHOD(padding_positions), METHOD(learned_fill_normal),
                                  { NULL, NULL, 0, NULL } };
