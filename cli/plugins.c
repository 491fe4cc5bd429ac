/* Makes stubs of plug-ins from properties that a worker sends, and loads plug-ins in workers (see plugins.h). */
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
    char path[WORKER_PATH];
    struct stat file; /* identifies a library that is named twice */
    /* The member that its worker sent: "facts", the properties of the plug-in; "load_error"; or "error" if the file is
     * no plug-in. A plug-in with a load_error gets facts that name its file. */
    json_t *report;
    bool is_loaded; /* into this process */
};

static struct plugin *plugins[MOST_PLUGINS];
static size_t n_plugins;
static bool loads_all;                               /* new plug-ins are loaded at once */
static double limit_s = (double)NAN;                 /* seconds of --limit; NaN: the default */
static const char loading[] = "while it was loaded"; /* activity of a worker */

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

/* Returns the properties of a backend. */
static json_t *facts_of(const struct posenc_backend *backend, int lanes)
{
    const char *features = backend->required_features;
    json_t *kernels = json_object();
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (posenc_backend_provides(backend, (enum posenc_kernel)k))
            json_object_set_new(kernels, posenc_kernel_name((enum posenc_kernel)k),
                                json_true());
    return json_pack("{s:s,s:s,s:o,s:s,s:b,s:i,s:b,s:b,s:b,s:o}", "name", backend->name,
                     "family", backend->family, "description",
                     record_string(backend->description), "required_features",
                     features ? features : "", "has_lanes", backend->lanes != NULL, "lanes",
                     lanes, "fused", backend->fused, "f16_bf16", backend->f16_bf16,
                     "allows_contraction", backend->allows_contraction, "kernels", kernels);
}

/* Stores the result of lanes(), which has to be the same each time and at most the padding of frequencies; 0 if the CPU
 * lacks features that the plug-in requires, since lanes() may execute such instructions. Returns false, and writes a
 * reason, if it is neither. */
static bool find_lanes(const struct posenc_backend *backend, int *lanes, char *reason)
{
    *lanes = 0;
    if (!backend->lanes || posenc_backend_unavailable_reason(backend))
        return true;
    worker_set_activity(true, "in lanes()");
    *lanes = backend->lanes();
    const int again = backend->lanes();
    if (again != *lanes)
        snprintf(reason, PLUGIN_ERROR, "lanes() is %d, then %d", *lanes, again);
    else if (again < 1 || again > MOST_LANES)
        snprintf(reason, PLUGIN_ERROR, "lanes() is %d: expected 1 to %d", again, MOST_LANES);
    else
        return true;
    return false;
}

enum { REASON = PLUGIN_ERROR + 16 };

/* Stores the vector width of a plug-in. Returns false, and writes a reason, if its kernels cannot be called. */
static bool check_plugin(const struct plugin *plugin, const struct posenc_backend *backend,
                         int *lanes, char reason[REASON])
{
    char error[PLUGIN_ERROR];
    if (plugin_check(backend, error))
        return find_lanes(backend, lanes, reason);
    snprintf(reason, REASON, "the %s %s",
             plugin->kind == PLUGIN_LIBRARY ? "plug-in" : "program", error);
    return false;
}

/* Sends the properties of the plug-in, or the reason why it has none. */
static size_t report_plugin(void *user, size_t first)
{
    const struct plugin *plugin = user;
    const bool is_library = plugin->kind == PLUGIN_LIBRARY;
    char reason[REASON] = "";
    int lanes;
    worker_set_activity(is_library, "%s", loading);
    const struct posenc_backend *backend = open_plugin(plugin, reason);
    const bool is_plugin = backend || (plugin->kind == PLUGIN_PROGRAM && program_has_started());
    if (backend && check_plugin(plugin, backend, &lanes, reason))
        worker_send(json_pack("{s:o}", "facts", facts_of(backend, lanes)));
    else
        worker_send(
            json_pack("{s:o}", is_plugin ? "load_error" : "error", record_string(reason)));
    worker_set_activity(false, is_library ? "while it was unloaded" : "after its hello");
    plugins_unload();
    return first + 1;
}

/* ---- The parent of that worker ---- */

static void store_message(void *user, json_t *message)
{
    struct plugin *plugin = user;
    json_object_update(plugin->report, message);
}

/* Returns a text of the report, or NULL. */
static const char *report_text(const struct plugin *plugin, const char *name)
{
    return plugin ? json_string_value(json_object_get(plugin->report, name)) : NULL;
}

/* Stores how the plug-in ended its worker, unless it was rejected already. */
static size_t store_early_end(void *user, const struct worker_end *end)
{
    struct plugin *plugin = user;
    char text[WORKER_CAUSE + WORKER_ACTIVITY];
    snprintf(text, sizeof text, "%s %s", end->cause, end->status->activity);
    if (!report_text(plugin, "error") && !report_text(plugin, "load_error"))
        json_object_set_new(plugin->report, "load_error", record_string(text));
    return 1;
}

static bool is_not_interrupted(void *user)
{
    (void)user;
    return outputs_interrupted() == 0;
}

static void load_in_worker(struct plugin *plugin)
{
    enum { START_S = 600 }; /* a program's own limit ends first */
    const struct worker_limits limits = worker_limits_of(limit_s, START_S);
    struct worker_job job = { .user = plugin,
                              .n_steps = 1,
                              .run = report_plugin,
                              .on_message = store_message,
                              .on_early_end = store_early_end };
    plugin->report = json_object();
    workers_run(&job, 1, 1, &limits, is_not_interrupted, NULL);
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

/* Vector width of the plug-in that was loaded last, for the function `lanes` of every stub. */
static int32_t loaded_lanes;
static int32_t get_loaded_lanes(void) { return loaded_lanes; }

static void fill_stub(struct plugin *plugin)
{
    struct posenc_backend *stub = &plugin->stub;
    const json_t *facts = json_object_get(plugin->report, "facts"),
                 *kernels = json_object_get(facts, "kernels");
    stub->size = sizeof *stub;
    stub->abi = POSENC_ABI;
    stub->name = record_text(facts, "name");
    stub->family = record_text(facts, "family");
    stub->description = record_text(facts, "description");
    stub->required_features = record_text(facts, "required_features");
    stub->lanes = json_is_true(json_object_get(facts, "has_lanes")) ? get_loaded_lanes : NULL;
    stub->fused = json_is_true(json_object_get(facts, "fused"));
    stub->f16_bf16 = json_is_true(json_object_get(facts, "f16_bf16"));
    stub->allows_contraction = json_is_true(json_object_get(facts, "allows_contraction"));
#define POSENC_KERNEL(ID, kernel, ...)                                                         \
    stub->kernel = json_object_get(kernels, #kernel) ? absent_##kernel : NULL;
#include <posenc_kernels.def>
#undef POSENC_KERNEL
}

/* Returns facts for a plug-in that cannot be loaded: named after its file ("My-rope.so": "_y_rope"), and with all
 * kernels, so that each kernel gets a failed result. */
static json_t *unloadable_facts(const struct plugin *plugin)
{
    const char *slash = strrchr(plugin->path, '/'), *file = slash ? slash + 1 : plugin->path;
    char name[64] = "plugin", description[256];
    for (size_t n = 0; file[n] != '\0' && file[n] != '.' && n < sizeof name - 1; n++) {
        const bool is_allowed =
            (file[n] >= 'a' && file[n] <= 'z') || (file[n] >= '0' && file[n] <= '9');
        name[n] = is_allowed ? file[n] : '_';
        name[n + 1] = '\0';
    }
    snprintf(description, sizeof description, "cannot be loaded: %.200s",
             report_text(plugin, "load_error"));
    return facts_of(
        &(struct posenc_backend){
            .size = sizeof(struct posenc_backend),
            .abi = POSENC_ABI,
            .name = name,
            .family = name,
            .description = description,
#define POSENC_KERNEL(ID, kernel, ...) .kernel = absent_##kernel,
#include <posenc_kernels.def>
#undef POSENC_KERNEL
        },
        0);
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

/* Fills the stub. Returns false, and a reason, if the plug-in has none. A program without a hello has none, as its
 * kernels are unknown. */
static bool make_stub(struct plugin *plugin, char error[PLUGIN_ERROR])
{
    const char *load_error = report_text(plugin, "load_error"),
               *reason = load_error ? load_error : report_text(plugin, "error");
    const bool has_facts = json_object_get(plugin->report, "facts") != NULL;
    if (load_error && plugin->kind != PLUGIN_PROGRAM) {
        json_object_set_new(plugin->report, "facts", unloadable_facts(plugin));
    } else if (reason || !has_facts) {
        snprintf(error, PLUGIN_ERROR, "%s", reason ? reason : "cannot be loaded: interrupted");
        return false;
    }
    fill_stub(plugin);
    return plugin_has_free_name(&plugin->stub, error);
}

const struct posenc_backend *plugins_make_stub(enum plugin_kind kind, const char *path,
                                               char error[PLUGIN_ERROR])
{
    struct stat file = { .st_ino = 0 }; /* dlopen() reports a missing file */
    const bool exists = kind == PLUGIN_LIBRARY && stat(path, &file) == 0;
    struct plugin *plugin = exists ? find_by_file(&file) : NULL;
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
    if (!make_stub(plugin, error)) {
        json_decref(plugin->report);
        free(plugin);
        return NULL;
    }
    plugins[n_plugins++] = plugin;
    if (loads_all)
        plugins_load(&plugin->stub);
    return &plugin->stub;
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
    return report_text(find_plugin(backend), "load_error");
}

int plugins_lanes(const struct posenc_backend *backend)
{
    const struct plugin *plugin = find_plugin(backend);
    return plugin           ? record_int(plugin->report, "facts.lanes", 0)
           : backend->lanes ? backend->lanes()
                            : 0;
}

bool plugins_exist(void) { return n_plugins > 0; }

/* Returns true if a program that was started again has the properties of its first start. */
static bool has_same_facts(const struct plugin *plugin, const struct posenc_backend *found)
{
    json_t *facts = facts_of(found, 0);
    const bool same = json_equal(facts, json_object_get(plugin->report, "facts"));
    json_decref(facts);
    return same;
}

void plugins_load(const struct posenc_backend *backend)
{
    struct plugin *plugin = find_plugin(backend);
    char error[PLUGIN_ERROR];
    if (!plugin || plugin->is_loaded || report_text(plugin, "load_error"))
        return;
    if (plugin->kind == PLUGIN_LIBRARY)
        worker_set_activity(true, "%s", loading);
    const struct posenc_backend *found = open_plugin(plugin, error);
    if (!found && plugin->kind == PLUGIN_PROGRAM)
        worker_fail(error);
    if (found && plugin->kind == PLUGIN_PROGRAM && !has_same_facts(plugin, found))
        worker_fail("the program's hello is not that of its first start");
    if (!found || !plugin_check(found, error)) {
        text_print(stderr, "posenc: %s: %s\n", plugin->path, error);
        exit(EXIT_USAGE);
    }
#define POSENC_KERNEL(ID, kernel, ...)                                                         \
    if (posenc_backend_provides(found, POSENC_KERNEL_##ID))                                    \
        plugin->stub.kernel = found->kernel;
#include <posenc_kernels.def>
#undef POSENC_KERNEL
    const int lanes = plugins_lanes(backend);
    loaded_lanes = lanes > 0 ? lanes : MOST_LANES / 4;
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
