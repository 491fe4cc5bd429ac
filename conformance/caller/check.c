/*
 * What is checked of a set: that each backend answers as the rules say, alike, and touches nothing else.
 */
#define _GNU_SOURCE
#include "caller.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Arguments in memory of their own ---- */

/* What the front-ends below are to hand on. */
static struct handed handed;

#define POSENC_KERNEL(name, signature, ...)                                                    \
    static enum posenc_status hand_##name(const struct posenc_backend *backend,                \
                                          const struct posenc_##signature##_args *args)        \
    {                                                                                          \
        (void)args;                                                                            \
        return handed.runs ? handed.runs(backend, POSENC_KERNEL_##name, &handed)               \
                           : posenc_##name(backend, (const void *)handed.args);                \
    }
#include <posenc_kernels.def>
#undef POSENC_KERNEL

static const struct implementation handing = {
#define POSENC_KERNEL(name, ...) .name = hand_##name,
#include <posenc_kernels.def>
#undef POSENC_KERNEL
};

enum { ROOM = 1 << 15 };

/* At the end of a page; members after those that are known are zero or not. */
static bool hand_arguments(const struct set *set, bool with_error)
{
    static char *page;
    const size_t known = set->after.signature->size, most = 8 * known;
    const size_t bytes = set->size <= most ? set->size : known;
    struct posenc_error *error = with_error ? &handed.error : NULL;
    if (!page) {
        page = mmap(NULL, 2 * (size_t)ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED || mprotect(page, ROOM, PROT_READ | PROT_WRITE) != 0)
            return false;
    }
    handed.bytes = bytes < sizeof(size_t) ? sizeof(size_t) : bytes;
    char *at = page + ROOM - (handed.bytes + 7) / 8 * 8;
    memset(at, set->filled ? 0x40 : 0, handed.bytes);
    memcpy(at, &set->after.args, handed.bytes < known ? handed.bytes : known);
    if (handed.bytes >= 2 * sizeof(void *))
        memcpy(at + sizeof(size_t), &error, sizeof error);
    memset(&handed.error, 0x5a, sizeof handed.error);
    handed.args = at;
    return true;
}

static bool is_told(void)
{
    struct posenc_error untouched;
    memset(&untouched, 0x5a, sizeof untouched);
    return memcmp(&handed.error, &untouched, sizeof untouched) != 0;
}

/* ---- A call ---- */

struct answer answer_of(struct set *set, struct grounds *grounds,
                        const struct posenc_backend *backend, bool with_error,
                        enum posenc_status (*runs)(const struct posenc_backend *backend,
                                                   enum posenc_kernel kernel,
                                                   const struct handed *handed))
{
    struct call *call = set->base;
    struct answer a = { .how.status = POSENC_ERR_MEMORY };
    const bool refused = set->verdict.must != 0;
    set_restore(set);
    if (!hand_arguments(set, with_error))
        return a;
    handed.runs = runs;
    call->implementation = &handing;
    call->n_outputs = 0;
    for (int r = 0; r < MOST_TENSORS && set->after.of[r].row; r++) {
        const struct described *d = &set->after.of[r];
        if (d->row->role != ROLE_OUTPUT)
            continue;
        struct output *out = &call->outputs[call->n_outputs++];
        /* Where one output is empty, a call is accepted whatever the strides of another, and writes
         * nothing. */
        const bool in_rows = d->n > 0 && (d->stride[d->n - 1] == 1 || d->shape[d->n - 1] == 1),
                   may_write = !refused && in_rows && d->backed && d->sound && !d->empty;
        *out = (struct output){
            .name = d->row->name,
            .tensor =
                *(const struct posenc_tensor *)(const void *)((const char *)&set->after.args +
                                                              d->row->offset)
        };
        out->rows = may_write ? storage_rows(&out->tensor) : 0;
        out->width = may_write ? out->tensor.shape[out->tensor.rank - 1] : 0;
    }
    a.how = guarded_run(call, backend, grounds->guard);
    call->implementation = &implementation_library;
    a.error = handed.error;
    a.told = is_told();
    const int row = a.how.crashed && !refused ? grounds_row(grounds, a.how.address) : -1;
    const struct described *d = row < 0 ? NULL : &set->after.of[row];
    a.nowhere = d && d->row && d->there && d->sound && !d->empty && !d->backed;
    return a;
}

/* ---- One answer ---- */

bool complain(char complaint[MOST_TEXT], const char *format, ...)
{
    va_list more;
    va_start(more, format);
    vsnprintf(complaint, MOST_TEXT, format, more);
    va_end(more);
    return false;
}

bool refusal_is_told(enum posenc_status status, const struct posenc_error *e,
                     char complaint[MOST_TEXT])
{
    char text[512], short_text[8];
    if (e->status != status || !e->what || !*e->what)
        return complain(complaint, "refused with %d, told of %d", (int)status, (int)e->status);
    const size_t length = posenc_error_text(e, text, sizeof text);
    if (length == 0 || length >= sizeof text || strlen(text) != length ||
        strncmp(text, e->what, strlen(e->what)) != 0)
        return complain(complaint, "the text of the refusal is \"%s\"", text);
    if (posenc_error_text(e, short_text, sizeof short_text) != length ||
        strncmp(text, short_text, sizeof short_text - 1) != 0)
        return complain(complaint, "the text is another one where it is cut: \"%s\"", text);
    if (isnan(e->least) || isnan(e->most) ||
        (e->least <= e->most && e->value >= e->least && e->value <= e->most))
        return complain(complaint, "refused though what would be accepted holds it: %s", text);
    return true;
}

static bool is_unchanged(const struct set *set)
{
    for (int r = 0; r < MOST_TENSORS; r++)
        if (set->saved[r] && memcmp(set->saved[r], set->buffer[r], set->bytes[r]) != 0)
            return false;
    return true;
}

bool answer_is_fine(const struct set *set, const struct answer *a, unsigned may,
                    char complaint[MOST_TEXT])
{
    const unsigned must = set->verdict.must;
    const enum posenc_status status = a->how.status;
    if (a->nowhere)
        return true;
    if (a->how.crashed || a->how.overwritten || a->how.control_left)
        return complain(complaint, "%s (answered %d)", a->how.reason, (int)status);
    if (status == POSENC_OK && must)
        return complain(complaint, "accepted, where one of the statuses %#x was due", must);
    if (status != POSENC_OK && !((must | may) >> status & 1u))
        return complain(complaint, "refused, \"%s\": %s", posenc_status_string(status),
                        a->told ? a->error.what : "no word of it");
    if (status == POSENC_OK)
        return !a->told || complain(complaint, "accepted, and yet the error was written");
    if (!is_unchanged(set))
        return complain(complaint, "refused, \"%s\", and yet written",
                        posenc_status_string(status));
    return set->size < 2 * sizeof(void *) || refusal_is_told(status, &a->error, complaint);
}

bool same_error(const struct posenc_error *a, const struct posenc_error *b)
{
    return a->status == b->status && strcmp(a->what, b->what) == 0 &&
           memcmp(&a->value, &b->value, sizeof a->value) == 0 &&
           memcmp(&a->least, &b->least, sizeof a->least) == 0 &&
           memcmp(&a->most, &b->most, sizeof a->most) == 0;
}

/* ---- Results ---- */

enum { MOST_FAMILIES = 8 };

static int64_t gather(const struct set *set, float *to)
{
    int64_t n = 0;
    for (int r = 0; r < MOST_TENSORS && set->after.of[r].row; r++) {
        const struct described *d = &set->after.of[r];
        const struct posenc_tensor *t =
            (const struct posenc_tensor *)(const void *)((const char *)&set->after.args +
                                                         d->row->offset);
        if (d->row->role != ROLE_OUTPUT || !d->backed || !d->sound || d->empty)
            continue;
        const int64_t width = t->shape[t->rank - 1], rows = storage_rows(t);
        for (int64_t row = 0; row < rows && to; row++) {
            const void *at = storage_row(t, row);
            for (int64_t c = 0; c < width; c++)
                to[n + row * width + c] = storage_get(t->dtype, at, c);
        }
        n += rows * width;
    }
    return n;
}

bool results_agree(const struct set *set, struct results *first,
                   const struct posenc_backend *backend, char complaint[MOST_TEXT])
{
    const int64_t n = gather(set, NULL);
    float *values = malloc((size_t)n * sizeof *values + 1);
    if (!values)
        return true;
    gather(set, values);
    if (!first->family) {
        *first = (struct results){ backend->family, values, n };
        return true;
    }
    bool same = n == first->n;
    for (int64_t i = 0; same && i < n; i++) {
        same = float_to_bits(values[i]) == float_to_bits(first->values[i]) ||
               (isnan(values[i]) && isnan(first->values[i]));
        if (!same)
            complain(complaint, "element %lld is %.9g, and of another of its family %.9g",
                     (long long)i, (double)values[i], (double)first->values[i]);
    }
    free(values);
    return same;
}

static struct results *results_of(struct results all[MOST_FAMILIES],
                                  const struct posenc_backend *backend)
{
    for (int i = 0; i < MOST_FAMILIES; i++)
        if (!all[i].family || strcmp(all[i].family, backend->family) == 0)
            return &all[i];
    return NULL;
}

/* ---- Every backend ---- */

/* Of a call that has 16 bits somewhere, and a backend that takes none. */
static unsigned also_may(const struct posenc_backend *backend)
{
    return backend->f16_bf16 ? 0u : STATUS(DTYPE);
}

static bool backend_agrees(struct set *set, struct grounds *grounds,
                           const struct posenc_backend *backend, struct answer *first,
                           struct results *results, char complaint[MOST_TEXT])
{
    const struct answer a = answer_of(set, grounds, backend, true, NULL);
    if (!answer_is_fine(set, &a, set->verdict.may | also_may(backend), complaint))
        return false;
    if (a.how.status == POSENC_ERR_DTYPE && !backend->f16_bf16)
        return true;
    if (!first->told && first->how.status == POSENC_ERR_MEMORY)
        *first = a;
    if (a.nowhere != first->nowhere || (!a.nowhere && a.how.status != first->how.status) ||
        (a.told && first->told && !same_error(&a.error, &first->error)))
        return complain(complaint, "answered %d, other backends %d", (int)a.how.status,
                        (int)first->how.status);
    struct results *family = backend->contracts ? NULL : results_of(results, backend);
    if (a.how.status == POSENC_OK && !a.nowhere && family &&
        !results_agree(set, family, backend, complaint))
        return false;
    struct results none = { 0 };
    const bool same = a.nowhere || prepared_agrees(set, grounds, backend, &a,
                                                   family ? family : &none, complaint);
    free(none.values);
    return same;
}

/* Without a place for the error, and by whoever is selected. */
static bool others_agree(struct set *set, struct grounds *grounds, const struct answer *first,
                         char complaint[MOST_TEXT])
{
    const struct answer a = answer_of(set, grounds, NULL, false, NULL);
    return (a.nowhere == first->nowhere && a.how.crashed == first->how.crashed &&
            (a.nowhere || a.how.status == first->how.status)) ||
           complain(complaint, "without a place for errors: answered %d (%s), else %d",
                    (int)a.how.status, a.how.reason, (int)first->how.status);
}

void set_check(struct set *set, struct grounds *grounds, char complaint[MOST_TEXT])
{
    struct results results[MOST_FAMILIES] = { { 0 } };
    struct answer first = { .how.status = POSENC_ERR_MEMORY };
    const struct posenc_backend *backend, *last = NULL;
    bool fine = !set->beyond || set->verdict.must;
    complaint[0] = '\0';
    for (size_t i = 0; fine && (backend = posenc_backend_at(i)); i++)
        if (!posenc_backend_obstacle(backend) && posenc_provides(backend, set->kernel)) {
            last = backend;
            fine = backend_agrees(set, grounds, backend, &first, results, complaint);
        }
    if (!fine && last) {
        const size_t at = strlen(complaint);
        text_append(complaint, MOST_TEXT, at, " [%s]", last->name);
    }
    if (fine)
        others_agree(set, grounds, &first, complaint);
    set->answer =
        first.nowhere || (set->beyond && !set->verdict.must) ? -1 : (int)first.how.status;
    for (int i = 0; i < MOST_FAMILIES; i++)
        free(results[i].values);
}
