/*
 * Writes the folder of vectors: GROUP.json, GROUP.safetensors, MANIFEST.json with their hashes.
 * The bytes depend on the cases alone.
 */
#include "numbers.h"
#include "conformance/readers/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };
static const size_t text_style = JSON_INDENT(1) | JSON_SORT_KEYS;

/* Writes a file and notes it in the manifest; 0, or 1 and a message. */
static int write_file(const char *dir, const char *name, const void *data, size_t bytes,
                      json_t *files)
{
    char path[PATH_BYTES], hash[65];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(data, 1, bytes, file) == bytes;
    if (file && fclose(file) != 0)
        good = false;
    if (!good) {
        fprintf(stderr, "golden: %s: cannot be written: %s\n", path, strerror(errno));
        return 1;
    }
    sha256_hex(data, bytes, hash);
    if (files)
        json_object_set_new(
            files, name, json_pack("{s:I, s:s}", "bytes", (json_int_t)bytes, "sha256", hash));
    return 0;
}

static int write_json(const char *dir, const char *name, const json_t *root, json_t *files)
{
    char *text = json_dumps(root, text_style);
    const size_t length = text ? strlen(text) : 0;
    char *line = text ? realloc(text, length + 2) : NULL;
    if (!line) {
        fprintf(stderr, "golden: %s: out of memory\n", name);
        free(text);
        return 1;
    }
    line[length] = '\n';
    line[length + 1] = '\0';
    const int status = write_file(dir, name, line, length + 1, files);
    free(line);
    return status;
}

static json_t *field_value(const struct field *field, uint64_t bits)
{
    switch (field->kind) {
    case FIELD_F64:
    case FIELD_F32:
        return json_real(bits_to_double(bits));
    case FIELD_BOOL:
        return json_boolean(bits != 0);
    case FIELD_ENUM:
        return json_string(field->names[bits]);
    case FIELD_I64:
    case FIELD_U64:
        break;
    }
    return json_integer((json_int_t)bits);
}

/* The parameters that differ from what problem_blank() has. */
static json_t *params_of(const struct problem *problem)
{
    const struct problem blank = problem_blank(problem->kernel);
    json_t *params = json_object();
    for (int i = 0; i < N_FIELDS; i++) {
        const struct field *field = &problem_fields[i];
        const uint64_t bits = field_get(field, problem);
        if (field_applies(field, problem->kernel) && bits != field_get(field, &blank))
            json_object_set_new(params, field->name, field_value(field, bits));
    }
    if (problem->positions) {
        json_t *list = json_array();
        for (int64_t t = 0; t < problem->tokens; t++)
            json_array_append_new(list, json_integer(problem->positions[t]));
        json_object_set_new(params, "positions", list);
    }
    if (problem->freqs.values) {
        json_t *list = json_array();
        for (int64_t i = 0; i < (problem->freqs.dim + 1) / 2; i++)
            json_array_append_new(list, json_real(problem->freqs.values[i]));
        json_object_set_new(params, "inv_freq", list);
    }
    return params;
}

/* What a parameter is when a case does not name it. */
static json_t *defaults_of(const struct golden *golden, const struct group *group)
{
    json_t *defaults = json_object();
    for (size_t i = group->first; i < group->first + group->n; i++) {
        const enum posenc_kernel kernel = golden->vectors.cases[i].problem.kernel;
        const struct problem blank = problem_blank(kernel);
        for (int f = 0; f < N_FIELDS; f++)
            if (field_applies(&problem_fields[f], kernel))
                json_object_set_new(
                    defaults, problem_fields[f].name,
                    field_value(&problem_fields[f], field_get(&problem_fields[f], &blank)));
    }
    return defaults;
}

static json_t *notes_of(const struct golden *golden, const struct group *group)
{
    json_t *notes = json_object();
    for (const struct flag *flag = golden_flags; flag->name; flag++) {
        bool used = false;
        for (size_t i = group->first; i < group->first + group->n && !used; i++) {
            char flags[160], word[80];
            snprintf(flags, sizeof flags, " %s ", golden->vectors.cases[i].flags);
            snprintf(word, sizeof word, " %s ", flag->name);
            used = strstr(flags, word) != NULL;
        }
        if (used)
            json_object_set_new(notes, flag->name,
                                json_pack("{s:s, s:s}", "bugType", flag->bug_type,
                                          "description", flag->description));
    }
    return notes;
}

/* Whether two cases differ in how they are stored, and not in what an output should be. */
static bool same_but_stored(const struct vector_case *a, const struct vector_case *b, int o)
{
    const char *dtype_a = strchr(a->id, '/') + 1, *dtype_b = strchr(b->id, '/') + 1;
    return a->problem.kernel == b->problem.kernel && a->rows[o] == b->rows[o] &&
           a->width[o] == b->width[o] &&
           strcmp(strchr(dtype_a, '/'), strchr(dtype_b, '/')) == 0 &&
           memcmp(a->want[o], b->want[o],
                  (size_t)(a->rows[o] * a->width[o]) * sizeof *a->want[o]) == 0;
}

/* The tensor of an output of a case, shared by those that differ from it in storage alone. */
static json_t *output_of(const struct vector_case *first, const struct vector_case *c, int o,
                         struct array *arrays, size_t *n)
{
    char name[128];
    const int64_t shape[2] = { c->rows[o], c->width[o] };
    while (first < c && !same_but_stored(first, c, o))
        first++;
    snprintf(name, sizeof name, "%s.%s", first->id, c->output_names[o]);
    if (first == c)
        arrays[(*n)++] = array_of(name, "F64", 2, shape, c->want[o]);
    return json_pack("{s:s, s:s}", "output", c->output_names[o], "tensor", name);
}

/* `first` is the group's. */
static json_t *case_of(const struct vector_case *first, const struct vector_case *c,
                       struct array *arrays, size_t *n)
{
    json_t *want = json_array();
    for (int o = 0; o < c->n_outputs; o++)
        json_array_append_new(want, output_of(first, c, o, arrays, n));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "id", c->id, "kernel",
                     posenc_kernel_name(c->problem.kernel), "flags", c->flags, "note", c->note,
                     "source", c->source, "params", params_of(&c->problem), "want", want);
}

static int write_group(const struct golden *golden, const struct group *group, const char *dir,
                       json_t *files)
{
    char json_name[80], tensors_name[80];
    snprintf(json_name, sizeof json_name, "%s.json", group->name);
    snprintf(tensors_name, sizeof tensors_name, "%s.safetensors", group->name);
    struct array *arrays = calloc(2 * group->n + 1, sizeof *arrays);
    if (!arrays)
        return 1;
    size_t n = 0, bytes;
    const struct vector_case *first = &golden->vectors.cases[group->first];
    json_t *cases = json_array();
    for (size_t i = 0; i < group->n; i++)
        json_array_append_new(cases, case_of(first, first + i, arrays, &n));
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "schema", pack_magic, "group", group->name,
        "method",
        "MPFR, 320 bits; f64 rounded to odd; inputs by the recipe of conformance/inputs.c",
        "license", "Apache-2.0", "tensors", tensors_name, "defaults",
        defaults_of(golden, group), "notes", notes_of(golden, group), "cases", cases);
    numbers_add(root, golden, group);
    void *tensors = safetensors_build(arrays, n, &bytes);
    const int status = !tensors || write_file(dir, tensors_name, tensors, bytes, files) != 0 ||
                       write_json(dir, json_name, root, files) != 0;
    free(tensors);
    free(arrays);
    json_decref(root);
    return status;
}

int golden_write(const struct golden *golden, const char *dir)
{
    json_t *files = json_object();
    int status = 0;
    for (int g = 0; g < golden->n_groups && status == 0; g++)
        status = write_group(golden, &golden->groups[g], dir, files);
    json_t *manifest = json_pack("{s:s, s:s, s:i, s:o}", "schema", pack_magic, "version",
                                 "1.0.0", "cases", (int)golden->vectors.n, "files", files);
    if (status == 0)
        status = write_json(dir, "MANIFEST.json", manifest, NULL);
    json_decref(manifest);
    return status;
}
