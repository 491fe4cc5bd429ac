/*
 * What to know before reading on.
 */
#include "reports/noise.h"
#include "reports/report.h"

#include <string.h>

void section_verdict(struct node *into, const struct results *r,
                     const struct render_options *options)
{
    (void)options;
    char noise[NOISE_TEXT];
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
