/*
 * The last line on a terminal: how many checks ended how.
 */
#include "reports/report.h"

void section_totals(struct node *into, const struct results *r,
                    const struct render_options *options)
{
    (void)options;
    struct counts t = count_conf(r, NULL, NULL, NULL);
    if (t.total == 0)
        return;
    struct node *line =
        add_text(into, PARAGRAPH, ON_TERMINAL,
                 "%d failed, %d passed, %d crashed, %d skipped, %d cannot run here, %d weak",
                 t.fail, t.pass, t.crash, t.skipped, t.unsupported, t.weak);
    if (line)
        line->tone = t.fail + t.crash ? BAD : GOOD;
}
