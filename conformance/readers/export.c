/*
 * Golden vectors as files for other programs: see export.h.
 *
 *     MANIFEST.json      {"schema": "posenc.vectors/1", "version", "cases": how many,
 *                         "files": {name: {"bytes", "sha256"}}}
 *     GROUP.json         {"schema", "group", "tensors", "defaults", "notes": of the flags,
 *                         "cases": [{"id", "kernel", "flags", "note", "source", "params",
 *                         "want": [{"output", "tensor"}]}], and numbers (numbers.c)}
 *     GROUP.safetensors
 */
#include "export.h"

#include "numbers.h"
#include "safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "posenc.vectors/1";

/* Where files go, and what the manifest says of them. */
struct exporter {
    const struct vectors *vectors;
    vectors_sink *sink;
    void *user;
    json_t *files;
};

static bool give(struct exporter *to, const char *name, const void *data, size_t bytes)
{
    char hash[65];
    sha256_hex(data, bytes, hash);
    json_object_set_new(to->files, name,
                        json_pack("{s:I, s:s}", "bytes", (json_int_t)bytes, "sha256", hash));
    return to->sink(name, data, bytes, to->user);
}

static bool give_json(struct exporter *to, const char *name, const json_t *root)
{
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_SORT_KEYS);
    const size_t length = text ? strlen(text) : 0;
    if (text)
        text[length] = '\n'; /* in the place of the NUL */
    const bool good = text && give(to, name, text, length + 1);
    free(text);
    return good;
}

/* ---- Parameters ---- */

static json_t *value_of(const struct field *field, uint64_t bits)
{
    switch (field->kind) {
    case FIELD_F64:
    case FIELD_F32:
    case FIELD_PAIRS:
    case FIELD_FACTORS:
        return json_real(bits_to_double(bits));
    case FIELD_BOOL:
        return json_boolean(bits != 0);
    case FIELD_ENUM:
        return json_string(field->names[bits]);
    case FIELD_I64:
    case FIELD_U64:
    case FIELD_SECTIONS:
    case FIELD_STRIDES:
    case FIELD_POSITIONS:
        break;
    }
    return json_integer((json_int_t)bits);
}

/* Sections are a parameter each. */
static void add_sections(json_t *params, const struct field *field,
                         const struct problem *problem, bool zeros)
{
    static const char axes[] = { 't', 'h', 'w' };
    for (int i = 0; i < N_SECTIONS; i++) {
        char name[FIELD_TEXT];
        const uint64_t bits = field_element(field, problem, i);
        snprintf(name, sizeof name, "%s_%c", field->name, axes[i]);
        if (bits || zeros)
            json_object_set_new(params, name, value_of(field, bits));
    }
}

/* The parameters that differ from what problem_blank() has. */
static json_t *params_of(const struct problem *problem)
{
    json_t *params = json_object();
    struct field one;
    for (int i = 0; kernel_field(problem->kernel, i, &one); i++) {
        const struct field *field = &one;
        char name[FIELD_TEXT];
        field_name(field, name);
        if (field_is_blank(field, problem))
            continue;
        if (field->kind == FIELD_SECTIONS)
            add_sections(params, field, problem, false);
        else if (field_is_list(field)) {
            json_t *list = json_array();
            for (int64_t k = 0; k < field_length(field, problem); k++)
                json_array_append_new(list, value_of(field, field_element(field, problem, k)));
            json_object_set_new(params, name, list);
        } else
            json_object_set_new(params, name, value_of(field, field_get(field, problem)));
    }
    return params;
}

/* What a parameter is when a case does not name it. */
static json_t *defaults_of(const struct vectors *vectors, size_t first, size_t end)
{
    json_t *defaults = json_object();
    for (size_t i = first; i < end; i++) {
        const enum posenc_kernel kernel = vectors->cases[i].problem.kernel;
        const struct problem blank = problem_blank(kernel);
        struct field one;
        for (int f = 0; kernel_field(kernel, f, &one) && !one.tensor; f++) {
            const struct field *field = &one;
            if (field->kind == FIELD_SECTIONS)
                add_sections(defaults, field, &blank, true);
            else if (!field_is_list(field))
                json_object_set_new(defaults, field->name,
                                    value_of(field, field_get(field, &blank)));
        }
    }
    return defaults;
}

static json_t *notes_of(const struct vectors *vectors, size_t first, size_t end)
{
    json_t *notes = json_object();
    for (size_t k = 0; k < vectors->n_flags; k++) {
        const struct vector_flag *flag = &vectors->flags[k];
        bool used = false;
        for (size_t i = first; i < end && !used; i++) {
            char flags[160], word[80];
            snprintf(flags, sizeof flags, " %s ", vectors->cases[i].flags);
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

/* ---- Tensors ---- */

/* Whether two cases differ in how they are stored, and not in what an output should be. */
static bool same_but_stored(const struct vector_case *a, const struct vector_case *b, int o)
{
    const char *dtype_a = strchr(a->id, '/') + 1, *dtype_b = strchr(b->id, '/') + 1;
    return a->problem.kernel == b->problem.kernel && vectors_same_output(a, b, o) &&
           strcmp(strchr(dtype_a, '/'), strchr(dtype_b, '/')) == 0;
}

/* The case whose tensor an output of a case is: the first that differs in storage alone. */
static const struct vector_case *holder(const struct vector_case *first,
                                        const struct vector_case *c, int o)
{
    while (first < c && !same_but_stored(first, c, o))
        first++;
    return first;
}

static void name_tensor(const struct vector_case *c, int o, char name[TENSOR_NAME])
{
    snprintf(name, TENSOR_NAME, "%s.%s", c->id, c->output_names[o]);
}

void *vectors_tensors(const struct vectors *vectors, size_t first, size_t end, size_t *bytes)
{
    struct array *arrays = calloc(2 * (end - first) + 1, sizeof *arrays);
    size_t n = 0;
    for (size_t i = first; arrays && i < end; i++) {
        const struct vector_case *c = &vectors->cases[i];
        for (int o = 0; o < c->n_outputs; o++) {
            char name[TENSOR_NAME];
            if (holder(&vectors->cases[first], c, o) != c)
                continue;
            name_tensor(c, o, name);
            arrays[n++] =
                array_of(name, "F64", 2, (int64_t[]){ c->rows[o], c->width[o] }, c->want[o]);
        }
    }
    void *file = arrays ? safetensors_build(arrays, n, bytes) : NULL;
    free(arrays);
    return file;
}

/* ---- Groups ---- */

/* `first` is the group's. */
static json_t *case_of(const struct vector_case *first, const struct vector_case *c)
{
    json_t *want = json_array();
    for (int o = 0; o < c->n_outputs; o++) {
        char name[TENSOR_NAME];
        name_tensor(holder(first, c, o), o, name);
        json_array_append_new(
            want, json_pack("{s:s, s:s}", "output", c->output_names[o], "tensor", name));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "id", c->id, "kernel",
                     posenc_kernel_name(c->problem.kernel), "flags", c->flags, "note", c->note,
                     "source", c->source, "params", params_of(&c->problem), "want", want);
}

static bool export_group(struct exporter *to, size_t first, size_t end)
{
    const struct vectors *vectors = to->vectors;
    char json_name[80], tensors_name[80];
    const char *group = vectors->cases[first].group;
    snprintf(json_name, sizeof json_name, "%.60s.json", group);
    snprintf(tensors_name, sizeof tensors_name, "%.60s.safetensors", group);
    json_t *cases = json_array();
    for (size_t i = first; i < end; i++)
        json_array_append_new(cases, case_of(&vectors->cases[first], &vectors->cases[i]));
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "schema", schema, "group", group, "method",
        "MPFR, 320 bits; f64 rounded to odd; inputs by the recipe of conformance/inputs.c",
        "license", "Apache-2.0", "tensors", tensors_name, "defaults",
        defaults_of(vectors, first, end), "notes", notes_of(vectors, first, end), "cases",
        cases);
    size_t bytes = 0;
    void *tensors = vectors_tensors(vectors, first, end, &bytes);
    bool good = tensors && give(to, tensors_name, tensors, bytes);
    for (size_t i = first; i < end && good; i++)
        good = numbers_add(root, &vectors->cases[i].problem);
    good = good && give_json(to, json_name, root);
    free(tensors);
    json_decref(root);
    return good;
}

bool vectors_export(const struct vectors *vectors, vectors_sink *sink, void *user)
{
    struct exporter to = { vectors, sink, user, json_object() };
    bool good = to.files != NULL;
    for (size_t i = 0, end; i < vectors->n && good; i = end) {
        end = vectors_group_end(vectors, i);
        good = export_group(&to, i, end);
    }
    json_t *manifest = json_pack("{s:s, s:s, s:i, s:O}", "schema", schema, "version", "1.0.0",
                                 "cases", (int)vectors->n, "files", to.files);
    good = good && give_json(&to, "MANIFEST.json", manifest);
    json_decref(manifest);
    json_decref(to.files);
    return good;
}
