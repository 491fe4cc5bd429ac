/* Searches for the mistake that reproduces the outputs of a call; see mistakes.h. */
#include "mistakes.h"

#include "conformance/problem/guard.h"
#include "conformance/problem/notation.h"
#include "conformance/problem/signature.h"
#include "hypothesis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct mistake *const mistake_tables[] = { mistakes_of_tokens, mistakes_of_rotations,
                                                 mistakes_of_frequencies, mistakes_of_scores,
                                                 NULL };
enum { MOST_MISTAKES = 256 };

/* Values of a call that are compared. In larger calls, every n-th row is. Rows of angles take the oracle longest. */
enum { MOST_VALUES = 1 << 20, MOST_ANGLES = 1 << 16 };
/* Wrong values that a mistake has to predict in all calls; and those of the problem alone if no variation ran. */
enum { LEAST_EXPLAINED = 3, LEAST_EXPLAINED_ALONE = 16 };

struct search {
    const struct implementation *implementation;
    struct guard *guard;
    struct candidate {
        const struct mistake *mistake;
        int64_t n_explained; /* wrong values that it predicts, in all calls */
    } candidates[MOST_MISTAKES];
    size_t n_candidates;
    int n_runs; /* of this problem and its variations */
};

/* A call that ran, and its values that are not the expected ones. */
struct evidence {
    struct call call;
    bool is_made;         /* the call */
    int64_t step;         /* every step-th row is compared */
    unsigned char *wrong; /* one for each value, output by output */
    int64_t n_wrong;
};

/* ---- Comparison ---- */

/* Returns the marks of a row's wrong values. */
static unsigned char *marks_of_row(const struct evidence *e, int output, int64_t row)
{
    const struct output *first = &e->call.outputs[0];
    return e->wrong + ((output ? first->rows : 0) + row) * first->width;
}

/* Counts the wrong values of a row that agree, and returns false at the first value that does not. */
static bool compare_row(struct hypothesis *h, const struct evidence *e, int output, int64_t row,
                        int64_t *n_explained)
{
    const unsigned char *wrong = marks_of_row(e, output, row);
    const bool known = hypothesis_row(h, output, row);
    const float *got = call_row(h->call, output, row);
    for (int64_t k = 0; k < h->width && known; k++) {
        if (h->want[k] == UNKNOWN_VALUE)
            continue;
        if (!hypothesis_predicts(h, k, got[k]))
            return false;
        *n_explained += wrong[k];
    }
    return true;
}

/* Returns true if a mistake predicts the values of the call; also if it predicts none. */
static bool predicts(const struct mistake *mistake, const struct evidence *e,
                     int64_t *n_explained)
{
    struct hypothesis h;
    bool agrees = true;
    *n_explained = 0;
    if (hypothesis_begin(&h, mistake, &e->call)) {
        /* All outputs of a row come before the next row, as rows of cosines and sines share their angles. */
        for (int64_t row = 0; row < e->call.outputs[0].rows && agrees; row += e->step)
            for (int output = 0; output < e->call.n_outputs && agrees; output++)
                agrees = compare_row(&h, e, output, row, n_explained);
    }
    hypothesis_end(&h);
    return agrees;
}

/* Marks and counts the values of a row that are not the expected ones. */
static void mark_row(struct hypothesis *right, struct evidence *e, int output, int64_t row)
{
    unsigned char *wrong = marks_of_row(e, output, row);
    hypothesis_row(right, output, row);
    const float *got = call_row(&e->call, output, row);
    for (int64_t k = 0; k < right->width; k++) {
        wrong[k] = !hypothesis_predicts(right, k, got[k]);
        e->n_wrong += wrong[k];
    }
}

/* Compares the call with a hypothesis without a mistake. */
static void mark_wrong_values(struct evidence *e)
{
    static const struct mistake no_mistake = { .sentence = "" };
    struct hypothesis right;
    if (hypothesis_begin(&right, &no_mistake, &e->call)) {
        for (int64_t row = 0; row < e->call.outputs[0].rows; row += e->step)
            for (int output = 0; output < e->call.n_outputs; output++)
                mark_row(&right, e, output, row);
    }
    hypothesis_end(&right);
}

/* ---- Runs of the implementation ---- */

/* Runs a problem and finds its wrong values. Returns false if the call fails. The caller ends the evidence. */
static bool evidence_begin(struct search *search, const struct problem *problem,
                           struct evidence *e)
{
    const struct tensor_allocator memory = guard_memory(search->guard, GUARD_END);
    *e = (struct evidence){ .wrong = NULL };
    if (call_create_by(search->implementation, &e->call, problem, &memory) != POSENC_OK)
        return false;
    const struct guard_result g =
        guard_run(&e->call, search->implementation->backend, search->guard);
    const int64_t n = e->call.n_outputs * e->call.outputs[0].rows * e->call.outputs[0].width;
    const int64_t most = kernel_has_freqs(problem->kernel) ? MOST_ANGLES : MOST_VALUES;
    e->is_made = true;
    e->step = n / most + 1;
    e->wrong = calloc((size_t)n + 1, 1);
    const bool clean = !g.crashed && !g.overwritten && !g.control_left && g.status == POSENC_OK;
    if (!clean || n == 0 || !e->wrong)
        return false;
    mark_wrong_values(e);
    return true;
}

static void evidence_end(struct evidence *e)
{
    if (e->is_made)
        call_destroy(&e->call);
    free(e->wrong);
}

/* ---- Variations of a problem ---- */

/* Edits that make a problem large enough to tell mistakes apart, which all variations have. */
static const struct field_edit enlarging[] = {
    { "tokens", EDIT_AT_LEAST, 5.0 },       { "heads", EDIT_AT_LEAST, 3.0 },
    { "queries", EDIT_AT_LEAST, 5.0 },      { "keys", EDIT_AT_LEAST, 7.0 },
    { "rotary_dim", EDIT_AT_LEAST, 8.0 },   { "window_height", EDIT_AT_LEAST, 2.0 },
    { "window_width", EDIT_AT_LEAST, 3.0 }, { "distances", EDIT_SET, 0.0 },
    { "dim", EDIT_AT_LEAST, 4.0 },          { "position_offset", EDIT_ADD, 2.0 },
    { "special", EDIT_SET, 0.0 },           { "recipe", EDIT_SET, RECIPE_MIX },
};

/* Edits of a problem with more bytes than these, as each variation takes time. */
#define MOST_BYTES 0x1p26
static const struct field_edit reducing[] = {
    { "batch", EDIT_AT_MOST, 2.0 },  { "tokens", EDIT_AT_MOST, 512.0 },
    { "heads", EDIT_AT_MOST, 8.0 },  { "queries", EDIT_AT_MOST, 256.0 },
    { "keys", EDIT_AT_MOST, 256.0 },
};

/* The first ones decide whether a mistake is named, the others between several. */
enum { FIRST_VARIATIONS = 7, VARIATION_EDITS = 4 };
static const struct field_edit variations[][VARIATION_EDITS] = {
    { { "dtype", EDIT_ADD, 0.0 } }, /* nothing but the sizes */
    { { "position_offset", EDIT_ADD, 3001.0 } },
    { { "position_offset", EDIT_SET, -9.0 } },
    { { "keys", EDIT_AT_LEAST, 150.0 }, { "query_offset", EDIT_SET, 20.0 } },
    { { "keys", EDIT_AT_LEAST, 150.0 },
      { "query_offset", EDIT_SET, 120.0 },
      { "num_buckets", EDIT_SET, 8.0 },
      { "max_distance", EDIT_SET, 100.0 } },
    { { "alibi_bias_max", EDIT_SET, 5.3 } },
    { { "seq_len", EDIT_SET, 0.0 } },
    { { "in_place", EDIT_SET, 0.0 } },
    { { "position_kind", EDIT_SET, POSENC_POSITIONS_OFFSET },
      { "position_offset", EDIT_SET, 7.0 } },
    { { "position_kind", EDIT_SET, POSENC_POSITIONS_I64 },
      { "position_offset", EDIT_SET, 7.0 } },
    { { "position_offset", EDIT_SET, 0.0 } },
    { { "transpose", EDIT_NOT, 0.0 } },
    { { "causal", EDIT_NOT, 0.0 } },
    { { "bidirectional", EDIT_NOT, 0.0 } },
    { { "accumulate", EDIT_NOT, 0.0 } },
    { { "query_offset", EDIT_ADD, 3.0 } },
    { { "query_offset", EDIT_SET, 0.0 } },
    { { "x_scale", EDIT_SET, 3.0 } },
    { { "scale", EDIT_SET, 3.0 } },
    { { "layout", EDIT_SET, POSENC_LAYOUT_INTERLEAVED } },
    { { "layout", EDIT_SET, POSENC_LAYOUT_SIN_COS } },
    { { "layout", EDIT_SET, POSENC_LAYOUT_COS_SIN } },
    { { "numerics", EDIT_SET, POSENC_NUMERICS_EXACT } },
    { { "numerics", EDIT_SET, POSENC_NUMERICS_HF_F32 } },
    { { "factor", EDIT_ADD, 1.0 } },
    { { "attention_factor", EDIT_SET, 1.5 } },
    { { "rope_theta", EDIT_SET, 5000.0 } },
    { { "weight_offset", EDIT_SET, 0.5 } },
    { { "across_heads", EDIT_NOT, 0.0 } },
    { { "epsilon", EDIT_SET, 0.5 } },
    { { "rotary_offset", EDIT_ADD, 2.0 } },
    { { "max_distance", EDIT_ADD, 9.0 } },
    { { "heads", EDIT_SET, 4.0 } },
    { { "heads", EDIT_SET, 12.0 } },
    { { "without_c2p", EDIT_SET, 0.0 }, { "with_p2c", EDIT_SET, 1.0 } },
    { { "scattered", EDIT_SET, 1.0 } },
    { { "batch", EDIT_AT_LEAST, 2.0 } },
    { { "batch", EDIT_AT_LEAST, 2.0 }, { "batch_shift", EDIT_SET, 3.0 } },
};
enum { VARIATIONS = sizeof variations / sizeof *variations };

/* Sets members that have to fit the edited ones. */
static void fit_members(struct problem *p, const struct problem *original)
{
    const struct posenc_freqs_spec *freqs = &p->freqs;
    const bool has_lists = freqs->values || freqs->short_factor || freqs->long_factor ||
                           freqs->mrope_section[0] != 0;
    if (kernel_rotates(p->kernel)) /* with as many other channels as before */
        p->dim = p->rotary_offset + p->rotary_dim + (original->dim - original->rotary_dim);
    if (!kernel_has_freqs(p->kernel) || has_lists)
        p->freqs.dim = original->freqs.dim;
    else if (p->freqs.dim < 64)
        p->freqs.dim = 64 + p->freqs.dim % 2;
    const int64_t farthest = INT32_MAX - 8 - p->tokens;
    p->first = p->first > farthest ? farthest : p->first;
    p->batch_shift %= 1 << 12;          /* so that the positions of all batches are accepted */
    if (!(fabsf(p->x_scale) < 1000.0f)) /* x would hide what is added to it */
        p->x_scale = copysignf(3.0f, p->x_scale);
    if (p->relative == RELATIVE_TRANSFORMER_XL)
        p->query_offset = p->keys - p->queries;
    for (int i = 0; i < LAYOUTS; i++)
        p->layouts[i].n_strides = 0;
    if (p->positions) {
        p->positions = NULL;
        p->first = p->first ? p->first : 2;
    }
    problem_derive(p);
}

/* Makes the rows of a table of cosines or a learned table as many as the positions need. */
static void fit_rows(struct problem *p)
{
    int64_t most = 0;
    for (int64_t b = 0; b < p->batch; b++) {
        const int64_t last = problem_position(p, b, p->tokens - 1);
        most = last > most ? last : most;
    }
    if (!kernel_on_scores(p->kernel) && !kernel_has_freqs(p->kernel) && most < 1 << 16)
        p->rows = p->rows > most + 2 ? p->rows : most + 2;
}

static void apply_edits(const struct field_edit *edits, size_t n, struct problem *p)
{
    for (size_t i = 0; i < n; i++)
        field_edit_apply(&edits[i], p);
}

/* Returns false if the kernel lacks an edited field. */
static bool vary(const struct problem *original, const struct field_edit *edits,
                 struct problem *p)
{
    *p = *original;
    if (problem_memory_estimate(p) > MOST_BYTES)
        apply_edits(reducing, sizeof reducing / sizeof *reducing, p);
    apply_edits(enlarging, sizeof enlarging / sizeof *enlarging, p);
    for (int i = 0; i < VARIATION_EDITS && edits[i].kind; i++)
        if (!field_edit_apply(&edits[i], p))
            return false;
    fit_members(p, original);
    fit_rows(p);
    return true;
}

/* ---- The search ---- */

/* Makes every mistake a candidate. */
static void list_candidates(struct search *search)
{
    for (const struct mistake *const *table = mistake_tables; *table; table++)
        for (const struct mistake *mistake = *table;
             mistake->sentence && search->n_candidates < MOST_MISTAKES; mistake++)
            search->candidates[search->n_candidates++] = (struct candidate){ mistake, 0 };
}

/* Runs a problem, and keeps the candidates that predict its values and have predicted a wrong one. A problem that would
 * remove all is of no use if it `chooses` between candidates. Returns the number of wrong values. */
static int64_t try_problem(struct search *search, const struct problem *problem, bool chooses)
{
    struct evidence e;
    struct candidate kept[MOST_MISTAKES];
    size_t n_kept = 0;
    const bool ran = evidence_begin(search, problem, &e);
    for (size_t i = 0; i < search->n_candidates && ran; i++) {
        int64_t n;
        if (!predicts(search->candidates[i].mistake, &e, &n))
            continue;
        kept[n_kept] = search->candidates[i];
        kept[n_kept].n_explained += n;
        n_kept += kept[n_kept].n_explained > 0;
    }
    if (ran && (n_kept > 0 || !chooses)) {
        memcpy(search->candidates, kept, n_kept * sizeof *kept);
        search->n_candidates = n_kept;
    }
    search->n_runs += ran;
    evidence_end(&e);
    return ran ? e.n_wrong : 0;
}

/* Removes vague candidates if there are others, and those with little evidence. */
static void remove_weak_candidates(struct search *search)
{
    const int64_t least = search->n_runs > 1 ? LEAST_EXPLAINED : LEAST_EXPLAINED_ALONE;
    size_t kept = 0, n_clear = 0;
    for (size_t i = 0; i < search->n_candidates; i++)
        n_clear += search->candidates[i].n_explained >= least &&
                   !search->candidates[i].mistake->is_vague;
    for (size_t i = 0; i < search->n_candidates; i++)
        if (search->candidates[i].n_explained >= least &&
            (n_clear == 0 || !search->candidates[i].mistake->is_vague))
            search->candidates[kept++] = search->candidates[i];
    search->n_candidates = kept;
}

/* Names the first two candidates with different sentences. */
static void name_candidates(const struct search *search, char text[MISTAKE_TEXT])
{
    const char *first = search->n_candidates > 0 ? search->candidates[0].mistake->sentence : "";
    size_t used = text_append(text, MISTAKE_TEXT, 0, "%s", first), i = 0;
    while (i < search->n_candidates &&
           strcmp(search->candidates[i].mistake->sentence, first) == 0)
        i++;
    if (i < search->n_candidates)
        text_append(text, MISTAKE_TEXT, used, "; or %s",
                    search->candidates[i].mistake->sentence);
}

bool mistakes_find(const struct implementation *implementation, const struct problem *problem,
                   char text[MISTAKE_TEXT])
{
    struct search search = { .implementation = implementation, .guard = guard_create() };
    struct problem variation;
    text[0] = '\0';
    if (!search.guard)
        return false;
    list_candidates(&search);
    const int64_t n_wrong = try_problem(&search, problem, false);
    if (n_wrong == 0)
        search.n_candidates = 0;
    for (int i = 0; i < FIRST_VARIATIONS && search.n_candidates > 0; i++)
        if (vary(problem, variations[i], &variation))
            try_problem(&search, &variation, false);
    remove_weak_candidates(&search);
    for (int i = FIRST_VARIATIONS; i < VARIATIONS && search.n_candidates > 1; i++)
        if (vary(problem, variations[i], &variation))
            try_problem(&search, &variation, true);
    name_candidates(&search, text);
    guard_destroy(search.guard);
    return n_wrong > 0;
}
