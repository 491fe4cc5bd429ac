/*
 * What a kernel keeps from one call to the next, one result per kernel:
 *
 *   kept-state   a call gives the bits of its own arguments, though one before it had others at the
 *                same addresses
 *
 * A kernel may have looked at a tensor, a plan or a parameter before and kept what it made of it: in a
 * variable of the thread, or in memory that it got when it was loaded, neither of which the watch over
 * static memory sees.  It knows them again by their addresses, by their shapes, by a few of their
 * elements.  So calls alternate between one problem and another in which a single thing is another: of
 * a tensor one element amid each row; a parameter; the plan.  All of them lie at the same addresses.
 * The same call at addresses of its own, with a plan of its own, gives the bits that it should give.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/engine/tally.h"
#include "conformance/problem/cases.h"
#include "conformance/problem/signature.h"

#include <stdlib.h>
#include <string.h>

/* ---- The same addresses ---- */

/* Each buffer of a call has one of these, in the order in which they are made. */
struct places {
    void *at[LAYOUTS];
    size_t bytes[LAYOUTS];
    int n;
};

static void *place_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    struct places *places = user;
    (void)role;
    if (places->n == LAYOUTS)
        return NULL;
    const int i = places->n++;
    if (!places->at[i]) {
        places->at[i] = memory_plain.get(NULL, bytes, offset_bytes, role);
        places->bytes[i] = bytes;
    }
    return bytes <= places->bytes[i] ? places->at[i] : NULL;
}

static void place_free(void *user, void *data) { (void)user, (void)data; }

static void places_free(struct places *places)
{
    for (int i = 0; i < LAYOUTS; i++)
        memory_plain.free(NULL, places->at[i]);
}

/* ---- What is another ---- */

enum { MOST_CHANGES = MOST_TENSORS + MOST_PARAMETERS + 2 };

struct change {
    const struct tensor_row *row; /* contents of this tensor; NULL: */
    struct problem problem;       /* arguments that follow from it */
    bool plan;
};

/* One element of each row, amid it. */
static void change_tensor(struct call *call, const struct tensor_row *row)
{
    const struct posenc_tensor *t = call_argument(call, row);
    const int64_t rows = storage_rows(t), width = t->shape[t->rank - 1];
    for (int64_t r = 0; r < rows && width; r++) {
        const uint64_t z = mix64(7, (uint64_t)r);
        const int64_t c = width > 2 ? 1 + (int64_t)(z % (uint64_t)(width - 2)) : 0;
        void *at = storage_row(t, r);
        storage_put(t->dtype, at, c, 0.375f - storage_get(t->dtype, at, c));
    }
}

static void change_floats(struct call *call, const struct tensor_row *row)
{
    float *data = (float *)(uintptr_t)call_data(call, row);
    const int64_t n = tensor_elements(&call->problem, row);
    data[n / 2] *= 0.75f;
}

/* Two columns of an index change places; of thresholds, which rise, one is another. */
static void change_integers(struct call *call, const struct tensor_row *row)
{
    int32_t *data = (int32_t *)(uintptr_t)call_data(call, row);
    const int64_t n = tensor_elements(&call->problem, row);
    for (int64_t i = n / 2; i + 1 < n; i++) {
        const int32_t before = data[i];
        if (data[i + 1] == before)
            continue;
        if (call->problem.kernel == POSENC_KERNEL_t5_bias ||
            call->problem.kernel == POSENC_KERNEL_t5_bias_add) {
            if (data[i + 1] - before < 2)
                continue;
            data[i]++;
            return;
        }
        data[i] = data[i + 1];
        data[i + 1] = before;
        return;
    }
}

/* Gives a token amid the others the position of its neighbour. */
static void change_positions(struct call *call)
{
    const struct posenc_positions *p = call_positions(call);
    const int64_t t = call->problem.tokens / 2, item = p->kind == POSENC_POSITIONS_I64 ? 8 : 4;
    char *data = (char *)(uintptr_t)p->data;
    if (t > 0)
        memcpy(data + t * p->stride_token * item, data + (t - 1) * p->stride_token * item,
               (size_t)item);
}

static void apply(struct call *call, const struct change *change)
{
    const struct tensor_row *row = change->row;
    if (!row)
        return;
    if (row->form == FORM_TENSOR)
        change_tensor(call, row);
    else if (row->form == FORM_FLOATS)
        change_floats(call, row);
    else if (row->form == FORM_INTEGERS)
        change_integers(call, row);
    else
        change_positions(call);
}

static bool is_read(const struct problem *p, const struct tensor_row *row)
{
    return row->role != ROLE_OUTPUT && tensor_present(p, row) &&
           (row->form != FORM_POSITIONS || p->position_kind != POSENC_OFFSET);
}

/* The parameters that a problem may have another value of without having another shape. */
static int change_parameters(const struct problem *p, struct change *changes, int n)
{
    static const char *const names[] = { "x_scale",        "scale",     "epsilon",
                                         "causal",         "transpose", "query_offset",
                                         "position_offset" };
    for (size_t i = 0; i < sizeof names / sizeof *names && n < MOST_CHANGES; i++) {
        struct field field;
        if (!kernel_field_find(p->kernel, names[i], &field))
            continue;
        struct problem q = *p;
        const uint64_t bits = field_get(&field, &q, 0);
        const bool real = field.kind == FIELD_F64 || field.kind == FIELD_F32;
        field_set(&field, &q,
                  real                       ? double_to_bits(bits_to_double(bits) * 1.75)
                  : field.kind == FIELD_BOOL ? !bits
                                             : bits + 1);
        changes[n++] = (struct change){ .problem = q };
    }
    return n;
}

static int list_changes(const struct problem *p, struct change *changes)
{
    int n = 0;
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        if (is_read(p, row))
            changes[n++] = (struct change){ .row = row, .problem = *p };
    n = change_parameters(p, changes, n);
    if (kernel_has_freqs(p->kernel) && n < MOST_CHANGES) {
        changes[n] = (struct change){ .problem = *p, .plan = true };
        changes[n++].problem.freqs.rope_theta *= 0.75;
    }
    return n;
}

/* ---- Calls ---- */

struct kept {
    struct tally *t;
    struct places places;
    const void *plan; /* of the calls at those addresses */
};

/* A plan at the address where the last one was, where memory is given out like that. */
enum { TRIES = 16 };
static void remake_plan(struct kept *kept, struct call *call, struct posenc_freqs **made)
{
    struct posenc_freqs *others[TRIES];
    int n = 0;
    *made = NULL;
    for (; n < TRIES; n++) {
        if (call->implementation->freqs_create(&call->problem.freqs, &others[n], NULL) !=
            POSENC_OK)
            break;
        *made = others[n];
        if (!kept->plan || *made == kept->plan) {
            n++;
            break;
        }
    }
    for (int i = 0; i + 1 < n; i++)
        call->implementation->freqs_destroy(others[i]);
    kept->plan = *made ? *made : kept->plan;
    if (*made)
        memcpy((char *)&call->args + signature_of(call->problem.kernel)->freqs, made,
               sizeof *made);
}

/* Outputs row by row, to be freed; NULL: the call was refused, or there is no memory. */
static float *run_call(struct kept *kept, struct call *call, const struct change *change,
                       bool own)
{
    struct posenc_freqs *plan = NULL;
    const struct call *made = call;
    size_t n = 1;
    float *copy = NULL, *to;
    if (!own && kernel_has_freqs(call->problem.kernel))
        remake_plan(kept, call, &plan);
    apply(call, change);
    const struct guarded g = guarded_run(call, kept->t->run->backend, NULL);
    if (g.crashed)
        require_clean(kept->t, &g);
    for (int o = 0; o < made->n_outputs; o++)
        n += (size_t)(made->outputs[o].rows * made->outputs[o].width);
    if (!g.crashed && g.status == POSENC_OK)
        copy = malloc(n * sizeof *copy);
    to = copy;
    for (int o = 0; copy && o < made->n_outputs; o++)
        for (int64_t r = 0; r < made->outputs[o].rows; r++, to += made->outputs[o].width)
            memcpy(to, call_row(made, o, r), (size_t)made->outputs[o].width * sizeof *to);
    if (plan)
        call->implementation->freqs_destroy(plan);
    return copy;
}

static float *run_at_places(struct kept *kept, const struct change *change)
{
    const struct memory memory = { .get = place_get,
                                   .free = place_free,
                                   .user = &kept->places };
    struct call call;
    float *got = NULL;
    kept->places.n = 0;
    if (call_create_by(kept->t->run->implementation, &call, &change->problem, &memory) ==
        POSENC_OK) {
        got = run_call(kept, &call, change, false);
        call_destroy(&call);
    }
    return got;
}

static bool same_outputs(const struct call *call, const float *a, const float *b)
{
    bool same = true;
    for (int o = 0; o < call->n_outputs; o++)
        for (int64_t i = 0; i < call->outputs[o].rows * call->outputs[o].width; i++, a++, b++)
            same = same && value_bits(*a) == value_bits(*b);
    return same;
}

static const char *name_of(const struct change *change)
{
    return change->row ? change->row->name : change->plan ? "the plan" : "a parameter";
}

/* Against the same call elsewhere, which is kept until the last: no address is used twice. */
static void check_change(struct kept *kept, const struct change *base,
                         const struct change *change, struct call *own)
{
    if (call_create_by(kept->t->run->implementation, own, &change->problem, &memory_plain) !=
        POSENC_OK)
        return;
    float *want = run_call(kept, own, change, true);
    if (want) {
        float *before = run_at_places(kept, base), *got = run_at_places(kept, change);
        if (before && got)
            require(kept->t, same_outputs(own, got, want),
                    "not the bits of its own arguments where, at the same addresses, %s of the "
                    "call before it was another",
                    name_of(change));
        free(before);
        free(got);
    }
    free(want);
}

static void check_problem(struct tally *t, struct problem p)
{
    struct change changes[MOST_CHANGES];
    struct call own[MOST_CHANGES] = { { .n_owned = 0 } };
    struct kept kept = { .t = t };
    p.in_place = false;
    const struct change base = { .problem = p };
    const int n = list_changes(&p, changes);
    for (int i = 0; i < n; i++) {
        t->problem = &changes[i].problem;
        check_change(&kept, &base, &changes[i], &own[i]);
    }
    t->problem = NULL;
    for (int i = 0; i < n; i++)
        if (own[i].implementation)
            call_destroy(&own[i]);
    places_free(&kept.places);
}

/* ---- The suite ---- */

void check_kept_state(struct suite_run *run, enum posenc_kernel kernel)
{
    static const size_t bytes[] = { 12 << 10, 300 << 10 };
    const int64_t lanes = backend_vector_lanes(run->backend);
    struct tally t;
    if (!tally_begin(&t, run, kernel, POSENC_F32, "side-effects", NULL, "kept-state"))
        return;
    for (int dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++) {
        if (dtype != POSENC_F32 && !run->backend->f16_bf16)
            continue;
        for (int v = 0; v < LENGTH_VARIANTS; v++) {
            if (!run->options->full && v != dtype)
                continue;
            struct problem p = problem_of_length(kernel, lanes + 3, v);
            p.dtype = p.values = p.table_dtype = (enum posenc_dtype)dtype;
            p.special = false;
            check_problem(&t, p);
        }
        for (int i = 0; i < (run->options->full ? 2 : 0); i++) {
            struct problem p = problem_realistic(kernel, (enum posenc_dtype)dtype, bytes[i]);
            p.table_dtype = (enum posenc_dtype)dtype;
            check_problem(&t, p);
        }
    }
    tally_end(&t);
}
