/*
 * What timings may be said to show: who is fastest, who cannot be told from it, and whom to prefer to
 * the default.  The one rule for answers, tables, pictures and advice:
 *
 *   - A reading is noisy where its interval is wider than 10 % to either side, where a copy of a backend
 *     was further than that from itself, where one sample was all there was, and where it is a fifth
 *     above the roof and its interval wider than 3 %.  It is shown and decides nothing.
 *   - The fastest is the least median of what conforms and is not noisy, unless all of the interval of
 *     something noisy lies before its own: then nobody is called so.  Everything whose interval meets
 *     that of the fastest is tied with it, and so is whatever lies between: no tie skips a faster row.
 *   - One backend is faster than another where their intervals are apart and the medians, too, by
 *     more than 3 %.  The default stays unless another is faster than it.
 */
#ifndef POSENC_RANKING_H
#define POSENC_RANKING_H

#include "query.h"

enum { RANKED = 32 }; /* rows of a case */
enum standing { NOT_TIMED, WRONG, NOISY, SLOWER, TIED, FASTEST };

struct ranking {
    size_t n, tied;                      /* tied: not counting the fastest itself */
    const struct bench_row *row[RANKED]; /* the least median first, those without one last */
    enum standing standing[RANKED];
    const struct bench_row *best; /* the fastest; NULL: nothing was measured well enough */
};
void rank_case(const struct results *results, const char *id, struct ranking *ranking);

/* Of a case without a fastest, and of any other, the row whose numbers stand for it: the fastest's,
 * else the default's, else the first that conforms; NULL when none does. */
const struct bench_row *telling_row(const struct results *results,
                                    const struct ranking *ranking);
/* The place of a backend in a ranking; n where it is not there. */
size_t rank_of(const struct ranking *ranking, const char *backend);

/* How wide a row's interval is to its wider side, as a share of its median; infinite where the records
 * tell no interval. */
double row_width(const struct bench_row *row);
bool is_noisy(const struct bench_row *row);
/* Whether its output was found to be wrong, and therefore not timed. */
bool is_wrong(const struct bench_row *row);
/* Whether two rows' intervals meet, within the distance of a backend from its own copy. */
bool rows_meet(const struct bench_row *a, const struct bench_row *b);
bool is_faster(const struct bench_row *a, const struct bench_row *b);

/* By what share the row at that place is slower than the fastest; 0 where that cannot be told. */
double behind_best(const struct ranking *ranking, size_t place);

/* What another backend must gain on the default to be named. */
extern const double worth_naming;
/* The backend to prefer to the default for a kernel at a model's shapes: at none of them slower than
 * the default, and on average worth naming; of those that tie, the one the records list first.  NULL:
 * the default stays. */
const char *better_than_default(const struct results *results, const json_t *model,
                                const char *kernel);

#endif
