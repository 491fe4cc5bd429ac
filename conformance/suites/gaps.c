/*
 * What lies between the rows of strided tensors, one result per kernel and dtype:
 *
 *   gaps   no touch between rows, read or write: another thread may own what lies there
 *
 * Every row of every tensor lies on pages of its own and ends, or begins, where a page does; all
 * pages between are closed.  So a tail that loads a whole vector, blends its elements in and stores
 * it back faults at any row, not only at the last: the bytes that it puts back are right only as
 * long as nobody else writes them.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/engine/tally.h"
#include "conformance/problem/arena.h"
#include "conformance/problem/cases.h"
#include "conformance/problem/signature.h"

/* Bytes from row to row: whole pages of any size, and more than what is ever allocated. */
enum { APART = 1 << 26 };

/* Strides for each tensor that has rows. */
static struct problem spread(struct problem p)
{
    const struct signature *s = signature_of(p.kernel);
    for (EACH_TENSOR(row, s)) {
        struct tensor_layout *layout = &p.layouts[row - s->tensors];
        const int n = tensor_dims(row);
        if (row->form != FORM_TENSOR || n < 2 || !tensor_present(&p, row))
            continue;
        int64_t stride = APART / (tensor_dtype(&p, row) == POSENC_F32 ? 4 : 2);
        layout->n_strides = n - 1;
        for (int d = n - 2; d >= 0; d--) {
            const int64_t extent = problem_extent(&p, row->dims[d]);
            layout->stride[d] = stride;
            stride *= extent > 1 ? extent : 1;
        }
    }
    return p;
}

/* False: the system has not the address space. */
static bool check_problem(struct tally *t, struct guard *guard, const struct problem *p)
{
    for (int mode = GUARD_END; mode <= GUARD_START; mode++) {
        const struct memory memory = guard_memory(guard, (enum guard_mode)mode);
        struct call call;
        char text[200];
        const enum posenc_status made =
            call_create_by(t->run->implementation, &call, p, &memory);
        if (made == POSENC_ERR_MEMORY)
            return false;
        t->problem = p;
        posenc_error_text(&call.error, text, sizeof text);
        if (require(t, made == POSENC_OK, "the call was not made: %s", text)) {
            const struct guarded g = guarded_run(&call, t->run->backend, guard);
            if (require_clean(t, &g))
                require(t, !g.overwritten, "%s", g.reason);
            call_destroy(&call);
        }
        t->problem = NULL;
    }
    return true;
}

/* Each length up to two vectors and a tail, of the variants by turns; a quick run takes the lengths
 * around one vector and the longest. */
static void check_lengths(struct tally *t, struct guard *guard, enum posenc_kernel kernel,
                          enum posenc_dtype dtype)
{
    const bool full = t->run->options->full;
    const int64_t lanes = backend_vector_lanes(t->run->backend), most = 2 * lanes + 3;
    bool ready = true;
    for (int64_t n = 1; n <= most && ready; n++) {
        struct problem p = problem_of_length(kernel, n, (int)((n + n / 4) % LENGTH_VARIANTS));
        p.dtype = p.values = dtype;
        p = spread(p);
        if (full || n == 3 || n == lanes - 1 || n == lanes + 1 || n == most)
            ready = check_problem(t, guard, &p);
    }
    if (!ready)
        tally_skip(t, "this system does not give so much address space");
}

void check_gaps(struct suite_run *run, enum posenc_kernel kernel)
{
    static int slow = -1;
    struct guard *guard = guard_create();
    for (int dtype = POSENC_F32; guard && dtype <= POSENC_BF16; dtype++) {
        struct tally t;
        if (!tally_begin(&t, run, kernel, (enum posenc_dtype)dtype, "memory", NULL, "gaps"))
            continue;
        slow = slow < 0 ? !pages_reserve_is_quick() : slow;
        if (slow)
            tally_skip(&t, "address space is dear here: an emulator keeps books of each page");
        else
            check_lengths(&t, guard, kernel, (enum posenc_dtype)dtype);
        tally_end(&t);
    }
    guard_destroy(guard);
}
