/*
 * The CPU's own counter of instructions (see counts.h).  Not in most containers and virtual
 * machines.
 */
#define _GNU_SOURCE
#include "counts.h"
#include "marks.h"

#if defined(__linux__) && defined(HAVE_MARKS)

#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_counter(void)
{
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.size = sizeof attributes;
    attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
    attributes.disabled = 1;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The least of some calls: whatever comes between adds to it. */
static uint64_t least_of(int counter, const struct counted_call *call)
{
    uint64_t least = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t value = 0;
        ioctl(counter, PERF_EVENT_IOC_RESET, 0);
        ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
        bench_between_marks(call->entry, call->first, call->second);
        ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
        if (read(counter, &value, sizeof value) != (ssize_t)sizeof value)
            return 0;
        least = i == 0 || value < least ? value : least;
    }
    return least;
}

uint64_t count_by_perf(const struct counted_call *call)
{
    const struct counted_call probe = { bench_probe, NULL, NULL };
    const int counter = open_counter();
    if (counter < 0)
        return 0;
    const uint64_t harness = least_of(counter, &probe), all = least_of(counter, call);
    close(counter);
    return harness >= PROBE_INSTRUCTIONS && all > harness ? all - harness + PROBE_INSTRUCTIONS
                                                          : 0;
}

#else

uint64_t count_by_perf(const struct counted_call *call)
{
    (void)call;
    return 0;
}

#endif
