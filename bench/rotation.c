/*
 * A rotation by the angle 0.
 */
#define _GNU_SOURCE
#include "rotation.h"
#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADS = 32, DIM = 128, PAGE = 4096, LINE = 64, ALIASED = 39 * LINE };
#define HUGE_PAGE   ((size_t)2 << 20)
#define TOKEN_BYTES (HEADS * DIM * sizeof(float))

/* Maps pages of that kind, of which the first begins where a huge one may. */
static void *map_pages(struct rotation *r, enum rotation_pages pages)
{
#if defined(MADV_HUGEPAGE) && defined(MADV_NOHUGEPAGE)
    r->mapped_bytes = r->bytes + PAGE + HUGE_PAGE;
    r->mapped =
        mmap(NULL, r->mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r->mapped == MAP_FAILED) {
        r->mapped = NULL;
        return NULL;
    }
    char *first =
        (char *)r->mapped + (HUGE_PAGE - (uintptr_t)r->mapped % HUGE_PAGE) % HUGE_PAGE;
    return madvise(first, r->bytes + PAGE,
                   pages == PAGES_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) == 0
               ? first
               : NULL;
#else
    (void)r;
    (void)pages;
    return NULL;
#endif
}

static bool get_memory(struct rotation *r, enum rotation_pages pages, size_t table)
{
    if (pages == PAGES_AS_EVER && posix_memalign(&r->x, PAGE, r->bytes + PAGE) != 0)
        r->x = NULL;
    char *data = pages == PAGES_AS_EVER ? r->x : map_pages(r, pages);
    if (!data || posix_memalign(&r->angles, LINE, 2 * table) != 0)
        return false;
    memset(data, 0x3f, r->bytes + PAGE);
    float *cosines = r->angles;
    for (size_t i = 0; i < table / sizeof(float); i++)
        cosines[i] = 1.0f;
    memset((char *)r->angles + table, 0, table);
    r->args.out.data = data + ALIASED; /* not where the tables begin within a page */
    return true;
}

/* Finds how many calls a sample takes. */
static void calibrate(struct rotation *r)
{
    double least = clock_least_sample(), took = 0.0;
    for (r->calls = 1; took < least; r->calls *= 2) {
        took = rotation_seconds(r) * (double)r->calls;
        if (took >= least)
            break;
    }
    r->calls = (int64_t)fmax(ceil((double)r->calls * least / took), 1.0);
}

bool rotation_make(struct rotation *r, size_t bytes, enum rotation_pages pages)
{
    int64_t tokens = (int64_t)(bytes / TOKEN_BYTES);
    size_t table = (size_t)tokens * (DIM / 2) * sizeof(float);
    *r = (struct rotation){ .args = posenc_rope_args_init(), .bytes = bytes, .calls = 1 };
    if (tokens < 1 || !get_memory(r, pages, table)) {
        rotation_free(r);
        return false;
    }
    r->args.out = posenc_dense(r->args.out.data, 3, tokens, HEADS, DIM, 0);
    r->args.x = posenc_view(r->args.out);
    r->args.cos = posenc_const_dense(r->angles, 2, tokens, DIM / 2, 0, 0);
    r->args.sin = posenc_const_dense((char *)r->angles + table, 2, tokens, DIM / 2, 0, 0);
    if (posenc_rope_half(NULL, &r->args) != POSENC_OK) {
        rotation_free(r);
        return false;
    }
    calibrate(r);
    return true;
}

void rotation_free(struct rotation *r)
{
    free(r->x);
    free(r->angles);
    if (r->mapped)
        munmap(r->mapped, r->mapped_bytes);
    *r = (struct rotation){ .calls = 0 };
}

void rotation_call(const struct rotation *r)
{
    enum posenc_status status = posenc_rope_half(NULL, &r->args);
    (void)status; /* the first call had none */
}

double rotation_seconds(const struct rotation *r)
{
    double begin = clock_now();
    for (int64_t i = 0; i < r->calls; i++)
        rotation_call(r);
    return (clock_now() - begin) / (double)r->calls;
}
