/*
 * Who serves a call when no backend is given: whom posenc_select() or the environment names, or
 * the first of the list that runs here.  A refused selection leaves the one before as it was.  Backends
 * come to the list by posenc_backend_add(), too.
 */
#define _POSIX_C_SOURCE 200809L
#define POSENC_EXPERIMENTAL
#include <posenc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
        { "rope_half libm f64", POSENC_ERR_ARGUMENT },
        { "rope_half libm f32 many", POSENC_ERR_ARGUMENT },
        { "rope_half libm f32 -1", POSENC_ERR_ARGUMENT },
        { "rope_half libm f32 1000000000000000000", POSENC_ERR_ARGUMENT },
        { "rope_half libm f32 1 1", POSENC_ERR_ARGUMENT },
        { "rope_half libm f32 1\nrope_half fastest", POSENC_ERR_UNKNOWN },
        { "cpu anything\nrope_half libm", POSENC_ERR_ARGUMENT }, /* of a profile alone */
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

/* ---- By type and footprint ---- */

static const char *server_of(enum posenc_dtype dtype, uint64_t bytes)
{
    const struct posenc_selection s =
        posenc_selection_for(POSENC_KERNEL_rope_half, dtype, bytes);
    return s.backend ? s.backend->name : "nobody";
}

static bool serve(enum posenc_dtype dtype, uint64_t bytes, const char *name)
{
    return strcmp(server_of(dtype, bytes), name) == 0;
}

static void by_footprint(void)
{
    require(posenc_select("libm") == POSENC_OK &&
                posenc_select("rope_half scalar f32 1000\nrope_half libm f32\n"
                              "rope_half scalar bf16\n") == POSENC_OK,
            "lines with types and bytes");
    require(serve(POSENC_F32, 1000, "scalar") && serve(POSENC_F32, 1001, "libm") &&
                serve(POSENC_BF16, UINT64_MAX, "scalar"),
            "the first line that holds a call counts");
    require(posenc_selection_for(POSENC_KERNEL_rope_half, POSENC_F16, 1).backend ==
                    posenc_selection(POSENC_KERNEL_alibi).backend &&
                serve(POSENC_F32, 0, server(POSENC_KERNEL_rope_half)),
            "what no line holds is as without them");
    require(posenc_select("rope_half libm\nrope_half scalar f32 1000") == POSENC_OK &&
                serve(POSENC_F32, 1, "libm"),
            "a line that holds all is before those after it");
    char many[25 * 32] = "";
    for (int i = 0; i < 24; i++)
        strcat(many, "alibi libm f32 1000\n");
    require(posenc_select(many) == POSENC_OK, "24 lines of a kernel");
    require(posenc_select(strcat(many, "alibi libm")) == POSENC_ERR_ARGUMENT, "and no more");
    require(posenc_selection_for(POSENC_KERNEL_COUNT, POSENC_F32, 0).status ==
                POSENC_ERR_ARGUMENT,
            "no such kernel has no server");
}

/* Whether calls go where the selection says: a backend of this test serves them, which counts. */
static int counted;

static enum posenc_status count_alibi(const struct posenc_alibi_args *args)
{
    (void)args;
    counted++;
    return POSENC_OK;
}

static void calls_by_footprint(void)
{
    enum { HEADS = 2, QUERIES = 4, KEYS = 8, ELEMENTS = HEADS * QUERIES * KEYS };
    static struct posenc_backend counts;
    static float x[ELEMENTS], out[ELEMENTS];
    const float slopes[HEADS] = { 0.5f, 0.25f };
    counts = (struct posenc_backend){ .size = sizeof counts,
                                      .abi = POSENC_ABI,
                                      .name = "counts",
                                      .family = "mine",
                                      .description = "of this test",
                                      .needs = "",
                                      .alibi_add = count_alibi };
    struct posenc_alibi_args args = posenc_alibi_args_init();
    args.slopes = slopes;
    args.x = posenc_const_dense(x, 3, HEADS, QUERIES, KEYS, 0);
    args.out = posenc_dense(out, 3, HEADS, QUERIES, KEYS, 0);
    const uint64_t bytes = 2 * sizeof x;
    require(posenc_footprint(POSENC_KERNEL_alibi_add, &args) == bytes,
            "a footprint is x and out");
    args.x.data = out;
    require(posenc_footprint(POSENC_KERNEL_alibi_add, &args) == sizeof x,
            "in place it is one of them");
    require(posenc_footprint(POSENC_KERNEL_alibi_add, NULL) == 0 &&
                posenc_footprint(POSENC_KERNEL_COUNT, &args) == 0,
            "of nothing it is 0");
    char line[2][64];
    snprintf(line[0], sizeof line[0], "alibi_add counts f32 %zu", sizeof x);
    snprintf(line[1], sizeof line[1], "alibi_add counts f32 %zu", sizeof x - 1);
    const bool added = posenc_backend_add(&counts) == POSENC_OK;
    for (int small = 0; small < 2; small++) {
        counted = 0;
        require(added && posenc_select(line[small]) == POSENC_OK &&
                    posenc_alibi_add(NULL, &args) == POSENC_OK && counted == !small,
                small ? "a larger call goes elsewhere" : "a call goes where its line says");
    }
}

/* ---- Profiles ---- */

static char path[] = "test_select-XXXXXX";

static void write_profile(const char *cpu, const char *build, const char *rest)
{
    FILE *to = fopen(path, "w");
    if (!to)
        abort();
    fputs("posenc.tune/1\n# a profile\n", to);
    if (cpu)
        fprintf(to, "cpu %s  # this one\n", cpu);
    if (build)
        fprintf(to, "build %s\n", build);
    fputs(rest, to);
    fclose(to);
}

static void require_refused(enum posenc_status status, const char *word)
{
    char why[512] = "";
    const bool same = posenc_select_profile(path, why, sizeof why) == status;
    require(same && strstr(why, word) && strstr(why, path) &&
                strcmp(server(POSENC_KERNEL_rope_half), "libm") == 0,
            *why ? why : word);
}

static void by_profile(void)
{
    static const char choices[] = "rope_half scalar f32 4096\n";
    char cpu[600], why[512] = "nothing", text[1200];
    const int file = mkstemp(path);
    if (file < 0 || posenc_select("libm"))
        abort();
    snprintf(cpu, sizeof cpu, "%s %s", posenc_cpu_key(), posenc_cpu_features());
    write_profile("vax-780 fpa", posenc_build(), choices);
    require_refused(POSENC_ERR_UNSUPPORTED, "vax-780 fpa");
    write_profile(cpu, "0.0.1 tcc", choices);
    require_refused(POSENC_ERR_UNSUPPORTED, "0.0.1 tcc");
    write_profile(cpu, NULL, choices);
    require_refused(POSENC_ERR_ARGUMENT, "build");
    write_profile(NULL, posenc_build(), choices);
    require_refused(POSENC_ERR_ARGUMENT, "cpu");
    write_profile(cpu, posenc_build(), "");
    require_refused(POSENC_ERR_ARGUMENT, "a choice");
    write_profile(cpu, posenc_build(), "rope_half scalar f32 4096\nrope_full scalar\n");
    require_refused(POSENC_ERR_ARGUMENT, "line 6: 'rope_full' is no kernel");
    write_profile(cpu, posenc_build(), choices);
    require(posenc_select_profile(path, why, sizeof why) == POSENC_OK && !*why &&
                serve(POSENC_F32, 4096, "scalar") &&
                strstr(posenc_selection(POSENC_KERNEL_rope_half).reason, path),
            "a profile of this CPU and build");
    snprintf(text, sizeof text, "posenc.tune/1\ncpu %s\nbuild %s\nalibi libm\n", cpu,
             posenc_build());
    require(posenc_select(text) == POSENC_OK &&
                strcmp(server(POSENC_KERNEL_alibi), "libm") == 0,
            "a profile's text");
    require(posenc_select_profile("no/such/profile", why, sizeof why) == POSENC_ERR_ARGUMENT &&
                strstr(why, "no/such/profile") &&
                posenc_select_profile(NULL, NULL, 0) == POSENC_ERR_ARGUMENT,
            "a file that is not there");
    close(file);
}

static void select_in(const char *name, const char *value)
{
    unsetenv("POSENC_BACKEND");
    unsetenv("POSENC_MAX_ISA");
    unsetenv("POSENC_PROFILE");
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

static void by_profile_of_environment(void)
{
    select_in(NULL, NULL);
    const char *first = server(POSENC_KERNEL_rope_half);
    select_in("POSENC_PROFILE", path);
    require(serve(POSENC_F32, 1, "scalar") && serve(POSENC_F32, 4097, first) &&
                strstr(posenc_selection(POSENC_KERNEL_rope_half).reason, path),
            "POSENC_PROFILE");
    setenv("POSENC_BACKEND", "libm", 1);
    require(posenc_select(NULL) == POSENC_OK && serve(POSENC_F32, 1, "libm"),
            "POSENC_BACKEND goes before it");
    write_profile("vax-780", posenc_build(), "rope_half scalar\n");
    select_in("POSENC_PROFILE", path);
    const struct posenc_selection usual = posenc_selection(POSENC_KERNEL_rope_half);
    require(usual.backend && strcmp(usual.backend->name, first) == 0 &&
                strstr(usual.reason, "POSENC_PROFILE is not used") &&
                strstr(usual.reason, "vax-780"),
            "one of another CPU is not used, and the reason says so");
    remove(path);
    select_in(NULL, NULL);
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
    by_footprint();
    by_profile();
    by_environment();
    by_profile_of_environment();
    calls_by_footprint();
    by_adding();
    of_another_version();
    too_many();
    printf("%d failed\n", failures);
    return failures != 0;
}
