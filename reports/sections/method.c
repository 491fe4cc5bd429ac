/*
 * How numbers come about, and how to get them again; what words mean is in glossary.c.
 */
#include "reports/report.h"

static const char *const points[] = {
    "Time is the median over rounds of one call.  In each round every backend of a case, a "
    "second copy of one of "
    "them, "
    "and the roofs run in random order, so that what disturbs one disturbs all.",
    "Tables of angles are not counted as bytes of a rotation; 1 GB is 10^9 bytes.  The roof is "
    "of the "
    "same rounds and the same access pattern (store, in place, copy), whichever of plain, "
    "prefetched "
    "and non-temporal was best.",
    "Memory is not the only limit.  In the same rounds run loops over the tensors of the call, "
    "where these stay in a cache, else in a block that stays in the nearest one: a loop that "
    "converts as many elements, where tables are made in f64 or storage "
    "is in 16 bits, and a bare loop that does what the kernel cannot avoid beside, which is "
    "bound by the ports of the core or by latency; and where calls are short, a part of the "
    "call, from which follows what the whole takes without its rows.  What takes longest "
    "binds: the column `bound by` names it, with its time in that of the row (`limit` in "
    "records).  A loop that some backend is quicker than is no limit and left out.",
    "Shares of the roof and factors (vs libm, vs autovec) are quotients of the numbers "
    "printed.  The "
    "records have besides the medians of the quotients of each round (`roof.ratio`, `vs_libm`, "
    "`vs_autovec`), which a disturbance of the machine moves less.",
    "Backends are called a tie where their intervals overlap within the distance of a backend "
    "from its own copy; whatever lies between two that tie is tied, too.  One is called faster "
    "where the intervals are apart and the medians differ by more than 3 %; only then is it "
    "named in place of the default.",
    "A reading is noisy where its interval is wider than 10 % to either side, where a copy of "
    "a backend was further than that from itself, or where it is a fifth above its roof and "
    "not "
    "known to 3 %.  It is shown and decides nothing: it is neither the fastest nor a tie, and "
    "a "
    "default that is noisy stays.",
    "Before a case is timed its output is compared with the verified scalar backend in full, "
    "and "
    "some of its rows with the reference, by the limits that `posenc verify` has.",
};

static const char *const of_pairs[] = {
    "In each round of each launch (a fresh process) head, base and base again, from a second "
    "copy of its "
    "file, run in random order: what disturbs one disturbs all.  What is sampled are launches: "
    "each "
    "gives one number for head and one for how far base is from itself.",
    "The floor is the largest of 1 %, twice the median distance of base from its copy, and "
    "what four in "
    "five launches stay below.  SLOWER, or FASTER: all of the interval lies beyond the floor, "
    "and in every "
    "launch (of five or more in 80 %) head is beyond both copies of base; two further "
    "launches, each "
    "alone, have to confirm it.  SAME: all of the interval lies within the budget.  UNCLEAR: "
    "all "
    "else; more launches would tell.",
    "Identical code: machine code and constants of a kernel are the same in both builds, and "
    "no clock can "
    "make that a change.  Changes of results are exact and know no statistics.",
};

static void add_points(struct node *section, const char *const *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_text(section, ITEM, EVERYWHERE, "%s", text[i]);
}

void section_method(struct node *into, const struct results *r,
                    const struct render_options *options)
{
    struct node *section = add_section(into, ON_PAGE, "Method");
    if (r->n_pairs)
        add_points(section, of_pairs, sizeof of_pairs / sizeof *of_pairs);
    if (r->n_bench || !(r->n_pairs || results_of_doctor(r)))
        add_points(section, points, sizeof points / sizeof *points);
    if (r->n_bench) {
        const char *vectors = record_text(r->header, "vectors.sha256");
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "%d rounds and %.1f %% intervals in the first case; vectors %.12s.",
                 r->bench[0].rounds, 100.0 * r->bench[0].level,
                 *vectors ? vectors : "not loaded");
    }
    char command[1024];
    command_of(r->header, command, sizeof command);
    add_text(section, PARAGRAPH, EVERYWHERE, "To get this again:");
    add_text(section, CODE, EVERYWHERE, "%s\n", options->command ? options->command : command);
}
