/*
 * Golden vectors from the committed folder.
 *
 *     MANIFEST.json   {"schema": "posenc.vectors/1", "version",
 *                      "files": {name: {"bytes", "sha256"}}}
 *     GROUP.json      {"schema": "posenc.vectors/1", "group", "tensors", "notes",
 *                      "cases": [...]}
 *     GROUP.safetensors
 *
 * The hash of MANIFEST.json names the set; it holds the hash of every other file, and none is
 * used before its size and hash are found right.
 */
#include "safetensors.h"
#include "vectors_fields.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "posenc.vectors/1";

/* Where reading stands: for messages. */
struct reader {
    struct vectors *vectors;
    const char *dir;
    const char *file; /* within dir */
    const char *id;   /* of the case, or NULL */
    size_t room;      /* cases there is memory for */
    char *error;
};

static int fail(struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int fail(struct reader *reader, const char *format, ...)
{
    char text[VECTORS_ERROR / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(reader->error, VECTORS_ERROR, "%.120s/%.60s: %s%.60s%s", reader->dir, reader->file,
             reader->id ? reader->id : "", reader->id ? ": " : "", text);
    return -1;
}

static const char *keep_string(struct reader *reader, const char *text)
{
    char *copy = text ? vectors_keep(reader->vectors, strlen(text) + 1) : NULL;
    return copy ? strcpy(copy, text) : NULL;
}

static json_t *read_json(struct reader *reader, const void *text, size_t bytes)
{
    json_error_t where;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    const char *found = json_string_value(json_object_get(root, "schema"));
    if (root && found && strcmp(found, schema) == 0)
        return root;
    if (!root)
        fail(reader, "line %d: %s", where.line, where.text);
    else
        fail(reader, "schema is %s, expected %s", found ? found : "missing", schema);
    json_decref(root);
    return NULL;
}

/* A file of the manifest, its size and hash checked. */
static void *read_checked(struct reader *reader, const json_t *entry, size_t *bytes)
{
    char path[VECTORS_ERROR], hash[65];
    snprintf(path, sizeof path, "%s/%s", reader->dir, reader->file);
    void *data = vectors_read_file(reader->vectors, path, bytes, reader->error);
    if (!data)
        return NULL;
    const json_int_t size = json_integer_value(json_object_get(entry, "bytes"));
    const char *expected = json_string_value(json_object_get(entry, "sha256"));
    if (!expected) {
        fail(reader, "MANIFEST.json has no hash of it");
        return NULL;
    }
    sha256_hex(data, *bytes, hash);
    if ((json_int_t)*bytes == size && strcmp(hash, expected) == 0)
        return data;
    const char *what = (json_int_t)*bytes < size ? "truncated" : "something was added";
    fail(reader, "%s: it has %zu bytes and SHA-256 %s where MANIFEST.json says %lld and %s",
         (json_int_t)*bytes == size ? "altered" : what, *bytes, hash, (long long)size,
         expected);
    return NULL;
}

/* ---- A case ---- */

/* A JSON value as the 64 bits of a field; false when it is of the wrong kind. */
static bool field_bits(const struct field *field, const json_t *value, uint64_t *bits)
{
    const char *name = json_string_value(value);
    switch (field->kind) {
    case FIELD_I64:
    case FIELD_U64:
        *bits = (uint64_t)json_integer_value(value);
        return json_is_integer(value);
    case FIELD_F64:
    case FIELD_F32:
        *bits = double_to_bits(json_number_value(value));
        return json_is_number(value);
    case FIELD_BOOL:
        *bits = json_is_true(value);
        return json_is_boolean(value);
    case FIELD_ENUM:
        for (uint64_t i = 0; name && field->names[i]; i++)
            if (strcmp(name, field->names[i]) == 0) {
                *bits = i;
                return true;
            }
        break;
    }
    return false;
}

/* An array of numbers of 8 bytes: integers, or reals when `real`. */
static const void *list_of(struct reader *reader, const json_t *value, bool real,
                           int64_t expected)
{
    const size_t n = json_array_size(value);
    uint64_t *list = vectors_keep(reader->vectors, n * sizeof *list + 1);
    if (!list || (int64_t)n != expected || n == 0)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(value, i);
        if (real ? !json_is_number(item) : !json_is_integer(item))
            return NULL;
        list[i] =
            real ? double_to_bits(json_number_value(item)) : (uint64_t)json_integer_value(item);
    }
    return list;
}

static int read_problem(struct reader *reader, const json_t *params, struct problem *problem)
{
    const char *name;
    const json_t *value;
    /* Members may come in any order, so the lists, whose lengths others give, come last. */
    json_object_foreach((json_t *)(uintptr_t)params, name, value)
    {
        if (strcmp(name, "positions") == 0 || strcmp(name, "inv_freq") == 0)
            continue;
        bool known = false;
        for (int i = 0; i < N_FIELDS && !known; i++) {
            const struct field *field = &problem_fields[i];
            uint64_t bits;
            if (strcmp(name, field->name) != 0 || !field_applies(field, problem->kernel))
                continue;
            if (!field_bits(field, value, &bits))
                return fail(reader, "parameter %s has a value of the wrong kind", name);
            field_set(field, problem, bits);
            known = true;
        }
        if (!known)
            return fail(reader, "%s takes no parameter %s", posenc_kernel_name(problem->kernel),
                        name);
    }
    const json_t *positions = json_object_get(params, "positions");
    if (positions && !(problem->positions = list_of(reader, positions, false, problem->tokens)))
        return fail(reader, "positions: expected %lld integers", (long long)problem->tokens);
    const int64_t pairs = (problem->freqs.dim + 1) / 2;
    const json_t *values = json_object_get(params, "inv_freq");
    if (values && !(problem->freqs.values = list_of(reader, values, true, pairs)))
        return fail(reader, "inv_freq: expected %lld numbers", (long long)pairs);
    return 0;
}

static int read_outputs(struct reader *reader, const json_t *want, const struct array *arrays,
                        size_t n, struct vector_case *c)
{
    for (size_t o = 0; o < json_array_size(want); o++) {
        const json_t *entry = json_array_get(want, o);
        const char *tensor = json_string_value(json_object_get(entry, "tensor"));
        const struct array *found = NULL;
        for (size_t i = 0; tensor && i < n && !found; i++)
            found = strcmp(arrays[i].name, tensor) == 0 ? &arrays[i] : NULL;
        if (o >= 2 || !found || found->rank != 2 || strcmp(found->dtype, "F64") != 0)
            return fail(reader, "tensor %s: expected F64 of rank 2",
                        tensor ? tensor : "missing");
        c->output_names[o] =
            keep_string(reader, json_string_value(json_object_get(entry, "output")));
        c->rows[o] = found->shape[0];
        c->width[o] = found->shape[1];
        uint64_t *words = vectors_keep(reader->vectors, found->bytes + 1);
        if (!words || !c->output_names[o])
            return fail(reader, "tensor %s: no memory, or its output is not named", tensor);
        const unsigned char *from = found->data;
        for (size_t i = 0; i < found->bytes / 8; i++, from += 8)
            for (int b = 7; b >= 0; b--)
                words[i] = words[i] << 8 | from[b];
        c->want[o] = (const double *)words;
        c->n_outputs = (int)o + 1;
    }
    return c->n_outputs ? 0 : fail(reader, "has no output");
}

static int read_case(struct reader *reader, const json_t *entry, const struct array *arrays,
                     size_t n_arrays)
{
    struct vectors *vectors = reader->vectors;
    if (vectors->n == reader->room) { /* doubles: earlier arrays stay kept until all is freed */
        const size_t room = reader->room ? 2 * reader->room : 64;
        struct vector_case *cases = vectors_keep(vectors, room * sizeof *cases);
        if (!cases)
            return fail(reader, "no memory for %zu cases", room);
        if (vectors->n)
            memcpy(cases, vectors->cases, vectors->n * sizeof *cases);
        vectors->cases = cases;
        reader->room = room;
    }
    struct vector_case *c = &vectors->cases[vectors->n];
    reader->id = c->id = keep_string(reader, json_string_value(json_object_get(entry, "id")));
    c->flags = keep_string(reader, json_string_value(json_object_get(entry, "flags")));
    c->note = keep_string(reader, json_string_value(json_object_get(entry, "note")));
    c->source = keep_string(reader, json_string_value(json_object_get(entry, "source")));
    if (!c->id || !c->flags || !c->note || !c->source)
        return fail(reader, "id, flags, note or source is missing");
    const char *name = json_string_value(json_object_get(entry, "kernel"));
    const enum posenc_kernel kernel = posenc_kernel_find(name ? name : "");
    if (kernel == POSENC_KERNEL_COUNT)
        return fail(reader, "there is no kernel %s", name ? name : "named");
    c->problem = problem_blank(kernel);
    if (read_problem(reader, json_object_get(entry, "params"), &c->problem) != 0 ||
        read_outputs(reader, json_object_get(entry, "want"), arrays, n_arrays, c) != 0)
        return -1;
    vectors->n++;
    reader->id = NULL;
    return 0;
}

/* ---- Groups ---- */

static int read_group(struct reader *reader, const json_t *files, const json_t *group)
{
    const char *manifest = reader->file;
    const char *name = json_string_value(json_object_get(group, "tensors"));
    if (!name)
        return fail(reader, "names no file of tensors");
    reader->file = name;
    size_t bytes, n;
    struct array *arrays;
    char text[VECTORS_ERROR];
    const void *file = read_checked(reader, json_object_get(files, name), &bytes);
    if (!file)
        return -1;
    if (safetensors_read(file, bytes, &arrays, &n, text) != 0)
        return fail(reader, "%s", text);
    reader->file = manifest;
    int status = 0;
    const json_t *cases = json_object_get(group, "cases");
    for (size_t i = 0; i < json_array_size(cases) && status == 0; i++)
        status = read_case(reader, json_array_get(cases, i), arrays, n);
    free(arrays);
    return status;
}

static bool is_group(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".json") == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_groups(struct reader *reader, const json_t *manifest)
{
    json_t *files = json_object_get(manifest, "files");
    const char **names =
        vectors_keep(reader->vectors, (json_object_size(files) + 1) * sizeof *names);
    size_t n = 0;
    const char *name;
    const json_t *entry;
    if (!names || json_object_size(files) == 0)
        return fail(reader, "lists no files");
    json_object_foreach(files, name, entry)
    {
        if (is_group(name))
            names[n++] = name;
    }
    qsort(names, n, sizeof *names, by_name);
    int status = 0;
    for (size_t i = 0; i < n && status == 0; i++) {
        size_t bytes;
        reader->file = names[i];
        const void *text = read_checked(reader, json_object_get(files, names[i]), &bytes);
        json_t *group = text ? read_json(reader, text, bytes) : NULL;
        status = group ? read_group(reader, files, group) : -1;
        json_decref(group);
    }
    return status;
}

int vectors_load_dir(const char *dir, struct vectors *vectors, char *error)
{
    *vectors = (struct vectors){ .n = 0 };
    struct reader reader = {
        .vectors = vectors, .dir = dir, .file = "MANIFEST.json", .error = error
    };
    char path[VECTORS_ERROR];
    size_t bytes;
    snprintf(path, sizeof path, "%s/MANIFEST.json", dir);
    const void *text = vectors_read_file(vectors, path, &bytes, error);
    json_t *manifest = text ? read_json(&reader, text, bytes) : NULL;
    if (manifest)
        sha256_hex(text, bytes, vectors->sha256);
    const int status = manifest ? read_groups(&reader, manifest) : -1;
    json_decref(manifest);
    if (status != 0)
        vectors_free(vectors);
    return status;
}
