/*
 * Records of schema posenc.results/2, as JSON Lines: {"t":"bench","kernel":"rope_half","median_ns":21000,...}. The member
 * "t" is the kind of a record: header, env, kernel, backend, model, check, bench, count, pair, change, agreement, part,
 * machine or footer.
 *
 * Each line is flushed, so that a crash leaves a readable file without a footer; the footer of an interrupted run is
 * not "complete". NaN and infinities are the strings "nan", "inf" and "-inf". Readers ignore unknown members and kinds.
 */
#ifndef POSENC_RECORDS_H
#define POSENC_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define RECORDS_SCHEMA "posenc.results/2"

/* Flags of json_dumpf() for a record. Ten digits are enough for times; exact floats are hexadecimal strings. */
#define RECORDS_DUMP (JSON_COMPACT | JSON_REAL_PRECISION(10))

/* Records in memory (`list`), also written to `stream` unless that is NULL. */
struct records {
    json_t *list; /* array */
    FILE *stream;
    int failed; /* errno of a record that was lost */
};

/* Appends a record to the list and the stream, and takes its reference. NULL (no memory for a record) is an error. */
void records_append(struct records *records, json_t *record);
/* Writes a record to the stream alone. */
void records_write(struct records *records, const json_t *record);

/* ---- Making values ---- */

/* Returns a JSON string with hidden characters escaped (text.h); NULL without memory. */
json_t *record_string(const char *text);
/* Returns an array of the words of a text, which spaces separate; empty for NULL. */
json_t *record_words(const char *text);
/* Returns a JSON number, or a string if the value is not finite. */
json_t *record_number(double value);
/* Returns a float as a hexadecimal string, which is exact ("0x1.8p+1"). */
json_t *record_hex(double value);
/* Moves members to a record and returns it, or NULL without memory. */
json_t *record_merge(json_t *record, json_t *members);

/* ---- Reading values ---- */

/* Returns the number that record_number() or record_hex() made, or `fallback` for another value. */
double record_double(const json_t *value, double fallback);
/* Return the member at a path ("cpu.key"), or "" or `fallback` if it is absent. */
const char *record_text(const json_t *record, const char *path);
double record_value(const json_t *record, const char *path, double fallback);
/* Returns true if the member at a path is this text. */
bool record_is(const json_t *record, const char *path, const char *text);
/* Returns the member at a path as an integer; `fallback` if it is absent or beyond +-1e9. */
int record_int(const json_t *record, const char *path, int fallback);

#endif
