/*
 * packvectors ROOT OUT: the golden vectors of a folder with cases/ and vectors/, every hash checked, as one flat pack
 * (readers/pack.c has its layout).  Exit: 0, or 2 and a message; OUT is then not written.
 */
#include "conformance/readers/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
    unsigned char *data;
    size_t bytes, room;
};

static void no_memory(void)
{
    fputs("packvectors: out of memory\n", stderr);
    exit(2);
}

static void put(struct buffer *buffer, const void *data, size_t bytes)
{
    if (buffer->bytes + bytes > buffer->room) {
        buffer->room = 2 * (buffer->bytes + bytes);
        buffer->data = realloc(buffer->data, buffer->room);
        if (!buffer->data)
            no_memory();
    }
    memcpy(buffer->data + buffer->bytes, data, bytes);
    buffer->bytes += bytes;
}

static void put_u64(struct buffer *buffer, uint64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i) & 255);
    put(buffer, bytes, sizeof bytes);
}

static void put_string(struct buffer *buffer, const char *text)
{
    static const char zeros[8];
    const size_t length = strlen(text);
    put_u64(buffer, length);
    put(buffer, text, length);
    put(buffer, zeros, 8 - length % 8);
}

static void put_case(struct buffer *buffer, const struct vector_case *c)
{
    const size_t n = notation_print(&c->problem, c->name, NULL, 0);
    const size_t room = n + strlen(c->flags) + strlen(c->note) + strlen(c->source) + 16;
    char *line = malloc(room);
    if (!line)
        no_memory();
    notation_print(&c->problem, c->name, line, room);
    snprintf(line + n, room - n, " | %s | %s | %s", c->flags, c->note, c->source);
    put_string(buffer, c->group);
    put_string(buffer, line);
    free(line);
    put_u64(buffer, (uint64_t)c->n_outputs);
    for (int o = 0; o < c->n_outputs; o++) {
        put_string(buffer, c->output_names[o]);
        put_u64(buffer, (uint64_t)c->rows[o]);
        put_u64(buffer, (uint64_t)c->width[o]);
        for (int64_t k = 0; k < c->rows[o] * c->width[o]; k++)
            put_u64(buffer, double_to_bits(c->want[o][k]));
    }
}

static int write_pack(const char *path, const struct buffer *payload)
{
    char hash[65];
    struct buffer header = { .data = NULL };
    static const unsigned char zeros[PACK_HEADER];
    sha256_hex(payload->data, payload->bytes, hash);
    put(&header, pack_magic, PACK_MAGIC);
    put_u64(&header, payload->bytes);
    put(&header, hash, 64);
    put(&header, zeros, PACK_HEADER - header.bytes);
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(header.data, 1, header.bytes, file) == header.bytes &&
                fwrite(payload->data, 1, payload->bytes, file) == payload->bytes;
    if (file && fclose(file) != 0)
        good = false;
    free(header.data);
    if (good)
        return 0;
    if (file)
        remove(path);
    fprintf(stderr, "packvectors: %s: cannot be written\n", path);
    return 2;
}

int main(int argc, char **argv)
{
    struct vectors vectors;
    char error[VECTORS_ERROR];
    if (argc != 3) {
        fputs("usage: packvectors ROOT OUT\n", stderr);
        return 2;
    }
    if (!vectors_load_folder(argv[1], &vectors, error)) {
        fprintf(stderr, "packvectors: %s\n", error);
        return 2;
    }
    struct buffer payload = { .data = NULL };
    put_string(&payload, vectors.sha256);
    put_string(&payload, vectors.flags_text);
    put_u64(&payload, vectors.n);
    for (size_t i = 0; i < vectors.n; i++)
        put_case(&payload, &vectors.cases[i]);
    const int status = write_pack(argv[2], &payload);
    free(payload.data);
    vectors_free(&vectors);
    return status;
}
