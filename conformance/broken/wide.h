/*
 * Calls in f32, whatever their storage: tensors of 16 bits become f32 copies of the same shape
 * and strides (one copy where x is out), and what was written goes back rounded.  Mistakes of
 * arithmetic are made on such calls, mistakes of storage by another conversion.
 */
#ifndef POSENC_WIDE_H
#define POSENC_WIDE_H

#include <posenc.h>

/* How one side stores or reads; NULL: as it should. */
struct conversion {
    float (*widen)(enum posenc_dtype dtype, uint16_t bits);
    uint16_t (*narrow)(enum posenc_dtype dtype, float value);
};

struct wide {
    const struct conversion *by; /* NULL: both as they should */
    int n;
    struct {
        struct posenc_tensor stored, copy;
        bool output;
    } of[5];
};

/* Exchanges a tensor for its copy; one in f32, or without elements, stays. */
void wide_input(struct wide *wide, struct posenc_const_tensor *tensor);
void wide_output(struct wide *wide, struct posenc_tensor *tensor);

/* Outputs go back to where they are stored; copies are freed. */
void wide_close(struct wide *wide);

#endif
