/*
 * Criterion under an emulator (qemu-user), for cross builds. Criterion starts each test in a process of its own by
 * execve() of this program. The kernel rejects that, as the program is for another CPU. This execve() replaces that of
 * the C library, and then starts the emulator with the program.
 *
 * MESON_EXE_WRAPPER is the emulator with its options, quoted for the shell. meson test sets it from the exe_wrapper of
 * the cross file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* OTHER_ARGUMENTS: five words before the program, the program, and the NULL at the end. */
enum { MOST_ARGUMENTS = 64, OTHER_ARGUMENTS = 7 };

int execve(const char *path, char *const argv[], char *const envp[])
{
    /* -0 sets the program's own name, by which Criterion recognises the process of a test. */
    static char shell[] = "/bin/sh", option[] = "-c", name[] = "sh",
                script[] = "eval \"exec $MESON_EXE_WRAPPER -0 \\\"\\$@\\\"\"";
    char *emulated[MOST_ARGUMENTS + OTHER_ARGUMENTS] = { shell, option, script, name, argv[0] };
    char program[4096]; /* a copy of `path`, as arguments are not const */
    syscall(SYS_execve, path, argv, envp);
    if (errno != ENOEXEC || !getenv("MESON_EXE_WRAPPER"))
        return -1;
    size_t n = 5, length = strlen(path);
    if (length >= sizeof program)
        return errno = ENAMETOOLONG, -1;
    memcpy(program, path, length + 1);
    emulated[n++] = program;
    for (int i = 1; argv[0] && argv[i]; i++) {
        if (i > MOST_ARGUMENTS)
            return errno = E2BIG, -1;
        emulated[n++] = argv[i];
    }
    return (int)syscall(SYS_execve, shell, emulated, envp);
}
