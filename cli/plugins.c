/*
 * Stand-ins of plug-ins: see plugins.h.
 */
#define _GNU_SOURCE
#include "plugins.h"

#include "apart.h"
#include "args.h"
#include "outputs.h"
#include "base/text/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME = 64, TEXT = 256, MOST_LANES = 64 };

/* What a process tells of the plug-in that it loaded: what it exports, without its addresses. */
struct facts {
    bool exports, usable;     /* a posenc_plugin; one that can be used here */
    char error[PLUGIN_ERROR]; /* where not */
    struct posenc_backend backend;
    bool provides[POSENC_KERNEL_COUNT], has_lanes;
    char name[NAME], family[NAME], description[TEXT], needs[TEXT];
    int lanes[2]; /* asked twice */
};

struct plugin {
    struct posenc_backend stand_in;
    struct facts facts;
    struct stat file;
    char path[APART_PATH];
    char broken[APART_WORDS + TEXT], lie[TEXT];
    int lanes;
    bool here;
};

enum { MOST_PLUGINS = 2 * BACKENDS_MAX };
static struct plugin *plugins[MOST_PLUGINS];
static size_t n_plugins;
static bool use_all;
static double limit_s = (double)NAN;

void plugins_limit(double seconds) { limit_s = seconds; }

/* ---- The process that loads it ---- */

static void find_facts(struct facts *facts, const struct posenc_backend *found)
{
    facts->usable = true;
    memcpy(&facts->backend, found,
           found->size < sizeof *found ? found->size : sizeof facts->backend);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        facts->provides[k] = posenc_provides(found, (enum posenc_kernel)k);
    snprintf(facts->name, NAME, "%s", found->name);
    snprintf(facts->family, NAME, "%s", found->family);
    snprintf(facts->description, TEXT, "%s", found->description);
    snprintf(facts->needs, TEXT, "%s", found->needs ? found->needs : "");
    facts->has_lanes = found->lanes != NULL;
}

/* Tells what there is, and again after lanes(), which may not return: it may execute the instructions that
 * it asks about, so it is not asked where these are missing. */
static void meet(void *user, int to)
{
    const char *path = user;
    struct facts facts = { .usable = false };
    apart_enter("loading");
    const struct posenc_backend *found = plugin_find(path, facts.error);
    facts.exports = found != NULL;
    if (found && !plugin_check(found, facts.error))
        found = NULL;
    if (found)
        find_facts(&facts, found);
    apart_tell(to, &facts, sizeof facts);
    apart_enter("lanes()");
    for (int i = 0; found && found->lanes && !posenc_backend_obstacle(found) && i < 2; i++)
        facts.lanes[i] = found->lanes();
    apart_tell(to, &facts, sizeof facts);
    apart_doing("unloading");
}

/* Reads what it tells, at most twice; how often it did. */
static int read_facts(struct apart *apart, struct facts *facts, char hung[APART_WORDS])
{
    const struct patience patience = patience_of(limit_s, 0.0);
    struct facts told;
    enum apart_said said = APART_QUIET;
    int times = 0;
    while (said != APART_OVER && outputs_interrupted() == 0) {
        said = apart_listen(apart, &patience, &told, sizeof told, hung);
        if (said != APART_SAID)
            continue;
        *facts = told;
        times++;
    }
    return times;
}

/* Fills `facts`, and `broken` or `lie` where the process did not come to its end. */
static void meet_apart(struct plugin *plugin)
{
    struct apart apart;
    char hung[APART_WORDS] = "", words[APART_WORDS];
    if (!apart_begin(&apart, meet, plugin->path, false)) {
        snprintf(plugin->facts.error, PLUGIN_ERROR, "cannot be loaded: no process can be made");
        return;
    }
    const int times = read_facts(&apart, &plugin->facts, hung);
    const bool done = apart_end(&apart, *hung || outputs_interrupted() != 0, words);
    const char *how = *hung ? hung : words;
    if (outputs_interrupted() != 0)
        snprintf(plugin->facts.error, PLUGIN_ERROR, "cannot be loaded: interrupted");
    else if (times == 0)
        snprintf(plugin->broken, sizeof plugin->broken, "%s while it was loaded", how);
    else if (plugin->facts.exports && !plugin->facts.usable)
        snprintf(plugin->broken, sizeof plugin->broken, "the plug-in %.*s",
                 (int)sizeof plugin->broken - 16, plugin->facts.error);
    else if (times == 1 && plugin->facts.usable)
        snprintf(plugin->lie, sizeof plugin->lie, "%s in lanes()", how);
    else if (!done && plugin->facts.usable)
        snprintf(plugin->broken, sizeof plugin->broken, "%s while it was unloaded", how);
    apart_forget(&apart);
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

/* Of text that its plug-in has elsewhere in each process there is one copy here. */
static void set_own(struct plugin *plugin)
{
    struct posenc_backend *b = &plugin->stand_in;
    const struct facts *facts = &plugin->facts;
    b->size = facts->backend.size < sizeof *b ? facts->backend.size : sizeof *b;
    b->name = facts->name;
    b->family = facts->family;
    b->description = facts->description;
    b->needs = facts->needs;
    b->lanes = facts->has_lanes ? tell_lanes : NULL;
}

static void stand_in(struct plugin *plugin)
{
    struct posenc_backend *b = &plugin->stand_in;
    const bool *provides = plugin->facts.provides;
    *b = (struct posenc_backend){ .abi = POSENC_ABI,
                                  .fused = plugin->facts.backend.fused,
                                  .f16_bf16 = plugin->facts.backend.f16_bf16,
                                  .contracts = plugin->facts.backend.contracts };
    set_own(plugin);
#define POSENC_KERNEL(kernel, ...)                                                             \
    b->kernel = provides[POSENC_KERNEL_##kernel] ? absent_##kernel : NULL;
#include <posenc_kernels.def>
#undef POSENC_KERNEL
}

/* One that cannot be loaded is known by its file's name, and claims every kernel: each has then a result
 * that says why there is no other. */
static void stand_in_broken(struct plugin *plugin)
{
    struct facts *facts = &plugin->facts;
    const char *slash = strrchr(plugin->path, '/'), *name = slash ? slash + 1 : plugin->path;
    size_t n = 0;
    memset(facts, 0, sizeof *facts);
    for (; name[n] != '\0' && name[n] != '.' && n < NAME - 1; n++)
        facts->name[n] =
            (name[n] >= 'a' && name[n] <= 'z') || (name[n] >= '0' && name[n] <= '9') ? name[n]
                                                                                     : '_';
    if (n == 0)
        snprintf(facts->name, NAME, "plugin");
    snprintf(facts->family, NAME, "%s", facts->name);
    snprintf(facts->description, TEXT, "cannot be loaded: %.200s", plugin->broken);
    facts->backend.size = sizeof facts->backend;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        facts->provides[k] = true;
    stand_in(plugin);
}

/* lanes() should say the same each time, and no more than a plan is padded to. */
static void judge_lanes(struct plugin *plugin)
{
    const int *said = plugin->facts.lanes;
    const bool asked = plugin->facts.has_lanes && !posenc_backend_obstacle(&plugin->stand_in);
    if (asked && plugin->lie[0] == '\0' && said[0] != said[1])
        snprintf(plugin->lie, sizeof plugin->lie, "lanes() is %d, then %d", said[0], said[1]);
    else if (asked && plugin->lie[0] == '\0' && (said[0] < 1 || said[0] > MOST_LANES))
        snprintf(plugin->lie, sizeof plugin->lie, "lanes() is %d: expected 1 to %d", said[0],
                 MOST_LANES);
    plugin->lanes = asked && plugin->lie[0] == '\0' ? said[0] : 0;
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

/* Keeps it, or says why not. */
static struct plugin *keep(struct plugin *plugin, char error[PLUGIN_ERROR])
{
    if (plugin->broken[0] != '\0')
        stand_in_broken(plugin);
    else if (plugin->facts.usable)
        stand_in(plugin);
    else
        snprintf(error, PLUGIN_ERROR, "%s", plugin->facts.error);
    const bool fine = (plugin->broken[0] != '\0' || plugin->facts.usable) &&
                      plugin_has_free_name(&plugin->stand_in, error);
    if (!fine) {
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
    struct stat file = { .st_ino =
                             0 }; /* not there: dlopen may find it elsewhere, or says so */
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
    meet_apart(plugin);
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
    return plugin ? plugin->lanes : backend->lanes ? backend->lanes() : 0;
}

bool plugins_any(void) { return n_plugins > 0; }

void plugins_use(const struct posenc_backend *backend)
{
    struct plugin *plugin = plugin_of(backend);
    char error[PLUGIN_ERROR];
    if (!plugin || plugin->here || plugin->broken[0] != '\0')
        return;
    apart_enter("loading");
    const struct posenc_backend *found = plugin_load(plugin->path, error);
    if (!found) {
        text_print(stderr, "posenc: %s: %s\n", plugin->path, error);
        exit(EXIT_USAGE);
    }
    memcpy(&plugin->stand_in, found,
           found->size < sizeof *found ? found->size : sizeof plugin->stand_in);
    set_own(plugin);
    lanes_told = plugin->lanes > 0 ? plugin->lanes : MOST_LANES / 4;
    plugin->here = true;
    apart_doing("");
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
