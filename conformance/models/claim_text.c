/*
 * Names of claims, and files written from their lines: see claim_text.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "claim_text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>

/* ---- names ---- */

enum { MOST_NAMES = 16 };
static struct {
    char name[CLAIM_WORD], text[CLAIM_LINE];
} names[MOST_NAMES];
static int n_names;

bool claim_name(const char *name, const char *text)
{
    int at = 0;
    while (at < n_names && strcmp(names[at].name, name) != 0)
        at++;
    if (at == MOST_NAMES)
        return false;
    n_names += at == n_names;
    snprintf(names[at].name, CLAIM_WORD, "%s", name);
    snprintf(names[at].text, CLAIM_LINE, "%s", text);
    return true;
}

void claim_expand(const char *line, char text[CLAIM_LINE])
{
    size_t at = 0;
    while (*line && at < CLAIM_LINE - 1) {
        const size_t n = strcspn(line + 1, " ,}]\"");
        int k = 0;
        while (k < n_names && (*line != '$' || strlen(names[k].name) != n ||
                               strncmp(names[k].name, line + 1, n) != 0))
            k++;
        if (k == n_names) {
            text[at++] = *line++;
            continue;
        }
        at += (size_t)snprintf(text + at, CLAIM_LINE - at, "%s", names[k].text);
        line += 1 + n;
    }
    text[at < CLAIM_LINE ? at : CLAIM_LINE - 1] = 0;
}

/* ---- GGUF: little endian, whatever this machine's order is ---- */

static void put(FILE *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        putc((int)(value >> (8 * i) & 255), to);
}

static void put_text(FILE *to, const char *text)
{
    put(to, strlen(text), 8);
    fputs(text, to);
}

static int kind_of(const json_t *value)
{
    return json_is_string(value)    ? 8
           : json_is_boolean(value) ? 7
           : json_is_real(value)    ? 6
           : json_is_array(value)   ? 9
                                    : 4 + (json_integer_value(value) < 0);
}

static void put_value(FILE *to, int kind, const json_t *value)
{
    const float real = (float)json_number_value(value);
    uint32_t bits;
    memcpy(&bits, &real, sizeof bits);
    if (kind == 8)
        put_text(to, json_string_value(value));
    else
        put(to,
            kind == 7   ? json_is_true(value)
            : kind == 6 ? bits
                        : (uint64_t)json_integer_value(value),
            kind == 7 ? 1 : 4);
}

static void put_pair(FILE *to, const char *key, const json_t *value)
{
    const int kind = kind_of(value);
    const json_t *one;
    size_t i;
    put_text(to, key);
    put(to, (uint64_t)kind, 4);
    if (kind == 9) {
        put(to, (uint64_t)kind_of(json_array_get(value, 0)), 4);
        put(to, json_array_size(value), 8);
        json_array_foreach(value, i, one) put_value(to, kind_of(json_array_get(value, 0)), one);
    } else
        put_value(to, kind, value);
}

static void put_tensors(FILE *to, const json_t *object)
{
    const char *key;
    json_t *value, *one;
    size_t i, at = 0;
    json_object_foreach((json_t *)object, key, value)
    {
        if (strncmp(key, "tensor ", 7) != 0)
            continue;
        put_text(to, key + 7);
        put(to, 1, 4);
        put(to, json_array_size(value), 8);
        put(to, 0, 4);
        put(to, at, 8);
        at += (4 * json_array_size(value) + 31) / 32 * 32;
    }
    while (ftell(to) % 32)
        putc(0, to);
    json_object_foreach((json_t *)object, key, value)
    {
        if (strncmp(key, "tensor ", 7) != 0)
            continue;
        json_array_foreach(value, i, one) put_value(to, 6, one);
        while (ftell(to) % 32)
            putc(0, to);
    }
}

unsigned char *claim_gguf(const char *text, size_t *n)
{
    json_t *object = json_loads(text, 0, NULL), *value;
    const char *key;
    char *bytes = NULL;
    size_t tensors = 0, others = 0;
    FILE *to = object ? open_memstream(&bytes, n) : NULL;
    if (!to)
        return NULL;
    json_object_foreach(object, key, value)
    {
        const bool tensor = strncmp(key, "tensor ", 7) == 0;
        tensors += tensor;
        others += !tensor && strcmp(key, "version") != 0;
    }
    const json_t *version = json_object_get(object, "version");
    fputs("GGUF", to);
    put(to, version ? (uint64_t)json_integer_value(version) : 3, 4);
    put(to, tensors, 8);
    put(to, others, 8);
    json_object_foreach(object, key, value) if (strncmp(key, "tensor ", 7) != 0 &&
                                                strcmp(key, "version") != 0)
        put_pair(to, key, value);
    put_tensors(to, object);
    fclose(to);
    json_decref(object);
    return (unsigned char *)bytes;
}
