/* Between the files that make a model's cases. */
#ifndef POSENC_MODEL_CASES_H
#define POSENC_MODEL_CASES_H

#include "config.h"

/* Tokens of a prompt, and of what is only checked. */
enum { CASE_PREFILL = 512, CASE_CHECKED = 8 };

static inline int64_t case_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* `shape` is the end of the id, after the part's name if it has one; `label` what people read.
 */
__attribute__((format(printf, 6, 7))) void case_add(struct model *m, const struct part *part,
                                                    const char *profile, const char *shape,
                                                    struct problem p, const char *label, ...);
/* A problem to verify. */
void case_check(struct model *m, struct problem p);

/* What is added to scores. */
void cases_alibi(const struct part *part, struct model *m);
void cases_t5(const struct part *part, struct model *m);
void cases_relative(const struct part *part, struct model *m);
void cases_window(const struct part *part, struct model *m);

#endif
