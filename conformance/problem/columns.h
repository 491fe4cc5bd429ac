/*
 * Tables from text files. columns.sed makes ROW("...", ...) of each line. The including file
 * defines the members; missing columns up to the fifth are "".
 */
#ifndef POSENC_COLUMNS_H
#define POSENC_COLUMNS_H

#define ROW(...)                         FIVE_COLUMNS(__VA_ARGS__, "", "", "", "")
#define FIVE_COLUMNS(a, b, c, d, e, ...) { a, b, c, d, e },

#endif
