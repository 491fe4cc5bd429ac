/*
 * Suite of memory accesses, with a result for each kernel, dtype and case:
 *
 *   guard-end, guard-start   no access past either end of a buffer, at every length from 0 to 4 W + 1 of the vectorised
 *                            dimension (W: vector width), and at several counts of rows
 *   canaries                 nothing is written around the buffers or between strided rows
 *   read-only-inputs         inputs are not written
 *   lengths                  every value is written, and within the limits of accuracy, also in tails and at each count
 *                            of rows
 *   placement                the same bits at byte offsets 0, 4 (2 for 16-bit types), 16 and 60, at either end of a
 *                            page, and with two tensors woven into each other
 *   twice                    the same bits in a second call
 *   mxcsr                    rounding mode, flush-to-zero and trap masks do not change, whether they have the default
 *                            or other values; raised exceptions stay raised
 *   sizes, far-strides, many-rows, values, gaps                           sizes.c
 */
#include "suites.h"
#include "conformance/engine/judge.h"
#include "conformance/problem/cases.h"
#include "conformance/problem/signature.h"

#include <stdlib.h>
#include <string.h>

enum memory_case {
    GUARD_AT_END,
    GUARD_AT_START,
    CANARIES,
    INPUTS,
    LENGTHS,
    PLACEMENT,
    TWICE,
    CONTROL,
    MEMORY_CASES
};
static const char *const case_name[MEMORY_CASES] = {
    "guard-end", "guard-start", "canaries", "read-only-inputs",
    "lengths",   "placement",   "twice",    "mxcsr",
};

/* Cases of one kernel and dtype, which share their calls. */
struct sweep {
    struct tally tally[MEMORY_CASES];
    enum posenc_dtype dtype;
    struct suite_run *run;
    struct guard *guard;
    bool is_selected; /* true if any of the cases is */
    int weave_turn;   /* counts woven calls, which alternate between the ways to weave */
};

/* Returns true if the problem has no element. */
static bool is_empty(const struct problem *p)
{
    if (kernel_on_scores(p->kernel))
        return p->queries < 1 || p->keys < 1;
    if (kernel_has_freqs(p->kernel))
        return p->freqs.dim < 1;
    return (kernel_rotates(p->kernel) ? p->rotary_dim : p->dim) < 1;
}

/* ---- One call ---- */

static void require_guarded(struct sweep *s, const struct guard_result *g,
                            enum memory_case side)
{
    struct tally *t = s->tally;
    require(&t[INPUTS], !g->input_written, "%s", g->reason);
    require(&t[CANARIES], !g->overwritten, "%s", g->reason);
    require(&t[CONTROL], !g->control_left, "%s", g->reason);
    if (!g->input_written) {
        struct guard_result only = *g;
        only.control_left = false;
        require_clean(&t[side], &only);
    }
}

static bool is_clean(const struct guard_result *g)
{
    return !g->crashed && g->status == POSENC_OK;
}

/* Returns the outputs in the order of their rows, to be freed; NULL: out of memory. */
static float *copy_outputs(const struct call *call)
{
    size_t n = 0, used = 0;
    for (int o = 0; o < call->n_outputs; o++)
        n += (size_t)(call->outputs[o].rows * call->outputs[o].width);
    float *copy = malloc(n * sizeof *copy);
    for (int o = 0; copy && o < call->n_outputs; o++)
        for (int64_t r = 0; r < call->outputs[o].rows; r++) {
            const size_t width = (size_t)call->outputs[o].width;
            memcpy(copy + used, call_row(call, o, r), width * sizeof *copy);
            used += width;
        }
    return copy;
}

static void require_same_copy(struct tally *t, const struct call *call, const float *want,
                              const char *what)
{
    for (int o = 0; o < call->n_outputs; o++)
        for (int64_t r = 0; r < call->outputs[o].rows; r++) {
            require_same_bits(t, call_row(call, o, r), want, call->outputs[o].width, what);
            want += call->outputs[o].width;
        }
}

static void check_twice(struct sweep *s, struct call *call, const float *first)
{
    call_reset(call);
    struct guard_result g = guard_run(call, s->run->backend, s->guard);
    if (require(&s->tally[TWICE], is_clean(&g), "the second call failed: %s", g.reason))
        require_same_copy(&s->tally[TWICE], call, first, "second call");
}

/* Accepts SIGFPE: division by zero traps in those modes, which is the caller's fault. */
void require_modes_kept(struct tally *t, struct call *call, struct guard *guard)
{
    call_reset(call);
    struct guard_result g = guard_run_in_modes(call, t->run->backend, guard);
    const bool trapped = g.crashed && strncmp(g.reason, "SIGFPE", 6) == 0;
    require(t, trapped || !(g.crashed || g.control_left), "for a caller in other modes: %s",
            g.reason);
}

/* Placements of a call's tensors: flush with either end of their pages, at other offsets, and woven. In a set of
 * placements, bit i stands for placements[i]. */
struct placement {
    enum guard_mode mode;
    enum memory_case guard_case; /* the case that an access outside of a buffer fails */
    int64_t offset_bytes;
};
static const struct placement placements[] = {
    { GUARD_END, GUARD_AT_END, 0 },      { GUARD_START, GUARD_AT_START, 0 },
    { GUARD_END, GUARD_AT_END, 4 },      { GUARD_END, GUARD_AT_END, 16 },
    { GUARD_START, GUARD_AT_START, 60 }, { GUARD_END, GUARD_AT_END, 0 },
};
enum { N_PLACEMENTS = sizeof placements / sizeof *placements };
enum { AT_END = 1, AT_START = 2, ENDS = 3, NEXT_TO_END = 4, WOVEN = 32, ALL_PLACES = 63 };

/* Returns true if two tensors are woven; in a quick run only two outputs are. */
static bool is_woven(const struct sweep *s, const struct problem *p)
{
    const struct tensor_spec *other = p->in_place ? NULL : kernel_woven_row(p->kernel);
    return other && (s->run->options->full || other->role == ROLE_OUTPUT);
}

/* Checks the outputs of a call. *first holds those of the first placement, and is NULL before that. */
static void check_outputs(struct sweep *s, struct call *call, float **first)
{
    if (*first) {
        require_same_copy(&s->tally[PLACEMENT], call, *first, "other placement");
    } else if ((*first = copy_outputs(call)) != NULL) {
        require_within_limits(&s->tally[LENGTHS], call, s->run->backend);
        check_twice(s, call, *first);
        require_modes_kept(&s->tally[CONTROL], call, s->guard);
    }
}

/* Runs a problem at a placement, and checks all cases. Returns false if the call cannot be created. */
static bool run_placement(struct sweep *s, const struct problem *p, const struct placement *at,
                          float **first)
{
    struct call call;
    struct tensor_allocator memory = guard_memory(s->guard, at->mode);
    if (at != placements && !s->run->options->full)
        memory.seal = NULL; /* saves time: writes to inputs then show as changed canaries */
    if (call_create_by(s->run->implementation, &call, p, &memory) != POSENC_OK) {
        char text[200]; /* only an empty dimension may be rejected */
        posenc_error_text(&call.error, text, sizeof text);
        require(&s->tally[at->guard_case], is_empty(p), "the call was not made: %s", text);
        return false;
    }
    const bool has_element = call.outputs[0].rows > 0 && call.outputs[0].width > 0;
    struct guard_result g = guard_run(&call, s->run->backend, s->guard);
    if (!has_element && !g.crashed && g.status == POSENC_ERR_SHAPE)
        g.status = POSENC_OK;
    require_guarded(s, &g, at->guard_case);
    if (has_element && is_clean(&g))
        check_outputs(s, &call, first);
    call_destroy(&call);
    return true;
}

/* Runs a problem at a set of placements. */
static void sweep_problem(struct sweep *s, struct problem p, int places)
{
    float *first = NULL;
    bool is_created = true;
    for (int k = 0; k < MEMORY_CASES; k++)
        s->tally[k].problem = &p;
    for (int i = 0; i < N_PLACEMENTS && is_created; i++) {
        const bool weaves = 1 << i == WOVEN;
        const int64_t offset = placements[i].offset_bytes;
        if (!(places >> i & 1) || (weaves && !is_woven(s, &p)))
            continue;
        p.woven = weaves ? (enum woven)(1 + s->weave_turn++ % WOVEN_TENSORS) : WOVEN_NONE;
        p.offset_bytes = offset == 4 && s->dtype != POSENC_DTYPE_F32 ? 2 : offset;
        is_created = run_placement(s, &p, &placements[i], &first);
    }
    for (int k = 0; k < MEMORY_CASES; k++)
        s->tally[k].problem = NULL;
    free(first);
}

/* Does the same in the dtype of the sweep. */
static void sweep_typed(struct sweep *s, struct problem p, int places)
{
    p.dtype = p.values_dtype = s->dtype;
    sweep_problem(s, p, places);
}

/* ---- Lengths and counts of rows ---- */

/* Returns the placements of length n and variant v in a quick run. At each length one variant has four placements. Up
 * to two vectors the other variants have one, alternately at either end of a page. In 16 bits only the one variant
 * runs, beyond a vector at every other length for each dtype. */
static int quick_places(enum posenc_dtype dtype, int64_t lanes, int64_t n, int v)
{
    bool chosen = v == (n + n / LENGTH_VARIANTS) % LENGTH_VARIANTS;
    if (dtype != POSENC_DTYPE_F32)
        return chosen && (n <= lanes + 1 || n % 2 == (dtype == POSENC_DTYPE_BF16))
                   ? ENDS | NEXT_TO_END | WOVEN
                   : 0;
    if (chosen)
        return ENDS | NEXT_TO_END | WOVEN;
    if (n > 2 * lanes + 1)
        return 0;
    return (n + v) % 2 ? AT_START : AT_END;
}

/* Returns the length after n. If vectors are longer than those of x86, a quick run takes only some
 * lengths beyond two vectors, odd and even, and all next to four vectors. */
static int64_t next_length(const struct sweep *s, int64_t lanes, int64_t n)
{
    const int64_t step = lanes / 16 + 1, last = 4 * lanes - 1;
    if (s->run->options->full || lanes <= 16 || n <= 2 * lanes || n >= last)
        return n + 1;
    return n + step < last ? n + step : last;
}

static void sweep_lengths(struct sweep *s, enum posenc_kernel kernel)
{
    int64_t lanes = backend_vector_lanes(s->run->backend);
    for (int64_t n = 0; n <= 4 * lanes + 1; n = next_length(s, lanes, n))
        for (int v = 0; v < LENGTH_VARIANTS; v++) {
            int at = s->run->options->full ? ALL_PLACES : quick_places(s->dtype, lanes, n, v);
            if (at)
                sweep_typed(s, problem_of_length(kernel, n, v), at);
        }
}

/* Checks rows of a vector and a tail, in counts around the block sizes of kernels, and 0. */
static void sweep_rows(struct sweep *s, enum posenc_kernel kernel)
{
    static const int64_t counts[] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 65 };
    const struct signature *signature = signature_of(kernel);
    int64_t lanes = backend_vector_lanes(s->run->backend);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int of_heads = 0; of_heads < 2; of_heads++) {
            struct problem p = problem_of_length(kernel, lanes + 3, (int)(i % LENGTH_VARIANTS));
            p.tokens = p.queries = of_heads ? 2 : counts[i];
            if (of_heads)
                p.heads = counts[i] ? counts[i] : 1;
            p.rows = counts[i] + 3;
            p.distances = 0;
            if (p.relative == RELATIVE_TRANSFORMER_XL)
                p.query_offset = p.keys - p.queries;
            /* derive() would set the number of queries by other fields. */
            if (of_heads ? kernel_rotates(kernel) || kernel_on_scores(kernel)
                         : !signature->derive)
                sweep_typed(s, p, s->run->options->full ? ALL_PLACES : ENDS);
        }
}

/* ---- The suite ---- */

/* Returns false if no case is selected. */
static bool sweep_begin(struct sweep *s, enum posenc_kernel kernel)
{
    for (int k = 0; k < MEMORY_CASES; k++)
        s->is_selected |= tally_begin(&s->tally[k], s->run, kernel, s->dtype, "memory", NULL,
                                      "%s", case_name[k]);
    return s->is_selected;
}

void memory_sweep(struct suite_run *run, const struct problem *problem)
{
    struct sweep s = { .run = run, .guard = guard_create(), .dtype = problem->dtype };
    if (s.guard && sweep_begin(&s, problem->kernel)) {
        sweep_problem(&s, *problem, ALL_PLACES);
        for (int k = 0; k < MEMORY_CASES; k++) {
            if (!s.tally[k].result.checked)
                tally_skip(&s.tally[k], "this problem has nothing of the kind");
            tally_end(&s.tally[k]);
        }
    }
    guard_destroy(s.guard);
}

static void sweep_kernel(struct suite_run *run, struct guard *guard, enum posenc_kernel kernel,
                         enum posenc_dtype dtype)
{
    struct sweep s = { .run = run, .guard = guard, .dtype = dtype };
    if (!sweep_begin(&s, kernel))
        return;
    sweep_lengths(&s, kernel);
    if (dtype == POSENC_DTYPE_F32 || run->options->full)
        sweep_rows(&s, kernel);
    for (int k = 0; k < MEMORY_CASES; k++)
        tally_end(&s.tally[k]);
}

void suite_memory(struct suite_run *run, enum posenc_kernel kernel)
{
    struct guard *guard = guard_create();
    for (int dtype = POSENC_DTYPE_F32; guard && dtype <= POSENC_DTYPE_BF16; dtype++)
        sweep_kernel(run, guard, kernel, (enum posenc_dtype)dtype);
    guard_destroy(guard);
    check_sizes(run, kernel);
}
