/*
 * test_plugins OBJECT...: tests that a program can load plug-ins as posenc.h says. Each runs if a call names it, or if
 * it is selected by name after it was added to the list.
 */
#include <posenc/backend.h>
#include "base/tap/tap.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

enum { TOKENS = 5, DIM = 12 };

static void require_of(const char *name, bool holds, const char *what)
{
    char sentence[4096];
    snprintf(sentence, sizeof sentence, "%s: %s", name, what);
    require(holds, sentence);
}

/* Returns true if a table of this backend is that of scalar, to the last places. */
static bool is_right(const struct posenc_backend *backend, const struct posenc_freqs *freqs)
{
    float got[TOKENS][DIM], want[TOKENS][DIM];
    struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    args.freqs = freqs;
    args.positions.offset = 1000;
    args.out = posenc_tensor_2d(POSENC_DTYPE_F32, want, TOKENS, DIM);
    if (posenc_sinusoidal(posenc_backend_find("scalar"), &args, NULL))
        return false;
    args.out = posenc_tensor_2d(POSENC_DTYPE_F32, got, TOKENS, DIM);
    bool right = posenc_sinusoidal(backend, &args, NULL) == POSENC_OK;
    for (int t = 0; t < TOKENS; t++)
        for (int i = 0; i < DIM; i++)
            right = right && fabsf(got[t][i] - want[t][i]) <= 2.4e-7f;
    return right;
}

static void test_plugin(const char *path, const struct posenc_freqs *freqs)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct posenc_backend *backend = library ? dlsym(library, "posenc_plugin") : NULL;
    require_of(path, backend, library ? "exports posenc_plugin" : dlerror());
    if (!backend)
        return;
    if (posenc_backend_unavailable_reason(backend)) {
        printf("# skipped: %s: %s\n", backend->name,
               posenc_backend_unavailable_reason(backend));
        return;
    }
    require_of(backend->name, posenc_select(backend->name, NULL) == POSENC_ERR_UNKNOWN,
               "the library does not know it");
    require_of(backend->name, is_right(backend, freqs), "named in a call, it runs");
    require_of(backend->name,
               posenc_backend_add(backend, NULL) == POSENC_OK &&
                   posenc_select(backend->name, NULL) == POSENC_OK && is_right(NULL, freqs) &&
                   posenc_selection_of(POSENC_KERNEL_SINUSOIDAL, POSENC_DTYPE_F32, 0).backend ==
                       backend,
               "added and selected, it runs");
}

int main(int argc, char **argv)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    spec.dim = DIM;
    if (posenc_freqs_create(&spec, &freqs, NULL))
        return 1;
    for (int i = 1; i < argc; i++)
        test_plugin(argv[i], freqs);
    posenc_freqs_destroy(freqs);
    return tap_end();
}
