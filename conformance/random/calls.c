/* Makes calls with changed arguments and checks their answers. */
#define _GNU_SOURCE
#include "calls.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

bool complain(char complaint[CALL_TEXT], const char *format, ...)
{
    va_list more;
    va_start(more, format);
    vsnprintf(complaint, CALL_TEXT, format, more);
    va_end(more);
    return false;
}

/* ---- Arguments in memory of their own ---- */

static struct handed handed;
static const struct implementation *asked;
static call_entry *entered;

#define POSENC_KERNEL(name, signature, ...)                                                    \
    static enum posenc_status hand_##name(const struct posenc_backend *backend,                \
                                          const struct posenc_##signature##_args *args)        \
    {                                                                                          \
        (void)args;                                                                            \
        return entered ? entered(backend, POSENC_KERNEL_##name, &handed)                       \
                       : asked->name(backend, (const void *)handed.args);                      \
    }
#include <posenc_kernels.def>
#undef POSENC_KERNEL

static const struct implementation handing = {
#define POSENC_KERNEL(name, ...) .name = hand_##name,
#include <posenc_kernels.def>
#undef POSENC_KERNEL
};

/* Ends at a page that faults; members beyond this header are zeros, or not. */
static bool hand_arguments(const struct changed_call *c, bool with_error)
{
    enum { ROOM = 1 << 15 };
    static char *page;
    const size_t known = c->after.signature->size, most = 8 * known;
    const size_t bytes = c->size <= most ? c->size : known;
    struct posenc_error *error = with_error ? &handed.error : NULL;
    if (!page) {
        page = mmap(NULL, 2 * (size_t)ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED || mprotect(page, ROOM, PROT_READ | PROT_WRITE) != 0)
            return false;
    }
    handed.bytes = bytes < sizeof(size_t) ? sizeof(size_t) : bytes;
    char *at = page + ROOM - (handed.bytes + 7) / 8 * 8;
    memset(at, c->filled ? 0x40 : 0, handed.bytes);
    memcpy(at, &c->after.args, handed.bytes < known ? handed.bytes : known);
    if (handed.bytes >= 2 * sizeof(void *))
        memcpy(at + sizeof(size_t), &error, sizeof error);
    memset(&handed.error, 0x5a, sizeof handed.error);
    handed.args = at;
    return true;
}

/* ---- Outputs ---- */

/* The outputs that an accepted call may write.  If one of several is empty, a call is accepted
 * whatever the strides of another, and writes nothing. */
static void list_outputs(const struct changed_call *c, struct call *call)
{
    call->n_outputs = 0;
    for (EACH_OPERAND(o, &c->after)) {
        if (o->row->role != ROLE_OUTPUT)
            continue;
        const bool in_rows = o->n > 0 && (o->stride[o->n - 1] == 1 || o->shape[o->n - 1] == 1),
                   written = !c->verdict.must && in_rows && o->backed && o->sound && !o->empty;
        struct output *out = &call->outputs[call->n_outputs++];
        *out =
            (struct output){ .name = o->row->name, .tensor = *facts_view(&c->after, o->row) };
        out->rows = written ? storage_rows(&out->tensor) : 0;
        out->width = written ? out->tensor.shape[out->tensor.rank - 1] : 0;
    }
}

static void take_values(struct reply *a, const struct call *call)
{
    for (int o = 0; o < call->n_outputs; o++)
        a->n += call->outputs[o].rows * call->outputs[o].width;
    a->values = malloc((size_t)a->n * sizeof *a->values + 1);
    int64_t i = 0;
    for (int o = 0; o < call->n_outputs && a->values; o++)
        for (int64_t r = 0; r < call->outputs[o].rows; r++) {
            const struct posenc_tensor *t = &call->outputs[o].tensor;
            const void *row = storage_row(t, r);
            for (int64_t k = 0; k < call->outputs[o].width; k++)
                a->values[i++] = storage_get(t->dtype, row, k);
        }
}

/* ---- One answer ---- */

struct reply reply_take(struct changed_call *c, const struct call_test *test,
                        const struct posenc_backend *backend, call_entry *entry,
                        bool with_error, bool with_values)
{
    struct call *call = c->base;
    const struct implementation *own = call->implementation;
    struct posenc_error untouched;
    struct reply a = { .how.status = POSENC_ERR_MEMORY };
    call_restore(c);
    if (!hand_arguments(c, with_error))
        return a;
    asked = test->implementation;
    entered = entry;
    list_outputs(c, call);
    call->implementation = &handing;
    a.how = guarded_run(call, backend, test->guard);
    call->implementation = own;
    memset(&untouched, 0x5a, sizeof untouched);
    a.error = handed.error;
    a.told = memcmp(&handed.error, &untouched, sizeof untouched) != 0;
    if (with_values && a.how.status == POSENC_OK && !a.how.crashed)
        take_values(&a, call);
    return a;
}

/* A rejection has a reason, its status, a text that can be cut, and no range that holds the value. */
static bool error_is_right(enum posenc_status status, const struct posenc_error *e,
                           char complaint[CALL_TEXT])
{
    char text[512], cut[8];
    if (e->status != status || !e->what || !*e->what)
        return complain(complaint, "rejected with %d, the error says %d", (int)status,
                        (int)e->status);
    const size_t length = posenc_error_text(e, text, sizeof text);
    if (length == 0 || length >= sizeof text || strlen(text) != length ||
        strncmp(text, e->what, strlen(e->what)) != 0)
        return complain(complaint, "the text of the error is \"%s\"", text);
    if (posenc_error_text(e, cut, sizeof cut) != length ||
        strncmp(text, cut, sizeof cut - 1) != 0)
        return complain(complaint, "the text is another one where it is cut: \"%s\"", text);
    if (isnan(e->least) || isnan(e->most) ||
        (e->least <= e->most && e->value >= e->least && e->value <= e->most))
        return complain(complaint, "rejected though the accepted range holds it: %s", text);
    return true;
}

bool reply_is_right(const struct changed_call *c, const struct reply *a, unsigned may,
                    char complaint[CALL_TEXT])
{
    const unsigned must = c->verdict.must;
    const enum posenc_status status = a->how.status;
    if (a->how.crashed || a->how.overwritten || a->how.control_left)
        return complain(complaint, "%s (status %d)", a->how.reason, (int)status);
    if (status == POSENC_OK && must)
        return complain(complaint, "accepted, though one of the statuses %#x was due", must);
    if (status != POSENC_OK && !((must | may) >> status & 1u))
        return complain(complaint, "rejected, \"%s\": %s", posenc_status_string(status),
                        a->told && a->error.what ? a->error.what : "without a reason");
    if (status == POSENC_OK)
        return !a->told || complain(complaint, "accepted, and yet the error was written");
    if (!call_is_unchanged(c))
        return complain(complaint, "rejected, \"%s\", and yet an output was written",
                        posenc_status_string(status));
    return c->size < 2 * sizeof(void *) || error_is_right(status, &a->error, complaint);
}

static bool same_error(const struct posenc_error *a, const struct posenc_error *b)
{
    return a->status == b->status && a->what && b->what && strcmp(a->what, b->what) == 0 &&
           memcmp(&a->value, &b->value, sizeof a->value) == 0 &&
           memcmp(&a->least, &b->least, sizeof a->least) == 0 &&
           memcmp(&a->most, &b->most, sizeof a->most) == 0;
}

bool reply_is_same(const struct reply *a, const struct reply *b, const char *who,
                   char complaint[CALL_TEXT])
{
    if (a->how.status != b->how.status ||
        (a->told && b->told && !same_error(&a->error, &b->error)))
        return complain(complaint, "%s answered %d, the plain call %d", who, (int)a->how.status,
                        (int)b->how.status);
    for (int64_t i = 0; a->values && b->values && i < a->n && a->n == b->n; i++)
        if (float_to_bits(a->values[i]) != float_to_bits(b->values[i]) &&
            !(isnan(a->values[i]) && isnan(b->values[i])))
            return complain(complaint, "element %lld is %.9g, by %s %.9g", (long long)i,
                            (double)b->values[i], who, (double)a->values[i]);
    return true;
}

/* ---- Every answer ---- */

/* Compares with the plain loops, whose bits the other backends of their family have. */
static bool peer_agrees(struct changed_call *c, const struct call_test *test,
                        const struct reply *plain, char complaint[CALL_TEXT])
{
    const struct posenc_backend *peer = posenc_backend_find("scalar"), *own = test->backend;
    const bool family = peer && peer != own && strcmp(peer->family, own->family) == 0;
    if (!family || own->contracts || plain->how.status != POSENC_OK ||
        !posenc_provides(peer, c->after.kernel))
        return true;
    struct call_test library = *test;
    library.implementation = &implementation_library;
    struct reply a = reply_take(c, &library, peer, NULL, true, true);
    const bool same = reply_is_same(&a, plain, peer->name, complaint);
    free(a.values);
    return same;
}

/* A backend that takes f32 alone may reject 16 bits; nothing else tells backends apart. */
static bool backend_agrees(struct changed_call *c, const struct call_test *test,
                           const struct reply *front, char complaint[CALL_TEXT])
{
    const unsigned narrow = test->backend->f16_bf16 ? 0u : STATUS(DTYPE);
    struct reply plain = reply_take(c, test, test->backend, NULL, true, true);
    bool right = reply_is_right(c, &plain, c->verdict.may | narrow, complaint);
    if (right && !(narrow && plain.how.status == POSENC_ERR_DTYPE))
        right = reply_is_same(&plain, front, test->backend->name, complaint) &&
                prepared_is_right(c, test, test->backend, &plain, complaint) &&
                peer_agrees(c, test, &plain, complaint);
    free(plain.values);
    return right;
}

/* The front-end decides before any kernel runs: first a backend is asked that computes nothing. */
static bool check_answers(struct changed_call *c, const struct call_test *test, int *status,
                          char complaint[CALL_TEXT])
{
    *status = -1;
    if (!call_is_readable(c))
        return true;
    const struct reply front = reply_take(c, test, &problems_idle, NULL, true, false),
                       silent = reply_take(c, test, &problems_idle, NULL, false, false);
    *status = (int)front.how.status;
    if (!reply_is_right(c, &front, c->verdict.may, complaint))
        return false;
    if (silent.told || silent.how.crashed || silent.how.status != front.how.status)
        return complain(complaint, "without a place for errors: answered %d, else %d",
                        (int)silent.how.status, (int)front.how.status);
    if (call_is_backed(c))
        return backend_agrees(c, test, &front, complaint);
    return prepared_is_right(c, test, &problems_idle, &front, complaint);
}

bool call_test_run(const struct call_test *test, int *status, char complaint[CALL_TEXT],
                   char words[CALL_TEXT])
{
    struct draws d = { .seed = test->seed };
    struct changed_call c = { .base = test->base, .kept = test->kept };
    struct call *base = test->base;
    const enum posenc_kernel kernel = base->problem.kernel;
    const struct output outputs[] = { base->outputs[0], base->outputs[1] };
    const int n_outputs = base->n_outputs;
    c.before = (struct facts){ .kernel = kernel,
                               .signature = signature_of(kernel),
                               .args = base->args,
                               .problem = base->problem };
    c.before.spec = c.before.signature->freqs ? &base->problem.freqs : NULL;
    facts_derive(&c.before);
    changes_draw(&c, &d);
    changes_apply(&c);
    call_place(&c, test->guard, &d);
    c.verdict = rules_judge(&c.after, c.size, c.filled);
    complaint[0] = '\0';
    const bool right = check_answers(&c, test, status, complaint);
    changes_print(&c, words, CALL_TEXT);
    call_release(&c, test->guard);
    memcpy(base->outputs, outputs, sizeof outputs);
    base->n_outputs = n_outputs;
    return right;
}
