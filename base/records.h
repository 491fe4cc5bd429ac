/*
 * Records, schema posenc.results/2: one JSON object a line, its member "t" saying which kind
 * (header, env, kernel, backend, model, check, bench, overhead, count, pair, change, agreement,
 * part, machine, footer).  Lines are flushed as they come, so a run that dies leaves a
 * readable file, recognised by its missing footer; one that was interrupted has a footer that says it
 * is not complete.  No NaN or infinity: those are the strings "nan", "inf", "-inf".  Members and kinds a
 * reader does not know are ignored.
 */
#ifndef POSENC_RECORDS_H
#define POSENC_RECORDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define RECORDS_SCHEMA "posenc.results/2"

/* How a record is written: ten digits are more than any clock here; exact floats are hexadecimal
 * strings. */
#define RECORDS_DUMP (JSON_COMPACT | JSON_REAL_PRECISION(10))

enum { RECORDS_ERROR = 512 }; /* bytes of an error message */

/* Where records go: always into `list`, and line by line to `stream` where there is one. */
struct records {
    json_t *list; /* array */
    FILE *stream;
    int failed; /* errno of the first write that failed */
};

/* In memory alone, until a stream is set.  0, or -1 with a message. */
int records_open(struct records *records, char error[RECORDS_ERROR]);
/* Takes the reference; NULL (a record that could not be made) is an error.  0 or -1. */
int records_append(struct records *records, json_t *record);
/* Its two halves: into the list; to the stream, where there is one. */
int records_keep(struct records *records, json_t *record);
int records_write(struct records *records, const json_t *record);
/* 0, or -1 with a message when something could not be written. */
int records_close(struct records *records, char error[RECORDS_ERROR]);

/* A text as a record holds it; NULL: no memory. */
json_t *record_string(const char *text);

/* A number as a record holds it: json_real, or a string where it is not finite. */
json_t *record_number(double value);
/* A float exactly, as a hexadecimal string ("0x1.8p+1"). */
json_t *record_hex(double value);
/* The way back, of both; `otherwise` where there is nothing. */
double record_double(const json_t *value, double otherwise);
/* Members by path ("cpu.key"), "" or `otherwise` where absent. */
const char *record_text(const json_t *record, const char *path);
double record_value(const json_t *record, const char *path, double otherwise);
/* A whole number from -1e9 to 1e9: `otherwise` also where a file says another. */
int record_int(const json_t *record, const char *path, int otherwise);

#endif
