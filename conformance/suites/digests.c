/*
 * Digests: SHA-256 of the outputs of every variant, every NaN made the same one.  Those of the
 * family "template" are committed in digests.txt, so machines that never meet are compared too.
 * Members of another family are compared with the first other member that runs here.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/engine/judge.h"
#include "conformance/problem/guard.h"
#include "conformance/problem/variants.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const committed[] = {
#include "digests.inc"
};

enum { HEX = 65, PART = 256 }; /* of a digest; elements hashed at once */

/* The digest of a case in digests.txt ("id sha256" a line); false when it has none. */
static bool committed_digest(const char *id, char hex[HEX])
{
    size_t n = strlen(id);
    for (size_t i = 0; i < sizeof committed / sizeof *committed; i++)
        if (strncmp(committed[i], id, n) == 0 && committed[i][n] == ' ' &&
            strlen(committed[i] + n + 1) == HEX - 1) {
            memcpy(hex, committed[i] + n + 1, HEX);
            return true;
        }
    return false;
}

/* SHA-256 over the rows of all outputs, f32 (what 16 bits widen to) in little-endian order. */
static void digest_call(const struct call *call, char hex[HEX])
{
    struct sha256 s;
    sha256_init(&s);
    for (int o = 0; o < call->n_outputs; o++)
        for (int64_t r = 0; r < call->outputs[o].rows; r++) {
            const float *row = call_row(call, o, r);
            unsigned char bytes[4 * PART];
            for (int64_t c = 0, n = 0; c < call->outputs[o].width; c++) {
                uint32_t bits;
                memcpy(&bits, row + c, sizeof bits);
                if (isnan(row[c]) && bits != CALL_CANARY)
                    bits = 0x7fc00000u;
                for (int k = 0; k < 4; k++)
                    bytes[n++] = (unsigned char)(bits >> 8 * k);
                if (n == 4 * PART || c + 1 == call->outputs[o].width) {
                    sha256_update(&s, bytes, (size_t)n);
                    n = 0;
                }
            }
        }
    sha256_final(&s, hex);
}

/* Digest of a problem by a backend; false with a failed result when the call does not work. */
static bool digest_problem(struct suite_run *run, const struct problem *p, char hex[HEX],
                           struct conf_result *result)
{
    struct call call;
    if (!run_call(&call, run, p, result))
        return false;
    digest_call(&call, hex);
    call_destroy(&call);
    return true;
}

/* What the builds of autovec contract is the compiler's choice for each ISA: they promise no
 * equal bits.  Everywhere else a family means just that. */
static bool promises_bits(const struct posenc_backend *backend)
{
    return strcmp(backend->family, "autovec") != 0;
}

/* Another built-in backend of the same family that provides a kernel and runs here, or NULL. */
static const struct posenc_backend *relative(const struct posenc_backend *of,
                                             enum posenc_kernel kernel)
{
    const struct posenc_backend *other;
    for (size_t i = 0; promises_bits(of) && (other = posenc_backend_at(i)) != NULL; i++)
        if (strcmp(other->name, of->name) != 0 && strcmp(other->family, of->family) == 0 &&
            posenc_provides(other, kernel) && !posenc_backend_obstacle(other))
            return other;
    return NULL;
}

/* Id and problem of every digest case of a kernel in turn; false past the last. */
static bool next_case(enum posenc_kernel kernel, int *profile, int *v, char id[96],
                      struct problem *p)
{
    bool planned = kernel_has_plan(kernel);
    for (const char *name; planned ? profile_names[*profile] != NULL : *profile < 1;
         *v = 0, ++*profile)
        if (variant(kernel, (enum posenc_profile) * profile, *v, p, &name)) {
            ++*v;
            snprintf(id, 96, "%s/%s/%s/digest-%s", posenc_kernel_name(kernel),
                     dtype_names[p->dtype], profile_name(p), name);
            return true;
        }
    return false;
}

static void run_case(struct suite_run *run, const char *id, const struct problem *p)
{
    struct conf_result r = { .kernel = p->kernel,
                             .suite = "digests",
                             .profile = profile_name(p),
                             .coverage = "sampled",
                             .checked = 1 };
    char want[HEX] = "", got[HEX] = "";
    const char *whose = "committed";
    snprintf(r.id, sizeof r.id, "%s", id);
    bool ok = true;
    if (strcmp(run->backend->family, "template") != 0) {
        const struct posenc_backend *other = relative(run->backend, p->kernel);
        if (!other)
            return;
        struct suite_run with = *run;
        with.backend = other;
        whose = other->name;
        ok = digest_problem(&with, p, want, &r);
    } else if (!committed_digest(id, want)) {
        ok = false;
        r.status = CONF_FAIL;
        snprintf(r.reason, sizeof r.reason, "no digest is committed for this case");
    }
    if (ok && digest_problem(run, p, got, &r) && strcmp(got, want) != 0) {
        r.status = CONF_FAIL;
        snprintf(r.reason, sizeof r.reason, "got %.16s want %.16s (%s): other bits", got, want,
                 whose);
    }
    suite_report(run, &r);
}

void suite_digests(struct suite_run *run)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        int profile = 0, v = 0;
        char id[96];
        struct problem p;
        while (next_case((enum posenc_kernel)k, &profile, &v, id, &p))
            if (suite_selected(run, p.kernel, id))
                run_case(run, id, &p);
    }
}

void conf_digests(const struct posenc_backend *backend,
                  void (*line)(void *user, const char *id, const char *sha256), void *user)
{
    struct suite_run run = { .backend = backend };
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        int profile = 0, v = 0;
        char id[96], hex[HEX];
        struct problem p;
        struct conf_result r = { .reason = "" };
        while (next_case((enum posenc_kernel)k, &profile, &v, id, &p))
            if (posenc_provides(backend, p.kernel) && digest_problem(&run, &p, hex, &r))
                line(user, id, hex);
    }
}
