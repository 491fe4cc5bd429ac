/* Makes a problem that fails smaller: "try the default, then halve", until nothing helps. */
#include "problems.h"

#include <math.h>
#include <string.h>

/* A limit of attempts, so that every machine that is not slow ends at the same problem. */
enum { MOST_ATTEMPTS = 2000 };

struct shrinking {
    struct problem *problem;
    problem_fails *fails;
    void *user;
    double until;
    int attempts;
    bool helped; /* since the last round of all fields began */
};

/* Takes the other problem if it fails, too. */
static bool attempt(struct shrinking *s, const struct problem *other)
{
    if (s->attempts++ >= MOST_ATTEMPTS || draw_clock() > s->until || !s->fails(s->user, other))
        return false;
    *s->problem = *other;
    s->helped = true;
    return true;
}

static bool attempt_value(struct shrinking *s, const struct field *field, uint64_t bits)
{
    struct problem other = *s->problem;
    field_set(field, &other, bits);
    return attempt(s, &other);
}

/* Halves whole numbers and then tries one less; a real becomes a simple one. */
static void shrink_number(struct shrinking *s, const struct field *field)
{
    static const double simple[] = { 1.0, 0.0, 2.0, -1.0, 0.5 };
    const double real = bits_to_double(field_get(field, s->problem, 0));
    for (int i = 0; field_is_real(field) && i < 5; i++)
        if (real == simple[i] || attempt_value(s, field, double_to_bits(simple[i])))
            return;
    for (bool shrunk = !field_is_real(field) && !field->names; shrunk;) {
        const int64_t value = (int64_t)field_get(field, s->problem, 0),
                      near = value < 0 ? value + 1 : value - 1;
        shrunk = value != 0 && (attempt_value(s, field, (uint64_t)(value / 2)) ||
                                (near != value / 2 && attempt_value(s, field, (uint64_t)near)));
    }
}

/* Drops the first token's position, as often as that fails; a list of strides loses its signs and
 * becomes shorter steps. */
static void shrink_list(struct shrinking *s, const struct field *field)
{
    struct problem other = *s->problem;
    while (field->list == LIST_POSITIONS && other.tokens > 1) {
        other.positions++;
        other.tokens--;
        if (!attempt(s, &other))
            break;
    }
    for (int64_t i = 0; field->list == LIST_STRIDES && i < field_length(field, s->problem); i++)
        for (bool shrunk = true; shrunk;) {
            const int64_t stride = (int64_t)field_get(field, s->problem, i);
            const int64_t others[] = { stride < 0 ? -stride : stride / 2,
                                       stride < 0 ? stride + 1 : stride - 1 };
            shrunk = false;
            for (int k = 0; k < 2 && !shrunk && stride != 0 && stride != 1; k++) {
                other = *s->problem;
                memcpy((char *)&other + field->offset + (size_t)(1 + i) * sizeof stride,
                       &others[k], sizeof stride);
                shrunk = attempt(s, &other);
            }
        }
}

/* Sections lie in the problem. Of strides the count goes back to 0, of other lists the pointer to NULL: 8 bytes each. */
static bool attempt_default(struct shrinking *s, const struct field *field)
{
    const struct problem blank = problem_blank(s->problem->kernel);
    struct problem other = *s->problem;
    if (field->list == LIST_NONE)
        return attempt_value(s, field, field_get(field, &blank, 0));
    memcpy((char *)&other + field->offset, (const char *)&blank + field->offset,
           field->list == LIST_SECTIONS ? sizeof blank.freqs.mrope_section : sizeof(int64_t));
    return attempt(s, &other);
}

void problem_shrink(struct problem *problem, double seconds, problem_fails *fails, void *user)
{
    struct shrinking s = { problem, fails, user, draw_clock() + seconds, 0, true };
    struct field field;
    while (s.helped && s.attempts < MOST_ATTEMPTS && draw_clock() < s.until) {
        s.helped = false;
        for (int i = 0; kernel_field(problem->kernel, i, &field); i++) {
            if (field_is_blank(&field, s.problem) || attempt_default(&s, &field))
                continue;
            if (field.list == LIST_NONE)
                shrink_number(&s, &field);
            else
                shrink_list(&s, &field);
        }
    }
}
