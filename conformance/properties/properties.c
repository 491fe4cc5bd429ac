/*
 * Suite of properties, with a result for each kernel and property. Properties are relations that define an encoding,
 * or that make a kernel a function of its arguments; they need no golden data. The other files of this folder define
 * them and derive their bounds:
 *
 *   call        every kernel: in place, numbering, strides, adds, parts; attention scores; sums
 *   storage     16 bits
 *   tables      sinusoidal, rope_table, axes, times, learned tables
 *   rope        rotations, norms of heads
 */
#define _POSIX_C_SOURCE 200809L
#include "properties.h"
#include "conformance/problem/fields.h"
#include "conformance/problem/storage.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Kernels to which a property applies ---- */

bool kernel_is_any(enum posenc_kernel kernel) { return kernel < POSENC_KERNEL_COUNT; }
bool kernel_has_positions(enum posenc_kernel kernel) { return !kernel_on_scores(kernel); }

bool kernel_has_output_dim(enum posenc_kernel kernel, enum dim dim)
{
    for (EACH_TENSOR(row, signature_of(kernel)))
        for (int d = 0; d < MOST_DIMS && row->role == ROLE_OUTPUT; d++)
            if (row->dims[d] == dim)
                return true;
    return false;
}

static bool kernel_has_field(enum posenc_kernel kernel, const char *name)
{
    struct field field;
    return kernel_field_find(kernel, name, &field);
}

bool property_can_call(struct tally *t, enum posenc_kernel other)
{
    char reason[100];
    if (posenc_backend_provides(t->run->backend, other))
        return true;
    snprintf(reason, sizeof reason,
             "the property needs %s too, which this backend does not provide",
             posenc_kernel_name(other));
    tally_skip(t, reason);
    return false;
}

/* ---- One problem of a property ---- */

/* Returns a problem of another kernel or with other fields: "rope_half", or "tokens=20 batch=1". NULL changes nothing.
 * Ends the program with a message if the text of the property is wrong. */
static struct problem with_fields(const struct property *property, struct problem p,
                                  const char *fields)
{
    char text[200], error[NOTATION_ERROR] = "expected a kernel or field=value", *rest = text;
    const int length = snprintf(text, sizeof text, "%s", fields ? fields : "");
    assert((size_t)length < sizeof text);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        struct field field;
        char *equals = strchr(word, '=');
        if (!equals && posenc_kernel_find(word) < POSENC_KERNEL_COUNT) {
            p.kernel = posenc_kernel_find(word);
            continue;
        }
        if (equals)
            *equals = '\0';
        if (equals && kernel_field_find(p.kernel, word, &field) &&
            field_read(&field, &p, equals + 1, NULL, error))
            continue;
        fprintf(stderr, "property %s: %s: %s\n", property->name, word, error);
        abort();
    }
    problem_derive(&p);
    return p;
}

static bool has_number(const struct call *out)
{
    for (EACH_ELEMENT(at, out))
        if (!isnan(at.value))
            return true;
    return false;
}

/* Runs the problem and its twin, if any, and checks the outputs. */
static void check_calls(struct tally *t, const struct property *property,
                        const struct problem *p)
{
    const struct problem twin_problem = with_fields(property, *p, property->twin);
    assert(!property->twin == (property->check_output != NULL)); /* others compare two calls */
    if (!property_can_call(t, twin_problem.kernel))
        return;
    const struct call *out = tally_run(t, p, property->edit, property->user), *twin = out;
    if (out && property->twin_edit)
        twin = tally_run(t, &twin_problem, property->twin_edit, out);
    else if (out && property->twin)
        twin = tally_run(t, &twin_problem, property->edit, property->user);
    if (!out || !twin)
        return;
    if (!require(t, has_number(out), "every value is a NaN"))
        return; /* NaNs equal one another */
    if (property->check_output)
        property->check_output(t, out);
    else if (property->compare_outputs)
        property->compare_outputs(t, out, twin);
    else
        require_same_outputs(t, out, twin, property->name);
}

static void check_once(struct tally *t, const struct property *property,
                       const struct problem *p)
{
    const struct problem own = with_fields(property, *p, property->fields);
    if (property->check_problem)
        property->check_problem(t, &own);
    else
        check_calls(t, property, &own);
    tally_free_calls(t);
}

/* ---- The suite ---- */

static const struct property *const property_lists[] = {
    properties_call,
    properties_storage,
    properties_tables,
    properties_rope,
};

static bool is_problem_of(const struct problem_line *line, const struct property *property)
{
    return strcmp(line->name, property->problems ? property->problems : property->name) == 0;
}

/* Checks a problem as it is and, if property and kernel allow, in place. */
static void check_problem(struct tally *t, const struct property *property, struct problem p)
{
    p.dtype = property->dtype;
    problem_derive(&p);
    check_once(t, property, &p);
    p.in_place = property->in_place && kernel_in_place(p.kernel);
    if (p.in_place)
        check_once(t, property, &p);
}

static bool is_applied(const struct property *property, enum posenc_kernel kernel)
{
    bool applies = property->applies_to && property->applies_to(kernel);
    for (EACH_CASE(line, CASES_PROPERTIES))
        if (!property->applies_to && line->problem.kernel == kernel)
            applies = applies || is_problem_of(line, property);
    return applies &&
           (!property->needed_field || kernel_has_field(kernel, property->needed_field));
}

/* Returns true for a property that compares bits of results: with those of another call or of another part. */
static bool compares_bits(const struct property *property)
{
    return property->by_bits ||
           !(property->check_problem || property->check_output || property->compare_outputs);
}

static void check_property(struct suite_run *run, enum posenc_kernel kernel,
                           const struct property *property)
{
    struct tally t;
    const bool full = run->options->full;
    bool has_problem = false;
    if (!is_applied(property, kernel) || (property->full_only && !full) ||
        (run->options->program && compares_bits(property)) ||
        !tally_begin(&t, run, kernel, property->dtype, "properties", NULL, "%s",
                     property->name))
        return;
    for (EACH_CASE(line, CASES_PROPERTIES))
        if (line->problem.kernel == kernel && is_problem_of(line, property) &&
            (full || !*line->flags)) {
            check_problem(&t, property, line->problem);
            has_problem = true;
        }
    if (!has_problem && property->applies_to)
        check_problem(&t, property, problem_default(kernel));
    tally_end(&t);
}

static bool is_known_line(const struct problem_line *line)
{
    bool known = false;
    for (size_t f = 0; f < sizeof property_lists / sizeof *property_lists; f++)
        for (const struct property *property = property_lists[f]; property->name; property++)
            known = known || is_problem_of(line, property);
    return known;
}

void suite_properties(struct suite_run *run, enum posenc_kernel kernel)
{
    require_known_lines(CASES_PROPERTIES, "properties.txt", is_known_line);
    for (size_t f = 0; f < sizeof property_lists / sizeof *property_lists; f++)
        for (const struct property *property = property_lists[f]; property->name; property++)
            check_property(run, kernel, property);
}

/* ---- Elements, and edits and requirements of all of them ---- */

struct element element_at(const struct call *call, int output, int64_t row)
{
    if (!call || output == call->n_outputs)
        return (struct element){ .call = NULL };
    if (row == call->outputs[output].rows)
        return element_at(call, output + 1, 0);
    const float *values = call_row(call, output, row);
    const int64_t width = call->outputs[output].width;
    return (struct element){ call, output, row, 0, width, values, *values };
}

float element_x(const struct element *at)
{
    return at->call->x[at->row * at->call->outputs[at->output].width + at->column];
}

struct tensor_element tensor_element_at(const struct posenc_tensor *in, int64_t row,
                                        int64_t column)
{
    if (in && in->data && column == in->shape[in->rank - 1]) {
        row++;
        column = 0;
    }
    const bool exists = in && in->data && row < storage_rows(in);
    return (struct tensor_element){ exists ? in : NULL, row, column };
}

void tensor_element_put(struct tensor_element at, float value)
{
    storage_put(at.in->dtype, storage_row(at.in, at.row), at.column, value);
}

float tensor_element_get(struct tensor_element at)
{
    return storage_get(at.in->dtype, storage_row(at.in, at.row), at.column);
}

const float plus_one = 1.0f, minus_zero = -0.0f;

void tensor_repeat_rows(const struct posenc_tensor *in, int64_t n)
{
    for (EACH_TENSOR_ELEMENT(at, in))
        tensor_element_put(at, storage_row_f32(in, at.row % n)[at.column]);
}

void edit_fill_x(struct call *call, const void *value)
{
    for (EACH_TENSOR_ELEMENT(at, call_x(call)))
        tensor_element_put(at, *(const float *)value);
}

void element_require(struct tally *t, const struct element *at, float want, const char *what)
{
    require(t, canonical_bits(at->value) == canonical_bits(want),
            "row %lld element %lld is %.9g (%08x), %s %.9g (%08x)", (long long)at->row,
            (long long)at->column, (double)at->value, float_to_bits(at->value), what,
            (double)want, float_to_bits(want));
}

double element_inner_product(const struct call *out, const float *by, double *magnitudes)
{
    double sum = 0.0;
    for (EACH_ELEMENT(at, out)) {
        if (at.output > 0)
            break;
        const double term =
            (double)at.value * (double)by[at.row * out->outputs[0].width + at.column];
        sum += term;
        *magnitudes += fabs(term);
    }
    return sum;
}

/* ---- Pairs ---- */

double complex pair_make(double real, double imaginary)
{
    const double parts[2] = { real, imaginary };
    double complex z;
    memcpy(&z, parts, sizeof z);
    return z;
}

int64_t pair_count(const struct problem *p)
{
    return (kernel_rotates(p->kernel) ? p->rotary_dim : p->freqs.dim) / 2;
}

struct pair_columns pair_columns(const struct problem *p, int64_t i)
{
    const bool rotates = kernel_rotates(p->kernel);
    const int64_t from = p->rotary_offset, half = pair_count(p);
    if (rotates && kernel_pairs_adjacent(p->kernel))
        return (struct pair_columns){ from + 2 * i, from + 2 * i + 1 };
    if (rotates)
        return (struct pair_columns){ from + i, from + half + i };
    return p->layout == POSENC_LAYOUT_INTERLEAVED ? (struct pair_columns){ 2 * i + 1, 2 * i }
           : p->layout == POSENC_LAYOUT_SIN_COS   ? (struct pair_columns){ half + i, i }
                                                  : (struct pair_columns){ i, half + i };
}

double complex pair_from_output(const struct call *call, int64_t r, int64_t i)
{
    const struct pair_columns at = pair_columns(&call->problem, i);
    const struct posenc_tensor *out = &call->outputs[0].tensor, *sin = &call->outputs[1].tensor;
    const void *row = storage_row(out, r);
    if (call->n_outputs == 2)
        return pair_make((double)storage_get(out->dtype, row, i),
                         (double)storage_get(sin->dtype, storage_row(sin, r), i));
    return pair_make((double)storage_get(out->dtype, row, at.real),
                     (double)storage_get(out->dtype, row, at.imaginary));
}

double complex pair_from_x(const struct call *call, int64_t r, int64_t i)
{
    const struct pair_columns at = pair_columns(&call->problem, i);
    const float *row = call->x + r * call->problem.dim;
    return pair_make((double)row[at.real], (double)row[at.imaginary]);
}

struct pair pair_at(const struct call *call, int64_t row, int64_t i)
{
    const int64_t n = call ? pair_count(&call->problem) : 0;
    if (n > 0 && i == n)
        return pair_at(call, row + 1, 0);
    return n == 0 || row == call->outputs[0].rows
               ? (struct pair){ .call = NULL }
               : (struct pair){ call, row, i, pair_from_output(call, row, i) };
}

void pair_require(struct tally *t, const struct pair *at, double complex want, double bound,
                  const char *what)
{
    const double complex off = at->z - want;
    require(t, fabs(creal(off)) <= bound && fabs(cimag(off)) <= bound,
            "%s: row %lld pair %lld is %.9g, %.9g, not within %.3g of %.9g, %.9g", what,
            (long long)at->row, (long long)at->i, creal(at->z), cimag(at->z), bound,
            creal(want), cimag(want));
}
