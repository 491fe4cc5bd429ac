/*
 * Tests which backend runs a call without one: the one that posenc_select() or the environment names, or the first of
 * the list that runs here. A rejected selection keeps the one before. posenc_backend_add() adds backends to the list.
 */
#define _POSIX_C_SOURCE 200809L
#include <posenc/backend.h>
#include <posenc/experimental.h>
#include "base/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *selected_name(enum posenc_kernel kernel)
{
    const struct posenc_selection selection = posenc_selection_of(kernel, POSENC_DTYPE_F32, 0);
    return selection.backend ? selection.backend->name : "none";
}

/* Returns true if the backend is selected for all of its kernels, for this reason. */
static bool is_selected_for_all(const char *name, const char *reason)
{
    const struct posenc_backend *backend = posenc_backend_find(name);
    bool all = backend != NULL;
    for (enum posenc_kernel k = 0; all && k < POSENC_KERNEL_COUNT; k++)
        all = !posenc_backend_provides(backend, k) ||
              (strcmp(selected_name(k), name) == 0 &&
               strcmp(posenc_selection_of(k, POSENC_DTYPE_F32, 0).reason, reason) == 0);
    return all;
}

static void test_text(void)
{
    require(posenc_select("libm", NULL) == POSENC_OK &&
                is_selected_for_all("libm", "selected by the program"),
            "the name of a backend selects it for every kernel");
    require(posenc_select(" scalar # of the templates\n", NULL) == POSENC_ERR_ARGUMENT,
            "a name with a comment is no line of two words");
    require(posenc_select("# a tuning file\n\nrope_half scalar\n  alibi libm # measured\n",
                          NULL) == POSENC_OK &&
                strcmp(selected_name(POSENC_KERNEL_ROPE_HALF), "scalar") == 0 &&
                strcmp(selected_name(POSENC_KERNEL_ALIBI), "libm") == 0,
            "lines of a tuning file with comments are accepted");
    require(posenc_select(NULL, NULL) == POSENC_OK &&
                posenc_select("rope_half libm", NULL) == POSENC_OK &&
                strcmp(selected_name(POSENC_KERNEL_ROPE_HALF), "libm") == 0,
            "a line alone is accepted");
}

static void test_rejections(void)
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
        { "cpu anything\nrope_half libm", POSENC_ERR_ARGUMENT }, /* only in a tuning file */
        { "rope_half scalar\nalibi\n", POSENC_ERR_ARGUMENT },
    };
    if (posenc_select("libm", NULL))
        abort();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char sentence[128];
        snprintf(sentence, sizeof sentence, "\"%.*s\" is rejected, and changes nothing",
                 (int)strcspn(bad[i].text, "#\n"), bad[i].text);
        require(posenc_select(bad[i].text, NULL) == bad[i].status &&
                    is_selected_for_all("libm", "selected by the program"),
                sentence);
    }
    const struct posenc_backend *backend;
    for (size_t i = 0; (backend = posenc_backend_at(i)) != NULL; i++) {
        char line[128];
        snprintf(line, sizeof line, "learned_grad %s", backend->name);
        enum posenc_status want = POSENC_OK;
        if (posenc_backend_unavailable_reason(backend))
            want = POSENC_ERR_UNSUPPORTED;
        else if (!posenc_backend_provides(backend, POSENC_KERNEL_LEARNED_GRAD))
            want = POSENC_ERR_NOT_PROVIDED;
        require(posenc_select(line, NULL) == want, line);
    }
}

/* ---- Lines with dtypes and footprints ---- */

static bool is_selected(enum posenc_dtype dtype, uint64_t bytes, const char *name)
{
    const struct posenc_selection s =
        posenc_selection_of(POSENC_KERNEL_ROPE_HALF, dtype, bytes);
    return s.backend && strcmp(s.backend->name, name) == 0;
}

static void test_footprint(void)
{
    if (posenc_select(NULL, NULL))
        abort();
    const struct posenc_backend *usual =
        posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F32, 0).backend;
    require(posenc_select("rope_half scalar f32 1000\nrope_half libm f32\n"
                          "rope_half scalar bf16\n",
                          NULL) == POSENC_OK,
            "lines with types and bytes are accepted");
    require(is_selected(POSENC_DTYPE_F32, 0, "scalar") &&
                is_selected(POSENC_DTYPE_F32, 1000, "scalar") &&
                is_selected(POSENC_DTYPE_F32, 1001, "libm") &&
                is_selected(POSENC_DTYPE_BF16, UINT64_MAX, "scalar"),
            "the first line that matches a call counts");
    require(usual &&
                posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F16, 1).backend ==
                    usual,
            "a call that no line matches runs as without lines");
    require(posenc_select("rope_half libm\nrope_half scalar f32 1000", NULL) == POSENC_OK &&
                is_selected(POSENC_DTYPE_F32, 1, "libm"),
            "a line that matches every call overrides those after it");
    enum { MAX_LINES = 24 }; /* MAX_RULES of select.h */
    char many[(MAX_LINES + 1) * sizeof "alibi libm f32 1000\n"] = "";
    for (int i = 0; i < MAX_LINES; i++)
        strcat(many, "alibi libm f32 1000\n");
    require(posenc_select(many, NULL) == POSENC_OK, "24 lines of a kernel are accepted");
    require(posenc_select(strcat(many, "alibi libm"), NULL) == POSENC_ERR_ARGUMENT,
            "25 lines of a kernel are rejected");
    require(posenc_selection_of(POSENC_KERNEL_COUNT, POSENC_DTYPE_F32, 0).status ==
                POSENC_ERR_ARGUMENT,
            "an unknown kernel has no backend");
}

static int counted; /* calls of a backend of this test */

static enum posenc_status count_alibi(const struct posenc_alibi_args *args)
{
    (void)args;
    counted++;
    return POSENC_OK;
}

static struct posenc_backend make_plugin(const char *name, const char *needs)
{
    return (struct posenc_backend){ .size = sizeof(struct posenc_backend),
                                    .abi = POSENC_ABI,
                                    .name = name,
                                    .family = "mine",
                                    .description = "of this test",
                                    .required_features = needs,
                                    .alibi = count_alibi,
                                    .alibi_add = count_alibi };
}

static void test_calls_by_footprint(void)
{
    enum { HEADS = 2, QUERIES = 4, KEYS = 8, ELEMENTS = HEADS * QUERIES * KEYS };
    static struct posenc_backend counts;
    static float x[ELEMENTS], out[ELEMENTS];
    const float slopes[HEADS] = { 0.5f, 0.25f };
    counts = make_plugin("counts", "");
    struct posenc_alibi_args args = posenc_alibi_args_init();
    args.slopes = slopes;
    args.x = posenc_const_tensor_3d(POSENC_DTYPE_F32, x, HEADS, QUERIES, KEYS);
    args.out = posenc_tensor_3d(POSENC_DTYPE_F32, out, HEADS, QUERIES, KEYS);
    const uint64_t bytes = 2 * sizeof x;
    require(posenc_footprint(POSENC_KERNEL_ALIBI_ADD, &args) == bytes,
            "a footprint is the bytes of x and out");
    args.x.data = out;
    require(posenc_footprint(POSENC_KERNEL_ALIBI_ADD, &args) == sizeof x,
            "the footprint of a call in place counts them once");
    require(posenc_footprint(POSENC_KERNEL_ALIBI_ADD, NULL) == 0 &&
                posenc_footprint(POSENC_KERNEL_COUNT, &args) == 0,
            "the footprint without arguments, or of an unknown kernel, is 0");
    char line[2][64];
    snprintf(line[0], sizeof line[0], "alibi_add counts f32 %zu", sizeof x);
    snprintf(line[1], sizeof line[1], "alibi_add counts f32 %zu", sizeof x - 1);
    const bool added = posenc_backend_add(&counts, NULL) == POSENC_OK;
    for (int small = 0; small < 2; small++) {
        counted = 0;
        require(added && posenc_select(line[small], NULL) == POSENC_OK &&
                    posenc_alibi_add(NULL, &args, NULL) == POSENC_OK && counted == !small,
                small ? "a larger call goes elsewhere" : "a call goes where its line says");
    }
}

/* ---- Tuning files ---- */

static char path[] = "test_select-XXXXXX";

static void write_tuning(const char *cpu, const char *build, const char *rest)
{
    FILE *to = fopen(path, "w");
    if (!to)
        abort();
    fputs("posenc.tune/1\n# a tuning file\n", to);
    if (cpu)
        fprintf(to, "cpu %s  # this one\n", cpu);
    if (build)
        fprintf(to, "build %s\n", build);
    fputs(rest, to);
    fclose(to);
}

/* Requires that the tuning file is rejected with this word, and that libm stays selected. */
static void require_rejected(enum posenc_status status, const char *word)
{
    struct posenc_error error = { .status = POSENC_OK };
    const bool same = posenc_load_tuning(path, &error) == status && error.status == status;
    require(same && strstr(error.what, word) && strstr(error.what, path) &&
                strcmp(selected_name(POSENC_KERNEL_ROPE_HALF), "libm") == 0,
            *error.what ? error.what : word);
}

static void test_tuning_file(void)
{
    static const char choices[] = "rope_half scalar f32 4096\n";
    char cpu[600], text[1200];
    struct posenc_error error;
    const int file = mkstemp(path);
    if (file < 0 || posenc_select("libm", NULL))
        abort();
    snprintf(cpu, sizeof cpu, "%s %s", posenc_cpu_key(), posenc_cpu_features());
    write_tuning("vax-780 fpa", posenc_build_id(), choices);
    require_rejected(POSENC_ERR_UNSUPPORTED, "vax-780 fpa");
    write_tuning(cpu, "0.0.1 tcc", choices);
    require_rejected(POSENC_ERR_UNSUPPORTED, "0.0.1 tcc");
    write_tuning(cpu, NULL, choices);
    require_rejected(POSENC_ERR_ARGUMENT, "build");
    write_tuning(NULL, posenc_build_id(), choices);
    require_rejected(POSENC_ERR_ARGUMENT, "cpu");
    write_tuning(cpu, posenc_build_id(), "");
    require_rejected(POSENC_ERR_ARGUMENT, "a choice");
    write_tuning(cpu, posenc_build_id(), "rope_half scalar f32 4096\nrope_full scalar\n");
    require_rejected(POSENC_ERR_ARGUMENT, "line 6: 'rope_full' is no kernel");
    write_tuning(cpu, posenc_build_id(), choices);
    require(posenc_load_tuning(path, NULL) == POSENC_OK &&
                is_selected(POSENC_DTYPE_F32, 4096, "scalar") &&
                strstr(posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F32, 0).reason,
                       path),
            "a tuning file of this CPU and build is loaded");
    snprintf(text, sizeof text, "posenc.tune/1\ncpu %s\nbuild %s\nalibi libm\n", cpu,
             posenc_build_id());
    require(posenc_select(text, NULL) == POSENC_OK &&
                strcmp(selected_name(POSENC_KERNEL_ALIBI), "libm") == 0,
            "posenc_select() accepts the text of a tuning file");
    require(posenc_load_tuning("no/such/tuning", &error) == POSENC_ERR_ARGUMENT &&
                strstr(error.what, "no/such/tuning") &&
                posenc_load_tuning(NULL, NULL) == POSENC_ERR_ARGUMENT,
            "a tuning file that does not exist is rejected");
    close(file);
}

/* Selects by an environment in which at most this one of the variables is set. */
static void select_in(const char *name, const char *value)
{
    unsetenv("POSENC_BACKEND");
    unsetenv("POSENC_MAX_ISA");
    unsetenv("POSENC_TUNING");
    if (name)
        setenv(name, value, 1);
    require(posenc_select(NULL, NULL) == POSENC_OK, "back to the environment");
}

static void test_environment(void)
{
    select_in(NULL, NULL);
    const struct posenc_selection first =
        posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F32, 0);
    require(first.backend && !posenc_backend_unavailable_reason(first.backend) &&
                strcmp(first.reason, "first of the list that runs here") == 0,
            "the first backend that runs here is the default");
    select_in("POSENC_BACKEND", "libm");
    require(is_selected_for_all("libm", "POSENC_BACKEND=libm"),
            "POSENC_BACKEND=libm selects libm");
    select_in("POSENC_MAX_ISA", "scalar");
    require(strcmp(selected_name(POSENC_KERNEL_ROPE_HALF), "scalar") == 0,
            "POSENC_MAX_ISA=scalar selects scalar");
    select_in("POSENC_BACKEND", "fastest");
    const struct posenc_selection none =
        posenc_selection_of(POSENC_KERNEL_ALIBI, POSENC_DTYPE_F32, 0);
    require(!none.backend && none.status == POSENC_ERR_UNKNOWN &&
                strstr(none.reason, "POSENC_BACKEND=fastest") && strstr(none.reason, " scalar"),
            "an unknown POSENC_BACKEND selects nothing, and the reason names usable backends");
    select_in("POSENC_MAX_ISA", "ssse5");
    require(!posenc_selection_of(POSENC_KERNEL_ALIBI, POSENC_DTYPE_F32, 0).backend &&
                strstr(posenc_selection_of(POSENC_KERNEL_ALIBI, POSENC_DTYPE_F32, 0).reason,
                       "POSENC_MAX_ISA=ssse5"),
            "an unknown POSENC_MAX_ISA selects nothing, and the reason names it");
    select_in(NULL, NULL);
}

static void test_tuning_file_of_environment(void)
{
    select_in(NULL, NULL);
    const char *first = selected_name(POSENC_KERNEL_ROPE_HALF);
    select_in("POSENC_TUNING", path);
    require(is_selected(POSENC_DTYPE_F32, 1, "scalar") &&
                is_selected(POSENC_DTYPE_F32, 4097, first) &&
                strstr(posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F32, 0).reason,
                       path),
            "POSENC_TUNING names a tuning file");
    setenv("POSENC_BACKEND", "libm", 1);
    require(posenc_select(NULL, NULL) == POSENC_OK && is_selected(POSENC_DTYPE_F32, 1, "libm"),
            "POSENC_BACKEND takes precedence over POSENC_TUNING");
    write_tuning("vax-780", posenc_build_id(), "rope_half scalar\n");
    select_in("POSENC_TUNING", path);
    const struct posenc_selection usual =
        posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F32, 0);
    require(usual.backend && strcmp(usual.backend->name, first) == 0 &&
                strstr(usual.reason, "POSENC_TUNING is not used") &&
                strstr(usual.reason, "vax-780"),
            "a tuning file of another CPU is not used, and the reason names that CPU");
    remove(path);
    select_in(NULL, NULL);
}

/* An added backend is found, selected and forced by name, but never a default. */
static void test_added_backend(void)
{
    /* All are static, as each may be added by mistake and then stays in the list. */
    static struct posenc_backend mine, other, scalar, old;
    mine = make_plugin("mine", "posenc-" POSENC_VERSION);
    require(posenc_select("mine", NULL) == POSENC_ERR_UNKNOWN,
            "a plug-in is unknown before it is added");
    require(posenc_backend_add(&mine, NULL) == POSENC_OK &&
                posenc_backend_find("mine") == &mine,
            "an added backend is found by name");
    const struct posenc_backend *last = NULL, *backend;
    for (size_t i = 0; (backend = posenc_backend_at(i)) != NULL; i++)
        last = backend;
    require(last == &mine, "an added backend is the last of the list");
    require(posenc_select(NULL, NULL) == POSENC_OK &&
                strcmp(selected_name(POSENC_KERNEL_ALIBI), "mine") != 0,
            "an added backend is no default");
    require(posenc_select("mine", NULL) == POSENC_OK &&
                is_selected_for_all("mine", "selected by the program"),
            "an added backend is selected by name");
    select_in("POSENC_BACKEND", "mine");
    require(is_selected_for_all("mine", "POSENC_BACKEND=mine") &&
                posenc_selection_of(POSENC_KERNEL_T5_BIAS, POSENC_DTYPE_F32, 0).status ==
                    POSENC_ERR_NOT_PROVIDED,
            "POSENC_BACKEND forces an added backend, and its missing kernels are not provided");
    select_in(NULL, NULL);
    other = old = mine;
    scalar = make_plugin("scalar", "");
    old.abi = POSENC_ABI - 1;
    old.name = "old"; /* a name that is taken would be rejected for that reason */
    require(posenc_backend_add(&mine, NULL) == POSENC_OK, "a backend may be added twice");
    require(posenc_backend_add(&other, NULL) == POSENC_ERR_ARGUMENT &&
                posenc_backend_add(&scalar, NULL) == POSENC_ERR_ARGUMENT,
            "a name belongs to one backend");
    require(posenc_backend_add(&old, NULL) == POSENC_ERR_ARGUMENT &&
                !posenc_backend_find("old") &&
                posenc_backend_add(NULL, NULL) == POSENC_ERR_ARGUMENT,
            "a backend of another ABI is rejected");
}

/* A backend that needs "posenc-VERSION" must come from this version of the library. */
static void test_other_version(void)
{
    static struct posenc_backend older;
    older = make_plugin("older", "posenc-0.0.1");
    struct posenc_alibi_args args = posenc_alibi_args_init();
    float slope = 1.0f, out[1];
    args.slopes = &slope;
    args.out = posenc_tensor_3d(POSENC_DTYPE_F32, out, 1, 1, 1);
    require(posenc_backend_unavailable_reason(&older) &&
                strstr(posenc_backend_unavailable_reason(&older), "another version of posenc"),
            "a backend of another version is unavailable, and the reason says why");
    require(posenc_alibi(&older, &args, NULL) == POSENC_ERR_UNSUPPORTED &&
                posenc_backend_add(&older, NULL) == POSENC_OK &&
                posenc_select("older", NULL) == POSENC_ERR_UNSUPPORTED,
            "a backend of another version runs no call and cannot be selected");
}

static void test_most_backends(void)
{
    enum { MAX_PLUGINS = 16 }; /* MAX_ADDED of registry.c */
    static struct posenc_backend many[MAX_PLUGINS + 1];
    static char names[MAX_PLUGINS][8];
    enum posenc_status status = POSENC_OK;
    int more = MAX_PLUGINS; /* added here, beside those of the tests before */
    for (int i = 0; posenc_backend_at((size_t)i); i++)
        more -= strcmp(posenc_backend_at((size_t)i)->family, "mine") == 0;
    for (int i = 0; i < more && !status; i++) {
        snprintf(names[i], sizeof names[i], "many%d", i);
        many[i] = make_plugin(names[i], "");
        status = posenc_backend_add(&many[i], NULL);
    }
    require(more > 0 && status == POSENC_OK && posenc_backend_find(names[more - 1]),
            "16 plug-ins can be added");
    many[more] = make_plugin("one_more", "");
    require(posenc_backend_add(&many[more], NULL) == POSENC_ERR_MEMORY &&
                !posenc_backend_find("one_more"),
            "the 17th plug-in is rejected");
}

/* Runs the tests in the order that they need: one test's tuning file is the next one's, and added backends stay. */
int main(void)
{
    test_text();
    test_rejections();
    test_footprint();
    test_tuning_file();
    test_environment();
    test_tuning_file_of_environment();
    test_calls_by_footprint();
    test_added_backend();
    test_other_version();
    test_most_backends();
    return tap_end();
}
