/*
 * Cuts a call, or a number of elements, into one share for each member of a team (see slice.h).
 */
#define POSENC_EXPERIMENTAL
#include "slice.h"

void share_of(int64_t total, int64_t grain, int member, int n, int64_t *begin, int64_t *end)
{
    int64_t grains = (total + grain - 1) / grain;
    *begin = grains * member / n * grain;
    *end = grains * (member + 1) / n * grain;
    if (*begin > total)
        *begin = total;
    if (*end > total)
        *end = total;
}

bool call_slice(const struct call *call, int member, int n, struct call *slice)
{
    const struct posenc_tensor *out;
    bool left = true;
    *slice = *call;
    if (posenc_split(call->problem.kernel, &call->args, member, n, &slice->args))
        return false; /* never: the call is one that kernels take */
    out = call_out(slice);
    for (int d = 0; d < out->rank; d++)
        left = left && out->shape[d] > 0;
    return left;
}
