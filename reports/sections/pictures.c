/*
 * Pictures that were drawn of the same results.
 */
#include "reports/report.h"

void section_pictures(struct node *into, const struct results *r,
                      const struct render_options *options)
{
    (void)r;
    struct node *section = options->n_pictures ? add_section(into, ON_PAGE, "Pictures") : NULL;
    for (size_t i = 0; i < options->n_pictures; i++)
        add_figure(section, options->pictures[i].caption, options->pictures[i].path,
                   options->pictures[i].file);
}
