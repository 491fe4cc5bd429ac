/*
 * A report's folder is whole or not there (see folder.h).
 *
 * A partial folder is locked by the process that writes into it.  One that nobody has locked is
 * what a killed process left, and goes away.
 */
#define _GNU_SOURCE
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char partial_suffix[] = ".partial-";
static int lock = -1; /* on the partial folder of this process */

static int refuse(const struct folder *folder, const char *path, const char *why)
{
    return cli_refuse(folder->cli, "--dir", path,
                      "%s: expected a folder that can be made, or one that holds a report",
                      why);
}

/* ---- What is in a folder ---- */

static bool is_report_file(const char *name)
{
    return strcmp(name, "report.md") == 0 || strcmp(name, "report.html") == 0 ||
           strcmp(name, "results.jsonl") == 0 || fnmatch("*.svg", name, 0) == 0;
}

static bool is_any(const char *name)
{
    (void)name;
    return true;
}

static bool is_foreign(const char *name) { return !is_report_file(name); }

/* The first of the folder's entries that `which` accepts; false: there is none. */
static bool first_entry(const char *path, bool (*which)(const char *name), char name[256])
{
    DIR *list = opendir(path);
    bool found = false;
    for (struct dirent *entry; list && !found && (entry = readdir(list));) {
        found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                which(entry->d_name);
        if (found)
            snprintf(name, 256, "%s", entry->d_name);
    }
    if (list)
        closedir(list);
    return found;
}

static bool holds_report(const char *path)
{
    char results[FOLDER_PATH + 16];
    snprintf(results, sizeof results, "%s/results.jsonl", path);
    return output_is_own(format_find(record_formats, BY_REPORT, "jsonl", 5), results);
}

/* Removes the folder with its files; one that holds more than files stays. */
static bool remove_folder(const char *path)
{
    DIR *list = opendir(path);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
    return rmdir(path) == 0 || errno == ENOENT;
}

/* ---- Partial folders ---- */

static int lock_folder(const char *path)
{
    int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0) {
        close(file);
        file = -1;
    }
    return file;
}

void folder_leave(void)
{
    if (lock >= 0)
        close(lock);
    lock = -1;
}

/* Removes the partial folders of processes that are no more. */
static void sweep(const struct folder *folder)
{
    char parent[FOLDER_PATH], path[FOLDER_PATH + 256];
    snprintf(parent, sizeof parent, "%s", folder->target);
    char *base = strrchr(parent, '/') + 1;
    char prefix[256];
    size_t n = (size_t)snprintf(prefix, sizeof prefix, "%.200s%s", base, partial_suffix);
    *base = '\0';
    DIR *list = opendir(parent);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        if (strncmp(entry->d_name, prefix, n) != 0 || strlen(entry->d_name) != n + 6)
            continue;
        snprintf(path, sizeof path, "%s%s", parent, entry->d_name);
        int unlocked = lock_folder(path);
        if (unlocked >= 0) {
            remove_folder(path);
            close(unlocked);
        }
    }
    if (list)
        closedir(list);
}

static int make_partial(struct folder *folder)
{
    if (!folder->cli->resume) /* it may be what is gone on with */
        sweep(folder);
    snprintf(folder->partial, sizeof folder->partial, "%.4000s%sXXXXXX", folder->target,
             partial_suffix);
    if (!mkdtemp(folder->partial)) {
        folder->partial[0] = '\0';
        return cli_refuse(folder->cli, "--dir", folder->name,
                          "none can be made beside it: %s: expected a name in a folder that "
                          "can be written",
                          strerror(errno));
    }
    mode_t mask = umask(0);
    umask(mask);
    chmod(folder->partial, 0777 & ~mask);
    lock = lock_folder(folder->partial);
    return EXIT_FINE;
}

/* ---- The folder that was named ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* A folder is there: it has to make room. */
static int check_target(struct folder *folder)
{
    struct stat here, target, parent;
    char above[FOLDER_PATH + 8], name[256];
    snprintf(above, sizeof above, "%s/..", folder->target);
    if (stat(folder->target, &target) != 0 || stat(above, &parent) != 0 ||
        stat(".", &here) != 0)
        return refuse(folder, folder->name, strerror(errno));
    if (!S_ISDIR(target.st_mode))
        return refuse(folder, folder->name, strerror(ENOTDIR));
    if (same_file(&here, &target) || target.st_dev != parent.st_dev ||
        same_file(&target, &parent))
        return refuse(folder, folder->name,
                      same_file(&here, &target) ? "is the folder you are in, and would be moved"
                                                : "is a file system of its own, and stays");
    const bool taken = first_entry(folder->target, is_any, name);
    if (taken && !folder->cli->force && !holds_report(folder->target))
        return cli_refuse(folder->cli, "--dir", folder->name,
                          "holds no report (%s is in it): expected a new or empty folder or "
                          "one of a report, or --force to move it to %s.previous",
                          name, folder->name);
    if (taken && lstat(folder->previous, &parent) == 0 && !S_ISDIR(parent.st_mode))
        return cli_refuse(folder->cli, "--dir", folder->name,
                          "%s.previous is no folder: expected it elsewhere, since the report "
                          "before takes this place",
                          folder->name);
    if (taken && first_entry(folder->previous, is_foreign, name))
        return cli_refuse(folder->cli, "--dir", folder->name,
                          "%s.previous holds %s, which no report wrote: expected it "
                          "elsewhere, since the report before takes this place",
                          folder->name, name);
    return EXIT_FINE;
}

int folder_begin(const struct cli *cli, const char *name, struct folder *folder)
{
    struct stat link;
    *folder = (struct folder){ .cli = cli };
    if (strlen(name) > 3000)
        return refuse(folder, name, strerror(ENAMETOOLONG));
    snprintf(folder->name, sizeof folder->name, "%s", name);
    for (size_t n = strlen(name); n > 1 && folder->name[n - 1] == '/'; n--)
        folder->name[n - 1] = '\0';
    bool named = lstat(folder->name, &link) == 0;
    char *target = output_target(folder->name);
    if (!target || strlen(target) > 3900) {
        int why = target ? ENAMETOOLONG : errno;
        free(target);
        return refuse(folder, folder->name,
                      named && S_ISLNK(link.st_mode) ? "is a link to what is not there"
                                                     : strerror(why));
    }
    snprintf(folder->target, sizeof folder->target, "%s", target);
    snprintf(folder->previous, sizeof folder->previous, "%.4000s.previous", target);
    free(target);
    return named && check_target(folder) != EXIT_FINE ? EXIT_USAGE : make_partial(folder);
}

int folder_refuse_inside(const struct folder *folder, const struct outputs *outputs)
{
    size_t n = strlen(folder->target);
    for (size_t i = 0; i < outputs->n; i++) {
        const struct out_file *output = &outputs->output[i];
        if (output->target && strncmp(output->target, folder->target, n) == 0 &&
            output->target[n] == '/')
            return cli_refuse(folder->cli, "--out", output->path,
                              "lies in the folder of the report, which the new one replaces: "
                              "expected a path elsewhere");
    }
    return EXIT_FINE;
}

void folder_discard(struct folder *folder)
{
    if (folder->partial[0] != '\0')
        remove_folder(folder->partial);
    folder->partial[0] = '\0';
    folder_leave();
}

bool folder_is_taken(const struct folder *folder)
{
    char name[256];
    return first_entry(folder->target, is_any, name);
}

int folder_publish(struct folder *folder)
{
    const bool taken = folder_is_taken(folder);
    const bool moved = taken && remove_folder(folder->previous) &&
                       rename(folder->target, folder->previous) == 0;
    if ((taken && !moved) || rename(folder->partial, folder->target) != 0) {
        int why = errno;
        if (moved)
            rename(folder->previous, folder->target);
        return cli_refuse(folder->cli, "--dir", folder->name,
                          "cannot be replaced: %s; the new report is in %s", strerror(why),
                          folder->partial);
    }
    folder->partial[0] = '\0';
    folder->replaced = moved;
    folder_leave();
    sweep(folder);
    return EXIT_FINE;
}
