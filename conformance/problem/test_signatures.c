/*
 * Tests whether each signature is whole: it has said of every argument what it is, of every
 * tensor what it counts and what fills it, and it makes a small call, a realistic one and
 * random ones.  A member that was forgotten is named.
 */
#include "call_parts.h"
#include "cut.h"
#include "fields.h"
#include "shapes.h"

#include <stdio.h>
#include <string.h>

static int failures;

static void expect(bool good, const struct signature *s, const char *part, const char *what)
{
    if (good)
        return;
    failures++;
    fprintf(stderr, "signature %s: %s%s%s\n", s->name, part, *part ? ": " : "", what);
}

/* ---- Fields: each word is the name of one that there is ---- */

static void check_fields(const struct signature *s, enum posenc_kernel kernel)
{
    expect(s->fields, s, "", "it has no fields");
    for (const char *word = s->fields ? s->fields : ""; *word;) {
        char name[FIELD_TEXT];
        struct field field;
        const size_t n = strcspn(word, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        expect(kernel_field_find(kernel, name, &field), s, "fields", name);
        word += n + strspn(word + n, " ");
    }
}

/* ---- Arguments: each byte but padding is somebody's ---- */

enum { MOST_BYTES = sizeof(union arguments) };

static void claim(bool *claimed, size_t from, size_t n)
{
    for (size_t i = from; i < from + n && i < MOST_BYTES; i++)
        claimed[i] = true;
}

static size_t size_of(const struct tensor_row *row)
{
    return row->form == FORM_TENSOR      ? sizeof(struct posenc_tensor)
           : row->form == FORM_POSITIONS ? sizeof(struct posenc_positions)
                                         : sizeof(void *);
}

static void check_arguments(const struct signature *s)
{
    bool claimed[MOST_BYTES] = { false };
    size_t alone = 0;
    claim(claimed, 0, sizeof(size_t) + sizeof(struct posenc_error *));
    for (EACH_TENSOR(row, s)) {
        claim(claimed, row->offset, size_of(row));
        if (row->stride_batch)
            claim(claimed, row->stride_batch, sizeof(int64_t));
    }
    for (EACH_PARAMETER(parameter, s)) {
        claim(claimed, parameter->to, parameter->to_size);
        expect(!parameter->name || parameter->kind != FIELD_ENUM || parameter->names, s,
               parameter->name, "an enum without names, or of a type that fields do not have");
        expect(parameter->least >= parameter->most || (parameter->value >= parameter->least &&
                                                       parameter->value <= parameter->most),
               s, parameter->name, "its value is out of its range");
    }
    if (s->freqs)
        claim(claimed, s->freqs, sizeof(void *));
    if (s->computed)
        claim(claimed, s->computed, sizeof(int64_t));
    for (size_t i = 0; i < s->size && alone < sizeof(int64_t); i++)
        alone = claimed[i] ? 0 : alone + 1;
    expect(alone < sizeof(int64_t), s, "", "an argument is no tensor, parameter or plan");
    union arguments blank;
    size_t size;
    s->blank(&blank);
    memcpy(&size, &blank, sizeof size);
    expect(size == s->size, s, "", "its blank arguments are of another struct");
}

/* ---- Tensors ---- */

static void check_dims(const struct signature *s, const struct tensor_row *row)
{
    for (int i = 0; i < tensor_dims(row); i++) {
        const enum dim dim = row->dims[i];
        expect(dim != DIM_CHANNEL || s->channels, s, row->name, "what do channels count?");
        expect(dim != DIM_PAIR || s->turning, s, row->name, "what do pairs count?");
        expect(dim != DIM_COLUMN || s->columns, s, row->name, "what do columns count?");
    }
    expect(row->form != FORM_TENSOR || tensor_dims(row) >= 2, s, row->name, "no dimensions");
    expect(tensor_dims(row) || row->size, s, row->name, "neither dimensions nor a size");
    expect(!row->shared == !row->stride_batch, s, row->name,
           "`shared` and `stride_batch` go together");
}

static void check_tensors(const struct signature *s)
{
    int outputs = 0;
    for (EACH_TENSOR(row, s)) {
        const bool tensor = row->form == FORM_TENSOR, read = row->role != ROLE_OUTPUT;
        check_dims(s, row);
        expect(!tensor || !read || row->pristine, s, row->name, "no dense copy is kept");
        expect(!tensor || row->role != ROLE_INPUT || row->fill || row->stream, s, row->name,
               "nothing fills it");
        expect(tensor || row->form == FORM_POSITIONS || row->fill ||
                   (row->form == FORM_FLOATS && row->stream),
               s, row->name, "nothing fills it");
        expect(row->role != ROLE_X || outputs > 0, s, row->name, "x is made after out");
        expect(read || !row->cached, s, row->name, "an output is moved");
        outputs += row->role == ROLE_OUTPUT;
    }
    expect(outputs > 0 && outputs <= 2, s, "", "one output or two");
}

static void check_cuts(const struct signature *s)
{
    for (int k = 0; k < 2; k++) {
        bool cut = s->shares[k] == DIM_NONE && k > 0;
        for (int i = 0; i < MOST_CUTS; i++)
            cut = cut || (s->cuts[i] && s->cuts[i] == s->shares[k]);
        expect(cut, s, "shares", "threads share what a call can be cut along");
    }
}

/* ---- Problems ---- */

static void check_call(const struct signature *s, const struct problem *p, const char *what)
{
    struct call call;
    const bool made = call_create(&call, p, &memory_plain) == POSENC_OK;
    expect(made, s, what, made ? "" : call.error.what);
    for (EACH_TENSOR(row, s))
        expect(!made || row->form != FORM_TENSOR || !tensor_present(p, row) ||
                   call_data(&call, row),
               s, what, row->name);
    expect(problem_bytes(p) > 0 && problem_working_set(p) <= problem_bytes(p), s, what,
           "its bytes");
    if (made)
        call_destroy(&call);
}

static void check_problems(const struct signature *s, enum posenc_kernel kernel)
{
    struct problem p = problem_default(kernel);
    check_call(s, &p, "default");
    p = problem_realistic(kernel, POSENC_F32, 1 << 16);
    check_call(s, &p, "realistic");
    const struct problem larger = problem_realistic(kernel, POSENC_F32, 1 << 24);
    expect(problem_working_set(&larger) > 64 * problem_working_set(&p), s, "realistic",
           "what it says that grows does not");
    for (uint64_t seed = 1; seed <= 20; seed++) {
        int64_t positions[MOST_RANDOM_TOKENS];
        p = problem_random(kernel, seed, positions);
        check_call(s, &p, "random");
    }
}

int main(void)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const struct signature *s = signature_of((enum posenc_kernel)k);
        check_fields(s, (enum posenc_kernel)k);
        check_arguments(s);
        check_tensors(s);
        check_cuts(s);
        if (!failures)
            check_problems(s, (enum posenc_kernel)k);
    }
    return failures ? 1 : 0;
}
