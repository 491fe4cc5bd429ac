/*
 * posenc vectors: exports the golden vectors; writes the calls of golden vectors and of models, with their expected outputs,
 * as files for programs in any language (docs/protocol.md). The verdict on the answers is that of posenc verify.
 *
 * An export is a folder with the files that vectors/SHA256SUMS lists, and cases.jsonl with a line for each case:
 *
 *     {"id": "rope_table/f32/exact/hd128", "kernel", "flags", "note", "source",
 *      "params": {"rotary_dim": 128, ...},
 *      "outputs": [{"name": "cos", "file": "vectors/rope.safetensors", "tensor": "ID.cos"}, ...]}
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

/* Makes a folder, which must be new or empty, with folders inside. */
static void make_folders(const char *action, const char *path, const char *const *inside)
{
    char folder[PATH_BYTES];
    if (rmdir(path) != 0 && errno != ENOENT)
        cli_reject(action, path, "expected a new or an empty folder");
    if (mkdir(path, 0777) != 0)
        cli_reject(action, path, "cannot be created: %s", strerror(errno));
    for (; *inside; inside++) {
        snprintf(folder, sizeof folder, "%.3000s/%s", path, *inside);
        if (mkdir(folder, 0777) != 0)
            cli_reject(action, folder, "cannot be created: %s", strerror(errno));
    }
}

/* ---- Export ---- */

/* Returns a case as JSON: all parameters of its problem, without the layout of tensors that are dense. */
static json_t *make_case(const struct vector_case *c)
{
    const struct problem *problem = &c->problem;
    json_t *params = json_object(), *outputs = json_array();
    struct field field;
    for (int i = 0; kernel_field(problem->kernel, i, &field); i++) {
        char name[FIELD_TEXT];
        if (field.tensor && field_is_blank(&field, problem))
            continue;
        field_name(&field, name);
        json_object_set_new(params, name, prompt_parameter(&field, problem));
    }
    char file[128];
    snprintf(file, sizeof file, "vectors/%.100s.safetensors", c->group);
    for (int o = 0; o < c->n_outputs; o++)
        json_array_append_new(outputs, json_pack("{s:s, s:s, s:s}", "name", c->output_names[o],
                                                 "file", file, "tensor", c->tensors[o]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "id", c->id, "kernel",
                     posenc_kernel_name(problem->kernel), "flags", c->flags, "note", c->note,
                     "source", c->source, "params", params, "outputs", outputs);
}

/* Opens a new file in a folder, or exits after a message; so does the next function. */
static FILE *open_inside(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.3000s/%.1000s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file)
        cli_reject("export", path, "cannot be written: %s", strerror(errno));
    return file;
}

static void close_written(FILE *file, const char *folder)
{
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed)
        cli_reject("export", folder, "cannot be written: %s", strerror(errno));
}

static int command_export(struct cli *cli, const char *folder)
{
    static const char *const inside[] = { "cases", "cases/golden", "vectors", NULL };
    struct vectors vectors;
    data_load_vectors(cli, &vectors);
    make_folders("export", folder, inside);
    for (size_t i = 0; i < vectors.n_files; i++) {
        FILE *file = open_inside(folder, vectors.files[i].name);
        fwrite(vectors.files[i].data, 1, vectors.files[i].bytes, file);
        close_written(file, folder);
    }
    FILE *file = open_inside(folder, "cases.jsonl");
    for (size_t i = 0; i < vectors.n; i++) {
        json_t *one = make_case(&vectors.cases[i]);
        if (!one)
            cli_reject("memory", NULL, "allocation failed");
        json_dumpf(one, file, JSON_SORT_KEYS);
        fputc('\n', file);
        json_decref(one);
    }
    close_written(file, folder);
    printf("%zu cases in %zu files: %s\n", vectors.n, vectors.n_files + 1, folder);
    vectors_free(&vectors);
    return EXIT_OK;
}

/* ---- Prompts and answers ---- */

/* Returns true if --kernel, --dtype and --case select a case. */
static bool is_selected(struct session *session, enum posenc_kernel kernel, const char *id)
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

/* Writes the prompts of golden vectors and of calls of models. Returns false if no call can be made. */
static bool write_prompts(struct session *session, const char *path)
{
    static struct guard_status status;
    const struct posenc_backend *writer = program_write_prompts(path);
    size_t n_problems;
    struct problem *problems = session_list_problems(session, session->cli->full, &n_problems);
    bool good = true;
    guard_set_status(&status);
    for (size_t i = 0; good && i < session->vectors.n; i++) {
        const struct vector_case *c = &session->vectors.cases[i];
        if (is_selected(session, c->problem.kernel, c->id))
            good = write_prompt(writer, &c->problem, c->id, c->want);
    }
    for (size_t i = 0; good && i < n_problems; i++) {
        char id[96];
        suite_model_id(&problems[i], i, id);
        if (is_selected(session, problems[i].kernel, id))
            good = write_prompt(writer, &problems[i], id, NULL);
    }
    free(problems);
    return good;
}

static int command_prompts(struct cli *cli, const char *path)
{
    static const char *const inside[] = { "prompts", "expected", "answers", NULL };
    struct session session = { .cli = cli };
    select_kernels_and_dtypes(cli, &session.selected);
    session_load_models(&session);
    session_check_model_kernels(&session);
    data_load_vectors(cli, &session.vectors);
    make_folders("prompts", path, inside);
    session_select_model_kernels(&session);
    if (!write_prompts(&session, path))
        cli_reject("memory", NULL, "allocation failed");
    if (program_files_error())
        cli_reject("prompts", NULL, "%s", program_files_error());
    session_check_patterns(&session);
    printf("%zu prompts: %s\n", program_files_count(), path);
    session_free(&session);
    return EXIT_OK;
}

/* Rejects an answer that belongs to no prompt of the folder: its name is mistyped. Hidden files are no answers. */
static void reject_surplus(const char *folder, const char *path)
{
    struct dirent *entry;
    struct stat status;
    char prompt[PATH_BYTES];
    DIR *answers = opendir(folder);
    while (answers && (entry = readdir(answers))) {
        snprintf(prompt, sizeof prompt, "%.3000s/prompts/%.256s", path, entry->d_name);
        if (entry->d_name[0] != '.' && stat(prompt, &status) != 0)
            cli_reject("answers", entry->d_name,
                       "expected the name of a prompt: %s does not exist", prompt);
    }
    if (answers)
        closedir(answers);
}

static int command_answers(struct cli *cli, const char *path)
{
    struct stat status;
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%.3000s/answers", path);
    if (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode))
        cli_reject("answers", path,
                   "expected a folder of posenc vectors prompts, with answers in it");
    reject_surplus(folder, path);
    cli->answers = path;
    cli->n_operands = 0;
    return command_verify(cli);
}

int command_vectors(struct cli *cli)
{
    const char *action = cli->n_operands > 0 ? cli->operands[0] : "",
               *path = cli->n_operands == 2 ? cli->operands[1] : NULL;
    if (path && strcmp(action, "export") == 0)
        return command_export(cli, path);
    if (path && strcmp(action, "prompts") == 0)
        return command_prompts(cli, path);
    if (path && strcmp(action, "answers") == 0)
        return command_answers(cli, path);
    cli_reject("vectors", *action ? action : NULL,
               "expected export DIR, prompts DIR or answers DIR");
}
