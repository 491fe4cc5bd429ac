/*
 * posenc vectors: summarises the golden vectors, or exports them for programs in any language.
 *
 * An export is a folder with the files that vectors/SHA256SUMS lists, and cases.jsonl with a line for each case:
 *
 *     {"id": "rope_table/f32/exact/hd128", "kernel", "flags", "note", "source",
 *      "params": {"rotary_dim": 128, ...},
 *      "outputs": [{"name": "cos", "file": "vectors/rope.safetensors", "tensor": "ID.cos"}, ...]}
 *
 * `sha256sum -c vectors/SHA256SUMS`, in that folder, finds files that were altered.
 */
#define _POSIX_C_SOURCE 200809L
#include "data.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* ---- Cases as JSON ---- */

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

/* Returns all parameters of a problem; those of the layout of its tensors only if they are not dense. */
static json_t *make_params(const struct problem *problem)
{
    json_t *params = json_object();
    struct field field;
    for (int i = 0; kernel_field(problem->kernel, i, &field); i++) {
        char name[FIELD_TEXT];
        if (field.tensor && field_is_blank(&field, problem))
            continue;
        json_t *list = json_array();
        for (int64_t k = 0; k < field_length(&field, problem); k++)
            json_array_append_new(list, make_value(&field, problem, k));
        field_name(&field, name);
        json_object_set(params, name, field.list ? list : json_array_get(list, 0));
        json_decref(list);
    }
    return params;
}

static json_t *make_case(const struct vector_case *c)
{
    json_t *outputs = json_array();
    char file[128];
    snprintf(file, sizeof file, "vectors/%.100s.safetensors", c->group);
    for (int o = 0; o < c->n_outputs; o++)
        json_array_append_new(outputs, json_pack("{s:s, s:s, s:s}", "name", c->output_names[o],
                                                 "file", file, "tensor", c->tensors[o]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "id", c->id, "kernel",
                     posenc_kernel_name(c->problem.kernel), "flags", c->flags, "note", c->note,
                     "source", c->source, "params", make_params(&c->problem), "outputs",
                     outputs);
}

/* ---- Export ---- */

static FILE *open_inside(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.3000s/%.1000s", folder, name);
    return fopen(path, "wb");
}

/* Closes a file. Returns true if all of it was written. */
static bool close_written(FILE *file)
{
    const bool failed = !file || ferror(file);
    return file && fclose(file) == 0 && !failed;
}

static bool write_cases(const struct vectors *vectors, const char *folder)
{
    FILE *file = open_inside(folder, "cases.jsonl");
    for (size_t i = 0; file && i < vectors->n; i++) {
        json_t *one = make_case(&vectors->cases[i]);
        if (!one || json_dumpf(one, file, JSON_SORT_KEYS) != 0 || fputc('\n', file) == EOF) {
            fclose(file);
            file = NULL;
        }
        json_decref(one);
    }
    return close_written(file);
}

static bool write_files(const struct vectors *vectors, const char *folder)
{
    static const char *const inside[] = { "cases", "cases/golden", "vectors" };
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        snprintf(path, sizeof path, "%.3000s/%s", folder, inside[i]);
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return false;
    }
    for (size_t i = 0; i < vectors->n_files; i++) {
        const struct vector_file *from = &vectors->files[i];
        FILE *file = open_inside(folder, from->name);
        if (file)
            fwrite(from->data, 1, from->bytes, file);
        if (!close_written(file))
            return false;
    }
    return true;
}

static int export_to(const struct cli *cli, const struct vectors *vectors, const char *path)
{
    if (!cli->force && rmdir(path) != 0 && errno != ENOENT)
        return cli_reject(cli, "export", path,
                          "expected a new or an empty folder, or --force to write into it");
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return cli_reject(cli, "export", path, "cannot be created: %s", strerror(errno));
    if (!write_files(vectors, path) || !write_cases(vectors, path))
        return cli_reject(cli, "export", path, "cannot be written: %s", strerror(errno));
    printf("%zu cases in %zu files: %s\n", vectors->n, vectors->n_files + 1, path);
    return EXIT_OK;
}

/* ---- Summary ---- */

static int print_info(const struct vectors *vectors)
{
    printf("%zu golden vectors, SHA-256 %s%s\n\n", vectors->n, vectors->sha256,
           vectors->official ? "" : ": " OTHER_VECTORS);
    size_t cases = 0, values = 0;
    for (size_t i = 0; i < vectors->n; i++) {
        const struct vector_case *c = &vectors->cases[i];
        cases++;
        for (int o = 0; o < c->n_outputs; o++)
            values += (size_t)(c->rows[o] * c->width[o]);
        if (i + 1 < vectors->n && strcmp(c[1].group, c->group) == 0)
            continue;
        printf("%-20s%4zu cases %8zu values\n", c->group, cases, values);
        cases = values = 0;
    }
    puts("\nflags");
    for (size_t i = 0; i < vectors->n_flags; i++)
        printf("  %-16s%-18s%s\n", vectors->flags[i].name, vectors->flags[i].bug_type,
               vectors->flags[i].description);
    return EXIT_OK;
}

int command_vectors(struct cli *cli)
{
    const char *action = cli->n_operands > 0 ? cli->operands[0] : "";
    const bool info = strcmp(action, "info") == 0 && cli->n_operands == 1;
    if (!info && (strcmp(action, "export") != 0 || cli->n_operands != 2))
        return cli_reject(cli, "vectors", *action ? action : NULL,
                          "expected info or export DIR");
    struct vectors vectors;
    if (data_vectors(cli, &vectors) != EXIT_OK)
        return EXIT_USAGE;
    const int status = info ? print_info(&vectors) : export_to(cli, &vectors, cli->operands[1]);
    vectors_free(&vectors);
    return status;
}
