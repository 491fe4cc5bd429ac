/*
 * Test of the test suites: runs the engine with every fault of faulty.h. For each dtype of a fault's row, the case of
 * the row must fail in every kernel that the fault concerns, unless this machine skips it.
 *
 * Prints a line for each fault and dtype: the case of its row, and the number of failed results. Exits with 1 if a fault
 * is not detected, if a failure matches a known mistake, or if the backend without a fault fails.
 */
#include "faulty.h"

#include "conformance/suites/suites.h"

#include <stdio.h>

/* Results of the case of a fault in all kernels. */
struct outcome {
    unsigned n_failed;
    bool failed[POSENC_KERNEL_COUNT], skipped[POSENC_KERNEL_COUNT];
    bool misnamed; /* a failure matches a known mistake, which no fault is */
};

static bool is_failure(const struct conf_result *r)
{
    return r->status == CONF_FAIL || r->status == CONF_CRASH;
}

static void print_failure(void *user, const struct conf_result *r)
{
    (void)user;
    if (is_failure(r))
        fprintf(stderr, "faulty: without a fault %s fails: %s\n", r->id, r->reason);
}

static void count_failure(void *user, const struct conf_result *r)
{
    struct outcome *outcome = user;
    if (*r->mistake)
        fprintf(stderr, "faulty: %s matches: %s\n", r->id, r->mistake);
    outcome->misnamed |= *r->mistake != '\0';
    outcome->n_failed += is_failure(r);
    outcome->failed[r->kernel] |= is_failure(r);
    outcome->skipped[r->kernel] |= r->status == CONF_SKIPPED;
}

/* Runs the case of a fault in one type, in all kernels that the fault concerns. Returns true if it is detected. */
static bool try_fault(const struct posenc_backend *base, const struct fault *fault,
                      const char *dtype, unsigned *n_failed)
{
    char glob[96];
    struct outcome outcome = { .n_failed = 0 };
    struct conf_options options = { .suite = fault->suite, .case_glob = glob };
    const struct implementation implementation = implementation_of(faulty_backend(fault, base));
    snprintf(glob, sizeof glob, "*/%s/%s/%s", dtype, fault->suite, fault->property);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        options.kernels[k] = fault->concerns((enum posenc_kernel)k);
    conf_run_implementation(&implementation, &options, count_failure, &outcome);
    bool detected = !outcome.misnamed;
    printf("%-26s %-5s %-12s %-18s %6u", fault->name, dtype, fault->suite, fault->property,
           outcome.n_failed);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (options.kernels[k] && !outcome.failed[k] && !outcome.skipped[k]) {
            printf("  NOT DETECTED in %s", posenc_kernel_name((enum posenc_kernel)k));
            detected = false;
        }
    printf("%s\n", outcome.misnamed ? "  WRONG NAME" : "");
    fflush(stdout);
    *n_failed += outcome.n_failed;
    return detected;
}

/* Runs the suites of the faults on the wrapped backend without a fault. */
static bool try_right(const struct posenc_backend *base)
{
    static const char *const suites[] = { "memory", "properties", "side-effects" };
    const struct implementation implementation = implementation_of(faulty_backend(NULL, base));
    size_t failed = 0;
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        const struct conf_options options = { .suite = suites[i] };
        failed += conf_run_implementation(&implementation, &options, print_failure, NULL);
    }
    return failed == 0;
}

int main(void)
{
    const struct posenc_backend *base = posenc_backend_find("scalar");
    unsigned n_failed = 0, tried = 0, detected = 0;
    const bool right = try_right(base);
    printf("%-26s %-5s %-12s %-18s failed cases\n", "fault", "type", "suite", "case");
    for (const struct fault *fault = faults; fault->name; fault++)
        for (int dtype = POSENC_DTYPE_F32; dtype <= (int)fault->last_dtype; dtype++, tried++)
            detected += try_fault(base, fault, dtype_names[dtype], &n_failed);
    printf(
        "\n%u of %u runs of a fault fail in the case meant for it, or cannot be judged here\n",
        detected, tried);
    return right && n_failed > 0 && detected == tried ? 0 : 1;
}
