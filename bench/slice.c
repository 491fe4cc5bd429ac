/*
 * Cuts a call, or a number of elements, into one share for each member of a team (see slice.h).
 */
#include "slice.h"
#include "conformance/problem/cut.h"

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
    const enum dim dim = call_shared_dim(call, n);
    int64_t begin, end;
    share_of(call_extent(call, dim), 1, member, n, &begin, &end);
    *slice = call_cut(call, dim, begin, end - begin);
    return begin < end;
}
