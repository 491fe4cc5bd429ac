/*
 * Memory behaviour of every kernel of a backend, one result per kernel and property:
 *
 *   guard-end, guard-start   no touch past either end of a buffer, at every length 0 .. 4W + 1
 *                            of the vectorised dimension, W the backend's lanes, and several
 *                            counts of rows
 *   canaries                 nothing written around the buffers nor between strided rows
 *   read-only-inputs         inputs are not written
 *   written                  every element of every row is
 *   lengths                  and with the right value: no tail lane is misplaced (gross
 *                            comparison with the oracle; precision is the accuracy suite's)
 *   placement                the same bits at byte offsets 0, 4, 16 and 60 and at either end
 *                            of a page
 *   twice                    the same bits when called again
 *   mxcsr                    rounding mode, flush-to-zero and masks as before
 *   broadcast                inputs of stride 0
 *   lane-independence, overlap-refused, errors-leave-outputs-untouched    lanes.c, refusals.c
 */
#define _POSIX_C_SOURCE 200809L
#include "memory.h"

#include "inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum property {
    END,
    START,
    CANARIES,
    INPUTS,
    WRITTEN,
    LENGTHS,
    PLACEMENT,
    TWICE,
    CONTROL,
    PROPERTIES
};
static const char *const property_name[PROPERTIES] = {
    "guard-end", "guard-start", "canaries", "read-only-inputs", "written", "lengths",
    "placement", "twice",       "mxcsr",
};

struct sweep {
    struct tally tally[PROPERTIES];
    struct suite_run *run;
    struct guard *guard;
    bool any;
};

/* ---- Problems ---- */

static void problem_tokens(struct problem *p, int64_t n, int v)
{
    static const int64_t tokens[MEMORY_VARIANTS] = { 3, 2, 5, 1 };
    p->tokens = tokens[v];
    p->layout = (enum posenc_layout)((n + v) % 3);
    p->freqs.convention = (enum posenc_convention)(v & 1);
    p->freqs.profile = v == 2 ? (enum posenc_profile)(POSENC_HF_F32 + n % 3) : POSENC_EXACT;
    p->position_kind = (enum posenc_position_kind)(v % 3);
    p->batch_shift = p->position_kind == POSENC_OFFSET ? 0 : 1;
}

/* Tables beyond one integer a token: in every other length times with a fraction, in every fourth
 * pairs of a rope table shared between the axes of a picture. */
static void problem_places(struct problem *p, int64_t n, int v)
{
    if (v == 2 && n % 2) {
        p->position_kind = POSENC_POSITIONS_F32;
        p->time_step = 0.37;
    }
    if (v != 1 || n % 4 != 1 || n < 4 || kernel_signature(p->kernel) != SIGNATURE_rope_table)
        return;
    p->mrope_grid = 2;
    p->freqs.mrope_layout = n % 8 == 1 ? POSENC_MROPE_CHUNKED : POSENC_MROPE_INTERLEAVED;
    p->freqs.mrope_section[1] = p->freqs.mrope_section[2] = n / 4;
    p->freqs.mrope_section[0] = n - n / 4 * 2;
}

static void problem_scores(struct problem *p, int64_t n, int v)
{
    p->heads = 3;
    p->keys = n;
    p->queries = 1 + v;
    p->query_offset = v == 3 ? -2 : n - p->queries;
    p->causal = v & 1;
    p->bidirectional = !(v & 1);
    p->num_buckets = 8;
    p->max_distance = 20;
}

struct problem memory_problem(enum posenc_kernel kernel, int64_t n, int v)
{
    struct problem p = problem_default(kernel);
    static const int64_t pads[MEMORY_VARIANTS] = { 0, 5, 0, 3 },
                         tails[MEMORY_VARIANTS] = { 0, 3, 1, 0 };
    bool has_x = kernel_takes_x(kernel);
    p.pad = pads[v];
    p.in_place = has_x && v >= 2;
    p.special = v == 3;
    p.x_scale = v == 1 ? 0.5f : 1.0f;
    p.scale = v == 1 ? 0.5 : 1.0;
    p.batch = 1 + (v & 1);
    p.token_major = v & 1;
    problem_tokens(&p, n, v);
    switch (kernel_signature(kernel)) {
    case SIGNATURE_sinusoidal:
        p.freqs.dim = n;
        p.first = v == 1 ? 63 : -1;
        problem_places(&p, n, v);
        break;
    case SIGNATURE_rope_table:
        p.freqs.dim = 2 * n;
        p.freqs.convention = POSENC_EXPONENT;
        p.first = v == 1 ? 63 : -1;
        problem_places(&p, n, v);
        break;
    case SIGNATURE_learned:
        p.dim = n;
        p.rows = p.tokens + 3;
        p.first = 1;
        break;
    case SIGNATURE_rope:
        p.rotary_dim = 2 * n;
        p.dim = 2 * n + tails[v];
        p.heads = 1 + v % 3;
        p.rows = p.tokens + 3;
        p.first = 1;
        p.transpose = v == 1;
        break;
    case SIGNATURE_alibi:
    case SIGNATURE_t5:
        problem_scores(&p, n, v);
        if (!has_x)
            p.batch = 1;
        break;
    }
    return p;
}

/* ---- One call ---- */

static void attribute(struct sweep *s, const struct guarded *g, enum property side)
{
    struct tally *t = s->tally;
    require(&t[INPUTS], !g->input_written, "%s", g->reason);
    require(&t[CANARIES], !g->overwritten, "%s", g->reason);
    require(&t[CONTROL], !g->control_left, "%s", g->reason);
    if (!g->input_written) {
        struct guarded only = *g;
        only.control_left = false;
        require_clean(&t[side], &only);
    }
}

static bool runs_clean(const struct guarded *g)
{
    return !g->crashed && g->status == POSENC_OK;
}

static void check_written(struct tally *t, const struct call *call, uint32_t canary)
{
    for (int o = 0; o < call->n_outputs; o++)
        for (int64_t r = 0; r < call->outputs[o].rows; r++) {
            const float *row = call_row(call, o, r);
            for (int64_t c = 0; c < call->outputs[o].width; c++)
                if (!require(t, bits_of(row[c]) != canary,
                             "%s: row %lld element %lld was not written", call->outputs[o].name,
                             (long long)r, (long long)c))
                    return;
        }
}

/* 2^-14 of the larger of the value and one: far more than any rounding, far less than a
 * neighbour's value. */
static bool grossly_right(float got, double want, double mass)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return (double)got == want;
    return fabs((double)got - want) <= 0x1p-14 * (1.0 + mass);
}

static void check_lengths(struct tally *t, const struct call *call)
{
    struct oracle *oracle = oracle_create(call);
    double *want = malloc(2 * sizeof *want * (size_t)(call->outputs[0].width + 1));
    for (int o = 0; oracle && want && o < call->n_outputs; o++)
        for (int64_t r = 0; r < call->outputs[o].rows; r++) {
            int64_t width = call->outputs[o].width;
            double *mass = want + width + 1;
            const float *got = call_row(call, o, r);
            oracle_row(oracle, o, r, want, mass);
            for (int64_t c = 0; c < width; c++)
                require(t, grossly_right(got[c], want[c], mass[c]),
                        "%s: row %lld element %lld is %.9g, not %.9g", call->outputs[o].name,
                        (long long)r, (long long)c, (double)got[c], want[c]);
        }
    free(want);
    oracle_destroy(oracle);
}

static void check_twice(struct sweep *s, struct call *call, const struct copy *first)
{
    call_reset(call);
    struct guarded g = guarded_run(call, s->run->backend, s->guard);
    struct copy again;
    if (!require(&s->tally[TWICE], runs_clean(&g), "the second call failed: %s", g.reason) ||
        !copy_outputs(&again, call))
        return;
    require_same_copy(&s->tally[TWICE], &again, first, "second call");
    copy_free(&again);
}

/* Five placements of the same call. */
static void sweep_problem(struct sweep *s, struct problem p, bool with_oracle)
{
    static const struct {
        enum guard_mode mode;
        enum property side;
        int64_t offset;
    } places[] = { { GUARD_END, END, 0 },
                   { GUARD_START, START, 0 },
                   { GUARD_END, END, 4 },
                   { GUARD_END, END, 16 },
                   { GUARD_START, START, 60 } };
    struct copy base = { .n = 0 };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct call call;
        p.offset_bytes = places[i].offset;
        for (int k = 0; k < PROPERTIES; k++)
            s->tally[k].problem = &p;
        guard_set_mode(s->guard, places[i].mode);
        struct memory memory = guard_memory(s->guard);
        enum posenc_status made = call_create(&call, &p, &memory);
        if (made != POSENC_OK) {
            /* An empty dimension may be refused by the plan; anything else must be made. */
            bool empty = p.freqs.dim == 0 || p.rotary_dim == 0;
            require(&s->tally[places[i].side], empty, "the call was not made: %s",
                    posenc_status_string(made));
            break;
        }
        bool has_element = call.outputs[0].rows > 0 && call.outputs[0].width > 0;
        uint32_t canary = has_element ? bits_of(*call_row(&call, 0, 0)) : 0;
        struct guarded g = guarded_run(&call, s->run->backend, s->guard);
        if (!has_element && !g.crashed && g.status == POSENC_ERR_SHAPE)
            g.status = POSENC_OK;
        attribute(s, &g, places[i].side);
        struct copy now = { .n = 0 };
        if (has_element && runs_clean(&g) && copy_outputs(&now, &call)) {
            if (base.n)
                require_same_copy(&s->tally[PLACEMENT], &now, &base, "other placement");
            if (!base.n && !p.in_place)
                check_written(&s->tally[WRITTEN], &call, canary);
            if (!base.n && with_oracle)
                check_lengths(&s->tally[LENGTHS], &call);
            if (!base.n)
                check_twice(s, &call, &now);
            if (!base.n)
                base = now, now.n = 0;
        }
        copy_free(&now);
        call_destroy(&call);
    }
    copy_free(&base);
    for (int k = 0; k < PROPERTIES; k++)
        s->tally[k].problem = NULL;
}

/* ---- Lengths and counts of rows ---- */

/* Plain C may have been vectorised to anything up to 16 lanes; one lane may be unrolled by
 * four. */
int64_t memory_lanes(const struct posenc_backend *backend)
{
    int64_t lanes = backend->lanes ? backend->lanes() : 16;
    return lanes < 4 ? 4 : lanes;
}

static void sweep_lengths(struct sweep *s, enum posenc_kernel kernel)
{
    int64_t lanes = memory_lanes(s->run->backend);
    for (int64_t n = 0; n <= 4 * lanes + 1; n++)
        for (int v = 0; v < MEMORY_VARIANTS; v++)
            sweep_problem(s, memory_problem(kernel, n, v), v < 2);
}

/* Rows of 3 vectors and a tail, in counts around the sizes kernels block by; 0 too. */
static void sweep_rows(struct sweep *s, enum posenc_kernel kernel)
{
    static const int64_t counts[] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 65 };
    int64_t lanes = memory_lanes(s->run->backend);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct problem p = memory_problem(kernel, lanes + 3, (int)(i % MEMORY_VARIANTS));
        p.tokens = p.queries = counts[i];
        p.rows = counts[i] + 3;
        sweep_problem(s, p, false);
        p.heads = counts[i] ? counts[i] : 1;
        p.tokens = p.queries = 2;
        if (kernel_signature(kernel) == SIGNATURE_rope ||
            kernel_signature(kernel) == SIGNATURE_t5)
            sweep_problem(s, p, false);
    }
}

/* ---- Stride 0 ---- */

static void edit_stride_zero(struct call *call, const void *user)
{
    (void)user;
    call_x(call)->stride[0] = 0;
}

static void edit_repeat_batch(struct call *call, const void *user)
{
    (void)user;
    struct posenc_tensor *x = call_x(call);
    int64_t rows = tensor_rows(x) / x->shape[0];
    for (int64_t r = rows; r < rows * x->shape[0]; r++)
        memcpy(tensor_row(x, r), tensor_row(x, r % rows),
               (size_t)x->shape[x->rank - 1] * sizeof(float));
}

static void check_broadcast(struct suite_run *run, enum posenc_kernel kernel)
{
    struct tally t;
    tally_begin(&t, run, kernel, "memory", "broadcast");
    if (!t.selected || !kernel_takes_x(kernel))
        return;
    for (int v = 0; v < 2; v++) {
        struct problem p = memory_problem(kernel, memory_lanes(run->backend) + 3, v);
        struct copy zero = { .n = 0 }, repeated = { .n = 0 };
        p.batch = 3;
        if (run_problem(&t, &p, edit_stride_zero, NULL, &zero) &&
            run_problem(&t, &p, edit_repeat_batch, NULL, &repeated))
            require_same_copy(&t, &zero, &repeated, "input of batch stride 0");
        copy_free(&zero);
        copy_free(&repeated);
    }
    tally_end(&t);
}

/* ---- The suite ---- */

static void sweep_kernel(struct suite_run *run, struct guard *guard, enum posenc_kernel kernel)
{
    struct sweep s = { .run = run, .guard = guard };
    for (int k = 0; k < PROPERTIES; k++) {
        tally_begin(&s.tally[k], run, kernel, "memory", property_name[k]);
        s.any = s.any || s.tally[k].selected;
    }
    if (!s.any)
        return;
    sweep_lengths(&s, kernel);
    sweep_rows(&s, kernel);
    for (int k = 0; k < PROPERTIES; k++)
        tally_end(&s.tally[k]);
}

void suite_memory(struct suite_run *run)
{
    struct guard *guard = guard_create();
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        enum posenc_kernel kernel = (enum posenc_kernel)k;
        if (guard)
            sweep_kernel(run, guard, kernel);
        check_broadcast(run, kernel);
        check_lanes(run, kernel);
        check_refusals(run, kernel);
    }
    guard_destroy(guard);
}
