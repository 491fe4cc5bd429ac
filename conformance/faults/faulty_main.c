/*
 * Test of the test suites: runs the engine with every fault of faulty.h. For each dtype of a fault's row, the case of
 * the row must fail in every kernel that the fault concerns.
 *
 *     faulty
 *
 * Prints a line for each fault and dtype: the case of its row, and the number of failed results. Exits with 1 if a fault
 * is not detected, if a failure matches a known mistake, or if the backend without a fault fails.
 */
#include "faulty.h"

#include "conformance/suites/suites.h"

#include <stdio.h>
#include <string.h>

/* Results of the case of a fault in all kernels. */
struct fault_outcome {
    const struct fault *fault;
    unsigned failed;
    bool misnamed; /* a failure matches a known mistake, which no fault is */
    bool detected[POSENC_KERNEL_COUNT];
    bool skipped[POSENC_KERNEL_COUNT]; /* this machine cannot run the case */
};

enum fault_verdict { DETECTED, SURVIVES, MISNAMED, NEVER_CALLED, UNJUDGED, VERDICTS };
static const char *const verdict_text[VERDICTS] = { "", "  NOT DETECTED", "  WRONG NAME",
                                                    "  NEVER CALLED",
                                                    "  cannot be judged here" };

static bool is_failure(const struct conf_result *r)
{
    return r->status == CONF_FAIL || r->status == CONF_CRASH;
}

static void report_failure(void *user, const struct conf_result *r)
{
    (void)user;
    if (is_failure(r))
        fprintf(stderr, "faulty: without a fault %s fails: %s\n", r->id, r->reason);
}

static void note_failure(void *user, const struct conf_result *r)
{
    struct fault_outcome *outcome = user;
    if (*r->mistake)
        fprintf(stderr, "faulty: %s: %s matches: %s\n", outcome->fault->name, r->id,
                r->mistake);
    outcome->misnamed |= *r->mistake != '\0';
    outcome->failed += is_failure(r);
    outcome->detected[r->kernel] |= is_failure(r);
    outcome->skipped[r->kernel] |= r->status == CONF_SKIPPED;
}

static void print_outcome(const struct fault *fault, const struct fault_outcome *outcome,
                          const char *dtype, enum fault_verdict verdict)
{
    printf("%-26s %-5s %-12s %-18s %6u%s", fault->name, dtype, fault->suite, fault->property,
           outcome->failed, verdict_text[verdict]);
    for (int k = 0; k < POSENC_KERNEL_COUNT && verdict == SURVIVES; k++)
        if (fault->concerns((enum posenc_kernel)k) && !outcome->detected[k] &&
            !outcome->skipped[k])
            printf(" in %s", posenc_kernel_name((enum posenc_kernel)k));
    printf("\n");
    fflush(stdout);
}

/* Requires a failed case in each kernel that the fault concerns and that could be judged. */
static enum fault_verdict judge_fault(const struct fault *fault,
                                      const struct fault_outcome *outcome)
{
    int judged = 0, detected = 0, skipped = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const bool concerned = fault->concerns((enum posenc_kernel)k);
        skipped += concerned && outcome->skipped[k];
        judged += concerned && !outcome->skipped[k];
        detected += concerned && !outcome->skipped[k] && outcome->detected[k];
    }
    if (judged == 0 && skipped > 0)
        return UNJUDGED;
    if (faulty_calls() == 0) /* since faulty_backend() made this fault's backend */
        return NEVER_CALLED;
    if (outcome->misnamed)
        return MISNAMED;
    return detected == judged ? DETECTED : SURVIVES;
}

/* Runs the case of a fault in one type, in all kernels that the fault concerns. */
static enum fault_verdict try_fault(const struct posenc_backend *base,
                                    const struct fault *fault, const char *dtype)
{
    char glob[96];
    struct fault_outcome outcome = { .fault = fault };
    struct conf_options options = { .suite = fault->suite, .case_glob = glob };
    const struct implementation implementation = implementation_of(faulty_backend(fault, base));
    snprintf(glob, sizeof glob, "*/%s/%s/%s", dtype, fault->suite, fault->property);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        options.kernels[k] = fault->concerns((enum posenc_kernel)k);
    conf_run_implementation(&implementation, &options, note_failure, &outcome);
    const enum fault_verdict verdict = judge_fault(fault, &outcome);
    print_outcome(fault, &outcome, dtype, verdict);
    return verdict;
}

/* Runs the suites of the faults on the wrapped backend without a fault. */
static bool try_right(const struct posenc_backend *base)
{
    static const char *const suites[] = { "memory", "properties", "side-effects" };
    const struct implementation implementation = implementation_of(faulty_backend(NULL, base));
    size_t failed = 0;
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        const struct conf_options options = { .suite = suites[i] };
        failed += conf_run_implementation(&implementation, &options, report_failure, NULL);
    }
    return failed == 0;
}

int main(void)
{
    const struct posenc_backend *base = posenc_backend_find("scalar");
    int verdicts[VERDICTS] = { 0 }, tried = 0;
    if (!base) {
        fputs("faulty: the library has no backend scalar\n", stderr);
        return 1;
    }
    const bool right = try_right(base);
    printf("%-26s %-5s %-12s %-18s failed cases\n", "fault", "type", "suite", "case");
    for (const struct fault *fault = faults; fault->name; fault++)
        for (int dtype = POSENC_DTYPE_F32; dtype <= (int)fault->last_dtype; dtype++, tried++)
            verdicts[try_fault(base, fault, dtype_names[dtype])]++;
    printf("\n%d of %d runs of a fault fail in the case meant for it\n", verdicts[DETECTED],
           tried);
    return right && verdicts[DETECTED] > 0 && verdicts[DETECTED] + verdicts[UNJUDGED] == tried
               ? 0
               : 1;
}
