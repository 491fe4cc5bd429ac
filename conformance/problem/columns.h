/*
 * Tables in text files, compiled in: columns.sed makes a ROW("...", ...) of each line.  Whoever
 * includes one says what a row becomes, of five columns; those that a line leaves out at its end
 * are "".
 */
#ifndef POSENC_COLUMNS_H
#define POSENC_COLUMNS_H

#define ROW(...)                         FIVE_COLUMNS(__VA_ARGS__, "", "", "", "")
#define FIVE_COLUMNS(a, b, c, d, e, ...) { a, b, c, d, e },

#endif
