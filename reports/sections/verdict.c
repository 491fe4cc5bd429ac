/*
 * What to know before reading on.
 */
#include "reports/noise.h"
#include "reports/ranking.h"
#include "reports/report.h"

#include <string.h>

/* What bench would not time, whether or not verify met it. */
static void add_wrong_outputs(struct node *into, const struct results *r)
{
    const struct bench_row *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < r->n_bench; i++)
        if (is_wrong(&r->bench[i])) {
            first = first ? first : &r->bench[i];
            n++;
        }
    if (n > 0)
        add_text(into, NOTE, EVERYWHERE,
                 "**%zu output%s wrong, and not timed**%s `%.64s` at %.128s: %.200s.", n,
                 n == 1 ? " was" : "s were", n == 1 ? ":" : "; the first:", first->backend,
                 first->id, first->refused + strlen("wrong: "));
}

/* The shares of a run that are here, where some of it are not: "0, 2 of 4". */
static bool list_shards(const struct results *r, char *text, size_t bytes)
{
    size_t at = 0, n = 0;
    const int most = 9999, shards = record_int(r->headers[0], "shard.n", 0);
    for (int i = 0; i < shards && shards <= most; i++) {
        bool here = false;
        for (size_t k = 0; k < r->n_headers; k++)
            here |= record_int(r->headers[k], "shard.i", -1) == i &&
                    record_int(r->headers[k], "shard.n", 0) == shards;
        if (here && at < bytes)
            at += (size_t)snprintf(text + at, bytes - at, "%s%d", n ? ", " : "", i);
        n += here;
    }
    return n > 0 && n < (size_t)shards;
}

/* What is not all of it. */
static void add_partial(struct node *into, const struct results *r)
{
    char shards[256];
    const int open = r->runs - r->finished;
    if (open > 0)
        add_text(into, NOTE, EVERYWHERE,
                 "**Partial**: %d of %d run%s did not finish; what %s had is shown.", open,
                 r->runs, r->runs == 1 ? "" : "s", open == 1 ? "it" : "they");
    if (r->n_headers > 0 && list_shards(r, shards, sizeof shards))
        add_text(into, NOTE, EVERYWHERE,
                 "**A share**: shard%s %s of %.0f, counted from 0; the other cases are in the "
                 "other shards (`posenc results merge`).",
                 strchr(shards, ',') ? "s" : "", shards,
                 record_value(r->headers[0], "shard.n", 0.0));
}

void section_verdict(struct node *into, const struct results *r,
                     const struct render_options *options)
{
    (void)options;
    char noise[NOISE_TEXT];
    add_wrong_outputs(into, r);
    if (*vectors_note(r))
        add_text(into, NOTE, EVERYWHERE,
                 "**%s**: checked with a set (SHA-256 %.16s) that this posenc was not built "
                 "with; what it says is as good as that set.",
                 vectors_note(r), record_text(r->header, "vectors.sha256"));
    if (noise_warning(r, noise))
        add_text(into, NOTE, EVERYWHERE, "%s", noise);
    const char *emulator = record_text(r->env, "emulator");
    if (*emulator)
        add_text(into, NOTE, EVERYWHERE,
                 "Nothing was timed: %s, and times under an emulator say nothing about a CPU.",
                 emulator);
    add_partial(into, r);
    if (strcmp(record_text(r->header, "mode"), "quick") == 0 && !results_of_doctor(r))
        add_text(into, NOTE, ON_PAGE,
                 "A quick run: a smaller set of checks and fewer rounds than `--full`.");
}
