/*
 * The first and only process of the guest that guest.sh boots: runs /program with the words that
 * the kernel's command line has after "--", its output on the second serial port, then says on
 * the console how it ended and switches the machine off.
 *
 * Reference: Linux, Documentation/admin-guide/init.rst and serial-console.rst.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* Bytes as they are: a terminal would put a carriage return before each end of a line. */
static int open_port(const char *path)
{
    int port = open(path, O_RDWR | O_NOCTTY);
    struct termios settings;
    if (port >= 0 && tcgetattr(port, &settings) == 0) {
        cfmakeraw(&settings);
        tcsetattr(port, TCSANOW, &settings);
    }
    return port;
}

static void tell(int console, const char *text, int number)
{
    char line[80];
    int n = snprintf(line, sizeof line, "\ninit: %s %d\n", text, number);
    if (write(console, line, (size_t)n) == n)
        tcdrain(console);
}

static int run_program(char **argv, int output)
{
    pid_t child = fork();
    if (child == 0) {
        dup2(output, STDIN_FILENO);
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        argv[0] = (char[]){ "/program" };
        /* Lazy binding saves registers with XSAVEC, which Bochs gets wrong. */
        setenv("LD_BIND_NOW", "1", 1);
        execv("/program", argv);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    tcdrain(output);
    return status;
}

int main(int argc, char **argv)
{
    (void)argc;
    mkdir("/dev", 0755);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    int console = open_port("/dev/ttyS0"), output = open_port("/dev/ttyS1");
    int status = run_program(argv, output);
    if (status >= 0 && WIFEXITED(status))
        tell(console, "exit", WEXITSTATUS(status));
    else if (status >= 0)
        tell(console, "signal", WTERMSIG(status));
    else
        tell(console, "no program", status);
    reboot(RB_POWER_OFF);
    for (;;) /* a process 1 that ends is a panic of the kernel */
        pause();
}
