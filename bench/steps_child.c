/*
 * Single steps of a copy of this process, by ptrace: on ARM, and where traps do not come.
 */
#define _GNU_SOURCE
#include "marks.h"
#include "steps.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    pid_t pid;
    struct user_regs_struct registers;
};

static uintptr_t address_of(const struct child *child)
{
#if defined(__x86_64__)
    return child->registers.rip;
#else
    return child->registers.pc;
#endif
}

static uintptr_t stack_of(const struct child *child)
{
#if defined(__x86_64__)
    return child->registers.rsp;
#else
    return child->registers.sp;
#endif
}

static bool where_back(void *user, uintptr_t *to)
{
    struct child *child = user;
#if defined(__x86_64__)
    errno = 0;
    *to = (uintptr_t)ptrace(PTRACE_PEEKDATA, child->pid, (void *)stack_of(child), NULL);
    return errno == 0;
#else
    *to = child->registers.regs[30];
    return true;
#endif
}

/* Waits for a stop; its signal, or 0 where the child has ended. */
static int stopped_by(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 0;
    return WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
}

static void follow(struct child *child, struct steps *steps)
{
    int number = stopped_by(child->pid);
    bool more = number == SIGSTOP;
    while (more) {
        struct iovec to = { &child->registers, sizeof child->registers };
        const long pass = number == SIGTRAP || number == SIGSTOP ? 0 : number;
        more = ptrace(PTRACE_GETREGSET, child->pid, (void *)NT_PRSTATUS, &to) == 0 &&
               (pass ||
                steps_take(steps, address_of(child), stack_of(child), where_back, child)) &&
               ptrace(PTRACE_SINGLESTEP, child->pid, NULL, (void *)pass) == 0 &&
               (number = stopped_by(child->pid)) != 0;
    }
    if (number != 0) {
        kill(child->pid, SIGKILL);
        (void)stopped_by(child->pid);
    }
}

bool steps_of_child(const struct counted_call *call, struct steps *steps)
{
    struct child child = { .pid = fork() };
    if (child.pid < 0)
        return false;
    if (child.pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) {
            raise(SIGSTOP);
            bench_between_marks(call->entry, call->first, call->second);
        }
        _exit(0);
    }
    follow(&child, steps);
    return steps->state != STEPS_BEFORE;
}

#else

bool steps_of_child(const struct counted_call *call, struct steps *steps)
{
    (void)call;
    (void)steps;
    return false;
}

#endif
