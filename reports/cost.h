/*
 * What positional encoding costs in a step of a model, over all of its layers: the times of its calls,
 * each as often as the model makes it (members step and times of a model's record), added up.
 */
#ifndef POSENC_COST_H
#define POSENC_COST_H

#include "query.h"

/* "decode" with tables of one profile; "" where its calls have none. */
struct step {
    const char *name, *dtype, *profile;
};
enum { STEPS = 16, STEP_TEXT = 64 };

/* Whether it is one of that kind: "decoder-decode" is a "decode". */
bool cost_step_is(const struct step *step, const char *what);

/* The steps of a model that were timed, decoding first; how many. */
size_t cost_steps(const struct results *results, const json_t *model, struct step steps[STEPS]);
/* "decode", "decode hf_f32": the profile where several are there. */
const char *cost_step_name(const struct step *step, const struct step *steps, size_t n,
                           char text[STEP_TEXT]);

struct cost {
    double ns, lo, hi;   /* sums of medians, and of the ends of their intervals */
    bool known;          /* how often is known of each of its calls */
    bool noisy;          /* some reading of it is */
    const char *missing; /* a kernel that was not timed, or is wrong; NULL: none */
    const char *backend; /* that served all of it; "" where several did */
};

/* With one backend; NULL: with those that serve by default. */
struct cost cost_of(const struct results *results, const json_t *model, const struct step *step,
                    const char *backend);

/* One of its calls: the row that a backend (NULL: the default) has, or NULL; how often, 0 unknown. */
struct cost_call {
    const json_t *one; /* of the model's cases */
    const struct bench_row *row;
    double times;
};
enum { COST_CALLS = 16 };
size_t cost_calls(const struct results *results, const json_t *model, const struct step *step,
                  const char *backend, struct cost_call calls[COST_CALLS]);

#endif
