/*
 * The notation of problems: one line of text for each.
 *
 *     rope_half hd80-r32 head_dim=80 rotary_dim=32 heads=2 tokens=3 | Partial | phi-2 | a paper
 *
 *     line  = kernel [name] {field=value} ["|" flags ["|" note ["|" source]]]
 *
 * Fields are those of fields.h. A missing field has the default of problem_blank(). Memory layouts are fields, too,
 * such as x.pad, x.offset_bytes and out.stride: elements, for each dimension but the last, or for batch, token and
 * axis of positions.
 *
 * A file has such lines, empty lines and comments that begin with #. A line that begins with a space continues the
 * one before it. Two shorthands describe many problems:
 *
 *     with [kernel] {field=value} ["|" ...]
 *
 * A `with` applies to the lines up to the next one. They have its fields, flags, note and source unless they have
 * their own. If it has a kernel, the lines have none.
 *
 * a/b in place of a kernel or value stands for two problems, one with a and one with b. The first such place of a
 * line varies slowest. Alternatives of a `with` repeat all of its lines. A line that has the same field appears only
 * for the alternatives that it lists.
 */
#ifndef POSENC_NOTATION_H
#define POSENC_NOTATION_H

#include "fields.h"

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

/* Reads one line, without alternatives. The arena holds texts and lists. On an error, returns false and a message
 * that begins with line:column and names the accepted values. */
bool notation_read(const char *text, struct problem_line *line, struct arena *arena,
                   char error[NOTATION_ERROR]);

/* Does the same, but takes missing fields from `base`, if that is a problem of the same kernel. Lists of `base` are
 * shared. */
bool notation_read_over(const struct problem *base, const char *text, struct problem_line *line,
                        struct arena *arena, char error[NOTATION_ERROR]);

/* Appends all problems of a file to the list; each needs a name. Messages begin with path:line:column. */
bool notation_read_file(const char *text, const char *path, struct problem_list *list,
                        char error[NOTATION_ERROR]);

/* Prints the kernel, the name unless it is NULL or empty, and the fields that differ from their defaults. Returns the
 * length of the whole text, of which `text` has at most room - 1 characters. */
size_t notation_print(const struct problem *problem, const char *name, char *text, size_t room);

/* ---- Limits (limits.c) ---- */

/* Limits of memory and work. Readers of files and of the command line check them before they make a call. */
struct problem_limits {
    double bytes;      /* of all tensors */
    double values;     /* of all outputs, if each is checked; 0: no limit */
    const char *basis; /* of the limit, in words: "a sixteenth of this machine's memory" */
};

/* Returns the limits of this machine: 1/16 of its memory, or of the limit of a container or process. Checking and
 * timing a call takes up to seven times its size, for copies, references and lower-bound microbenchmarks, and thus
 * less than half of the memory. */
struct problem_limits problem_limits_here(void);

/* Returns the bytes of all tensors, positions and indices; HUGE_VAL if a size is out of range. */
double problem_memory_estimate(const struct problem *problem);

/* Returns true if no size overflows and the limits hold. Otherwise writes a message that names a field, its value and
 * the accepted values. */
bool problem_within(const struct problem *problem, const struct problem_limits *limits,
                    char error[NOTATION_ERROR]);

#endif
