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
 *
 * Prompts are the same calls in the form that programs answer (docs/protocol.md), as files. The verdict on the answers is
 * that of posenc verify.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/oracle/oracle.h"
#include "conformance/problem/guard.h"
#include "conformance/program/program.h"
#include "conformance/program/prompt.h"
#include "conformance/suites/suites.h"
#include "data.h"
#include "session.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* ---- Cases as JSON ---- */

/* Returns all parameters of a problem; those of the layout of its tensors only if they are not dense. */
static json_t *make_params(const struct problem *problem)
{
    json_t *params = json_object();
    struct field field;
    for (int i = 0; kernel_field(problem->kernel, i, &field); i++) {
        char name[FIELD_TEXT];
        if (field.tensor && field_is_blank(&field, problem))
            continue;
        field_name(&field, name);
        json_object_set_new(params, name, prompt_parameter(&field, problem));
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

/* Makes a folder. It must be new or empty, or `may_exist`. */
static int make_folder(const struct cli *cli, const char *action, const char *path,
                       bool may_exist)
{
    if (!may_exist && rmdir(path) != 0 && errno != ENOENT)
        return cli_reject(cli, action, path, "expected a new or an empty folder%s",
                          strcmp(action, "export") == 0 ? ", or --force to write into it" : "");
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return cli_reject(cli, action, path, "cannot be created: %s", strerror(errno));
    return EXIT_OK;
}

static int export_to(const struct cli *cli, const struct vectors *vectors, const char *path)
{
    if (make_folder(cli, "export", path, cli->force) != EXIT_OK)
        return EXIT_USAGE;
    if (!write_files(vectors, path) || !write_cases(vectors, path))
        return cli_reject(cli, "export", path, "cannot be written: %s", strerror(errno));
    printf("%zu cases in %zu files: %s\n", vectors->n, vectors->n_files + 1, path);
    return EXIT_OK;
}

/* ---- Prompts and answers ---- */

static bool wants(struct session *session, enum posenc_kernel kernel, const char *id)
{
    const struct selection *selected = &session->selected;
    return (!selected->names_kernels || selected->kernels[kernel]) &&
           selection_has_dtype(selected, id) && session_wants_case(session, id);
}

/* Writes the prompt of a case. `want` has the expected rows; NULL: those of the oracle. */
static bool write_prompt(const struct posenc_backend *writer, const struct problem *p,
                         const char *id, const double *const *want)
{
    struct call call;
    if (call_create(&call, p, NULL) != POSENC_OK)
        return false;
    struct oracle_answer *answer = want ? NULL : oracle_get_answer(&call);
    if (want || answer) {
        program_set_case(id);
        program_set_expected(&call, want ? want : (const double *const *)answer->want);
        (void)guard_run(&call, writer, NULL);
    }
    oracle_release_answer(answer);
    call_destroy(&call);
    return want || answer;
}

/* Writes the prompts of golden vectors and of calls of models. Returns false if out of memory. */
static bool write_prompts(struct session *session, const char *path)
{
    static struct guard_status status;
    const struct posenc_backend *writer = program_write_prompts(path);
    struct problem *problems = calloc(session_count_problems(session), sizeof *problems);
    const size_t n_problems =
        problems ? session_list_problems(session, session->cli->full, problems) : 0;
    bool good = problems;
    guard_set_status(&status);
    for (size_t i = 0; good && i < session->vectors.n; i++) {
        const struct vector_case *c = &session->vectors.cases[i];
        if (wants(session, c->problem.kernel, c->id))
            good = write_prompt(writer, &c->problem, c->id, c->want);
    }
    for (size_t i = 0; good && i < n_problems; i++) {
        char id[96];
        suite_model_id(&problems[i], i, id);
        if (wants(session, problems[i].kernel, id))
            good = write_prompt(writer, &problems[i], id, NULL);
    }
    free(problems);
    return good;
}

static int prompts_to(struct session *session, const char *path)
{
    static const char *const inside[] = { "prompts", "expected", "answers" };
    struct cli *cli = session->cli;
    char folder[PATH_BYTES];
    if (select_kernels_and_dtypes(cli, &session->selected) != EXIT_OK ||
        session_load_models(session, cli->model.item, cli->model.n) != EXIT_OK ||
        session_check_model_kernels(session) != EXIT_OK ||
        data_vectors(cli, &session->vectors) != EXIT_OK ||
        make_folder(cli, "prompts", path, false) != EXIT_OK)
        return EXIT_USAGE;
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        snprintf(folder, sizeof folder, "%.3000s/%s", path, inside[i]);
        if (mkdir(folder, 0777) != 0)
            return cli_reject(cli, "prompts", folder, "cannot be created: %s", strerror(errno));
    }
    session_select_model_kernels(session);
    if (!write_prompts(session, path))
        return cli_reject_memory(cli);
    if (program_files_error())
        return cli_reject(cli, "prompts", NULL, "%s", program_files_error());
    if (session_check_patterns(session) != EXIT_OK)
        return EXIT_USAGE;
    printf("%zu prompts: %s\n", program_files_count(), path);
    return EXIT_OK;
}

static int command_prompts(struct cli *cli, const char *path)
{
    struct session session = { .cli = cli };
    const int status = prompts_to(&session, path);
    session_abort(&session);
    return status;
}

/* Rejects an answer that belongs to no prompt of the folder: its name is mistyped. Hidden files are no answers. */
static int reject_surplus(const struct cli *cli, const char *folder, const char *path)
{
    struct dirent *entry;
    struct stat status;
    char prompt[PATH_BYTES];
    DIR *answers = opendir(folder);
    int result = EXIT_OK;
    while (answers && result == EXIT_OK && (entry = readdir(answers))) {
        snprintf(prompt, sizeof prompt, "%.3000s/prompts/%.256s", path, entry->d_name);
        if (entry->d_name[0] != '.' && stat(prompt, &status) != 0)
            result = cli_reject(cli, "answers", entry->d_name,
                                "expected the name of a prompt: %s does not exist", prompt);
    }
    if (answers)
        closedir(answers);
    return result;
}

static int command_answers(struct cli *cli, const char *path)
{
    struct stat status;
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%.3000s/answers", path);
    if (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode))
        return cli_reject(cli, "answers", path,
                          "expected a folder of posenc vectors prompts, with answers in it");
    if (reject_surplus(cli, folder, path) != EXIT_OK)
        return EXIT_USAGE;
    cli->answers = path;
    cli->n_operands = 0;
    return command_verify(cli);
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
    const char *action = cli->n_operands > 0 ? cli->operands[0] : "",
               *path = cli->n_operands == 2 ? cli->operands[1] : NULL;
    const bool info = strcmp(action, "info") == 0 && cli->n_operands == 1;
    if (path && strcmp(action, "prompts") == 0)
        return command_prompts(cli, path);
    if (path && strcmp(action, "answers") == 0)
        return command_answers(cli, path);
    if (!info && (!path || strcmp(action, "export") != 0))
        return cli_reject(cli, "vectors", *action ? action : NULL,
                          "expected info, export DIR, prompts DIR or answers DIR");
    struct vectors vectors;
    if (data_vectors(cli, &vectors) != EXIT_OK)
        return EXIT_USAGE;
    const int status = info ? print_info(&vectors) : export_to(cli, &vectors, path);
    vectors_free(&vectors);
    return status;
}
