/* Resolves the names of backends, kernels and types on the command line, shards and tuning files (see select.h). */
#define _POSIX_C_SOURCE 200809L
#include "select.h"
#include "base/text/text.h"
#include "conformance/problem/problem.h"
#include "plugins.h"
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns a variable of the environment, or NULL if it is empty. */
static const char *read_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* ---- Backends ---- */

/* Returns true for a command that reports a crash of a plug-in as a result. For others it is an error. */
static bool has_results(const struct cli *cli)
{
    return strcmp(cli->command, "verify") == 0 || strcmp(cli->command, "bench") == 0 ||
           cli->answers;
}

static void add_candidate(struct candidates *candidates, const struct posenc_backend *backend)
{
    candidates->reason[candidates->n] = posenc_backend_unavailable_reason(backend);
    candidates->backend[candidates->n++] = backend;
}

/* Adds a plug-in, or marks it if it is among the candidates already. Rejects another plug-in with the name of one. */
static void add_plugin(const struct cli *cli, enum plugin_kind kind, const char *path,
                       struct candidates *candidates)
{
    static const char *const options[] = { "--plugin", "--exec", "answers" }; /* by kind */
    const char *option = options[kind];
    char error[PLUGIN_ERROR];
    size_t at = 0; /* index of the candidate */
    const struct posenc_backend *backend = plugins_make_stub(kind, path, error);
    if (!backend)
        cli_reject(option, path, "%s", error);
    if (plugins_load_error(backend) && !has_results(cli)) {
        cli_complain(option, path, "cannot be loaded: %s", plugins_load_error(backend));
        worker_exit(EXIT_CONFORMANCE);
    }
    while (at < candidates->n && candidates->backend[at] != backend)
        at++;
    if (at == BACKENDS_MAX)
        cli_reject(option, path, "expected at most %d backends", BACKENDS_MAX);
    for (size_t i = 0; i < candidates->n; i++)
        if ((i != at || candidates->is_plugin[i]) &&
            strcmp(candidates->backend[i]->name, backend->name) == 0)
            cli_reject(option, path, "has the name %s, as another backend", backend->name);
    if (at == candidates->n)
        add_candidate(candidates, backend);
    candidates->is_plugin[at] = true;
}

/* Lists the library's backends, then further plug-ins of --plugin. */
static struct candidates list_candidates(const struct cli *cli)
{
    struct candidates candidates = { 0 };
    while (candidates.n < BACKENDS_MAX && posenc_backend_at(candidates.n))
        add_candidate(&candidates, posenc_backend_at(candidates.n));
    for (size_t i = 0; i < cli->plugin.n; i++)
        add_plugin(cli, PLUGIN_LIBRARY, cli->plugin.item[i], &candidates);
    for (size_t i = 0; i < cli->exec.n; i++)
        add_plugin(cli, PLUGIN_PROGRAM, cli->exec.item[i], &candidates);
    if (cli->answers)
        add_plugin(cli, PLUGIN_ANSWERS, cli->answers, &candidates);
    return candidates;
}

/* Rejects the name of a backend that is unknown, or cannot run here for a reason, and lists the others. */
_Noreturn static void reject_backend(const char *item, const char *name,
                                     const struct candidates *candidates, const char *reason)
{
    const char *names[2 * BACKENDS_MAX];
    char list[512] = "";
    size_t n = 0;
    for (size_t i = 0; i < candidates->n; i++)
        if (!candidates->reason[i])
            names[n++] = candidates->backend[i]->name;
    const size_t n_usable = n;
    for (size_t i = 0; i < candidates->n && strcmp(item, "--backend") == 0; i++) {
        const char *family = candidates->backend[i]->family;
        size_t same = 0;
        while (same < n && strcmp(names[same], family) != 0)
            same++;
        if (same == n)
            names[n++] = family;
    }
    if (!reason)
        cli_reject_name(item, name, names, n);
    for (size_t i = 0; i < n_usable; i++)
        text_list_add(list, sizeof list, ", ", names[i]);
    cli_reject(item, name, "cannot run here: %s; expected one of %s", reason, list);
}

/* Chooses the backends that one value of --backend names: a backend, or all of a family that run here. */
static void choose_named(struct candidates *candidates, const char *name)
{
    const char *first_reason = NULL; /* of the family's backends that cannot run here */
    bool is_usable = false;
    for (size_t i = 0; i < candidates->n; i++) {
        const bool is_name = strcmp(candidates->backend[i]->name, name) == 0;
        const char *reason = candidates->reason[i];
        if (!is_name && strcmp(candidates->backend[i]->family, name) != 0)
            continue;
        if (is_name && reason)
            reject_backend("--backend", name, candidates, reason);
        if (!reason)
            is_usable = candidates->chosen[i] = true;
        else if (!first_reason)
            first_reason = reason;
    }
    /* A plug-in that could not be loaded may have that name. */
    for (size_t i = 0; i < candidates->n && !is_usable && !first_reason; i++)
        if (candidates->is_plugin[i] && plugins_load_error(candidates->backend[i]))
            is_usable = candidates->chosen[i] = true;
    if (!is_usable)
        reject_backend("--backend", name, candidates, first_reason);
}

void select_named(const struct cli *cli, struct candidates *candidates)
{
    for (size_t i = 0; i < candidates->n; i++)
        candidates->chosen[i] = cli->backend.n == 0;
    for (size_t i = 0; i < cli->backend.n; i++)
        choose_named(candidates, cli->backend.item[i]);
    for (size_t i = 0; i < candidates->n; i++)
        if (!candidates->chosen[i] && plugins_program_mode(candidates->backend[i]))
            cli_reject("--backend", cli->backend.item[0],
                       "does not select the program %s: expected --backend %s besides, or no "
                       "--backend",
                       candidates->backend[i]->name, candidates->backend[i]->name);
}

const struct posenc_backend *select_require(const struct cli *cli,
                                            const struct selection *selection,
                                            enum posenc_kernel kernel)
{
    const char *option = cli->backend.n > 0 ? "--backend" : "--plugin",
               *name = selection->n > 0 ? selection->backends[0]->name : NULL;
    for (size_t i = 0; i < selection->n; i++)
        if (posenc_backend_provides(selection->backends[i], kernel) &&
            !posenc_backend_unavailable_reason(selection->backends[i]))
            return selection->backends[i];
    if (selection->n == 1 && posenc_backend_unavailable_reason(selection->backends[0]))
        cli_reject(option, name, "cannot run here: %s",
                   posenc_backend_unavailable_reason(selection->backends[0]));
    cli_reject(option, name,
               "does not provide %s: expected one that does (posenc list backends)",
               posenc_kernel_name(kernel));
}

const struct posenc_backend *select_one(const struct cli *cli, enum posenc_kernel kernel)
{
    struct selection selection;
    if (cli->backend.n == 0 && cli->plugin.n == 0)
        return NULL;
    if (cli->backend.n > 1)
        cli_reject("--backend", cli->backend.item[1], "expected one backend");
    select_all(cli, &selection, true);
    return select_require(cli, &selection, kernel);
}

void select_environment(const struct cli *cli)
{
    const struct candidates candidates =
        list_candidates(&(struct cli){ .command = cli->command });
    const char *forced = read_environment("POSENC_BACKEND"),
               *ceiling = read_environment("POSENC_MAX_ISA");
    const struct posenc_backend *backend = forced ? posenc_backend_find(forced) : NULL;
    const char *reason = backend ? posenc_backend_unavailable_reason(backend) : NULL;
    if (forced && (!backend || reason))
        reject_backend("POSENC_BACKEND", forced, &candidates, reason);
    if (!forced && ceiling && !posenc_backend_find(ceiling))
        reject_backend("POSENC_MAX_ISA", ceiling, &candidates, NULL);
}

/* ---- Element types ---- */

void select_dtypes(const struct cli *cli, struct selection *selection)
{
    for (size_t i = 0; i < cli->dtype.n; i++) {
        const size_t dtype =
            cli_find_name("--dtype", cli->dtype.item[i], dtype_names, N_DTYPES);
        selection->dtypes[dtype] = selection->names_dtypes = true;
    }
}

enum posenc_dtype case_dtype(const char *id)
{
    const char *after = strchr(id, '/');
    for (int dtype = 0; dtype < N_DTYPES && after; dtype++) {
        size_t n = strlen(dtype_names[dtype]);
        if (strncmp(after + 1, dtype_names[dtype], n) == 0 && after[1 + n] == '/')
            return (enum posenc_dtype)dtype;
    }
    return POSENC_DTYPE_F32;
}

bool selection_has_dtype(const struct selection *selection, const char *id)
{
    return !selection->names_dtypes || selection->dtypes[case_dtype(id)];
}

bool selection_times_dtype(const struct selection *selection, const struct model *model,
                           enum posenc_dtype dtype)
{
    return selection->names_dtypes ? selection->dtypes[dtype]
                                   : dtype == (model ? model->storage : POSENC_DTYPE_F32);
}

struct bench_case case_with_dtype(const struct model_case *one, enum posenc_dtype dtype)
{
    struct bench_case result = { .problem = one->problem };
    const size_t kernel = strcspn(one->id, "/"); /* length of its name */
    const char *rest = one->id[kernel] == '/' ? strchr(one->id + kernel + 1, '/') : NULL;
    result.problem.dtype = dtype;
    snprintf(result.id, sizeof result.id, "%.*s/%s%s", (int)kernel, one->id, dtype_names[dtype],
             rest ? rest : "");
    return result;
}

/* ---- Selections ---- */

void select_kernels_and_dtypes(const struct cli *cli, struct selection *selection)
{
    const char *names[POSENC_KERNEL_COUNT];
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        names[k] = posenc_kernel_name((enum posenc_kernel)k);
    for (size_t i = 0; i < cli->kernel.n; i++) {
        const size_t kernel =
            cli_find_name("--kernel", cli->kernel.item[i], names, POSENC_KERNEL_COUNT);
        selection->kernels[kernel] = selection->names_kernels = true;
    }
    select_dtypes(cli, selection);
}

void select_all(const struct cli *cli, struct selection *selection, bool plugins_alone)
{
    const bool names_plugins = cli->plugin.n > 0 || cli->exec.n > 0 || cli->answers;
    const bool no_others = plugins_alone && names_plugins && cli->backend.n == 0;
    struct candidates candidates = list_candidates(cli);
    select_named(cli, &candidates);
    *selection = (struct selection){ 0 };
    for (size_t i = 0; i < candidates.n; i++)
        if (candidates.chosen[i] && (candidates.is_plugin[i] || !no_others)) {
            selection->is_plugin[selection->n] = candidates.is_plugin[i];
            selection->backends[selection->n++] = candidates.backend[i];
        }
    select_kernels_and_dtypes(cli, selection);
}

/* ---- Shards ---- */

enum { SHARDS_MAX = 4096 };

struct shard shard_parse(const struct cli *cli)
{
    struct shard shard = { 0, 0 };
    int end = 0;
    if (!cli->shard)
        return shard;
    const int n = sscanf(cli->shard, "%4d/%4d%n", &shard.i, &shard.n, &end);
    if (n != 2 || cli->shard[end] != '\0' || shard.n < 1 || shard.n > SHARDS_MAX ||
        shard.i < 0 || shard.i >= shard.n)
        cli_reject("--shard", cli->shard,
                   "expected I/N, share I of N with I from 0 to N - 1 and N at most %d, e.g. "
                   "0/4, 1/4, 2/4 and 3/4",
                   SHARDS_MAX);
    return shard;
}

/* Returns the length of the part of an id that determines its share. The checks of the memory suite on a kernel in a
 * type run together: their share is that of "kernel/dtype/memory". */
static size_t hashed_length(const char *id)
{
    static const char memory[] = "/memory/";
    const char *suite = strstr(id, memory);
    return suite ? (size_t)(suite - id) + strlen(memory) - 1 : strlen(id);
}

/* Returns true if the hash of the id modulo n is i: 64-bit FNV-1a, then the finalizer of MurmurHash3. */
bool shard_has_case(const struct shard *shard, const char *id)
{
    uint64_t hash = 0xcbf29ce484222325u;
    if (shard->n == 0)
        return true;
    for (size_t i = 0, n = hashed_length(id); i < n; i++)
        hash = (hash ^ (unsigned char)id[i]) * 0x100000001b3u;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
    return (hash ^ hash >> 33) % (uint64_t)shard->n == (uint64_t)shard->i;
}

/* ---- The tuning file ---- */

enum { TUNING_PATH = 4096 };

/* Path of the user's tuning file, or "" if it is not considered. */
static char user_file[TUNING_PATH];
static char user_file_error[512]; /* why that is rejected, or "" */

/* Writes $XDG_CONFIG_HOME/posenc/tuning or ~/.config/posenc/tuning. Returns false without a home folder. */
static bool find_user_file(char path[TUNING_PATH])
{
    const char *config = read_environment("XDG_CONFIG_HOME"), *home = read_environment("HOME");
    if (!config && !home)
        return false;
    const int n = snprintf(path, TUNING_PATH, "%s%s/posenc/tuning", config ? config : home,
                           config ? "" : "/.config");
    return n > 0 && n < TUNING_PATH;
}

/* Returns true if the environment selects the backend, which overrides tuning files. */
static bool is_backend_forced(void)
{
    return read_environment("POSENC_BACKEND") || read_environment("POSENC_MAX_ISA");
}

void tuning_file_select_default(void)
{
    struct posenc_error error;
    if (read_environment("POSENC_TUNING") || is_backend_forced() ||
        !find_user_file(user_file) || access(user_file, R_OK) != 0)
        *user_file = '\0';
    else if (posenc_load_tuning(user_file, &error) != POSENC_OK)
        snprintf(user_file_error, sizeof user_file_error, "%s", error.what);
}

const char *tuning_file_in_force(const char **unused_reason)
{
    const char *from_environment = read_environment("POSENC_TUNING");
    *unused_reason = NULL;
    if (from_environment && is_backend_forced())
        *unused_reason = "POSENC_BACKEND or POSENC_MAX_ISA is set.";
    else if (!from_environment && *user_file_error)
        *unused_reason = user_file_error;
    return from_environment ? from_environment : user_file;
}

void tuning_file_select_environment(void)
{
    struct posenc_error error;
    const char *path = read_environment("POSENC_TUNING");
    if (!path || is_backend_forced())
        return;
    if (posenc_load_tuning(path, &error) != POSENC_OK)
        cli_reject("POSENC_TUNING", NULL, "%s", error.what);
    (void)!posenc_select(NULL, NULL);
}
