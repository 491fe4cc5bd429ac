/*
 * posenc vectors: writes the calls of golden vectors and of models, with their expected outputs, as files for programs in
 * any language (docs/protocol.md). The verdict on the answers is that of posenc verify.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/oracle/oracle.h"
#include "conformance/problem/guard.h"
#include "conformance/program/program.h"
#include "conformance/suites/suites.h"
#include "data.h"
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

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

/* Writes the prompts of golden vectors and of calls of models. Returns their number; -1: no call can be made. */
static int write_prompts(struct session *session, const char *path)
{
    static struct guard_status status;
    const struct posenc_backend *writer = program_write_prompts(path);
    size_t n_problems;
    struct problem *problems = session_list_problems(session, session->cli->full, &n_problems);
    int n = 0;
    bool good = true;
    guard_set_status(&status);
    for (size_t i = 0; good && i < session->vectors.n; i++) {
        const struct vector_case *c = &session->vectors.cases[i];
        if (wants(session, c->problem.kernel, c->id) && ++n)
            good = write_prompt(writer, &c->problem, c->id, c->want);
    }
    for (size_t i = 0; good && i < n_problems; i++) {
        char id[96];
        suite_model_id(&problems[i], i, id);
        if (wants(session, problems[i].kernel, id) && ++n)
            good = write_prompt(writer, &problems[i], id, NULL);
    }
    free(problems);
    return good ? n : -1;
}

/* Makes a folder, which must be new or empty, with the folders inside. */
static void make_folders(const char *path)
{
    static const char *const inside[] = { "", "prompts", "expected", "answers" };
    char folder[PATH_BYTES];
    if (rmdir(path) != 0 && errno != ENOENT)
        cli_reject("prompts", path, "expected a new or an empty folder");
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        snprintf(folder, sizeof folder, "%.3000s/%s", path, inside[i]);
        if (mkdir(folder, 0777) != 0)
            cli_reject("prompts", folder, "cannot be created: %s", strerror(errno));
    }
}

static int command_prompts(struct cli *cli, const char *path)
{
    struct session session = { .cli = cli };
    select_kernels_and_dtypes(cli, &session.selected);
    session_load_models(&session);
    session_check_model_kernels(&session);
    data_vectors(cli, &session.vectors);
    make_folders(path);
    session_select_model_kernels(&session);
    const int n = write_prompts(&session, path);
    if (n < 0)
        cli_reject("memory", NULL, "allocation failed");
    if (program_files_error())
        cli_reject("prompts", NULL, "%s", program_files_error());
    session_check_patterns(&session);
    printf("%d prompts: %s\n", n, path);
    session_free(&session);
    return EXIT_OK;
}

static int command_answers(struct cli *cli, const char *path)
{
    struct stat status;
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%.3000s/answers", path);
    if (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode))
        cli_reject("answers", path,
                   "expected a folder of posenc vectors prompts, with answers in it");
    cli->answers = path;
    cli->n_operands = 0;
    return command_verify(cli);
}

int command_vectors(struct cli *cli)
{
    const char *action = cli->n_operands > 0 ? cli->operands[0] : "",
               *path = cli->n_operands == 2 ? cli->operands[1] : NULL;
    if (path && strcmp(action, "prompts") == 0)
        return command_prompts(cli, path);
    if (path && strcmp(action, "answers") == 0)
        return command_answers(cli, path);
    cli_reject("vectors", *action ? action : NULL, "expected prompts DIR or answers DIR");
}
