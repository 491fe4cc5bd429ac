/*
 * Opens and writes output files (see outputs.h). For -o run.jsonl, the records go to an unnamed file in the folder of
 * run.jsonl, its target. When all outputs are complete, that file is copied to run.jsonl.posenc-XXXXXX, which is
 * renamed to run.jsonl. A pipe, a device or standard output is written directly.
 */
#define _GNU_SOURCE
#include "outputs.h"
#include "data.h"
#include "messages.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile sig_atomic_t first_signal; /* 0: none */
static bool pipe_is_broken;                /* the reader of an output went away */
static int external_exit_code;             /* of an external program that failed */

/* ---- Signals ---- */

const int end_signals[N_END_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

/* Stores the number of the first signal. The second signal ends the process. */
static void on_signal(int number)
{
    if (!first_signal) {
        first_signal = number;
        return;
    }
    progress_erase_in_handler();
    signal(number, SIG_DFL);
    raise(number);
}

void outputs_catch_signals(void)
{
    const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    for (size_t i = 0; i < N_END_SIGNALS; i++) {
        struct sigaction old;
        const bool ignored =
            sigaction(end_signals[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN;
        if (!ignored || end_signals[i] != SIGHUP) /* nohup ignores SIGHUP */
            sigaction(end_signals[i], &action, NULL);
    }
}

int outputs_interrupted(void) { return first_signal; }

/* Replaces the default action of SIGPIPE, so that other outputs are written after a reader went away. */
static void on_pipe(int number) { (void)number; }

static void ignore_broken_pipes(void)
{
    struct sigaction action = { .sa_handler = on_pipe, .sa_flags = SA_RESTART }, old;
    if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(SIGPIPE, &action, NULL); /* exec resets handlers to SIG_DFL */
}

/* ---- Standard streams ---- */

void outputs_reserve_standard_streams(void)
{
    const int modes[] = { O_WRONLY, O_RDONLY, O_RDWR }; /* writes to stdout must fail */
    for (int i = 0; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", modes[i]) != i)
            abort();
}

/* Flushes a stream. Returns the errno of a failure, or 0. */
static int flush_stream(FILE *stream)
{
    errno = 0;
    if (fflush(stream) != 0 && errno != 0)
        return errno;
    if (!ferror(stream))
        return 0;
    /* The errno of the earlier failure is lost: another write fails in the same way. */
    return write(fileno(stream), "\n", 1) < 0 ? errno : EIO;
}

static void complain_stdout(int error)
{
    if (error == EBADF)
        cli_complain("output", NULL, "standard output is closed");
    else
        cli_complain("output", NULL, "standard output cannot be written: %s", strerror(error));
}

int outputs_finish(int status)
{
    const int error = status == EXIT_USAGE ? 0 : flush_stream(stdout); /* usage was reported */
    if (external_exit_code != 0)
        return external_exit_code;
    if (status == EXIT_OK && (pipe_is_broken || error == EPIPE))
        return EXIT_BROKEN_PIPE;
    if (error == 0 || error == EPIPE)
        return status;
    complain_stdout(error);
    return status == EXIT_OK ? EXIT_USAGE : status;
}

/* ---- Targets ---- */

_Noreturn static void reject_path(const char *path, const char *error)
{
    cli_reject("--out", path,
               "cannot be written: %s; expected a file in a folder that can be written", error);
}

_Noreturn static void reject_stdout(int error)
{
    complain_stdout(error);
    worker_exit(EXIT_USAGE);
}

/* Returns true if a file is empty or matches the pattern of a format. */
static bool matches_format(const struct output_format *format, const char *path)
{
    char begin[513];
    FILE *in = fopen(path, "rb");
    if (!in)
        return false;
    const size_t n = fread(begin, 1, sizeof begin - 1, in);
    const bool is_read = !ferror(in);
    fclose(in);
    for (size_t i = 0; i < n; i++)
        begin[i] = begin[i] == '\0' ? ' ' : begin[i] < '\0' || begin[i] > '~' ? '?' : begin[i];
    begin[n] = '\0';
    return is_read && (n == 0 || fnmatch(format->begins, begin, 0) == 0);
}

/* Rejects a target that another output of this run has, and an existing file of another format. */
static void check_target(const struct cli *cli, const struct outputs *outputs,
                         struct output_file *output, const struct stat *old)
{
    struct stat link;
    const bool regular = old && S_ISREG(old->st_mode);
    if (!old && lstat(output->path, &link) == 0)
        reject_path(output->path, "it is a dangling link");
    output->target = regular ? realpath(output->path, NULL) : strdup(output->path);
    if (!output->target)
        reject_path(output->path, strerror(errno));
    for (const struct output_file *other = outputs->output; other < output; other++)
        if (other->target && strcmp(output->target, other->target) == 0)
            cli_reject("--out", output->path,
                       "is written already, as %s: expected another path", other->path);
    if (regular && !cli->force && !matches_format(output->format, output->path))
        cli_reject("--out", output->path,
                   "exists and is not a %s file of posenc: expected another path, or "
                   "--force to overwrite it",
                   output->format->name);
}

/* ---- Unnamed files ---- */

/* Creates TARGET.posenc-XXXXXX. Returns its descriptor and stores its name, to be freed; on failure -1 and NULL. */
static int create_temporary(const char *target, char **name)
{
    if (asprintf(name, "%s.posenc-XXXXXX", target) < 0)
        *name = NULL;
    const int file = *name ? mkostemp(*name, O_CLOEXEC) : -1;
    if (file < 0) {
        const int error = errno;
        free(*name);
        *name = NULL;
        errno = error;
    }
    return file;
}

/* Opens an unnamed file in the folder of the target. The system deletes it, however the process ends. */
static void open_unnamed(struct output_file *output)
{
    char *name;
    const int file = create_temporary(output->target, &name);
    if (file < 0)
        reject_path(output->path, strerror(errno));
    unlink(name);
    free(name);
    output->is_unnamed = true;
    output->stream = fdopen(file, "w+");
    if (!output->stream)
        reject_path(output->path, strerror(errno));
}

/* Returns the mode of the existing file, or that of a new file under the umask. */
static mode_t mode_for(const char *target)
{
    struct stat old;
    if (stat(target, &old) == 0)
        return old.st_mode & 07777;
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* Copies a stream to a descriptor. Returns false on an error, with errno. */
static bool copy_stream(FILE *from, int to)
{
    char bytes[1 << 16];
    bool ok = true;
    rewind(from);
    for (size_t n; ok && (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
        for (size_t done = 0; ok && done < n;) {
            const ssize_t written = write(to, bytes + done, n - done);
            ok = written > 0 || (written < 0 && errno == EINTR);
            done += written > 0 ? (size_t)written : 0;
        }
    return ok && !ferror(from);
}

/* Renames a complete file to its target. Blocks signals while the temporary name exists. Returns errno, or 0. */
static int publish(const struct output_file *output)
{
    sigset_t signals, before;
    char *name;
    sigemptyset(&signals);
    for (size_t i = 0; i < N_END_SIGNALS; i++)
        sigaddset(&signals, end_signals[i]);
    sigprocmask(SIG_BLOCK, &signals, &before);
    const int file = create_temporary(output->target, &name);
    bool ok = file >= 0 && copy_stream(output->stream, file) &&
              fchmod(file, mode_for(output->target)) == 0;
    int error = ok ? 0 : errno;
    if (file >= 0 && (close(file) != 0 || (ok && rename(name, output->target) != 0))) {
        error = errno;
        ok = false;
    }
    if (file >= 0 && !ok)
        unlink(name);
    free(name);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* ---- Opening ---- */

static void open_file(const struct cli *cli, const struct outputs *outputs,
                      struct output_file *output)
{
    struct stat old;
    bool exists = stat(output->path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode))
        reject_path(output->path, "it is a folder");
    if (exists && access(output->path, W_OK) != 0)
        reject_path(output->path, strerror(errno));
    check_target(cli, outputs, output, exists ? &old : NULL);
    if (!exists || S_ISREG(old.st_mode)) {
        open_unnamed(output);
        return;
    }
    output->stream = fopen(output->path, "w");
    if (!output->stream)
        reject_path(output->path, strerror(errno));
}

/* Opens a file, or standard output if `path` is NULL. */
static void add_output(const struct cli *cli, struct outputs *outputs,
                       const struct output_format *format, const char *path)
{
    if (outputs->n == LIST_MAX)
        cli_reject("--out", path, "expected at most %d outputs", LIST_MAX);
    for (size_t i = 0; i < outputs->n; i++) {
        const char *other = outputs->output[i].path;
        if (!path && !other)
            cli_reject("--out", format->name, "%s goes to stdout already: expected FORMAT:PATH",
                       outputs->output[i].format->name);
    }
    struct output_file *output = &outputs->output[outputs->n++];
    *output = (struct output_file){ .format = format, .path = path };
    if (path) {
        ignore_broken_pipes();
        open_file(cli, outputs, output);
        return;
    }
    output->stream = stdout;
    const int mode = fcntl(STDOUT_FILENO, F_GETFL);
    if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
        reject_stdout(EBADF);
}

/* Opens the output of a request FORMAT or FORMAT:PATH. */
static void add_request(const struct cli *cli, struct outputs *outputs, const char *request)
{
    const int length = (int)strcspn(request, ":");
    const struct output_format *format = NULL;
    const char *names[LIST_MAX];
    char name[96];
    size_t n = 0;
    snprintf(name, sizeof name, "%.*s", length, request);
    while ((format = format_next(cli, format)) && strcmp(format->name, name) != 0)
        names[n++] = format->name;
    if (!format)
        cli_reject_name("--out", name, names, n);
    const char *path = request[length] == ':' ? request + length + 1 : NULL;
    if (path && *path == '\0')
        cli_reject("--out", request, "expected FORMAT or FORMAT:PATH");
    if (format->program)
        external_check_format(format);
    add_output(cli, outputs, format, path && strcmp(path, "-") == 0 ? NULL : path);
}

void outputs_open(const struct cli *cli, struct outputs *outputs)
{
    outputs->n = 0;
    for (size_t i = 0; i < cli->out.n; i++)
        add_request(cli, outputs, cli->out.item[i]);
    if (cli->out.n == 0)
        add_output(cli, outputs, format_next(cli, NULL), NULL);
}

static void discard(struct output_file *output)
{
    if (output->stream && output->stream != stdout)
        fclose(output->stream);
    free(output->target);
    output->stream = NULL;
    output->target = NULL;
}

void outputs_discard(struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++)
        discard(&outputs->output[i]);
    outputs->n = 0;
}

/* Has an external program write its format. If it fails, the other outputs are kept, so that no records are lost. */
static void write_external(struct output_file *output, const json_t *records)
{
    const int status = external_write_format(output->format, records, output->stream);
    pipe_is_broken = pipe_is_broken || status == EXIT_BROKEN_PIPE;
    if (status == EXIT_OK || status == EXIT_BROKEN_PIPE)
        return;
    external_exit_code = status;
    discard(output);
}

void outputs_write(struct outputs *outputs, const json_t *records, const FILE *written)
{
    for (size_t i = 0; i < outputs->n; i++) {
        struct output_file *output = &outputs->output[i];
        if (output->stream == written)
            continue;
        if (output->format->program)
            write_external(output, records);
        else if (format_write(output->format, records, output->stream) != 0 &&
                 !ferror(output->stream))
            cli_reject("--out", output->format->name, "could not be rendered");
    }
}

void outputs_commit(struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++) { /* rename nothing before all is written */
        const struct output_file *output = &outputs->output[i];
        const int error = output->stream ? flush_stream(output->stream) : 0;
        pipe_is_broken = pipe_is_broken || error == EPIPE;
        if (error != 0 && error != EPIPE && !output->path)
            reject_stdout(error);
        if (error != 0 && error != EPIPE)
            reject_path(output->path, strerror(error));
    }
    for (size_t i = 0; i < outputs->n; i++) {
        const struct output_file *output = &outputs->output[i];
        const int error = output->stream && output->is_unnamed ? publish(output) : 0;
        if (error != 0)
            reject_path(output->path, strerror(error));
    }
    outputs_discard(outputs);
}
