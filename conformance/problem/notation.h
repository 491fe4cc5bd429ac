/*
 * The notation of problems: one line of readable text for each.
 *
 *     rope_half hd80-r32 head_dim=80 rotary_dim=32 heads=2 tokens=3 | Partial | phi-2 | a paper
 *
 *     line  = kernel [name] {field=value} ["|" flags ["|" note ["|" source]]]
 *
 * Fields are those of fields.h. A missing field has the default of problem_blank(). A file holds
 * such lines, empty lines and comments that begin with #. A line that begins with a space continues
 * the one before it. Two shorthands describe many problems:
 *
 *     with [kernel] {field=value} ["|" ...]
 *
 * This applies to the lines up to the next `with`. They take over its fields, flags, note and
 * source unless they have their own. If it names a kernel, the lines name none.
 *
 * a/b in place of a kernel or value stands for two problems, one with a and one with b. The first
 * such place of a line varies slowest. Alternatives of a `with` repeat all of its lines. A line
 * that names the same field appears only for the alternatives that it lists.
 *
 * Memory layouts are fields, too: x.pad, x.offset_bytes, and x.stride in elements, for each
 * dimension but the last, or for batch, token and axis of positions. The same holds for out, cos
 * ...
 */
#ifndef POSENC_NOTATION_H
#define POSENC_NOTATION_H

#include "fields.h"

/* Cuts the text up to `end` out of *rest, without blanks around it; returns NULL if none is left.
 * *rest moves behind it, and becomes NULL past the last. */
char *text_cut(char **rest, char end);

/* Contents of a line; missing texts are "". */
struct problem_line {
    const char *name, *flags, *note, *source;
    struct problem problem;
    int number; /* of the line in its file */
};

struct problem_list {
    size_t n, room;
    struct problem_line *lines;
    struct arena arena;
};

/* Reads one line without `with` and alternatives. Texts and elements are kept in the arena. Returns
 * false and a message that begins with line:column and names the accepted values. */
bool notation_read(const char *text, struct problem_line *line, struct arena *arena,
                   char error[NOTATION_ERROR]);

/* Reads a line over another problem: fields that it does not name are those of `base`, if that is
 * of its kernel. Lists of `base` are shared. */
bool notation_read_over(const struct problem *base, const char *text, struct problem_line *line,
                        struct arena *arena, char error[NOTATION_ERROR]);

/* Appends all problems of a file to the list; each needs a name. Messages begin with
 * path:line:column. */
bool notation_read_file(const char *text, const char *path, struct problem_list *list,
                        char error[NOTATION_ERROR]);

/* Prints the kernel, the name if there is one, and fields that differ from their defaults. Returns
 * the length of the whole; the text is truncated to `room` - 1. */
size_t notation_print(const struct problem *problem, const char *name, char *text, size_t room);

/* ---- Limits (limits.c) ---- */

/* Readers of problems from files or the command line check memory and work, which follow from the
 * numbers of a problem, before they make anything. */
struct problem_limits {
    double bytes;     /* of all tensors */
    double values;    /* of all outputs, if each is checked; 0: no limit */
    const char *whom; /* the memory that `bytes` is a part of, as messages name it */
};

/* Returns the limits of this machine: 1/16 of its memory, or of what a container or a process limit
 * allows. Checking and timing a call takes up to seven times its size, for copies, references and
 * lower-bound microbenchmarks, so at most half of memory is used. */
struct problem_limits problem_limits_here(void);

/* Returns the bytes of all tensors, positions and indices; HUGE_VAL if a size is out of range. */
double problem_memory_estimate(const struct problem *problem);

/* Returns true if no size overflows and the limits hold. Otherwise writes a message that names a
 * field, its value and the accepted values. */
bool problem_within(const struct problem *problem, const struct problem_limits *limits,
                    char error[NOTATION_ERROR]);

#endif
