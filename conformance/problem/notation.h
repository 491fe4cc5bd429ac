/*
 * The notation of problems: a line of text that people can read, write and compare.
 *
 *     rope_half hd80-r32 head_dim=80 rotary_dim=32 heads=2 tokens=3 | Partial | phi-2 | a paper
 *
 *     line  = kernel [name] {field=value} ["|" flags ["|" note ["|" source]]]
 *
 * Fields are those of fields.h; what is not named is as in problem_blank().  A file has such
 * lines, empty lines and comments (lines that begin with #); a line that begins with a space
 * goes on with the one before it.  Two things make many lines short:
 *
 *     with [kernel] {field=value} ["|" ...]
 *
 * holds for the lines up to the next `with`: they have its fields, flags, note and source where
 * they have none themselves, and where it names a kernel they do not.  And a/b in the place of
 * a kernel or a value stands for a problem with a, then one with b: the first such place of a
 * line turns slowest.  Of a `with` the whole of its lines is taken with a, then with b, and
 * lines that name the same field are there for their own values alone.
 *
 * Where each tensor lies is a field, too: x.pad, x.offset_bytes and x.stride (in elements, of each
 * dimension but the last; of positions by batch, token and axis), and so for out, cos, sin, ...
 */
#ifndef POSENC_NOTATION_H
#define POSENC_NOTATION_H

#include "fields.h"

/* The text up to `end`, without blanks around it, cut out where it lies; NULL where that is
 * nothing.  *rest goes behind it, and is NULL past the last. */
char *text_piece(char **rest, char end);

/* What a line says; "" where it does not. */
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

/* One line, without `with` and alternatives.  Text and elements are kept in the arena.  False
 * with what is wrong and what is accepted. */
bool notation_read(const char *text, struct problem_line *line, struct arena *arena,
                   char error[NOTATION_ERROR]);

/* All problems of a file, behind those of the list; each has a name.  `path` is for messages,
 * which begin with
 * path:line:column. */
bool notation_read_file(const char *text, const char *path, struct problem_list *list,
                        char error[NOTATION_ERROR]);

/* Kernel, name where there is one, and fields that are not blank.  Returns the length of the
 * whole; the text is cut to `room` - 1. */
size_t notation_print(const struct problem *problem, const char *name, char *text, size_t room);

#endif
