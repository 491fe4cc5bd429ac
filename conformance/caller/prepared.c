/*
 * Prepared calls: made of a set they answer as the plain call, and once made, with other pointers
 * and positions, as a plain call with those.
 */
#define POSENC_EXPERIMENTAL
#include "caller.h"

#include <stdlib.h>
#include <string.h>

static struct posenc_prepared *made;

/* Where in the arguments stands what a run takes. */
struct run_takes {
    struct posenc_const_tensor *x;
    struct posenc_tensor *out;
    struct posenc_positions *positions;
};

static struct run_takes run_takes(const struct signature *s, union arguments *args)
{
    struct run_takes takes = { NULL, NULL, NULL };
    for (EACH_TENSOR(row, s)) {
        if (row->role == ROLE_X)
            takes.x = row_argument(args, row);
        else if (row->role == ROLE_OUTPUT)
            takes.out = row_argument(args, row);
        else if (row->form == FORM_POSITIONS)
            takes.positions = row_argument(args, row);
    }
    return takes;
}

/* With what stands in the arguments that are handed on. */
static enum posenc_status run_made(const struct posenc_backend *backend,
                                   enum posenc_kernel kernel, const struct handed *handed)
{
    const struct signature *s = signature_of(kernel);
    union arguments args;
    (void)backend;
    s->blank(&args);
    memcpy(&args, handed->args, handed->bytes < s->size ? handed->bytes : s->size);
    const struct run_takes takes = run_takes(s, &args);
    return takes.positions->kind == POSENC_OFFSET
               ? posenc_run(made, takes.x->data, takes.out->data, takes.positions->offset)
               : posenc_run_at(made, takes.x->data, takes.out->data, takes.positions->data);
}

static enum posenc_status prepare_and_run(const struct posenc_backend *backend,
                                          enum posenc_kernel kernel,
                                          const struct handed *handed)
{
    const enum posenc_status status = posenc_prepare(backend, kernel, handed->args, &made);
    return status ? status : run_made(backend, kernel, handed);
}

/* Those that posenc.h names: of tokens, with one axis. */
static bool can_be_prepared(const struct set *set)
{
    const bool several = set->after.spec && set->after.spec->mrope_section[1] != 0;
    return !several && (set->kernel == POSENC_KERNEL_sinusoidal ||
                        set->kernel == POSENC_KERNEL_sinusoidal_add ||
                        set->kernel == POSENC_KERNEL_learned_add ||
                        (kernel_rotates(set->kernel) && !kernel_has_freqs(set->kernel)));
}

/* ---- With other pointers ---- */

/* Changes what a run takes; whether the call is then surely refused.  What is not has elements where memory is. */
static bool divert(struct set *set, struct run_takes takes, int i, struct draws *d)
{
    const struct described *of = set->after.of;
    const bool x_is_out = takes.x->data == takes.out->data;
    switch (i) {
    case 0:
        takes.out->data = NULL;
        return true;
    case 1:
        takes.out->data = (char *)takes.out->data + 1;
        takes.x->data = x_is_out ? takes.out->data : takes.x->data;
        return true;
    case 2: /* in place, or woven */
        takes.x->data = takes.out->data;
        return !kernel_takes_x(set->kernel);
    case 3:
        takes.x->data = takes.x->data ? NULL : takes.out->data;
        return true;
    case 4: /* in what else is read */
        for (int r = 0; r < MOST_TENSORS && of[r].row; r++)
            if (of[r].row->role == ROLE_INPUT && of[r].row->form == FORM_TENSOR &&
                draw_one_in(d, 2))
                takes.out->data = of[r].data;
        return true;
    default:
        if (takes.positions->kind != POSENC_OFFSET)
            return false;
        takes.positions->offset = draw_whole(
            d, draw_one_in(d, 2) ? takes.positions->offset : set->before.extent[DIM_ROW]);
        return false;
    }
}

static bool diverted_agrees(struct set *set, struct grounds *grounds,
                            const struct posenc_backend *backend, int i,
                            char complaint[MOST_TEXT])
{
    const union arguments before = set->after.args;
    const struct verdict verdict = set->verdict;
    struct draws d = { .seed = mix64(set->seed, set->number), .next = (uint64_t)i << 32 };
    struct results first = { 0 };
    const struct run_takes takes = run_takes(set->after.signature, &set->after.args);
    const void *out = takes.out->data;
    const bool refused = divert(set, takes, i, &d) && (i != 4 || takes.out->data != out);
    set->verdict = (struct verdict){ refused ? ~1u : 0u, ~1u };
    const struct answer plain = answer_of(set, grounds, backend, true, NULL);
    bool fine = answer_is_fine(set, &plain, ~1u, complaint);
    if (fine && plain.how.status == POSENC_OK)
        results_agree(set, &first, backend, complaint);
    const struct answer run = answer_of(set, grounds, backend, true, run_made);
    fine = fine && answer_is_fine(set, &run, ~1u, complaint);
    if (fine && (run.how.status != plain.how.status ||
                 (run.told && !same_error(&run.error, &plain.error))))
        fine =
            complain(complaint, "prepared, other pointers (%d): answered %d, the plain call %d",
                     i, (int)run.how.status, (int)plain.how.status);
    fine = fine && (plain.how.status || results_agree(set, &first, backend, complaint));
    free(first.values);
    set->after.args = before;
    set->verdict = verdict;
    return fine;
}

/* ---- Both ---- */

/* As the plain call, but that nothing to do is refused when it is made. */
static bool agrees(struct set *set, struct grounds *grounds,
                   const struct posenc_backend *backend, const struct answer *plain,
                   struct results *results, char complaint[MOST_TEXT])
{
    const struct tensor_row *row = signature_output(set->after.signature, 0);
    const bool empty = set->after.of[row - set->after.signature->tensors].empty;
    const struct answer a = answer_of(set, grounds, backend, true, prepare_and_run);
    if (plain->how.status == POSENC_OK && empty)
        return a.how.status == POSENC_ERR_SHAPE ||
               complain(complaint, "prepared with nothing to do");
    if (!answer_is_fine(set, &a, set->verdict.may, complaint))
        return false;
    if (a.how.status != plain->how.status || (a.told && !same_error(&a.error, &plain->error)))
        return complain(complaint, "prepared: answered %d, the plain call %d",
                        (int)a.how.status, (int)plain->how.status);
    bool fine = a.how.status || results_agree(set, results, backend, complaint);
    /* One of several backends has its turn. */
    const uint64_t turn =
        mix64(set->number, (uint64_t)backend->name[0] + (uint64_t)strlen(backend->name));
    for (int i = 0; fine && !a.how.status && turn % 8 == 0 && i < 7; i++)
        fine = diverted_agrees(set, grounds, backend, i, complaint);
    return fine;
}

bool prepared_agrees(struct set *set, struct grounds *grounds,
                     const struct posenc_backend *backend, const struct answer *plain,
                     struct results *results, char complaint[MOST_TEXT])
{
    const bool agree =
        !can_be_prepared(set) || agrees(set, grounds, backend, plain, results, complaint);
    posenc_prepared_destroy(made);
    made = NULL;
    return agree;
}
