/*
 * Program that runs a harness on the inputs of its corpus, as a regression test without libFuzzer.
 *
 *     fuzz_NAME CORPUS.txt             runs each input of the corpus; prints TAP
 *     fuzz_NAME CORPUS.txt FOLDER      writes each input to a file of a folder that exists, as the seeds of libFuzzer
 *     fuzz_NAME CORPUS.txt FILE...     runs the inputs in these files, such as crashes of libFuzzer; reads no corpus
 *
 * Each line of a corpus is one input, with the escapes \n, \t, \\ and \xNN (lower-case digits). A line "# ..." is the
 * description of the inputs below it; an input that begins with # is written as \x23.
 */
#define _POSIX_C_SOURCE 200809L
#include "fuzz.h"

#include "base/tap/tap.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* TIME_LIMIT_SECONDS is for one input. The larger one of meson.build is for the whole corpus, so that SIGALRM ends
 * an input that hangs. */
enum { DESCRIPTION_BYTES = 160, PATH_BYTES = 4096, TIME_LIMIT_SECONDS = 60 };

/* Returns the value of a hexadecimal digit, or -1. */
static int hex_value(int c)
{
    const char *digits = "0123456789abcdef", *digit = c ? strchr(digits, c) : NULL;
    return digit ? (int)(digit - digits) : -1;
}

/* Replaces the escapes of a line in place and sets the length of the input. Returns false for an unknown escape. */
static bool unescape(char *line, size_t *size)
{
    char *to = line;
    for (const char *at = line; *at; at++) {
        if (at[0] == '\\' && at[1] == 'x' && hex_value(at[2]) >= 0 && hex_value(at[3]) >= 0) {
            *to++ = (char)(hex_value(at[2]) * 16 + hex_value(at[3]));
            at += 3;
        } else if (at[0] == '\\' && at[1] && strchr("nt\\", at[1])) {
            at++;
            *to++ = *at == 'n' ? '\n' : *at == 't' ? '\t' : '\\';
        } else if (at[0] == '\\') {
            return false;
        } else {
            *to++ = *at;
        }
    }
    *size = (size_t)(to - line);
    return true;
}

/* Writes the input of a line to a file in a folder, named by the number of the line. */
static void write_seed(const char *folder, int line_number, const char *input, size_t size)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%03d", folder, line_number);
    FILE *file = fopen(path, "wb");
    const bool written = file && fwrite(input, 1, size, file) == size;
    if (!file || fclose(file) != 0 || !written) {
        perror(path);
        exit(2);
    }
}

/* Runs an input, and reports it as passed if the harness returns. SIGALRM ends one that hangs. The line is printed
 * first, to name an input that crashes. */
static void test_input(const char *input, size_t size, int line_number, const char *description)
{
    printf("# line %d: %s\n", line_number, description);
    alarm(TIME_LIMIT_SECONDS);
    LLVMFuzzerTestOneInput((const uint8_t *)input, size);
    alarm(0);
    require(true, description);
}

/* Runs each input of a corpus or, with a folder, writes it there. Returns the exit status: 2 if the corpus cannot be
 * read or has no input. Exits with 2 for an unknown escape. */
static int process_corpus(const char *path, const char *folder)
{
    FILE *file = fopen(path, "r");
    char *line = NULL, description[DESCRIPTION_BYTES] = "an input without a description";
    size_t capacity = 0, size = 0;
    int n_inputs = 0;
    if (!file) {
        perror(path);
        return 2;
    }
    for (int line_number = 1; getline(&line, &capacity, file) >= 0; line_number++) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#') {
            snprintf(description, sizeof description, "%s", line + strspn(line, "# "));
            continue;
        }
        if (!unescape(line, &size)) {
            fprintf(stderr, "%s:%d: unknown escape\n", path, line_number);
            exit(2);
        }
        n_inputs++;
        if (folder)
            write_seed(folder, line_number, line, size);
        else
            test_input(line, size, line_number, description);
    }
    free(line);
    fclose(file);
    if (n_inputs == 0)
        fprintf(stderr, "%s: no input\n", path);
    return n_inputs == 0 ? 2 : folder ? 0 : tap_end();
}

/* Runs the input in a file. Returns 2, as an exit status, if the file cannot be read in full. */
static int run_file(const char *path)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    char *data =
        file && fstat(fileno(file), &status) == 0 ? malloc((size_t)status.st_size + 1) : NULL;
    const bool complete =
        data && fread(data, 1, (size_t)status.st_size, file) == (size_t)status.st_size;
    if (complete)
        LLVMFuzzerTestOneInput((const uint8_t *)data, (size_t)status.st_size);
    else
        fprintf(stderr, "%s: cannot be read in full\n", path);
    if (file)
        fclose(file);
    free(data);
    return complete ? 0 : 2;
}

int main(int argc, char **argv)
{
    struct stat file_status;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a crash loses no line */
    if (argc < 2) {
        fprintf(stderr, "usage: %s CORPUS.txt [FOLDER | FILE...]\n", argv[0]);
        return 2;
    }
    if (argc == 2 || (stat(argv[2], &file_status) == 0 && S_ISDIR(file_status.st_mode)))
        return process_corpus(argv[1], argc > 2 ? argv[2] : NULL);
    int status = 0;
    for (int i = 2; i < argc && status == 0; i++)
        status = run_file(argv[i]);
    return status;
}
