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

void section_verdict(struct node *into, const struct results *r,
                     const struct render_options *options)
{
    (void)options;
    char noise[NOISE_TEXT];
    add_wrong_outputs(into, r);
    if (noise_warning(r, noise))
        add_text(into, NOTE, EVERYWHERE, "%s", noise);
    const char *emulator = record_text(r->env, "emulator");
    if (*emulator)
        add_text(into, NOTE, EVERYWHERE,
                 "Nothing was timed: %s, and times under an emulator say nothing about a CPU.",
                 emulator);
    if (r->finished < r->runs)
        add_text(into, NOTE, EVERYWHERE,
                 "Incomplete: %d of %d runs did not finish; what they had is shown.",
                 r->runs - r->finished, r->runs);
    if (strcmp(record_text(r->header, "mode"), "quick") == 0)
        add_text(into, NOTE, ON_PAGE,
                 "A quick run: a smaller set of checks and fewer rounds than `--full`.");
}
