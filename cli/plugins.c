/* Makes stubs of plug-ins from properties that a worker reports, and loads plug-ins in workers (see plugins.h). */
#define _GNU_SOURCE
#include "plugins.h"
#include "args.h"
#include "base/records.h"
#include "base/text/text.h"
#include "conformance/program/program.h"
#include "outputs.h"
#include "worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LANES = 64, MOST_PLUGINS = 2 * BACKENDS_MAX };

struct plugin {
    struct posenc_backend stub;
    enum plugin_kind kind;
    json_t *facts; /* texts, flags, and a bit for each kernel; NULL: none */
    json_t *lanes; /* results of two calls of lanes(), or NULL */
    struct stat file;
    char path[WORKER_PATH];
    char error[PLUGIN_ERROR];                        /* why the file is no plug-in, or "" */
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

static json_t *describe_backend(const struct posenc_backend *found)
{
    json_int_t kernels = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        kernels |= (json_int_t)posenc_backend_provides(found, (enum posenc_kernel)k) << k;
    return json_pack("{s:s,s:s,s:s,s:s,s:I,s:b,s:b,s:b,s:b,s:I}", "name", found->name, "family",
                     found->family, "description", found->description, "needs",
                     found->required_features ? found->required_features : "", "size",
                     (json_int_t)found->size, "fused", found->fused, "f16_bf16",
                     found->f16_bf16, "contracts", found->allows_contraction, "has_lanes",
                     found->lanes != NULL, "kernels", kernels);
}

/* Sends the properties of the plug-in, then the results of lanes(), which may hang. lanes() is not called if the CPU
 * lacks features that the plug-in requires, since it may execute such instructions. */
static size_t send_facts(void *user, size_t first)
{
    const struct plugin *plugin = user;
    char error[PLUGIN_ERROR];
    worker_set_activity(plugin->kind == PLUGIN_LIBRARY, PLUGINS_LOADING);
    const struct posenc_backend *found = open_plugin(plugin, error);
    const bool exports = found || (plugin->kind == PLUGIN_PROGRAM && program_has_started());
    const bool lacks = found && !plugin_check(found, error);
    if (lacks)
        found = NULL;
    worker_send(found ? json_pack("{s:o}", "facts", describe_backend(found))
                      : json_pack("{s:o,s:b,s:b}", "error", record_string(error), "exports",
                                  exports, "lacks", lacks));
    worker_set_activity(true, "in lanes()");
    if (found && found->lanes && !posenc_backend_unavailable_reason(found)) {
        const int lanes[2] = { found->lanes(), found->lanes() };
        worker_send(json_pack("{s:[i,i]}", "lanes", lanes[0], lanes[1]));
    }
    worker_set_activity(false, plugin->kind == PLUGIN_LIBRARY ? "while it was unloaded"
                                                              : "after its hello");
    plugins_unload();
    return first + 1;
}

/* ---- The parent of that worker ---- */

static void receive_facts(void *user, json_t *message)
{
    struct plugin *plugin = user;
    const json_t *error = json_object_get(message, "error");
    if (json_object_get(message, "facts"))
        plugin->facts = json_incref(json_object_get(message, "facts"));
    if (json_object_get(message, "lanes"))
        plugin->lanes = json_incref(json_object_get(message, "lanes"));
    if (error && json_is_true(json_object_get(message, "exports")))
        snprintf(plugin->load_error, sizeof plugin->load_error, "%s%s",
                 json_is_false(json_object_get(message, "lacks")) ? ""
                 : plugin->kind == PLUGIN_LIBRARY                 ? "the plug-in "
                                                                  : "the program ",
                 json_string_value(error));
    else if (error)
        snprintf(plugin->error, PLUGIN_ERROR, "%s", json_string_value(error));
}

/* Stores how the plug-in ended its worker, in lanes() or before. */
static size_t store_early_end(void *user, const struct worker_end *end)
{
    struct plugin *plugin = user;
    const bool in_lanes = strcmp(end->status->activity, "in lanes()") == 0;
    if (plugin->load_error[0] == '\0' && plugin->error[0] == '\0')
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

/* Fills the facts, or one of the errors. */
static void load_in_worker(struct plugin *plugin)
{
    enum { START_S = 600 }; /* a program's own limit ends first */
    const struct worker_limits limits = worker_limits_of(limit_s, START_S);
    struct worker_job job = { .user = plugin,
                              .n_steps = 1,
                              .run = send_facts,
                              .on_message = receive_facts,
                              .on_early_end = store_early_end };
    if (!workers_run(&job, 1, 1, &limits, is_not_interrupted, NULL))
        snprintf(plugin->error, PLUGIN_ERROR, "cannot be loaded: interrupted");
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
    const size_t size = (size_t)record_value(plugin->facts, "size", 0.0);
    b->size = size < sizeof *b ? size : sizeof *b;
    b->name = record_text(plugin->facts, "name");
    b->family = record_text(plugin->facts, "family");
    b->description = record_text(plugin->facts, "description");
    b->required_features = record_text(plugin->facts, "needs");
    b->lanes =
        json_is_true(json_object_get(plugin->facts, "has_lanes")) ? get_loaded_lanes : NULL;
}

static bool has_flag(const struct plugin *plugin, const char *name)
{
    return json_is_true(json_object_get(plugin->facts, name));
}

static void fill_stub(struct plugin *plugin)
{
    struct posenc_backend *b = &plugin->stub;
    const json_int_t kernels = json_integer_value(json_object_get(plugin->facts, "kernels"));
    *b = (struct posenc_backend){ .abi = POSENC_ABI,
                                  .fused = has_flag(plugin, "fused"),
                                  .f16_bf16 = has_flag(plugin, "f16_bf16"),
                                  .allows_contraction = has_flag(plugin, "contracts") };
    set_texts(plugin);
#define POSENC_KERNEL(ID, kernel, ...)                                                         \
    b->kernel = kernels >> POSENC_KERNEL_##ID & 1 ? absent_##kernel : NULL;
#include <posenc_kernels.def>
#undef POSENC_KERNEL
}

/* Makes facts for a plug-in that cannot be loaded: named after its file, and with all kernels, so that each kernel gets
 * a failed result. */
static void describe_unloadable(struct plugin *plugin)
{
    const char *slash = strrchr(plugin->path, '/'), *file = slash ? slash + 1 : plugin->path;
    char name[64] = "plugin", description[256];
    for (size_t n = 0; file[n] != '\0' && file[n] != '.' && n < sizeof name - 1; n++) {
        const bool good =
            (file[n] >= 'a' && file[n] <= 'z') || (file[n] >= '0' && file[n] <= '9');
        name[n] = good ? file[n] : '_';
        name[n + 1] = '\0';
    }
    snprintf(description, sizeof description, "cannot be loaded: %.200s", plugin->load_error);
    json_decref(plugin->facts);
    plugin->facts = json_pack("{s:s,s:s,s:o,s:s,s:I,s:I}", "name", name, "family", name,
                              "description", record_string(description), "needs", "", "size",
                              (json_int_t)sizeof plugin->stub, "kernels",
                              ((json_int_t)1 << POSENC_KERNEL_COUNT) - 1);
}

/* Checks that lanes() returns the same number each time, at most the padding of frequencies. */
static void check_lanes(struct plugin *plugin)
{
    int first, second;
    if (plugin->lanes_error[0] != '\0' ||
        json_unpack(plugin->lanes, "[i,i]", &first, &second) != 0)
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

/* Adds a plug-in to the list, or frees it and returns NULL with a reason. A program without a hello is rejected, as its
 * kernels are unknown. */
static struct plugin *register_plugin(struct plugin *plugin, char error[PLUGIN_ERROR])
{
    if (plugin->load_error[0] != '\0' && plugin->kind == PLUGIN_PROGRAM)
        snprintf(plugin->error, PLUGIN_ERROR, "%s", plugin->load_error);
    else if (plugin->load_error[0] != '\0')
        describe_unloadable(plugin);
    bool usable = plugin->facts && plugin->error[0] == '\0';
    if (usable) {
        fill_stub(plugin);
        usable = plugin_has_free_name(&plugin->stub, plugin->error);
    }
    if (!usable) {
        snprintf(error, PLUGIN_ERROR, "%s", plugin->error);
        json_decref(plugin->facts);
        json_decref(plugin->lanes);
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
    plugin = calloc(1, sizeof *plugin);
    if (!plugin) {
        snprintf(error, PLUGIN_ERROR, "out of memory");
        return NULL;
    }
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
    json_t *facts = describe_backend(found);
    const bool same = json_equal(facts, plugin->facts);
    json_decref(facts);
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
    memcpy(&plugin->stub, found,
           found->size < sizeof *found ? found->size : sizeof plugin->stub);
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
