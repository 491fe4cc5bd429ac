/*
 * test_library BUILD OTHER-ABI [PLUGIN]: tests that a build opened twice has two copies, calls only its own functions,
 * and computes the same as this program's library. The arguments are paths of shared objects: libposenc.so, other_abi.so
 * and a plug-in for f32.
 */
#define _GNU_SOURCE
#include "library.h"
#include "conformance/problem/problem.h"
#include "base/tap/tap.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* A backend that is added to one copy alone. */
static struct posenc_backend added_backend = { .size = sizeof added_backend,
                                               .abi = POSENC_ABI,
                                               .name = "stranger",
                                               .family = "stranger",
                                               .description = "of this test",
                                               .required_features = "" };

/* Returns the start of the loaded object that holds an address. */
static const void *object_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

static const void *object_of_library(const struct library *library)
{
    return object_of(dlsym(library->handle, "posenc_version"));
}

/* Returns true if all functions of an implementation lie in the library's own code. */
static bool has_own_functions(const struct library *library,
                              const struct implementation *implementation)
{
    bool own = true;
    const void *address;
#define FUNCTION(name)                                                                         \
    memcpy(&address, &implementation->name, sizeof address);                                   \
    own = own && object_of(address) == object_of_library(library);
    IMPLEMENTATION_BUILDERS(FUNCTION)
#define POSENC_KERNEL(ID, name, ...) FUNCTION(name)
#include <posenc_kernels.def>
#undef FUNCTION
    return own;
}

static void find_function(const struct library *library, const char *name, void *function)
{
    void *found = dlsym(library->handle, name);
    memcpy(function, &found, sizeof found);
}

/* Adds a backend to the list of one copy. The other copy and this program export functions of the same names, and must
 * not get it. */
static void test_own_list(const struct library *one, const struct library *two)
{
    __typeof__(posenc_backend_add) *add;
    __typeof__(posenc_backend_find) *find[2];
    find_function(one, "posenc_backend_add", &add);
    find_function(one, "posenc_backend_find", &find[0]);
    find_function(two, "posenc_backend_find", &find[1]);
    added_backend.rope_half = posenc_backend_find("scalar")->rope_half;
    require(add(&added_backend, NULL) == POSENC_OK && find[0]("stranger") == &added_backend,
            "a backend added to a copy is found in its list");
    require(!find[1]("stranger") && !posenc_backend_find("stranger"),
            "and in no other copy's, nor this program's");
}

/* Runs a small call of each kernel by both, with frequencies of their own, and compares all bits. */
static bool same_results(const struct implementation *one, const struct implementation *two)
{
    bool same = true;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const struct problem problem = problem_default((enum posenc_kernel)k);
        struct call a, b;
        const bool made = call_create_by(one, &a, &problem, NULL) == POSENC_OK,
                   made_other = call_create_by(two, &b, &problem, NULL) == POSENC_OK;
        bool ran = made && made_other && call_run(&a, one->backend) == POSENC_OK &&
                   call_run(&b, two->backend) == POSENC_OK;
        for (int o = 0; ran && o < a.n_outputs; o++)
            for (int64_t r = 0; r < a.outputs[o].rows; r++)
                same = same && memcmp(call_row(&a, o, r), call_row(&b, o, r),
                                      (size_t)a.outputs[o].width * sizeof(float)) == 0;
        same = same && ran;
        call_destroy(&a);
        call_destroy(&b);
    }
    return same;
}

static void test_copies(const char *path)
{
    char error[PLUGIN_ERROR] = "";
    struct library *one = library_open(path, error), *two = library_open(path, error);
    require(one && two, "a build opens twice");
    if (!one || !two) {
        printf("# %s\n", error);
        return;
    }
    const struct implementation *a = library_implementation(one, "scalar"),
                                *b = library_implementation(two, "scalar");
    require(a && b && a->backend != b->backend && a->backend != posenc_backend_find("scalar") &&
                object_of_library(one) != object_of_library(two),
            "each time as a copy of its own, data and code");
    require(has_own_functions(one, a) && has_own_functions(two, b),
            "each has the functions of its copy, those of frequencies among them");
    test_own_list(one, two);
    const struct implementation mine = implementation_of(posenc_backend_find("scalar"));
    require(same_results(&mine, a) && same_results(a, b), "all give the same bits");
    require(!library_implementation(one, "nobody") &&
                implementation_provides(a, POSENC_KERNEL_ALIBI) &&
                !implementation_provides(a, POSENC_KERNEL_COUNT) &&
                !implementation_provides(NULL, POSENC_KERNEL_ALIBI),
            "missing backends and kernels are reported");
    library_close(one);
    struct library *three = library_open(path, error);
    require(three && library_implementation(three, "scalar") && same_results(&mine, b),
            "one closed, another opened: the rest go on");
    library_close(three);
    library_close(two);
}

static void test_plugin(const char *path)
{
    char error[PLUGIN_ERROR] = "";
    struct library *one = library_open(path, error), *two = library_open(path, error);
    require(one && two && one->is_plugin && one->n == 1 && two->n == 1 &&
                one->implementations->backend != two->implementations->backend,
            "a plug-in opens twice, with one backend each");
    require(one && one->implementations->rope_half == posenc_rope_half &&
                one->implementations->freqs_create == posenc_freqs_create,
            "on the functions of this program");
    library_close(one);
    library_close(two);
}

static void test_rejection(const char *path, const char *why, const char *sentence)
{
    char error[PLUGIN_ERROR] = "";
    struct library *library = library_open(path, error);
    require(!library && strstr(error, why), sentence);
    printf("# %s: %s\n", path, error);
    library_close(library);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 1;
    setenv("POSENC_BACKEND", "nobody",
           1); /* must have no effect: calls here name their backend */
    test_copies(argv[1]);
    char error[PLUGIN_ERROR] = "";
    struct library *other = library_open(argv[2], error);
    require(other && other->abi == POSENC_ABI + 5 /* other_abi.c */ && other->n == 0,
            "a build of another ABI has its number, and no implementations");
    library_close(other);
    if (argc > 3)
        test_plugin(argv[3]);
    test_rejection("/nowhere/libposenc.so", "No such file", "a missing file is rejected");
    test_rejection(argv[0], "expected a build of libposenc", "a program is rejected");
    require(plugins_add("/nowhere") == 0, "a missing folder of plug-ins is no failure");
    require(plugins_add(argv[1]) == 1, "a folder of plug-ins that cannot be read is a failure");
    return tap_end();
}
