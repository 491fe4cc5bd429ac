/*
 * Table -> csv, npy, safetensors, see table.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "../conformance/npy.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

const char *const table_formats[] = { "csv", "npy", "safetensors", NULL };

static bool write_csv(const struct table *table, FILE *out)
{
    fputs("position", out);
    for (int a = 0; a < table->n_arrays; a++) {
        for (int64_t i = 0; i < table->width; i++) {
            fprintf(out, ",%s[%lld]", table->name[a], (long long)i);
        }
    }
    fputc('\n', out);
    for (int64_t t = 0; t < table->rows && !ferror(out); t++) {
        fprintf(out, "%lld", (long long)table->positions[t]);
        for (int a = 0; a < table->n_arrays; a++) {
            for (int64_t i = 0; i < table->width; i++) {
                fprintf(out, ",%.9g", (double)table->array[a][t * table->width + i]);
            }
        }
        fputc('\n', out);
    }
    return true;
}

bool table_write(const struct table *table, const char *format, FILE *out)
{
    if (strcmp(format, "csv") == 0) {
        return write_csv(table, out);
    }
    struct array arrays[2];
    const int64_t shape[2] = { table->rows, table->width };
    for (int a = 0; a < table->n_arrays; a++) {
        arrays[a] = array_of(table->name[a], "F32", 2, shape, table->array[a]);
    }
    size_t bytes = 0;
    bool npy = strcmp(format, "npy") == 0;
    size_t rest = npy ? arrays[0].bytes : 0; /* the numbers follow their header uncopied */
    arrays[0].bytes -= rest;
    void *file = npy ? npy_build(&arrays[0], &bytes)
                     : safetensors_build(arrays, (size_t)table->n_arrays, &bytes);
    if (file == NULL) {
        return false;
    }
    fwrite(file, 1, bytes, out);
    fwrite(table->array[0], 1, rest, out);
    free(file);
    return true;
}
