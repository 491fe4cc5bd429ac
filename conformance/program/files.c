/*
 * Prompts and answers as files of a folder, for posenc vectors prompts and answers. Each is named after its case; a
 * second prompt of a case has a 2 after the name:
 *
 *     prompts/NAME.safetensors     expected/NAME.safetensors     answers/NAME.safetensors
 *     prompts.jsonl                a line for each prompt
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/exact/exact.h"
#include "program.h"
#include "prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static struct {
    const char *folder;
    const struct call *call; /* of the expected rows */
    const double *const *expected;
    int n_in_case;             /* prompts of the current case so far */
    size_t n_written;          /* prompts of all cases */
    char reason[MESSAGE_TEXT]; /* of the first file that could not be written */
} files;

void files_use(const char *folder) { files.folder = folder; }

void program_set_expected(const struct call *call, const double *const *rows)
{
    files.call = call;
    files.expected = rows;
}

void files_begin_case(void) { files.n_in_case = 0; }

size_t program_files_count(void) { return files.n_written; }

const char *program_files_error(void) { return files.reason[0] != '\0' ? files.reason : NULL; }

/* Writes the path of a prompt's file in the folder `inside`. Slashes of the case's id become dots. */
static void make_path(const struct prompt *prompt, const char *inside, char path[PATH_BYTES])
{
    char name[PROMPT_CASE];
    snprintf(name, sizeof name, "%s", message_text(&prompt->message, "case"));
    for (char *slash = name; (slash = strchr(slash, '/')) != NULL;)
        *slash = '.';
    snprintf(path, PATH_BYTES, "%.3900s/%s/%s", files.folder, inside, name);
    if (files.n_in_case > 1) /* sinusoids of several axes */
        snprintf(path + strlen(path), PATH_BYTES - strlen(path), ".%d", files.n_in_case);
    snprintf(path + strlen(path), PATH_BYTES - strlen(path), ".safetensors");
}

/* Numbers a prompt by the FNV-1a hash, of 64 bits, of its contents. An answer to another prompt is thereby noticed. */
static void set_number(struct prompt *prompt)
{
    uint64_t hash = 0xcbf29ce484222325u;
    size_t bytes = 0;
    char number[24];
    unsigned char *whole = message_encode(&prompt->message, &bytes);
    for (size_t i = 0; whole && i < bytes; i++)
        hash = (hash ^ whole[i]) * 0x100000001b3u;
    free(whole);
    snprintf(number, sizeof number, "%" PRIu64, hash);
    json_object_set_new(prompt->message.metadata, "prompt", json_string(number));
}

/* Begins with a prompt: numbers it and counts it among those of the case, which decides its file names. */
static void begin_prompt(struct prompt *prompt)
{
    set_number(prompt);
    files.n_in_case++;
}

/* ---- Writing ---- */

static void note_failure(const char *path)
{
    if (files.reason[0] == '\0')
        snprintf(files.reason, sizeof files.reason, "%.80s: %s", path, strerror(errno));
}

static void write_file(const char *path, const struct message *message)
{
    size_t bytes;
    void *whole = message_encode(message, &bytes);
    FILE *file = fopen(path, "wbx");
    const bool written = whole && file && fwrite(whole, 1, bytes, file) == bytes;
    if (!written)
        note_failure(path);
    if (file && fclose(file) != 0 && written)
        note_failure(path);
    free(whole);
}

static void write_line(const struct prompt *prompt)
{
    char path[PATH_BYTES], file_path[PATH_BYTES];
    make_path(prompt, "prompts", file_path);
    snprintf(path, sizeof path, "%.3900s/prompts.jsonl", files.folder);
    json_t *line = json_pack("{s:s}", "file", strrchr(file_path, '/') + 1);
    json_object_update(line, prompt->message.metadata);
    FILE *file = fopen(path, "a");
    if (!file || json_dumpf(line, file, JSON_COMPACT) != 0 || fputc('\n', file) == EOF)
        note_failure(path);
    if (file && fclose(file) != 0)
        note_failure(path);
    json_decref(line);
}

/* Writes expected rows to the outputs of the call, in their type. The outputs may be a slice of its channels. */
static void fill_outputs(const struct prompt *prompt)
{
    for (int o = 0; o < prompt->n_outputs; o++) {
        const struct posenc_tensor *to = &prompt->outputs[o].to;
        const struct output *whole = &files.call->outputs[o];
        const int64_t from = ((const char *)to->data - (const char *)whole->tensor.data) /
                             (int64_t)storage_size(to->dtype);
        for (int64_t r = 0, n = storage_rows(to); r < n; r++)
            for (int64_t c = 0; c < to->shape[to->rank - 1]; c++)
                storage_put(
                    to->dtype, storage_row(to, r), c,
                    exact_round(to->dtype, files.expected[o][r * whole->width + from + c]));
    }
}

bool files_write_prompt(struct prompt *prompt, struct message *answer,
                        char reason[MESSAGE_TEXT])
{
    char path[PATH_BYTES];
    begin_prompt(prompt);
    make_path(prompt, "prompts", path);
    write_file(path, &prompt->message);
    write_line(prompt);
    files.n_written++;
    fill_outputs(prompt);
    if (!prompt_answer(prompt, answer))
        return notation_fail(reason, "out of memory");
    json_object_set(answer->metadata, "prompt",
                    json_object_get(prompt->message.metadata, "prompt"));
    make_path(prompt, "expected", path);
    write_file(path, answer);
    return true;
}

/* ---- Reading ---- */

static size_t read_bytes(void *file, void *to, size_t n) { return fread(to, 1, n, file); }

/* Opens a regular file. A link or a pipe is none, as it could lead elsewhere or make this program wait. */
static FILE *open_regular(const char *path, char reason[MESSAGE_TEXT])
{
    struct stat status;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return fdopen(fd, "rb");
    notation_fail(reason, "%s: expected a regular file",
                  fd >= 0          ? "it is a folder or a device"
                  : errno == ELOOP ? "it is a symbolic link"
                                   : strerror(errno));
    if (fd >= 0)
        close(fd);
    return NULL;
}

static bool read_file(FILE *file, const struct prompt *prompt, struct message *answer,
                      char reason[MESSAGE_TEXT])
{
    struct stat status;
    const size_t most = fstat(fileno(file), &status) == 0 ? (size_t)status.st_size : 0;
    char cut[MESSAGE_TEXT];
    const enum message_status read = message_read(answer, read_bytes, file, most, cut);
    const char *own = message_text(answer, "prompt"),
               *number = message_text(&prompt->message, "prompt");
    if (read == MESSAGE_CUT)
        return notation_fail(reason, "it %s%.180s", *cut ? "ends " : "is empty", cut);
    if (read != MESSAGE_WHOLE)
        return notation_fail(reason, "%s", cut);
    if (fgetc(file) != EOF)
        return notation_fail(reason, "it is longer than its header says");
    return (own && strcmp(own, number) == 0) ||
           notation_fail(reason, "it has the prompt number %.24s, expected %s",
                         own ? own : "(none)", number);
}

bool files_read_answer(struct prompt *prompt, struct message *answer, char reason[MESSAGE_TEXT])
{
    char path[PATH_BYTES];
    struct stat status;
    begin_prompt(prompt);
    make_path(prompt, "answers", path);
    if (lstat(path, &status) != 0 && errno == ENOENT) {
        answer->metadata = json_pack("{s:s}", "declined", "it has no answer");
        return true;
    }
    FILE *file = open_regular(path, reason);
    const bool read = file && read_file(file, prompt, answer, reason);
    if (file)
        fclose(file);
    return read;
}
