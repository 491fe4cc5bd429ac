/*
 * Who serves a call when no backend is given: whom posenc_select() or the environment names, or
 * the first of the list that runs here.  A refused selection leaves the one before as it was.  Backends
 * come to the list by posenc_backend_add(), too.
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

static enum posenc_status no_alibi(const struct posenc_alibi_args *args)
{
    (void)args;
    return POSENC_OK;
}

static struct posenc_backend plugin(const char *name, const char *needs)
{
    return (struct posenc_backend){ .size = sizeof(struct posenc_backend),
                                    .abi = POSENC_ABI,
                                    .name = name,
                                    .family = "mine",
                                    .description = "of this test",
                                    .needs = needs,
                                    .alibi = no_alibi };
}

/* A backend that is added is found, selected and forced by name; nobody gets it unasked. */
static void by_adding(void)
{
    static struct posenc_backend mine;
    mine = plugin("mine", "posenc-" POSENC_VERSION);
    require(posenc_select("mine") == POSENC_ERR_UNKNOWN, "nobody knows it before");
    require(posenc_backend_add(&mine) == POSENC_OK && posenc_backend_find("mine") == &mine,
            "it is found by name");
    const struct posenc_backend *last = NULL, *backend;
    for (size_t i = 0; (backend = posenc_backend_at(i)) != NULL; i++)
        last = backend;
    require(last == &mine, "it is the last of the list");
    require(posenc_select(NULL) == POSENC_OK &&
                strcmp(server(POSENC_KERNEL_alibi), "mine") != 0,
            "it is no default");
    require(posenc_select("mine") == POSENC_OK && serves_all("mine", "selected by the program"),
            "it is selected");
    select_in("POSENC_BACKEND", "mine");
    require(serves_all("mine", "POSENC_BACKEND=mine") &&
                posenc_selection(POSENC_KERNEL_t5_bias).status == POSENC_ERR_NOT_PROVIDED,
            "it is forced, and lacks what it lacks");
    select_in(NULL, NULL);
    struct posenc_backend other = mine, scalar = plugin("scalar", ""), old = mine;
    old.abi = POSENC_ABI - 1;
    require(posenc_backend_add(&mine) == POSENC_OK, "twice is once");
    require(posenc_backend_add(&other) == POSENC_ERR_ARGUMENT &&
                posenc_backend_add(&scalar) == POSENC_ERR_ARGUMENT,
            "a name is one backend's");
    require(posenc_backend_add(&old) == POSENC_ERR_ARGUMENT &&
                posenc_backend_add(NULL) == POSENC_ERR_ARGUMENT,
            "another ABI is refused");
}

/* What reads the inside of plans was made with this very library. */
static void of_another_version(void)
{
    static struct posenc_backend older;
    older = plugin("older", "posenc-0.0.1");
    struct posenc_alibi_args args = posenc_alibi_args_init();
    float slope = 1.0f, out[1];
    args.slopes = &slope;
    args.out = posenc_dense(out, 3, 1, 1, 1, 0);
    require(posenc_backend_obstacle(&older) &&
                strstr(posenc_backend_obstacle(&older), "another version of posenc"),
            "one of another version says so");
    require(posenc_alibi(&older, &args) == POSENC_ERR_UNSUPPORTED &&
                posenc_backend_add(&older) == POSENC_OK &&
                posenc_select("older") == POSENC_ERR_UNSUPPORTED,
            "and runs nothing");
}

static void too_many(void)
{
    static struct posenc_backend many[17];
    static char names[17][8];
    enum posenc_status status = POSENC_OK;
    for (int i = 0; i < 17 && !status; i++) {
        snprintf(names[i], sizeof names[i], "many%d", i);
        many[i] = plugin(names[i], "");
        status = posenc_backend_add(&many[i]);
    }
    require(status == POSENC_ERR_MEMORY, "a list of plug-ins ends");
}

int main(void)
{
    by_text();
    refusals();
    by_environment();
    by_adding();
    of_another_version();
    too_many();
    printf("%d failed\n", failures);
    return failures != 0;
}
