/*
 * Tests that programs and plug-ins built with an older or a newer posenc.h, in which a struct is smaller or larger, are
 * summary or rejected as that header promises.
 *
 * Older programs are simulated in two ways: by smaller sizes, and by a future library for which today's structs are the
 * old ones (posenc_versioned_copy() with a struct that has a further member).
 */
#include "impl/versioned.h"
#include "base/tap/tap.h"

#include <stdio.h>
#include <string.h>

/* ---- A future library and a program of today ---- */

struct later_args {
    struct posenc_rope_args now;
    int64_t added;
};

static void init_later(void *to)
{
    struct later_args *args = to;
    *args = (struct later_args){ .now = posenc_rope_args_init(), .added = 7 };
    args->now.size = sizeof *args;
}

static void test_added_member(void)
{
    const struct versioned later = { sizeof(struct later_args), sizeof(struct posenc_rope_args),
                                     sizeof(int64_t), init_later };
    struct posenc_rope_args program = posenc_rope_args_init();
    struct later_args library;

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
    args.cos = posenc_const_dense(r->cosines, 2, 1, 4, 0, 0);
    args.sin = posenc_const_dense(r->sines, 2, 1, 4, 0, 0);
    args.out = posenc_dense(r->x, 3, 1, 1, 8, 0);
    args.x = posenc_view(args.out);
    return args;
}

static void test_newer_program(void)
{
    struct rotation r;
    struct posenc_error error;
    struct later_args args = { .now = make_args(&r), .added = 0 };

    args.now.size = sizeof args;
    args.now.error = &error;
    require(posenc_rope_half(NULL, &args.now) == POSENC_OK && r.x[4] == 0.0f && r.x[0] == -4.0f,
            "a newer program runs that leaves the new member alone");
    args.added = 1;
    require(posenc_rope_half(NULL, &args.now) == POSENC_ERR_ARGUMENT && error.what != NULL &&
                error.value == (double)sizeof args,
            "one that sets it is rejected, with the reason");
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
                posenc_freqs_view(freqs).omega[1] == 0.01,
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
    require(posenc_rope_half(&older, &args) == POSENC_OK, "an older plug-in has its kernels");
    require(posenc_rope_interleaved(&older, &args) == POSENC_ERR_NOT_PROVIDED,
            "and none beyond its size");
    newer.now.size = sizeof newer;
    require(posenc_rope_half(&newer.now, &args) == POSENC_OK,
            "a newer one runs that has none of the new kernels");
    newer.added = (void (*)(void))test_newer_program;
    require(posenc_rope_half(&newer.now, &args) == POSENC_ERR_ARGUMENT,
            "one that has some is rejected");
}

int main(void)
{
    test_added_member();
    test_newer_program();
    test_older_spec();
    test_plugins();
    return tap_end();
}
