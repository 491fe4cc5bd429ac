/*
 * What the header offers beside kernels, called at random: builders, conversions, plans (offers, which
 * take arguments), and names, texts and selections (queries, which take one thing).
 *
 * A trial of an offer is a valid call and a few changes of its arguments, a function of offer, seed and
 * number.  Each array has a buffer of exactly the elements that the header says, between pages that
 * fault; what no memory could hold lies where nothing is, and is called only where the header refuses it.
 * `judge` is the header, read once more: which statuses are due.  A refusal writes nothing; what
 * is accepted is compared with the formula of the header.
 */
#ifndef POSENC_OFFERS_H
#define POSENC_OFFERS_H

#include "caller.h"

enum { MOST_OF_OFFER = 32 };

enum kind {
    KIND_NONE,
    KIND_WHOLE,
    KIND_REAL,
    KIND_FLAG,
    KIND_BYTES,
    KIND_HALVES,
    KIND_INTS,
    KIND_FLOATS,
    KIND_DOUBLES
};

/* One argument: a number from least to most, or an array. */
struct offered {
    const char *name;
    enum kind kind;
    double least, most;
    bool out;
};

struct trial;

struct offer {
    const char *name;
    struct offered of[MOST_OF_OFFER];
    bool tells;    /* there is a place for errors */
    bool anywhere; /* alignment and overlap are looked at */
    /* Makes the numbers valid that are not so between least and most, each by itself; may be NULL. */
    void (*settle)(struct draws *d, struct trial *t);
    /* Elements of an array; below 0: the numbers do not say. */
    wide (*count)(const struct trial *t, int i);
    /* An element of an array that is valid. */
    double (*element)(struct draws *d, const struct trial *t, int i);
    struct verdict (*judge)(const struct trial *t);
    enum posenc_status (*call)(struct trial *t, struct posenc_error *error);
    bool (*right)(const struct trial *t, char complaint[MOST_TEXT]);
};

enum alteration { ALTER_NUMBER, ALTER_NULL, ALTER_ODD, ALTER_JOIN, ALTER_ELEMENT };

struct trial {
    const struct offer *offer;
    uint64_t seed, number;
    int64_t whole[MOST_OF_OFFER];
    double real[MOST_OF_OFFER];
    char *data[MOST_OF_OFFER]; /* of arrays */
    size_t bytes[MOST_OF_OFFER];
    bool backed[MOST_OF_OFFER]; /* what it points to can be looked at */
    int n_changes;
    struct alter {
        enum alteration how;
        int i, at;
        int64_t whole;
        double real;
    } changes[MOST_CHANGES];
    unsigned kept;
    void *made; /* by the call */
};

size_t kind_size(enum kind kind);
double element_of(const struct trial *t, int i, int64_t at);
/* Adds a status where it is due. */
void due(struct verdict *v, bool broken, unsigned status);
/* All that numbers have to be, whole ones SHAPE and real ones PARAMETER where they are not, and arrays that are not
 * NULL. */
struct verdict judge_by_ends(const struct trial *t);
bool all_between(const struct trial *t, int i, double least, double most);

/* Tries one; false where something is wrong.  `answer`: what was answered, -1 where it was not called. */
bool offer_try(const struct offer *offer, struct grounds *grounds, uint64_t seed,
               uint64_t number, unsigned kept, int *answer, char complaint[MOST_TEXT],
               char words[MOST_TEXT]);

/* Ended by one without a name. */
extern const struct offer offers_builders[], offers_indices[], offers_plans[];

/* One thing drawn and asked; what it was is in the complaint. */
struct query {
    const char *name;
    bool (*ask)(struct draws *d, char complaint[MOST_TEXT]);
};
extern const struct query queries[];

#endif
