/*
 * Finds the file that --config means: see place.h.
 */
#define _XOPEN_SOURCE 700
#include "place.h"
#include "conformance/problem/fields.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static int refuse_place(char error[MODEL_ERROR],
                                                              const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, MODEL_ERROR, format, list);
    va_end(list);
    return -1;
}

__attribute__((format(printf, 2, 3))) static bool print_path(char path[PLACE_PATH],
                                                             const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(path, PLACE_PATH, format, list);
    va_end(list);
    return n > 0 && n < PLACE_PATH;
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* ---- a folder ---- */

/* "x.gguf", and of "x-00002-of-00003.gguf" none but the first. */
static int is_gguf(const struct dirent *one)
{
    const size_t n = strlen(one->d_name);
    const char *of = strstr(one->d_name, "-of-");
    return n > 5 && strcmp(one->d_name + n - 5, ".gguf") == 0 &&
           (!of || of - one->d_name < 6 || strncmp(of - 6, "-00001", 6) == 0 ||
            strspn(of - 5, "0123456789") < 5);
}

static int find_gguf(const char *folder, char path[PLACE_PATH], char error[MODEL_ERROR])
{
    struct dirent **names;
    char all[MODEL_ERROR / 2] = "";
    const int n = scandir(folder, &names, is_gguf, alphasort);
    bool fits = true;
    if (n < 0)
        return refuse_place(error, "%s: a folder that can be read is needed", strerror(errno));
    for (int i = 0, at = 0; i < n; i++) {
        at = (int)append(all, sizeof all, (size_t)at, "%s%s", i ? ", " : "", names[i]->d_name);
        fits = print_path(path, "%s/%s", folder, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    if (n == 0)
        return refuse_place(error, "it is a folder without a config.json, a params.json or a "
                                   ".gguf file: one of them is needed");
    if (n > 1)
        return refuse_place(
            error, "it is a folder with %d .gguf files: the path of one is needed: %s", n, all);
    return fits ? 0 : refuse_place(error, "%s", strerror(ENAMETOOLONG));
}

static int find_in_folder(const char *folder, char path[PLACE_PATH], char error[MODEL_ERROR])
{
    static const char *const names[] = { "config.json", "params.json" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (print_path(path, "%s/%s", folder, names[i]) && access(path, F_OK) == 0)
            return 0;
    return find_gguf(folder, path, error);
}

/* ---- the hub's cache ---- */

static bool cache_folder(char path[PLACE_PATH])
{
    static const struct {
        const char *variable, *below;
    } places[] = { { "HF_HUB_CACHE", "" },
                   { "HF_HOME", "/hub" },
                   { "XDG_CACHE_HOME", "/huggingface/hub" },
                   { "HOME", "/.cache/huggingface/hub" } };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *value = getenv(places[i].variable);
        if (value && *value)
            return print_path(path, "%s%s", value, places[i].below);
    }
    return false;
}

/* "org/name", of letters, digits and "._-". */
static bool is_hub_id(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    const size_t n = strspn(text, letters),
                 rest = text[n] == '/' ? strspn(text + n + 1, letters) : 0;
    return n > 0 && rest > 0 && text[n + 1 + rest] == '\0' && *text != '.' && *text != '-';
}

/* The commit that a file of refs holds. */
static bool read_commit(const char *path, char commit[65])
{
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    const size_t n = fread(commit, 1, 64, file);
    fclose(file);
    commit[n] = '\0';
    commit[strcspn(commit, "\r\n")] = '\0';
    return *commit && strspn(commit, "0123456789abcdef") == strlen(commit);
}

static int find_in_cache(const char *id, char path[PLACE_PATH], char error[MODEL_ERROR])
{
    char cache[PLACE_PATH], model[PLACE_PATH], commit[65];
    const int org = (int)strcspn(id, "/");
    if (!cache_folder(cache) ||
        !print_path(model, "%s/models--%.*s--%s", cache, org, id, id + org + 1) ||
        !print_path(path, "%s/refs/main", model))
        return refuse_place(error,
                            "there is no such file, and no HOME in which the hub's local "
                            "cache would be");
    if (!read_commit(path, commit))
        return refuse_place(
            error,
            "there is no such file, and in the hub's local cache no %s (a commit), "
            "which names the folder of its config.json, %s/snapshots/COMMIT; no "
            "network is used",
            path, model);
    char snapshot[PLACE_PATH], why[MODEL_ERROR];
    if (!print_path(snapshot, "%s/snapshots/%s", model, commit))
        return refuse_place(error, "%s", strerror(ENAMETOOLONG));
    if (find_in_folder(snapshot, path, why) == 0)
        return 0;
    return refuse_place(error,
                        "there is no such file, and in the hub's local cache %.600s: %.900s; "
                        "no network is used",
                        snapshot, why);
}

/* ---- either ---- */

int model_place(const char *text, char path[PLACE_PATH], char said[MODEL_NOTES],
                char error[MODEL_ERROR])
{
    *said = '\0';
    if (is_folder(text)) {
        if (find_in_folder(text, path, error))
            return -1;
        snprintf(said, MODEL_NOTES, "read from %.900s", path);
    } else if (*text && access(text, R_OK) == 0) {
        if (!print_path(path, "%s%s", strchr(text, '/') ? "" : "./", text))
            return refuse_place(error, "%s", strerror(ENAMETOOLONG));
    } else {
        const int why = *text ? errno : ENOENT;
        if (why != ENOENT || !is_hub_id(text))
            return refuse_place(
                error,
                "%s: expected the path of a Hugging Face config.json, a "
                "params.json, a GGUF file or a folder with one, or the org/name of "
                "a model in the hub's local cache",
                strerror(why));
        if (find_in_cache(text, path, error))
            return -1;
        snprintf(said, MODEL_NOTES, "read from %.900s; no network is used", path);
    }
    return 0;
}
