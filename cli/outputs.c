/*
 * Writes output files that are complete or absent (see outputs.h).
 */
#define _GNU_SOURCE
#include "outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct outputs *volatile active; /* what a signal has to clean up */
static volatile sig_atomic_t finish, interrupted;

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
    signal(number, SIG_DFL);
    raise(number);
}

static void watch(struct outputs *outputs)
{
    active = outputs;
    const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
        struct sigaction old;
        bool ignored = sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN;
        if (!ignored || numbers[i] != SIGHUP) /* nohup keeps its promise */
            sigaction(numbers[i], &action, NULL);
    }
}

void outputs_finish_on_signal(void) { finish = 1; }

int outputs_interrupted(void) { return interrupted; }

void outputs_guard(void)
{
    const int modes[] = { O_WRONLY, O_RDONLY, O_RDWR }; /* stderr alone is lost in silence */
    for (int i = 0; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && open("/dev/null", modes[i]) != i)
            abort();
}

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

static int open_file(const struct cli *cli, struct out_file *output)
{
    struct stat old;
    bool exists = stat(output->path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode))
        return refuse_path(cli, output->path, "it is a folder");
    if (exists && access(output->path, W_OK) != 0)
        return refuse_path(cli, output->path, strerror(errno));
    if (exists && !S_ISREG(old.st_mode)) {
        output->stream = fopen(output->path, "w");
        return output->stream ? EXIT_FINE : refuse_path(cli, output->path, strerror(errno));
    }
    output->target = exists ? realpath(output->path, NULL) : strdup(output->path);
    char *temporary = NULL;
    if (!output->target || asprintf(&temporary, "%s.XXXXXX", output->target) < 0)
        return refuse_path(cli, output->path, strerror(errno));
    output->temporary = temporary; /* before the file is there: a signal may come at any time */
    int file = mkstemp(temporary);
    if (file < 0) {
        int why = errno;
        output->temporary = NULL;
        free(temporary);
        return refuse_path(cli, output->path, strerror(why));
    }
    if (fchmod(file, mode_for(exists ? &old : NULL)) != 0 ||
        !(output->stream = fdopen(file, "w"))) {
        close(file);
        return refuse_path(cli, output->path, strerror(errno));
    }
    return EXIT_FINE;
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
        if (path && other && strcmp(path, other) == 0)
            return cli_refuse(cli, "--out", path, "is written already: expected another path");
    }
    struct out_file *output = &outputs->output[outputs->n++];
    *output = (struct out_file){ .format = format, .path = path };
    if (!path) {
        output->stream = stdout;
        int mode = fcntl(STDOUT_FILENO, F_GETFL);
        return mode < 0 || (mode & O_ACCMODE) == O_RDONLY ? outputs_refuse_stdout(cli, EBADF)
                                                          : EXIT_FINE;
    }
    watch(outputs);
    return open_file(cli, output);
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

void outputs_discard(struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++) {
        struct out_file *output = &outputs->output[i];
        if (output->stream && output->stream != stdout)
            fclose(output->stream);
        if (output->temporary)
            unlink(output->temporary);
        free(output->temporary);
        free(output->target);
    }
    active = NULL;
    outputs->n = 0;
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

int outputs_publish(const struct cli *cli, struct out_file *output)
{
    if (!output->temporary)
        return EXIT_FINE;
    if (rename(output->temporary, output->target) != 0)
        return refuse_path(cli, output->path, strerror(errno));
    char *temporary = output->temporary;
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
        if (why != 0)
            status = !output->path ? outputs_refuse_stdout(cli, why)
                                   : refuse_path(cli, output->path, strerror(why));
    }
    for (size_t i = 0; i < outputs->n && status == EXIT_FINE; i++)
        status = outputs_publish(cli, &outputs->output[i]);
    outputs_discard(outputs);
    return status;
}
