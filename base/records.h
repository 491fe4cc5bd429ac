/*
 * Records, schema posenc.results/2: one JSON object for each line. Its member "t" is the kind: header, env, kernel,
 * backend, model, check, bench, overhead, count, pair, change, agreement, part, machine or footer.
 *
 * Each line is flushed, so that a run that dies leaves a readable file without a footer. The footer of an interrupted
 * run says that it is not complete. NaN and infinities are the strings "nan", "inf" and "-inf". Readers ignore members
 * and kinds that they do not know.
 */
#ifndef POSENC_RECORDS_H
#define POSENC_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define RECORDS_SCHEMA "posenc.results/2"

/* Flags of jansson for a record. Ten digits are finer than any clock; exact floats are hexadecimal strings. */
#define RECORDS_DUMP (JSON_COMPACT | JSON_REAL_PRECISION(10))

enum { RECORDS_ERROR = 512 }; /* bytes of an error message */

/* Destination of records: always `list`, and line by line `stream` unless NULL. */
struct records {
    json_t *list; /* array */
    FILE *stream;
    int failed; /* errno of the first write that failed */
};

/* Starts with records in memory alone. Returns 0, or -1 and a message. */
int records_open(struct records *records, char error[RECORDS_ERROR]);
/* Appends a record and takes its reference; NULL, a record that could not be made, is an error. Returns 0 or -1. */
int records_append(struct records *records, json_t *record);
/* Do the two halves of it: append to the list; write to the stream, if there is one. */
int records_keep(struct records *records, json_t *record);
int records_write(struct records *records, const json_t *record);
/* Frees the list. Returns 0, or -1 and a message if a record could not be written. */
int records_close(struct records *records, char error[RECORDS_ERROR]);

/* Returns a text as a record holds it; NULL: out of memory. */
json_t *record_string(const char *text);

/* Returns an array of the words of a text, which spaces separate; empty for NULL. */
json_t *record_words(const char *text);
/* Returns a number as a record holds it: json_real, or a string if it is not finite. */
json_t *record_number(double value);
/* Returns a float exactly, as a hexadecimal string ("0x1.8p+1"). */
json_t *record_hex(double value);
/* Returns the number of either form, or `otherwise`. */
double record_double(const json_t *value, double otherwise);
/* Return a member by its path ("cpu.key"), or "" or `otherwise` if absent. */
const char *record_text(const json_t *record, const char *path);
double record_value(const json_t *record, const char *path, double otherwise);
/* Returns true if the member at a path is this text. */
bool record_is(const json_t *record, const char *path, const char *text);
/* Returns a whole number from -1e9 to 1e9; `otherwise` for others, too. */
int record_int(const json_t *record, const char *path, int otherwise);

#endif
