/*
 * Ranks the timings of a case, and says whether the default is to be left; see ranking.h.
 */
#include "ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const double worth_naming = 0.03;

/* Of an interval to either side: what decides, and what is believed of a reading that is as many roofs. */
static const double widest = 0.10, beyond_roof = 1.2, widest_beyond = 0.03;

double row_width(const struct bench_row *b)
{
    if (!(b->level > 0.0) || !(b->lo > 0.0) || !(b->hi > 0.0))
        return HUGE_VAL;
    return fmax(b->hi - b->median, b->median - b->lo) / b->median;
}

bool is_noisy(const struct bench_row *b)
{
    double width = row_width(b);
    return !(width <= widest) || b->null_pct > 100.0 * widest ||
           (b->roof_ratio > beyond_roof && width > widest_beyond);
}

/* Whether the interval of a begins before that of b ends. */
static bool reaches(const struct bench_row *a, const struct bench_row *b)
{
    double noise = fmax(a->null_pct, b->null_pct) / 100.0;
    double low = a->lo > 0.0 ? a->lo : a->median, high = b->hi > 0.0 ? b->hi : b->median;
    return low <= high * (1.0 + noise);
}

bool is_wrong(const struct bench_row *b) { return strncmp(b->refused, "wrong: ", 7) == 0; }

bool rows_meet(const struct bench_row *a, const struct bench_row *b)
{
    return reaches(a, b) && reaches(b, a);
}

bool is_faster(const struct bench_row *a, const struct bench_row *b)
{
    return !is_noisy(a) && !is_noisy(b) && !reaches(b, a) &&
           b->median > a->median * (1.0 + worth_naming);
}

static enum standing alone(const struct results *r, const struct bench_row *b)
{
    bool checked;
    if (is_wrong(b) || (!*b->refused && !conforms(r, b->kernel, b->backend, &checked)))
        return WRONG;
    if (*b->refused)
        return NOT_TIMED;
    return is_noisy(b) ? NOISY : SLOWER;
}

/* Whether somebody's interval, wide as it is, ends before that of the fastest begins: then the fastest is
 * not among those that decide. */
static bool is_outrun(const struct ranking *k)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->standing[i] == NOISY && !reaches(k->best, k->row[i]))
            return true;
    return false;
}

void rank_case(const struct results *r, const char *id, struct ranking *k)
{
    *k = (struct ranking){ 0 };
    k->n = rows_of_case(r, id, k->row, RANKED);
    size_t end = 0; /* after the last that ties */
    for (size_t i = 0; i < k->n; i++) {
        k->standing[i] = alone(r, k->row[i]);
        if (k->standing[i] != SLOWER)
            continue;
        if (!k->best)
            k->best = k->row[i];
        if (rows_meet(k->best, k->row[i]))
            end = i + 1;
    }
    if (k->best && is_outrun(k)) {
        k->best = NULL;
        end = 0;
    }
    for (size_t i = 0; i < end; i++) {
        if (k->standing[i] != SLOWER)
            continue;
        k->standing[i] = k->row[i] == k->best ? FASTEST : TIED;
        k->tied += k->standing[i] == TIED;
    }
}

size_t rank_of(const struct ranking *k, const char *backend)
{
    size_t i = 0;
    while (i < k->n && strcmp(k->row[i]->backend, backend) != 0)
        i++;
    return i;
}

const struct bench_row *telling_row(const struct results *r, const struct ranking *k)
{
    if (k->best || k->n == 0)
        return k->best;
    size_t at = rank_of(k, default_backend(r, k->row[0]->kernel));
    if (at < k->n && k->standing[at] >= NOISY)
        return k->row[at];
    for (at = 0; at < k->n && k->standing[at] < NOISY;)
        at++;
    return at < k->n ? k->row[at] : NULL;
}

double behind_best(const struct ranking *k, size_t place)
{
    if (place >= k->n || k->standing[place] != SLOWER || !k->best ||
        !is_faster(k->best, k->row[place]))
        return 0.0;
    return k->row[place]->median / k->best->median - 1.0;
}

/* ---- Advice ---- */

/* What a backend gains on the default over shapes, in logarithms of time; 0 where it is slower at one of
 * them, or noisy, or was not timed. */
static double gain_of(const struct ranking *shapes, size_t n, const char *standard,
                      const char *backend)
{
    double gain = 0.0;
    for (size_t i = 0; i < n; i++) {
        const struct ranking *k = &shapes[i];
        size_t a = rank_of(k, standard), b = rank_of(k, backend);
        if (a == k->n || b == k->n || k->standing[a] < SLOWER || k->standing[b] < SLOWER ||
            is_faster(k->row[a], k->row[b]))
            return 0.0;
        if (k->standing[a] == SLOWER && is_faster(k->row[b], k->row[a]))
            gain += log(k->row[a]->median / k->row[b]->median);
    }
    return gain;
}

/* Whether the first is faster than the second at one of the shapes. */
static bool is_faster_somewhere(const struct ranking *shapes, size_t n, const char *first,
                                const char *second)
{
    for (size_t i = 0; i < n; i++)
        if (is_faster(shapes[i].row[rank_of(&shapes[i], first)],
                      shapes[i].row[rank_of(&shapes[i], second)]))
            return true;
    return false;
}

static const char *choose(const struct results *r, const struct ranking *shapes, size_t n,
                          const char *standard)
{
    double most = (double)n * log1p(worth_naming);
    const char *best = NULL;
    for (size_t b = 0; b < r->n_backends; b++) {
        double gain = gain_of(shapes, n, standard, r->backends[b].id);
        if (gain > most) {
            most = gain;
            best = r->backends[b].id;
        }
    }
    for (size_t b = 0; best && b < r->n_backends; b++) {
        const char *id = r->backends[b].id;
        if (gain_of(shapes, n, standard, id) > (double)n * log1p(worth_naming) &&
            !is_faster_somewhere(shapes, n, best, id))
            return id;
    }
    return best;
}

const char *better_than_default(const struct results *r, const json_t *model,
                                const char *kernel)
{
    const json_t *cases = json_object_get(model, "cases");
    struct ranking *shapes = calloc(json_array_size(cases) + 1, sizeof *shapes);
    size_t n = 0;
    for (size_t i = 0; shapes && i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        if (strcmp(record_text(one, "kernel"), kernel) != 0)
            continue;
        rank_case(r, record_text(one, "case"), &shapes[n]);
        n += shapes[n].n > 0 && !*shapes[n].row[0]->refused;
    }
    const char *choice = n > 0 ? choose(r, shapes, n, default_backend(r, kernel)) : NULL;
    free(shapes);
    return choice;
}
