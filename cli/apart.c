/*
 * Processes of this program's own: see apart.h.
 */
#define _GNU_SOURCE
#include "apart.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

static struct apart_note *own; /* of this process, where it is such a one */

/* The ends of pipes that are read here.  Another process is not to hold them: who writes to one would not
 * see that nobody reads. */
enum { MOST_OPEN = 256 };
static int reading[MOST_OPEN];
static size_t n_reading;

/* ---- In the process ---- */

void apart_doing(const char *what)
{
    if (!own)
        return;
    snprintf(own->doing, sizeof own->doing, "%s", what);
    own->inside = false;
    own->turn++;
}

void apart_enter(const char *what)
{
    if (!own)
        return;
    apart_doing(what);
    own->inside = true;
}

void apart_leave(void)
{
    if (!own)
        return;
    own->inside = false;
    own->turn++;
}

void apart_at(size_t which, size_t value)
{
    if (own)
        own->at[which] = value;
}

void apart_file(const char *path, bool exists)
{
    for (size_t i = 0; own && i < APART_FILES; i++) {
        char *file = own->files[i];
        if (exists ? file[0] == '\0' : strcmp(file, path) == 0) {
            snprintf(file, APART_PATH, "%s", exists ? path : "");
            return;
        }
    }
}

void apart_tell(int to, const void *message, size_t bytes)
{
    const char *at = message;
    while (bytes > 0) {
        const ssize_t n = write(to, at, bytes);
        if (n < 0 && errno != EINTR)
            _exit(1);
        at += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
}

/* Linux ends it together with its parent, however that ends; elsewhere its next message does. */
static void end_with(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent)
        _exit(1); /* it had gone before */
}

/* A plug-in that raises SIGPIPE ends its process, and one that prints where nobody reads does not, whatever
 * this program makes of the signal for its own outputs. */
static void on_pipe(int number, siginfo_t *info, void *context)
{
    (void)context;
#ifdef SI_TKILL
    if (info->si_code != SI_TKILL)
        return; /* of a write, which fails */
    signal(number, SIG_DFL);
    raise(number);
#else
    (void)number, (void)info;
#endif
}

/* A plug-in that calls exit() from several threads at once may deadlock in it.  This handler is registered
 * last, so exit() calls it first, and it ends the process before any other handler runs. */
#ifdef __GLIBC__
static bool all_done;

static void on_early_exit(int status, void *unused)
{
    (void)unused;
    if (!all_done)
        _exit(status);
}
#endif

static void run_work(struct apart_note *note, pid_t parent, apart_work *work, void *user,
                     int to, bool prints)
{
    static const int ending[] = { SIGINT, SIGTERM, SIGHUP };
    const struct rlimit none = { 0, 0 };
    const struct sigaction on_pipes = { .sa_sigaction = on_pipe,
                                        .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER };
    setpgid(0, 0);
    end_with(parent);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        signal(ending[i], SIG_DFL); /* what was begun is the parent's, and so is the end */
    setrlimit(RLIMIT_CORE, &none);
    while (n_reading > 0)
        close(reading[--n_reading]);
    if (!prints) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        sigaction(SIGPIPE, &on_pipes, NULL);
    }
    own = note;
    guard_note_to(&note->call);
#ifdef __GLIBC__
    on_exit(on_early_exit, NULL);
#endif
    work(user, to);
#ifdef __GLIBC__
    all_done = true;
#endif
    exit(ALL_DONE); /* not _exit(): sanitizers and coverage report at the end */
}

/* ---- Its parent ---- */

/* CPU time that a process used; the time of day where the system does not tell. */
static double cpu_s_of(pid_t pid)
{
#ifdef __linux__
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0)
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    (void)pid;
#endif
    return clock_now();
}

/* proc(5): the state is what follows the name, which may hold anything.  Z: its first thread has ended,
 * others have not. */
static bool sleeps(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "r");
    const size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = '\0';
    const char *name_ends = strrchr(text, ')');
    return name_ends && name_ends[1] == ' ' && strchr("STZ", name_ends[2]) != NULL;
}

struct patience patience_of(double limit_s, double outside_s)
{
    enum { USUAL_S = 60 };
    const double inside_s = isnan(limit_s) ? USUAL_S : limit_s;
    return (struct patience){ inside_s, fmax(inside_s, outside_s) };
}

static struct apart_note *make_note(void)
{
    void *memory = mmap(NULL, sizeof(struct apart_note), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory; /* zeros */
}

/* It begins something. */
static void silence_begins(struct silence *silence, pid_t pid)
{
    const double cpu_s = cpu_s_of(pid);
    *silence = (struct silence){ clock_now(), cpu_s, cpu_s, 0.0 };
}

/* Whether it has been at it for too long, to be asked a few times a second: then `words` say how. */
static bool silence_lasts(struct silence *silence, pid_t pid, double most_s,
                          char words[APART_WORDS])
{
    static const double asleep = 0.01, look_s = 1.0; /* a look counts for no more */
    const double now = clock_now(), cpu_s = cpu_s_of(pid), step_s = now - silence->asked_s,
                 ran_s = cpu_s - silence->since_cpu_s;
    const bool slept = cpu_s - silence->asked_cpu_s < asleep * step_s && sleeps(pid);
    silence->slept_s = slept ? silence->slept_s + fmin(step_s, look_s) : 0.0;
    silence->asked_s = now;
    silence->asked_cpu_s = cpu_s;
    if (ran_s > most_s)
        snprintf(words, APART_WORDS, "did not return within %.3g s of CPU time", ran_s);
    else if (silence->slept_s > most_s)
        snprintf(words, APART_WORDS, "did not return within %.3g s, in which it slept",
                 silence->slept_s);
    else
        return false;
    return true;
}

bool apart_begin(struct apart *apart, apart_work *work, void *user, bool prints)
{
    int ends[2] = { -1, -1 };
    const pid_t self = getpid();
    *apart = (struct apart){ .pid = -1, .from = -1, .note = make_note() };
    fflush(NULL); /* or both would write it */
    if (apart->note && pipe(ends) == 0)
        apart->pid = fork();
    if (apart->pid == 0) {
        close(ends[0]);
        run_work(apart->note, self, work, user, ends[1], prints);
    }
    if (ends[0] >= 0)
        close(ends[1]);
    if (apart->pid < 0) {
        if (ends[0] >= 0)
            close(ends[0]);
        apart_forget(apart);
        return false;
    }
    setpgid(apart->pid, apart->pid);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    apart->from = ends[0];
    if (n_reading < MOST_OPEN)
        reading[n_reading++] = apart->from;
    silence_begins(&apart->silence, apart->pid);
    return true;
}

void apart_heard(struct apart *apart) { silence_begins(&apart->silence, apart->pid); }

bool apart_hangs(struct apart *apart, const struct patience *patience, char words[APART_WORDS])
{
    const struct apart_note *note = apart->note;
    const bool inside = note->inside || note->call.inside;
    const double threads = 1.0 + note->call.beside; /* the clock is that of all of them */
    if (note->turn != apart->turn || note->call.turn != apart->call) {
        apart->turn = note->turn;
        apart->call = note->call.turn;
        silence_begins(&apart->silence, apart->pid);
        return false;
    }
    return silence_lasts(&apart->silence, apart->pid,
                         inside ? threads * patience->inside_s : patience->outside_s, words);
}

bool apart_is_gone(const struct apart *apart)
{
    siginfo_t info = { .si_pid = 0 };
    return waitid(P_PID, (id_t)apart->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == apart->pid;
}

enum apart_said apart_listen(struct apart *apart, const struct patience *patience,
                             void *message, size_t size, char hung[APART_WORDS])
{
    enum { MOMENT_MS = 200 };
    struct pollfd one = { .fd = apart->from, .events = POLLIN };
    const bool gone = apart_is_gone(apart);
    const int ready = poll(&one, 1, gone ? 0 : MOMENT_MS);
    if (ready <= 0)
        return gone || apart_hangs(apart, patience, hung) ? APART_OVER : APART_QUIET;
    const ssize_t n = read(apart->from, (char *)message + apart->part, size - apart->part);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        return APART_OVER;
    apart->part += n > 0 ? (size_t)n : 0;
    if (apart->part < size)
        return APART_QUIET;
    apart->part = 0;
    return APART_SAID;
}

static void wait_for(pid_t pid)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
}

bool apart_end(struct apart *apart, bool now, char words[APART_WORDS])
{
    int status = 0;
    if (now)
        kill(-apart->pid, SIGKILL);
    if (now)
        kill(apart->pid, SIGKILL); /* it may not have come to its group */
    for (size_t i = 0; i < n_reading; i++)
        if (reading[i] == apart->from)
            reading[i] = reading[--n_reading];
    close(apart->from);
    wait_for(apart->pid);
    kill(-apart->pid,
         SIGKILL); /* what it left behind; its number is not free before waitpid() */
    while (waitpid(apart->pid, &status, 0) < 0 && errno == EINTR) {
    }
    for (size_t i = 0; i < APART_FILES; i++)
        if (apart->note->files[i][0] != '\0')
            unlink(apart->note->files[i]);
    apart->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (apart->signal != 0)
        snprintf(words, APART_WORDS, "the process ended by signal %d (%s)", apart->signal,
                 strsignal(apart->signal));
    else
        snprintf(words, APART_WORDS, "the process was ended by exit(%d)", WEXITSTATUS(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == ALL_DONE;
}

void apart_forget(struct apart *apart)
{
    if (apart->note)
        munmap(apart->note, sizeof *apart->note);
    apart->note = NULL;
}

void apart_where(const struct apart *apart, const char *after, char *text, size_t size)
{
    const char *doing = apart->note->doing;
    if (doing[0] != '\0' && memchr(doing, '\0', sizeof apart->note->doing))
        snprintf(text, size, " in %s", doing);
    else
        snprintf(text, size, " after %s", after[0] != '\0' ? after : "no case");
}
