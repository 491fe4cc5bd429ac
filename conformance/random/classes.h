/*
 * What problems are drawn from: of each field of a kernel a handful of named classes of values, as
 * classes.txt has them by kinds of fields, so that a signature's new field has some without code.
 * A class is drawn from, and a problem is asked which classes it has: those that reach the
 * kernel, for a stride of 0 along a dimension of 1 is none.
 */
#ifndef POSENC_RANDOM_CLASSES_H
#define POSENC_RANDOM_CLASSES_H

#include "conformance/problem/signature.h"

/* Numbers as a function of a seed, and memory for the lists that are drawn. */
struct drawing {
    uint64_t seed, next;
    struct arena *arena;
};
uint64_t draw_bits(struct drawing *d);
int64_t draw_between(struct drawing *d, int64_t least, int64_t most); /* both included */
bool draw_coin(struct drawing *d);

/* A sum of numbers and fields. */
enum { MOST_TERMS = 2, MOST_RANGES = 6, MOST_CLASSES = 12, CLASS_NAME = 24 };
struct end {
    double constant;
    int n;
    struct term {
        float times;
        uint16_t member; /* of struct problem: 64 bits, an integer unless `real` */
        bool real;
    } terms[MOST_TERMS];
};

struct value_class {
    char name[CLASS_NAME];
    int member; /* of an enum, or a flag; of what has no number its place in the line */
    int n;
    struct range {
        struct end least, most;
    } ranges[MOST_RANGES];
};

/* A field that is drawn, and its classes. */
struct factor {
    struct field field;
    const struct tensor_row *row; /* whose layout it is of; or NULL */
    const char *parameter;        /* of the families of scaling that take it; or NULL */
    enum { DRAWN_NUMBER, DRAWN_MEMBER, DRAWN_LIST, DRAWN_STRIDES } how;
    bool size, even;
    int line; /* of classes.txt, which is the order of drawing; -1 before all of them */
    int first, n;
    struct value_class classes[MOST_CLASSES];
};

enum { MOST_FACTORS = 96 };
struct space {
    enum posenc_kernel kernel;
    int n_factors, n_classes;            /* class `first` + c of all is class c of a factor */
    struct factor factors[MOST_FACTORS]; /* in the order of drawing */
};

/* `narrow`: also types of 16 bits; `large`: also the classes of that name.  False with what is wrong in
 * classes.txt. */
bool space_make(struct space *space, enum posenc_kernel kernel, bool narrow, bool large,
                char error[NOTATION_ERROR]);
/* The number of a factor's class "large"; -1: it is no size, or has none. */
int factor_large(const struct factor *factor);
/* "heads few", "x.stride backward". */
void class_name(const struct space *space, int number, char name[FIELD_TEXT + CLASS_NAME]);

/* Sets the field to a value of class c.  False where the problem so far leaves it none. */
bool class_draw(const struct factor *factor, int c, struct problem *problem,
                struct drawing *drawing);
/* Whether what a problem has in a field is of class c; whether that reaches its kernel. */
bool class_has(const struct factor *factor, int c, const struct problem *problem);
bool factor_reaches(const struct factor *factor, const struct problem *problem);

/* The least value of a class of whole numbers in this problem.  False: it has none. */
bool class_least(const struct factor *factor, int c, const struct problem *problem,
                 int64_t *least);

/* lists.c: what has no number. */
bool list_draw(const struct factor *factor, int c, struct problem *problem,
               struct drawing *drawing);
bool list_has(const struct factor *factor, int c, const struct problem *problem);
bool strides_draw(const struct factor *factor, int c, struct problem *problem,
                  struct drawing *drawing);
bool strides_has(const struct factor *factor, int c, const struct problem *problem);

#endif
