/*
 * Figures published elsewhere (published.txt), each against what MPFR makes of the problem it is
 * of; and the metrics and roundings of the suite against MPFR.
 */
#include "conformance/exact/fixed.h"
#include "conformance/problem/columns.h"
#include "published.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;

void require_that(bool good, const char *what, const char *id)
{
    if (good)
        return;
    fprintf(stderr, "golden: not so: %s: %s\n", what, id);
    wrong++;
}

void require_near(double got, double want, double within, const char *what)
{
    if (got == want || fabs(got - want) <= within)
        return;
    fprintf(stderr, "golden: %s: %.17g, published %.17g\n", what, got, want);
    wrong++;
}

/* ---- Quantities ---- */

/* A problem, its plan where it has one, and the arguments of a figure. */
struct asked {
    struct problem problem;
    struct reference_plan plan;
    double at[3];
};

/* The same spec with something changed, as a plan; to be cleared by the caller. */
static struct reference_plan plan_with(struct posenc_freqs_spec *spec,
                                       enum posenc_scaling scaling, bool truncate)
{
    struct reference_plan plan;
    spec->scaling = scaling;
    spec->truncate = truncate;
    reference_plan_init(&plan, spec);
    return plan;
}

/* Pairs whose frequency is that of the plain plan over a->at[0]. */
static double divided(const struct asked *a)
{
    struct posenc_freqs_spec spec = a->problem.freqs;
    struct reference_plan plain = plan_with(&spec, POSENC_SCALING_NONE, true);
    int pairs = 0;
    for (int64_t i = 0; i < a->plan.n_pairs; i++)
        pairs += mp_double(mp_div(plain.omega[i], a->plan.omega[i])) == a->at[0];
    reference_plan_clear(&plain);
    return pairs;
}

/* How far the share of 1 - 1/factor that is taken off is from a ramp from pair a->at[0] to a->at[1]. */
static double off_ramp(const struct asked *a)
{
    struct posenc_freqs_spec spec = a->problem.freqs;
    struct reference_plan plain = plan_with(&spec, POSENC_SCALING_NONE, true);
    double most = 0;
    for (int64_t i = 0; i < a->plan.n_pairs; i++) {
        const double ratio = mp_double(mp_div(a->plan.omega[i], plain.omega[i]));
        const double ramp = fmin(fmax(((double)i - a->at[0]) / (a->at[1] - a->at[0]), 0), 1);
        most = fmax(most, fabs((1 - ratio) / (1 - 1 / a->problem.freqs.factor) - ramp));
    }
    reference_plan_clear(&plain);
    return most;
}

static double attention(const struct asked *a) { return a->plan.attention_factor; }

/* By how much a frequency changes at most where the range is truncated: in radians at a position,
 * or in shares of it at none; and that of which pair. */
static double truncation(const struct asked *a, double position, double *pair)
{
    struct posenc_freqs_spec spec = a->problem.freqs;
    struct reference_plan whole = plan_with(&spec, spec.scaling, true);
    double most = 0;
    for (int64_t i = 0; i < a->plan.n_pairs; i++) {
        const double omega = mp_double(a->plan.omega[i]);
        const double off = fabs(mp_double(whole.omega[i]) - omega);
        const double measure = position > 0 ? position * off : off / omega;
        if (measure > most)
            *pair = (double)i;
        most = fmax(most, measure);
    }
    reference_plan_clear(&whole);
    return most;
}

static double off_truncated(const struct asked *a) { return truncation(a, 0, &(double){ 0 }); }

static double off_pair(const struct asked *a)
{
    double pair = -1;
    truncation(a, 0, &pair);
    return pair;
}

static double off_radians(const struct asked *a)
{
    return truncation(a, a->at[0], &(double){ 0 });
}

static double base(const struct asked *a)
{
    const double dim = (double)a->problem.freqs.dim;
    return mp_double(
        mp_pow(a->plan.omega[a->plan.n_pairs - 1], mp_div(mp_of(-dim), mp_of(dim - 2))));
}

static double off_angle(const struct asked *a)
{
    double most = 0;
    for (int64_t i = 0; i < a->plan.n_pairs; i++) {
        const number angle = mp_mul(a->plan.omega[i], mp_of(a->at[0]));
        const number off = mp_sub(angle, mp_of(reference_angle(&a->plan, i, a->at[0])));
        most = fmax(most, fabs(mp_double(off)));
    }
    return most;
}

static double least(const struct asked *a)
{
    double s, c;
    reference_sincos(&a->plan, (int64_t)a->at[0], a->at[1], 1, &s, &c);
    return fmin(fabs(s), fabs(c));
}

static double log2_slope(const struct asked *a)
{
    return log2((double)reference_slope(a->problem.heads, a->problem.alibi_bias_max,
                                        (int64_t)a->at[0]));
}

static double bucket(const struct asked *a)
{
    return (double)reference_bucket((int64_t)a->at[0], a->problem.num_buckets,
                                    a->problem.max_distance, a->problem.bidirectional);
}

static double window_row_of(const struct asked *a)
{
    return (double)reference_window_row(&a->problem, (int64_t)a->at[0], (int64_t)a->at[1]);
}

static double column(const struct asked *a)
{
    return (double)reference_deberta_column((int64_t)a->at[0], a->problem.num_buckets,
                                            a->problem.max_distance);
}

static double ulp(const struct asked *a) { return ulp_error((float)a->at[0], a->at[1]); }

static double pair_ulp(const struct asked *a)
{
    return pair_ulp_error((float)a->at[0], a->at[1], a->at[2]);
}

static const struct {
    const char *name;
    double (*of)(const struct asked *asked);
} quantities[] = {
    { "divided", divided },     { "off_ramp", off_ramp },
    { "attention", attention }, { "off_truncated", off_truncated },
    { "off_pair", off_pair },   { "off_radians", off_radians },
    { "base", base },           { "off_angle", off_angle },
    { "least", least },         { "log2_slope", log2_slope },
    { "bucket", bucket },       { "window_row", window_row_of },
    { "column", column },       { "ulp", ulp },
    { "pair_ulp", pair_ulp },
};

/* ---- The table ---- */

static const struct row {
    const char *quantity, *problem, *figures, *within, *source;
} rows[] = {
#include "published.inc"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* "argument ... = figure", up to the comma after it or the end; returns what follows. */
static const char *read_figure(const char *text, double at[3], double *figure)
{
    char *end;
    text += strspn(text, " ");
    for (int i = 0; i < 3 && *text != '='; i++, text = end + strspn(end, " "))
        at[i] = strtod(text, &end);
    *figure = *text == '=' ? strtod(text + 1, &end) : (double)NAN;
    return *text == '=' && end != text + 1 ? end + (*end == ',') : "";
}

static int find_quantity(const char *name)
{
    const int n = sizeof quantities / sizeof *quantities;
    for (int q = 0; q < n; q++)
        if (strcmp(quantities[q].name, name) == 0)
            return q;
    return -1;
}

static void require_row(const struct row *row)
{
    char *percent, error[NOTATION_ERROR] = "no line";
    struct asked asked = { .at = { 0 } };
    struct problem_line line = { .name = "" };
    struct arena arena = { .last = NULL };
    const int q = find_quantity(row->quantity);
    const bool read = !*row->problem || notation_read(row->problem, &line, &arena, error);
    require_that(q >= 0 && *row->source, "a known quantity, with its source", row->quantity);
    require_that(read, row->problem, error);
    asked.problem = line.problem;
    const bool planned = *row->problem && read && kernel_has_plan(line.problem.kernel);
    if (planned)
        reference_plan_init(&asked.plan, &asked.problem.freqs);
    for (const char *next = row->figures; *next && q >= 0 && read;) {
        char what[256];
        double figure, within = strtod(row->within, &percent);
        snprintf(what, sizeof what, "%s of %.100s, %.*s (%.60s)", row->quantity, row->problem,
                 (int)strcspn(next, ","), next, row->source);
        next = read_figure(next, asked.at, &figure);
        within *= *percent == '%' ? figure / 100 : 1;
        require_near(quantities[q].of(&asked), figure, within, what);
    }
    if (planned)
        reference_plan_clear(&asked.plan);
    arena_free(&arena);
}

/* ---- Metrics ---- */

/* A value of any magnitude near f32's range, often next to an f32 or to the middle of two. */
static number any_value(uint64_t k)
{
    const uint64_t z = mix64(5, k);
    const double power = ldexp(1, -(int)(z >> 2 & 127)), whole = (double)(z >> 40 | 1u << 23);
    number value = mp_of(whole + (z & 1 ? 0.5 : 0));
    if (z & 2)
        value = mp_add(value, mp_of(z & 1024 ? -power : power));
    value = mp_mul(value, mp_of(ldexp(1, (int)(z >> 11 & 511) - 300)));
    return z & 2048 ? mp_neg(value) : value;
}

static void metrics_against_mpfr(void)
{
    for (uint64_t k = 0; k < 50000 && wrong == 0; k++) {
        const number value = any_value(k);
        const double odd = round_to_odd(value, true);
        const float nearest = mp_float(value), got = odd_to_f32(odd);
        if (memcmp(&got, &nearest, sizeof got) != 0) {
            fprintf(stderr, "golden: %a to f32: %a, MPFR %a\n", odd, (double)got,
                    (double)nearest);
            wrong++;
        }
        const double error = ulp_error(got, odd);
        if (!(error <= 0.5) && !(fabs(odd) < 0x1p-149 && error <= 1)) {
            fprintf(stderr, "golden: nearest f32 of %a errs by %g ulp\n", odd, error);
            wrong++;
        }
        const float next = nextafterf(got, INFINITY);
        const double off = ulp_error(next, odd);
        if (isfinite(next) && isfinite(got) && !(off >= 0.49999 && off <= 1.50001) &&
            !(off < 2.1 && fabs(frexp((double)got, &(int){ 0 })) == 0.5)) {
            fprintf(stderr, "golden: the f32 after the nearest of %a errs by %g ulp\n", odd,
                    off);
            wrong++;
        }
    }
}

/* m times a sine for m of every magnitude, f64's subnormals and overflow included. */
static void products_against_mpfr(void)
{
    for (uint64_t k = 0; k < 5000 && wrong == 0; k++) {
        const uint64_t z = mix64(9, k);
        const double angle = ldexp((double)(z >> 11), (int)(z & 63) - 100);
        const double m =
            ldexp((double)(mix64(z, 1) >> 11) * (z & 64 ? 1 : -1), (int)(z >> 7 & 2047) - 1100);
        struct real sine, cosine;
        if (!isfinite(m))
            continue;
        fixed_sincos(angle, &sine, &cosine);
        const number s = mp_mul(mp_sin(mp_of(angle)), mp_of(m)),
                     c = mp_mul(mp_cos(mp_of(angle)), mp_of(m));
        const double a = real_times(sine, m), b = real_times(cosine, m);
        if (a != round_to_odd(s, angle == 0 || m == 0) ||
            b != round_to_odd(c, angle == 0 || m == 0)) {
            fprintf(stderr, "golden: %a times sin, cos of %a: %a and %a\n", m, angle, a, b);
            wrong++;
        }
    }
}

/* The hash of a rotation's unfused results in the order of ONNX's X. */
static bool published_hash(const struct problem *p, char hash[65])
{
    struct call call;
    if (call_create(&call, p, &memory_plain) != POSENC_OK)
        return false;
    const bool heads_first = p->recipe != RECIPE_ONNX_3D;
    const int64_t outer = heads_first ? p->heads : p->tokens,
                  inner = heads_first ? p->tokens : p->heads;
    struct sha256 sha;
    sha256_init(&sha);
    for (int64_t k = 0; k < p->batch * outer * inner; k++) {
        const int64_t b = k / inner / outer, o = k / inner % outer, i = k % inner;
        float row[8];
        oracle_row_unfused(&call, heads_first ? (b * inner + i) * outer + o : k, row);
        for (int64_t c = 0; c < p->dim; c++) {
            uint32_t bits;
            memcpy(&bits, row + c, sizeof bits);
            for (int shift = 0; shift < 32; shift += 8)
                sha256_update(&sha, &(unsigned char){ (unsigned char)(bits >> shift) }, 1);
        }
    }
    sha256_final(&sha, hash);
    call_destroy(&call);
    return true;
}

/* The case of that id has this output. */
static bool is_published(const struct vector_case *c, const struct row *row)
{
    char hash[65];
    return strcmp(row->quantity, "sha256") == 0 && strcmp(row->problem, c->id) == 0 &&
           published_hash(&c->problem, hash) && strcmp(row->figures, hash) == 0;
}

static void check_onnx(const struct vectors *vectors)
{
    int drawn = 0, published = 0;
    for (int k = 0; k < N_ROWS; k++)
        published += strcmp(rows[k].quantity, "sha256") == 0;
    for (size_t i = 0; i < vectors->n; i++) {
        const struct vector_case *c = &vectors->cases[i];
        bool matched = false;
        for (int k = 0; k < N_ROWS && !matched; k++)
            matched = c->problem.recipe != RECIPE_MIX && is_published(c, &rows[k]);
        drawn += c->problem.recipe != RECIPE_MIX;
        require_that(matched || c->problem.recipe == RECIPE_MIX, "the output is published",
                     c->id);
    }
    require_that(drawn == published && drawn > 0, "every published output is that of a case",
                 "ONNX");
}

int certify_known(const struct vectors *vectors)
{
    wrong = 0;
    for (int k = 0; k < N_ROWS; k++)
        if (strcmp(rows[k].quantity, "sha256") != 0)
            require_row(&rows[k]);
    metrics_against_mpfr();
    products_against_mpfr();
    check_onnx(vectors);
    check_relative(vectors);
    check_storage(vectors);
    check_positions(vectors);
    return wrong;
}
