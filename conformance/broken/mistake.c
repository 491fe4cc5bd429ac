/*
 * The table of mistakes, which the build makes of cases/mistakes.txt, and the implementation in which
 * one of them is made: the library's functions with one that is wrong (see mistake.h).
 */
#include "mistake.h"

#include "conformance/problem/signature.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Which kernels a mistake in every kernel concerns, beside those that problem.h asks for. */
static bool any_kernel(enum posenc_kernel kernel) { return kernel < POSENC_KERNEL_COUNT; }
static bool has_positions(enum posenc_kernel kernel) { return !kernel_on_scores(kernel); }

static bool in_place_by_position(enum posenc_kernel kernel)
{
    return has_positions(kernel) && kernel_in_place(kernel);
}
static bool has_heads(enum posenc_kernel kernel)
{
    return kernel_on_scores(kernel) || kernel_rotates(kernel);
}
/* In the first output. */
static bool has_batches(enum posenc_kernel kernel)
{
    return kernel_has_batch(kernel) && kernel != POSENC_KERNEL_learned_grad;
}

/* Kernels whose output goes to attention and may be stored in 16 bits; those of them that read
 * x. */
static bool encodes(enum posenc_kernel kernel) { return kernel != POSENC_KERNEL_learned_grad; }
static bool encodes_x(enum posenc_kernel kernel)
{
    return kernel_takes_x(kernel) && encodes(kernel);
}

/* Kernels that make extreme outputs of extreme inputs: a norm does not. */
static bool overflows(enum posenc_kernel kernel)
{
    return encodes_x(kernel) && !signature_of(kernel)->gathers;
}

/* Kernels that some law has copy, store or load every value of a type.  (Where a value goes
 * through arithmetic all NaN may become the same one.) */
static bool copies(enum posenc_kernel kernel) { return kernel == POSENC_KERNEL_distance_bias; }
static bool stores(enum posenc_kernel kernel)
{
    return copies(kernel) || kernel == POSENC_KERNEL_learned_add;
}
static bool loads(enum posenc_kernel kernel)
{
    return kernel == POSENC_KERNEL_learned_grad || kernel == POSENC_KERNEL_learned_add;
}

/* Kernels with tensors besides x and out; those that read or write rows by position, of which those
 * of tables need not all be in memory. */
static bool has_tables(enum posenc_kernel kernel)
{
    bool has = false;
    for (EACH_TENSOR(row, signature_of(kernel)))
        has = has || (row->role == ROLE_INPUT && row->form == FORM_TENSOR);
    return has;
}
static bool reads_rows(enum posenc_kernel kernel)
{
    return has_positions(kernel) && !kernel_has_freqs(kernel);
}
static bool reads_angles(enum posenc_kernel kernel)
{
    return reads_rows(kernel) && has_tables(kernel);
}

/* Kernels whose output has heads, batches that differ, rows of a thousand elements. */
static bool counts(enum posenc_kernel kernel, enum dim dim)
{
    const struct tensor_row *out = signature_output(signature_of(kernel), 0);
    bool has = false;
    for (int d = 0; d < tensor_dims(out); d++)
        has = has || out->dims[d] == dim;
    return has;
}
static bool counts_heads(enum posenc_kernel kernel) { return counts(kernel, DIM_HEAD); }
static bool counts_batches(enum posenc_kernel kernel)
{
    return kernel_has_batch(kernel) && counts(kernel, DIM_BATCH);
}
static bool has_wide_rows(enum posenc_kernel kernel)
{
    return kernel_signature(kernel) != SIGNATURE_window;
}

const struct mistake mistakes[] = {
#define MISTAKE(name, kernel, suite, way, place, what)                                         \
    { #name, POSENC_KERNEL_##kernel, #suite, HOW_##way, .slip = SLIP_##place },
#define EVERYWHERE(name, suite, property, concerns, first, last, way, place)                   \
    { name,     POSENC_KERNEL_COUNT, #suite,       HOW_##way, SLIP_##place, concerns,          \
      property, POSENC_##first,      POSENC_##last },
#include "mistakes.inc"
};
const int n_mistakes = sizeof mistakes / sizeof mistakes[0];

bool mistake_concerns(const struct mistake *mistake, enum posenc_kernel kernel)
{
    return mistake->concerns ? mistake->concerns(kernel) : kernel == mistake->kernel;
}

const struct mistake *mistake_now;
const struct posenc_backend *mistake_base;

/* Not a static variable: that a kernel writes none is looked at, too. */
static atomic_ulong *made;

void mistake_made(void) { atomic_fetch_add(made, 1); }
unsigned long mistake_count(void) { return atomic_load(made); }

const struct mistake *mistake_find(const char *name)
{
    for (int i = 0; i < n_mistakes; i++)
        if (strcmp(mistakes[i].name, name) == 0)
            return &mistakes[i];
    return NULL;
}

const struct implementation *mistaken(const struct mistake *mistake,
                                      const struct posenc_backend *base)
{
    static struct posenc_backend backend;
    static struct implementation implementation;
    mistake_now = mistake;
    mistake_base = base;
    made = made ? made : malloc(sizeof *made);
    if (!made)
        exit(2);
    atomic_init(made, 0);
    backend = *base;
    backend.name = mistake->name;
    take_kernels(&backend);
    implementation = implementation_of(&backend);
    take_plans(&implementation);
    take_builders(&implementation);
    take_fronts(&implementation);
    return &implementation;
}
