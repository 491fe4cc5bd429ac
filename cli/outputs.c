/*
 * Writes output files that are complete or absent (see outputs.h).
 */
#define _GNU_SOURCE
#include "outputs.h"
#include "hand_over.h"
#include "progress.h"
#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static struct outputs *volatile active; /* what a signal has to clean up */
static volatile sig_atomic_t finish, interrupted;
static bool reader_gone; /* of an output; the others are whole */
static int failed;       /* the exit code of a program that wrote an output */

static void on_signal(int number)
{
    if (finish && !interrupted) {
        interrupted = number;
        return;
    }
    const struct outputs *outputs = active;
    for (size_t i = 0; outputs && i < outputs->n; i++)
        if (outputs->output[i].temporary)
            unlink(outputs->output[i].temporary);
    progress_abandon();
    signal(number, SIG_DFL);
    raise(number);
}

static void watch(void)
{
    const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
        struct sigaction old;
        bool ignored = sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN;
        if (!ignored || numbers[i] != SIGHUP) /* nohup keeps its promise */
            sigaction(numbers[i], &action, NULL);
    }
}

/* A reader that goes away ends no run that has something to write elsewhere. */
static void on_pipe(int number) { (void)number; }

static void outlive_readers(void)
{
    struct sigaction action = { .sa_handler = on_pipe, .sa_flags = SA_RESTART }, old;
    if (sigaction(SIGPIPE, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        sigaction(SIGPIPE, &action, NULL); /* no program that is started has it */
}

void outputs_finish_on_signal(void)
{
    finish = 1;
    watch();
}

int outputs_interrupted(void) { return interrupted; }

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
    /* An earlier write failed and its reason is gone: another one tells. */
    return write(fileno(stream), "\n", 1) < 0 ? errno : EIO;
}

int outputs_refuse_stdout(const struct cli *cli, int why)
{
    return why == EBADF ? cli_refuse(cli, "output", NULL, "standard output is closed")
                        : cli_refuse(cli, "output", NULL,
                                     "standard output cannot be written: %s", strerror(why));
}

static int refuse_path(const struct cli *cli, const char *path, const char *why)
{
    return cli_refuse(cli, "--out", path,
                      "cannot be written: %s; expected a file in a folder that can be written",
                      why);
}

/* mkstemp gives 0600: a new file gets what the umask leaves, an old one keeps its mode. */
static mode_t mode_for(const struct stat *old)
{
    if (old)
        return old->st_mode & 07777;
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* A path that is there, or may be made in a folder that is there, with links resolved, malloc'ed;
 * NULL with errno. */
static char *output_target(const char *path)
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

bool output_is_own(const struct format *format, const char *path)
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
    output->target = old && !regular ? strdup(output->path) : output_target(output->path);
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
    if (regular && !cli->force && !output_is_own(output->format, output->path))
        return cli_refuse(cli, "--out", output->path,
                          "is there and no %s that posenc wrote: expected another path, or "
                          "--force to write over it",
                          output->format->name);
    return EXIT_FINE;
}

/* ---- Temporary files ---- */

static const char suffix[] = ".posenc-", drawn[] = "XXXXXX";

/* Removes a file of this user's that no process has locked. */
static void sweep_file(int folder, const char *name)
{
    const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat there;
    if (file >= 0 && fstat(file, &there) == 0 && S_ISREG(there.st_mode) &&
        there.st_uid == geteuid() && there.st_nlink == 1 && flock(file, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    if (file >= 0)
        close(file);
}

static void sweep(const char *target)
{
    const char *slash = strrchr(target, '/');
    char *folder = slash ? strndup(target, (size_t)(slash - target) + 1) : strdup("."),
         *prefix = NULL;
    DIR *list = folder ? opendir(folder) : NULL;
    const int n = asprintf(&prefix, "%s%s", slash ? slash + 1 : target, suffix);
    for (struct dirent *entry; list && n > 0 && (entry = readdir(list));)
        if (strncmp(entry->d_name, prefix, (size_t)n) == 0 &&
            strlen(entry->d_name) == (size_t)n + strlen(drawn))
            sweep_file(dirfd(list), entry->d_name);
    if (list)
        closedir(list);
    if (n > 0)
        free(prefix);
    free(folder);
}

/* Returns true if a new file is this process's: between its making and its lock another one may have swept it. */
static bool is_kept(int file)
{
    struct stat there;
    return flock(file, LOCK_EX) != 0 || fstat(file, &there) != 0 || there.st_nlink > 0;
}

/* Removes the files of this user that killed processes left of `target`, and opens a new one, TARGET.posenc-XXXXXX, of
 * mode 0600. The process that writes it has it locked. *path is allocated before the file is there: a signal may come at
 * any time. Returns -1 with errno, and *path NULL. */
static int temporary_open(const char *target, char **path)
{
    sweep(target);
    char *name = NULL;
    int file;
    do {
        free(name);
        if (asprintf(&name, "%s%s%s", target, suffix, drawn) < 0)
            name = NULL;
        *path = name;
        file = name ? mkostemp(name, O_CLOEXEC) : -1;
    } while (file >= 0 && !is_kept(file) && close(file) == 0);
    if (file < 0) {
        const int why = errno;
        *path = NULL;
        free(name);
        errno = why;
    }
    return file;
}

static int open_temporary(const struct cli *cli, struct out_file *output,
                          const struct stat *old)
{
    const int file = temporary_open(output->target, &output->temporary);
    if (file < 0)
        return refuse_path(cli, output->path, strerror(errno));
    worker_note_file(output->temporary, true);
    if (fchmod(file, mode_for(old)) != 0 || !(output->stream = fdopen(file, "w"))) {
        close(file);
        return refuse_path(cli, output->path, strerror(errno));
    }
    return EXIT_FINE;
}

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
        return open_temporary(cli, output, exists ? &old : NULL);
    output->stream = fopen(output->path, "w");
    return output->stream ? EXIT_FINE : refuse_path(cli, output->path, strerror(errno));
}

int outputs_add(const struct cli *cli, struct outputs *outputs, const struct format *format,
                const char *path)
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
    active = outputs;
    watch();
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
    return outputs_add(cli, outputs, format, path && strcmp(path, "-") == 0 ? NULL : path);
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
    return cli->out.n > 0 ? EXIT_FINE : outputs_add(cli, outputs, &formats[0], NULL);
}

static void discard(struct out_file *output)
{
    if (output->stream && output->stream != stdout)
        fclose(output->stream);
    if (output->temporary) {
        unlink(output->temporary);
        worker_note_file(output->temporary, false);
    }
    free(output->temporary);
    free(output->target);
    output->stream = NULL;
    output->temporary = output->target = NULL;
}

void outputs_discard(struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++)
        discard(&outputs->output[i]);
    active = NULL;
    outputs->n = 0;
}

/* A failure costs no other output: records of a long run are not lost with a format of them. */
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
        } else if (render(output->format, records, output->stream) != 0 &&
                   !ferror(output->stream)) {
            status = cli_refuse(cli, "--out", output->format->name, "could not be rendered");
        }
    }
    return status;
}

static int finish_stream(struct out_file *output)
{
    int why = outputs_error(output->stream);
    if (output->stream != stdout) {
        if (fclose(output->stream) != 0 && why == 0)
            why = errno;
        output->stream = NULL;
    }
    return why;
}

static int publish(const struct cli *cli, struct out_file *output)
{
    if (!output->temporary)
        return EXIT_FINE;
    if (rename(output->temporary, output->target) != 0)
        return refuse_path(cli, output->path, strerror(errno));
    char *temporary = output->temporary;
    worker_note_file(temporary, false);
    output->temporary = NULL; /* before it is freed: a signal may come at any time */
    free(temporary);
    return EXIT_FINE;
}

int outputs_commit(const struct cli *cli, struct outputs *outputs)
{
    int status = EXIT_FINE; /* all is written before anything is renamed */
    for (size_t i = 0; i < outputs->n && status == EXIT_FINE; i++) {
        struct out_file *output = &outputs->output[i];
        int why = output->stream ? finish_stream(output) : 0;
        reader_gone = reader_gone || why == EPIPE;
        if (why != 0 && why != EPIPE)
            status = !output->path ? outputs_refuse_stdout(cli, why)
                                   : refuse_path(cli, output->path, strerror(why));
    }
    for (size_t i = 0; i < outputs->n && status == EXIT_FINE; i++)
        status = publish(cli, &outputs->output[i]);
    outputs_discard(outputs);
    return status;
}
