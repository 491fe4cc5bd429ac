/*
 * A set: a valid problem and a few changes of its arguments, drawn from kernel, seed and number.
 */
#include "caller.h"
#include "conformance/problem/cases.h"

#include <string.h>

/* ---- Changes ---- */

static void draw_place(const struct set *set, struct draws *d, struct change *c)
{
    const struct described *of = set->before.of;
    const wide span = of[c->row].below + of[c->row].above;
    c->member = CHANGE_PLACE;
    c->place = (enum place)(PLACE_NULL + draw_below(d, 6));
    c->place = c->place > PLACE_JOINED ? PLACE_JOINED : c->place;
    c->whole = 1 + draw_below(d, 3);
    if (c->place != PLACE_JOINED)
        return;
    do
        c->dim = (int)draw_below(d, MOST_TENSORS);
    while (!of[c->dim].row);
    const int64_t item = of[c->row].item, far = span < 1 << 16 ? (int64_t)span : 1 << 16;
    const int64_t shifts[] = { 0,   item, -item,
                               far, -far, draw_below(d, 2 * far + 1) / item * item - far };
    c->whole = shifts[draw_below(d, 6)];
    c->place = c->dim == c->row ? PLACE_NULL : c->place;
}

static void draw_content(const struct set *set, struct draws *d, struct change *c)
{
    const int64_t end = index_end(&set->before);
    const int64_t wholes[] = { -1, 0, end, end - 1, INT32_MAX, INT32_MIN, draw_whole(d, end) };
    c->member = CHANGE_CONTENT;
    c->dim = (int)draw_below(d, draw_one_in(d, 2) ? 4 : 1 << 16);
    c->whole = wholes[draw_below(d, 7)];
    c->real = draw_real(d, (double)end);
}

/* A stride of any size that leads far. */
static int64_t draw_far(struct draws *d)
{
    return (int64_t)(draw_bits(d) >> draw_below(d, 34));
}

/* Often a small thing that leaves the call valid. */
static void draw_tensor(const struct set *set, struct draws *d, struct change *c)
{
    static const enum member kinds[] = {
        CHANGE_RANK,       CHANGE_ADD_DIMENSION, CHANGE_DTYPE,  CHANGE_DROP_DIMENSION,
        CHANGE_SHAPE,      CHANGE_SHAPE,         CHANGE_SHAPE,  CHANGE_ALL_SHAPES,
        CHANGE_ALL_SHAPES, CHANGE_STRIDE,        CHANGE_STRIDE, CHANGE_STRIDE,
        CHANGE_PLACE,      CHANGE_PLACE,         CHANGE_PLACE,  CHANGE_CONTENT
    };
    const struct posenc_tensor *t =
        (const struct posenc_tensor *)(const void *)((const char *)&set->before.args +
                                                     set->before.signature->tensors[c->row]
                                                         .offset);
    const int rank = t->rank >= 1 && t->rank <= 4 ? t->rank : 1;
    c->member = kinds[draw_below(d, (int64_t)(sizeof kinds / sizeof *kinds))];
    c->dim = (int)draw_below(d, rank);
    if (c->member == CHANGE_PLACE) {
        draw_place(set, d, c);
    } else if (c->member == CHANGE_CONTENT) {
        draw_content(set, d, c);
    } else if (c->member == CHANGE_STRIDE) {
        const int64_t extent =
            c->dim + 1 < rank ? t->stride[c->dim + 1] * t->shape[c->dim + 1] : 1;
        c->whole = draw_one_in(d, 3)   ? extent
                   : draw_one_in(d, 3) ? draw_far(d)
                                       : draw_whole(d, t->stride[c->dim]);
    } else if (c->member == CHANGE_ALL_SHAPES) {
        const struct tensor_row *row = &set->before.signature->tensors[c->row];
        const int n = tensor_dims(row);
        c->whole = draw_one_in(d, 2) ? draw_below(d, 6) : draw_whole(d, t->shape[c->dim]);
        c->dim = (int)row->dims[c->dim + (n > rank ? n - rank : 0)];
    } else {
        c->whole = c->member == CHANGE_SHAPE   ? draw_whole(d, t->shape[c->dim])
                   : c->member == CHANGE_DTYPE ? draw_below(d, 5) - 1
                   : draw_one_in(d, 2)         ? draw_below(d, 7) - 1
                                               : draw_whole(d, rank);
    }
}

static void draw_positions(const struct set *set, struct draws *d, struct change *c)
{
    const struct posenc_positions *p =
        (const struct posenc_positions *)(const void *)((const char *)&set->before.args +
                                                        set->before.signature->tensors[c->row]
                                                            .offset);
    const int64_t strides[] = { p->stride_batch, p->stride_token, p->stride_axis };
    c->dim = (int)draw_below(d, 3);
    switch (draw_below(d, 6)) {
    case 0:
        c->member = CHANGE_KIND;
        c->whole = draw_one_in(d, 4) ? draw_whole(d, 3) : draw_below(d, 4);
        break;
    case 1:
    case 2:
        c->member = CHANGE_OFFSET;
        c->whole = draw_whole(d, draw_one_in(d, 2) ? p->offset : set->before.extent[DIM_ROW]);
        break;
    case 3:
        c->member = CHANGE_STRIDE;
        c->whole = draw_one_in(d, 3) ? draw_far(d) : draw_whole(d, strides[c->dim]);
        break;
    case 4:
        draw_place(set, d, c);
        break;
    default:
        draw_content(set, d, c);
    }
}

static void draw_pointer(const struct set *set, struct draws *d, struct change *c)
{
    const struct tensor_row *row = &set->before.signature->tensors[c->row];
    int64_t stride = 0;
    if (row->stride_batch && draw_one_in(d, 3)) {
        memcpy(&stride, (const char *)&set->before.args + row->stride_batch, sizeof stride);
        c->member = CHANGE_STRIDE;
        c->whole = draw_one_in(d, 3) ? draw_far(d) : draw_whole(d, stride);
    } else if (draw_one_in(d, 2)) {
        draw_place(set, d, c);
    } else {
        draw_content(set, d, c);
    }
}

static void draw_parameter(const struct set *set, struct draws *d, struct change *c)
{
    const struct parameter *p = c->parameter;
    const char *at = (const char *)&set->before.args + p->to;
    float narrow = 0.0f;
    double real = 0.0;
    int64_t whole = 1;
    c->member = CHANGE_PARAMETER;
    memcpy(&narrow, at, p->kind == FIELD_F32 ? sizeof narrow : 0);
    memcpy(&real, at, p->kind == FIELD_F64 ? sizeof real : 0);
    memcpy(&whole, at, p->kind == FIELD_I64 ? sizeof whole : 0);
    c->real = draw_real(d, p->kind == FIELD_F64 ? real : (double)narrow);
    c->whole = p->kind == FIELD_ENUM && !draw_one_in(d, 3) ? draw_below(d, 5) - 1
                                                           : draw_whole(d, whole);
}

/* Sizes of older and newer headers, and none. */
static void draw_size(const struct set *set, struct draws *d, struct change *c)
{
    const int64_t size = (int64_t)set->before.signature->size, word = sizeof(void *);
    c->member = CHANGE_SIZE;
    c->dim = draw_one_in(d, 2);
    c->whole = draw_one_in(d, 3)   ? size + word * (1 + draw_below(d, 3 * size / word))
               : draw_one_in(d, 2) ? word * draw_below(d, size / word)
               : draw_one_in(d, 2) ? draw_below(d, size)
                                   : (int64_t)((uint64_t)draw_whole(d, size));
}

/* Of a row or a parameter, each as likely; now and then of what all signatures have. */
static void draw_change(const struct set *set, struct draws *d, struct change *c)
{
    const struct signature *s = set->before.signature;
    int rows = 0, parameters = 0;
    for (EACH_TENSOR(row, s))
        rows++;
    for (EACH_PARAMETER(p, s))
        parameters++;
    const int64_t site = draw_below(d, 2 * rows + parameters + 1);
    *c = (struct change){ .row = (int)(site % rows) };
    if (draw_one_in(d, 12)) {
        draw_size(set, d, c);
    } else if (s->freqs && draw_one_in(d, 8)) {
        c->member = CHANGE_PLAN;
        c->whole = draw_below(d, OTHER_PLANS + 1) - 1;
    } else if (s->computed && draw_one_in(d, 8)) {
        c->member = CHANGE_COMPUTED;
        c->whole = draw_whole(d, set->before.problem.query_offset);
    } else if (site >= 2 * rows && parameters) {
        c->parameter = &s->parameters[(site - 2 * rows) % parameters];
        draw_parameter(set, d, c);
    } else if (s->tensors[c->row].form == FORM_TENSOR) {
        draw_tensor(set, d, c);
    } else if (s->tensors[c->row].form == FORM_POSITIONS) {
        draw_positions(set, d, c);
    } else {
        draw_pointer(set, d, c);
    }
}

/* ---- Problems ---- */

/* Elements that nobody fills are the same each time. */
static void *zeroed(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    void *data = memory_plain.get(user, bytes, offset_bytes, role);
    if (data)
        memset(data, 0, bytes);
    return data;
}

static struct problem draw_problem(enum posenc_kernel kernel, struct draws *d,
                                   int64_t positions[MOST_RANDOM_TOKENS])
{
    struct problem p = problem_random(kernel, draw_bits(d), positions);
    p.in_place = draw_one_in(d, 2);
    p.pad = draw_one_in(d, 2) ? 0 : draw_below(d, 9);
    p.token_major = draw_one_in(d, 4);
    p.special = false;        /* the payload of a NaN that is computed is nobody's promise */
    if (draw_one_in(d, 24)) { /* what has no elements */
        *(kernel_on_scores(kernel) ? &p.keys : &p.tokens) = 0;
        p.query_offset = p.keys - p.queries;
    }
    return p;
}

/* Several sets have one problem, whose plan and numbers take longer than a call. */
enum { SETS_OF_A_PROBLEM = 16 };

static struct call call;
static enum posenc_kernel of = POSENC_KERNEL_COUNT; /* none */

void sets_end(void)
{
    if (of != POSENC_KERNEL_COUNT)
        call_destroy(&call);
    of = POSENC_KERNEL_COUNT;
}

static struct call *base_of(enum posenc_kernel kernel, uint64_t seed, uint64_t number)
{
    static uint64_t by[2];
    static int64_t positions[MOST_RANDOM_TOKENS];
    const struct memory memory = { .get = zeroed, .free = memory_plain.free };
    struct draws d = { .seed = mix64(mix64(seed, (uint64_t)kernel), ~number) };
    if (of == kernel && by[0] == seed && by[1] == number)
        return &call;
    sets_end();
    const struct problem p = draw_problem(kernel, &d, positions);
    of = call_create(&call, &p, &memory) == POSENC_OK ? kernel : POSENC_KERNEL_COUNT;
    by[0] = seed;
    by[1] = number;
    return of == kernel ? &call : NULL;
}

/* Of which only the first `size` bytes are given: the others are as in a call that says nothing. */
static void cut_arguments(struct set *set)
{
    const struct signature *s = set->after.signature;
    union arguments fresh;
    s->blank(&fresh);
    if (set->size < s->size)
        memcpy((char *)&set->after.args + set->size, (const char *)&fresh + set->size,
               s->size - set->size);
    memcpy(&set->after.args, &set->size, sizeof set->size);
}

bool set_make(struct set *set, struct grounds *grounds, enum posenc_kernel kernel,
              uint64_t seed, uint64_t number, unsigned kept)
{
    struct draws d = { .seed = mix64(mix64(seed, (uint64_t)kernel), number) };
    *set = (struct set){ .kernel = kernel, .seed = seed, .number = number, .kept = kept };
    if (!(set->base = base_of(kernel, seed, number / SETS_OF_A_PROBLEM)))
        return false;
    set->before = (struct facts){ .kernel = kernel,
                                  .signature = signature_of(kernel),
                                  .args = set->base->args,
                                  .problem = set->base->problem };
    set->before.spec = set->before.signature->freqs ? &set->base->problem.freqs : NULL;
    describe(&set->before);
    set->after = set->before;
    set->size = set->before.signature->size;
    set->n_changes = (int)(draw_below(&d, 20) + 5) / 8;
    for (int i = 0; i < set->n_changes; i++) {
        draw_change(set, &d, &set->changes[i]);
        if (set->kept >> i & 1u)
            change_arguments(set, &set->changes[i]);
    }
    cut_arguments(set);
    set_place(set, grounds, &d);
    set->verdict = judge(&set->after, set->size, set->filled);
    return true;
}
