/*
 * Builds a file in NumPy's format 1.0: "\x93NUMPY" 1 0, u16 length, a Python dictionary filled
 * up with spaces so that the data begin at a multiple of 64, a newline, the data.
 */
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 10, BOUNDARY = 64 };

void *npy_build(const struct array *array, size_t *bytes)
{
    char shape[96] = "";
    for (int i = 0, n = 0; i < array->rank; i++)
        n += snprintf(shape + n, sizeof shape - (size_t)n, "%s%lld", i ? ", " : "",
                      (long long)array->shape[i]);
    char header[4 * BOUNDARY];
    size_t length = (size_t)snprintf(
        header, sizeof header, "{'descr': '<%c%zu', 'fortran_order': False, 'shape': (%s%s), }",
        array->dtype[0] == 'I' ? 'i' : 'f', array_item_bytes(array->dtype), shape,
        array->rank == 1 ? "," : "");
    while ((PREFIX + length + 1) % BOUNDARY)
        header[length++] = ' ';
    header[length++] = '\n';
    char *file = malloc(PREFIX + length + array->bytes);
    if (!file)
        return NULL;
    memcpy(file, "\x93NUMPY\x01\x00", 8);
    file[8] = (char)(length & 255);
    file[9] = (char)(length >> 8);
    memcpy(file + PREFIX, header, length);
    if (array->bytes)
        memcpy(file + PREFIX + length, array->data, array->bytes);
    *bytes = PREFIX + length + array->bytes;
    return file;
}
