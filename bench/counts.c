/*
 * Ways of counting, of which the first that gets a known function right is taken; and calls of
 * kernels that are counted (see counts.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "counts.h"
#include "classes.h"
#include "marks.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Ways ---- */

/* Fills everything but `by`; false where it does not work, or with `why` where it does not for this
 * call. */
typedef bool way(const struct counted_call *call, uintptr_t other, uint64_t most,
                 struct call_counts *counts);

/* Adds up the classes of the instructions that were run in one text. */
static void add_classes(const struct range *text, const uint32_t *times,
                        struct call_counts *counts)
{
    const size_t n = text->end - text->begin;
    for (size_t i = 0; i < n && counts->classed; i++) {
        struct classes classes;
        if (times[i] == 0)
            continue;
        counts->classed =
            classify_here((const unsigned char *)text->begin + i, n - i, &classes);
        counts->loads += classes.load ? times[i] : 0;
        counts->stores += classes.store ? times[i] : 0;
        counts->branches += classes.branch ? times[i] : 0;
        counts->vector += classes.vector ? times[i] : 0;
    }
}

static bool take_steps(bool (*run)(const struct counted_call *, struct steps *),
                       const struct counted_call *call, uintptr_t other, uint64_t most,
                       struct call_counts *counts)
{
    struct steps steps = { .entry = (uintptr_t)call->entry, .most = most };
    const uintptr_t codes[STEPS_TEXTS] = { steps.entry, other };
    bool fine = true;
    for (int i = 0; i < STEPS_TEXTS && fine; i++) {
        struct object object;
        if (codes[i] == 0 || (i == 1 && is_within(&steps.text[0], other)))
            continue;
        fine = object_of(codes[i], &object);
        steps.text[i] = object.text;
        steps.times[i] =
            fine ? calloc(object.text.end - object.text.begin, sizeof *steps.times[i]) : NULL;
        fine = fine && steps.times[i];
    }
    fine = fine && run(call, &steps);
    if (fine && steps.state == STEPS_TOO_MANY)
        snprintf(counts->why, sizeof counts->why,
                 "it takes more than %" PRIu64 " instructions: too long to be counted", most);
    else
        fine = fine && steps.state == STEPS_RETURNED;
    counts->instructions = steps.inside;
    counts->outside = steps.outside;
    counts->classed = fine;
    for (int i = 0; i < STEPS_TEXTS; i++) {
        if (fine && steps.times[i])
            add_classes(&steps.text[i], steps.times[i], counts);
        free(steps.times[i]);
    }
    return fine;
}

static bool by_trap_flag(const struct counted_call *call, uintptr_t other, uint64_t most,
                         struct call_counts *counts)
{
    return take_steps(steps_by_trap_flag, call, other, most, counts);
}

static bool by_child(const struct counted_call *call, uintptr_t other, uint64_t most,
                     struct call_counts *counts)
{
    return take_steps(steps_of_child, call, other, most, counts);
}

/* The plug-in of the emulator writes what it counted between the marks into this file. */
static bool read_counter(struct call_counts *counts)
{
    const char *path = getenv("POSENC_COUNTER");
    char line[256] = "", classed[4] = "";
    const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    const ssize_t n = file < 0 ? 0 : read(file, line, sizeof line - 1);
    if (file >= 0)
        close(file);
    const bool whole =
        n > 0 && // NOLINTNEXTLINE(cert-err34-c): six numbers or none
        sscanf(line, "%" SCNu64 " %" SCNu64 " %3s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &counts->instructions, &counts->outside, classed, &counts->loads,
               &counts->stores, &counts->branches, &counts->vector) == 7;
    counts->classed = strcmp(classed, "yes") == 0;
    return whole;
}

#ifdef HAVE_MARKS

static bool between_marks(const struct counted_call *call, struct call_counts *counts)
{
    bench_between_marks(call->entry, call->first, call->second);
    return read_counter(counts);
}

/* Less what the marked call itself takes, which the probe tells. */
static bool by_emulator(const struct counted_call *call, uintptr_t other, uint64_t most,
                        struct call_counts *counts)
{
    (void)other;
    (void)most;
    const struct counted_call probe = { bench_probe, NULL, NULL };
    struct call_counts harness = { .by = NULL };
    if (!getenv("POSENC_COUNTER") || !between_marks(&probe, &harness) ||
        harness.instructions < PROBE_INSTRUCTIONS || !between_marks(call, counts))
        return false;
    counts->instructions -= harness.instructions - PROBE_INSTRUCTIONS;
    if (counts->classed) {
        counts->branches -= harness.branches - PROBE_BRANCHES;
        counts->loads -= harness.loads;
        counts->stores -= harness.stores;
    }
    return true;
}

static const struct {
    const char *name;
    way *count;
} ways[] = { { "qemu plug-in", by_emulator },
             { "single step", by_trap_flag },
             { "traced child", by_child } };

/* The first that counts the probe right; -1: none does. */
static int choose_way(void)
{
    const struct counted_call probe = { bench_probe, NULL, NULL };
    for (int i = 0; i < (int)(sizeof ways / sizeof *ways); i++) {
        struct call_counts counts = { .by = NULL };
        if (ways[i].count(&probe, 0, COUNTS_MOST, &counts) &&
            counts.instructions == PROBE_INSTRUCTIONS && counts.outside == 0)
            return i;
    }
    return -1;
}

#else

static const struct {
    const char *name;
    way *count;
} ways[1] = { { NULL, NULL } };

static int choose_way(void)
{
    (void)by_trap_flag;
    (void)by_child;
    (void)read_counter;
    return -1;
}

#endif

static int chosen_way(void)
{
    static int chosen = -2;
    if (chosen == -2)
        chosen = choose_way();
    return chosen;
}

const char *counts_method(void)
{
    const int i = chosen_way();
    return i < 0 ? NULL : ways[i].name;
}

struct call_counts count_call(const struct counted_call *call, uintptr_t other, uint64_t most)
{
    struct call_counts counts = { .by = NULL };
    const int i = chosen_way();
    if (i < 0)
        snprintf(counts.why, sizeof counts.why,
                 "single steps do not come here, and no emulator counts");
    else if (!ways[i].count(call, other, most, &counts))
        snprintf(counts.why, sizeof counts.why,
                 "the call did not return, or lies in code that "
                 "no loader knows");
    else if (!counts.why[0])
        counts.by = ways[i].name;
    return counts;
}

/* ---- Kernels ---- */

static int64_t elements_of(const struct call *call)
{
    int64_t out = 0, x = 1;
    for (int o = 0; o < call->n_outputs; o++)
        out += call->outputs[o].rows * call->outputs[o].width;
    const struct posenc_tensor *tensor = call_x((struct call *)(uintptr_t)call);
    for (int i = 0; tensor->data && i < tensor->rank; i++)
        x *= tensor->shape[i];
    return tensor->data && x > out ? x : out;
}

/* Tensors one behind the other in one block: checks of what overlaps take other ways where they lie
 * in another order, and malloc() puts them where it likes. */
struct block {
    char *memory;
    size_t used, size;
};

enum { LINE = 64 };

static void *block_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    struct block *block = user;
    const size_t offset = (size_t)offset_bytes % LINE,
                 all = (offset + bytes + LINE - 1) / LINE * LINE + LINE;
    (void)role;
    if (!block->memory || all < bytes || all > block->size - block->used)
        return NULL;
    block->used += all;
    return block->memory + block->used - all + offset;
}

static void block_free(void *user, void *data)
{
    (void)user;
    (void)data;
}

static struct block block_for(const struct problem *problem)
{
    const size_t most = problem_memory(problem) * 2 + ((size_t)1 << 16),
                 size = (most + LINE - 1) / LINE * LINE;
    return (struct block){ aligned_alloc(LINE, size), 0, size };
}

/* Counts one call on a problem, with everything that is done once already done. */
static bool count_problem(const struct subject *subject, const struct problem *problem,
                          int64_t *elements, struct call_counts *counts, uint64_t *perf)
{
    struct call call;
    struct block block = block_for(problem);
    const struct memory memory = { .get = block_get, .free = block_free, .user = &block };
    *counts = (struct call_counts){ .by = NULL };
    enum posenc_status status = call_create_by(subject, &call, problem, &memory);
    const struct counted_call counted = { subject_entry(subject, problem->kernel),
                                          subject->backend, &call.args };
    if (!status) {
        *elements = elements_of(&call);
        status = call_run(&call, subject->backend);
    }
    if (status)
        posenc_error_text(&call.error, counts->why, sizeof counts->why);
    else
        *counts = count_call(
            &counted, (uintptr_t)backend_entry(subject->backend, problem->kernel), COUNTS_MOST);
    if (counts->by && perf)
        *perf = count_by_perf(&counted);
    call_destroy(&call);
    free(block.memory);
    return counts->by;
}

/* Two realistic problems of some thousand elements, one of them larger. */
static void choose_problems(enum posenc_kernel kernel, enum posenc_dtype dtype,
                            enum posenc_profile profile, struct problem problems[2])
{
    enum { SMALL = 2048, LARGE = 4096, MOST = 1 << 20 };
    const size_t size = storage_size(dtype);
    problems[1] = problem_realistic(kernel, dtype, SMALL * size);
    for (size_t n = LARGE; n <= MOST; n *= 2) {
        problems[0] = problem_realistic(kernel, dtype, n * size);
        if (problem_working_set(&problems[0]) > problem_working_set(&problems[1]))
            break;
    }
    for (int i = 0; i < 2; i++)
        if (kernel_has_plan(kernel))
            problems[i].freqs.profile = profile;
}

size_t count_profiles(enum posenc_kernel kernel, enum posenc_profile profiles[2])
{
    profiles[0] = POSENC_EXACT;
    profiles[1] = POSENC_HF_F32;
    return kernel_has_plan(kernel) && strcmp(kernel_stage(kernel), "table") == 0 ? 2 : 1;
}

bool count_kernel(const struct subject *subject, enum posenc_kernel kernel,
                  enum posenc_dtype dtype, enum posenc_profile profile,
                  struct kernel_counts *to)
{
    struct problem problems[2];
    *to = (struct kernel_counts){ .perf = 0 };
    choose_problems(kernel, dtype, profile, problems);
    to->problem = problems[0];
    for (int i = 0; i < 2; i++)
        if (!count_problem(subject, &problems[i], &to->elements[i], &to->call[i],
                           i == 0 ? &to->perf : NULL)) {
            memcpy(to->why, to->call[i].why, sizeof to->why);
            return false;
        }
    const int64_t more = to->elements[0] - to->elements[1];
    const double steps = (double)to->call[0].instructions - (double)to->call[1].instructions;
    to->per_element = more > 0 ? steps / (double)more : 0.0;
    to->per_call = (double)to->call[1].instructions - to->per_element * (double)to->elements[1];
    return true;
}
