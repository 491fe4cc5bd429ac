/*
 * A GGUF file.  An input that begins with { has a line for each pair of key and value, and one for each tensor, whose
 * counts and lengths are written for it, which mutations would not find:
 *
 *     {key uVALUE  a u32    {key fVALUE  an f32    {key sTEXT    {key b1    {key n4,4,0  a list of i32    {tTENSOR N
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/models/model.h"
#include "fuzz.h"
#include "base/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 256 };

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

static void put_f32(FILE *to, const char *text)
{
    const float value = strtof(text, NULL);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put(to, bits, 4);
}

static void put_list(FILE *to, const char *text)
{
    uint64_t n = *text != '\0';
    for (const char *at = text; *at; at++)
        n += *at == ',';
    put(to, 9, 4);
    put(to, 5, 4);
    put(to, n, 8);
    for (uint64_t i = 0; i < n; i++) {
        put(to, (uint64_t)strtol(text, (char **)&text, 10), 4);
        text += *text == ',';
    }
}

/* "key uVALUE" */
static void put_pair(FILE *to, char *line)
{
    char *value = strchr(line, ' ');
    const char kind = value ? value[1] : '\0';
    if (value)
        *value = '\0';
    put_text(to, line);
    value = kind ? value + 2 : "";
    if (kind == 'f') {
        put(to, 6, 4);
        put_f32(to, value);
    } else if (kind == 's') {
        put(to, 8, 4);
        put_text(to, value);
    } else if (kind == 'b') {
        put(to, 7, 4);
        put(to, *value == '1', 1);
    } else if (kind == 'n') {
        put_list(to, value);
    } else {
        put(to, 4, 4);
        put(to, strtoull(value, NULL, 10), 4);
    }
}

/* "TENSOR N": of f32, at the beginning of the data. */
static void put_tensor(FILE *to, char *line)
{
    char *n = strchr(line, ' ');
    if (n)
        *n = '\0';
    put_text(to, line);
    put(to, 1, 4);
    put(to, n ? strtoull(n + 1, NULL, 10) : 1, 8);
    put(to, 0, 4);
    put(to, 0, 8);
}

static char *write_file(char *text, size_t *n)
{
    char *lines[MOST_LINES], *bytes = NULL;
    size_t n_lines = 0, tensors = 0;
    for (char *rest, *line = strtok_r(text, "{\n", &rest); line && n_lines < MOST_LINES;
         line = strtok_r(NULL, "{\n", &rest)) {
        tensors += *line == 't';
        lines[n_lines++] = line;
    }
    FILE *to = open_memstream(&bytes, n);
    if (!to)
        abort();
    fputs("GGUF", to);
    put(to, 3, 4);
    put(to, tensors, 8);
    put(to, n_lines - tensors, 8);
    for (size_t i = 0; i < n_lines; i++)
        if (*lines[i] != 't')
            put_pair(to, lines[i]);
    for (size_t i = 0; i < n_lines; i++)
        if (*lines[i] == 't')
            put_tensor(to, lines[i] + 1);
    for (int i = 0; i < 64; i++)
        put_f32(to, "1");
    fclose(to);
    return bytes;
}

static void read_file(char *bytes, size_t n)
{
    char error[MODEL_ERROR];
    struct model model;
    FILE *in = n > 0 ? fmemopen(bytes, n, "rb") : NULL;
    if (!in)
        return;
    if (model_from_file(in, "x/model.gguf", &model, error) == 0) {
        if (!text_is_plain(model.notes) || !text_is_plain(model.title))
            abort();
        model_free(&model);
    } else if (n >= 4 && memcmp(bytes, "GGUF", 4) == 0 && !text_is_plain(error)) {
        abort(); /* what is no such file is read as JSON, whose reader shows what it met */
    }
    fclose(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *bytes = NULL;
    size_t n;
    if (*text == '{')
        bytes = write_file(text, &n);
    read_file(bytes ? bytes : text, bytes ? n : size);
    free(bytes);
    free(text);
    return 0;
}
