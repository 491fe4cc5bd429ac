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

double row_width(const struct bench_row *row)
{
    if (!(row->level > 0.0) || !(row->lo > 0.0) || !(row->hi > 0.0))
        return HUGE_VAL;
    return fmax(row->hi - row->median, row->median - row->lo) / row->median;
}

bool is_noisy(const struct bench_row *row)
{
    double width = row_width(row);
    return !(width <= widest) || row->null_pct > 100.0 * widest ||
           (row->roof_ratio > beyond_roof && width > widest_beyond);
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
static bool is_outrun(const struct ranking *ranking)
{
    for (size_t i = 0; i < ranking->n; i++)
        if (ranking->standing[i] == NOISY && !reaches(ranking->best, ranking->row[i]))
            return true;
    return false;
}

void rank_case(const struct results *r, const char *id, struct ranking *ranking)
{
    *ranking = (struct ranking){ 0 };
    ranking->n = rows_of_case(r, id, ranking->row, RANKED);
    size_t end = 0; /* after the last that ties */
    for (size_t i = 0; i < ranking->n; i++) {
        ranking->standing[i] = alone(r, ranking->row[i]);
        if (ranking->standing[i] != SLOWER)
            continue;
        if (!ranking->best)
            ranking->best = ranking->row[i];
        if (rows_meet(ranking->best, ranking->row[i]))
            end = i + 1;
    }
    if (ranking->best && is_outrun(ranking)) {
        ranking->best = NULL;
        end = 0;
    }
    for (size_t i = 0; i < end; i++) {
        if (ranking->standing[i] != SLOWER)
            continue;
        ranking->standing[i] = ranking->row[i] == ranking->best ? FASTEST : TIED;
        ranking->tied += ranking->standing[i] == TIED;
    }
}

size_t rank_of(const struct ranking *ranking, const char *backend)
{
    size_t i = 0;
    while (i < ranking->n && strcmp(ranking->row[i]->backend, backend) != 0)
        i++;
    return i;
}

const struct bench_row *telling_row(const struct results *r, const struct ranking *ranking)
{
    if (ranking->best || ranking->n == 0)
        return ranking->best;
    size_t at = rank_of(ranking, default_backend(r, ranking->row[0]->kernel));
    if (at < ranking->n && ranking->standing[at] >= NOISY)
        return ranking->row[at];
    for (at = 0; at < ranking->n && ranking->standing[at] < NOISY;)
        at++;
    return at < ranking->n ? ranking->row[at] : NULL;
}

double behind_best(const struct ranking *ranking, size_t place)
{
    if (place >= ranking->n || ranking->standing[place] != SLOWER || !ranking->best ||
        !is_faster(ranking->best, ranking->row[place]))
        return 0.0;
    return ranking->row[place]->median / ranking->best->median - 1.0;
}

/* ---- Advice ---- */

/* What a backend gains on the default over shapes, in logarithms of time; 0 where it is slower at one of
 * them, or noisy, or was not timed. */
static double gain_of(const struct ranking *shapes, size_t n, const char *standard,
                      const char *backend)
{
    double gain = 0.0;
    for (size_t i = 0; i < n; i++) {
        const struct ranking *ranking = &shapes[i];
        size_t a = rank_of(ranking, standard), b = rank_of(ranking, backend);
        if (a == ranking->n || b == ranking->n || ranking->standing[a] < SLOWER ||
            ranking->standing[b] < SLOWER || is_faster(ranking->row[a], ranking->row[b]))
            return 0.0;
        if (ranking->standing[a] == SLOWER && is_faster(ranking->row[b], ranking->row[a]))
            gain += log(ranking->row[a]->median / ranking->row[b]->median);
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
