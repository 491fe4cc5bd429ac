/*
 * Suites that compare with committed results: golden vectors and digests.
 *
 * Golden vectors: every output of every case, such as rope_half/f32/given/hd96-r24, is compared with the committed
 * reference, by the metrics and limits of judge.h. The published tests of ONNX hold results of plain f32 arithmetic. The
 * backend that does just that, unfused libm, must give their bits.
 *
 * Digests: SHA-256 of the outputs of every variant, with the same bits for every NaN. Digests of the family "native"
 * are committed in digests.txt, so that machines are compared that never meet. A backend of another family is compared
 * with the first other member of its family that runs here.
 */
#include "suites.h"
#include "conformance/engine/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns true if the call has the outputs that the case describes. */
static bool has_same_shape(const struct vector_case *v, const struct call *call)
{
    bool same = v->n_outputs == call->n_outputs;
    for (int o = 0; o < v->n_outputs && same; o++)
        same = strcmp(v->output_names[o], call->outputs[o].name) == 0 &&
               v->rows[o] == call->outputs[o].rows && v->width[o] == call->outputs[o].width;
    return same;
}

/* Requires the bits of plain f32 arithmetic in each row. */
static void require_published(struct tally *t, const struct call *call)
{
    const struct output *out = &call->outputs[0];
    float *want = malloc((size_t)out->width * sizeof *want);
    require(t, want != NULL, "out of memory");
    for (int64_t r = 0; r < out->rows && want; r++) {
        char what[48];
        snprintf(what, sizeof what, "row %lld in unfused f32", (long long)r);
        oracle_compute_row_unfused(call, r, want);
        require_same_bits(t, call_row(call, 0, r), want, out->width, what);
    }
    free(want);
}

static void run_case(struct suite_run *run, const struct vector_case *v)
{
    const bool is_unfused_libm =
        !run->backend->fused && strcmp(run->backend->family, "libm") == 0;
    struct tally t;
    struct comparison c;
    const struct problem *p = &v->problem;
    if (!tally_begin_problem(&t, run, p, "vectors", "", v->name))
        return;
    const struct call *call = tally_run(&t, p, NULL, NULL);
    compare_begin(&c, &t);
    if (call &&
        require(&t, has_same_shape(v, call),
                "the vectors hold %d outputs, the first [%lld, %lld]; the call has %d, "
                "[%lld, %lld]",
                v->n_outputs, (long long)v->rows[0], (long long)v->width[0], call->n_outputs,
                (long long)call->outputs[0].rows, (long long)call->outputs[0].width)) {
        compare_next(&c, call, run->backend, RANGE_FARTHEST);
        compare_call(&c, v->want);
    }
    compare_end(&c);
    if (call && p->recipe != RECIPE_MIX && is_unfused_libm) /* a published test of ONNX */
        require_published(&t, call);
    tally_end(&t);
}

void suite_vectors(struct suite_run *run, enum posenc_kernel kernel)
{
    const struct vectors *vectors = run->options->vectors;
    struct tally t;
    if (!vectors) {
        tally_begin(&t, run, kernel, POSENC_DTYPE_F32, "vectors", NULL, "none");
        tally_skip(&t, "no golden vectors were given");
        tally_end(&t);
    }
    for (size_t i = 0; vectors && i < vectors->n; i++)
        if (vectors->cases[i].problem.kernel == kernel)
            run_case(run, &vectors->cases[i]);
}

/* ---- Digests ---- */

static const char *const committed[] = {
#include "digests.inc"
};

enum { HEX = 65 }; /* bytes of a digest as a hexadecimal text */

/* Finds the digest of a case in digests.txt, "id sha256" in each line; returns false if it has none. */
static bool find_committed(const char *id, char hex[HEX])
{
    const size_t n = strlen(id);
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
static const struct posenc_backend *find_other_member(const struct posenc_backend *own,
                                                      enum posenc_kernel kernel)
{
    const struct posenc_backend *other;
    for (size_t i = 0; !own->allows_contraction && (other = posenc_backend_at(i)) != NULL; i++)
        if (strcmp(other->name, own->name) != 0 && strcmp(other->family, own->family) == 0 &&
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
        !tally_begin_problem(&t, run, p, "digests", "digest-", line->name))
        return;
    if ((is_committed || digest_problem(&t, other, p, want)) &&
        digest_problem(&t, run->backend, p, got) &&
        require(&t, !is_committed || find_committed(t.result.id, want),
                "no digest is committed for this case; it has %s", got))
        require(&t, strcmp(got, want) == 0, "got %s want %.16s (%s): other bits", got, want,
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
