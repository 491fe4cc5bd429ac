/* Rejects problems that are too large for this machine (see notation.h), such as heads=1000000000. Sizes are
 * floating-point numbers, whose products cannot overflow. */
#define _POSIX_C_SOURCE 200809L
#include "notation.h"
#include "signature.h"
#include "storage.h"
#include "base/text/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MEMORY_SHARE = 16 };

/* Limits of counts (elements, rows, heads), of batch_shift, and of other numbers such as positions and strides.
 * Products of two counts, or of a count and batch_shift, fit into 64 bits, also with another number added. */
#define MOST_COUNT (INT64_C(1) << 30)
#define MOST_SHIFT (INT64_C(1) << 32)
#define MOST_OTHER (INT64_C(1) << 60)

/* ---- Memory ---- */

/* Return the memory limits of a Linux container and of the process; HUGE_VAL if there is none. */
static double container_bytes(void)
{
    double bytes = HUGE_VAL;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "r");
    if (file && fscanf(file, "%lf", &bytes) != 1) /* the file may hold "max" */
        bytes = HUGE_VAL;
    if (file)
        fclose(file);
    return bytes;
}

static double process_bytes(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
               ? (double)limit.rlim_cur
               : HUGE_VAL;
}

struct problem_limits problem_limits_here(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const double machine = pages > 0 && page > 0 ? (double)pages * (double)page : HUGE_VAL;
    const double other = fmin(container_bytes(), process_bytes());
    return (struct problem_limits){
        .bytes = fmin(machine, other) / MEMORY_SHARE,
        .basis = other < machine ? "a sixteenth of the memory that this process may have"
                                 : "a sixteenth of this machine's memory",
    };
}

/* ---- Sizes ---- */

/* Returns true if a field counts elements of some kind. */
static bool is_count(const struct field *field)
{
    static const char counts[] =
        "dim rotary_dim head_dim rotary_offset batch tokens heads rows queries keys "
        "num_buckets "
        "position_buckets max_distance window_height window_width distances mrope_grid";
    return !field->tensor && text_has_word(counts, ' ', field->name, strlen(field->name));
}

/* Returns the limit of the magnitude of a whole number. */
static int64_t most_of(const struct field *field)
{
    if (is_count(field))
        return MOST_COUNT;
    return strcmp(field->name, "batch_shift") == 0 ? MOST_SHIFT : MOST_OTHER;
}

/* Finds the first whole number beyond its limit. */
static bool find_excess(const struct problem *problem, struct field *field, int64_t *value)
{
    for (int i = 0; kernel_field(problem->kernel, i, field); i++) {
        const int64_t n = field->kind == FIELD_I64 ? field_length(field, problem) : 0;
        for (int64_t k = 0; k < n; k++) {
            *value = (int64_t)field_get(field, problem, k);
            if (*value > most_of(field) || *value < -most_of(field))
                return true;
        }
    }
    return false;
}

static double count_elements(const struct problem *p, const struct tensor_spec *spec)
{
    double n = 1.0;
    if (spec->form == FORM_POSITIONS)
        return p->position_kind == POSENC_POSITIONS_OFFSET
                   ? 0.0
                   : (double)p->batch * (double)p->tokens * (double)problem_axes(p);
    if (spec->size)
        return fmax((double)spec->size(p), 0.0);
    for (int i = 0; i < tensor_dims(spec); i++)
        n *= fmax((double)problem_extent(p, spec->dims[i]), 0.0);
    return n;
}

/* Returns the elements that call_create() would allocate for a tensor: of a large table only the rows at the call's
 * positions, and the gaps between rows unless they are only reserved (call_tensors.c). */
static double count_allocated(const struct problem *p, const struct tensor_spec *spec)
{
    const double large = 1 << 24, gaps = 16.0, all = count_elements(p, spec);
    const struct tensor_layout *layout = tensor_layout(p, spec);
    const int n = tensor_dims(spec);
    if (spec->form != FORM_TENSOR || all <= 0.0)
        return all;
    const double width = (double)problem_extent(p, spec->dims[n - 1]);
    const bool looked_up = spec->role == ROLE_INPUT && spec->dims[0] == DIM_ROW &&
                           !spec->fill && !kernel_on_scores(p->kernel);
    const double used = looked_up && all >= large
                            ? fmin(all, (double)p->batch * (double)p->tokens * width)
                            : all;
    double span = all / width * (width + (double)p->pad + (double)layout->pad);
    for (int i = 0; i < n && i < layout->n_strides; i++) {
        const double step = fabs((double)layout->stride[i]);
        span = (i == 0 ? width : span) + (double)(problem_extent(p, spec->dims[i]) - 1) * step;
    }
    return fmin(fmax(span, used), gaps * used);
}

/* Returns the bytes of an element. Positions may have 8. */
static double element_bytes(const struct problem *p, const struct tensor_spec *spec)
{
    if (spec->form == FORM_POSITIONS)
        return 8.0;
    return spec->form == FORM_TENSOR ? (double)storage_size(tensor_dtype(p, spec)) : 4.0;
}

/* Bytes of all tensors, and values of all outputs. */
struct sizes {
    double bytes, values;
};

static struct sizes measure(const struct problem *problem)
{
    struct problem p = *problem;
    struct sizes sizes = { 0.0, 0.0 };
    problem_derive(&p);
    for (EACH_TENSOR(spec, signature_of(p.kernel))) {
        if (!tensor_present(&p, spec))
            continue;
        if (spec->role == ROLE_OUTPUT)
            sizes.values += count_elements(&p, spec);
        if (spec->role != ROLE_X || !p.in_place)
            sizes.bytes += count_allocated(&p, spec) * element_bytes(&p, spec);
    }
    return sizes;
}

double problem_memory_estimate(const struct problem *problem)
{
    struct field field;
    int64_t value;
    return find_excess(problem, &field, &value) ? HUGE_VAL : measure(problem).bytes;
}

/* ---- Messages ---- */

static bool sizes_within(const struct problem *problem, const struct problem_limits *limits)
{
    const struct sizes sizes = measure(problem);
    return sizes.bytes <= limits->bytes &&
           (limits->values <= 0.0 || sizes.values <= limits->values);
}

/* Finds the largest count, as that one is most likely mistyped. */
static bool find_largest_count(const struct problem *problem, struct field *largest)
{
    struct field field;
    int64_t most = 0;
    for (int i = 0; kernel_field(problem->kernel, i, &field); i++) {
        const bool counts =
            field.kind == FIELD_I64 && field.list == LIST_NONE && is_count(&field);
        const int64_t value = counts ? (int64_t)field_get(&field, problem, 0) : 0;
        if (value > most) {
            most = value;
            *largest = field;
        }
    }
    return most > 0;
}

/* Returns the largest value of a count for which the limits hold, by bisection; 0: none. */
static int64_t most_within(struct problem p, const struct field *count,
                           const struct problem_limits *limits)
{
    int64_t least = 0, most = (int64_t)field_get(count, &p, 0);
    while (most - least > 1) {
        const int64_t middle = least + (most - least) / 2;
        field_set(count, &p, (uint64_t)middle);
        if (sizes_within(&p, limits))
            least = middle;
        else
            most = middle;
    }
    return least;
}

static bool reject_sizes(const struct problem *problem, const struct problem_limits *limits,
                         char error[NOTATION_ERROR])
{
    const struct sizes sizes = measure(problem);
    struct field count = { .name = "sizes" };
    const bool counted = find_largest_count(problem, &count);
    const int64_t value = counted ? (int64_t)field_get(&count, problem, 0) : 0;
    const int64_t most = counted ? most_within(*problem, &count, limits) : 0;
    const bool memory = sizes.bytes > limits->bytes;
    char accepted[96] = "";
    if (most > 0)
        snprintf(accepted, sizeof accepted, ": expected %s of at most %" PRId64, count.name,
                 most);
    return notation_fail(
        error, "%s=%" PRId64 ": the call has %.4g %s; at most %.4g, %s, are possible%s",
        count.name, value, memory ? sizes.bytes : sizes.values, memory ? "bytes" : "values",
        memory ? limits->bytes : limits->values,
        memory ? limits->basis : "as each is held against the reference", accepted);
}

bool problem_within(const struct problem *problem, const struct problem_limits *limits,
                    char error[NOTATION_ERROR])
{
    struct field field;
    int64_t value;
    if (find_excess(problem, &field, &value)) {
        char name[FIELD_TEXT];
        field_name(&field, name);
        return notation_fail(error,
                             "%s=%" PRId64 ": expected at most %" PRId64 " on either side of 0",
                             name, value, most_of(&field));
    }
    return sizes_within(problem, limits) || reject_sizes(problem, limits, error);
}
