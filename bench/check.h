/*
 * No number without a check: before a case is timed, a backend's output on the bench's own
 * shape is compared in full with that of the verified `scalar`, and 64 of its rows with the
 * oracle, on which `scalar` itself is verified.
 *
 * Limits.  Members of scalar's family: the same bits.  The others, with u = 2^-20 (some 8 ulp
 * of the number it multiplies), far below what one position more or less changes and above what
 * an honest f32 kernel errs by:
 *
 *   tables          |got - want| <= u a            a = |scale| or the attention factor
 *   rotations       |got - want| <= u max(|y0|, |y1|), the pair's own outputs; channels past
 *                   rotary_dim the same bits
 *   sums            |got - want| <= u (|x x_scale| + |want| + a)
 *   relative terms  |got - want| <= u a            a = |scale| (largest c2p + largest p2c), for
 *                   their sum with scores, too
 *   biases alone    the same bits: one product rounded once, or a copy; sums whose order is
 *                   given (learned_grad, relative_sum) likewise
 *
 * Stored in 16 bits, results of another family may be neighbours, an ulp of the type farther
 * apart, and a result may be what any f32 within its limit is rounded to.
 *
 * For rotations: both sides are within 2 pair ulp of the truth, and an ulp of the larger
 * product is at most two of the larger output, so honest results differ by 8 ulp at most.
 *
 * Against the oracle: tables of scalar's family 1 ulp (exact) or 2 ulp (hf_f32, where an
 * attention factor rounds once more), rotations 2 pair ulp, biases alone 0.5 ulp, all else as
 * above.  The conformance suites have the tight budgets; this here refuses numbers for wrong
 * results.
 */
#ifndef POSENC_CHECK_H
#define POSENC_CHECK_H

#include "bench.h"

struct check;

/* Prepares the oracle's rows of a call.  NULL when memory runs out. */
struct check *check_create(const struct call *call, uint64_t seed);
void check_destroy(struct check *check);

/* Takes the call's outputs as those of `scalar`: verifies their 64 rows and keeps a copy. */
bool check_reference(struct check *check, const struct posenc_backend *scalar, char *reason,
                     size_t size);

/* Compares the call's outputs, as `backend` left them. */
bool check_output(const struct check *check, const struct posenc_backend *backend, char *reason,
                  size_t size);

#endif
