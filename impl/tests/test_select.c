/*
 * Who serves a call when no backend is given: whom posenc_select() or the environment names, or
 * the first of the list that runs here.  A refused selection leaves the one before as it was.
 */
#define _POSIX_C_SOURCE 200809L
#include <posenc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static void require(bool holds, const char *what)
{
    failures += !holds;
    printf("%s: %s\n", holds ? "ok" : "FAILED", what);
}

static const char *server(enum posenc_kernel kernel)
{
    const struct posenc_selection selection = posenc_selection(kernel);
    return selection.backend ? selection.backend->name : "nobody";
}

/* Whether every kernel that the backend has is served by it, and for this reason. */
static bool serves_all(const char *name, const char *reason)
{
    const struct posenc_backend *backend = posenc_backend_find(name);
    bool all = backend != NULL;
    for (int k = 0; all && k < POSENC_KERNEL_COUNT; k++)
        all = !posenc_provides(backend, (enum posenc_kernel)k) ||
              (strcmp(server((enum posenc_kernel)k), name) == 0 &&
               strcmp(posenc_selection((enum posenc_kernel)k).reason, reason) == 0);
    return all;
}

static void by_text(void)
{
    require(posenc_select("libm") == POSENC_OK && serves_all("libm", "selected by the program"),
            "one backend for every kernel");
    require(posenc_select(" scalar # of the templates\n") == POSENC_ERR_ARGUMENT,
            "a name with a comment is no line of two words");
    require(posenc_select("# a profile\n\nrope_half scalar\n  alibi libm # measured\n") ==
                    POSENC_OK &&
                strcmp(server(POSENC_KERNEL_rope_half), "scalar") == 0 &&
                strcmp(server(POSENC_KERNEL_alibi), "libm") == 0,
            "lines of a profile, with comments");
    require(posenc_select(NULL) == POSENC_OK && posenc_select("rope_half libm") == POSENC_OK &&
                strcmp(server(POSENC_KERNEL_rope_half), "libm") == 0,
            "a line alone");
}

static void refusals(void)
{
    static const struct {
        const char *text;
        enum posenc_status status;
    } bad[] = {
        { "", POSENC_ERR_ARGUMENT },
        { "# nothing", POSENC_ERR_ARGUMENT },
        { "no_such_backend", POSENC_ERR_UNKNOWN },
        { "rope_half no_such_backend", POSENC_ERR_UNKNOWN },
        { "no_such_kernel libm", POSENC_ERR_ARGUMENT },
        { "rope_half", POSENC_ERR_UNKNOWN }, /* one word is a backend's name */
        { "rope_half libm scalar", POSENC_ERR_ARGUMENT },
        { "rope_half scalar\nalibi\n", POSENC_ERR_ARGUMENT },
    };
    if (posenc_select("libm"))
        abort();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        require(posenc_select(bad[i].text) == bad[i].status &&
                    serves_all("libm", "selected by the program"),
                bad[i].text[0] ? bad[i].text : "an empty text");
    const struct posenc_backend *backend;
    for (size_t i = 0; (backend = posenc_backend_at(i)) != NULL; i++) {
        char line[128];
        snprintf(line, sizeof line, "learned_grad %s", backend->name);
        const enum posenc_status want =
            posenc_backend_obstacle(backend)                        ? POSENC_ERR_UNSUPPORTED
            : !posenc_provides(backend, POSENC_KERNEL_learned_grad) ? POSENC_ERR_NOT_PROVIDED
                                                                    : POSENC_OK;
        require(posenc_select(line) == want, line);
    }
}

static void select_in(const char *name, const char *value)
{
    unsetenv("POSENC_BACKEND");
    unsetenv("POSENC_MAX_ISA");
    if (name)
        setenv(name, value, 1);
    require(posenc_select(NULL) == POSENC_OK, "back to the environment");
}

static void by_environment(void)
{
    select_in(NULL, NULL);
    const struct posenc_selection first = posenc_selection(POSENC_KERNEL_rope_half);
    require(first.backend && !posenc_backend_obstacle(first.backend) &&
                strcmp(first.reason, "first of the list that runs here") == 0,
            "the first that runs here");
    select_in("POSENC_BACKEND", "libm");
    require(serves_all("libm", "POSENC_BACKEND=libm"), "POSENC_BACKEND=libm");
    select_in("POSENC_MAX_ISA", "scalar");
    require(strcmp(server(POSENC_KERNEL_rope_half), "scalar") == 0, "POSENC_MAX_ISA=scalar");
    select_in("POSENC_BACKEND", "fastest");
    const struct posenc_selection nobody = posenc_selection(POSENC_KERNEL_alibi);
    require(!nobody.backend && nobody.status == POSENC_ERR_UNKNOWN &&
                strstr(nobody.reason, "POSENC_BACKEND=fastest") &&
                strstr(nobody.reason, " scalar"),
            "an unknown one serves nobody, and what is usable is named");
    select_in("POSENC_MAX_ISA", "ssse5");
    require(!posenc_selection(POSENC_KERNEL_alibi).backend &&
                strstr(posenc_selection(POSENC_KERNEL_alibi).reason, "POSENC_MAX_ISA=ssse5"),
            "nor does an unknown POSENC_MAX_ISA");
    select_in(NULL, NULL);
    require(posenc_selection(POSENC_KERNEL_COUNT).status == POSENC_ERR_ARGUMENT,
            "no such kernel");
}

int main(void)
{
    by_text();
    refusals();
    by_environment();
    printf("%d failed\n", failures);
    return failures != 0;
}
