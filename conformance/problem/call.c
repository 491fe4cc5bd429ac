/*
 * Makes a call from a problem, in memory of the caller's allocator; runs, resets, reads, cuts and destroys it:
 * call_create(), call_run() for each backend after call_reset(), call_row(), call_destroy().
 *
 * The value of a row depends only on its own position and parameters. A part of the tensors along one dimension, with
 * its positions, slopes or columns, is therefore a valid call.
 */
#include "arena.h"
#include "signature.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

enum { BOUNDARY = 64 };

/* ---- Default memory ---- */

/* Header at the start of an allocation. */
struct block_header {
    size_t reserved; /* bytes; 0: allocated */
};

static void *default_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    (void)user, (void)role;
    const size_t offset = (size_t)offset_bytes % BOUNDARY, size = BOUNDARY + offset + bytes;
    if (size < bytes || size > SIZE_MAX - BOUNDARY)
        return NULL;
    const size_t all = (size + BOUNDARY - 1) / BOUNDARY * BOUNDARY,
                 large = all < RESERVE_FROM ? 0 : all;
    struct block_header *base = large ? pages_reserve(all) : aligned_alloc(BOUNDARY, all);
    if (!base)
        return NULL;
    base->reserved = large;
    return (char *)base + BOUNDARY + offset;
}

/* The data begin less than 64 bytes after a boundary. The header is at the boundary before that one. */
static void default_free(void *user, void *data)
{
    (void)user;
    struct block_header *base =
        data ? (void *)((char *)data - (uintptr_t)data % BOUNDARY - BOUNDARY) : NULL;
    if (base && base->reserved)
        pages_release(base, base->reserved);
    else
        free(base);
}

const struct tensor_allocator tensor_allocator_default = { .get = default_get,
                                                           .free = default_free };

/* ---- Implementations under test ---- */

const struct implementation implementation_library = {
#define FUNCTION(name) .name = posenc_##name,
    IMPLEMENTATION_BUILDERS(FUNCTION)
#define POSENC_KERNEL(ID, name, ...) FUNCTION(name)
#include <posenc_kernels.def>
#undef FUNCTION
};

struct implementation implementation_of(const struct posenc_backend *backend)
{
    struct implementation implementation = implementation_library;
    implementation.backend = backend;
    return implementation;
}

/* Places of the function of each kernel in an implementation and in a backend. */
static const struct entry {
    size_t in_implementation, in_backend;
} entries[] = {
#define POSENC_KERNEL(ID, name, ...)                                                           \
    { offsetof(struct implementation, name), offsetof(struct posenc_backend, name) },
#include <posenc_kernels.def>
};

static void (*read_function(const void *functions, size_t offset))(void)
{
    void (*function)(void);
    memcpy(&function, (const char *)functions + offset, sizeof function);
    return function;
}

void (*implementation_entry(const struct implementation *implementation,
                            enum posenc_kernel kernel))(void)
{
    return read_function(implementation, entries[kernel].in_implementation);
}

void (*backend_entry(const struct posenc_backend *backend, enum posenc_kernel kernel))(void)
{
    return read_function(backend, entries[kernel].in_backend);
}

/* ---- Steps that may fail ---- */

bool call_reject(struct call *call, enum posenc_status status, const char *what, int64_t value)
{
    call->error = (struct posenc_error){
        .status = status, .value = (double)value, .least = 1.0, .most = 0.0
    };
    snprintf(call->error.what, sizeof call->error.what, "%s", what);
    return false;
}

bool call_check(struct call *call, enum posenc_status status, const char *what, int64_t value,
                int64_t least, int64_t most)
{
    if (status == POSENC_OK)
        return true;
    call_reject(call, status, what, value);
    if (value < least || value > most) { /* else it was rejected for another reason */
        call->error.least = (double)least;
        call->error.most = (double)most;
    }
    return false;
}

bool call_check_range(struct call *call, enum posenc_status otherwise, const char *what,
                      int64_t value, int64_t least, int64_t most)
{
    const bool within = least <= value && value <= most;
    return call_check(call, within ? POSENC_OK : otherwise, what, value, least, most);
}

void *call_allocate(struct call *call, int64_t n, size_t item)
{
    void *kept = arena_get(&call->arena, (size_t)n * item);
    if (!kept)
        call_reject(call, POSENC_ERR_MEMORY, "memory of a call", n);
    return kept;
}

/* ---- Frequencies ---- */

enum { MOST_FACTORS_DIM = 1 << 16 }; /* the library rejects larger dims */

/* Makes longrope factors that rise evenly from 1 to the last ones of the problem. */
static bool make_factors(struct call *call)
{
    struct posenc_freqs_spec *spec = &call->problem.freqs;
    if (spec->scaling != POSENC_SCALING_LONGROPE || spec->short_factor || spec->long_factor ||
        spec->dim < 1 || spec->dim > MOST_FACTORS_DIM)
        return true;
    const int64_t n = (spec->dim + 1) / 2;
    double *factors = call_allocate(call, 2 * n, sizeof *factors);
    for (int64_t i = 0; factors && i < n; i++) {
        const double share = n > 1 ? (double)i / (double)(n - 1) : 0.0;
        factors[i] = 1.0 + (call->problem.short_factor_last - 1.0) * share;
        factors[n + i] = 1.0 + (call->problem.long_factor_last - 1.0) * share;
    }
    spec->short_factor = factors;
    spec->long_factor = factors ? factors + n : NULL;
    return factors;
}

/* Cache of frequencies, until the program ends: the first 512 of the library whose spec has no arrays. Suites make
 * the same call many times, in other memory or for another backend, and computing frequencies is most of the cost.
 * Calls are made by one thread at a time. Padding may differ between equal specs; that costs only a second entry. */
enum { MOST_CACHED_FREQS = 512 };
static struct cached_freqs {
    struct posenc_freqs_spec spec;
    struct posenc_freqs *freqs;
} cached_freqs[MOST_CACHED_FREQS];
static int n_cached_freqs;

static enum posenc_status get_freqs(struct call *call)
{
    const struct implementation *implementation = call->implementation;
    const struct posenc_freqs_spec *spec = &call->problem.freqs;
    const bool shared = implementation->freqs_create == posenc_freqs_create &&
                        !spec->short_factor && !spec->long_factor && !spec->values;
    for (int i = 0; shared && i < n_cached_freqs; i++)
        if (memcmp(&cached_freqs[i].spec, spec, sizeof *spec) == 0) {
            call->freqs = cached_freqs[i].freqs;
            return POSENC_OK;
        }
    const enum posenc_status status =
        implementation->freqs_create(spec, &call->freqs, &call->error);
    if (shared && status == POSENC_OK && n_cached_freqs < MOST_CACHED_FREQS) {
        memcpy(&cached_freqs[n_cached_freqs].spec, spec, sizeof *spec);
        cached_freqs[n_cached_freqs++].freqs = call->freqs;
    }
    return status;
}

/* Destroys the frequencies of a call, unless other calls share them. */
static void destroy_freqs(struct call *call)
{
    for (int i = 0; i < n_cached_freqs; i++)
        if (cached_freqs[i].freqs == call->freqs)
            return;
    if (call->freqs)
        call->implementation->freqs_destroy(call->freqs);
}

static bool make_freqs(struct call *call, const struct signature *s)
{
    if (!make_factors(call))
        return false;
    call->error.status = get_freqs(call);
    memcpy((char *)&call->args + s->freqs, &call->freqs, sizeof call->freqs);
    return call->error.status == POSENC_OK;
}

/* ---- Arguments ---- */

static bool make_arguments(struct call *call)
{
    const struct signature *s = signature_of(call->problem.kernel);
    s->blank(&call->args);
    if (!kernel_has_batch(call->problem.kernel) &&
        !call_check_range(call, POSENC_ERR_SHAPE, "batch of a bias", call->problem.batch, 1, 1))
        return false;
    if (s->check && !s->check(call))
        return false;
    problem_derive(&call->problem);
    if (s->freqs && !make_freqs(call, s))
        return false;
    for (EACH_TENSOR(spec, s))
        if (tensor_present(&call->problem, spec) && !call_make_tensor(call, spec))
            return false;
    for (EACH_PARAMETER(parameter, s))
        parameter_store(parameter, &call->problem, &call->args);
    if (s->finish)
        s->finish(call);
    return true;
}

/* ---- Calls ---- */

static bool check_problem(struct call *call)
{
    const struct problem *p = &call->problem;
    const enum posenc_dtype types[] = { p->dtype, p->table_dtype, p->values_dtype };
    const int64_t item =
        p->dtype != POSENC_DTYPE_F32 || p->table_dtype != POSENC_DTYPE_F32 ? 2 : 4;
    bool good = true;
    for (int i = 0; i < 3 && good; i++)
        good = call_check_range(call, POSENC_ERR_DTYPE, "a type", (int64_t)types[i],
                                POSENC_DTYPE_F32, POSENC_DTYPE_BF16);
    for (int i = 0; i < LAYOUTS && good; i++)
        good = call_check_range(call, POSENC_ERR_ARGUMENT, "offset_bytes of a tensor",
                                p->layouts[i].offset_bytes, 0, INT64_MAX);
    const bool whole = p->offset_bytes >= 0 && p->offset_bytes % item == 0;
    return good && call_check(call, whole ? POSENC_OK : POSENC_ERR_ARGUMENT, "offset_bytes",
                              p->offset_bytes, 0, INT64_MAX);
}

enum posenc_status call_create_by(const struct implementation *implementation,
                                  struct call *call, const struct problem *problem,
                                  const struct tensor_allocator *memory)
{
    *call = (struct call){ .problem = *problem,
                           .implementation =
                               implementation ? implementation : &implementation_library,
                           .memory = memory ? *memory : tensor_allocator_default };
    if (!check_problem(call) || !make_arguments(call)) {
        const struct posenc_error error = call->error;
        call_destroy(call);
        call->error = error;
        return error.status;
    }
    call_reset(call);
    if (call->memory.seal)
        call->memory.seal(call->memory.user);
    return POSENC_OK;
}

enum posenc_status call_share(const struct call *call,
                              const struct implementation *implementation, struct call *copy)
{
    const struct signature *s = signature_of(call->problem.kernel);
    *copy = *call;
    copy->implementation = implementation;
    copy->freqs = NULL;
    return !s->freqs || make_freqs(copy, s) ? POSENC_OK : copy->error.status;
}

void call_unshare(struct call *copy)
{
    destroy_freqs(copy);
    *copy = (struct call){ 0 };
}

enum posenc_status call_create(struct call *call, const struct problem *problem,
                               const struct tensor_allocator *memory)
{
    return call_create_by(NULL, call, problem, memory);
}

static enum posenc_status run_kernel(struct call *call, const struct posenc_backend *backend)
{
    switch (call->problem.kernel) {
#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    case POSENC_KERNEL_##ID:                                                                   \
        return call->implementation->name(backend, &call->args.signature, &call->error);
#include <posenc_kernels.def>
    case POSENC_KERNEL_COUNT:
    case POSENC_KERNEL_NONE:
        break;
    }
    return POSENC_ERR_ARGUMENT;
}

enum posenc_status call_run(struct call *call, const struct posenc_backend *backend)
{
    call->error = (struct posenc_error){ 0 };
    enum posenc_status status = run_kernel(call, backend);
    if (!*call->error.what) /* another implementation's kernel may give no reason */
        call->error.status = status;
    return status;
}

/* Rows may overlap here, hence memmove(): overlapping outputs are rejected by the library, later. */
static void fill_canary(const struct output *output)
{
    const enum posenc_dtype dtype = output->tensor.dtype;
    for (int64_t r = 0; r < output->rows && output->width; r++) {
        void *first = storage_row(&output->tensor, 0), *row = storage_row(&output->tensor, r);
        for (int64_t c = 0; r == 0 && c < output->width; c++)
            storage_put(dtype, first, c, bits_to_float(CALL_CANARY));
        if (r > 0)
            memmove(row, first, (size_t)output->width * storage_size(dtype));
    }
}

void call_reset(struct call *call)
{
    const struct problem *p = &call->problem;
    if (p->in_place)
        tensor_scatter(&call->outputs[0].tensor, call->x);
    else if (problem_accumulates(p))
        tensor_scatter(&call->outputs[0].tensor, call->table);
    else
        for (int o = 0; o < call->n_outputs; o++)
            fill_canary(&call->outputs[o]);
}

void call_destroy(struct call *call)
{
    for (int i = 0; i < call->n_owned; i++)
        call->memory.free(call->memory.user, call->owned[i]);
    arena_free(&call->arena);
    destroy_freqs(call);
    *call = (struct call){ 0 };
}

const float *call_row(const struct call *call, int o, int64_t r)
{
    const struct output *output = &call->outputs[o];
    const void *row = storage_row(&output->tensor, r);
    if (output->tensor.dtype == POSENC_DTYPE_F32)
        return row;
    float *wide = call->wide[o] + r * output->width;
    for (int64_t c = 0; c < output->width; c++)
        wide[c] = storage_get(output->tensor.dtype, row, c);
    return wide;
}

/* ---- Parts of a call ---- */

/* The part [from, from + count) of a dimension. */
struct call_part {
    enum dim dim;
    int64_t from, count;
};

static void cut_tensor(struct call *c, const struct tensor_spec *spec,
                       const struct call_part *part)
{
    struct posenc_tensor *t = call_argument(c, spec);
    const int d = call_dim(c, spec, part->dim);
    if (d < 0 || !t->data)
        return;
    t->data = (char *)t->data + part->from * t->stride[d] * (int64_t)storage_size(t->dtype);
    t->shape[d] = part->count;
}

static void cut_positions(struct call *c, const struct tensor_spec *spec,
                          const struct call_part *part)
{
    struct posenc_positions *p = call_argument(c, spec);
    const int64_t item = p->kind == POSENC_POSITIONS_I64 ? 8 : 4;
    int64_t stride = 0;
    if (part->dim == DIM_TOKEN)
        stride = p->stride_token ? p->stride_token : 1; /* the library reads 0 as 1 */
    else if (part->dim == DIM_BATCH)
        stride = p->stride_batch;
    if (p->kind != POSENC_POSITIONS_OFFSET)
        p->data = (const char *)p->data + part->from * stride * item;
    else if (part->dim == DIM_TOKEN)
        p->offset += part->from;
}

/* Returns the number of elements of the whole before the first of the part. An index by query - key + keys - 1 begins
 * later for later queries and for earlier keys. */
static int64_t elements_before(const struct call *c, const struct tensor_spec *spec,
                               const struct call_part *part)
{
    const struct problem *p = &c->problem;
    int64_t stride = 1;
    if (spec->dims[0] == DIM_DISTANCE && part->dim == DIM_KEY)
        return p->keys - part->from - part->count;
    if (spec->dims[0] == DIM_DISTANCE)
        return part->dim == DIM_QUERY ? part->from : 0;
    if (part->dim == DIM_BATCH && spec->stride_batch)
        memcpy(&stride, (const char *)&c->args + spec->stride_batch, sizeof stride);
    for (int i = tensor_dims(spec); i-- > 0;) {
        if (spec->dims[i] == part->dim)
            return part->from * stride;
        if (part->dim != DIM_BATCH)
            stride *= problem_extent(p, spec->dims[i]);
    }
    return 0;
}

static void cut_pointer(struct call *c, const struct tensor_spec *spec,
                        const struct call_part *part)
{
    const char *data = call_data(c, spec);
    data += 4 * elements_before(c, spec, part); /* f32 and int32 have the same size */
    memcpy(call_argument(c, spec), &data, sizeof data);
}

/* Sets query_offset, the position of query 0 minus that of key 0, for the part. */
static void cut_offset(struct call *c, const struct call_part *part)
{
    const size_t at = signature_argument(signature_of(c->problem.kernel), MEMBER(query_offset));
    int64_t offset;
    if (!at || (part->dim != DIM_QUERY && part->dim != DIM_KEY))
        return;
    memcpy(&offset, (char *)&c->args + at, sizeof offset);
    offset += part->dim == DIM_QUERY ? part->from : -part->from;
    memcpy((char *)&c->args + at, &offset, sizeof offset);
}

struct call call_cut(const struct call *whole, enum dim dim, int64_t from, int64_t count)
{
    const struct call_part part = { dim, from, count };
    struct call c = *whole;
    for (EACH_TENSOR(spec, signature_of(c.problem.kernel)))
        if (spec->form == FORM_TENSOR)
            cut_tensor(&c, spec, &part);
        else if (spec->form == FORM_POSITIONS)
            cut_positions(&c, spec, &part);
        else
            cut_pointer(&c, spec, &part);
    cut_offset(&c, &part);
    return c;
}

int call_dim_from_last(const struct call *call, enum dim dim)
{
    const struct posenc_tensor *out = call_out((struct call *)(uintptr_t)call);
    const int d = call_dim(call, signature_output(signature_of(call->problem.kernel), 0), dim);
    return d < 0 ? -1 : out->rank - 1 - d;
}

int64_t call_extent(const struct call *call, enum dim dim)
{
    const struct posenc_tensor *out = call_out((struct call *)(uintptr_t)call);
    const int last = call_dim_from_last(call, dim);
    return last < 0 ? 1 : out->shape[out->rank - 1 - last];
}
