/*
 * The library's builders against what they are defined by, evaluated another way.  A row of
 * builders.txt is a call, or many: refused without a write, or each element is what MPFR and
 * exact integers give, a whole number or the nearest f32 of a formula.
 */
#include "conformance/problem/columns.h"
#include "conformance/tap/tap.h"
#include "golden.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS = 6, LIST = 1000, ROOM = 1 << 19, BEYOND = 64, CANARY = 0x7f };

/* One argument: a number, or an array. */
struct argument {
    const char *text;
    int length;
    int64_t n;
    double real;
    const float *floats; /* NULL where the text is */
};

/* A call of a builder; what it makes is [rows, columns]. */
struct making {
    const struct builder *builder;
    struct argument a[ARGUMENTS];
    int n;
    void *out;
    int64_t rows, columns;
};

struct builder {
    const char *name;
    enum {
        INDICES,
        INDICES_BY_DIFFERENCE, /* element row - column + columns - 1 alone, of columns as keys */
        VALUES
    } makes;
    enum posenc_status (*make)(struct making *m, const struct argument *a);
    number (*wanted)(const struct argument *a, int64_t row, int64_t column);
};

/* Where elements go, so many rows and columns of them. */
static void *shaped(struct making *m, int64_t rows, int64_t columns)
{
    m->rows = rows;
    m->columns = columns;
    return m->out;
}

static number whole(int64_t n) { return mp_of((double)n); }

/* ---- Padding ---- */

static enum posenc_status make_padding(struct making *m, const struct argument *a)
{
    uint8_t mask[LIST];
    for (int k = 0; k < LIST && a[2].floats; k++)
        mask[k] = (uint8_t)a[2].floats[k];
    return posenc_padding_positions(a[0].n, a[1].n, a[2].floats ? mask : NULL, a[3].n,
                                    shaped(m, a[0].n, a[1].n));
}

static number padding(const struct argument *a, int64_t row, int64_t column)
{
    const float *mask = a[2].floats + row * a[1].n;
    int64_t position = a[3].n;
    for (int64_t t = 0; mask[column] != 0 && t <= column; t++)
        position += mask[t] != 0;
    return whole(position);
}

/* ---- Windows ---- */

static enum posenc_status make_swin(struct making *m, const struct argument *a)
{
    const int64_t tokens = a[0].n * a[1].n;
    return posenc_swin_index(a[0].n, a[1].n, shaped(m, tokens, tokens));
}

static enum posenc_status make_beit(struct making *m, const struct argument *a)
{
    const int64_t tokens = 1 + a[0].n * a[1].n;
    return posenc_beit_index(a[0].n, a[1].n, shaped(m, tokens, tokens));
}

static number swin(const struct argument *a, int64_t query, int64_t key)
{
    const struct problem p = { .window_height = a[0].n, .window_width = a[1].n };
    return whole(reference_window_row(&p, query, key));
}

static number beit(const struct argument *a, int64_t query, int64_t key)
{
    const struct problem p = { .window_height = a[0].n,
                               .window_width = a[1].n,
                               .window_class = true };
    return whole(reference_window_row(&p, query, key));
}

/* ---- Relative positions, by queries and keys ---- */

static enum posenc_status make_shaw(struct making *m, const struct argument *a)
{
    return posenc_shaw_index(a[0].n, a[1].n, a[2].n, a[3].n, shaped(m, a[0].n, a[1].n));
}

static number shaw(const struct argument *a, int64_t query, int64_t key)
{
    const struct problem p = { .relative = RELATIVE_SHAW,
                               .query_offset = a[2].n,
                               .max_distance = a[3].n };
    return whole(reference_column(&p, query, key));
}

static enum posenc_status make_transformer_xl(struct making *m, const struct argument *a)
{
    return posenc_transformer_xl_index(a[0].n, a[1].n, shaped(m, a[0].n, a[1].n));
}

/* The shift itself: a column of zeros before the others, the rows read as keys + 1 rows of
 * queries, the first of them dropped.  Which column comes to lie there; of later keys the last. */
static number transformer_xl(const struct argument *a, int64_t query, int64_t key)
{
    const int64_t queries = a[0].n, keys = a[1].n;
    const int64_t padded = queries + query * keys + key;
    return whole(key <= query + keys - queries ? padded % (keys + 1) - 1 : keys - 1);
}

static enum posenc_status make_deberta(struct making *m, const struct argument *a)
{
    return posenc_deberta_index(a[0].n, a[1].n, a[2].n, a[3].n, a[4].n,
                                shaped(m, a[0].n, a[1].n));
}

static number deberta(const struct argument *a, int64_t query, int64_t key)
{
    return whole(reference_deberta_column(query + a[2].n - key, a[3].n, a[4].n));
}

/* ---- Slopes and thresholds: one row ---- */

static enum posenc_status make_alibi(struct making *m, const struct argument *a)
{
    return posenc_alibi_slopes(a[0].n, a[1].real, shaped(m, 1, a[0].n));
}

static number alibi(const struct argument *a, int64_t row, int64_t head)
{
    (void)row;
    return mp_of((double)reference_slope(a[0].n, a[1].real, head));
}

static enum posenc_status make_t5(struct making *m, const struct argument *a)
{
    const bool bidirectional = a[2].n != 0;
    return posenc_t5_thresholds(a[0].n, a[1].n, bidirectional,
                                shaped(m, 1, bidirectional ? a[0].n / 2 : a[0].n));
}

/* The least distance whose bucket is that, or a later one: max_distance has the last. */
static number t5(const struct argument *a, int64_t row, int64_t bucket)
{
    int64_t below = -1, at = a[1].n;
    (void)row;
    while (at - below > 1) {
        const int64_t middle = (at + below) / 2;
        if (reference_bucket(middle, a[0].n, a[1].n, a[2].n != 0) < bucket)
            below = middle;
        else
            at = middle;
    }
    return whole(at);
}

/* ---- Biases by distance: heads, distances ---- */

static enum posenc_status make_kerple_log(struct making *m, const struct argument *a)
{
    return posenc_kerple_log(a[0].n, a[1].floats, a[2].floats, a[3].n, a[4].n,
                             shaped(m, a[0].n, a[4].n));
}

static number kerple_log(const struct argument *a, int64_t head, int64_t column)
{
    const number far = mp_of(fabs((double)(a[3].n + column))),
                 scaled = mp_mul(far, mp_of((double)a[2].floats[head]));
    return mp_neg(mp_mul(mp_log1p(scaled), mp_of((double)a[1].floats[head])));
}

static enum posenc_status make_kerple_power(struct making *m, const struct argument *a)
{
    return posenc_kerple_power(a[0].n, a[1].floats, a[2].floats, a[3].n, a[4].n,
                               shaped(m, a[0].n, a[4].n));
}

static number kerple_power(const struct argument *a, int64_t head, int64_t column)
{
    const number far = mp_of(fabs((double)(a[3].n + column))),
                 power = mp_pow(far, mp_of((double)a[1].floats[head]));
    return mp_neg(mp_mul(power, mp_of((double)a[2].floats[head])));
}

static enum posenc_status make_sandwich(struct making *m, const struct argument *a)
{
    return posenc_sandwich(a[0].n, a[1].n, a[2].floats, a[3].n, a[4].n,
                           shaped(m, a[1].n, a[4].n));
}

/* The phase of a distance for each pair, as such: the sum of cosines less dim/2. */
static number cosines(int64_t dim, int64_t distance)
{
    number sum = whole(-dim / 2);
    for (int64_t i = 0; i < dim / 2; i++) {
        const number omega = mp_pow(whole(10000), mp_div(whole(-2 * i), whole(dim)));
        sum = mp_add(sum, mp_cos(mp_mul(omega, whole(distance))));
    }
    return sum;
}

/* Heads that ask for the same distance share the sum. */
static number sandwich(const struct argument *a, int64_t head, int64_t column)
{
    static mpfr_t sum;
    static int64_t kept_dim, kept_distance;
    const int64_t dim = a[0].n, distance = a[3].n + column;
    if (kept_dim == 0)
        mpfr_init2(sum, MP_BITS);
    if (kept_dim != dim || kept_distance != distance)
        mpfr_set(sum, cosines(kept_dim = dim, kept_distance = distance), MPFR_RNDN);
    return mp_mul(sum, mp_of((double)a[2].floats[head]));
}

/* ---- Initial values ---- */

static enum posenc_status make_normal(struct making *m, const struct argument *a)
{
    return posenc_normal((uint64_t)a[0].n, a[1].n, a[2].n, a[3].n, a[4].real,
                         shaped(m, a[2].n, a[3].n));
}

/* The recipe as it is stated: see normal.c of the library. */
static uint64_t splitmix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* What rounds to 0 is 0 without a sign. */
static number normal(const struct argument *a, int64_t row, int64_t column)
{
    const uint64_t step = UINT64_C(0x9e3779b97f4a7c15),
                   start = splitmix(splitmix((uint64_t)a[0].n) + (uint64_t)(a[1].n + row)) +
                           (uint64_t)(column / 2) * 2 * step;
    const number turn = mp_mul(mp_pi(), mp_of(2)), share = mp_of_u64(splitmix(start + step));
    const number angle = mp_mul(turn, mp_div(share, mp_of(0x1p64)));
    const double uniform = (double)((splitmix(start) >> 11) + 1) * 0x1p-53;
    const number radius = mp_sqrt(mp_mul(mp_log(mp_of(uniform)), mp_of(-2)));
    const number turned = mp_mul(radius, column % 2 == 0 ? mp_cos(angle) : mp_sin(angle));
    const number value = mp_mul(turned, mp_of(a[4].real));
    return mp_float(value) == 0 ? mp_of(0) : value;
}

static const struct builder builders[] = {
    { "padding", INDICES, make_padding, padding },
    { "swin", INDICES, make_swin, swin },
    { "beit", INDICES, make_beit, beit },
    { "shaw", INDICES_BY_DIFFERENCE, make_shaw, shaw },
    { "transformer_xl", INDICES_BY_DIFFERENCE, make_transformer_xl, transformer_xl },
    { "deberta", INDICES_BY_DIFFERENCE, make_deberta, deberta },
    { "t5", INDICES, make_t5, t5 },
    { "alibi", VALUES, make_alibi, alibi },
    { "kerple_log", VALUES, make_kerple_log, kerple_log },
    { "kerple_power", VALUES, make_kerple_power, kerple_power },
    { "sandwich", VALUES, make_sandwich, sandwich },
    { "normal", VALUES, make_normal, normal }
};

/* ---- Calls ---- */

/* Says what is wrong with a call; false. */
__attribute__((format(printf, 2, 3))) static bool wrong(const struct making *m,
                                                        const char *format, ...)
{
    va_list args;
    fprintf(stderr, "builders: %s(", m->builder->name);
    for (int k = 0; k < m->n; k++)
        fprintf(stderr, " %.*s", m->a[k].length, m->a[k].text);
    fprintf(stderr, " ): ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    return false;
}

static bool right_elements(const struct making *m)
{
    const bool values = m->builder->makes == VALUES,
               by_difference = m->builder->makes == INDICES_BY_DIFFERENCE;
    const float *as_values = m->out;
    const int32_t *as_indices = m->out;
    for (int64_t c = 0; c < m->columns; c++)
        for (int64_t r = 0; r < m->rows; r++) {
            const int64_t e = by_difference ? r - c + m->columns - 1 : r * m->columns + c;
            const number exact = m->builder->wanted(m->a, r, c);
            const double got = values ? (double)as_values[e] : as_indices[e];
            double want = values ? (double)mp_float(exact) : mp_double(exact);
            if (mpfr_zero_p(exact))
                want = 0;
            if (got != want || signbit(got) != signbit(want))
                return wrong(m, "row %lld, column %lld is %.10g, not %.10g", (long long)r,
                             (long long)c, got, want);
        }
    return true;
}

static bool right_figures(const struct making *m, const char *published)
{
    char *end;
    for (const int32_t *index = m->out; *published; index++, published = end)
        if (*index != strtol(published, &end, 10))
            return wrong(m, "%d, published%.12s", (int)*index, published);
    return true;
}

static const struct row {
    const char *builder, *arguments, *refusal, *published, *unused;
} rows[] = {
#include "builders.inc"
};

/* The status, the elements, and that nothing else was written. */
static bool right_call(struct making *m, const struct row *row)
{
    static const char *const refusals[] = { [POSENC_OK] = "",
                                            [POSENC_ERR_ARGUMENT] = "ARGUMENT",
                                            [POSENC_ERR_SHAPE] = "SHAPE",
                                            [POSENC_ERR_PARAMETER] = "PARAMETER",
                                            [POSENC_ERR_POSITION] = "POSITION" };
    static int32_t room[ROOM];
    int64_t n = 0;
    memset(room, CANARY, sizeof room);
    m->out = m->a[m->n - 1].floats ? room : NULL;
    const enum posenc_status status = m->builder->make(m, m->a);
    if (status > POSENC_ERR_POSITION || !refusals[status] ||
        strcmp(refusals[status], row->refusal) != 0)
        return wrong(m, "status %d, not \"%s\"", (int)status, row->refusal);
    if (status == POSENC_OK) {
        n = m->builder->makes == INDICES_BY_DIFFERENCE ? m->rows + m->columns - 1
                                                       : m->rows * m->columns;
        if (!right_elements(m) || !right_figures(m, row->published))
            return false;
    }
    for (int64_t e = n; e < n + BEYOND; e++)
        if (room[e] != CANARY * 0x01010101)
            return wrong(m, "element %lld of %lld is written", (long long)e, (long long)n);
    return true;
}

/* ---- Rows ---- */

/* A number, or a list of them, which begins again where it ends. */
static void read_argument(struct argument *a, const char *text, float *floats)
{
    const bool null = strncmp(text, "NULL", 4) == 0;
    *a = (struct argument){ .text = text,
                            .length = (int)strcspn(text, "/ "),
                            .n = (int64_t)strtoull(text, NULL, 0),
                            .real = strtod(text, NULL),
                            .floats = null ? NULL : floats };
    const char *item = text;
    for (int k = 0; k < LIST; k++) {
        floats[k] = strtof(item, NULL);
        item += strcspn(item, ",/ ");
        item = *item == ',' ? item + 1 : text;
    }
}

/* All calls of a row, from its k-th word on: a/b stands for a call with a and one with b. */
static bool right_words(struct making *m, const struct row *row, const char *words, int k)
{
    static float floats[ARGUMENTS][LIST];
    const char *rest = words + strcspn(words, " ");
    const char *next = rest + strspn(rest, " ");
    bool right = true;
    for (const char *text = words; right && text < rest; text += m->a[k].length + 1) {
        read_argument(&m->a[k], text, floats[k]);
        m->n = k + 1;
        right = *next ? right_words(m, row, next, k + 1) : right_call(m, row);
    }
    return right;
}

static bool right_row(const struct row *row)
{
    struct making m = { .n = 0 };
    for (size_t k = 0; k < sizeof builders / sizeof *builders; k++)
        if (strcmp(builders[k].name, row->builder) == 0)
            m.builder = &builders[k];
    return m.builder && right_words(&m, row, row->arguments, 0);
}

/* ---- Initial values as a whole ---- */

/* n values: mean, variance, fourth moment and the correlation with the value `lag` on, each
 * within 5 standard deviations of that of independent normal values. */
static bool normal_moments(const float *values, int64_t n, int64_t lag)
{
    double sum = 0, squares = 0, fourth = 0, products = 0;
    for (int64_t k = 0; k < n; k++) {
        const double x = (double)values[k];
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        products += k + lag < n ? x * (double)values[k + lag] : 0;
    }
    const double m = (double)n, unit = 5 / sqrt(m);
    return fabs(sum / m) < unit && fabs(squares / m - 1) < unit * sqrt(2) &&
           fabs(fourth / m - 3) < unit * sqrt(96) && fabs(products / m) < unit;
}

/* A table of the size that models have, and parts of it, fewer rows and columns, by themselves. */
static void check_normal(void)
{
    enum { ROWS = 1024, DIM = 768, PART = 3 };
    static float whole_table[ROWS * DIM], part[PART * 40];
    bool made = posenc_normal(7, 0, ROWS, DIM, 1, whole_table) == POSENC_OK, same = true;
    require(made && normal_moments(whole_table, ROWS * DIM, 1) &&
                normal_moments(whole_table, ROWS * DIM, 2) &&
                normal_moments(whole_table, ROWS * DIM, DIM),
            "initial values have the moments of normal ones, and are not correlated");
    for (int64_t first = 0; first + PART <= ROWS; first += 7)
        for (int64_t dim = 39; dim <= 40; dim++) {
            made = posenc_normal(7, first, PART, dim, 1, part) == POSENC_OK;
            for (int64_t r = 0; r < PART; r++)
                same = same && made &&
                       memcmp(part + r * dim, whole_table + (first + r) * DIM,
                              (size_t)dim * sizeof *part) == 0;
        }
    require(same, "a part of a table of initial values is a part of the whole");
}

int main(void)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char sentence[200];
        snprintf(sentence, sizeof sentence, "%s %.150s %s", rows[k].builder, rows[k].arguments,
                 rows[k].refusal);
        require(right_row(&rows[k]), sentence);
    }
    check_normal();
    mpfr_free_cache();
    return tap_end();
}
