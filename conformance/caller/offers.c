/*
 * Trials of what the header offers beside kernels: see offers.h.
 */
#include "offers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a buffer; now and then of the largest that are described. */
enum { MOST_BYTES = 1 << 14, LARGEST = 1 << 19, LARGE_ONE_IN = 32 };

size_t kind_size(enum kind kind)
{
    return kind == KIND_BYTES ? 1 : kind == KIND_HALVES ? 2 : kind == KIND_DOUBLES ? 8 : 4;
}

static bool is_array(const struct offer *o, int i) { return o->of[i].kind >= KIND_BYTES; }

#define EACH_OFFERED(i, offer)                                                                 \
    int i = 0;                                                                                 \
    i < MOST_OF_OFFER && (offer)->of[i].name;                                                  \
    i++

/* ---- Elements ---- */

double element_of(const struct trial *t, int i, int64_t at)
{
    const char *from = t->data[i] + (size_t)at * kind_size(t->offer->of[i].kind);
    uint8_t byte;
    uint16_t half;
    int32_t narrow;
    float single;
    double wide_one;
    switch (t->offer->of[i].kind) {
    case KIND_BYTES:
        memcpy(&byte, from, sizeof byte);
        return byte;
    case KIND_HALVES:
        memcpy(&half, from, sizeof half);
        return half;
    case KIND_INTS:
        memcpy(&narrow, from, sizeof narrow);
        return narrow;
    case KIND_FLOATS:
        memcpy(&single, from, sizeof single);
        return (double)single;
    default:
        memcpy(&wide_one, from, sizeof wide_one);
        return wide_one;
    }
}

static void put_element(struct trial *t, int i, int64_t at, double real)
{
    const enum kind kind = t->offer->of[i].kind;
    char *to = t->data[i] + (size_t)at * kind_size(kind);
    const uint16_t half =
        (uint16_t)(real >= 0.0 && real < 65536.0 ? real : (double)(at * 2531 % 65536));
    const int32_t narrow = real >= -2147483648.0 && real < 2147483648.0 ? (int32_t)real : -1;
    const float single = (float)real;
    memcpy(to,
           kind == KIND_DOUBLES  ? (const void *)&real
           : kind == KIND_FLOATS ? (const void *)&single
           : kind == KIND_INTS   ? (const void *)&narrow
                                 : (const void *)&half,
           kind_size(kind));
}

/* ---- Verdicts ---- */

void due(struct verdict *v, bool broken, unsigned status) { v->must |= broken ? status : 0u; }

struct verdict judge_by_ends(const struct trial *t)
{
    struct verdict v = { 0, 0 };
    for (EACH_OFFERED(i, t->offer)) {
        const struct offered *o = &t->offer->of[i];
        const double whole = (double)t->whole[i], real = t->real[i];
        if (is_array(t->offer, i))
            due(&v, !t->data[i], STATUS(ARGUMENT));
        else if (o->kind == KIND_WHOLE)
            due(&v, whole < o->least || whole > o->most, STATUS(SHAPE));
        else if (o->kind == KIND_REAL)
            due(&v, !(real >= o->least && real <= o->most), STATUS(PARAMETER));
    }
    return v;
}

bool all_between(const struct trial *t, int i, double least, double most)
{
    const int64_t n =
        t->backed[i] ? (int64_t)(t->bytes[i] / kind_size(t->offer->of[i].kind)) : 0;
    for (int64_t k = 0; k < n; k++)
        if (!(element_of(t, i, k) >= least && element_of(t, i, k) <= most))
            return false;
    return true;
}

/* ---- Drawing ---- */

static int64_t whole_of(double value)
{
    return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

static void draw_valid(struct draws *d, struct trial *t)
{
    for (EACH_OFFERED(i, t->offer)) {
        const struct offered *o = &t->offer->of[i];
        const int64_t least = whole_of(o->least), most = whole_of(o->most);
        const int64_t far = (wide)most - least > 40 ? 40 : most - least;
        t->whole[i] = least + draw_below(d, far + 1);
        t->real[i] =
            o->least + (o->most - o->least) * (double)(1 + draw_below(d, 1000)) / 1000.0;
    }
    if (t->offer->settle)
        t->offer->settle(d, t);
}

static void draw_alter(struct draws *d, const struct trial *t, int n, struct alter *c)
{
    const int i = (int)draw_below(d, n);
    const struct offered *o = &t->offer->of[i];
    const double ends[] = { o->least, o->most, t->real[i] };
    const int64_t wholes[] = { whole_of(o->least), whole_of(o->most), t->whole[i] };
    const int64_t pick = draw_below(d, 3);
    *c = (struct alter){ .how = ALTER_NUMBER, .i = i };
    c->real = o->kind == KIND_REAL && draw_one_in(d, 3) ? ends[pick] : draw_real(d, ends[pick]);
    c->whole = draw_one_in(d, 4) ? wholes[pick] : draw_whole(d, wholes[pick]);
    if (o->kind == KIND_FLAG)
        c->whole = draw_below(d, 2);
    if (!is_array(t->offer, i))
        return;
    const int64_t how =
        o->out ? 3 * draw_below(d, 2) : draw_below(d, t->offer->anywhere ? 5 : 3);
    c->how = how == 0 || (o->out && !t->offer->anywhere) ? ALTER_NULL
             : how == 3                                  ? ALTER_ODD
             : how == 4                                  ? ALTER_JOIN
                                                         : ALTER_ELEMENT;
    c->whole = draw_below(d, 17) - 8;
    c->at = (int)draw_below(d, 1 << 16);
}

static void alter_numbers(struct trial *t)
{
    for (int c = 0; c < t->n_changes; c++) {
        const struct alter *a = &t->changes[c];
        if (!(t->kept >> c & 1u) || a->how != ALTER_NUMBER)
            continue;
        t->whole[a->i] = a->whole;
        t->real[a->i] = a->real;
    }
}

/* ---- Placing ---- */

static const struct alter *moved(const struct trial *t, int i)
{
    for (int c = 0; c < t->n_changes; c++)
        if ((t->kept >> c & 1u) && t->changes[c].i == i && t->changes[c].how != ALTER_NUMBER &&
            t->changes[c].how != ALTER_ELEMENT)
            return &t->changes[c];
    return NULL;
}

/* Each in a buffer of its own, or where nothing is. */
static void place(struct trial *t, struct grounds *g, struct draws *d)
{
    char *base[MOST_OF_OFFER] = { NULL };
    const wide most = t->number % LARGE_ONE_IN == 0 ? LARGEST : MOST_BYTES;
    int other = -1;
    for (EACH_OFFERED(i, t->offer)) {
        const struct alter *c = moved(t, i);
        const size_t item = kind_size(t->offer->of[i].kind);
        if (!is_array(t->offer, i) || (c && c->how == ALTER_NULL))
            continue;
        const wide n = t->offer->count(t, i);
        const bool joined = c && c->how == ALTER_JOIN && other >= 0 && t->backed[other];
        const bool stays = !c && n >= 0 && n <= most / (wide)item;
        base[i] = stays ? g->memory.get(g->memory.user, (size_t)n * item, 0,
                                        t->offer->of[i].out ? 'b' : 'i')
                        : NULL;
        t->backed[i] = base[i] != NULL;
        t->bytes[i] = t->backed[i] ? (size_t)n * item : 0;
        t->data[i] = base[i]  ? base[i]
                     : joined ? t->data[other] + c->whole * (int64_t)item
                              : g->nowhere + (size_t)(i + 1) * (g->nowhere_bytes >> 6) +
                                    (c && c->how == ALTER_ODD ? 1 : 0);
        other = i;
        for (int64_t k = 0; base[i] && k < (int64_t)n; k++)
            put_element(t, i, k,
                        t->offer->element && !t->offer->of[i].out ? t->offer->element(d, t, i)
                                                                  : 85.0);
    }
    for (int c = 0; c < t->n_changes; c++) {
        const struct alter *a = &t->changes[c];
        if ((t->kept >> c & 1u) && a->how == ALTER_ELEMENT && t->bytes[a->i])
            put_element(t, a->i,
                        a->at % (int64_t)(t->bytes[a->i] / kind_size(t->offer->of[a->i].kind)),
                        a->real);
    }
    g->memory.seal(g->memory.user);
}

/* ---- The call, as one of a kernel is guarded ---- */

static struct trial *current;
static struct posenc_error told;

static enum posenc_status hand_over(const struct posenc_backend *backend,
                                    const struct posenc_rope_table_args *args)
{
    (void)backend;
    (void)args;
    return current->offer->call(current, &told);
}

static struct guarded run(struct trial *t, struct grounds *g)
{
    static const struct implementation handing = { .rope_table = hand_over };
    static struct call call;
    call.problem.kernel = POSENC_KERNEL_rope_table;
    call.implementation = &handing;
    call.n_outputs = 0;
    for (EACH_OFFERED(i, t->offer)) {
        const enum kind kind = t->offer->of[i].kind;
        const int64_t n = t->backed[i] ? (int64_t)(t->bytes[i] / kind_size(kind)) : 0;
        if (!is_array(t->offer, i) || !t->offer->of[i].out || n == 0)
            continue;
        struct output *out = &call.outputs[call.n_outputs++];
        *out = (struct output){ .name = t->offer->of[i].name, .rows = 1, .width = n };
        out->tensor = posenc_dense(t->data[i], 2, 1, n, 0, 0);
        out->tensor.dtype = kind == KIND_HALVES ? POSENC_F16 : POSENC_F32;
    }
    current = t;
    memset(&told, 0x5a, sizeof told);
    return guarded_run(&call, NULL, g->guard);
}

/* Each output holds what it was filled with. */
static bool is_untouched(struct trial *t)
{
    for (EACH_OFFERED(i, t->offer))
        for (size_t k = 0; t->offer->of[i].out && t->backed[i] && k < t->bytes[i];
             k += kind_size(t->offer->of[i].kind))
            if (element_of(t, i, (int64_t)(k / kind_size(t->offer->of[i].kind))) != 85.0)
                return false;
    return true;
}

static bool is_fine(struct trial *t, const struct verdict *v, const struct guarded *how,
                    char complaint[MOST_TEXT])
{
    const enum posenc_status status = how->status;
    struct posenc_error blank;
    memset(&blank, 0x5a, sizeof blank);
    const bool spoke = memcmp(&told, &blank, sizeof blank) != 0;
    if (how->crashed || how->overwritten || how->control_left)
        return complain(complaint, "%s", how->reason);
    if (status == POSENC_OK && v->must)
        return complain(complaint, "accepted, where one of the statuses %#x was due", v->must);
    if (status != POSENC_OK && !((v->must | v->may) >> status & 1u))
        return complain(complaint, "refused, \"%s\"%s%s", posenc_status_string(status),
                        spoke ? ": " : "", spoke ? told.what : "");
    if (status == POSENC_OK)
        return spoke ? complain(complaint, "accepted, and yet the error was written")
                     : t->offer->right(t, complaint);
    if (!is_untouched(t) || t->made)
        return complain(complaint, "refused, and yet written");
    return !t->offer->tells || refusal_is_told(status, &told, complaint);
}

static void print_words(const struct trial *t, char words[MOST_TEXT])
{
    size_t at = text_append(words, MOST_TEXT, 0, "(");
    for (EACH_OFFERED(i, t->offer)) {
        const struct offered *o = &t->offer->of[i];
        at = text_append(words, MOST_TEXT, at, "%s%s ", i ? ", " : "", o->name);
        at = is_array(t->offer, i)
                 ? text_append(words, MOST_TEXT, at, t->data[i] ? "[]" : "NULL")
             : o->kind == KIND_REAL
                 ? text_append(words, MOST_TEXT, at, "%.17g", t->real[i])
                 : text_append(words, MOST_TEXT, at, "%lld", (long long)t->whole[i]);
    }
    at = text_append(words, MOST_TEXT, at, ")");
    for (int c = 0; c < t->n_changes; c++)
        if (t->kept >> c & 1u)
            at =
                text_append(words, MOST_TEXT, at, "; %s %s", t->offer->of[t->changes[c].i].name,
                            (const char *[]){ "changed", "NULL", "at an odd byte", "joined",
                                              "with another element" }[t->changes[c].how]);
}

bool offer_try(const struct offer *offer, struct grounds *g, uint64_t seed, uint64_t number,
               unsigned kept, int *answer, char complaint[MOST_TEXT], char words[MOST_TEXT])
{
    struct trial t = { .offer = offer, .seed = seed, .number = number, .kept = kept };
    uint64_t name = 0;
    for (const char *c = offer->name; *c; c++)
        name = mix64(name, (uint64_t)(unsigned char)*c);
    struct draws d = { .seed = mix64(mix64(seed, name), number) }, contents = { 0 };
    int n = 0;
    draw_valid(&d, &t);
    for (EACH_OFFERED(i, offer))
        n++;
    t.n_changes = (int)(draw_below(&d, 20) + 5) / 8;
    for (int c = 0; c < t.n_changes; c++)
        draw_alter(&d, &t, n, &t.changes[c]);
    contents.seed = draw_bits(&d);
    alter_numbers(&t);
    g->memory = guard_memory(g->guard, draw_one_in(&d, 2) ? GUARD_END : GUARD_START);
    place(&t, g, &contents);
    const struct verdict v = offer->judge(&t);
    bool there = true, fine = true;
    for (EACH_OFFERED(i, offer))
        there = there && (!t.data[i] || t.backed[i]);
    *answer = -1;
    complaint[0] = '\0';
    if (there || v.must) {
        const struct guarded how = run(&t, g);
        fine = is_fine(&t, &v, &how, complaint);
        *answer = (int)how.status;
    }
    print_words(&t, words);
    for (EACH_OFFERED(i, offer))
        if (t.backed[i])
            g->memory.free(g->memory.user, t.data[i]);
    return fine;
}
