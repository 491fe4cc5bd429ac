/*
 * Mistakes made on purpose, of which each has to be caught by the suite meant for it: the tests
 * of the tests.
 *
 * A line of cases/mistakes.txt says how a mistake is made and names the slip.  What is made in
 * that way (arguments, a head's rotation, a plan) is written once, as it should be, and asks in
 * its places whether this is where somebody slips: SLIP(late_mask).  To add a mistake, write a
 * line and such a place.  The program `broken` and `posenc explain` find it there.
 */
#ifndef POSENC_MISTAKE_H
#define POSENC_MISTAKE_H

#include "conformance/problem/problem.h"

enum how {
#define A_HOW(name) HOW_##name,
#include "slips.inc"
    HOWS
};
enum slip {
#define A_SLIP(name) SLIP_##name,
#include "slips.inc"
    SLIPS /* asked for nowhere */
};

struct mistake {
    const char *name;
    enum posenc_kernel kernel; /* POSENC_KERNEL_COUNT: every kernel that it concerns */
    const char *suite;
    enum how how;
    enum slip slip;
    bool (*concerns)(enum posenc_kernel kernel);
    const char *property;          /* the case <kernel>/<dtype>/<suite>/<property> must fail */
    enum posenc_dtype dtype, last; /* in which types */
};
extern const struct mistake mistakes[];
extern const int n_mistakes;
bool mistake_concerns(const struct mistake *mistake, enum posenc_kernel kernel);

/* The base with a mistake, to run suites on; one at a time.  How often it has been made since. */
const struct implementation *mistaken(const struct mistake *mistake,
                                      const struct posenc_backend *base);
const struct mistake *mistake_find(const char *name);
unsigned long mistake_count(void);
void mistake_made(void);

/* The current mistake, and the backend in which it is made. */
extern const struct mistake *mistake_now;
extern const struct posenc_backend *mistake_base;
#define SLIP(name) (mistake_now->slip == SLIP_##name)

/* ---- Kernels ---- */

/* The tensors of a call, whatever its signature; NULL where there is none. */
struct parts {
    struct posenc_tensor *out, *second; /* second: sin */
    struct posenc_tensor *x;
    struct posenc_positions *positions;
    const struct posenc_freqs *freqs;
    const void *input; /* something that must not be written */
    float x_scale;
};

/* A kernel that was entered.  Mistakes change the copy of its arguments, which `parts` points
 * into; the tensors of `copies` are stored in 16 bits and stand in `args` in f32. */
struct entered {
    enum posenc_kernel kernel;
    union arguments args;
    struct parts parts;
    enum posenc_dtype stored; /* of x, or of an output without x */
    enum posenc_status status;
    struct posenc_freqs *freqs; /* destroyed, and freed, when the kernel has returned */
    void *kept;
    int n_copies;
    struct f32_copy {
        struct posenc_tensor stored, wide;
        bool output;
    } copies[5];
};

/* The real kernel, with the arguments as they are now. */
void enter_kernel(struct entered *e);

/* The kernel with other positions or arguments; with pairs of its table edited; in f32, with
 * loads and stores that are not those of IEEE 754; with its memory in disorder; with what it may not
 * do beside its results, up to the moment when it returns.  In place of it
 * a plain loop in f32 over elements, heads that are turned, heads that are normalised, or sums. */
void enter_position(struct entered *e);
void enter_arguments(struct entered *e);
void enter_pair(struct entered *e);
void enter_storage(struct entered *e);
void enter_memory(struct entered *e);
void enter_conduct(struct entered *e);
void leave_conduct(void);
void enter_element(struct entered *e);
void enter_rotation(struct entered *e);
void enter_norm(struct entered *e);
void enter_sum(struct entered *e);

/* Exchanges the tensors of the call for dense f32 copies of the same shape (one where x is out);
 * writes outputs back and frees the copies. */
void in_f32_open(struct entered *e);
void in_f32_close(struct entered *e);

/* Row (b, i1, i2) of an f32 tensor in the form backends get it. */
float *row_at(const struct posenc_tensor *t, int64_t b, int64_t i1, int64_t i2);
/* A position on an axis; that of pair or token 0 of a kernel that reads rows by it. */
double position_on(const struct posenc_positions *p, int64_t b, int64_t t, int axis);
/* Bytes until the kernel returns. */
void *enter_keep(struct entered *e, int64_t n, size_t size);
/* The last bit of x turned over. */
float other_last_bit(float x);

/* ---- What is mistaken ---- */

/* What the backend or the implementation has of its own in place of the library's functions, as far as
 * the mistake is made there. */
void take_kernels(struct posenc_backend *backend);
void take_plans(struct implementation *implementation);
void take_builders(struct implementation *implementation);
void take_fronts(struct implementation *implementation);

#endif
