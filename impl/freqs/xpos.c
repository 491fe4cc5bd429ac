/*
 * xPos: the factors of cosines and sines. The factor of pair i at a position is
 *
 *   m zeta_i^(+-(position - centre) / scale_base),   zeta_i = (2i + 0.4 dim) / (1.4 dim)
 *
 * where m is the attention factor. The sign is + for queries and - for keys (xpos_inverse), so that a product of both
 * depends only on the difference of their positions. The centre cancels and only keeps values in range: torchscale
 * centres a sequence of L tokens at ceil(L/2) (min_pos = -L // 2 by Python's floor), flash-attn at floor(L/2). In both,
 * angles are those of the position itself, and the scale base is usually 512.
 *
 * Reference: Sun et al. 2212.10554; microsoft/torchscale torchscale/component/
 * xpos_relative_position.py (XPOS: zeta, the range of powers, 1/scale for keys), checked line by line;
 * Dao-AILab/flash-attention layers/rotary.py (the same zeta, the other centre).
 */
#include "freqs.h"

/* Returns ln zeta_i. Without tenths, zeta_i is (10 i + 2 dim) / (7 dim), which is exact. */
static struct dd log_zeta(int64_t dim, int64_t i)
{
    return posenc_dd_log(
        dd_div(dd_from((double)(10 * i + 2 * dim)), dd_from((double)(7 * dim))));
}

void posenc_xpos_fill(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs)
{
    double base = spec->xpos_inverse ? -spec->xpos_scale_base : spec->xpos_scale_base;
    struct dd ln2 = posenc_dd_log(dd_from(2.0));
    double steepest = 0.0;

    freqs->xpos_centre = spec->xpos_centre;
    for (int64_t i = 0; i < freqs->view.n_pairs; i++) {
        struct dd power = dd_div(log_zeta(spec->dim, i), dd_from(base));
        struct dd rate = dd_div(power, ln2), one = posenc_dd_exp(power), step = dd_from(1.0);
        freqs->xpos_rate_hi[i] = rate.hi;
        freqs->xpos_rate_lo[i] = rate.lo;
        steepest = fmax(steepest, fabs(rate.hi));
        for (int64_t c = 0; c < POSENC_BLOCK; c++) {
            freqs->xpos_step[c * freqs->stride + i] = step.hi;
            step = dd_mul(step, one);
        }
    }
    struct dd log_factor = posenc_dd_log(dd_from(freqs->view.attention_factor));
    double max_log2 = 126.0 - fabs(dd_div(log_factor, ln2).hi);
    freqs->xpos_reach = max_log2 / steepest;
}

void posenc_xpos_scale(const struct posenc_freqs *freqs, double position, int64_t i, int64_t n,
                       double *scale)
{
    struct dd from_centre = dd_sum(position, -freqs->xpos_centre);

    for (int64_t k = 0; k < n; k++) {
        double rate_hi = freqs->xpos_rate_hi[i + k], rate_lo = freqs->xpos_rate_lo[i + k];
        struct dd x = dd_product(from_centre.hi, rate_hi);
        x.lo += from_centre.hi * rate_lo + from_centre.lo * rate_hi;
        scale[k] = freqs->view.attention_factor * posenc_quick_exp2(x);
    }
}
