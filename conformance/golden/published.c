/*
 * Figures published elsewhere (published.txt), each against what MPFR makes of the problem it is
 * of.
 */
#include "conformance/problem/columns.h"
#include "conformance/problem/storage.h"
#include "golden.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Quantities ---- */

/* Plans of a problem, where it has one: its own, and three that something is changed in. */
enum variant { OWN, UNSCALED, TRUNCATED, INVERSE, VARIANTS };

/* A problem and the arguments of a figure. */
struct asked {
    struct problem problem;
    struct posenc_freqs_spec specs[VARIANTS];
    struct reference_plan plans[VARIANTS];
    double at[3];
};

static double omega(const struct asked *a, enum variant variant, int64_t pair)
{
    return mp_double(a->plans[variant].omega[pair]);
}

/* Pairs whose frequency is that of the unscaled plan over a->at[0]. */
static double divided(const struct asked *a)
{
    int pairs = 0;
    for (int64_t i = 0; i < a->plans[OWN].n_pairs; i++)
        pairs +=
            mp_double(mp_div(a->plans[UNSCALED].omega[i], a->plans[OWN].omega[i])) == a->at[0];
    return pairs;
}

/* How far the share of 1 - 1/factor that is taken off is from a ramp from pair a->at[0] to a->at[1]. */
static double off_ramp(const struct asked *a, int64_t i)
{
    const double ratio = mp_double(mp_div(a->plans[OWN].omega[i], a->plans[UNSCALED].omega[i]));
    const double ramp = fmin(fmax(((double)i - a->at[0]) / (a->at[1] - a->at[0]), 0), 1);
    return fabs((1 - ratio) / (1 - 1 / a->problem.freqs.factor) - ramp);
}

static double attention(const struct asked *a) { return a->plans[OWN].attention_factor; }

/* By how much a frequency changes where the range is truncated: in radians at a position, and in
 * shares of it; and that of which pair changes most. */
static double off_radians(const struct asked *a, int64_t i)
{
    return a->at[0] * fabs(omega(a, TRUNCATED, i) - omega(a, OWN, i));
}

static double off_truncated(const struct asked *a, int64_t i)
{
    return fabs(omega(a, TRUNCATED, i) / omega(a, OWN, i) - 1);
}

static double off_pair(const struct asked *a)
{
    int64_t most = 0;
    for (int64_t i = 1; i < a->plans[OWN].n_pairs; i++)
        if (off_truncated(a, i) > off_truncated(a, most))
            most = i;
    return (double)most;
}

static double base(const struct asked *a)
{
    const struct reference_plan *plan = &a->plans[OWN];
    const double dim = (double)a->problem.freqs.dim;
    return mp_double(
        mp_pow(plan->omega[plan->n_pairs - 1], mp_div(mp_of(-dim), mp_of(dim - 2))));
}

static double off_angle(const struct asked *a, int64_t i)
{
    const number angle = mp_mul(a->plans[OWN].omega[i], mp_of(a->at[0]));
    const double rounded = reference_angle(&a->plans[OWN], i, a->at[0]);
    return fabs(mp_double(mp_sub(angle, mp_of(rounded))));
}

/* How far a query at a->at[0] times a key at a->at[1], by their rows of xPos, is from
 * zeta^(distance / scale_base) times the sine and cosine of distance omega. */
static double off_product(const struct asked *a, int64_t i)
{
    const double d = (double)a->problem.freqs.dim, distance = a->at[0] - a->at[1];
    const double zeta = (2 * (double)i + 0.4 * d) / (1.4 * d);
    const double scale = pow(zeta, distance / a->problem.freqs.xpos_scale_base);
    const double angle = distance * omega(a, OWN, i);
    double qs, qc, ks, kc;
    reference_sincos(&a->plans[OWN], i, a->at[0], 1, &qs, &qc);
    reference_sincos(&a->plans[INVERSE], i, a->at[1], 1, &ks, &kc);
    return fmax(fabs((qc * kc + qs * ks) / scale - cos(angle)),
                fabs((qs * kc - qc * ks) / scale - sin(angle)));
}

static double least(const struct asked *a)
{
    double s, c;
    reference_sincos(&a->plans[OWN], (int64_t)a->at[0], a->at[1], 1, &s, &c);
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
    return (double)reference_column(&a->problem, (int64_t)a->at[0], (int64_t)a->at[1]);
}

static double ulp(const struct asked *a) { return ulp_error((float)a->at[0], a->at[1]); }

static double pair_ulp(const struct asked *a)
{
    return pair_ulp_error((float)a->at[0], a->at[1], a->at[2]);
}

/* Of all pairs the most, or something else. */
static const struct {
    const char *name;
    double (*of_pair)(const struct asked *asked, int64_t pair);
    double (*of)(const struct asked *asked);
} quantities[] = {
    { "divided", NULL, divided },
    { "off_ramp", off_ramp, NULL },
    { "attention", NULL, attention },
    { "off_truncated", off_truncated, NULL },
    { "off_pair", NULL, off_pair },
    { "off_radians", off_radians, NULL },
    { "base", NULL, base },
    { "off_angle", off_angle, NULL },
    { "off_product", off_product, NULL },
    { "least", NULL, least },
    { "log2_slope", NULL, log2_slope },
    { "bucket", NULL, bucket },
    { "window_row", NULL, window_row_of },
    { "column", NULL, column },
    { "ulp", NULL, ulp },
    { "pair_ulp", NULL, pair_ulp },
};
enum { N_QUANTITIES = sizeof quantities / sizeof *quantities };

static double quantity(int q, const struct asked *a)
{
    double most = 0;
    if (quantities[q].of)
        return quantities[q].of(a);
    for (int64_t i = 0; i < a->plans[OWN].n_pairs; i++)
        most = fmax(most, quantities[q].of_pair(a, i));
    return most;
}

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

static bool right_figures(const struct row *row, int q, struct asked *asked)
{
    bool good = true;
    for (const char *next = row->figures, *text = next; *next; text = next) {
        char *percent;
        double figure, within = strtod(row->within, &percent);
        next = read_figure(text, asked->at, &figure);
        within *= *percent == '%' ? figure / 100 : 1;
        const double got = quantity(q, asked);
        good = (got == figure || fabs(got - figure) <= within ||
                disagree("%s of %s,%.*s (%s): %.17g", row->quantity, row->problem,
                         (int)strcspn(text, ","), text, row->source, got)) &&
               good;
    }
    return good;
}

static bool right_row(const struct row *row)
{
    char error[NOTATION_ERROR];
    struct asked asked = { .at = { 0 } };
    struct problem_line line = { .name = "" };
    struct arena arena = { .last = NULL };
    int q = 0;
    while (q < N_QUANTITIES && strcmp(quantities[q].name, row->quantity) != 0)
        q++;
    if (q == N_QUANTITIES || !*row->source)
        return disagree("%s: no such quantity, or no source", row->quantity);
    if (*row->problem && !notation_read(row->problem, &line, &arena, error))
        return disagree("%s: %s", row->problem, error);
    const int variants = *row->problem && kernel_has_plan(line.problem.kernel) ? VARIANTS : 0;
    asked.problem = line.problem;
    for (int v = 0; v < variants; v++) {
        asked.specs[v] = asked.problem.freqs;
        if (v == UNSCALED)
            asked.specs[v].scaling = POSENC_SCALING_NONE;
        asked.specs[v].truncate |= v == TRUNCATED;
        asked.specs[v].xpos_inverse ^= v == INVERSE;
        reference_plan_init(&asked.plans[v], &asked.specs[v]);
    }
    const bool good = right_figures(row, q, &asked);
    for (int v = 0; v < variants; v++)
        reference_plan_clear(&asked.plans[v]);
    arena_free(&arena);
    return good;
}

/* ---- Hashes of outputs ---- */

/* The hash of a rotation's unfused results in the order of ONNX's X, f32 little-endian. */
static bool has_hash(const struct problem *p, const char *published)
{
    struct call call;
    struct sha256 sha;
    char hash[65];
    if (call_create(&call, p, &memory_plain) != POSENC_OK)
        return false;
    const bool heads_first = p->recipe != RECIPE_ONNX_3D;
    const int64_t outer = heads_first ? p->heads : p->tokens,
                  inner = heads_first ? p->tokens : p->heads;
    sha256_init(&sha);
    for (int64_t k = 0; k < p->batch * outer * inner; k++) {
        const int64_t b = k / inner / outer, o = k / inner % outer, i = k % inner;
        float row[8];
        oracle_row_unfused(&call, heads_first ? (b * inner + i) * outer + o : k, row);
        for (int64_t c = 0; c < p->dim; c++) {
            const uint32_t bits = bits_of(row[c]);
            for (int shift = 0; shift < 32; shift += 8)
                sha256_update(&sha, &(unsigned char){ (unsigned char)(bits >> shift) }, 1);
        }
    }
    sha256_final(&sha, hash);
    call_destroy(&call);
    return strcmp(hash, published) == 0;
}

/* Each published hash is that of its case, and each case that is drawn as published has one. */
static bool right_hashes(const struct vectors *vectors)
{
    bool good = true;
    int drawn = 0, published = 0;
    for (size_t i = 0; i < vectors->n; i++)
        drawn += vectors->cases[i].problem.recipe != RECIPE_MIX;
    for (int k = 0; k < N_ROWS; k++) {
        if (strcmp(rows[k].quantity, "sha256") != 0)
            continue;
        size_t i = 0;
        while (i < vectors->n && strcmp(vectors->cases[i].id, rows[k].problem) != 0)
            i++;
        published++;
        good = ((i < vectors->n && has_hash(&vectors->cases[i].problem, rows[k].figures)) ||
                disagree("%s: no case, or its output is not as published", rows[k].problem)) &&
               good;
    }
    return good && ((drawn == published && drawn > 0) ||
                    disagree("%d cases for %d published hashes", drawn, published));
}

bool certify_published(const struct vectors *vectors)
{
    bool good = true;
    for (int k = 0; k < N_ROWS; k++)
        good = (strcmp(rows[k].quantity, "sha256") == 0 || right_row(&rows[k])) && good;
    return right_hashes(vectors) && good;
}
