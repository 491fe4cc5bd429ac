/*
 * Writes a table as csv, npy or safetensors (see table.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/readers/safetensors.h"
#include "conformance/problem/storage.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

const struct format table_formats[] = {
    { "csv", "csv", BY_ALL, false, "a line a row, under a line of names", "[cpr]*,*", NULL,
      NULL },
    { "npy", "npy", BY_ALL, false, "one array, no bf16", "?NUMPY*", NULL, NULL },
    { "safetensors", "safetensors", BY_ALL, false, "all arrays by name",
      "????????{\"*\":{\"dtype\":*", NULL, NULL },
    { .name = NULL },
};

static void write_names(const struct number_table *table, FILE *out)
{
    fputs(table->places, out);
    for (int axis = 0; axis < table->n_axes && table->n_axes > 1; axis++)
        fprintf(out, axis == 0 ? "[%d]" : ",position[%d]", axis);
    for (int a = 0; a < table->n_arrays; a++)
        for (int64_t i = 0; i < table->width; i++)
            fprintf(out, ",%s[%lld]", table->name[a], (long long)i);
    fputc('\n', out);
}

static void write_position(const struct number_table *table, int64_t t, FILE *out)
{
    for (int axis = 0; axis < table->n_axes; axis++) {
        int64_t at = axis * table->rows + t;
        fputs(axis > 0 ? "," : "", out);
        if (table->times)
            fprintf(out, "%.9g", (double)table->times[at]);
        else
            fprintf(out, "%lld", (long long)table->positions[at]);
    }
}

static void write_csv(const struct number_table *table, FILE *out)
{
    write_names(table, out);
    for (int64_t t = 0; t < table->rows && !ferror(out); t++) {
        write_position(table, t, out);
        for (int a = 0; a < table->n_arrays; a++) {
            for (int64_t i = 0; i < table->width; i++)
                fprintf(
                    out, ",%.9g",
                    (double)storage_get(table->dtype, table->array[a], t * table->width + i));
        }
        fputc('\n', out);
    }
}

bool table_write(const struct number_table *table, const char *format, FILE *out)
{
    static const char *const types[] = { "F32", "F16", "BF16" }; /* enum posenc_dtype */
    if (strcmp(format, "csv") == 0) {
        write_csv(table, out);
        return true;
    }
    struct array arrays[2];
    for (int a = 0; a < table->n_arrays; a++)
        arrays[a] = (struct array){ table->name[a], types[table->dtype], table->rows,
                                    table->width, table->array[a] };
    if (strcmp(format, "safetensors") == 0)
        return safetensors_write(arrays, (size_t)table->n_arrays, out);
    npy_write(&arrays[0], out);
    return true;
}
