/*
 * Golden vectors as files for other programs; see export.h.
 *
 *     MANIFEST.json      {"schema": "posenc.vectors/1", "version", "cases": their number,
 *                         "files": {name: {"bytes", "sha256"}}}
 *     GROUP.json         {"schema", "group", "tensors", "defaults", "notes": of the flags,
 *                         "cases": [{"id", "kernel", "flags", "note", "source", "params",
 *                         "want": [{"output", "tensor"}]}], and numbers that need no tensor}
 *     GROUP.safetensors
 */
#define _POSIX_C_SOURCE 200809L
#include "export.h"

#include "conformance/oracle/rows.h"
#include "conformance/problem/signature.h"
#include "base/text/text.h"
#include "safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char schema[] = "posenc.vectors/1";

/* Destination of the files, and their entries in the manifest. */
struct exporter {
    const struct vectors *vectors;
    vectors_sink *sink;
    void *user;
    json_t *files;
};

static bool export_file(struct exporter *to, const char *name, const void *data, size_t bytes)
{
    char hash[65];
    sha256_hex(data, bytes, hash);
    json_object_set_new(to->files, name,
                        json_pack("{s:I, s:s}", "bytes", (json_int_t)bytes, "sha256", hash));
    return to->sink(name, data, bytes, to->user);
}

static bool export_json(struct exporter *to, const char *name, const json_t *root)
{
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_SORT_KEYS);
    const size_t length = text ? strlen(text) : 0;
    if (text)
        text[length] = '\n'; /* replaces the NUL */
    const bool good = text && export_file(to, name, text, length + 1);
    free(text);
    return good;
}

/* ---- Parameters ---- */

static json_t *make_value(const struct field *field, const struct problem *problem, int64_t i)
{
    const uint64_t bits = field_get(field, problem, i);
    if (field_is_real(field))
        return json_real(bits_to_double(bits));
    if (field->kind == FIELD_BOOL)
        return json_boolean(bits != 0);
    if (field->kind == FIELD_ENUM)
        return json_string(field->names[bits]);
    return json_integer((json_int_t)bits);
}

/* Adds the parameters that differ from problem_blank(), or all defaults. Each section is a
 * parameter of its own. */
static void add_params(json_t *params, const struct problem *problem, bool defaults)
{
    struct field field;
    for (int i = 0; kernel_field(problem->kernel, i, &field); i++) {
        char name[FIELD_TEXT + 2];
        field_name(&field, name);
        if (defaults ? field.tensor || field.list > LIST_SECTIONS
                     : field_is_blank(&field, problem))
            continue;
        const int64_t n = defaults && field.list == LIST_SECTIONS
                              ? N_SECTIONS
                              : field_length(&field, problem);
        json_t *list = field.list > LIST_SECTIONS ? json_array() : NULL;
        if (list)
            json_object_set_new(params, name, list);
        for (int64_t k = 0; k < n; k++) {
            json_t *value = make_value(&field, problem, k);
            if (field.list == LIST_SECTIONS)
                snprintf(name, sizeof name, "%s_%c", field.name, "thw"[k]);
            if (list)
                json_array_append_new(list, value);
            else
                json_object_set_new(params, name, value);
        }
    }
}

static json_t *make_notes(const struct vectors *vectors, size_t first, size_t end)
{
    json_t *notes = json_object();
    for (size_t k = 0; k < vectors->n_flags; k++) {
        const struct vector_flag *flag = &vectors->flags[k];
        size_t i = first;
        while (i < end &&
               !has_word(vectors->cases[i].flags, ' ', flag->name, strlen(flag->name)))
            i++;
        if (i < end)
            json_object_set_new(notes, flag->name,
                                json_pack("{s:s, s:s}", "bugType", flag->bug_type,
                                          "description", flag->description));
    }
    return notes;
}

/* ---- Tensors ---- */

/* Returns true if two cases differ in dtype alone and have the same expected output. */
static bool same_but_stored(const struct vector_case *a, const struct vector_case *b, int o)
{
    const char *dtype_a = strchr(a->id, '/') + 1, *dtype_b = strchr(b->id, '/') + 1;
    return a->problem.kernel == b->problem.kernel && vectors_same_output(a, b, o) &&
           strcmp(strchr(dtype_a, '/'), strchr(dtype_b, '/')) == 0;
}

/* Returns the case that holds the tensor of an output: the first that differs in dtype alone. */
static const struct vector_case *find_holder(const struct vector_case *first,
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

/* Returns the file of tensors of the cases from `first` to `end` - 1, to be freed, or NULL. */
static void *make_tensors(const struct vectors *vectors, size_t first, size_t end,
                          size_t *bytes)
{
    const size_t most = 2 * (end - first);
    struct array *arrays = calloc(most, sizeof *arrays);
    char(*names)[TENSOR_NAME] = calloc(most, sizeof *names), *file = NULL;
    FILE *out = open_memstream(&file, bytes);
    size_t n = 0;
    for (size_t i = first; arrays && names && i < end; i++) {
        const struct vector_case *c = &vectors->cases[i];
        for (int o = 0; o < c->n_outputs; o++) {
            if (find_holder(&vectors->cases[first], c, o) != c)
                continue;
            name_tensor(c, o, names[n]);
            arrays[n] = (struct array){ names[n], "F64", c->rows[o], c->width[o], c->want[o] };
            n++;
        }
    }
    bool good = arrays && names && out && safetensors_write(arrays, n, out);
    if (out && fclose(out) != 0)
        good = false;
    free(arrays);
    free(names);
    if (!good)
        free(file);
    return good ? file : NULL;
}

/* ---- Numbers that need no tensor ---- */

enum { KEY_BYTES = 128 };

/* Lists the numbers of a call, and writes the parameters that they follow from as their key.
 * Returns their name, or NULL if the call has none. They are slopes of ALiBi as exact hexadecimal
 * f32, least distances of T5's buckets, rows of a window's table for each query and key, or columns
 * of terms for each query - key from the least on. */
static const char *list_numbers(const struct oracle *oracle, char key[KEY_BYTES], json_t *list)
{
    const struct problem *p = &oracle->call->problem;
    const struct signature *s = signature_of(p->kernel);
    if (s == &signature_alibi) {
        const int64_t n = p->heads * (p->slopes_by_batch ? p->batch : 1);
        snprintf(key, KEY_BYTES, "heads=%d max=%g", (int)n, p->alibi_bias_max);
        for (int64_t h = 0; h < n; h++)
            json_array_append_new(list, json_sprintf("%a", (double)oracle->call->slopes[h]));
        return "alibi_slopes";
    }
    if (s == &signature_t5) {
        snprintf(key, KEY_BYTES, "num_buckets=%d max_distance=%d %s", (int)p->num_buckets,
                 (int)p->max_distance, p->bidirectional ? "bidirectional" : "unidirectional");
        for (int64_t b = 0; b < oracle->n_thresholds; b++)
            json_array_append_new(list, json_integer(oracle->thresholds[b]));
        return "t5_thresholds";
    }
    if (s == &signature_window) {
        const int64_t n = problem_window(p);
        snprintf(key, KEY_BYTES, "height=%d width=%d%s", (int)p->window_height,
                 (int)p->window_width, p->window_class ? " class" : "");
        for (int64_t i = 0; i < n * n; i++)
            json_array_append_new(list, json_integer(window_row(p, i / n, i % n)));
        return "window_rows";
    }
    if (s != &signature_relative && s != &signature_relative_sum)
        return NULL;
    snprintf(key, KEY_BYTES, "%s buckets=%d max_distance=%d queries=%d keys=%d query_offset=%d",
             relative_names[p->relative], (int)p->num_buckets, (int)p->max_distance,
             (int)p->queries, (int)p->keys, (int)p->query_offset);
    for (int64_t i = 0; i < problem_distances(p->queries, p->keys); i++)
        json_array_append_new(list, json_integer(oracle->columns[i]));
    return "relative_columns";
}

/* Adds the numbers that a case is made from to its group. */
static bool add_numbers(json_t *root, const struct problem *problem)
{
    struct call call;
    if (!kernel_on_scores(problem->kernel))
        return true;
    if (call_create(&call, problem, &memory_plain) != POSENC_OK)
        return false;
    struct oracle *oracle = oracle_create(&call);
    char key[KEY_BYTES];
    json_t *list = json_array();
    const char *name = oracle ? list_numbers(oracle, key, list) : NULL;
    if (name && !json_object_get(root, name))
        json_object_set_new(root, name, json_object());
    if (name)
        json_object_set(json_object_get(root, name), key, list);
    json_decref(list);
    const bool good = oracle != NULL;
    oracle_destroy(oracle);
    call_destroy(&call);
    return good;
}

/* ---- Groups ---- */

/* Returns the JSON of a case. `first` is the first case of its group. */
static json_t *make_case(const struct vector_case *first, const struct vector_case *c)
{
    json_t *want = json_array();
    for (int o = 0; o < c->n_outputs; o++) {
        char name[TENSOR_NAME];
        name_tensor(find_holder(first, c, o), o, name);
        json_array_append_new(
            want, json_pack("{s:s, s:s}", "output", c->output_names[o], "tensor", name));
    }
    json_t *params = json_object();
    add_params(params, &c->problem, false);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "id", c->id, "kernel",
                     posenc_kernel_name(c->problem.kernel), "flags", c->flags, "note", c->note,
                     "source", c->source, "params", params, "want", want);
}

static bool export_group(struct exporter *to, size_t first, size_t end)
{
    const struct vectors *vectors = to->vectors;
    char json_name[80], tensors_name[80];
    const char *group = vectors->cases[first].group;
    snprintf(json_name, sizeof json_name, "%.60s.json", group);
    snprintf(tensors_name, sizeof tensors_name, "%.60s.safetensors", group);
    json_t *cases = json_array(), *defaults = json_object();
    for (size_t i = first; i < end; i++) {
        const struct problem blank = problem_blank(vectors->cases[i].problem.kernel);
        add_params(defaults, &blank, true);
        json_array_append_new(cases, make_case(&vectors->cases[first], &vectors->cases[i]));
    }
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "schema", schema, "group", group, "method",
        "MPFR, 320 bits; f64 rounded to odd; inputs by the recipe of conformance/inputs.c",
        "license", "Apache-2.0", "tensors", tensors_name, "defaults", defaults, "notes",
        make_notes(vectors, first, end), "cases", cases);
    size_t bytes = 0;
    void *tensors = make_tensors(vectors, first, end, &bytes);
    bool good = tensors && export_file(to, tensors_name, tensors, bytes);
    for (size_t i = first; i < end && good; i++)
        good = add_numbers(root, &vectors->cases[i].problem);
    good = good && export_json(to, json_name, root);
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
    good = good && export_json(&to, "MANIFEST.json", manifest);
    json_decref(manifest);
    json_decref(to.files);
    return good;
}
