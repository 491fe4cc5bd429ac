/*
 * How much work it is to judge a problem: see weight.h.
 */
#include "weight.h"

#include "conformance/problem/signature.h"

int64_t problem_weight(const struct problem *p)
{
    return kernel_has_freqs(p->kernel) ? 100 : signature_of(p->kernel)->gathers ? 60 : 1;
}

int64_t problem_cost(const struct problem *problem, int64_t weight)
{
    struct problem p = *problem;
    const struct signature *s = signature_of(p.kernel);
    int64_t cost = 0;
    problem_settle(&p);
    p.rows = p.rows > p.tokens ? p.rows : p.tokens; /* where it has any */
    for (EACH_TENSOR(row, s))
        if (tensor_present(&p, row))
            cost += tensor_elements(&p, row) * (row->role == ROLE_OUTPUT ? weight : 1);
    return cost +
           (signature_argument(s, MEMBER(accumulate)) ? p.rows * p.batch * p.tokens / 2 : 0);
}
