/*
 * Makes of records the tree of a report (document.h).  Everything shown comes from the records
 * alone, so that a saved file reads as the run itself did.
 */
#ifndef POSENC_REPORT_H
#define POSENC_REPORT_H

#include "document.h"
#include "formats.h"
#include "query.h"

/* NULL: no memory.  It points into the records and options, which must outlive it. */
struct node *report_make(const json_t *records, const struct render_options *options);

/* One section each (sections/), into `into`: nothing where the records say nothing of it. */
#define SECTION_OF(name)                                                                       \
    void section_##name(struct node *into, const struct results *results,                      \
                        const struct render_options *options);
#include "sections.def"
#undef SECTION_OF
/* Within the answers, of one model. */
void section_cost(struct node *into, const struct results *results, const json_t *model);
/* Of all records: estimates are of no machine; several machines are set side by side first. */
void section_estimates(struct node *into, const json_t *records);
void section_across(struct node *into, const json_t *records);

/* Checks in a cell: "● 12", "✗ 1/12", "☠ 1/12", "·". */
void add_tally_cell(struct counts counts, struct table *table);

#endif
