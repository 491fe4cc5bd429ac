/*
 * The table of mistakes, which the build makes of cases/mistakes.txt, and the subject in which
 * one of them is made: the library's functions with one that is wrong (see mistake.h).
 */
#include "mistake.h"

#include "conformance/problem/signature.h"

#include <stdatomic.h>
#include <string.h>

const struct mistake mistakes[] = {
#define MISTAKE(name, kernel, suite, how, function, what)                                      \
    { #name, POSENC_KERNEL_##kernel, #suite, what, .how = function },
#include "mistakes.inc"
};
const int n_mistakes = sizeof mistakes / sizeof mistakes[0];

/* Which kernels a mistake in every kernel concerns, beside those that problem.h asks for. */
static bool any_kernel(enum posenc_kernel kernel) { return kernel < POSENC_KERNEL_COUNT; }
static bool has_positions(enum posenc_kernel kernel) { return !kernel_on_scores(kernel); }

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

const struct mistake mistakes_everywhere[] = {
#define EVERYWHERE(name, suite, property, concerns, first, last, how, function)                \
    { name,     POSENC_KERNEL_COUNT, #suite,        NULL,           concerns,                  \
      property, POSENC_##first,      POSENC_##last, .how = function },
#include "mistakes.inc"
};
const int n_mistakes_everywhere = sizeof mistakes_everywhere / sizeof mistakes_everywhere[0];

const struct mistake *mistake_now;
const struct posenc_backend *mistake_base;
static atomic_ulong made;

void mistake_made(void) { atomic_fetch_add(&made, 1); }
unsigned long mistake_count(void) { return atomic_load(&made); }

const struct mistake *mistake_find(const char *name)
{
    for (int i = 0; i < n_mistakes; i++)
        if (strcmp(mistakes[i].name, name) == 0)
            return &mistakes[i];
    return NULL;
}

/* ---- Kernels ---- */

#define POSENC_KERNEL(name, signature, ...)                                                    \
    static enum posenc_status mistaken_##name(const struct posenc_##signature##_args *args)    \
    {                                                                                          \
        const union arguments given = { .signature = *args };                                  \
        return enter(POSENC_KERNEL_##name, &given);                                            \
    }
#include <posenc_kernels.def>

static bool in_kernels(const struct mistake *m)
{
    return m->position || m->arguments || m->around || m->after || m->pair || m->element ||
           m->rotation || m->sum || m->norm || m->store || m->load;
}

static struct posenc_backend backend_with(const struct mistake *m)
{
    struct posenc_backend backend = *mistake_base;
    backend.name = m->name;
#define POSENC_KERNEL(kernel_name, ...)                                                        \
    if (in_kernels(m) &&                                                                       \
        (m->kernel == POSENC_KERNEL_##kernel_name || m->kernel == POSENC_KERNEL_COUNT))        \
        backend.kernel_name = mistaken_##kernel_name;
#include <posenc_kernels.def>
    return backend;
}

/* ---- Plans and builders: the real ones, their refusals too, and then the mistake ---- */

static enum posenc_status mistaken_plan(const struct posenc_freqs_spec *spec,
                                        struct posenc_freqs **freqs, struct posenc_error *error)
{
    struct posenc_freqs_spec s = *spec;
    if (mistake_now->plan)
        mistake_now->plan(&s);
    if (memcmp(&s, spec, sizeof s) != 0)
        mistake_made();
    return posenc_freqs_create(&s, freqs, error);
}

static enum posenc_status change_integers(enum posenc_status status, built_mistake *mistake,
                                          struct built b, int32_t *out)
{
    if (status != POSENC_OK || !mistake)
        return status;
    mistake_made();
    b.index = out;
    for (int64_t e = 0; e < b.n; e++)
        out[e] = (int32_t)mistake(&b, e);
    return status;
}

static enum posenc_status slopes(int64_t n_heads, double alibi_bias_max, float *out)
{
    const enum posenc_status status = posenc_alibi_slopes(n_heads, alibi_bias_max, out);
    const struct built b = { .rows = n_heads, .bias_max = alibi_bias_max, .slopes = out };
    if (status == POSENC_OK && mistake_now->alibi_slopes)
        mistake_made();
    for (int64_t h = 0; status == POSENC_OK && mistake_now->alibi_slopes && h < n_heads; h++)
        out[h] = (float)mistake_now->alibi_slopes(&b, h);
    return status;
}

static enum posenc_status thresholds(int64_t buckets, int64_t most, bool bidirectional,
                                     int32_t *out)
{
    const int64_t n = bidirectional ? buckets / 2 : buckets;
    return change_integers(posenc_t5_thresholds(buckets, most, bidirectional, out),
                           mistake_now->t5_thresholds,
                           (struct built){ .n = n, .buckets = n, .most = most }, out);
}

static enum posenc_status padding(int64_t batch, int64_t tokens, const uint8_t *mask,
                                  int64_t padding_idx, int32_t *out)
{
    const struct built b = { .rows = batch,
                             .columns = tokens,
                             .offset = padding_idx,
                             .mask = mask,
                             .n = batch * tokens };
    return change_integers(posenc_padding_positions(batch, tokens, mask, padding_idx, out),
                           mistake_now->padding_positions, b, out);
}

/* The index of a window, with `more` tokens that have no place in it and three more rows for
 * each. */
static struct built window(int64_t height, int64_t width, int64_t more)
{
    const int64_t tokens = height * width + more;
    return (struct built){ .rows = height,
                           .columns = width,
                           .n = tokens * tokens,
                           .last = (2 * height - 1) * (2 * width - 1) - 1 + 3 * more };
}

static enum posenc_status swin(int64_t height, int64_t width, int32_t *index)
{
    return change_integers(posenc_swin_index(height, width, index), mistake_now->swin_index,
                           window(height, width, 0), index);
}

static enum posenc_status beit(int64_t height, int64_t width, int32_t *index)
{
    return change_integers(posenc_beit_index(height, width, index), mistake_now->beit_index,
                           window(height, width, 1), index);
}

static struct built distances(int64_t queries, int64_t keys, int64_t query_offset, int64_t last)
{
    return (struct built){ .rows = queries,
                           .columns = keys,
                           .offset = query_offset,
                           .n = queries + keys - 1,
                           .last = last };
}

static enum posenc_status shaw(int64_t queries, int64_t keys, int64_t query_offset,
                               int64_t most, int32_t *index)
{
    return change_integers(posenc_shaw_index(queries, keys, query_offset, most, index),
                           mistake_now->shaw_index,
                           distances(queries, keys, query_offset, 2 * most), index);
}

static enum posenc_status transformer_xl(int64_t queries, int64_t keys, int32_t *index)
{
    return change_integers(posenc_transformer_xl_index(queries, keys, index),
                           mistake_now->transformer_xl_index,
                           distances(queries, keys, keys - queries, keys - 1), index);
}

static enum posenc_status deberta(int64_t queries, int64_t keys, int64_t query_offset,
                                  int64_t buckets, int64_t most, int32_t *index)
{
    struct built b =
        distances(queries, keys, query_offset, 2 * (buckets > 0 ? buckets : most) - 1);
    b.buckets = buckets;
    b.most = most;
    return change_integers(
        posenc_deberta_index(queries, keys, query_offset, buckets, most, index),
        mistake_now->deberta_index, b, index);
}

/* ---- The front-end ---- */

static enum posenc_status front(enum posenc_kernel kernel, front_end *real,
                                const struct posenc_backend *backend,
                                const struct posenc_sinusoidal_args *args)
{
    if (!mistake_now->front || mistake_now->kernel != kernel)
        return real(backend, args);
    mistake_made();
    return mistake_now->front(real, backend, args);
}

static enum posenc_status front_sinusoidal(const struct posenc_backend *backend,
                                           const struct posenc_sinusoidal_args *args)
{
    return front(POSENC_KERNEL_sinusoidal, posenc_sinusoidal, backend, args);
}

static enum posenc_status front_sinusoidal_add(const struct posenc_backend *backend,
                                               const struct posenc_sinusoidal_args *args)
{
    return front(POSENC_KERNEL_sinusoidal_add, posenc_sinusoidal_add, backend, args);
}

const struct subject *mistaken(const struct mistake *mistake, const struct posenc_backend *base)
{
    static struct posenc_backend backend;
    static struct subject subject;
    mistake_now = mistake;
    mistake_base = base;
    atomic_store(&made, 0);
    backend = backend_with(mistake);
    subject = subject_of(&backend);
    subject.freqs_create = mistaken_plan;
    subject.alibi_slopes = slopes;
    subject.t5_thresholds = thresholds;
    subject.padding_positions = padding;
    subject.swin_index = swin;
    subject.beit_index = beit;
    subject.shaw_index = shaw;
    subject.transformer_xl_index = transformer_xl;
    subject.deberta_index = deberta;
    subject.sinusoidal = front_sinusoidal;
    subject.sinusoidal_add = front_sinusoidal_add;
    return &subject;
}
