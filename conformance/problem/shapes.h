/*
 * Problems of a kernel that others are made of, or that are gone through.  They stand among its
 * golden cases (conformance/cases/golden), by these names:
 *
 *     default    fields
 *     realistic  fields | what grows | tensor | whose shape it is
 *     length0 ... length3
 *                fields of length 0 | what grows
 *     random     the least fields | what is drawn
 *
 * What grows are words such as 2rotary_dim+2head_dim: fields that grow together, some of them
 * faster; of mrope_section the first.  After a colon stands by how much at most.
 *
 * Of several realistic lines the last that fits into the bytes is taken; each of its words grows
 * as far as it can before the next.  The tensor is the one that fills the bytes; where none is
 * named, all that the call reads or writes does.  Queries end where the keys do.
 */
#ifndef POSENC_SHAPES_H
#define POSENC_SHAPES_H

#include "problem.h"

/* A small problem with `n` units along the dimension that kernels vectorise (channels, pairs or
 * keys), where a loop over vectors has its tails; of the lines of a variant the lengths have one
 * after the other. */
enum { MEMORY_VARIANTS = 4 };
struct problem memory_problem(enum posenc_kernel kernel, int64_t n, int variant);

/* W of the lengths 0 .. 4W + 1. */
int64_t memory_lanes(const struct posenc_backend *backend);

/* Any valid problem, a function of the seed alone; where positions are rows or reach as far as
 * xPos does, they are drawn into `positions`. */
enum { MOST_RANDOM_TOKENS = 24 };
struct problem problem_random(enum posenc_kernel kernel, uint64_t seed,
                              int64_t positions[MOST_RANDOM_TOKENS]);

#endif
