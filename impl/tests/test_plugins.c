/*
 * test_plugins OBJECT...: a program loads plug-ins as posenc.h says, and each serves what it has:
 * named in a call, or selected by name once it is on the list.
 */
#include <posenc.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

enum { TOKENS = 5, DIM = 12 };

static int failures;

static void require(bool holds, const char *name, const char *what)
{
    failures += !holds;
    printf("%s: %s: %s\n", holds ? "ok" : "FAILED", name, what);
}

/* Whether a table by this backend is that of scalar, to the last places. */
static bool is_right(const struct posenc_backend *backend, const struct posenc_freqs *freqs)
{
    float got[TOKENS][DIM], want[TOKENS][DIM];
    struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    args.freqs = freqs;
    args.positions.offset = 1000;
    args.out = posenc_dense(want, 2, TOKENS, DIM, 0, 0);
    if (posenc_sinusoidal(posenc_backend_find("scalar"), &args))
        return false;
    args.out = posenc_dense(got, 2, TOKENS, DIM, 0, 0);
    bool right = posenc_sinusoidal(backend, &args) == POSENC_OK;
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < DIM; i++)
            right = right && fabsf(got[t][i] - want[t][i]) <= 2.4e-7f;
    return right;
}

static void load(const char *path, const struct posenc_freqs *freqs)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct posenc_backend *backend = library ? dlsym(library, "posenc_plugin") : NULL;
    require(backend, path, library ? "exports posenc_plugin" : dlerror());
    if (!backend)
        return;
    if (posenc_backend_obstacle(backend)) {
        printf("skipped: %s: %s\n", backend->name, posenc_backend_obstacle(backend));
        return;
    }
    require(posenc_select(backend->name) == POSENC_ERR_UNKNOWN, backend->name,
            "the library does not know it");
    require(is_right(backend, freqs), backend->name, "named in a call it serves");
    require(posenc_backend_add(backend) == POSENC_OK &&
                posenc_select(backend->name) == POSENC_OK && is_right(NULL, freqs) &&
                posenc_selection(POSENC_KERNEL_sinusoidal).backend == backend,
            backend->name, "added and selected it serves");
}

int main(int argc, char **argv)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    spec.dim = DIM;
    if (posenc_freqs_create(&spec, &freqs, NULL))
        return 1;
    for (int i = 1; i < argc; i++)
        load(argv[i], freqs);
    posenc_freqs_destroy(freqs);
    printf("%d failed\n", failures);
    return failures != 0;
}
