/*
 * posenc vectors: what the golden vectors are, and their files for other programs.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/readers/export.h"
#include "data.h"
#include "outputs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

/* The folder that files go to, or are compared with. */
struct exported {
    const struct cli *cli;
    const char *path;
    size_t files, wrong;
};

static void path_of(const struct exported *folder, const char *name, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%.3000s/%.200s", folder->path, name);
}

/* Writes a file whole or not at all, into a folder that was found to be ours. */
static bool write_file(const char *name, const void *data, size_t bytes, void *user)
{
    static const struct format any = { .name = "vectors", .begins = "*" };
    struct exported *folder = user;
    struct outputs outputs = { 0 };
    char path[PATH_BYTES];
    path_of(folder, name, path);
    bool good = outputs_add(folder->cli, &outputs, &any, path) == EXIT_FINE;
    if (good) {
        fwrite(data, 1, bytes, outputs.output[0].stream);
        good = outputs_commit(folder->cli, &outputs) == EXIT_FINE;
    } else {
        outputs_discard(&outputs);
    }
    folder->wrong += !good;
    folder->files++;
    return good;
}

/* Prints how a file differs from what the export would write, and goes on with the others. */
static bool compare_file(const char *name, const void *data, size_t bytes, void *user)
{
    struct exported *folder = user;
    struct arena arena = { NULL };
    char path[PATH_BYTES], error[VECTORS_ERROR], hash[65], want[65];
    size_t there = 0;
    path_of(folder, name, path);
    const void *found = vectors_read_file(&arena, path, &there, error);
    sha256_hex(data, bytes, want);
    if (!found) {
        printf("%s\n", error);
    } else {
        sha256_hex(found, there, hash);
        if (strcmp(hash, want) != 0)
            printf("%s: %s: it has %zu bytes and SHA-256 %s, expected %zu and %s\n", path,
                   there == bytes  ? "altered"
                   : there < bytes ? "truncated"
                                   : "something was added",
                   there, hash, bytes, want);
    }
    folder->wrong += !found || strcmp(hash, want) != 0;
    folder->files++;
    arena_free(&arena);
    return true;
}

/* A folder with files of other people's is no place for fifty more. */
static int check_place(const struct cli *cli, const char *path)
{
    static const struct format manifest = { .name = "manifest", .begins = "{\n \"cases\": *" };
    char inside[PATH_BYTES];
    bool empty = true;
    DIR *list = opendir(path);
    for (struct dirent *entry; list && (entry = readdir(list));)
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    if (list)
        closedir(list);
    snprintf(inside, sizeof inside, "%.3000s/MANIFEST.json", path);
    return empty || cli->force || output_is_own(&manifest, inside)
               ? EXIT_FINE
               : cli_refuse(cli, "export", path,
                            "holds other files and no export: expected a new or empty folder "
                            "or one of an export, or --force to write into it");
}

static int export_to(const struct cli *cli, const struct vectors *vectors, const char *path)
{
    struct exported folder = { .cli = cli, .path = path };
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return cli_refuse(cli, "export", path, "no such folder can be made: %s",
                          strerror(errno));
    if (check_place(cli, path) != EXIT_FINE)
        return EXIT_USAGE;
    if (!vectors_export(vectors, write_file, &folder))
        return folder.wrong > 0 ? EXIT_USAGE
                                : cli_refuse_status(cli, "export", POSENC_ERR_MEMORY, NULL);
    printf("%zu cases in %zu files: %s\n", vectors->n, folder.files, path);
    return EXIT_FINE;
}

static int check_folder(const struct cli *cli, const struct vectors *vectors, const char *path)
{
    struct exported folder = { .cli = cli, .path = path };
    struct stat facts;
    if (stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode))
        return cli_refuse(cli, "check", path,
                          "expected a folder that posenc vectors export "
                          "wrote");
    if (!vectors_export(vectors, compare_file, &folder))
        return cli_refuse_status(cli, "check", POSENC_ERR_MEMORY, NULL);
    printf("%zu of %zu files are those of the golden vectors: %s\n",
           folder.files - folder.wrong, folder.files, path);
    return folder.wrong > 0 ? EXIT_CONFORMANCE : EXIT_FINE;
}

static int tell(const struct vectors *vectors)
{
    printf("%zu golden vectors, SHA-256 %s%s\n\n", vectors->n, vectors->sha256,
           vectors->official ? "" : ": " OTHER_VECTORS);
    for (size_t i = 0, end; i < vectors->n; i = end) {
        size_t values = 0;
        end = vectors_group_end(vectors, i);
        for (size_t k = i; k < end; k++) {
            const struct vector_case *c = &vectors->cases[k];
            for (int o = 0; o < c->n_outputs; o++)
                values += (size_t)(c->rows[o] * c->width[o]);
        }
        printf("%-20s%4zu cases %8zu values\n", vectors->cases[i].group, end - i, values);
    }
    puts("\nflags");
    for (size_t i = 0; i < vectors->n_flags; i++)
        printf("  %-16s%-18s%s\n", vectors->flags[i].name, vectors->flags[i].bug_type,
               vectors->flags[i].description);
    return EXIT_FINE;
}

int command_vectors(struct cli *cli)
{
    static const char expected[] = "expected info, export DIR or check DIR";
    const char *action = cli->n_operands > 0 ? cli->operands[0] : "";
    const bool info = strcmp(action, "info") == 0, out = strcmp(action, "export") == 0;
    if (!info && !out && strcmp(action, "check") != 0)
        return cli_refuse(cli, "vectors", *action ? action : NULL, "%s", expected);
    if (cli->n_operands != (info ? 1 : 2))
        return cli_refuse(cli, "vectors", action, "%s", expected);
    struct vectors vectors;
    if (data_vectors(cli, &vectors) != EXIT_FINE)
        return EXIT_USAGE;
    const int status = info  ? tell(&vectors)
                       : out ? export_to(cli, &vectors, cli->operands[1])
                             : check_folder(cli, &vectors, cli->operands[1]);
    vectors_free(&vectors);
    return status;
}
