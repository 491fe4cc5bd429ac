/*
 * Puts together files of records: the shards of a run, which become that run again, and runs on
 * several machines.  What does not belong together is refused, by the name of its file.
 *
 * The result begins with one header, which names what was merged, and ends with one footer.  Between
 * them are sections, one for each run of each machine: its env, a "part" for each file that it comes
 * from (that one's header and footer, and its name), and the records of its results, in the order of
 * an undivided run.
 */
#ifndef POSENC_MERGE_H
#define POSENC_MERGE_H

#include "records.h"

struct merge_input {
    const char *name;
    const json_t *records;
    struct records_end end;
};

enum merge_status { MERGE_FINE, MERGE_REFUSED, MERGE_MISSING, MERGE_MEMORY };
enum { MERGE_ERROR = 1024 };

/* Appends the result to `merged`, but for its footer.  `header` (borrowed) is that of the result and
 * gets what the parts have in common.  mixed: shards of one run may come from several CPUs.  Notes
 * are sentences about what was passed over.  Other than MERGE_FINE: why, in `error`. */
enum merge_status merge_records(const struct merge_input *inputs, size_t n, bool mixed,
                                json_t *header, json_t *merged, json_t *notes,
                                char error[MERGE_ERROR]);

#endif
