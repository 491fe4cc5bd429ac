/*
 * Prepared calls of the suite: they answer as the plain call, and, with other pointers and
 * positions, as a plain call that has those.
 */
#define POSENC_EXPERIMENTAL
#include "calls.h"

#include <stdlib.h>
#include <string.h>

static struct posenc_prepared *made;

/* Where the arguments have what a run takes. */
struct taken {
    struct posenc_const_tensor *x;
    struct posenc_tensor *out;
    struct posenc_positions *positions;
};

static struct taken find_taken(const struct signature *s, union arguments *args)
{
    struct taken taken = { NULL, NULL, NULL };
    for (EACH_TENSOR(row, s)) {
        if (row->role == ROLE_X)
            taken.x = row_argument(args, row);
        else if (row->role == ROLE_OUTPUT)
            taken.out = row_argument(args, row);
        else if (row->form == FORM_POSITIONS)
            taken.positions = row_argument(args, row);
    }
    return taken;
}

static enum posenc_status run_made(const struct posenc_backend *backend,
                                   enum posenc_kernel kernel, const struct handed *handed)
{
    const struct signature *s = signature_of(kernel);
    union arguments args;
    (void)backend;
    s->blank(&args);
    memcpy(&args, handed->args, handed->bytes < s->size ? handed->bytes : s->size);
    const struct taken t = find_taken(s, &args);
    return t.positions->kind == POSENC_OFFSET
               ? posenc_run(made, t.x->data, t.out->data, t.positions->offset)
               : posenc_run_at(made, t.x->data, t.out->data, t.positions->data);
}

static enum posenc_status prepare_and_run(const struct posenc_backend *backend,
                                          enum posenc_kernel kernel,
                                          const struct handed *handed)
{
    const enum posenc_status status = posenc_prepare(backend, kernel, handed->args, &made);
    return status ? status : run_made(backend, kernel, handed);
}

/* posenc.h names the kernels: of tokens, with one axis. */
static bool can_be_prepared(const struct facts *f)
{
    const bool several = f->spec && f->spec->mrope_section[1] != 0;
    return !several && (f->kernel == POSENC_KERNEL_sinusoidal ||
                        f->kernel == POSENC_KERNEL_sinusoidal_add ||
                        f->kernel == POSENC_KERNEL_learned_add ||
                        (kernel_rotates(f->kernel) && !kernel_has_freqs(f->kernel)));
}

/* ---- Other pointers ---- */

enum { OUT_NULL, OUT_ODD, IN_PLACE, X_OTHERWISE, OUT_IN_INPUT, OFFSET, DIVERSIONS = 7 };

/* Changes what a run takes; returns true if the call is then rejected for sure.  What may be
 * accepted has its elements in memory. */
static bool divert(struct changed_call *c, int how, struct draws *d)
{
    const struct taken t = find_taken(c->after.signature, &c->after.args);
    const bool same = t.x->data == t.out->data;
    const void *out = t.out->data;
    switch (how) {
    case OUT_NULL:
        t.out->data = NULL;
        return true;
    case OUT_ODD:
        t.out->data = (char *)t.out->data + 1;
        t.x->data = same ? t.out->data : t.x->data;
        return true;
    case IN_PLACE:
        t.x->data = t.out->data;
        return !kernel_takes_x(c->after.kernel);
    case X_OTHERWISE:
        t.x->data = t.x->data ? NULL : t.out->data;
        return true;
    case OUT_IN_INPUT:
        for (EACH_OPERAND(o, &c->after))
            if (o->row->role == ROLE_INPUT && o->row->form == FORM_TENSOR && draw_one_in(d, 2))
                t.out->data = o->data;
        return t.out->data != out;
    default:
        if (t.positions->kind == POSENC_OFFSET)
            t.positions->offset = draw_whole(d, draw_one_in(d, 2) ? t.positions->offset
                                                                  : c->before.extent[DIM_ROW]);
        return false;
    }
}

static bool diverted_is_right(struct changed_call *c, const struct call_test *test,
                              const struct posenc_backend *backend, int how,
                              char complaint[CALL_TEXT])
{
    const union arguments before = c->after.args;
    const struct verdict verdict = c->verdict;
    struct draws d = { .seed = mix64(test->seed, (uint64_t)how) };
    c->verdict.must = divert(c, how, &d) ? ~1u : 0u;
    struct reply plain = reply_take(c, test, backend, NULL, true, true),
                 run = reply_take(c, test, backend, run_made, true, true);
    const bool right = reply_is_right(c, &plain, ~1u, complaint) &&
                       reply_is_right(c, &run, ~1u, complaint) &&
                       reply_is_same(&run, &plain, "a prepared call", complaint);
    free(plain.values);
    free(run.values);
    c->after.args = before;
    c->verdict = verdict;
    return right;
}

/* ---- Both ---- */

/* Preparing rejects a call with nothing to do, which the plain call accepts. */
static bool agrees(struct changed_call *c, const struct call_test *test,
                   const struct posenc_backend *backend, const struct reply *plain,
                   char complaint[CALL_TEXT])
{
    const struct tensor_row *row = signature_output(c->after.signature, 0);
    const bool empty = c->after.of[row - c->after.signature->tensors].empty;
    struct reply a = reply_take(c, test, backend, prepare_and_run, true, plain->values);
    bool right = true;
    if (plain->how.status == POSENC_OK && empty)
        right = a.how.status == POSENC_ERR_SHAPE ||
                complain(complaint, "prepared with nothing to do");
    else
        right = reply_is_right(c, &a, ~1u, complaint) &&
                reply_is_same(&a, plain, "a prepared call", complaint);
    for (int how = 0; right && !a.how.status && test->seed % 8 == 0 && how < DIVERSIONS; how++)
        right = diverted_is_right(c, test, backend, how, complaint);
    free(a.values);
    return right;
}

bool prepared_is_right(struct changed_call *c, const struct call_test *test,
                       const struct posenc_backend *backend, const struct reply *plain,
                       char complaint[CALL_TEXT])
{
    const bool right =
        !can_be_prepared(&c->after) || agrees(c, test, backend, plain, complaint);
    posenc_prepared_destroy(made);
    made = NULL;
    return right;
}
