/*
 * Tests that programs and plug-ins built with an older or a newer posenc.h, in which a struct is smaller or larger, are
 * accepted or rejected as that header promises.
 *
 * Older programs are simulated in two ways: by smaller sizes, and by a future library for which today's structs are the
 * old ones (posenc_versioned_copy() with a struct that has a further member).
 */
#include "impl/versioned.h"
#include "base/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A future library and a program of today ---- */

struct later_args {
    struct posenc_rope_args now;
    int64_t added;
};

static void test_added_member(void)
{
    struct later_args defaults = { .now = posenc_rope_args_init(), .added = 7 };
    const struct versioned later = { sizeof(struct later_args), sizeof(struct posenc_rope_args),
                                     sizeof(int64_t), &defaults };
    struct posenc_rope_args program = posenc_rope_args_init();
    struct later_args library;

    defaults.now.size = sizeof defaults;
    program.rotary_offset = 3;
    require(posenc_versioned_copy(&later, &library, &program) == POSENC_OK,
            "today's arguments are accepted");
    require(library.now.rotary_offset == 3 && library.now.size == sizeof library,
            "with the values of the program");
    require(library.added == 7, "the new member has its default");
    program.size -= sizeof(int64_t);
    require(posenc_versioned_copy(&later, &library, &program) == POSENC_ERR_ARGUMENT,
            "a size below that of the first release is rejected");
}

/* ---- This library, other programs ---- */

struct rotation {
    float x[8], cosines[4], sines[4];
};

static struct posenc_rope_args make_args(struct rotation *r)
{
    struct posenc_rope_args args = posenc_rope_args_init();
    for (int i = 0; i < 8; i++)
        r->x[i] = (float)i;
    memset(r->cosines, 0, sizeof r->cosines);
    for (int i = 0; i < 4; i++)
        r->sines[i] = 1.0f;
    args.cos = posenc_const_tensor_2d(POSENC_DTYPE_F32, r->cosines, 1, 4);
    args.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, r->sines, 1, 4);
    args.out = posenc_tensor_3d(POSENC_DTYPE_F32, r->x, 1, 1, 8);
    args.x = posenc_const_view(args.out);
    return args;
}

static void test_newer_program(void)
{
    struct rotation r;
    struct posenc_error error;
    struct later_args args = { .now = make_args(&r), .added = 0 };

    args.now.size = sizeof args;
    require(posenc_rope_half(NULL, &args.now, NULL) == POSENC_OK && r.x[4] == 0.0f &&
                r.x[0] == -4.0f,
            "a newer program runs that leaves the new member alone");
    args.added = 1;
    require(posenc_rope_half(NULL, &args.now, &error) == POSENC_ERR_ARGUMENT && *error.what &&
                error.value == (double)sizeof args,
            "one that sets it is rejected, with the reason");
}

/* A program that was built against an older header, in which the arguments of alibi ended before x. */
static void test_older_arguments(void)
{
    const size_t old_size = offsetof(struct posenc_alibi_args, x_scale);
    struct posenc_alibi_args args;
    memset(&args, 0x5a, sizeof args);
    posenc_args_defaults(POSENC_KERNEL_ALIBI, &args, old_size);
    require(args.size == old_size && !args.slopes && !args.causal && args.query_offset == 0,
            "defaults of an older header");
    require(((unsigned char *)&args)[old_size] == 0x5a, "and no byte beyond it");
    require(posenc_alibi_add(NULL, &args, NULL) == POSENC_ERR_SHAPE,
            "a call without tensors is rejected");
    posenc_args_defaults(POSENC_KERNEL_COUNT, &args, sizeof args);
    require(args.size == 0, "an unknown kernel has no defaults");
    struct {
        struct posenc_t5_args now;
        int64_t added;
    } newer;
    memset(&newer, 0x5a, sizeof newer);
    posenc_args_defaults(POSENC_KERNEL_T5_BIAS_ADD, &newer, sizeof newer);
    require(newer.now.size == sizeof newer && newer.now.x_scale == 1.0f && newer.added == 0,
            "defaults of a newer header: unknown members are 0");
}

/* ---- Reserved members ---- */

static void test_reserved_members(void)
{
    struct rotation r;
    struct posenc_error error = { 0 };
    struct posenc_rope_args args = make_args(&r);
    int64_t *const members[] = { args.out.reserved, args.x.reserved, args.cos.reserved,
                                 args.sin.reserved, args.positions.reserved };
    bool rejected = true;
    for (size_t i = 0; i < 2 * sizeof members / sizeof *members; i++) {
        members[i / 2][i % 2] = i % 3 == 0 ? -1 : 1;
        rejected = rejected && posenc_rope_half(NULL, &args, &error) == POSENC_ERR_ARGUMENT &&
                   strstr(error.what, "reserved");
        members[i / 2][i % 2] = 0;
    }
    require(rejected, "each reserved member of tensors and positions must be 0");
    struct posenc_t5_args t5 = posenc_t5_args_init();
    int32_t thresholds[32];
    if (posenc_t5_buckets_compute(32, 128, false, thresholds, &t5.buckets, &error))
        abort();
    t5.buckets.reserved[1] = 1;
    require(posenc_t5_bias(NULL, &t5, &error) == POSENC_ERR_ARGUMENT &&
                strstr(error.what, "reserved"),
            "of the buckets of T5");
}

static void test_older_spec(void)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    const double garbage = 1.0;

    spec.dim = 4;
    spec.values = &garbage; /* beyond the size of the older spec */
    spec.size = offsetof(struct posenc_freqs_spec, values);
    require(posenc_freqs_create(&spec, &freqs, NULL) == POSENC_OK &&
                posenc_freqs_view_of(freqs).omega[1] == 0.01,
            "an older spec is accepted, and its tail has defaults");
    posenc_freqs_destroy(freqs);
    spec.size--;
    require(posenc_freqs_create(&spec, &freqs, NULL) == POSENC_ERR_ARGUMENT,
            "an odd size is rejected");
}

static void test_plugins(void)
{
    struct {
        struct posenc_backend now;
        void (*added)(void);
    } newer = { .now = *posenc_backend_find("scalar"), .added = NULL };
    struct posenc_backend older = newer.now;
    struct rotation r;
    struct posenc_rope_args args = make_args(&r);

    older.size = offsetof(struct posenc_backend, rope_interleaved);
    require(posenc_rope_half(&older, &args, NULL) == POSENC_OK,
            "an older plug-in has its kernels");
    require(posenc_rope_interleaved(&older, &args, NULL) == POSENC_ERR_NOT_PROVIDED,
            "and none beyond its size");
    newer.now.size = sizeof newer;
    require(posenc_rope_half(&newer.now, &args, NULL) == POSENC_OK,
            "a newer one runs that has none of the new kernels");
    newer.added = (void (*)(void))test_newer_program;
    require(posenc_rope_half(&newer.now, &args, NULL) == POSENC_ERR_ARGUMENT,
            "one that has some is rejected");
}

int main(void)
{
    test_added_member();
    test_newer_program();
    test_older_arguments();
    test_reserved_members();
    test_older_spec();
    test_plugins();
    return tap_end();
}
