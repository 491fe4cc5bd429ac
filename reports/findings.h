/*
 * What of a machine makes its timings vary, what each costs, and what to type against it: made of
 * records alone, an env, the noise of a run and what `posenc doctor` measured.
 */
#ifndef POSENC_FINDINGS_H
#define POSENC_FINDINGS_H

#include "document.h"

#include <jansson.h>

/* An array of
 *     {what, level, cost_pct, evidence, fix, command, root}
 * level     "costs": it disturbs now; "note": it may; "fine"; "hidden": the system does not tell
 * cost_pct  how much longer or how much less certain timings are, as far as it was measured; null: not
 *           known
 * fix, command   what to do, and what to type for it, or null; root: by an administrator
 *
 * Of each level the dearest first. */
json_t *findings_of(const json_t *env, const json_t *noise, const json_t *machine);

/* ---- For those who find ---- */

struct diagnosis {
    const json_t *env, *noise, *machine;
    json_t *list;
};

enum finding_level { FINDING_COSTS, FINDING_NOTE, FINDING_FINE, FINDING_HIDDEN };

struct remedy {
    const char *fix, *command; /* NULL: none */
    bool root;
};

#define COST_UNKNOWN (-1.0)

FORMATTED(6, 7)
void found(struct diagnosis *d, enum finding_level level, const char *what, double cost_pct,
           const struct remedy *remedy, const char *evidence, ...);
void found_hidden(struct diagnosis *d, const char *what, const char *where);

/* A number of what was measured, by its path; below 0 where there is none. */
double measured_number(const struct diagnosis *d, const char *path);
/* The floor in that place ("cache", "DRAM"), on one CPU or not; NULL. */
const json_t *floor_in(const json_t *machine, const char *place, bool pinned);

void find_clocks(struct diagnosis *d); /* frequency, clock, power */
void find_cores(struct diagnosis *d);  /* who shares what with the CPU that is measured on */
void find_system(struct diagnosis *d); /* others, quotas, interrupts, the build */
void find_memory(struct diagnosis *d); /* pages, nodes, swap, denormals, addresses */

#endif
