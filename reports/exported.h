/*
 * What the formats for other people's programs share: how a result is called there, and lists of JSON with
 * an entry on each line.
 *
 * Such a program keeps numbers by name over months and machines.  A name is the case and the backend, and
 * the number of threads where there is more than one: rope_half/f32/given/llama-3.1-8b-decode/avx2.  The
 * shape stands in the case; the CPU does not, nor the cache that the shape fits into there.  Only where a
 * file has the results of several machines its names begin with the machine's, or they would not be
 * unique.
 */
#ifndef POSENC_EXPORTED_H
#define POSENC_EXPORTED_H

#include "query.h"

enum { EXPORTED_NAME = 512 };

/* machine: its env_id, or NULL where there is one; what: behind the name, or "". */
void exported_name(char name[EXPORTED_NAME], const char *machine, const char *id,
                   const char *backend, int threads, const char *what);
/* Of a count: with the lanes, of which a file may have several (an emulated SVE). */
void exported_count_name(char name[EXPORTED_NAME], const char *machine, const json_t *count,
                         const char *what);
/* The first argument above for machine number `machine` of the records. */
const char *exported_machine(const json_t *records, const struct results *results);

/* A list on lines of its own: begun by "[\n" or "{\n", ended by "\n]\n".  The entry is taken; NULL is a
 * failure.  A name before it makes it a member. */
struct exported {
    FILE *out;
    size_t n;
    bool failed;
};
void exported_entry(struct exported *list, const char *name, json_t *entry);
/* An object that grows: json_real() refuses what is not finite, and so does this, without a failure. */
void exported_number(json_t *object, const char *name, double value);

/* The time as a multiple of the roof's: of the quotients of each round the median, which records hold, and
 * which is steadier than the quotient of the medians, which reports print.  0: none. */
double exported_roof(const struct bench_row *row);

/* Instructions per element, of a record of type count; NaN: not counted, or of a build that is the base of
 * another.  And those of the kernel that was timed. */
double instructions_per_element(const json_t *count);
double exported_count(const struct results *results, const struct bench_row *row);

#endif
