/*
 * Writes output files that are complete or absent (see outputs.h).
 *
 * Each output is a stream: stdout, a device that is written directly, or a file without a name beside its target. The
 * last is copied to a temporary name and renamed when all outputs are written.
 */
#define _GNU_SOURCE
#include "outputs.h"
#include "hand_over.h"
#include "progress.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted; /* number of the first signal */
static bool reader_gone; /* the reader of an output went away; the others are complete */
static int failed;       /* exit code of a program that could not write its format */

/* ---- Signals ---- */

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
enum { ENDING = sizeof ending / sizeof *ending };

/* Notes the first signal; the second ends the process. */
static void on_signal(int number)
{
    if (!interrupted) {
        interrupted = number;
        return;
    }
    progress_abandon();
    signal(number, SIG_DFL);
    raise(number);
}

void outputs_finish_on_signal(void)
{
    const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    for (size_t i = 0; i < ENDING; i++) {
        struct sigaction old;
        const bool ignored = sigaction(ending[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN;
        if (!ignored || ending[i] != SIGHUP) /* nohup keeps its promise */
            sigaction(ending[i], &action, NULL);
    }
}

int outputs_interrupted(void) { return interrupted; }

/* Lets a run go on that has something to write elsewhere when a reader goes away. */
static void on_pipe(int number) { (void)number; }

static void outlive_readers(void)
{
    struct sigaction action = { .sa_handler = on_pipe, .sa_flags = SA_RESTART }, old;
    if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(SIGPIPE, &action, NULL); /* no program that is started has it */
}

/* ---- Standard streams ---- */

void outputs_guard(void)
{
    const int modes[] = { O_WRONLY, O_RDONLY, O_RDWR }; /* stderr alone is lost in silence */
    for (int i = 0; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", modes[i]) != i)
            abort();
}

bool outputs_reader_gone(void) { return reader_gone; }

int outputs_failed(void) { return failed; }

int outputs_error(FILE *stream)
{
    errno = 0;
    if (fflush(stream) != 0 && errno != 0)
        return errno;
    if (!ferror(stream))
        return 0;
    /* The reason of an earlier failure is gone: another write fails for it. */
    return write(fileno(stream), "\n", 1) < 0 ? errno : EIO;
}

int outputs_refuse_stdout(const struct cli *cli, int why)
{
    return why == EBADF ? cli_refuse(cli, "output", NULL, "standard output is closed")
                        : cli_refuse(cli, "output", NULL,
                                     "standard output cannot be written: %s", strerror(why));
}

/* ---- Targets ---- */

static int refuse_path(const struct cli *cli, const char *path, const char *why)
{
    return cli_refuse(cli, "--out", path,
                      "cannot be written: %s; expected a file in a folder that can be written",
                      why);
}

/* Returns a path with links resolved, to be freed. The file need not be there, but its folder. Returns NULL with errno. */
static char *resolve(const char *path)
{
    char *target = realpath(path, NULL);
    const char *slash = strrchr(path, '/');
    struct stat link;
    if (target || errno != ENOENT || lstat(path, &link) == 0)
        return target;
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    char *whole = folder ? realpath(folder, NULL) : NULL;
    if (whole &&
        asprintf(&target, "%s/%s", whole[1] != '\0' ? whole : "", slash ? slash + 1 : path) < 0)
        target = NULL;
    free(whole);
    free(folder);
    return target;
}

/* Returns true if a file is empty or begins as those of the format do. */
static bool begins_as(const struct format *format, const char *path)
{
    char begin[513];
    FILE *in = fopen(path, "rb");
    if (!in)
        return false;
    size_t n = fread(begin, 1, sizeof begin - 1, in);
    bool read = !ferror(in);
    fclose(in);
    for (size_t i = 0; i < n; i++)
        begin[i] = begin[i] == '\0' ? ' ' : begin[i] < '\0' || begin[i] > '~' ? '?' : begin[i];
    begin[n] = '\0';
    return read && (n == 0 || fnmatch(format->begins, begin, 0) == 0);
}

static bool same_file(const struct out_file *a, const struct out_file *b)
{
    struct stat one, two;
    return strcmp(a->target, b->target) == 0 ||
           (stat(a->path, &one) == 0 && stat(b->path, &two) == 0 && one.st_dev == two.st_dev &&
            one.st_ino == two.st_ino);
}

/* Rejects a target that would lose another output of this run, or a file that posenc did not write. */
static int check_target(const struct cli *cli, const struct outputs *outputs,
                        struct out_file *output, const struct stat *old)
{
    struct stat link;
    bool regular = old && S_ISREG(old->st_mode);
    output->target = old && !regular ? strdup(output->path) : resolve(output->path);
    if (!output->target)
        return refuse_path(cli, output->path,
                           errno == ENOENT && lstat(output->path, &link) == 0
                               ? "it is a link to what is not there"
                               : strerror(errno));
    for (const struct out_file *other = outputs->output; other < output; other++)
        if (other->target && same_file(output, other))
            return cli_refuse(cli, "--out", output->path,
                              "is written already%s%s: expected another path",
                              strcmp(output->path, other->path) != 0 ? ", as " : "",
                              strcmp(output->path, other->path) != 0 ? other->path : "");
    if (regular && !cli->force && !begins_as(output->format, output->path))
        return cli_refuse(cli, "--out", output->path,
                          "is there and no %s that posenc wrote: expected another path, or "
                          "--force to write over it",
                          output->format->name);
    return EXIT_FINE;
}

/* ---- Files without a name, until they are complete ---- */

/* Creates TARGET.posenc-XXXXXX. Returns its descriptor and its name, to be freed, or -1 with errno and NULL. */
static int create_beside(const char *target, char **name)
{
    if (asprintf(name, "%s.posenc-XXXXXX", target) < 0)
        *name = NULL;
    const int file = *name ? mkostemp(*name, O_CLOEXEC) : -1;
    if (file < 0) {
        const int why = errno;
        free(*name);
        *name = NULL;
        errno = why;
    }
    return file;
}

/* Opens a file without a name in the folder of the target, so that a process leaves nothing behind, however it ends. */
static int open_nameless(const struct cli *cli, struct out_file *output)
{
    char *name;
    const int file = create_beside(output->target, &name);
    if (file < 0)
        return refuse_path(cli, output->path, strerror(errno));
    unlink(name);
    free(name);
    output->is_nameless = true;
    output->stream = fdopen(file, "w+");
    if (!output->stream)
        close(file);
    return output->stream ? EXIT_FINE : refuse_path(cli, output->path, strerror(errno));
}

/* Returns the mode of the file that is replaced; a new file gets what the umask leaves. */
static mode_t mode_for(const char *target)
{
    struct stat old;
    if (stat(target, &old) == 0)
        return old.st_mode & 07777;
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

static bool copy(FILE *from, int to)
{
    char bytes[1 << 16];
    bool good = true;
    rewind(from);
    for (size_t n; good && (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
        for (size_t at = 0; good && at < n;) {
            const ssize_t written = write(to, bytes + at, n - at);
            good = written > 0 || (written < 0 && errno == EINTR);
            at += written > 0 ? (size_t)written : 0;
        }
    return good && !ferror(from);
}

/* Gives a complete file its name. Signals wait for that, since the copy has a name of its own for a moment. Returns
 * errno, or 0. */
static int publish(const struct out_file *output)
{
    sigset_t signals, before;
    char *name;
    sigemptyset(&signals);
    for (size_t i = 0; i < ENDING; i++)
        sigaddset(&signals, ending[i]);
    sigprocmask(SIG_BLOCK, &signals, &before);
    const int file = create_beside(output->target, &name);
    bool good =
        file >= 0 && copy(output->stream, file) && fchmod(file, mode_for(output->target)) == 0;
    int why = good ? 0 : errno;
    if (file >= 0 && (close(file) != 0 || (good && rename(name, output->target) != 0))) {
        why = errno;
        good = false;
    }
    if (file >= 0 && !good)
        unlink(name);
    free(name);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return why;
}

/* ---- Opening ---- */

static int open_file(const struct cli *cli, const struct outputs *outputs,
                     struct out_file *output)
{
    struct stat old;
    bool exists = stat(output->path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode))
        return refuse_path(cli, output->path, "it is a folder");
    if (exists && access(output->path, W_OK) != 0)
        return refuse_path(cli, output->path, strerror(errno));
    if (check_target(cli, outputs, output, exists ? &old : NULL) != EXIT_FINE)
        return EXIT_USAGE;
    if (!exists || S_ISREG(old.st_mode))
        return open_nameless(cli, output);
    output->stream = fopen(output->path, "w");
    return output->stream ? EXIT_FINE : refuse_path(cli, output->path, strerror(errno));
}

static int add_output(const struct cli *cli, struct outputs *outputs,
                      const struct format *format, const char *path)
{
    if (outputs->n == LIST_MAX)
        return cli_refuse(cli, "--out", path, "expected at most %d outputs", LIST_MAX);
    for (size_t i = 0; i < outputs->n; i++) {
        const char *other = outputs->output[i].path;
        if (!path && !other)
            return cli_refuse(cli, "--out", format->name,
                              "%s goes to stdout already: expected FORMAT:PATH",
                              outputs->output[i].format->name);
    }
    struct out_file *output = &outputs->output[outputs->n++];
    *output = (struct out_file){ .format = format, .path = path };
    if (!path) {
        output->stream = stdout;
        int mode = fcntl(STDOUT_FILENO, F_GETFL);
        return mode < 0 || (mode & O_ACCMODE) == O_RDONLY ? outputs_refuse_stdout(cli, EBADF)
                                                          : EXIT_FINE;
    }
    outlive_readers();
    return open_file(cli, outputs, output);
}

static int add_request(const struct cli *cli, struct outputs *outputs,
                       const struct format *formats, unsigned commands, const char *request)
{
    size_t n = 0, length = strcspn(request, ":");
    const struct format *format = format_find(formats, commands, request, length);
    if (!format) {
        const char *names[LIST_MAX];
        char name[96];
        for (; formats->name && n < LIST_MAX; formats++)
            if (formats->commands & commands)
                names[n++] = formats->name;
        snprintf(name, sizeof name, "%.*s", (int)length, request);
        return cli_refuse_name(cli, "--out", name, names, n);
    }
    const char *path = request[length] == ':' ? request + length + 1 : NULL;
    if (path && *path == '\0')
        return cli_refuse(cli, "--out", request, "expected FORMAT or FORMAT:PATH");
    if (format->program && exported_check(cli, format) != EXIT_FINE)
        return EXIT_USAGE;
    return add_output(cli, outputs, format, path && strcmp(path, "-") == 0 ? NULL : path);
}

int outputs_open(struct cli *cli, struct outputs *outputs, const struct format *formats,
                 unsigned commands)
{
    outputs->n = 0;
    for (size_t i = 0; i < cli->out.n; i++) {
        if (add_request(cli, outputs, formats, commands, cli->out.item[i]) != EXIT_FINE) {
            outputs_discard(outputs);
            return EXIT_USAGE;
        }
    }
    return cli->out.n > 0 ? EXIT_FINE : add_output(cli, outputs, &formats[0], NULL);
}

static void discard(struct out_file *output)
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

/* Has a program write its format. If it fails, the other outputs stay: records of a long run are not lost. */
static void export(const struct cli *cli, struct out_file *output, const json_t *records)
{
    const int status = exported_write(cli, output->format, records, output->stream);
    reader_gone = reader_gone || status == EXIT_READER_GONE;
    if (status == EXIT_FINE || status == EXIT_READER_GONE)
        return;
    failed = status;
    discard(output);
}

int outputs_write(const struct cli *cli, struct outputs *outputs, const json_t *records,
                  const FILE *written)
{
    int status = EXIT_FINE;
    for (size_t i = 0; i < outputs->n && status == EXIT_FINE; i++) {
        struct out_file *output = &outputs->output[i];
        if (output->stream == written)
            continue;
        if (output->format->program) {
            export(cli, output, records);
        } else if (format_write(output->format, records, output->stream) != 0 &&
                   !ferror(output->stream)) {
            status = cli_refuse(cli, "--out", output->format->name, "could not be rendered");
        }
    }
    return status;
}

int outputs_commit(const struct cli *cli, struct outputs *outputs)
{
    int status = EXIT_FINE; /* all is written before anything gets its name */
    for (size_t i = 0; i < outputs->n && status == EXIT_FINE; i++) {
        const struct out_file *output = &outputs->output[i];
        const int why = output->stream ? outputs_error(output->stream) : 0;
        reader_gone = reader_gone || why == EPIPE;
        if (why != 0 && why != EPIPE)
            status = !output->path ? outputs_refuse_stdout(cli, why)
                                   : refuse_path(cli, output->path, strerror(why));
    }
    for (size_t i = 0; i < outputs->n && status == EXIT_FINE; i++) {
        const struct out_file *output = &outputs->output[i];
        const int why = output->stream && output->is_nameless ? publish(output) : 0;
        if (why != 0)
            status = refuse_path(cli, output->path, strerror(why));
    }
    outputs_discard(outputs);
    return status;
}
