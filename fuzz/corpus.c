/*
 * Runs a harness over a corpus, as a test of what was found and mended; or writes the corpus as the files that libFuzzer
 * begins with.
 *
 *     fuzz_NAME CORPUS.txt             each of its inputs, TAP
 *     fuzz_NAME CORPUS.txt FOLDER      each into a file there
 *     fuzz_NAME CORPUS.txt FILE...     the inputs that these files are, as libFuzzer leaves them
 *
 * A line of a corpus is an input, "# ..." says what the next ones are for: \n, \t, \\ and \xNN are as in C, and nothing
 * else is escaped.
 */
#define _POSIX_C_SOURCE 200809L
#include "fuzz.h"

#include "base/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME = 160, SECONDS = 600 };

static int hex(int c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* In place; returns the length. */
static size_t unescape(char *line)
{
    char *to = line;
    for (const char *at = line; *at; at++) {
        if (at[0] == '\\' && at[1] == 'x' && hex(at[2]) >= 0 && hex(at[3]) >= 0) {
            *to++ = (char)(hex(at[2]) * 16 + hex(at[3]));
            at += 3;
        } else if (at[0] == '\\' && at[1] && strchr("nt\\", at[1])) {
            at++;
            *to++ = *at == 'n' ? '\n' : *at == 't' ? '\t' : '\\';
        } else {
            *to++ = *at;
        }
    }
    return (size_t)(to - line);
}

static void keep(const char *folder, int number, const char *input, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%03d", folder, number);
    FILE *file = fopen(path, "wb");
    const bool good = file && fwrite(input, 1, size, file) == size;
    if (!file || fclose(file) != 0 || !good) {
        perror(path);
        exit(2);
    }
}

/* A harness that does not end is one that failed. */
static void try_input(const char *input, size_t size, const char *what)
{
    alarm(SECONDS);
    LLVMFuzzerTestOneInput((const uint8_t *)input, size);
    alarm(0);
    require(true, what);
}

static int run_corpus(const char *path, const char *folder)
{
    FILE *file = fopen(path, "r");
    char *line = NULL, what[NAME] = "an input";
    size_t room = 0;
    if (!file) {
        perror(path);
        return 2;
    }
    for (int number = 1; getline(&line, &room, file) >= 0; number++) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#') {
            snprintf(what, sizeof what, "%s", line + strspn(line, "# "));
            continue;
        }
        const size_t size = unescape(line);
        if (folder)
            keep(folder, number, line, size);
        else
            try_input(line, size, what);
    }
    free(line);
    fclose(file);
    return folder ? 0 : tap_end();
}

static int run_file(const char *path)
{
    struct stat facts;
    FILE *file = fopen(path, "rb");
    char *data =
        file && fstat(fileno(file), &facts) == 0 ? malloc((size_t)facts.st_size + 1) : NULL;
    const size_t n = data ? fread(data, 1, (size_t)facts.st_size, file) : 0;
    if (file)
        fclose(file);
    if (data)
        LLVMFuzzerTestOneInput((const uint8_t *)data, n);
    free(data);
    return data ? 0 : 2;
}

int main(int argc, char **argv)
{
    struct stat facts;
    if (argc < 2) {
        fprintf(stderr, "usage: %s CORPUS.txt [FOLDER | FILE...]\n", argv[0]);
        return 2;
    }
    if (argc == 2 || (stat(argv[2], &facts) == 0 && S_ISDIR(facts.st_mode)))
        return run_corpus(argv[1], argc > 2 ? argv[2] : NULL);
    int status = 0;
    for (int i = 2; i < argc && status == 0; i++)
        status = run_file(argv[i]);
    return status;
}
