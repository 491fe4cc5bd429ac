/*
 * Mistakes in the sums, learned_grad and relative_sum.
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

static float start(const struct sum *s) { return s->onto ? s->held : 0.0f; }

/* As promised, from a first summand on. */
static float ascending(const struct sum *s, float sum, int64_t first)
{
    for (int64_t k = first; k < s->n; k++)
        sum += s->terms[k];
    return sum;
}

/* ---- Orders and widths ---- */

float descending_sum(const struct sum *s)
{
    float sum = start(s);
    for (int64_t k = s->n; k-- > 0;)
        sum += s->terms[k];
    return sum;
}

static float halves(const float *terms, int64_t n)
{
    return n == 0   ? 0.0f
           : n == 1 ? terms[0]
                    : halves(terms, n / 2) + halves(terms + n / 2, n - n / 2);
}

float pairwise_sum(const struct sum *s) { return start(s) + halves(s->terms, s->n); }

float f64_sum(const struct sum *s)
{
    double sum = (double)start(s);
    for (int64_t k = 0; k < s->n; k++)
        sum += (double)s->terms[k];
    return (float)sum;
}

float sum_in_type_of_x(const struct sum *s)
{
    float sum = start(s);
    for (int64_t k = 0; k < s->n; k++)
        sum = round_to(s->stored, sum + s->terms[k]);
    return sum;
}

/* The sum by itself, then onto what is held. */
float sum_apart(const struct sum *s)
{
    return s->onto ? s->held + ascending(s, 0.0f, 0) : ascending(s, 0.0f, 0);
}

/* ---- What belongs to a sum ---- */

float last_term(const struct sum *s) { return s->n ? s->terms[s->n - 1] : start(s); }

/* A single -0 stays -0. */
float from_first_term(const struct sum *s)
{
    const bool first = !s->onto && s->n > 0;
    return ascending(s, first ? s->terms[0] : start(s), first);
}

float empty_left_alone(const struct sum *s)
{
    return s->n ? ascending(s, start(s), 0) : s->held;
}

float always_onto(const struct sum *s) { return ascending(s, s->held, 0); }

void accumulate_ignored(struct entered *e) { e->args.learned_grad.accumulate = false; }

void first_batch_alone(struct entered *e)
{
    int64_t *batches = &e->args.learned_grad.x.shape[0];
    *batches = *batches < 1 ? *batches : 1;
}
