/*
 * The engine's own runner, for machines without Criterion and for checkers of memory: all
 * suites on all backends in one process that ends by returning from main, so that a leak or a
 * finding of a sanitizer is its exit status.  libc only.
 *
 *     runner [--full] [--backend NAME] [PACK OF VECTORS]
 *
 * One line for each failure and each backend that cannot run here, a last line
 * "N passed, N failed, N skipped"; exit 1 on failures, 77 when nothing ran.
 */
#include "engine.h"
#include "vectors.h"

#include <stdio.h>
#include <string.h>

struct counts {
    unsigned long passed, failed, skipped;
};

static void on_result(void *user, const struct conf_result *r)
{
    struct counts *counts = user;
    if (r->status == CONF_PASS) {
        counts->passed++;
    } else if (r->status == CONF_FAIL || r->status == CONF_CRASH) {
        counts->failed++;
        printf("%s: %s %s: %s\n", conf_status_name[r->status], r->backend->name, r->id,
               r->reason);
        printf("    posenc verify --backend %s --case %s\n", r->backend->name, r->id);
    } else {
        counts->skipped++;
    }
}

static size_t choose_backends(const char *name, const struct posenc_backend **chosen,
                              size_t most)
{
    size_t n = 0;
    const struct posenc_backend *b;
    for (size_t i = 0; (b = posenc_backend_at(i)) && n < most; i++) {
        const char *obstacle = posenc_backend_obstacle(b);
        if (name && strcmp(name, b->name) != 0)
            continue;
        if (obstacle)
            printf("skipped: %s: %s\n", b->name, obstacle);
        chosen[n++] = b;
    }
    return n;
}

int main(int argc, char **argv)
{
    struct conf_options options = { .full = false };
    struct counts counts = { 0, 0, 0 };
    struct vectors vectors;
    const struct posenc_backend *chosen[64];
    const char *name = NULL, *pack = NULL;
    char error[512];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--full") == 0)
            options.full = true;
        else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            name = argv[++i];
        else
            pack = argv[i];
    }
    if (pack && vectors_load_pack(pack, &vectors, error)) {
        fprintf(stderr, "runner: %s\n", error);
        return 2;
    }
    options.vectors = pack ? &vectors : NULL;
    size_t n = choose_backends(name, chosen, sizeof chosen / sizeof chosen[0]);
    if (n == 0) {
        fprintf(stderr, "runner: no backend is named %s\n", name ? name : "(any)");
        return 2;
    }
    size_t failed = conf_run(chosen, n, &options, on_result, &counts);
    if (pack)
        vectors_free(&vectors);
    printf("%lu passed, %lu failed, %lu skipped\n", counts.passed, counts.failed,
           counts.skipped);
    return failed || counts.failed ? 1 : counts.passed ? 0 : 77;
}
