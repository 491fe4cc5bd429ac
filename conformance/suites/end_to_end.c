/*
 * Cases of the suite "accuracy" from positions to rotated activations: the tables of a backend's rope_table are the
 * inputs of its rotation, and the result is compared with exact arithmetic.
 *
 * The limit: y0 = x0 c - x1 s with tables off by at most L ulp. As ulp(c) <= 2^-23 |c| and ulp(m) > 2^-24 m, each
 * product moves by at most 2 L in units of ulp(m), where m is the larger product. So the pair_ulp is at most that of
 * the rotation (1.5 with one product fused, 2 without) plus 4 L. Tables with a limit of 1 ulp are correctly rounded
 * but for one value in ten thousand, so that L is 1/2 and the limits are 3.5 and 4. Ranges where the error limit of
 * the tables is absolute have no such limit and are left out.
 *
 * Frequencies have no scaling, or the scaling "proportional", where a quarter of the pairs rotates. The pairs are then
 * still (i, i + d/2) over the whole head, not those of a leading slice.
 */
#include "suites.h"
#include "conformance/engine/judge.h"

#include <math.h>
#include <string.h>

enum { HEAD_DIM = 128, HALF = HEAD_DIM / 2, TOKENS = 40 };

/* Rotates x in double precision; sin_cos holds a sine and a cosine for each pair. The error is below 2^-50 of the
 * larger product, which `mass` receives. */
static void rotate_exactly(const float *x, const double *sin_cos, bool half_split, double *want,
                           double *mass)
{
    for (int i = 0; i < HALF; i++) {
        int a = half_split ? i : 2 * i, b = half_split ? i + HALF : 2 * i + 1;
        double s = sin_cos[2 * i], c = sin_cos[2 * i + 1], x0 = (double)x[a], x1 = (double)x[b];
        want[a] = x0 * c - x1 * s;
        want[b] = x1 * c + x0 * s;
        mass[a] = fmax(fabs(x0 * c), fabs(x1 * s));
        mass[b] = fmax(fabs(x1 * c), fabs(x0 * s));
    }
}

static void compare_rotation(struct comparison *c, const struct call *rotation,
                             const struct problem *tables)
{
    static uint64_t turn[HALF][3];
    double sin_cos[HEAD_DIM], want[HEAD_DIM], mass[HEAD_DIM];
    bool half_split = rotation->problem.kernel == POSENC_KERNEL_ROPE_HALF;
    exact_freqs(&tables->freqs, HALF, turn, NULL, NULL);
    int64_t heads = rotation->problem.heads;
    for (int64_t r = 0; r < rotation->outputs[0].rows; r++) {
        for (int i = 0; i < HALF; i++)
            exact_sincos_turn(turn[i], tables->first + r / heads, &sin_cos[2 * i],
                              &sin_cos[2 * i + 1]);
        rotate_exactly(rotation->x + r * HEAD_DIM, sin_cos, half_split, want, mass);
        compare_values(c, 0, r, 0, HEAD_DIM, want, mass);
    }
}

/* Replaces the tables of a rotation by the outputs of a rope_table call; a call_edit. */
static void edit_tables(struct call *rotation, const void *user)
{
    const struct call *tables = user;
    rotation->args.rope.cos.data = tables->args.rope_table.cos.data;
    rotation->args.rope.sin.data = tables->args.rope_table.sin.data;
}

static void check_range(struct suite_run *run, enum posenc_kernel kernel, bool is_proportional,
                        int range)
{
    struct tally t;
    struct comparison c;
    const struct error_limit *limit =
        error_limits_find(POSENC_KERNEL_ROPE_TABLE, run->backend, "exact", range);
    if (!limit || limit->is_absolute ||
        !posenc_backend_provides(run->backend, POSENC_KERNEL_ROPE_TABLE) ||
        !tally_begin(&t, run, kernel, POSENC_DTYPE_F32, "accuracy", "exact", "end-to-end-%s%s",
                     is_proportional ? "share-" : "", range_id[range]))
        return;
    struct problem table = problem_default(POSENC_KERNEL_ROPE_TABLE),
                   p = problem_default(kernel);
    table.freqs.dim = p.dim = p.rotary_dim = HEAD_DIM;
    table.freqs.scaling = is_proportional ? POSENC_SCALING_PROPORTIONAL : POSENC_SCALING_NONE;
    table.freqs.partial_rotary_factor = is_proportional ? 0.25 : 1.0;
    table.tokens = p.tokens = p.rows = TOKENS;
    table.first = position_range_end(range) - TOKENS - 5;
    const struct call *tables = tally_run(&t, &table, NULL, NULL),
                      *rotation = tables ? tally_run(&t, &p, edit_tables, tables) : NULL;
    compare_begin(&c, &t);
    if (rotation) {
        compare_next(&c, rotation, run->backend, RANGE_FARTHEST);
        c.limit += 4.0 * (limit->limit <= 1.0 ? 0.5 : limit->limit);
        compare_rotation(&c, rotation, &table);
    }
    compare_end(&c);
    tally_end(&t);
}

void suite_end_to_end(struct suite_run *run, enum posenc_kernel kernel)
{
    for (int range = 0; kernel_signature(kernel) == SIGNATURE_rope && range < N_RANGES; range++)
        for (int is_proportional = 0; is_proportional < 2; is_proportional++)
            check_range(run, kernel, is_proportional, range);
}
