/*
 * Makes a problem that fails smaller: see shrink.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "shrink.h"

#include <string.h>
#include <time.h>

enum { MOST_ATTEMPTS = 2000 };

struct shrinking {
    struct problem *problem;
    struct arena *arena;
    still_fails *fails;
    void *user;
    double until;
    int left; /* attempts, so that it ends at the same problem on every machine that is not slow */
    bool helped; /* since the last look at all fields */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Takes the other problem where it still fails. */
static bool attempt(struct shrinking *s, const struct problem *other)
{
    if (s->left-- <= 0 || now() > s->until || !s->fails(s->user, other))
        return false;
    *s->problem = *other;
    s->helped = true;
    return true;
}

/* ---- Numbers ---- */

static bool attempt_value(struct shrinking *s, const struct field *field, uint64_t bits)
{
    struct problem other = *s->problem;
    field_set(field, &other, bits);
    return attempt(s, &other);
}

/* Towards 0: one, the half, one less. */
static void lessen_integer(struct shrinking *s, const struct field *field)
{
    for (bool less = true; less;) {
        const int64_t now_at = (int64_t)field_get(field, s->problem, 0),
                      sign = now_at < 0 ? -1 : 1;
        less = now_at != 0 && now_at != sign &&
               (attempt_value(s, field, (uint64_t)sign) ||
                (now_at / 2 != sign && attempt_value(s, field, (uint64_t)(now_at / 2))) ||
                attempt_value(s, field, (uint64_t)(now_at - sign)));
    }
}

static void lessen_real(struct shrinking *s, const struct field *field)
{
    static const double simple[] = { 1.0, 0.0, 2.0, -1.0, 0.5, -2.0 };
    const double value = bits_to_double(field_get(field, s->problem, 0));
    for (size_t i = 0; i < sizeof simple / sizeof *simple; i++)
        if (value == simple[i] || attempt_value(s, field, double_to_bits(simple[i])))
            return;
}

static void lessen_value(struct shrinking *s, const struct field *field)
{
    const struct problem blank = problem_blank(s->problem->kernel);
    const bool whole = field->kind == FIELD_I64 || field->kind == FIELD_U64;
    if (field_is_blank(field, s->problem) ||
        attempt_value(s, field, field_get(field, &blank, 0)))
        return;
    if (field_is_real(field))
        lessen_real(s, field);
    else if (whole)
        lessen_integer(s, field);
}

/* ---- Lists ---- */

/* Sections and strides lie in the problem itself. */
static void *place_of(const struct field *field, struct problem *problem)
{
    return (char *)problem + field->offset;
}

static void without_list(struct shrinking *s, const struct field *field)
{
    struct problem other = *s->problem;
    void *none = NULL;
    if (field->list == LIST_SECTIONS)
        memset(other.freqs.mrope_section, 0, sizeof other.freqs.mrope_section);
    else if (field->list == LIST_STRIDES)
        memset(place_of(field, &other), 0, sizeof(int64_t));
    else
        memcpy(place_of(field, &other), &none, sizeof none);
    attempt(s, &other);
}

/* Each stride halved or one less, its sign lost. */
static void lessen_strides(struct shrinking *s, const struct field *field)
{
    for (int64_t i = 0; i < field_length(field, s->problem); i++)
        for (bool less = true; less;) {
            const int64_t stride = (int64_t)field_get(field, s->problem, i);
            const int64_t others[] = { stride < 0 ? -stride : stride, stride / 2, stride - 1 };
            less = false;
            for (int k = 0; k < 3 && !less && stride != 0 && stride != 1; k++) {
                struct problem other = *s->problem;
                memcpy((char *)place_of(field, &other) + (size_t)(1 + i) * sizeof stride,
                       &others[k], sizeof stride);
                less = others[k] != stride && attempt(s, &other);
            }
        }
}

/* Without its first token; positions near the first one, or 0. */
static void lessen_positions(struct shrinking *s)
{
    enum { FEW = 16 };
    struct problem other = *s->problem;
    do {
        other = *s->problem;
        other.positions++;
        other.tokens--;
    } while (other.tokens > 0 && attempt(s, &other));
    for (int64_t t = 0; t < s->problem->tokens && t < FEW; t++) {
        const size_t bytes = (size_t)s->problem->tokens * sizeof(int64_t);
        int64_t *list = arena_get(s->arena, bytes);
        if (!list)
            return;
        memcpy(list, s->problem->positions, bytes);
        const int64_t simple[] = { 0, t, list[t] / 2 };
        for (int k = 0; k < 3; k++) {
            other = *s->problem;
            other.positions = list;
            list[t] = simple[k];
            if (simple[k] != s->problem->positions[t] && attempt(s, &other))
                break;
            list[t] = s->problem->positions[t];
        }
    }
}

static void lessen_list(struct shrinking *s, const struct field *field)
{
    if (field_is_blank(field, s->problem))
        return;
    without_list(s, field);
    if (field_is_blank(field, s->problem))
        return;
    if (field->list == LIST_STRIDES)
        lessen_strides(s, field);
    if (field->list == LIST_POSITIONS)
        lessen_positions(s);
}

void shrink(struct problem *problem, struct arena *arena, double seconds, still_fails *fails,
            void *user)
{
    struct shrinking s = { problem, arena, fails, user, now() + seconds, MOST_ATTEMPTS, true };
    struct field field;
    while (s.helped && s.left > 0 && now() < s.until) {
        s.helped = false;
        for (int i = 0; kernel_field(problem->kernel, i, &field); i++)
            if (field.list == LIST_NONE)
                lessen_value(&s, &field);
            else
                lessen_list(&s, &field);
    }
}
