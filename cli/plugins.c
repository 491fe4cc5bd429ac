/* Makes stubs of plug-ins from properties that a worker stores, and loads plug-ins in workers (see plugins.h). */
#define _GNU_SOURCE
#include "plugins.h"
#include "args.h"
#include "base/text/text.h"
#include "conformance/program/program.h"
#include "outputs.h"
#include "worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LANES = 64, MOST_PLUGINS = 2 * BACKENDS_MAX };

/* Properties of a plug-in, in memory that the worker that loads it shares. */
struct plugin_facts {
    struct posenc_backend backend; /* of its functions, only which there are is of use here */
    char name[64], family[64], description[512], required_features[256];
    int n_lanes, lanes[2]; /* number of calls of lanes(), and their results */
    bool is_plugin, is_usable;
    char error[PLUGIN_ERROR];
};

struct plugin {
    struct posenc_backend stub;
    enum plugin_kind kind;
    struct plugin_facts facts, *shared;
    struct stat file;
    char path[WORKER_PATH];
    char load_error[WORKER_CAUSE + WORKER_ACTIVITY]; /* how loading it failed, or "" */
    char lanes_error[256];                           /* defect of lanes(), or "" */
    int n_lanes;
    bool is_loaded; /* into this process */
};

static struct plugin *plugins[MOST_PLUGINS];
static size_t n_plugins;
static bool loads_all; /* new plug-ins are loaded at once */
static double limit_s = (double)NAN;

void plugins_set_limit(double seconds) { limit_s = seconds; }

/* ---- The worker that loads a plug-in ---- */

/* Loads or starts a plug-in. Returns its backend, or NULL and a reason. */
static const struct posenc_backend *open_plugin(const struct plugin *plugin,
                                                char error[PLUGIN_ERROR])
{
    if (plugin->kind == PLUGIN_LIBRARY)
        return plugin_find(plugin->path, error);
    if (plugin->kind == PLUGIN_ANSWERS)
        return program_read_answers(plugin->path);
    program_on_loss(worker_fail);
    return program_start(plugin->path, worker_limits_of(limit_s, 0.0).inside_s, error);
}

static void copy_backend(const struct posenc_backend *found, struct posenc_backend *to)
{
    *to = (struct posenc_backend){ .size = 0 };
    memcpy(to, found, found->size < sizeof *found ? found->size : sizeof *to);
}

static void describe_backend(const struct posenc_backend *found, struct plugin_facts *facts)
{
    copy_backend(found, &facts->backend);
    snprintf(facts->name, sizeof facts->name, "%s", found->name);
    snprintf(facts->family, sizeof facts->family, "%s", found->family);
    snprintf(facts->description, sizeof facts->description, "%s", found->description);
    snprintf(facts->required_features, sizeof facts->required_features, "%s",
             found->required_features ? found->required_features : "");
    facts->is_usable = true;
}

/* Stores the properties of the plug-in, then the results of lanes(), which may hang. lanes() is not called if the CPU
 * lacks features that the plug-in requires, since it may execute such instructions. */
static size_t store_facts(void *user, size_t first)
{
    const struct plugin *plugin = user;
    struct plugin_facts *facts = plugin->shared;
    worker_set_activity(plugin->kind == PLUGIN_LIBRARY, PLUGINS_LOADING);
    char error[PLUGIN_ERROR] = "";
    const struct posenc_backend *found = open_plugin(plugin, error);
    facts->is_plugin = found || (plugin->kind == PLUGIN_PROGRAM && program_has_started());
    if (found && plugin_check(found, error))
        describe_backend(found, facts);
    else
        snprintf(facts->error, PLUGIN_ERROR, "%s%.1000s",
                 !found                           ? ""
                 : plugin->kind == PLUGIN_LIBRARY ? "the plug-in "
                                                  : "the program ",
                 error);
    worker_set_activity(true, "in lanes()");
    for (; facts->is_usable && facts->n_lanes < 2 && found->lanes &&
           !posenc_backend_unavailable_reason(found);
         facts->n_lanes++)
        facts->lanes[facts->n_lanes] = found->lanes();
    worker_set_activity(false, plugin->kind == PLUGIN_LIBRARY ? "while it was unloaded"
                                                              : "after its hello");
    plugins_unload();
    return first + 1;
}

/* ---- The parent of that worker ---- */

/* Stores how the plug-in ended its worker, in lanes() or before. */
static size_t store_early_end(void *user, const struct worker_end *end)
{
    struct plugin *plugin = user;
    const bool in_lanes = strcmp(end->status->activity, "in lanes()") == 0;
    if (plugin->shared->is_usable || !plugin->shared->error[0])
        snprintf(in_lanes ? plugin->lanes_error : plugin->load_error,
                 in_lanes ? sizeof plugin->lanes_error : sizeof plugin->load_error, "%s %s",
                 end->cause, end->status->activity);
    return 1;
}

static bool is_not_interrupted(void *user)
{
    (void)user;
    return outputs_interrupted() == 0;
}

/* Fills the facts, and the errors of loading and of lanes(). */
static void load_in_worker(struct plugin *plugin)
{
    enum { START_S = 600 }; /* a program's own limit ends first */
    const struct worker_limits limits = worker_limits_of(limit_s, START_S);
    struct worker_job job = {
        .user = plugin, .n_steps = 1, .run = store_facts, .on_early_end = store_early_end
    };
    plugin->shared = mmap(NULL, sizeof *plugin->shared, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (plugin->shared == MAP_FAILED)
        abort(); /* plug-ins must not be loaded in this process */
    const bool ran = workers_run(&job, 1, 1, &limits, is_not_interrupted, NULL);
    plugin->facts = *plugin->shared;
    munmap(plugin->shared, sizeof *plugin->shared);
    if (!ran) {
        plugin->facts.is_usable = false;
        snprintf(plugin->facts.error, PLUGIN_ERROR, "cannot be loaded: interrupted");
    } else if (plugin->facts.is_plugin && !plugin->facts.is_usable && !plugin->load_error[0]) {
        snprintf(plugin->load_error, sizeof plugin->load_error, "%.319s", plugin->facts.error);
    }
}

/* ---- Stubs ---- */

#define POSENC_KERNEL(ID, kernel, signature, ...)                                              \
    static enum posenc_status absent_##kernel(const struct posenc_##signature##_args *args)    \
    {                                                                                          \
        (void)args;                                                                            \
        return POSENC_ERR_NOT_PROVIDED;                                                        \
    }
#include <posenc_kernels.def>
#undef POSENC_KERNEL

/* Vector width of the plug-in that was loaded last. */
static int32_t loaded_lanes;
static int32_t get_loaded_lanes(void) { return loaded_lanes; }

/* Sets the members of the stub that come from the facts, not from the loaded plug-in. */
static void set_texts(struct plugin *plugin)
{
    struct posenc_backend *b = &plugin->stub;
    b->size = sizeof *b;
    b->name = plugin->facts.name;
    b->family = plugin->facts.family;
    b->description = plugin->facts.description;
    b->required_features = plugin->facts.required_features;
    b->lanes = plugin->facts.backend.lanes ? get_loaded_lanes : NULL;
}

static void fill_stub(struct plugin *plugin)
{
    struct posenc_backend *b = &plugin->stub;
    *b = plugin->facts.backend;
    b->abi = POSENC_ABI;
    set_texts(plugin);
#define POSENC_KERNEL(ID, kernel, ...) b->kernel = b->kernel ? absent_##kernel : NULL;
#include <posenc_kernels.def>
#undef POSENC_KERNEL
}

/* Makes facts for a plug-in that cannot be loaded: named after its file, and with all kernels, so that each kernel gets
 * a failed result. */
static void describe_unloadable(struct plugin *plugin)
{
    const char *slash = strrchr(plugin->path, '/'), *file = slash ? slash + 1 : plugin->path;
    struct plugin_facts *facts = &plugin->facts;
    *facts = (struct plugin_facts){ .name = "plugin", .is_usable = true };
    for (size_t n = 0; file[n] != '\0' && file[n] != '.' && n < sizeof facts->name - 1; n++) {
        const bool good =
            (file[n] >= 'a' && file[n] <= 'z') || (file[n] >= '0' && file[n] <= '9');
        facts->name[n] = good ? file[n] : '_';
        facts->name[n + 1] = '\0';
    }
    memcpy(facts->family, facts->name, sizeof facts->family);
    snprintf(facts->description, sizeof facts->description, "cannot be loaded: %.200s",
             plugin->load_error);
#define POSENC_KERNEL(ID, kernel, ...) facts->backend.kernel = absent_##kernel;
#include <posenc_kernels.def>
#undef POSENC_KERNEL
}

/* Checks that lanes() returns the same number each time, at most the padding of frequencies. */
static void check_lanes(struct plugin *plugin)
{
    const int first = plugin->facts.lanes[0], second = plugin->facts.lanes[1];
    if (plugin->lanes_error[0] != '\0' || plugin->facts.n_lanes < 2)
        return;
    if (first != second)
        snprintf(plugin->lanes_error, sizeof plugin->lanes_error, "lanes() is %d, then %d",
                 first, second);
    else if (first < 1 || first > MOST_LANES)
        snprintf(plugin->lanes_error, sizeof plugin->lanes_error,
                 "lanes() is %d: expected 1 to %d", first, MOST_LANES);
    else
        plugin->n_lanes = first;
}

static struct plugin *find_plugin(const struct posenc_backend *backend)
{
    for (size_t i = 0; i < n_plugins; i++)
        if (&plugins[i]->stub == backend)
            return plugins[i];
    return NULL;
}

static struct plugin *find_by_file(const struct stat *file)
{
    for (size_t i = 0; i < n_plugins; i++)
        if (plugins[i]->file.st_dev == file->st_dev && plugins[i]->file.st_ino == file->st_ino)
            return plugins[i];
    return NULL;
}

static void reject_program(struct plugin *plugin)
{
    plugin->facts.is_usable = false;
    snprintf(plugin->facts.error, PLUGIN_ERROR, "%s", plugin->load_error);
}

/* Adds a plug-in to the list, or frees it and returns NULL with a reason. A program without a hello is rejected, as its
 * kernels are unknown. */
static struct plugin *register_plugin(struct plugin *plugin, char error[PLUGIN_ERROR])
{
    if (plugin->load_error[0] != '\0' && plugin->kind == PLUGIN_PROGRAM)
        reject_program(plugin);
    else if (plugin->load_error[0] != '\0')
        describe_unloadable(plugin);
    fill_stub(plugin);
    if (!plugin->facts.is_usable || !plugin_has_free_name(&plugin->stub, plugin->facts.error)) {
        snprintf(error, PLUGIN_ERROR, "%s", plugin->facts.error);
        free(plugin);
        return NULL;
    }
    check_lanes(plugin);
    plugins[n_plugins++] = plugin;
    if (loads_all)
        plugins_load(&plugin->stub);
    return plugin;
}

const struct posenc_backend *plugins_make_stub(enum plugin_kind kind, const char *path,
                                               char error[PLUGIN_ERROR])
{
    struct stat file = { .st_ino = 0 }; /* dlopen() reports a missing file */
    const bool there = kind == PLUGIN_LIBRARY && stat(path, &file) == 0;
    struct plugin *plugin = there ? find_by_file(&file) : NULL;
    if (strlen(path) >= WORKER_PATH) {
        snprintf(error, PLUGIN_ERROR, "expected at most %d characters", WORKER_PATH - 1);
        return NULL;
    }
    if (plugin)
        return &plugin->stub;
    if (n_plugins == MOST_PLUGINS) {
        snprintf(error, PLUGIN_ERROR, "there are more than %d plug-ins", MOST_PLUGINS);
        return NULL;
    }
    plugin = cli_allocate(1, sizeof *plugin);
    plugin->kind = kind;
    plugin->file = file;
    snprintf(plugin->path, sizeof plugin->path, "%s", path);
    load_in_worker(plugin);
    plugin = register_plugin(plugin, error);
    return plugin ? &plugin->stub : NULL;
}

bool plugins_is_stub(const struct posenc_backend *backend)
{
    return find_plugin(backend) != NULL;
}

enum program_mode plugins_program_mode(const struct posenc_backend *backend)
{
    static const enum program_mode modes[] = { NO_PROGRAM, PROGRAM_RUNS, PROGRAM_ANSWERED };
    const struct plugin *plugin = find_plugin(backend);
    return plugin ? modes[plugin->kind] : NO_PROGRAM;
}

void plugins_unload(void) { program_stop(); }

const char *plugins_load_error(const struct posenc_backend *backend)
{
    const struct plugin *plugin = find_plugin(backend);
    return plugin && plugin->load_error[0] != '\0' ? plugin->load_error : NULL;
}

const char *plugins_lanes_error(const struct posenc_backend *backend)
{
    const struct plugin *plugin = find_plugin(backend);
    return plugin && plugin->lanes_error[0] != '\0' ? plugin->lanes_error : NULL;
}

int plugins_lanes(const struct posenc_backend *backend)
{
    const struct plugin *plugin = find_plugin(backend);
    return plugin ? plugin->n_lanes : backend->lanes ? backend->lanes() : 0;
}

bool plugins_exist(void) { return n_plugins > 0; }

/* Returns true if a program has the properties of its first start. */
static bool has_facts_of(const struct plugin *plugin, const struct posenc_backend *found)
{
    const struct plugin_facts *first = &plugin->facts;
    struct plugin_facts facts = { .n_lanes = 0 };
    describe_backend(found, &facts);
    bool same = strcmp(facts.name, first->name) == 0 &&
                strcmp(facts.family, first->family) == 0 &&
                strcmp(facts.description, first->description) == 0 &&
                facts.backend.fused == first->backend.fused &&
                facts.backend.f16_bf16 == first->backend.f16_bf16;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        same = same && posenc_backend_provides(found, (enum posenc_kernel)k) ==
                           posenc_backend_provides(&first->backend, (enum posenc_kernel)k);
    return same;
}

void plugins_load(const struct posenc_backend *backend)
{
    struct plugin *plugin = find_plugin(backend);
    char error[PLUGIN_ERROR];
    if (!plugin || plugin->is_loaded || plugin->load_error[0] != '\0')
        return;
    if (plugin->kind == PLUGIN_LIBRARY)
        worker_set_activity(true, PLUGINS_LOADING);
    const struct posenc_backend *found = open_plugin(plugin, error);
    if (!found && plugin->kind == PLUGIN_PROGRAM)
        worker_fail(error);
    if (found && plugin->kind == PLUGIN_PROGRAM && !has_facts_of(plugin, found))
        worker_fail("the program's hello is not that of its first start");
    if (!found || !plugin_check(found, error)) {
        text_print(stderr, "posenc: %s: %s\n", plugin->path, error);
        exit(EXIT_USAGE);
    }
    copy_backend(found, &plugin->stub);
    set_texts(plugin);
    loaded_lanes = plugin->n_lanes > 0 ? plugin->n_lanes : MOST_LANES / 4;
    plugin->is_loaded = true;
    worker_set_activity(false, "after it was loaded");
}

void plugins_load_family(const struct posenc_backend *backend)
{
    const struct posenc_backend *other;
    for (size_t i = 0; (other = posenc_backend_at(i)) != NULL; i++)
        if (other != backend && strcmp(other->family, backend->family) == 0)
            plugins_load(other);
    plugins_load(backend); /* last, as get_loaded_lanes() is its width */
}

void plugins_load_all(void)
{
    loads_all = true;
    for (size_t i = 0; i < n_plugins; i++)
        plugins_load(&plugins[i]->stub);
}
