/*
 * Stand-ins of plug-ins: see plugins.h.
 */
#define _GNU_SOURCE
#include "plugins.h"
#include "args.h"
#include "base/records.h"
#include "base/text/text.h"
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
    struct posenc_backend stand_in;
    /* What the plug-in exports: texts, flags, and a bit for each kernel; lanes() twice. NULL:
     * it could not be loaded. */
    json_t *facts, *lanes;
    struct stat file;
    char path[WORKER_PATH];
    char error[PLUGIN_ERROR]; /* why it cannot be used */
    char broken[WORKER_HOW + WORKER_DOING], lie[256];
    int n_lanes;
    bool here;
};

static struct plugin *plugins[MOST_PLUGINS];
static size_t n_plugins;
static bool use_all;
static double limit_s = (double)NAN;

void plugins_limit(double seconds) { limit_s = seconds; }

/* ---- The worker that loads a plug-in ---- */

static json_t *facts_of(const struct posenc_backend *found)
{
    json_int_t kernels = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        kernels |= (json_int_t)posenc_provides(found, (enum posenc_kernel)k) << k;
    return json_pack("{s:s,s:s,s:s,s:s,s:I,s:b,s:b,s:b,s:b,s:I}", "name", found->name, "family",
                     found->family, "description", found->description, "needs",
                     found->needs ? found->needs : "", "size", (json_int_t)found->size, "fused",
                     found->fused, "f16_bf16", found->f16_bf16, "contracts", found->contracts,
                     "has_lanes", found->lanes != NULL, "kernels", kernels);
}

/* Tells what the plug-in exports, and then lanes(), which may not return: it may execute the
 * instructions that it asks about, so it is not called where these are missing. */
static size_t load(void *user, size_t first)
{
    const struct plugin *plugin = user;
    char error[PLUGIN_ERROR];
    worker_doing(true, PLUGINS_LOADING);
    const struct posenc_backend *found = plugin_find(plugin->path, error);
    const bool exports = found != NULL;
    if (found && !plugin_check(found, error))
        found = NULL;
    worker_send(
        found ? json_pack("{s:o}", "facts", facts_of(found))
              : json_pack("{s:o,s:b}", "error", record_string(error), "exports", exports));
    worker_doing(true, "in lanes()");
    if (found && found->lanes && !posenc_backend_obstacle(found)) {
        const int lanes[2] = { found->lanes(), found->lanes() };
        worker_send(json_pack("{s:[i,i]}", "lanes", lanes[0], lanes[1]));
    }
    worker_doing(false, "while it was unloaded");
    return first + 1;
}

/* ---- Its parent ---- */

static void take_facts(void *user, json_t *message)
{
    struct plugin *plugin = user;
    const json_t *error = json_object_get(message, "error");
    if (json_object_get(message, "facts"))
        plugin->facts = json_incref(json_object_get(message, "facts"));
    if (json_object_get(message, "lanes"))
        plugin->lanes = json_incref(json_object_get(message, "lanes"));
    if (error && json_is_true(json_object_get(message, "exports")))
        snprintf(plugin->broken, sizeof plugin->broken, "the plug-in %s",
                 json_string_value(error));
    else if (error)
        snprintf(plugin->error, PLUGIN_ERROR, "%s", json_string_value(error));
}

/* Takes the end of a worker that a plug-in ended: a lie of lanes() if that was at hand. */
static size_t lose_plugin(void *user, const struct worker_end *end)
{
    struct plugin *plugin = user;
    const bool in_lanes = strcmp(end->note->doing, "in lanes()") == 0;
    if (plugin->broken[0] == '\0' && plugin->error[0] == '\0')
        snprintf(in_lanes ? plugin->lie : plugin->broken,
                 in_lanes ? sizeof plugin->lie : sizeof plugin->broken, "%s %s", end->how,
                 end->note->doing);
    return 1;
}

static bool goes_on(void *user)
{
    (void)user;
    return outputs_interrupted() == 0;
}

/* Fills the facts, and `error`, `broken` or `lie`. */
static void load_in_worker(struct plugin *plugin)
{
    const struct worker_limits limits = worker_limits_of(limit_s, 0.0);
    struct worker_job job = {
        .user = plugin, .n_steps = 1, .run = load, .take = take_facts, .lost = lose_plugin
    };
    if (!workers_run(&job, 1, 1, &limits, goes_on, NULL))
        snprintf(plugin->error, PLUGIN_ERROR, "cannot be loaded: interrupted");
}

/* ---- Stand-ins ---- */

#define POSENC_KERNEL(kernel, signature, ...)                                                  \
    static enum posenc_status absent_##kernel(const struct posenc_##signature##_args *args)    \
    {                                                                                          \
        (void)args;                                                                            \
        return POSENC_ERR_NOT_PROVIDED;                                                        \
    }
#include <posenc_kernels.def>
#undef POSENC_KERNEL

static int32_t lanes_told; /* of the one that was loaded last */
static int32_t tell_lanes(void) { return lanes_told; }

/* Sets texts, of which a plug-in has its own copy in each process. */
static void set_texts(struct plugin *plugin)
{
    struct posenc_backend *b = &plugin->stand_in;
    const size_t size = (size_t)record_value(plugin->facts, "size", 0.0);
    b->size = size < sizeof *b ? size : sizeof *b;
    b->name = record_text(plugin->facts, "name");
    b->family = record_text(plugin->facts, "family");
    b->description = record_text(plugin->facts, "description");
    b->needs = record_text(plugin->facts, "needs");
    b->lanes = json_is_true(json_object_get(plugin->facts, "has_lanes")) ? tell_lanes : NULL;
}

static bool has_flag(const struct plugin *plugin, const char *name)
{
    return json_is_true(json_object_get(plugin->facts, name));
}

static void stand_in(struct plugin *plugin)
{
    struct posenc_backend *b = &plugin->stand_in;
    const json_int_t kernels = json_integer_value(json_object_get(plugin->facts, "kernels"));
    *b = (struct posenc_backend){ .abi = POSENC_ABI,
                                  .fused = has_flag(plugin, "fused"),
                                  .f16_bf16 = has_flag(plugin, "f16_bf16"),
                                  .contracts = has_flag(plugin, "contracts") };
    set_texts(plugin);
#define POSENC_KERNEL(kernel, ...)                                                             \
    b->kernel = kernels >> POSENC_KERNEL_##kernel & 1 ? absent_##kernel : NULL;
#include <posenc_kernels.def>
#undef POSENC_KERNEL
}

/* Makes facts of a plug-in that cannot be loaded: its name is the file's, and it claims every
 * kernel, so that each has a result that says why there is no other. */
static void make_facts(struct plugin *plugin)
{
    const char *slash = strrchr(plugin->path, '/'), *file = slash ? slash + 1 : plugin->path;
    char name[64] = "plugin", description[256];
    for (size_t n = 0; file[n] != '\0' && file[n] != '.' && n < sizeof name - 1; n++) {
        const bool good =
            (file[n] >= 'a' && file[n] <= 'z') || (file[n] >= '0' && file[n] <= '9');
        name[n] = good ? file[n] : '_';
        name[n + 1] = '\0';
    }
    snprintf(description, sizeof description, "cannot be loaded: %.200s", plugin->broken);
    json_decref(plugin->facts);
    plugin->facts = json_pack("{s:s,s:s,s:o,s:s,s:I,s:I}", "name", name, "family", name,
                              "description", record_string(description), "needs", "", "size",
                              (json_int_t)sizeof plugin->stand_in, "kernels",
                              ((json_int_t)1 << POSENC_KERNEL_COUNT) - 1);
}

/* Judges lanes(), which should return the same number each time, and no more than a plan is
 * padded to. */
static void judge_lanes(struct plugin *plugin)
{
    int first, second;
    if (plugin->lie[0] != '\0' || json_unpack(plugin->lanes, "[i,i]", &first, &second) != 0)
        return;
    if (first != second)
        snprintf(plugin->lie, sizeof plugin->lie, "lanes() is %d, then %d", first, second);
    else if (first < 1 || first > MOST_LANES)
        snprintf(plugin->lie, sizeof plugin->lie, "lanes() is %d: expected 1 to %d", first,
                 MOST_LANES);
    else
        plugin->n_lanes = first;
}

static struct plugin *plugin_of(const struct posenc_backend *backend)
{
    for (size_t i = 0; i < n_plugins; i++)
        if (&plugins[i]->stand_in == backend)
            return plugins[i];
    return NULL;
}

static struct plugin *met_before(const struct stat *file)
{
    for (size_t i = 0; i < n_plugins; i++)
        if (plugins[i]->file.st_dev == file->st_dev && plugins[i]->file.st_ino == file->st_ino)
            return plugins[i];
    return NULL;
}

/* Keeps a plug-in that can be used, or reports why not. */
static struct plugin *keep(struct plugin *plugin, char error[PLUGIN_ERROR])
{
    if (plugin->broken[0] != '\0')
        make_facts(plugin);
    bool fine = plugin->facts && plugin->error[0] == '\0';
    if (fine) {
        stand_in(plugin);
        fine = plugin_has_free_name(&plugin->stand_in, plugin->error);
    }
    if (!fine) {
        snprintf(error, PLUGIN_ERROR, "%s", plugin->error);
        json_decref(plugin->facts);
        json_decref(plugin->lanes);
        free(plugin);
        return NULL;
    }
    judge_lanes(plugin);
    plugins[n_plugins++] = plugin;
    if (use_all)
        plugins_use(&plugin->stand_in);
    return plugin;
}

const struct posenc_backend *plugins_meet(const char *path, char error[PLUGIN_ERROR])
{
    struct stat file = { .st_ino = 0 }; /* if it is not there, dlopen() says so */
    const bool there = stat(path, &file) == 0;
    struct plugin *plugin = there ? met_before(&file) : NULL;
    if (plugin)
        return &plugin->stand_in;
    plugin = n_plugins < MOST_PLUGINS ? calloc(1, sizeof *plugin) : NULL;
    if (!plugin) {
        snprintf(error, PLUGIN_ERROR, "there are too many of them");
        return NULL;
    }
    plugin->file = file;
    snprintf(plugin->path, sizeof plugin->path, "%s", path);
    load_in_worker(plugin);
    plugin = keep(plugin, error);
    return plugin ? &plugin->stand_in : NULL;
}

bool plugins_has(const struct posenc_backend *backend) { return plugin_of(backend) != NULL; }

const char *plugins_broken(const struct posenc_backend *backend)
{
    const struct plugin *plugin = plugin_of(backend);
    return plugin && plugin->broken[0] != '\0' ? plugin->broken : NULL;
}

const char *plugins_lie(const struct posenc_backend *backend)
{
    const struct plugin *plugin = plugin_of(backend);
    return plugin && plugin->lie[0] != '\0' ? plugin->lie : NULL;
}

int plugins_lanes(const struct posenc_backend *backend)
{
    const struct plugin *plugin = plugin_of(backend);
    return plugin ? plugin->n_lanes : backend->lanes ? backend->lanes() : 0;
}

bool plugins_any(void) { return n_plugins > 0; }

void plugins_use(const struct posenc_backend *backend)
{
    struct plugin *plugin = plugin_of(backend);
    char error[PLUGIN_ERROR];
    if (!plugin || plugin->here || plugin->broken[0] != '\0')
        return;
    worker_doing(true, PLUGINS_LOADING);
    const struct posenc_backend *found = plugin_load(plugin->path, error);
    if (!found) {
        text_print(stderr, "posenc: %s: %s\n", plugin->path, error);
        exit(EXIT_USAGE);
    }
    memcpy(&plugin->stand_in, found,
           found->size < sizeof *found ? found->size : sizeof plugin->stand_in);
    set_texts(plugin);
    lanes_told = plugin->n_lanes > 0 ? plugin->n_lanes : MOST_LANES / 4;
    plugin->here = true;
    worker_doing(false, "after it was loaded");
}

void plugins_use_family(const struct posenc_backend *backend)
{
    const struct posenc_backend *other;
    plugins_use(backend);
    for (size_t i = 0; (other = posenc_backend_at(i)) != NULL; i++)
        if (strcmp(other->family, backend->family) == 0)
            plugins_use(other);
}

void plugins_use_all(void)
{
    use_all = true;
    for (size_t i = 0; i < n_plugins; i++)
        plugins_use(&plugins[i]->stand_in);
}
