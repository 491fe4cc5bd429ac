/* Sizes as floating-point numbers, whose products cannot overflow; see cost.h. */
#define _POSIX_C_SOURCE 200809L
#include "cost.h"

#include "signature.h"
#include "base/text/text.h"
#include "storage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MEMORY_SHARE = 16 };

/* Limits of counts (elements, rows, heads): a product of two fits 64 bits. Other numbers, such as
 * positions and strides, are added to such products, and to batch_shift times a batch. */
#define MOST_COUNT (INT64_C(1) << 30)
#define MOST_SHIFT (INT64_C(1) << 32)
#define MOST_OTHER (INT64_C(1) << 60)

/* ---- Memory ---- */

/* Returns the memory limit of a Linux container. */
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
        .whom = other < machine ? "a sixteenth of the memory that this process may have"
                                : "a sixteenth of this machine's memory",
    };
}

/* ---- Sizes ---- */

static bool is_count(const struct field *field)
{
    static const char counts[] =
        "dim rotary_dim head_dim rotary_offset batch tokens heads rows queries keys "
        "num_buckets "
        "position_buckets max_distance window_height window_width distances mrope_grid";
    return !field->tensor && has_word(counts, ' ', field->name, strlen(field->name));
}

/* Finds the first field whose magnitude exceeds its limit, with its value and that limit. */
static bool find_excess(const struct problem *problem, struct field *field, int64_t *value,
                        int64_t *most)
{
    for (int i = 0; kernel_field(problem->kernel, i, field); i++) {
        if (field->kind != FIELD_I64)
            continue;
        *most = is_count(field)                           ? MOST_COUNT
                : strcmp(field->name, "batch_shift") == 0 ? MOST_SHIFT
                                                          : MOST_OTHER;
        const int64_t n = field_length(field, problem);
        for (int64_t k = 0; k < n; k++) {
            *value = (int64_t)field_get(field, problem, k);
            if (*value > *most || *value < -*most)
                return true;
        }
    }
    return false;
}

static double count_elements(const struct problem *p, const struct tensor_row *row)
{
    double n = 1.0;
    if (row->form == FORM_POSITIONS)
        return p->position_kind == POSENC_OFFSET
                   ? 0.0
                   : (double)p->batch * (double)p->tokens * (double)problem_axes(p);
    if (row->size)
        return fmax((double)row->size(p), 0.0);
    for (int i = 0; i < tensor_dims(row); i++)
        n *= fmax((double)problem_extent(p, row->dims[i]), 0.0);
    return n;
}

/* Returns the elements that call_create() would allocate for a tensor: of a large table only the
 * rows at the call's positions, plus the gaps between rows unless they are mere address space. */
static double count_allocated(const struct problem *p, const struct tensor_row *row)
{
    const double large = 1 << 24, gaps = 16.0, all = count_elements(p, row);
    const struct tensor_layout *layout = tensor_layout(p, row);
    const int n = tensor_dims(row);
    if (row->form != FORM_TENSOR || all <= 0.0)
        return all;
    const double width = (double)problem_extent(p, row->dims[n - 1]);
    const bool looked_up = row->role == ROLE_INPUT && row->dims[0] == DIM_ROW && !row->fill &&
                           !kernel_on_scores(p->kernel);
    const double used = looked_up && all >= large
                            ? fmin(all, (double)p->batch * (double)p->tokens * width)
                            : all;
    double span = all / width * (width + (double)p->pad + (double)layout->pad);
    for (int i = 0; i < n && i < layout->n_strides; i++) {
        const double step = fabs((double)layout->stride[i]);
        span = (i == 0 ? width : span) + (double)(problem_extent(p, row->dims[i]) - 1) * step;
    }
    return fmin(fmax(span, used), gaps * used);
}

/* Returns the elements of all outputs, or the bytes of all tensors. */
static double sum_sizes(const struct problem *problem, bool outputs)
{
    struct problem p = *problem;
    double n = 0.0;
    problem_settle(&p);
    for (EACH_TENSOR(row, signature_of(p.kernel))) {
        const double all = !tensor_present(&p, row) ? 0.0
                           : outputs                ? count_elements(&p, row)
                                                    : count_allocated(&p, row);
        if (outputs && row->role == ROLE_OUTPUT)
            n += all;
        else if (!outputs && (row->role != ROLE_X || !p.in_place))
            n += all * (row->form == FORM_POSITIONS ? 8.0
                        : row->form == FORM_TENSOR ? (double)storage_size(tensor_dtype(&p, row))
                                                   : 4.0);
    }
    return n;
}

double problem_memory_estimate(const struct problem *problem)
{
    struct field field;
    int64_t value, most;
    return find_excess(problem, &field, &value, &most) ? HUGE_VAL : sum_sizes(problem, false);
}

/* ---- Rejections ---- */

/* Returns the largest count, as a typing error most likely made it too large. */
static struct field largest_count(const struct problem *problem)
{
    struct field field, largest = { .name = "" };
    int64_t most = 0;
    for (int i = 0; kernel_field(problem->kernel, i, &field); i++) {
        if (field.kind != FIELD_I64 || field.list != LIST_NONE || !is_count(&field))
            continue;
        const int64_t value = (int64_t)field_get(&field, problem, 0);
        if (value > most) {
            most = value;
            largest = field;
        }
    }
    return largest;
}

/* Returns the largest value of a count that keeps the sum within the limit; 0 if none does. */
static int64_t most_within(const struct problem *problem, const struct field *field,
                           bool outputs, double limit)
{
    struct problem p = *problem;
    int64_t least = 0, most = (int64_t)field_get(field, problem, 0);
    while (most - least > 1) {
        const int64_t middle = least + (most - least) / 2;
        field_set(field, &p, (uint64_t)middle);
        if (sum_sizes(&p, outputs) <= limit)
            least = middle;
        else
            most = middle;
    }
    return least;
}

static bool write_rejection(const struct problem *problem, bool outputs, double is,
                            double limit, const char *what, const char *whom,
                            char error[NOTATION_ERROR])
{
    const struct field field = largest_count(problem);
    char accepted[96] = "";
    const int64_t most = *field.name ? most_within(problem, &field, outputs, limit) : 0;
    if (most > 0)
        snprintf(accepted, sizeof accepted, ": expected %s of at most %" PRId64, field.name,
                 most);
    return write_error(error,
                       "%s=%" PRId64 ": the call has %.4g %s; at most %.4g, %s, are possible%s",
                       *field.name ? field.name : "sizes",
                       *field.name ? (int64_t)field_get(&field, problem, 0) : 0, is, what,
                       limit, whom, accepted);
}

bool problem_within(const struct problem *problem, const struct problem_limits *limits,
                    char error[NOTATION_ERROR])
{
    struct field field;
    int64_t value, most;
    if (find_excess(problem, &field, &value, &most)) {
        char name[FIELD_TEXT];
        field_name(&field, name);
        return write_error(error,
                           "%s=%" PRId64 ": expected at most %" PRId64 " on either side of 0",
                           name, value, most);
    }
    const double bytes = sum_sizes(problem, false), values = sum_sizes(problem, true);
    if (bytes > limits->bytes)
        return write_rejection(problem, false, bytes, limits->bytes, "bytes", limits->whom,
                               error);
    if (limits->values > 0.0 && values > limits->values)
        return write_rejection(problem, true, values, limits->values, "values",
                               "as each is held against the reference", error);
    return true;
}
