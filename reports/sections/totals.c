/*
 * The last line on a terminal: how many checks ended how.
 */
#include "reports/report.h"

enum { NAMED = 64 };

void section_totals(struct node *into, const struct results *r,
                    const struct render_options *options)
{
    (void)options;
    const char *names[NAMED];
    struct counts t = count_all(r);
    if (t.total == 0)
        return;
    char weak[32] = "";
    if (t.weak)
        snprintf(weak, sizeof weak, ", %d weak", t.weak);
    struct node *line =
        add_text(into, PARAGRAPH, ON_TERMINAL,
                 "%d failed, %d passed, %d crashed, %d skipped, %d cannot run here%s", t.fail,
                 t.pass, t.crash, t.skipped, t.unsupported, weak);
    if (r->n_others)
        add_text(into, NOTE, ON_TERMINAL,
                 "%zu of them are of kernels (%zu) that are not used here, and not shown",
                 r->n_others, other_kernels(r, false, names, NAMED));
    if (line)
        line->tone = t.fail + t.crash ? BAD : GOOD;
}
