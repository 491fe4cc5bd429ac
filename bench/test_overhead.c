/*
 * What a call costs before its kernel begins stays within its limits: 20 ns for
 * posenc_rope_half() and 5 ns for a prepared call on the core that they were set for, which has
 * AVX-512 (Sapphire Rapids); 30 and 10 ns on others, since a Zen 3 takes up to 20 and 8 for the same
 * instructions.  They are of one core; on one that is
 * slower, or shared, they grow with the time that it takes over the same kind of work, and by a
 * half, since the two went apart by a third where neighbours were busy.  What is above a
 * limit by chance does not fail: the whole interval has to be, three times in each of three processes, for
 * what predicts branches and stores goes by addresses, and in a few processes out of a hundred (Zen 4) some
 * of them get on badly from beginning to end.
 */
#define _POSIX_C_SOURCE 200809L
#include "emulation.h"
#include "overhead.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct limit {
    enum overhead_way way;
    const char *name;
    double ns, elsewhere_ns;
} limits[] = {
    { OVERHEAD_FRONT, "posenc_rope_half()", 20.0, 30.0 },
    { OVERHEAD_PREPARED, "a prepared call", 5.0, 10.0 },
};
enum { LIMITS = sizeof limits / sizeof limits[0], ATTEMPTS = 3, LAUNCHES = 3 };

/* How many times the limits are what they are of the core they were set for. */
static double slack(double pace)
{
    const double same = 1.1, apart = 1.5;
    return pace > same ? apart * pace : 1.0;
}

static bool keeps(const struct overhead *o)
{
    const bool here = strncmp(o->backend->name, "avx512", 6) == 0;
    bool fine = true;
    for (int i = 0; i < LIMITS; i++) {
        const struct overhead_ns *ns = &o->above[limits[i].way];
        const double most = (here ? limits[i].ns : limits[i].elsewhere_ns) * slack(o->pace);
        const bool within = ns->low <= most;
        fine &= within;
        printf("# %s: %s, %d heads: %+.1f ns in [%.1f, %.1f] above the %.1f of %s; at most "
               "%.0f at "
               "a pace of %.2f\n",
               within ? "ok" : "too slow", limits[i].name, (int)o->heads, ns->median, ns->low,
               ns->high, o->function_ns, o->backend->name, most, o->pace);
    }
    return fine;
}

static bool keeps_at_last(int64_t heads)
{
    struct overhead o;
    bool fine = false;
    for (int attempt = 0; attempt < ATTEMPTS && !fine; attempt++)
        fine = overhead_measure(heads, &o) && keeps(&o);
    return fine;
}

/* Begins anew with a row, at other addresses; returns only where it cannot. */
static void launch_again(const char *program, int row, int launch)
{
    char from[16], times[16];
    snprintf(from, sizeof from, "%d", row);
    snprintf(times, sizeof times, "%d", launch);
    printf("# once more, in a process of its own\n");
    fflush(stdout);
    execl(program, program, from, times, (char *)NULL);
    perror(program);
}

/* [ROW LAUNCH]: the row to begin with, and how many processes there were. */
int main(int argc, char **argv)
{
    enum { SKIPPED = 77 };
    int failures = 0;
    if (bench_emulator()) {
        printf("skipped: emulated: %s\n", bench_emulator());
        return SKIPPED;
    }
    const int first = argc > 2 ? atoi(argv[1]) : 0, launch = argc > 2 ? atoi(argv[2]) : 1;
    for (int i = first; i < OVERHEAD_ROWS; i++) {
        const bool fine = keeps_at_last(overhead_heads[i]);
        if (!fine && launch < LAUNCHES)
            launch_again(argv[0], i, launch + 1);
        printf("%s - %d heads keep to the limits\n", fine ? "ok" : "not ok",
               (int)overhead_heads[i]);
        failures += !fine;
    }
    return failures != 0;
}
