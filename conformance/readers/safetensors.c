/*
 * safetensors: u64 length of a JSON header, the header, the tensors' bytes one after another.
 *
 *     {"name": {"dtype": "F64", "shape": [2, 3], "data_offsets": [0, 48]}, ...}
 *
 * The header is filled up with spaces to a multiple of 8, so that the data are aligned.
 */
#include "safetensors.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, ENTRY_BYTES = 400, ERROR_BYTES = 512, MAX_RANK = 4 };

size_t array_item_bytes(const char *dtype)
{
    if (strcmp(dtype, "F32") == 0 || strcmp(dtype, "I32") == 0)
        return 4;
    if (strcmp(dtype, "F16") == 0 || strcmp(dtype, "BF16") == 0)
        return 2;
    return strcmp(dtype, "F64") == 0 || strcmp(dtype, "I64") == 0 ? 8 : 0;
}

struct array array_of(const char *name, const char *dtype, int rank, const int64_t *shape,
                      const void *data)
{
    struct array array = { .rank = rank, .data = data, .bytes = array_item_bytes(dtype) };
    snprintf(array.name, sizeof array.name, "%s", name);
    snprintf(array.dtype, sizeof array.dtype, "%s", dtype);
    for (int i = 0; i < rank; i++) {
        array.shape[i] = shape[i];
        array.bytes *= (size_t)shape[i];
    }
    return array;
}

static size_t put_entry(char *text, size_t room, const struct array *array, size_t offset)
{
    size_t n = (size_t)snprintf(text, room, "\"%s\":{\"dtype\":\"%s\",\"shape\":[", array->name,
                                array->dtype);
    for (int i = 0; i < array->rank; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%lld", i ? "," : "",
                              (long long)array->shape[i]);
    n += (size_t)snprintf(text + n, room - n, "],\"data_offsets\":[%zu,%zu]}", offset,
                          offset + array->bytes);
    return n;
}

void *safetensors_build(const struct array *arrays, size_t n, size_t *bytes)
{
    const size_t room = 16 + n * ENTRY_BYTES;
    size_t data = 0, length = 0;
    for (size_t i = 0; i < n; i++)
        data += arrays[i].bytes;
    char *file = malloc(LENGTH_BYTES + room + data);
    if (!file)
        return NULL;
    char *header = file + LENGTH_BYTES;
    header[length++] = '{';
    for (size_t i = 0, offset = 0; i < n; offset += arrays[i].bytes, i++) {
        if (i)
            header[length++] = ',';
        length += put_entry(header + length, room - length, &arrays[i], offset);
    }
    header[length++] = '}';
    while (length % 8)
        header[length++] = ' ';
    for (int i = 0; i < LENGTH_BYTES; i++)
        file[i] = (char)((uint64_t)length >> (8 * i) & 255);
    char *to = header + length;
    for (size_t i = 0; i < n; to += arrays[i].bytes, i++)
        if (arrays[i].bytes)
            memcpy(to, arrays[i].data, arrays[i].bytes);
    *bytes = LENGTH_BYTES + length + data;
    return file;
}

/* One member of the header; false when it is malformed or points outside the data. */
static bool get_entry(const char *name, const json_t *value, const char *data,
                      size_t data_bytes, struct array *array)
{
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    const json_t *shape = json_object_get(value, "shape");
    const json_t *offsets = json_object_get(value, "data_offsets");
    if (!dtype || array_item_bytes(dtype) == 0 || json_array_size(shape) > MAX_RANK ||
        !json_is_array(shape) || json_array_size(offsets) != 2 ||
        strlen(name) >= sizeof array->name)
        return false;
    int64_t sizes[MAX_RANK] = { 0 };
    const int rank = (int)json_array_size(shape);
    for (int i = 0; i < rank; i++) {
        sizes[i] = json_integer_value(json_array_get(shape, (size_t)i));
        if (sizes[i] < 0 || (size_t)sizes[i] > data_bytes)
            return false;
    }
    const json_int_t from = json_integer_value(json_array_get(offsets, 0));
    const json_int_t to = json_integer_value(json_array_get(offsets, 1));
    if (from < 0 || to < from || (size_t)to > data_bytes)
        return false;
    *array = array_of(name, dtype, rank, sizes, data + from);
    return array->bytes == (size_t)(to - from);
}

int safetensors_read(const void *file, size_t bytes, struct array **arrays, size_t *n,
                     char *error)
{
    const unsigned char *start = file;
    uint64_t length = 0;
    for (int i = LENGTH_BYTES - 1; bytes >= LENGTH_BYTES && i >= 0; i--)
        length = length << 8 | start[i];
    if (bytes < LENGTH_BYTES || length > bytes - LENGTH_BYTES) {
        snprintf(error, ERROR_BYTES, "%zu bytes do not hold the header they announce", bytes);
        return -1;
    }
    json_error_t where;
    json_t *root = json_loadb((const char *)start + LENGTH_BYTES, (size_t)length, 0, &where);
    if (!json_is_object(root)) {
        snprintf(error, ERROR_BYTES, "header: %s", root ? "no object" : where.text);
        json_decref(root);
        return -1;
    }
    const char *data = (const char *)start + LENGTH_BYTES + length;
    const size_t data_bytes = bytes - LENGTH_BYTES - (size_t)length;
    *arrays = calloc(json_object_size(root) + 1, sizeof **arrays);
    *n = 0;
    const char *name;
    json_t *value;
    bool good = *arrays != NULL;
    json_object_foreach(root, name, value)
    {
        if (!good || strcmp(name, "__metadata__") == 0)
            continue;
        good = get_entry(name, value, data, data_bytes, *arrays + *n);
        if (good)
            ++*n;
        else
            snprintf(error, ERROR_BYTES, "tensor %.100s: wrong type, shape or place", name);
    }
    json_decref(root);
    if (!good)
        free(*arrays);
    return good ? 0 : -1;
}
