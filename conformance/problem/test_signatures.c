/* Tests that each signature is complete: every argument is described, every tensor has dimensions and a source of
 * values, and small, realistic and random calls can be made. Reports missing members. */
#include "signature.h"
#include "cases.h"

#include <stdio.h>
#include <string.h>

/* The kernel under test and its signature. */
static enum posenc_kernel kernel;
static const struct signature *signature;
static int n_failures;

static void expect(bool good, const char *part, const char *what)
{
    if (good)
        return;
    n_failures++;
    fprintf(stderr, "signature %s: %s%s%s\n", signature->name, part, *part ? ": " : "", what);
}

/* Checks that each word names an existing field. */
static void check_fields(void)
{
    char name[FIELD_TEXT];
    struct field field;
    for (const char *word = signature->fields; *word; word += strspn(word, " ")) {
        const size_t n = strcspn(word, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        expect(kernel_field_find(kernel, name, &field), "fields", name);
        word += n;
    }
}

/* Checks that each byte of the arguments belongs to a tensor or parameter. Padding has fewer than 8 bytes. */
static void check_arguments(void)
{
    static const size_t sizes[] = { [FORM_TENSOR] = sizeof(struct posenc_tensor),
                                    [FORM_POSITIONS] = sizeof(struct posenc_positions),
                                    [FORM_FLOATS] = sizeof(void *),
                                    [FORM_INTEGERS] = sizeof(void *) };
    bool claimed[sizeof(union arguments)] = { false };
    size_t gap = 0, size; /* gap: unclaimed bytes in a row */
    for (EACH_TENSOR(spec, signature)) {
        memset(claimed + spec->offset, true, sizes[spec->form]);
        memset(claimed + spec->stride_batch, true, sizeof(int64_t));
    }
    for (EACH_PARAMETER(p, signature)) {
        memset(claimed + p->to, true, value_size(p->kind));
        expect(!p->name || p->kind != FIELD_ENUM || p->names, p->name,
               "an enum without names, or of a type that fields do not have");
        expect(p->least >= p->most || (p->value >= p->least && p->value <= p->most), p->name,
               "its default is out of its range");
    }
    memset(claimed + signature->freqs, true, sizeof(void *));
    memset(claimed + signature->computed, true, sizeof(int64_t));
    memset(claimed, true, sizeof(size_t));  /* the first member is the size */
    if (strcmp(signature->name, "t5") == 0) /* test_versioned.c tests reserved members */
        memset(claimed + offsetof(struct posenc_t5_args, buckets.reserved), true,
               sizeof((struct posenc_t5_args *)0)->buckets.reserved);
    for (size_t i = 0; i < signature->size && gap < sizeof(int64_t); i++)
        gap = claimed[i] ? 0 : gap + 1;
    expect(gap < sizeof(int64_t), "", "an argument is not described");
    union arguments blank;
    signature->blank(&blank);
    memcpy(&size, &blank, sizeof size);
    expect(size == signature->size, "", "blank() sets arguments of another size");
}

static void check_tensors(void)
{
    int outputs = 0;
    for (EACH_TENSOR(spec, signature)) {
        const bool tensor = spec->form == FORM_TENSOR, read = spec->role != ROLE_OUTPUT,
                   drawn = spec->stream && spec->form != FORM_INTEGERS;
        for (int i = 0; i < tensor_dims(spec); i++) {
            const enum dim dim = spec->dims[i];
            expect(dim != DIM_CHANNEL || signature->channels, spec->name, "needs .channels");
            expect(dim != DIM_PAIR || signature->rotary, spec->name, "needs .rotary");
            expect(dim != DIM_COLUMN || signature->columns, spec->name, "needs .columns");
        }
        expect(!tensor || tensor_dims(spec) >= 2, spec->name, "no dimensions");
        expect(tensor_dims(spec) || spec->size, spec->name, "neither dimensions nor a size");
        expect(!spec->shared == !spec->stride_batch, spec->name,
               "`shared` and `stride_batch` go together");
        expect(!tensor || !read || spec->dense_copy, spec->name, "needs .dense_copy");
        expect(spec->role != ROLE_INPUT || spec->form == FORM_POSITIONS || spec->fill || drawn,
               spec->name, "needs .fill or .stream");
        expect(spec->role != ROLE_X || outputs > 0, spec->name, "x must follow out");
        expect(read || !spec->cached, spec->name, "an output cannot be .cached");
        outputs += spec->role == ROLE_OUTPUT;
    }
    expect(outputs > 0 && outputs <= 2, "", "needs one output or two");
}

static void check_work(void)
{
    expect(signature->work != WORK_UNSET, "work", "is not set");
    expect(!signature->count_work || signature->work != WORK_NONE, "count_work", "has no work");
}

static void check_cuts(void)
{
    for (int k = 0; k < 2; k++) {
        bool cut = signature->shares[k] == DIM_NONE && k > 0;
        for (int i = 0; i < MOST_CUTS; i++)
            cut = cut || (signature->cuts[i] && signature->cuts[i] == signature->shares[k]);
        expect(cut, "shares", "must be among .cuts");
    }
}

static void check_call(const struct problem *p, const char *what)
{
    struct call call;
    const bool made = call_create(&call, p, &tensor_allocator_default) == POSENC_OK;
    expect(made, what, made ? "" : call.error.what);
    for (EACH_TENSOR(spec, signature))
        expect(!made || spec->form != FORM_TENSOR || !tensor_present(p, spec) ||
                   call_data(&call, spec),
               what, spec->name);
    expect(problem_bytes(p) > 0 && problem_working_set(p) <= problem_bytes(p), what,
           "its bytes are 0, or fewer than its working set");
    if (made)
        call_destroy(&call);
}

static void check_problems(void)
{
    int64_t positions[MOST_RANDOM_TOKENS];
    const struct problem small = problem_default(kernel),
                         realistic = problem_realistic(kernel, POSENC_DTYPE_F32, 1 << 16),
                         larger = problem_realistic(kernel, POSENC_DTYPE_F32, 1 << 24);
    check_call(&small, "default");
    check_call(&realistic, "realistic");
    expect(problem_working_set(&larger) > 64 * problem_working_set(&realistic), "realistic",
           "does not grow with the bytes");
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const struct problem any = problem_random(kernel, seed, positions);
        check_call(&any, "random");
    }
}

int main(void)
{
    for (kernel = 0; kernel < POSENC_KERNEL_COUNT; kernel++) {
        signature = signature_of(kernel);
        expect(signature->fields, "", "it has no fields");
        check_arguments();
        check_tensors();
        check_cuts();
        check_work();
        if (!n_failures)
            check_fields();
        if (!n_failures)
            check_problems();
    }
    return n_failures ? 1 : 0;
}
