/*
 * Reads and writes safetensors: the length of a JSON header as u64, the header, the bytes of the tensors.
 *
 *     {"name": {"dtype": "F64", "shape": [2, 3], "data_offsets": [0, 48]}, ...}
 *
 * Spaces pad the header to a multiple of 8 bytes, so that the data are aligned.
 */
#define _POSIX_C_SOURCE 200809L
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

static size_t item_bytes(const struct stored_array *array)
{
    return strtoul(array->dtype + strcspn(array->dtype, "123456789"), NULL, 10) / 8;
}

static size_t data_bytes(const struct stored_array *array)
{
    return (size_t)(array->rows * array->width) * item_bytes(array);
}

bool safetensors_write(const struct stored_array *arrays, size_t n, FILE *out)
{
    char *header = NULL;
    size_t length = 0, offset = 0;
    FILE *text = open_memstream(&header, &length);
    if (!text)
        return false;
    fputc('{', text);
    for (const struct stored_array *a = arrays; a < arrays + n; offset += data_bytes(a), a++)
        fprintf(text,
                "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld,%lld],\"data_offsets\":[%zu,%zu]}",
                a > arrays ? "," : "", a->name, a->dtype, (long long)a->rows,
                (long long)a->width, offset, offset + data_bytes(a));
    fprintf(text, "}%*s", (int)(7 - ftell(text) % 8), "");
    const bool good = fclose(text) == 0;
    for (int i = 0; i < 8; i++)
        fputc((int)(length >> (8 * i) & 255), out);
    if (good)
        fwrite(header, 1, length, out);
    for (size_t i = 0; i < n; i++)
        fwrite(arrays[i].data, 1, data_bytes(&arrays[i]), out);
    free(header);
    return good;
}

static uint64_t little_endian(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* Reads a tensor's entry in the header, and moves *at behind it. Returns false if the entry is malformed or refers to
 * bytes outside the data. */
static bool read_entry(struct arena *arena, const char **at, const double *values, size_t bytes,
                       struct stored_array *array)
{
    enum { ENTRY = 320, MOST = 999999999 }; /* an entry of safetensors_write() is shorter */
    char entry[ENTRY], name[128];
    size_t rows, width, from, to;
    int used = 0;
    snprintf(entry, sizeof entry, "%.*s", ENTRY - 1, *at);
    if (sscanf(entry,
               "\"%127[^\"]\":{\"dtype\":\"F64\",\"shape\":[%9zu,%9zu],"
               "\"data_offsets\":[%9zu,%9zu]}%n",
               name, &rows, &width, &from, &to, &used) != 5 ||
        used == 0 || rows > MOST || width > MOST) /* %zu accepts a minus sign */
        return false;
    *at += used;
    *array = (struct stored_array){ .name = arena_text(arena, name, strlen(name)),
                                    .dtype = "F64",
                                    .rows = (int64_t)rows,
                                    .width = (int64_t)width };
    if (!array->name || from > to || to > bytes || from % 8 != 0 ||
        to - from != data_bytes(array))
        return false;
    array->data = values + from / 8;
    return true;
}

bool safetensors_read(struct arena *arena, const void *file, size_t bytes,
                      struct stored_array **arrays, size_t *n, char *error)
{
    const unsigned char *data = file;
    const uint64_t length = bytes < 8 ? 0 : little_endian(data);
    if (bytes < 8 || length > bytes - 8)
        return notation_fail(error, "%zu bytes do not hold the header they announce", bytes);
    const char *at = arena_text(arena, (const char *)data + 8, length);
    data += 8 + length;
    bytes -= 8 + length;
    double *values = arena_get(arena, bytes);
    for (size_t i = 0; values && i < bytes / 8; i++)
        values[i] = bits_to_double(little_endian(data + 8 * i));
    if (!at || !values)
        return notation_fail(error, "no memory for %zu bytes", bytes);
    if (*at != '{')
        return notation_fail(error, "header: %.20s: expected {", at);
    size_t room = 0;
    *arrays = NULL;
    for (*n = 0; *at != '}'; ++*n) {
        *arrays = arena_grow(arena, *arrays, *n, &room, sizeof **arrays);
        at++;
        if (!*arrays || !read_entry(arena, &at, values, bytes, &(*arrays)[*n]) ||
            (*at != ',' && *at != '}'))
            return notation_fail(error, "tensor %.100s: wrong type, shape or place", at);
    }
    return true;
}

/* NumPy's format is "\x93NUMPY" 1 0, u16 length, a Python dictionary and a newline, then the data. Spaces pad the
 * dictionary, so that the data begin at a multiple of 64 bytes. */
void npy_write(const struct stored_array *array, FILE *out)
{
    enum { BEFORE = 10, HEADER = 128 - BEFORE };
    char dictionary[HEADER];
    snprintf(dictionary, sizeof dictionary,
             "{'descr': '<f%zu', 'fortran_order': False, 'shape': (%lld, %lld), }",
             item_bytes(array), (long long)array->rows, (long long)array->width);
    fprintf(out, "\x93NUMPY\x01%c%c%c%-*s\n", 0, HEADER, 0, HEADER - 1, dictionary);
    fwrite(array->data, 1, data_bytes(array), out);
}
