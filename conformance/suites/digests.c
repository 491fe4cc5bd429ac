/*
 * Suite of digests: SHA-256 of the outputs of every variant, with the same bits for every NaN. Digests of the
 * family "native" are committed in digests.txt, so that machines are compared that never meet. A
 * backend of another family is compared with the first other member of its family that runs here.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/engine/judge.h"
#include "conformance/problem/cases.h"

#include <stdio.h>
#include <string.h>

static const char *const committed[] = {
#include "digests.inc"
};

enum { HEX = 65 }; /* bytes of a digest as a hexadecimal text */

/* Finds the digest of a case in digests.txt, "id sha256" in each line; returns false if it has none. */
static bool find_committed(const char *id, char hex[HEX])
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

/* Digests all outputs, row by row, as little-endian f32. The canary of unwritten elements is a NaN, and keeps its
 * bits. */
static void digest_call(const struct call *call, char hex[HEX])
{
    struct sha256 s;
    sha256_init(&s);
    for (int o = 0; o < call->n_outputs; o++)
        for (int64_t r = 0; r < call->outputs[o].rows; r++) {
            const float *row = call_row(call, o, r);
            for (int64_t c = 0; c < call->outputs[o].width; c++) {
                const uint32_t bits = canonical_bits(row[c]);
                unsigned char bytes[4];
                for (int k = 0; k < 4; k++)
                    bytes[k] = (unsigned char)(bits >> 8 * k);
                sha256_update(&s, bytes, sizeof bytes);
            }
        }
    sha256_final(&s, hex);
}

/* Digests a problem by a backend; returns false with a failed result if the call fails. */
static bool digest_problem(struct tally *t, const struct posenc_backend *backend,
                           const struct problem *p, char hex[HEX])
{
    struct suite_run *run = t->run, with = *run;
    with.backend = backend;
    t->run = &with;
    const struct call *call = tally_run(t, p, NULL, NULL);
    t->run = run;
    if (call)
        digest_call(call, hex);
    return call != NULL;
}

/* Returns another backend of the same family that provides a kernel and runs here, or NULL. Backends of
 * a family promise equal bits, except where a compiler contracts, which it decides for each ISA. */
static const struct posenc_backend *find_other_member(const struct posenc_backend *of,
                                                      enum posenc_kernel kernel)
{
    const struct posenc_backend *other;
    for (size_t i = 0; !of->allows_contraction && (other = posenc_backend_at(i)) != NULL; i++)
        if (strcmp(other->name, of->name) != 0 && strcmp(other->family, of->family) == 0 &&
            posenc_backend_provides(other, kernel) && !posenc_backend_unavailable_reason(other))
            return other;
    return NULL;
}

static void check_digest(struct suite_run *run, const struct problem_line *line)
{
    const struct problem *p = &line->problem;
    const bool is_committed = strcmp(run->backend->family, "native") == 0;
    const struct posenc_backend *other =
        is_committed ? NULL : find_other_member(run->backend, p->kernel);
    struct tally t;
    char want[HEX] = "", *got = t.result.worst_at;
    if ((!is_committed && !other) ||
        !tally_begin_problem(&t, run, p, "digests", "digest-%s", line->name))
        return;
    if ((is_committed || digest_problem(&t, other, p, want)) &&
        digest_problem(&t, run->backend, p, got) &&
        require(&t, !is_committed || find_committed(t.result.id, want),
                "no digest is committed for this case"))
        require(&t, strcmp(got, want) == 0, "got %.16s want %.16s (%s): other bits", got, want,
                other ? other->name : "committed");
    t.result.checked = 1;
    tally_end(&t);
}

void suite_digests(struct suite_run *run, enum posenc_kernel kernel)
{
    for (EACH_CASE(line, CASES_VARIANTS))
        if (line->problem.kernel == kernel)
            check_digest(run, line);
}
