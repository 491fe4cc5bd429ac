/* Resolves the names of backends, kernels and types on the command line (see select.h). */
#define _POSIX_C_SOURCE 200809L
#include "select.h"
#include "base/text/text.h"
#include "conformance/problem/problem.h"
#include "plugins.h"
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Backends ---- */

/* Backends to choose from: the library's, then further plug-ins of --plugin. */
struct candidates {
    size_t n;
    const struct posenc_backend *backend[BACKENDS_MAX];
    bool is_plugin[BACKENDS_MAX]; /* named by --plugin */
    bool chosen[BACKENDS_MAX];
};

/* Returns true for a command that reports a crash of a plug-in as a result. For others it is an error. */
static bool has_results(const struct cli *cli)
{
    return strcmp(cli->command, "verify") == 0 || strcmp(cli->command, "bench") == 0 ||
           cli->answers;
}

static int add_plugin(const struct cli *cli, enum plugin_kind kind, const char *path,
                      struct candidates *candidates)
{
    static const char *const options[] = { "--plugin", "--exec", "answers" };
    const char *option = options[kind];
    char error[PLUGIN_ERROR];
    size_t at = 0;
    const struct posenc_backend *backend = plugins_make_stub(kind, path, error);
    if (!backend)
        return cli_reject(cli, option, path, "%s", error);
    if (plugins_load_error(backend) && !has_results(cli)) {
        cli_reject(cli, option, path, "cannot be loaded: %s", plugins_load_error(backend));
        worker_exit(EXIT_CONFORMANCE);
    }
    while (at < candidates->n && candidates->backend[at] != backend)
        at++;
    if (at == BACKENDS_MAX)
        return cli_reject(cli, option, path, "expected at most %d backends", BACKENDS_MAX);
    for (size_t i = 0; i < candidates->n; i++)
        if ((i != at || candidates->is_plugin[i]) &&
            strcmp(candidates->backend[i]->name, backend->name) == 0)
            return cli_reject(cli, option, path, "has the name %s, as another backend",
                              backend->name);
    candidates->n += at == candidates->n;
    candidates->backend[at] = backend;
    candidates->is_plugin[at] = true;
    return EXIT_OK;
}

static int list_candidates(const struct cli *cli, struct candidates *candidates)
{
    *candidates = (struct candidates){ 0 };
    while (candidates->n < BACKENDS_MAX && posenc_backend_at(candidates->n)) {
        candidates->backend[candidates->n] = posenc_backend_at(candidates->n);
        candidates->n++;
    }
    for (size_t i = 0; i < cli->plugin.n; i++)
        if (add_plugin(cli, PLUGIN_LIBRARY, cli->plugin.item[i], candidates) != EXIT_OK)
            return EXIT_USAGE;
    for (size_t i = 0; i < cli->exec.n; i++)
        if (add_plugin(cli, PLUGIN_PROGRAM, cli->exec.item[i], candidates) != EXIT_OK)
            return EXIT_USAGE;
    return cli->answers ? add_plugin(cli, PLUGIN_ANSWERS, cli->answers, candidates) : EXIT_OK;
}

/* Lists the names of the backends that run here. */
static size_t list_usable(const struct candidates *candidates, const char *names[BACKENDS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < candidates->n; i++)
        if (!posenc_backend_unavailable_reason(candidates->backend[i]))
            names[n++] = candidates->backend[i]->name;
    return n;
}

static int reject_unusable(const struct cli *cli, const char *item, const char *name,
                           const struct candidates *candidates, const char *unavailable_reason)
{
    const char *names[BACKENDS_MAX];
    const size_t n = list_usable(candidates, names);
    char text[512] = "";
    for (size_t i = 0; i < n; i++)
        text_list_add(text, sizeof text, ", ", names[i]);
    return cli_reject(cli, item, name, "cannot run here: %s; expected one of %s",
                      unavailable_reason, n > 0 ? text : "none");
}

static int reject_unknown(const struct cli *cli, const char *item, const char *name,
                          const struct candidates *candidates, bool with_families)
{
    const char *names[2 * BACKENDS_MAX];
    size_t n = list_usable(candidates, names);
    for (size_t i = 0; i < candidates->n && with_families; i++) {
        size_t at = 0; /* names are listed once */
        while (at < n && strcmp(names[at], candidates->backend[i]->family) != 0)
            at++;
        names[at] = candidates->backend[i]->family;
        n += at == n;
    }
    return cli_reject_name(cli, item, name, names, n);
}

static int reject_kernel(const struct cli *cli, const char *name, enum posenc_kernel kernel)
{
    return cli_reject(cli, cli->backend.n > 0 ? "--backend" : "--plugin", name,
                      "does not provide %s: expected one that does (posenc list backends)",
                      posenc_kernel_name(kernel));
}

/* Chooses the backends that one value of --backend names: a backend, or all of a family that run here. */
static int choose_named(const struct cli *cli, struct candidates *candidates, const char *name)
{
    const char *unavailable_reason = NULL;
    bool known = false, usable = false;
    for (size_t i = 0; i < candidates->n; i++) {
        const bool exact = strcmp(candidates->backend[i]->name, name) == 0;
        if (!exact && strcmp(candidates->backend[i]->family, name) != 0)
            continue;
        const char *reason = posenc_backend_unavailable_reason(candidates->backend[i]);
        known = true;
        unavailable_reason = reason ? reason : unavailable_reason;
        usable = usable || !reason;
        candidates->chosen[i] = candidates->chosen[i] || !reason;
        if (exact && reason)
            return reject_unusable(cli, "--backend", name, candidates, reason);
    }
    /* A plug-in that could not be loaded may have that name. */
    for (size_t i = 0; i < candidates->n && !known; i++)
        if (candidates->is_plugin[i] && plugins_load_error(candidates->backend[i]))
            known = usable = candidates->chosen[i] = true;
    if (!known)
        return reject_unknown(cli, "--backend", name, candidates, true);
    return usable ? EXIT_OK
                  : reject_unusable(cli, "--backend", name, candidates, unavailable_reason);
}

/* Returns true if the command line adds a backend. */
static bool names_plugins(const struct cli *cli)
{
    return cli->plugin.n > 0 || cli->exec.n > 0 || cli->answers;
}

static int choose_candidates(const struct cli *cli, struct candidates *candidates,
                             bool plugins_alone)
{
    if (list_candidates(cli, candidates) != EXIT_OK)
        return EXIT_USAGE;
    for (size_t i = 0; i < cli->backend.n; i++)
        if (choose_named(cli, candidates, cli->backend.item[i]) != EXIT_OK)
            return EXIT_USAGE;
    for (size_t i = 0; i < candidates->n && cli->backend.n == 0; i++)
        candidates->chosen[i] =
            candidates->is_plugin[i] || !plugins_alone || !names_plugins(cli);
    for (size_t i = 0; i < candidates->n; i++)
        if (!candidates->chosen[i] && plugins_program_mode(candidates->backend[i]))
            return cli_reject(cli, "--backend", cli->backend.item[0],
                              "does not select the program %s: expected --backend %s besides, "
                              "or no --backend",
                              candidates->backend[i]->name, candidates->backend[i]->name);
    return EXIT_OK;
}

int select_require(const struct cli *cli, const struct selection *selection,
                   enum posenc_kernel kernel)
{
    for (size_t i = 0; i < selection->n; i++)
        if (posenc_backend_provides(selection->backends[i], kernel) &&
            !posenc_backend_unavailable_reason(selection->backends[i]))
            return EXIT_OK;
    return reject_kernel(cli, selection->n > 0 ? selection->backends[0]->name : NULL, kernel);
}

int select_one(struct cli *cli, enum posenc_kernel kernel,
               const struct posenc_backend **backend)
{
    *backend = NULL;
    if (cli->backend.n == 0 && cli->plugin.n == 0)
        return EXIT_OK;
    struct candidates candidates;
    if (choose_candidates(cli, &candidates, true) != EXIT_OK)
        return EXIT_USAGE;
    if (cli->backend.n > 1)
        return cli_reject(cli, "--backend", cli->backend.item[1], "expected one backend");
    const char *name = cli->backend.n > 0 ? cli->backend.item[0] : cli->plugin.item[0];
    for (size_t i = 0; i < candidates.n; i++) {
        const char *unavailable_reason =
            posenc_backend_unavailable_reason(candidates.backend[i]);
        if (candidates.chosen[i] && unavailable_reason)
            return reject_unusable(cli, "--plugin", name, &candidates, unavailable_reason);
        if (candidates.chosen[i] && posenc_backend_provides(candidates.backend[i], kernel)) {
            *backend = candidates.backend[i];
            return EXIT_OK;
        }
    }
    return reject_kernel(cli, name, kernel);
}

int select_environment(const struct cli *cli)
{
    struct candidates candidates;
    const struct cli without_plugins = { .command = cli->command };
    const char *forced = getenv("POSENC_BACKEND"), *ceiling = getenv("POSENC_MAX_ISA");
    if (list_candidates(&without_plugins, &candidates) != EXIT_OK)
        return EXIT_USAGE;
    if (forced && *forced != '\0') {
        const struct posenc_backend *backend = posenc_backend_find(forced);
        if (!backend)
            return reject_unknown(cli, "POSENC_BACKEND", forced, &candidates, false);
        const char *reason = posenc_backend_unavailable_reason(backend);
        return !reason ? EXIT_OK
                       : reject_unusable(cli, "POSENC_BACKEND", forced, &candidates, reason);
    }
    if (ceiling && *ceiling != '\0' && !posenc_backend_find(ceiling))
        return reject_unknown(cli, "POSENC_MAX_ISA", ceiling, &candidates, false);
    return EXIT_OK;
}

/* ---- Kernels ---- */

static int find_kernel(const struct cli *cli, const char *name, enum posenc_kernel *kernel)
{
    *kernel = posenc_kernel_find(name);
    if (*kernel != POSENC_KERNEL_NONE)
        return EXIT_OK;
    const char *names[POSENC_KERNEL_COUNT];
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        names[k] = posenc_kernel_name((enum posenc_kernel)k);
    return cli_reject_name(cli, "--kernel", name, names, POSENC_KERNEL_COUNT);
}

/* ---- Element types ---- */

int select_dtypes(const struct cli *cli, struct selection *selection)
{
    for (size_t i = 0; i < cli->dtype.n; i++) {
        int dtype = 0;
        while (dtype < N_DTYPES && strcmp(cli->dtype.item[i], dtype_names[dtype]) != 0)
            dtype++;
        if (dtype == N_DTYPES)
            return cli_reject_name(cli, "--dtype", cli->dtype.item[i], dtype_names, N_DTYPES);
        selection->dtypes[dtype] = selection->any_dtype = true;
    }
    return EXIT_OK;
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
    return !selection->any_dtype || selection->dtypes[case_dtype(id)];
}

bool selection_times_dtype(const struct selection *selection, const struct model *model,
                           enum posenc_dtype dtype)
{
    return selection->any_dtype ? selection->dtypes[dtype]
                                : dtype == (model ? model->storage : POSENC_DTYPE_F32);
}

struct bench_case case_with_dtype(const struct model_case *one, enum posenc_dtype dtype)
{
    struct bench_case stored = { .problem = one->problem };
    size_t kernel = strcspn(one->id, "/");
    const char *rest = one->id[kernel] == '/' ? strchr(one->id + kernel + 1, '/') : NULL;
    stored.problem.dtype = dtype;
    snprintf(stored.id, sizeof stored.id, "%.*s/%s%s", (int)kernel, one->id, dtype_names[dtype],
             rest ? rest : "");
    return stored;
}

/* ---- Selections ---- */

int select_kernels_and_dtypes(const struct cli *cli, struct selection *selection)
{
    for (size_t i = 0; i < cli->kernel.n; i++) {
        enum posenc_kernel kernel;
        if (find_kernel(cli, cli->kernel.item[i], &kernel) != EXIT_OK)
            return EXIT_USAGE;
        selection->kernels[kernel] = selection->names_kernels = true;
    }
    return select_dtypes(cli, selection);
}

int select_all(struct cli *cli, struct selection *selection, bool plugins_alone)
{
    struct candidates candidates;
    *selection = (struct selection){ 0 };
    if (choose_candidates(cli, &candidates, plugins_alone) != EXIT_OK)
        return EXIT_USAGE;
    for (size_t i = 0; i < candidates.n; i++)
        if (candidates.chosen[i]) {
            selection->is_plugin[selection->n] = candidates.is_plugin[i];
            selection->backends[selection->n++] = candidates.backend[i];
        }
    return select_kernels_and_dtypes(cli, selection);
}

/* ---- Shards ---- */

enum { SHARDS_MAX = 4096 };

int shard_parse(const struct cli *cli, struct shard *shard)
{
    int end = 0;
    *shard = (struct shard){ 0, 0 };
    if (!cli->shard)
        return EXIT_OK;
    const int n = sscanf(cli->shard, "%4d/%4d%n", &shard->i, &shard->n, &end);
    if (n == 2 && cli->shard[end] == '\0' && shard->n >= 1 && shard->n <= SHARDS_MAX &&
        shard->i >= 0 && shard->i < shard->n)
        return EXIT_OK;
    return cli_reject(
        cli, "--shard", cli->shard,
        "expected I/N, share I of N with I from 0 to N - 1 and N at most %d, e.g. "
        "0/4, 1/4, 2/4 and 3/4",
        SHARDS_MAX);
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
